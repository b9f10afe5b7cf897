//! The budget of a group of pods: how many of them may be away.

use std::collections::BTreeSet;

use super::read;

/// A `PodDisruptionBudget`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Budget {
    selector: read::Selector,
    /// How many more pods may go now.
    pub(crate) allowed: i64,
    /// The pods that were let go, and have not gone yet.
    pub(crate) letting_go: BTreeSet<Box<str>>,
}

impl Budget {
    pub(super) fn new(read: read::Budget) -> Self {
        let status = read.status.unwrap_or_default();
        let letting_go = status.disrupted_pods.unwrap_or_default().into_keys().map(String::into_boxed_str).collect();
        Self {
            selector: read.spec.selector.unwrap_or_default(),
            allowed: status.disruptions_allowed.unwrap_or_default(),
            letting_go,
        }
    }

    /// Whether it covers a pod with these labels, which is in its namespace. An empty selector covers all.
    pub(crate) fn covers(&self, labels: &[(Box<str>, Box<str>)]) -> bool {
        let value = |key: &str| labels.iter().find(|(k, _)| &**k == key).map(|(_, value)| &**value);
        let read::Selector { match_labels, match_expressions } = &self.selector;
        let equals = match_labels.iter().flatten().all(|(key, wanted)| value(key) == Some(wanted.as_str()));
        equals
            && match_expressions.iter().flatten().all(|expression| {
                let is_in = |value: &str| expression.values.iter().flatten().any(|wanted| wanted == value);
                match (expression.operator.as_str(), value(&expression.key)) {
                    ("In", Some(value)) => is_in(value),
                    ("NotIn", Some(value)) => !is_in(value),
                    ("Exists", found) => found.is_some(),
                    ("DoesNotExist", found) => found.is_none(),
                    ("NotIn", None) => true,
                    _ => false,
                }
            })
    }
}
