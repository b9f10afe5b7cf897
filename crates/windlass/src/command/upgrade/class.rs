//! A cluster of a class: the version of its topology asks for another release.

use kube::ResourceExt as _;
use serde_json::json;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::name::ClusterName;
use windlass_plan::hook;

use super::Upgrade;
use super::rolled::Asked;
use crate::client::{self, Management};
use crate::doing::Sort;
use crate::error::{Exit, Explained, Failure, Kind};

impl Upgrade {
    /// Begins it.
    pub(super) async fn begin_of_class(&self, management: &Management) -> Result<Exit, Failure> {
        if self.envelope.is_some() {
            return Err(NoEnvelope { cluster: self.cluster.clone() }.into());
        }
        let found = management.api::<Cluster>().get(self.cluster.as_str()).await;
        let found = found.map_err(client::Error::while_trying(&format!("read the cluster {}", self.cluster)))?;
        let patch = json!({"spec": {"topology": {"version": self.to.as_str()}}});
        self.roll(management, &Asked { sort: Sort::OfClass, from: release(&found), patch, release }).await
    }
}

/// The release of a cluster; where it has none, the version in its topology.
fn release(cluster: &Cluster) -> String {
    let version = || cluster.spec.topology.as_ref().map(|topology| topology.version.clone());
    hook::release(cluster).map(str::to_owned).or_else(version).unwrap_or_else(|| cluster.name_any())
}

/// What was reviewed cannot be held to.
#[derive(Debug, thiserror::Error)]
#[error("{cluster} is a cluster of a class: Cluster API replaces its machines, and no envelope bounds that")]
struct NoEnvelope {
    cluster: ClusterName,
}

impl Explained for NoEnvelope {
    fn kind(&self) -> Kind {
        Kind::User
    }

    fn hint(&self) -> Option<String> {
        Some("the same without --envelope".to_owned())
    }
}
