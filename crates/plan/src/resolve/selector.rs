//! Label selectors as people type them: `os-name=ubuntu,image-type=ova,!deactivated,os-version in (2004, 2204)`.
//!
//! The grammar is the one of Kubernetes, without the comparisons of numbers. (`kube-core` has selectors, but none that are
//! read from a text.) A complaint names the character that it is about.

mod parse;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

pub(super) use parse::is_key;
pub use parse::{SelectorError, SelectorProblem};

/// Which labels an object must have, and which it must not. All requirements must be met; without any, every object fits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {
    requirements: Vec<Requirement>,
}

/// One thing that is asked of an object's labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requirement {
    /// The label is there.
    Exists(String),
    /// The label is not there.
    Absent(String),
    /// The label is there, with one of these values.
    In(String, BTreeSet<String>),
    /// The label is not there, or has none of these values.
    NotIn(String, BTreeSet<String>),
}

impl Selector {
    /// Whether labels meet all requirements.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.unmet(labels).is_none()
    }

    /// The first requirement that labels do not meet.
    pub fn unmet(&self, labels: &BTreeMap<String, String>) -> Option<&Requirement> {
        self.requirements.iter().find(|requirement| !requirement.is_met(labels))
    }

    /// Whether nothing is asked.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }
}

impl Requirement {
    /// Whether labels meet it.
    pub fn is_met(&self, labels: &BTreeMap<String, String>) -> bool {
        match self {
            Self::Exists(key) => labels.contains_key(key),
            Self::Absent(key) => !labels.contains_key(key),
            Self::In(key, values) => labels.get(key).is_some_and(|value| values.contains(value)),
            Self::NotIn(key, values) => labels.get(key).is_none_or(|value| !values.contains(value)),
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed = |values: &BTreeSet<String>| values.iter().map(String::as_str).collect::<Vec<_>>().join(",");
        match self {
            Self::Exists(key) => f.write_str(key),
            Self::Absent(key) => write!(f, "!{key}"),
            Self::In(key, values) if values.len() == 1 => write!(f, "{key}={}", listed(values)),
            Self::NotIn(key, values) if values.len() == 1 => write!(f, "{key}!={}", listed(values)),
            Self::In(key, values) => write!(f, "{key} in ({})", listed(values)),
            Self::NotIn(key, values) => write!(f, "{key} notin ({})", listed(values)),
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.requirements.iter().map(ToString::to_string).collect();
        f.write_str(&texts.join(","))
    }
}

impl FromIterator<Requirement> for Selector {
    fn from_iter<I: IntoIterator<Item = Requirement>>(requirements: I) -> Self {
        Self { requirements: requirements.into_iter().collect() }
    }
}

impl FromStr for Selector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        parse::requirements(text).map(|requirements| Self { requirements })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What a selector means: its canonical text, and which of the labels `fits` and `not` it fits.
    fn check(text: &str, canonical: &str, fits: &[&str], not: &[&str]) {
        let selector: Selector = text.parse().unwrap();
        assert_eq!(selector.to_string(), canonical, "{text}");
        assert_eq!(selector.to_string().parse(), Ok(selector.clone()), "{text}");
        let labels = |text: &str| {
            let pair = |text: &str| text.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
            text.split(',').filter_map(pair).collect::<BTreeMap<_, _>>()
        };
        for wanted in fits {
            assert!(selector.matches(&labels(wanted)), "{text} fits {wanted}");
        }
        for unwanted in not {
            assert!(!selector.matches(&labels(unwanted)), "{text} does not fit {unwanted}");
        }
    }

    #[test]
    fn selectors_mean_what_they_mean_to_kubernetes() {
        check("", "", &["", "a=b"], &[]);
        check("  ", "", &[""], &[]);
        check("os-name=ubuntu", "os-name=ubuntu", &["os-name=ubuntu", "os-name=ubuntu,x="], &["", "os-name=photon"]);
        check("os-name == ubuntu", "os-name=ubuntu", &["os-name=ubuntu"], &[""]);
        check("os-name!=ubuntu", "os-name!=ubuntu", &["", "os-name=photon"], &["os-name=ubuntu"]);
        check("a", "a", &["a=", "a=b"], &["b=a"]);
        check("!a", "!a", &["", "b="], &["a="]);
        check("a=", "a=", &["a="], &["", "a=b"]);
        check("y in (b, a)", "y in (a,b)", &["y=a", "y=b"], &["", "y=c"]);
        check("y notin (a,b)", "y notin (a,b)", &["", "y=c"], &["y=a", "y=b"]);
        check("in in (in)", "in=in", &["in=in"], &[""]);
        check(
            "os-name=ubuntu,image-type=ova,!x,y in (a,b)",
            "os-name=ubuntu,image-type=ova,!x,y in (a,b)",
            &["os-name=ubuntu,image-type=ova,y=a"],
            &["os-name=ubuntu,image-type=ova,y=a,x=", "os-name=ubuntu,image-type=ova"],
        );
        check("run.tanzu.vmware.com/tkr=v1.24.9---vmware.1", "run.tanzu.vmware.com/tkr=v1.24.9---vmware.1", &[], &[""]);
    }

    fn check_refused(text: &str, complaint: &str) {
        assert_eq!(text.parse::<Selector>().unwrap_err().to_string(), complaint, "{text}");
    }

    #[test]
    fn a_complaint_names_the_character() {
        check_refused(
            "a=b,",
            "\"a=b,\" is no label selector, at character 5: after a comma the key of a label is missing",
        );
        check_refused(
            "=b",
            "\"=b\" is no label selector, at character 1: the key of a label is expected, and \"=\" was found",
        );
        check_refused(
            "a b",
            "\"a b\" is no label selector, at character 3: after a key comes one of = == != in notin, or a comma; \"b\" was found",
        );
        check_refused(
            "a>1",
            "\"a>1\" is no label selector, at character 2: after a key comes one of = == != in notin, or a comma; \">\" was found",
        );
        check_refused(
            "a in b",
            "\"a in b\" is no label selector, at character 6: values are in parentheses, and \"b\" was found",
        );
        check_refused("a in (b", "\"a in (b\" is no label selector, at character 8: the parenthesis is not closed");
        check_refused(
            "a in ()",
            "\"a in ()\" is no label selector, at character 7: there is no value between the parentheses",
        );
        check_refused(
            "a=b c",
            "\"a=b c\" is no label selector, at character 5: a comma is expected, and \"c\" was found",
        );
        check_refused("-a", "\"-a\" is no label selector, at character 1: \"-a\" is no key of a label");
        check_refused("a=ü", "\"a=ü\" is no label selector, at character 3: \"ü\" is no value of a label");
        check_refused("ä", "\"ä\" is no label selector, at character 1: \"ä\" is no key of a label");
        check_refused("x/y/z", "\"x/y/z\" is no label selector, at character 1: \"x/y/z\" is no key of a label");
        check_refused(
            "!",
            "\"!\" is no label selector, at character 2: the key of a label is expected, and the text ends",
        );
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "[a-z!=,() <>/.ü-]{0,24}") {
            if let Ok(selector) = text.parse::<Selector>() {
                prop_assert_eq!(selector.to_string().parse(), Ok(selector));
            }
        }
    }
}
