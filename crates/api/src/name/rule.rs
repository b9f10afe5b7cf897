//! What the different kinds of name may look like.

use thiserror::Error;

use crate::text::quoted;

/// The longest DNS label, and the longest value of a label of Kubernetes.
pub(super) const LABEL_MAX_BYTES: usize = 63;
/// The longest DNS subdomain.
pub(super) const SUBDOMAIN_MAX_BYTES: usize = 253;

/// A text that is not the name that it should be, with what is wrong about it and what would be accepted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{quoted} is not {what}: {problem}; accepted {accepted}")]
pub struct NameError {
    what: &'static str,
    quoted: String,
    problem: NameProblem,
    accepted: &'static str,
}

impl NameError {
    pub(super) fn without_namespace(text: &str) -> Self {
        Self {
            what: "a namespaced name",
            quoted: quoted(text),
            problem: NameProblem::NoNamespace,
            accepted: "are a namespace and a name with \"/\" between them",
        }
    }

    /// What is wrong with the text.
    pub fn problem(&self) -> &NameProblem {
        &self.problem
    }
}

/// What is wrong with a text that should be a name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NameProblem {
    /// There is nothing in it.
    #[error("it is empty")]
    Empty,
    /// It has more characters than such a name may have.
    #[error("it has {length} characters")]
    TooLong {
        /// How many it has.
        length: usize,
    },
    /// A character that such a name never has.
    #[error("{0:?} cannot be in it")]
    Character(char),
    /// It, or the part of it beside a dot, begins or ends with something other than a letter or digit.
    #[error("{} begins or ends with something other than a letter or digit", quoted(.0))]
    Edge(String),
    /// Two dots meet, or one is at an end.
    #[error("there is nothing on one side of a dot")]
    EmptyBesideDot,
    /// There is no slash in what should be `namespace/name`.
    #[error("it names no namespace")]
    NoNamespace,
}

/// What a kind of name may look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// A DNS label.
    Label,
    /// A DNS subdomain that can also be the value of a label.
    LabelSubdomain,
    /// A DNS subdomain.
    Subdomain,
    /// Anything that can be printed in one word.
    Opaque,
}

impl Rule {
    /// Refuses a text that does not keep the rule. `what` is its article and noun in the complaint.
    pub(super) fn check(self, what: &'static str, text: &str) -> Result<(), NameError> {
        let complain = |problem| NameError { what, quoted: quoted(text), problem, accepted: self.accepted() };
        self.problem(text).map_or(Ok(()), |problem| Err(complain(problem)))
    }

    fn problem(self, text: &str) -> Option<NameProblem> {
        if text.is_empty() {
            return Some(NameProblem::Empty);
        }
        if text.len() > self.max_bytes() {
            return Some(NameProblem::TooLong { length: text.chars().count() });
        }
        if let Some(character) = text.chars().find(|character| !self.allows(*character)) {
            return Some(NameProblem::Character(character));
        }
        match self {
            Self::Opaque => None,
            Self::Label => edge_problem(text),
            Self::LabelSubdomain | Self::Subdomain => text
                .split('.')
                .find_map(|part| if part.is_empty() { Some(NameProblem::EmptyBesideDot) } else { edge_problem(part) }),
        }
    }

    fn max_bytes(self) -> usize {
        match self {
            Self::Label | Self::LabelSubdomain => LABEL_MAX_BYTES,
            Self::Subdomain | Self::Opaque => SUBDOMAIN_MAX_BYTES,
        }
    }

    fn allows(self, character: char) -> bool {
        match character {
            'a'..='z' | '0'..='9' | '-' => true,
            '.' => self != Self::Label,
            _ => self == Self::Opaque && character.is_ascii_graphic(),
        }
    }

    fn accepted(self) -> &'static str {
        match self {
            Self::Label => "are 1 to 63 of a-z, 0-9 and \"-\", with a letter or digit at both ends",
            Self::LabelSubdomain => {
                "are 1 to 63 of a-z, 0-9, \"-\" and \".\", with a letter or digit at both ends and around each \".\""
            }
            Self::Subdomain => {
                "are 1 to 253 of a-z, 0-9, \"-\" and \".\", with a letter or digit at both ends and around each \".\""
            }
            Self::Opaque => "are 1 to 253 visible ASCII characters",
        }
    }
}

fn edge_problem(part: &str) -> Option<NameProblem> {
    (part.starts_with('-') || part.ends_with('-')).then(|| NameProblem::Edge(part.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rule: Rule, text: &str, complaint: &str) {
        let problem = rule.problem(text).map(|problem| problem.to_string());
        assert_eq!(problem.unwrap_or_default(), complaint, "{rule:?} {text:?}");
    }

    #[test]
    fn names_keep_the_rules_of_dns() {
        for rule in [Rule::Label, Rule::LabelSubdomain, Rule::Subdomain] {
            check(rule, "my-tkc", "");
            check(rule, "1", "");
            check(rule, "a--b", "");
            check(rule, "", "it is empty");
            check(rule, "My-tkc", "'M' cannot be in it");
            check(rule, "my_tkc", "'_' cannot be in it");
            check(rule, "tkç", "'ç' cannot be in it");
            check(rule, "-tkc", r#""-tkc" begins or ends with something other than a letter or digit"#);
            check(rule, "tkc-", r#""tkc-" begins or ends with something other than a letter or digit"#);
        }
        check(Rule::Label, "a.b", "'.' cannot be in it");
        check(Rule::Subdomain, "v1.24.9---vmware.1-tkg.1", "");
        check(Rule::Subdomain, "a..b", "there is nothing on one side of a dot");
        check(Rule::Subdomain, ".a", "there is nothing on one side of a dot");
        check(Rule::Subdomain, "a.", "there is nothing on one side of a dot");
        check(Rule::Subdomain, "a.-b", r#""-b" begins or ends with something other than a letter or digit"#);
    }

    #[test]
    fn a_name_is_no_longer_than_where_it_goes() {
        for (rule, max) in [(Rule::Label, 63), (Rule::LabelSubdomain, 63), (Rule::Subdomain, 253)] {
            check(rule, &"a".repeat(max), "");
            check(rule, &"a".repeat(max + 1), &format!("it has {} characters", max + 1));
        }
    }

    #[test]
    fn a_uid_is_one_visible_word() {
        check(Rule::Opaque, "208025ff-0cc9-4c88-b22d-5a43b1c33831", "");
        check(Rule::Opaque, "a b", "' ' cannot be in it");
        check(Rule::Opaque, "", "it is empty");
    }
}
