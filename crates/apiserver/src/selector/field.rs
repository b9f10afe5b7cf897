//! Field selectors: `metadata.name=x,status.phase!=Running`.

use std::borrow::Cow;
use std::fmt;

use super::SelectorError;

/// Terms that must all hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSelector(Vec<Term>);

/// One field, compared with one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// The field: `status.phase`.
    pub path: String,
    /// How it is compared.
    pub comparison: Comparison,
    /// The value it is compared with.
    pub value: String,
}

/// How a field is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `=` or `==`
    Equal,
    /// `!=`
    NotEqual,
}

/// The fields that a kind can be selected by, which also decides how the others are refused.
#[derive(Debug, Clone, Copy)]
pub enum Selectable<'a> {
    /// `metadata.name` and `metadata.namespace` alone: built-in kinds that offer nothing else.
    Metadata,
    /// Those two, and these: built-in kinds that offer more, and every custom resource.
    Fields(&'a [&'a str]),
    /// Those two, and these, of the built-in `Job`.
    Job(&'a [&'a str]),
}

impl FieldSelector {
    /// Selects every object.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Selects the object of this name.
    pub fn name(name: &str) -> Self {
        let term = Term { path: "metadata.name".to_owned(), comparison: Comparison::Equal, value: name.to_owned() };
        Self(vec![term])
    }

    /// Reads the form of the query string.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut parts = split_terms(text);
        parts.sort_unstable();
        let mut terms = Vec::new();
        for part in parts.into_iter().filter(|p| !p.is_empty()) {
            let Some((path, comparison, value)) = split_term(part) else {
                return Err(SelectorError(format!("invalid selector: '{text}'; can't understand '{part}'")));
            };
            let value = unescape(value)?;
            // A term that names neither field nor value says nothing.
            if !(path.is_empty() && value.is_empty()) {
                terms.push(Term { path: path.to_owned(), comparison, value });
            }
        }
        Ok(Self(terms))
    }

    /// The terms.
    pub fn terms(&self) -> &[Term] {
        &self.0
    }

    /// Whether no object can be left out.
    pub fn is_everything(&self) -> bool {
        self.0.is_empty()
    }

    /// Refuses fields that the kind cannot be selected by.
    pub fn check(&self, selectable: Selectable<'_>) -> Result<(), SelectorError> {
        for Term { path, .. } in &self.0 {
            let metadata = matches!(path.as_str(), "metadata.name" | "metadata.namespace");
            let offers = |fields: &[&str]| metadata || fields.contains(&path.as_str());
            match selectable {
                Selectable::Metadata if !metadata => {
                    let only = r#"only "metadata.name", "metadata.namespace""#;
                    return Err(SelectorError(format!("{path:?} is not a known field selector: {only}")));
                }
                Selectable::Fields(fields) if !offers(fields) => {
                    return Err(SelectorError(format!("field label not supported: {path}")));
                }
                Selectable::Job(fields) if !offers(fields) => {
                    return Err(SelectorError(format!("field label {path:?} not supported for Job")));
                }
                Selectable::Metadata | Selectable::Fields(_) | Selectable::Job(_) => {}
            }
        }
        Ok(())
    }

    /// The selector of a watch on one object, which may repeat the name and may not contradict it.
    pub fn with_name(self, name: &str) -> Result<Self, SelectorError> {
        if self.is_everything() {
            return Ok(Self::name(name));
        }
        if self.exact("metadata.name") == Some(name) {
            return Ok(self);
        }
        Err(SelectorError("fieldSelector metadata.name doesn't match requested name".to_owned()))
    }

    /// The only value that the field may have, when there is one.
    pub fn exact(&self, path: &str) -> Option<&str> {
        self.0.iter().find(|t| t.path == path && t.comparison == Comparison::Equal).map(|t| t.value.as_str())
    }

    /// Whether an object is selected; `field` gives the value at a path, empty when it is absent.
    pub fn matches<'a>(&self, field: impl Fn(&str) -> Cow<'a, str>) -> bool {
        self.0.iter().all(|term| match term.comparison {
            Comparison::Equal => field(&term.path) == term.value,
            Comparison::NotEqual => field(&term.path) != term.value,
        })
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, term) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            let operator = match term.comparison {
                Comparison::Equal => "=",
                Comparison::NotEqual => "!=",
            };
            write!(f, "{}{operator}", term.path)?;
            for c in term.value.chars() {
                if matches!(c, '\\' | ',' | '=') {
                    f.write_str("\\")?;
                }
                write!(f, "{c}")?;
            }
        }
        Ok(())
    }
}

/// Splits at commas that no backslash escapes.
fn split_terms(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (i, b) in text.bytes().enumerate() {
        match b {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b',' => {
                terms.push(&text[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

/// Splits at the first operator: the left side knows no escapes.
fn split_term(term: &str) -> Option<(&str, Comparison, &str)> {
    let equal = term.find('=')?;
    let left = &term[..equal];
    let right = &term[equal + 1..];
    match left.strip_suffix('!') {
        Some(left) => Some((left, Comparison::NotEqual, right)),
        None => Some((left, Comparison::Equal, right.strip_prefix('=').unwrap_or(right))),
    }
}

fn unescape(value: &str) -> Result<String, SelectorError> {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(escaped @ ('\\' | ',' | '=')) => out.push(escaped),
                other => {
                    let other = other.map(String::from).unwrap_or_default();
                    return Err(SelectorError(format!("invalid field selector: invalid escape sequence: \\{other}")));
                }
            },
            // The code point as a number: a real server forgets to print it as a character.
            ',' | '=' => {
                let code = u32::from(c);
                return Err(SelectorError(format!("invalid field selector: unescaped character in value: {code}")));
            }
            c => out.push(c),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, canonical: &str) {
        assert_eq!(FieldSelector::parse(text).unwrap().to_string(), canonical, "{text}");
    }

    #[track_caller]
    fn refuses(text: &str, why: &str) {
        assert_eq!(FieldSelector::parse(text).unwrap_err().to_string(), why, "{text}");
    }

    #[test]
    fn terms_are_sorted_and_operators_unified() {
        check("", "");
        check("b=1,a==2", "a=2,b=1");
        check("a!=1", "a!=1");
        check("a=", "a=");
        check("=", "");
        check(",,a=1,", "a=1");
        check(r"a=x\,y\=z\\", r"a=x\,y\=z\\");
        check("a=!b", "a=!b");
    }

    #[test]
    fn what_cannot_be_read_is_refused_in_the_words_of_a_real_server() {
        refuses("a", "invalid selector: 'a'; can't understand 'a'");
        refuses("a=b,c", "invalid selector: 'a=b,c'; can't understand 'c'");
        refuses(r"metadata.name=a\b", r"invalid field selector: invalid escape sequence: \b");
        refuses(r"metadata.name=a\", r"invalid field selector: invalid escape sequence: \");
        refuses("metadata.name=a=b", "invalid field selector: unescaped character in value: 61");
    }

    #[test]
    fn fields_that_a_kind_does_not_offer_are_refused() {
        let check = |text: &str, selectable, why: Option<&str>| {
            let refusal = FieldSelector::parse(text).unwrap().check(selectable).err();
            assert_eq!(refusal.map(|e| e.to_string()).as_deref(), why, "{text}");
        };
        check("metadata.name=a,metadata.namespace!=b", Selectable::Metadata, None);
        let known = r#""a" is not a known field selector: only "metadata.name", "metadata.namespace""#;
        check("a=b", Selectable::Metadata, Some(known));
        check("status.phase=b", Selectable::Fields(&["status.phase"]), None);
        check("spec.x=5", Selectable::Fields(&[]), Some("field label not supported: spec.x"));
        check("=b", Selectable::Fields(&[]), Some("field label not supported: "));
        check("a=b", Selectable::Job(&["status.successful"]), Some(r#"field label "a" not supported for Job"#));
    }

    #[test]
    fn terms_compare_the_value_of_a_field() {
        let check = |text: &str, expected: bool| {
            let field = |path: &str| Cow::Borrowed(if path == "a" { "1" } else { "" });
            assert_eq!(FieldSelector::parse(text).unwrap().matches(field), expected, "{text}");
        };
        check("", true);
        check("a=1", true);
        check("a!=1", false);
        check("b=", true);
        check("a=1,b=2", false);
    }

    #[test]
    fn the_name_in_the_path_and_the_name_in_the_selector_must_agree() {
        let check = |text: &str, expected: bool| {
            assert_eq!(FieldSelector::parse(text).unwrap().with_name("x").is_ok(), expected, "{text}");
        };
        check("", true);
        check("metadata.name=x", true);
        check("metadata.name=y", false);
        check("metadata.name!=x", false);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in r"[a-c=!,\\]{0,12}|.{0,20}") {
            if let Ok(selector) = FieldSelector::parse(&text) {
                // The order may differ: it is that of the terms as written, with other operators and escapes.
                let sorted = |selector: FieldSelector| {
                    let mut terms: Vec<String> = selector.0.into_iter().map(|t| format!("{t:?}")).collect();
                    terms.sort();
                    terms
                };
                let again = FieldSelector::parse(&selector.to_string()).unwrap();
                prop_assert_eq!(sorted(again), sorted(selector));
            }
        }

        #[test]
        fn any_value_survives_its_escapes(value in ".{0,12}") {
            let selector = FieldSelector(vec![Term { path: "a".into(), comparison: Comparison::Equal, value }]);
            prop_assert_eq!(FieldSelector::parse(&selector.to_string()).unwrap(), selector);
        }
    }
}
