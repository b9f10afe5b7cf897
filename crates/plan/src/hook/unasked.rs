//! Whether Cluster API asks us at all before it raises a cluster: it does from when it has found out what we answer. Until then it
//! would go on, and hooks hold nothing.

use std::fmt;

use windlass_api::condition::ConditionType;
use windlass_api::hook::HookName;
use windlass_api::kind::extension::ExtensionConfig;

/// Why it would go on without having asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unasked {
    /// Nobody has told it to ask.
    Unregistered,
    /// It has not found out yet what can be asked, or cannot any more.
    Undiscovered,
    /// What it knows that can be asked holds no upgrade.
    Unknown,
    /// It asks about the clusters of some namespaces, and whether this is one of them is not for us to say.
    Selected,
}

impl fmt::Display for Unasked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unregistered => "there is no ExtensionConfig windlass",
            Self::Undiscovered => "the ExtensionConfig windlass is not Discovered",
            Self::Unknown => "the ExtensionConfig windlass has no handler of BeforeClusterUpgrade",
            Self::Selected => "the ExtensionConfig windlass has a namespaceSelector",
        })
    }
}

/// Why Cluster API would raise a cluster without asking us; nothing if it asks.
pub fn unasked(config: Option<&ExtensionConfig>) -> Option<Unasked> {
    let Some(config) = config else { return Some(Unasked::Unregistered) };
    let status = config.status.clone().unwrap_or_default();
    let hook = HookName::BeforeClusterUpgrade.as_str();
    let selects = config.spec.namespace_selector.as_ref().is_some_and(|selector| {
        selector.match_labels.iter().flatten().next().is_some()
            || selector.match_expressions.iter().flatten().next().is_some()
    });
    if !ConditionType::Discovered.holds(&status.conditions) {
        Some(Unasked::Undiscovered)
    } else if !status.handlers.iter().any(|handler| handler.request_hook.hook == hook) {
        Some(Unasked::Unknown)
    } else if selects {
        Some(Unasked::Selected)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(change: impl Fn(&mut Value), expected: Option<Unasked>) {
        let mut config = json!({
            "apiVersion": "runtime.cluster.x-k8s.io/v1beta2", "kind": "ExtensionConfig",
            "metadata": {"name": "windlass"},
            "spec": {"clientConfig": {"service": {"namespace": "windlass-system", "name": "windlass-ext"}}},
            "status": {
                "conditions": [{
                    "type": "Discovered", "status": "True", "reason": "Discovered", "message": "",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }],
                "handlers": [{
                    "name": "before-cluster-upgrade.windlass",
                    "requestHook": {"apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1", "hook": "BeforeClusterUpgrade"},
                }],
            },
        });
        change(&mut config);
        assert_eq!(unasked(Some(&serde_json::from_value(config.clone()).unwrap())), expected, "{config}");
    }

    #[test]
    fn cluster_api_asks_from_when_it_knows_what_is_answered() {
        check(|_| {}, None);
        check(|config| config["spec"]["namespaceSelector"] = json!({}), None);
        check(|config| config["status"] = json!({}), Some(Unasked::Undiscovered));
        check(|config| config["status"]["conditions"][0]["status"] = json!("False"), Some(Unasked::Undiscovered));
        check(
            |config| config["status"]["handlers"][0]["requestHook"]["hook"] = json!("BeforeClusterDelete"),
            Some(Unasked::Unknown),
        );
        check(
            |config| config["spec"]["namespaceSelector"] = json!({"matchLabels": {"a": "b"}}),
            Some(Unasked::Selected),
        );
        assert_eq!(unasked(None), Some(Unasked::Unregistered));
    }
}
