//! Which objects are meant, by name.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A name in which `*` stands for any text. Of a name in a namespace both are matched, as `namespace/name`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pattern(String);

impl Pattern {
    /// The pattern that this text is.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Whether it matches everything.
    pub fn is_any(&self) -> bool {
        self.0 == "*"
    }

    /// Whether a text is meant.
    pub fn matches(&self, text: &str) -> bool {
        let mut parts = self.0.split('*');
        let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
        let Some(last) = parts.next_back() else { return rest.is_empty() };
        for part in parts {
            match rest.find(part) {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
        }
        rest.ends_with(last)
    }
}

impl Default for Pattern {
    /// Everything.
    fn default() -> Self {
        Self::new("*")
    }
}

impl From<&str> for Pattern {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Something in a cluster: a machine, a node, a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Whom {
    /// Of these clusters, as `namespace/name`.
    #[serde(default, skip_serializing_if = "Pattern::is_any")]
    pub clusters: Pattern,
    /// Those of these names; of pods as `namespace/name`.
    #[serde(default, skip_serializing_if = "Pattern::is_any")]
    pub names: Pattern,
}

impl Whom {
    /// Those of these names, in any cluster.
    pub fn named(names: &str) -> Self {
        Self { names: Pattern::new(names), ..Self::default() }
    }

    /// Everything of these clusters.
    pub fn of(clusters: &str) -> Self {
        Self { clusters: Pattern::new(clusters), ..Self::default() }
    }

    /// Whether this one is meant.
    pub fn matches(&self, cluster: &str, name: &str) -> bool {
        self.clusters.matches(cluster) && self.names.matches(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, matched: &[&str], others: &[&str]) {
        let pattern = Pattern::new(pattern);
        for text in matched {
            assert!(pattern.matches(text), "{pattern} should match {text}");
        }
        for text in others {
            assert!(!pattern.matches(text), "{pattern} should not match {text}");
        }
    }

    #[test]
    fn a_star_stands_for_any_text() {
        check("*", &["", "a", "a/b"], &[]);
        check("a", &["a"], &["", "ab", "ba"]);
        check("a*", &["a", "ab"], &["ba", ""]);
        check("*a", &["a", "ba"], &["ab"]);
        check("a*b*c", &["abc", "aXbYc", "abbc"], &["ac", "ab", "acb"]);
        check("a*a", &["aa", "aba"], &["a"]);
    }
}
