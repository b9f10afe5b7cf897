//! What becomes of a pod on a node whose Machine goes.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::json;
use windlass_api::kind::cluster_api::{Cluster, Machine};
use windlass_api::kind::machine_health::{DrainedPods, MachineDrainRule};
use windlass_api::label;
use windlass_apiserver::meta::selector;
use windlass_runtime::cache::Cache;

use super::Pod;
use crate::management::ownership::owners;

/// On the copy of a static pod that the kubelet shows: nobody can delete what is behind it.
const MIRROR: &str = "kubernetes.io/config.mirror";

type Labels = BTreeMap<String, String>;

/// What becomes of a pod. Those with a lower order come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::management::machine) enum Fate {
    /// Nothing: the Machine goes with it.
    Stays,
    /// It is evicted.
    Leaves { order: i32 },
    /// It is waited for until it has ended by itself.
    Finishes { order: i32 },
}

impl Fate {
    /// Its place among those that are waited for.
    pub(super) fn order(self) -> Option<i32> {
        match self {
            Self::Stays => None,
            Self::Leaves { order } | Self::Finishes { order } => Some(order),
        }
    }
}

/// The rules for the pods of a Machine, by name: the first that is for a pod decides.
pub(super) struct Rules(Vec<Arc<MachineDrainRule>>);

impl Rules {
    pub(super) fn for_machine(all: &Cache<MachineDrainRule>, machine: &Machine, cluster: &Cluster) -> Self {
        let labels = |labels: &Option<Labels>| labels.clone().unwrap_or_default();
        let (own, of_cluster) = (labels(&machine.metadata.labels), labels(&cluster.metadata.labels));
        let mut rules = all.list_in(machine.metadata.namespace.as_deref().unwrap_or_default());
        rules.retain(|rule| {
            let mut machines = rule.spec.machines.iter();
            rule.spec.machines.is_empty()
                || machines.any(|machines| {
                    selects(machines.selector.as_ref(), &own)
                        && selects(machines.cluster_selector.as_ref(), &of_cluster)
                })
        });
        rules.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
        Self(rules)
    }

    /// Whether a rule wants to know the labels of namespaces.
    pub(super) fn ask_for_namespaces(&self) -> bool {
        self.0.iter().flat_map(|rule| &rule.spec.pods).any(|pods| pods.namespace_selector.is_some())
    }

    fn for_pod(&self, pod: &Labels, namespace: &Labels) -> Fate {
        let chosen = |pods: &DrainedPods| {
            selects(pods.selector.as_ref(), pod) && selects(pods.namespace_selector.as_ref(), namespace)
        };
        let rule = self.0.iter().find(|rule| rule.spec.pods.is_empty() || rule.spec.pods.iter().any(chosen));
        let Some(drain) = rule.map(|rule| &rule.spec.drain) else { return Fate::Leaves { order: 0 } };
        let order = drain.order.unwrap_or_default();
        match drain.behavior.as_str() {
            "Skip" => Fate::Stays,
            "WaitCompleted" => Fate::Finishes { order },
            _ => Fate::Leaves { order },
        }
    }
}

/// A selector that is not there selects everything here.
fn selects(wanted: Option<&LabelSelector>, labels: &Labels) -> bool {
    wanted.is_none_or(|wanted| selector::matches(&json!(wanted), &json!(labels)))
}

/// What becomes of a pod; `gone_before` is now, on a node that nobody hears of: what should have ended by then has.
///
/// Real Cluster API also evicts the pods of a `DaemonSet` that is gone; here the garbage collector has removed those.
pub(super) fn of(
    pod: &Pod,
    rules: &Rules,
    namespaces: &BTreeMap<String, Labels>,
    gone_before: Option<Timestamp>,
) -> Fate {
    let meta = &pod.metadata;
    if let (Some(now), Some(ends)) = (gone_before, &meta.deletion_timestamp)
        && now.duration_since(ends.0).as_secs() > 1
    {
        return Fate::Stays;
    }
    let ended = pod.status.as_ref().is_some_and(|status| matches!(status.phase.as_str(), "Succeeded" | "Failed"));
    let of_daemon_set = owners(meta).iter().any(|owner| owner.controller == Some(true) && owner.kind == "DaemonSet");
    let is_mirror = meta.annotations.as_ref().is_some_and(|annotations| annotations.contains_key(MIRROR));
    if is_mirror || (of_daemon_set && !ended) {
        return Fate::Stays;
    }
    let none = Labels::new();
    let labels = meta.labels.as_ref().unwrap_or(&none);
    let namespace = meta.namespace.as_ref().and_then(|namespace| namespaces.get(namespace)).unwrap_or(&none);
    let wish = labels.get(label::POD_DRAIN.name).map(|wish| wish.to_lowercase());
    let fate = match wish.as_deref() {
        Some("skip") => Fate::Stays,
        Some("wait-completed" | "waitcompleted") => Fate::Finishes { order: 0 },
        _ => rules.for_pod(labels, namespace),
    };
    // What has ended is not waited for.
    if ended && matches!(fate, Fate::Finishes { .. }) { Fate::Stays } else { fate }
}

/// `namespace/name`.
pub(super) fn path(pod: &Pod) -> String {
    crate::management::context::path(&pod.metadata)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(all: &[serde_json::Value]) -> Rules {
        Rules(
            all.iter()
                .map(|spec| Arc::new(serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap()))
                .collect(),
        )
    }

    fn pod(metadata: &serde_json::Value, phase: &str) -> Pod {
        serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}, "status": {"phase": phase},
        }))
        .unwrap()
    }

    #[track_caller]
    fn check(metadata: &serde_json::Value, phase: &str, all: &[serde_json::Value], expected: Fate) {
        let namespaces = BTreeMap::from([("apps".to_owned(), Labels::from([("team".to_owned(), "a".to_owned())]))]);
        assert_eq!(of(&pod(metadata, phase), &rules(all), &namespaces, None), expected, "{metadata} {phase}");
    }

    #[test]
    fn pods_that_belong_to_the_node_stay_and_all_others_leave() {
        let set = json!({"ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u", "controller": true}]});
        check(&json!({"name": "p"}), "Running", &[], Fate::Leaves { order: 0 });
        check(&set, "Running", &[], Fate::Stays);
        check(&set, "Succeeded", &[], Fate::Leaves { order: 0 });
        check(&json!({"annotations": {"kubernetes.io/config.mirror": "x"}}), "Running", &[], Fate::Stays);
    }

    #[test]
    fn a_label_comes_before_the_rules() {
        let drain = [json!({"drain": {"behavior": "Drain", "order": 3}})];
        let labelled = |wish: &str| json!({"labels": {"cluster.x-k8s.io/drain": wish}});
        check(&labelled("skip"), "Running", &drain, Fate::Stays);
        check(&labelled("wait-completed"), "Running", &drain, Fate::Finishes { order: 0 });
        check(&labelled("WaitCompleted"), "Succeeded", &drain, Fate::Stays);
        check(&labelled("perhaps"), "Running", &drain, Fate::Leaves { order: 3 });
    }

    #[test]
    fn the_first_rule_that_is_for_a_pod_decides() {
        let all = [
            json!({"drain": {"behavior": "Skip"}, "pods": [{"selector": {"matchLabels": {"app": "log"}}}]}),
            json!({"drain": {"behavior": "WaitCompleted", "order": 5}, "pods": [
                {"selector": {"matchLabels": {"app": "db"}}, "namespaceSelector": {"matchLabels": {"team": "a"}}},
            ]}),
            json!({"drain": {"behavior": "Drain", "order": -5}}),
        ];
        check(&json!({"labels": {"app": "log"}}), "Running", &all, Fate::Stays);
        check(&json!({"namespace": "apps", "labels": {"app": "db"}}), "Running", &all, Fate::Finishes { order: 5 });
        check(&json!({"namespace": "other", "labels": {"app": "db"}}), "Running", &all, Fate::Leaves { order: -5 });
    }

    #[test]
    fn on_a_silent_node_what_should_have_ended_is_not_waited_for() {
        let check = |now: &str, expected: Fate| {
            let pod = pod(&json!({"deletionTimestamp": "2026-01-01T00:00:10Z"}), "Running");
            assert_eq!(of(&pod, &rules(&[]), &BTreeMap::new(), Some(now.parse().unwrap())), expected, "{now}");
        };
        check("2026-01-01T00:00:11Z", Fate::Leaves { order: 0 });
        check("2026-01-01T00:00:12Z", Fate::Stays);
    }
}
