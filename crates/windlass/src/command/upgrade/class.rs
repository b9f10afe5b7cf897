//! A cluster of a class: the version of its topology asks for another release, or, where that was reviewed, the label with its name.

use kube::ResourceExt as _;
use serde_json::json;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::{annotation, label};
use windlass_plan::hook;

use super::rolled::Asked;
use super::{Reviewed, Upgrade};
use crate::client::{self, Management};
use crate::doing::Sort;
use crate::error::{Exit, Failure};

impl Upgrade {
    /// Begins it. What was reviewed goes with the release, in one write, so that nobody begins anything else.
    pub(super) async fn begin_of_class(&self, management: &Management) -> Result<Exit, Failure> {
        let found = management.api::<Cluster>().get(self.cluster.as_str()).await;
        let found = found.map_err(client::Error::while_trying(&format!("read the cluster {}", self.cluster)))?;
        let patch = match &self.reviewed {
            Some(Reviewed { release, envelope, says }) => json!({"metadata": {
                "labels": {label::RELEASE.name: release},
                "annotations": {annotation::REVIEWED_ENVELOPE.name: format!("{release} {envelope} {says}")},
            }}),
            None => json!({
                "metadata": {"annotations": {annotation::REVIEWED_ENVELOPE.name: null}},
                "spec": {"topology": {"version": self.to.as_str()}},
            }),
        };
        self.roll(management, &Asked { sort: Sort::OfClass, from: release(&found), patch, release }).await
    }
}

/// The release of a cluster; where it has none, the version in its topology.
fn release(cluster: &Cluster) -> String {
    let version = || cluster.spec.topology.as_ref().map(|topology| topology.version.clone());
    hook::release(cluster).map(str::to_owned).or_else(version).unwrap_or_else(|| cluster.name_any())
}
