//! What people may leave out of a pool or a set, and the webhooks of Cluster API fill in. Here their controllers do, with the
//! write by which they take an object over.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value, json};
use windlass_api::kind::cluster_api::{LabelSelector, MachineTemplate, Rollout};
use windlass_api::label;

type Texts = BTreeMap<String, String>;

/// The label by which an object belongs to its cluster, if it lacks it.
pub(super) fn labels(meta: &ObjectMeta, cluster: &str) -> Map<String, Value> {
    let none = Texts::new();
    missing(meta.labels.as_ref().unwrap_or(&none), &Texts::from([of_cluster(cluster)]))
}

/// What the selector lacks, and the labels of machines by which they are selected, as parts of a spec. Who selects nothing
/// selects by its own name, under this label.
pub(super) fn selection(
    by_name: (&str, Option<&str>),
    cluster: &str,
    selector: &LabelSelector,
    template: &MachineTemplate,
) -> Map<String, Value> {
    let mut wanted = Texts::from([of_cluster(cluster)]);
    if selector.match_labels.is_empty() {
        wanted.insert(by_name.0.to_owned(), by_name.1.unwrap_or_default().to_owned());
    }
    let none = Texts::new();
    let given = template.metadata.as_ref().map_or(&none, |metadata| &metadata.labels);
    let mut spec = Map::new();
    let selected = missing(&selector.match_labels, &wanted);
    if !selected.is_empty() {
        spec.insert("selector".to_owned(), json!({ "matchLabels": selected }));
    }
    let labels = missing(given, &wanted);
    if !labels.is_empty() {
        spec.insert("template".to_owned(), json!({"metadata": {"labels": labels}}));
    }
    spec
}

/// What a rollout lacks: it is a rolling update, with one machine more and none fewer than asked for.
pub(super) fn rollout(rollout: Option<&Rollout>) -> Option<Value> {
    let strategy = rollout.and_then(|rollout| rollout.strategy.as_ref());
    let kind = strategy.map(|strategy| strategy.type_.as_str()).filter(|kind| !kind.is_empty());
    if kind.is_some_and(|kind| kind != "RollingUpdate") {
        return None;
    }
    let numbers = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
    let mut given = Map::new();
    if numbers.is_none_or(|numbers| numbers.max_surge.is_none()) {
        given.insert("maxSurge".to_owned(), json!(1));
    }
    if numbers.is_none_or(|numbers| numbers.max_unavailable.is_none()) {
        given.insert("maxUnavailable".to_owned(), json!(0));
    }
    if kind.is_some() && given.is_empty() {
        return None;
    }
    Some(json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": given}}))
}

fn of_cluster(cluster: &str) -> (String, String) {
    (label::CLUSTER_NAME.name.to_owned(), cluster.to_owned())
}

fn missing(known: &Texts, wanted: &Texts) -> Map<String, Value> {
    let differs = wanted.iter().filter(|(key, text)| known.get(*key) != Some(text));
    differs.map(|(key, text)| (key.clone(), json!(text))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_rollout(given: Value, expected: Option<Value>) {
        let given: Option<Rollout> = serde_json::from_value(given).unwrap();
        assert_eq!(rollout(given.as_ref()), expected.map(|strategy| json!({ "strategy": strategy })));
    }

    #[test]
    fn a_rollout_that_says_nothing_is_a_rolling_update_with_one_more() {
        let whole = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
        check_rollout(json!(null), Some(whole.clone()));
        check_rollout(json!({"after": "2026-01-01T00:00:00Z"}), Some(whole.clone()));
        check_rollout(json!({"strategy": {"type": "RollingUpdate"}}), Some(whole.clone()));
        check_rollout(json!({"strategy": whole}), None);
        check_rollout(json!({"strategy": {"type": "OnDelete"}}), None);
        check_rollout(
            json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "20%"}}}),
            Some(json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0}})),
        );
    }

    #[track_caller]
    fn check_selection(selector: Value, labels: &Value, expected: &Value) {
        let selector: LabelSelector = serde_json::from_value(selector).unwrap();
        let template: MachineTemplate = serde_json::from_value(json!({
            "metadata": {"labels": labels},
            "spec": {"clusterName": "c", "infrastructureRef": {"apiGroup": "g", "kind": "K", "name": "n"}},
        }))
        .unwrap();
        let by_name = (label::DEPLOYMENT_NAME.name, Some("pool"));
        assert_eq!(&Value::Object(selection(by_name, "c", &selector, &template)), expected);
    }

    #[test]
    fn machines_are_selected_by_cluster_and_where_nothing_is_said_by_the_name_of_the_pool() {
        let (cluster, pool) = ("cluster.x-k8s.io/cluster-name", "cluster.x-k8s.io/deployment-name");
        let both = json!({cluster: "c", pool: "pool"});
        check_selection(
            json!({}),
            &json!({}),
            &json!({"selector": {"matchLabels": both}, "template": {"metadata": {"labels": both}}}),
        );
        check_selection(
            json!({"matchLabels": {"a": "b"}}),
            &json!({"a": "b", cluster: "c"}),
            &json!({"selector": {"matchLabels": {cluster: "c"}}}),
        );
        check_selection(json!({"matchLabels": both}), &both, &json!({}));
    }
}
