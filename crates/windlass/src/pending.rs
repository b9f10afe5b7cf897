//! An update that does not begin by itself: what a newer Windlass would replace machines for.

use windlass_api::annotation;
use windlass_api::condition::{ConditionStatus, ConditionType};
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
        self.message.split_once("; agree to it").map_or(self.message.as_str(), |(what, _)| what)
    }

    /// Whether somebody has agreed already, and nobody has looked since.
    pub fn is_agreed(&self, cluster: &TanzuKubernetesCluster) -> bool {
        agreed(cluster) == Some(self.digest.as_str())
    }
}

/// What is said of an update that does not begin, whatever it waits for.
pub fn message(cluster: &TanzuKubernetesCluster) -> Option<String> {
    let conditions = &cluster.status.as_ref()?.conditions;
    let pending = ConditionType::UpdatePending.among(conditions)?;
    (pending.status == ConditionStatus::True.as_str()).then(|| pending.message.clone())
}

/// What was agreed to last.
pub fn agreed(cluster: &TanzuKubernetesCluster) -> Option<&str> {
    let annotations = cluster.metadata.annotations.as_ref()?;
    annotations.get(annotation::ACCEPTED_DEFAULTS.name).map(String::as_str)
}
