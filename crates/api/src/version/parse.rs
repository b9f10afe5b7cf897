//! From text to the parts of a version, in any of its spellings.

use thiserror::Error;

use crate::text::quoted;

/// The longest value of a label. Versions are values of labels, and their prefixes are the names of labels.
const LABEL_MAX_BYTES: usize = 63;

/// A text that is no version, with what is wrong about it and what would be accepted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{quoted} is not a {}: {problem}; accepted are for example {}", wanted.noun(), wanted.examples())]
pub struct VersionError {
    wanted: Wanted,
    quoted: String,
    problem: VersionProblem,
}

impl VersionError {
    pub(super) fn new(wanted: Wanted, text: &str, problem: VersionProblem) -> Self {
        Self { wanted, quoted: quoted(text), problem }
    }

    /// What is wrong with the text.
    pub fn problem(&self) -> &VersionProblem {
        &self.problem
    }
}

/// What is wrong with a text that should be a version.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum VersionProblem {
    /// There is nothing in it, or nothing but a `v`.
    #[error("it has no numbers")]
    Empty,
    /// It is longer than the value of a label may be, written with `---` for `+`.
    #[error("it is longer than the {LABEL_MAX_BYTES} characters that a label may have")]
    TooLong,
    /// Where a number should be, there is something else.
    #[error("{} is not a number", quoted(.0))]
    NotANumber(String),
    /// A number or a numeric part of a pre-release begins with a zero.
    #[error("{} begins with a zero", quoted(.0))]
    LeadingZero(String),
    /// The number is above 2^64 - 1.
    #[error("{} is too large a number", quoted(.0))]
    NumberTooLarge(String),
    /// Only a prefix may have fewer than three numbers.
    #[error("it needs three numbers: major, minor and patch")]
    TooFewNumbers,
    /// `v1.24.9.1`
    #[error("it has more than three numbers")]
    TooManyNumbers,
    /// `v1.24+vmware.1`
    #[error("a pre-release or build metadata can only follow three numbers")]
    NumbersMissingBefore,
    /// `v1.24.9+` or `v1.24.9+vmware..1` or `v1.24.9-rc--1`
    #[error("there is nothing between two of its delimiters, or after the last one")]
    EmptyToken,
    /// `v1.24.9+vmware.1_2`
    #[error("build metadata begins twice (with \"+\", \"_\" or \"---\")")]
    BuildTwice,
    /// An upper-case letter, which cannot be in the name of an object.
    #[error("{0:?} is an upper-case letter, which cannot be in the name of an object")]
    UpperCase(char),
    /// A character that no version has.
    #[error("{0:?} cannot be in a version")]
    Character(char),
}

/// What a text was expected to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Version,
    Prefix,
    DashedVersion,
}

impl Wanted {
    fn noun(self) -> &'static str {
        match self {
            Self::Version => "version",
            Self::Prefix => "prefix of a version",
            Self::DashedVersion => "version with dashes",
        }
    }

    fn examples(self) -> &'static str {
        match self {
            Self::Version => "v1.24.9, v1.24.9-rc.1 and v1.24.9+vmware.1-tkg.1",
            Self::Prefix => "v1.24, v1.24.9 and v1.24.9+vmware.1",
            Self::DashedVersion => "21-0-0 and 21-0-0-rc.1",
        }
    }
}

/// The parts of a version or of a prefix, all of them checked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts<'a> {
    /// Major, minor, patch. A later one is there only if all earlier ones are.
    pub(super) numbers: [Option<u64>; 3],
    pre_release: Option<&'a str>,
    build: Option<&'a str>,
}

impl<'a> Parts<'a> {
    /// Reads `v1.24.9-rc.1+vmware.1`, with or without the `v`, with `+`, `_` or `---`, and any prefix of it.
    pub(super) fn of(text: &'a str) -> Result<Self, VersionProblem> {
        let (head, build) = split_build(bounded(text.strip_prefix('v').unwrap_or(text))?);
        let (numbers, pre_release) = match head.split_once('-') {
            None => (head, None),
            Some((numbers, pre_release)) => (numbers, Some(pre_release)),
        };
        let mut fields = numbers.split('.');
        let numbers = [fields.next(), fields.next(), fields.next()];
        if fields.next().is_some() {
            return Err(VersionProblem::TooManyNumbers);
        }
        Self { numbers: read_numbers(numbers)?, pre_release, build }.checked()
    }

    /// Reads `21-0-0-rc.1---vmware.1`.
    pub(super) fn of_dashed(text: &'a str) -> Result<Self, VersionProblem> {
        let (head, build) = split_build(bounded(text)?);
        let mut fields = head.splitn(4, '-');
        let numbers = [fields.next(), fields.next(), fields.next()];
        Self { numbers: read_numbers(numbers)?, pre_release: fields.next(), build }.checked()
    }

    /// The canonical text. It is refused where the longest of the spellings would be too long for a label.
    pub(super) fn canonical(&self) -> Result<Box<str>, VersionProblem> {
        let mut text = String::with_capacity(LABEL_MAX_BYTES);
        for (delimiter, number) in ['v', '.', '.'].into_iter().zip(self.numbers.into_iter().flatten()) {
            text.push(delimiter);
            text.push_str(&number.to_string());
        }
        for (delimiter, part) in [('-', self.pre_release), ('+', self.build)] {
            if let Some(part) = part {
                text.push(delimiter);
                text.push_str(part);
            }
        }
        // The longest spelling is the label: two more characters for the plus.
        let widened = if self.build.is_some() { 2 } else { 0 };
        if text.len() + widened > LABEL_MAX_BYTES { Err(VersionProblem::TooLong) } else { Ok(text.into_boxed_str()) }
    }

    fn checked(self) -> Result<Self, VersionProblem> {
        let suffixed = self.pre_release.is_some() || self.build.is_some();
        if suffixed && self.numbers.contains(&None) {
            return Err(VersionProblem::NumbersMissingBefore);
        }
        if let Some(pre_release) = self.pre_release {
            check_tokens(pre_release)?;
            // Build metadata may: `+0ab12c` is a commit.
            if let Some(token) = pre_release.split(['.', '-']).find(|token| is_number(token) && has_leading_zero(token))
            {
                return Err(VersionProblem::LeadingZero(token.to_owned()));
            }
        }
        self.build.map_or(Ok(()), check_tokens)?;
        Ok(self)
    }
}

/// The text itself, if it is not so long that looking at it would be a waste.
fn bounded(text: &str) -> Result<&str, VersionProblem> {
    match text.len() {
        0 => Err(VersionProblem::Empty),
        1..=LABEL_MAX_BYTES => Ok(text),
        _ => Err(VersionProblem::TooLong),
    }
}

/// Separates the build metadata at the first plus, however it is spelled.
///
/// `---` cannot be part of a pre-release: two dashes never meet in one.
fn split_build(text: &str) -> (&str, Option<&str>) {
    let split = ["+", "_", "---"].into_iter().filter_map(|plus| text.split_once(plus));
    split.min_by_key(|(head, _)| head.len()).map_or((text, None), |(head, build)| (head, Some(build)))
}

fn read_numbers(fields: [Option<&str>; 3]) -> Result<[Option<u64>; 3], VersionProblem> {
    let mut numbers = [None; 3];
    for (number, field) in numbers.iter_mut().zip(fields) {
        *number = field.map(read_number).transpose()?;
    }
    Ok(numbers)
}

fn read_number(text: &str) -> Result<u64, VersionProblem> {
    if !is_number(text) {
        return Err(VersionProblem::NotANumber(text.to_owned()));
    }
    if has_leading_zero(text) {
        return Err(VersionProblem::LeadingZero(text.to_owned()));
    }
    text.parse().map_err(|_| VersionProblem::NumberTooLarge(text.to_owned()))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn has_leading_zero(number: &str) -> bool {
    number.len() > 1 && number.starts_with('0')
}

/// Checks a pre-release or build metadata: runs of letters and digits, with one dot or dash between two of them.
fn check_tokens(text: &str) -> Result<(), VersionProblem> {
    for character in text.chars() {
        match character {
            'a'..='z' | '0'..='9' | '.' | '-' => {}
            '+' | '_' => return Err(VersionProblem::BuildTwice),
            'A'..='Z' => return Err(VersionProblem::UpperCase(character)),
            _ => return Err(VersionProblem::Character(character)),
        }
    }
    if text.split(['.', '-']).any(str::is_empty) { Err(VersionProblem::EmptyToken) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use crate::version::{KubernetesVersion, VersionPrefix};

    fn check(text: &str, complaint: &str) {
        let refusal = text.parse::<KubernetesVersion>().unwrap_err().to_string();
        let expected = format!(
            "{text:?} is not a version: {complaint}; accepted are for example v1.24.9, v1.24.9-rc.1 and \
             v1.24.9+vmware.1-tkg.1"
        );
        assert_eq!(refusal, expected);
    }

    #[test]
    fn a_refusal_names_the_text_the_problem_and_what_is_accepted() {
        check("", "it has no numbers");
        check("v", "it has no numbers");
        check("latest", r#""latest" is not a number"#);
        check("vv1.24.9", r#""v1" is not a number"#);
        check("V1.24.9", r#""V1" is not a number"#);
        check(" v1.24.9", r#"" v1" is not a number"#);
        check("v1..9", r#""" is not a number"#);
        check("v1.24.", r#""" is not a number"#);
        check("v1.24.x", r#""x" is not a number"#);
        check("v1.-24.9", r#""" is not a number"#);
        check("v1.24.٩", r#""٩" is not a number"#);
        check("v1.024.9", r#""024" begins with a zero"#);
        check("v1.24.9-rc.01", r#""01" begins with a zero"#);
        check("v1.24.18446744073709551616", r#""18446744073709551616" is too large a number"#);
        check("v1.24", "it needs three numbers: major, minor and patch");
        check("v1.24.9.1", "it has more than three numbers");
        check("v1.24+vmware.1", "a pre-release or build metadata can only follow three numbers");
        check("v1.24-rc.1", "a pre-release or build metadata can only follow three numbers");
        check("v1.24.9+", "there is nothing between two of its delimiters, or after the last one");
        check("v1.24.9-", "there is nothing between two of its delimiters, or after the last one");
        check("v1.24.9+a..b", "there is nothing between two of its delimiters, or after the last one");
        check("v1.24.9+a.-b", "there is nothing between two of its delimiters, or after the last one");
        check("v1.24.9--a", "there is nothing between two of its delimiters, or after the last one");
        check("v1.24.9----a", "there is nothing between two of its delimiters, or after the last one");
        check("v1.24.9+a_b", r#"build metadata begins twice (with "+", "_" or "---")"#);
        check("v1.24.9---a+b", r#"build metadata begins twice (with "+", "_" or "---")"#);
        check("v1.24.9+VMware.1", "'V' is an upper-case letter, which cannot be in the name of an object");
        check("v1.24.9+a b", "' ' cannot be in a version");
    }

    #[test]
    fn a_version_is_no_longer_than_a_label() {
        // "v1.24.9---" has ten characters.
        let longest = format!("v1.24.9+{}", "a".repeat(53));
        assert_eq!(longest.parse::<KubernetesVersion>().unwrap().label().to_string().len(), 63);
        check(&format!("{longest}a"), "it is longer than the 63 characters that a label may have");
        check(&"9".repeat(100), "it is longer than the 63 characters that a label may have");
    }

    #[test]
    fn a_refusal_repeats_no_more_of_the_text_than_a_person_reads() {
        let refusal = "ü".repeat(100_000).parse::<KubernetesVersion>().unwrap_err().to_string();
        assert!(refusal.chars().count() < 400, "{refusal}");
    }

    #[test]
    fn a_refused_prefix_says_that_it_may_be_short() {
        let refusal = "v1.x".parse::<VersionPrefix>().unwrap_err().to_string();
        assert_eq!(
            refusal,
            r#""v1.x" is not a prefix of a version: "x" is not a number; accepted are for example v1.24, v1.24.9 and v1.24.9+vmware.1"#
        );
    }
}
