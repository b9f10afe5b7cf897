//! An update that does not begin by itself: what a newer Windlass would replace machines for, or what has to be approved.

use windlass_api::annotation;
use windlass_api::condition::{ConditionStatus, ConditionType};
use windlass_api::kind::Condition;
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_plan::gate::Blocked;

/// An update that waits for somebody to agree to it.
#[derive(Debug, PartialEq, Eq)]
pub struct Pending {
    /// What would be done, and how to agree.
    pub message: String,
    /// What would be agreed to.
    pub digest: String,
}

impl Pending {
    /// The one of a cluster, if it has one.
    pub fn of(cluster: &TanzuKubernetesCluster) -> Option<Self> {
        let message = message(cluster)?;
        let digest = Blocked::asked_to_agree_to(&message)?.to_owned();
        Some(Self { message, digest })
    }

    /// What would be done, without how to agree.
    pub fn what(&self) -> &str {
        let before = |way_out: &str| self.message.split_once(way_out).map(|(what, _)| what);
        before("; agree to it").or_else(|| before("; ask for something else")).unwrap_or(self.message.as_str())
    }

    /// Whether somebody has agreed already, and nobody has looked since.
    pub fn is_agreed(&self, cluster: &TanzuKubernetesCluster) -> bool {
        agreed(cluster) == Some(self.digest.as_str())
    }
}

/// What is said of an update that does not begin, whatever it waits for.
pub fn message(cluster: &TanzuKubernetesCluster) -> Option<String> {
    among(&cluster.status.as_ref()?.conditions)
}

/// The same, of the conditions of a cluster of any sort.
pub fn among(conditions: &[Condition]) -> Option<String> {
    let pending = ConditionType::UpdatePending.among(conditions)?;
    (pending.status == ConditionStatus::True.as_str()).then(|| pending.message.clone())
}

/// Whether updates of a cluster have to be approved before they begin.
pub fn needs_approval(cluster: &TanzuKubernetesCluster) -> bool {
    let annotations = cluster.metadata.annotations.as_ref();
    annotations.is_some_and(|annotations| annotations.contains_key(annotation::APPROVAL.name))
}

/// What was agreed to last.
pub fn agreed(cluster: &TanzuKubernetesCluster) -> Option<&str> {
    let annotations = cluster.metadata.annotations.as_ref()?;
    annotations.get(annotation::APPROVED.name).map(String::as_str)
}

/// Who decided last about an update of a cluster.
pub fn decided_by(cluster: &TanzuKubernetesCluster) -> Option<&str> {
    let annotations = cluster.metadata.annotations.as_ref()?;
    annotations.get(annotation::DECIDED_BY.name).map(String::as_str)
}
