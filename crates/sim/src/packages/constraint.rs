//! Which versions are meant: `1.2.3`, `>=1.0.0 <2.0.0 || 3.x`.
//!
//! The reference is the fork of blang/semver that Carvel uses. It compares build metadata too, so that `1.9.0+vmware.2` is
//! one version and no other; the order is that of [`KubernetesVersion`].

use windlass_api::version::KubernetesVersion;

/// What a version has to be: all of one of the lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Constraint(Vec<Vec<Bound>>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Bound {
    operator: Operator,
    version: KubernetesVersion,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A text that is no constraint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ConstraintError {
    /// `|| 1.0.0`
    #[error("Parsing version constraint '{0}': an alternative is empty")]
    Empty(String),
    /// `>=one`
    #[error("Parsing version constraint '{text}': Could not parse Range \"{part}\"")]
    Part {
        /// All of it.
        text: String,
        /// What is wrong in it.
        part: String,
    },
}

impl Constraint {
    /// The constraint that a text stands for. An empty one allows everything.
    pub(super) fn parse(text: &str) -> Result<Self, ConstraintError> {
        if text.trim().is_empty() {
            return Ok(Self(vec![Vec::new()]));
        }
        let line = |line: &str| {
            let parts = joined(line);
            if parts.is_empty() {
                return Err(ConstraintError::Empty(text.to_owned()));
            }
            let bounds = parts.iter().map(|part| {
                bounds(part).ok_or_else(|| ConstraintError::Part { text: text.to_owned(), part: part.clone() })
            });
            Ok(bounds.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
        };
        Ok(Self(text.split("||").map(line).collect::<Result<_, _>>()?))
    }

    /// Whether the version is one of those meant.
    pub(super) fn allows(&self, version: &KubernetesVersion) -> bool {
        self.0.iter().any(|line| line.iter().all(|bound| bound.allows(version)))
    }
}

impl Bound {
    fn allows(&self, version: &KubernetesVersion) -> bool {
        match self.operator {
            Operator::Equal => *version == self.version,
            Operator::NotEqual => *version != self.version,
            Operator::Less => *version < self.version,
            Operator::LessOrEqual => *version <= self.version,
            Operator::Greater => *version > self.version,
            Operator::GreaterOrEqual => *version >= self.version,
        }
    }
}

/// A version as packages spell it, which is without a `v`.
pub(super) fn version(text: &str) -> Option<KubernetesVersion> {
    format!("v{}", text.strip_prefix('v').unwrap_or(text)).parse().ok()
}

/// The parts of a line; an operator and its version may have spaces between them.
fn joined(line: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for word in line.split_whitespace() {
        match parts.last_mut().filter(|last| last.ends_with(['<', '>', '=', '!'])) {
            Some(operator) => operator.push_str(word),
            None => parts.push(word.to_owned()),
        }
    }
    parts
}

/// The bounds of a part. One with a wildcard has two, of which one may be implied by the other.
fn bounds(part: &str) -> Option<Vec<Bound>> {
    let digits = part.find(|character: char| character.is_ascii_digit())?;
    let (operator, text) = part.split_at(digits);
    let operator = match operator {
        "" | "=" | "==" => Operator::Equal,
        "!" | "!=" => Operator::NotEqual,
        "<" => Operator::Less,
        "<=" => Operator::LessOrEqual,
        ">" => Operator::Greater,
        ">=" => Operator::GreaterOrEqual,
        _ => return None,
    };
    match text.rsplit('.').next() {
        Some("x") => wildcard(operator, text),
        _ => Some(vec![Bound { operator, version: version(text)? }]),
    }
}

/// `1.2.x` begins before `1.2.0`, with its pre-releases, and ends before `1.3.0` and its.
fn wildcard(operator: Operator, text: &str) -> Option<Vec<Bound>> {
    let numbers: Vec<u64> = text
        .trim_end_matches(".x")
        .split('.')
        .map(|number| number.parse().ok())
        .collect::<Option<_>>()
        .filter(|numbers: &Vec<u64>| numbers.len() < 3)?;
    let at = |major: u64, minor: u64| format!("v{major}.{minor}.0-0").parse::<KubernetesVersion>().ok();
    let (begin, end) = match numbers.as_slice() {
        [major] => (at(*major, 0)?, at(major.checked_add(1)?, 0)?),
        [major, minor] => (at(*major, *minor)?, at(*major, minor.checked_add(1)?)?),
        _ => return None,
    };
    let bound = |operator: Operator, version: KubernetesVersion| Bound { operator, version };
    Some(match operator {
        Operator::Equal => vec![bound(Operator::GreaterOrEqual, begin), bound(Operator::Less, end)],
        // What lies outside on both sides cannot be said with bounds that all hold; the reference cannot either.
        Operator::NotEqual => vec![bound(Operator::Less, begin), bound(Operator::GreaterOrEqual, end)],
        Operator::Less => vec![bound(Operator::Less, begin)],
        Operator::LessOrEqual => vec![bound(Operator::Less, end)],
        Operator::Greater => vec![bound(Operator::GreaterOrEqual, end)],
        Operator::GreaterOrEqual => vec![bound(Operator::GreaterOrEqual, begin)],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a constraint allows of these versions, and what it does not.
    fn check(constraint: &str, allowed: &[&str], refused: &[&str]) {
        let parsed = Constraint::parse(constraint).unwrap();
        for (versions, wanted) in [(allowed, true), (refused, false)] {
            for text in versions {
                assert_eq!(parsed.allows(&version(text).unwrap()), wanted, "{text} and {constraint}");
            }
        }
    }

    #[test]
    fn one_version_is_that_one_with_its_build() {
        check("1.9.0+vmware.2-tkg.1", &["1.9.0+vmware.2-tkg.1"], &["1.9.0+vmware.1-tkg.1", "1.9.0", "1.9.1"]);
        check("=1.0.0", &["1.0.0"], &["1.0.1", "1.0.0-rc.1"]);
    }

    #[test]
    fn all_bounds_of_a_line_hold_and_one_line_is_enough() {
        check(">1.0.0 <2.0.0", &["1.0.1", "1.9.9"], &["1.0.0", "2.0.0"]);
        check(">= 1.0.0 <= 2.0.0", &["1.0.0", "2.0.0"], &["0.9.0", "2.0.1"]);
        check("<2.0.0 || >=3.0.0 !=3.1.0", &["1.0.0", "3.0.0", "3.2.0"], &["2.5.0", "3.1.0"]);
        check("", &["0.0.1", "9.9.9-rc.1"], &[]);
    }

    #[test]
    fn a_wildcard_is_a_whole_minor_or_major() {
        check("1.2.x", &["1.2.0", "1.2.9"], &["1.1.9", "1.3.0"]);
        check("1.x", &["1.0.0", "1.9.9"], &["0.9.9", "2.0.0"]);
        check(">1.2.x", &["1.3.0"], &["1.2.9"]);
        check("<=1.2.x", &["1.2.9"], &["1.3.0"]);
    }

    #[test]
    fn what_is_no_constraint_says_which_part_is_wrong() {
        for text in ["|| 1.0.0", "one", ">=1.0", "~1.0.0", "1.x.3.x"] {
            assert!(Constraint::parse(text).is_err(), "{text}");
        }
        let error = Constraint::parse(">=1.0.0 ^2.0.0").unwrap_err();
        assert_eq!(error.to_string(), "Parsing version constraint '>=1.0.0 ^2.0.0': Could not parse Range \"^2.0.0\"");
    }
}
