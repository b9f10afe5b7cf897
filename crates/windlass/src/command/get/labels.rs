//! Clusters whose release is a label: which they have, which they are asked to have, and which of them are not as it says.

use windlass_api::condition::ConditionType;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::{annotation, label};

use crate::output;

/// As a table.
pub fn table(clusters: &[Cluster], namespaces: bool) -> String {
    let mut header = vec!["CLUSTER", "RELEASE", "ASKED", "STATE", "WHY"];
    if namespaces {
        header.insert(0, "NAMESPACE");
    }
    let rows = clusters.iter().map(|cluster| {
        let metadata = &cluster.metadata;
        let text = |all: &Option<std::collections::BTreeMap<String, String>>, key: &str| {
            output::cell(all.as_ref().and_then(|all| all.get(key)))
        };
        let conditions = cluster.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        let applied = ConditionType::ReleaseApplied.among(conditions);
        let mut row = vec![
            metadata.name.clone().unwrap_or_default(),
            text(&metadata.annotations, annotation::LAST_DEPLOYED_VERSION.name),
            text(&metadata.labels, label::RELEASE_VERSION.name),
            output::cell(applied.map(|applied| &applied.reason)),
            output::cell(applied.filter(|applied| applied.status != "True").map(|applied| &applied.message)),
        ];
        if namespaces {
            row.insert(0, metadata.namespace.clone().unwrap_or_default());
        }
        row
    });
    output::table(&header, rows)
}
