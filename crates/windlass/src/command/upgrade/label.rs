//! A classic cluster: its label asks for another release.

use serde_json::json;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::{annotation, label};

use super::Upgrade;
use super::rolled::Asked;
use crate::client::Management;
use crate::doing::Sort;
use crate::error::{Exit, Failure};
use crate::release;

impl Upgrade {
    /// Begins it. The label, and with it what was reviewed for it, in one write, so that nobody begins anything else.
    pub(super) async fn begin_by_label(&self, management: &Management, found: &Cluster) -> Result<Exit, Failure> {
        let to = release::chosen(management, &self.to).await?;
        let reviewed = self.reviewed.as_ref().map(|it| format!("{to} {} {}", it.envelope, it.says));
        let patch = json!({"metadata": {
            "labels": {label::RELEASE_VERSION.name: to},
            "annotations": {annotation::REVIEWED_ENVELOPE.name: reviewed},
        }});
        self.roll(management, &Asked { sort: Sort::ByLabel, from: named(found), patch, release: named }).await
    }
}

/// The release that a label names.
fn named(cluster: &Cluster) -> String {
    let labels = cluster.metadata.labels.as_ref();
    labels
        .and_then(|labels| labels.get(label::RELEASE_VERSION.name))
        .cloned()
        .unwrap_or_else(|| "no release".to_owned())
}
