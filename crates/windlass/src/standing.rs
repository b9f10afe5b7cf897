//! What the object that people ask for a cluster with says of it: the same facts, whichever sort of cluster with updates it is.

use std::collections::BTreeMap;
use std::fmt::Debug;

use kube::core::NamespaceResourceScope;
use kube::{Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::cluster_update::{ClusterUpdate, UpdateState, WaitingFor};
use windlass_api::kind::tanzu::{AddonStatus, Phase, TanzuKubernetesCluster};
use windlass_api::name::ClusterName;
use windlass_plan::resolve::labelled::course::Course;

use crate::changed::{class_cluster_name, cluster_name};
use crate::pending;

/// What is said of a cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    pub cluster: String,
    pub namespace: String,
    /// The object that it is asked for with, as `Kind/name`.
    pub object: String,
    /// The whole in one word.
    pub assessment: &'static str,
    /// What it is asked to be.
    pub release: Option<String>,
    /// What all of its machines are.
    pub running: Option<String>,
    /// What it waits for, in a sentence.
    pub waiting_for: Option<String>,
    /// What it waits for, in the order in which a person would have to deal with it.
    pub waits: Vec<WaitingFor>,
    /// It is what it is asked to be.
    pub reached: bool,
    /// What would be done if somebody agreed.
    pub pending: Option<String>,
    /// What came with its release; nothing where no release of its sort brings any.
    pub addons: Option<BTreeMap<String, AddonStatus>>,
}

/// The object of a cluster whose updates are on record.
pub trait Updated:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned + Send + Sync + 'static
{
    /// The update that runs, or ran last, among those of its name.
    fn latest<'u>(&self, updates: impl IntoIterator<Item = &'u ClusterUpdate>) -> Option<&'u ClusterUpdate>;

    /// What is said of it, there and in that update.
    fn standing(&self, update: Option<&ClusterUpdate>) -> Standing;

    /// An object of this sort, as `kubectl -o name` writes it.
    fn written(name: &ClusterName) -> String;
}

impl Updated for TanzuKubernetesCluster {
    fn latest<'u>(&self, updates: impl IntoIterator<Item = &'u ClusterUpdate>) -> Option<&'u ClusterUpdate> {
        let name = self.status.as_ref()?.update.as_deref()?;
        updates.into_iter().find(|update| update.metadata.name.as_deref() == Some(name))
    }

    fn standing(&self, update: Option<&ClusterUpdate>) -> Standing {
        let status = self.status.clone().unwrap_or_default();
        let waiting_for = status.waiting_for.filter(|text| !text.is_empty());
        let of_update = update.and_then(|update| update.status.clone()).unwrap_or_default();
        let is_over = !matches!(of_update.state, Some(UpdateState::Running | UpdateState::Failed));
        let mut waits = if is_over { Vec::new() } else { of_update.waiting_for };
        // What stands in the status of the cluster itself comes first where the update says nothing of it.
        let known = |wait: &WaitingFor| waits.iter().any(|known| known.message == wait.message);
        let own: Vec<WaitingFor> = status.waits.into_iter().filter(|wait| !known(wait)).collect();
        waits.splice(0..0, own);
        if let (true, Some(message)) = (waits.is_empty(), waiting_for.clone()) {
            waits.push(WaitingFor { message, ..WaitingFor::default() });
        }
        let is_settled = status.phase == Some(Phase::Running) && status.version == self.spec.distribution.full_version;
        Standing {
            cluster: self.name_any(),
            namespace: self.namespace().unwrap_or_default(),
            reached: is_settled && waiting_for.is_none(),
            object: format!("TanzuKubernetesCluster/{}", self.name_any()),
            assessment: status.phase.map_or("unknown", Phase::as_str),
            release: self.spec.distribution.full_version.clone(),
            running: status.version,
            waiting_for,
            waits,
            pending: pending::message(self),
            addons: Some(status.addons),
        }
    }

    fn written(name: &ClusterName) -> String {
        cluster_name(name)
    }
}

impl Updated for Cluster {
    fn latest<'u>(&self, updates: impl IntoIterator<Item = &'u ClusterUpdate>) -> Option<&'u ClusterUpdate> {
        Course::latest(self, updates)
    }

    fn standing(&self, update: Option<&ClusterUpdate>) -> Standing {
        let course = Course { cluster: self, update };
        let waits = course.waits();
        Standing {
            cluster: self.name_any(),
            namespace: self.namespace().unwrap_or_default(),
            object: format!("Cluster/{}", self.name_any()),
            reached: course.reached().is_some(),
            assessment: course.word().as_str(),
            release: course.asked().map(str::to_owned),
            running: course.deployed().map(str::to_owned),
            waiting_for: waits.first().map(|wait| wait.message.clone()),
            waits,
            pending: pending::among(&self.status.clone().unwrap_or_default().conditions),
            addons: None,
        }
    }

    fn written(name: &ClusterName) -> String {
        class_cluster_name(name)
    }
}
