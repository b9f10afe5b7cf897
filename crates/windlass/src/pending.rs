//! An update that does not begin by itself: what a newer Windlass would replace machines for, or what has to be approved.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use windlass_api::annotation;
use windlass_api::condition::{ConditionStatus, ConditionType};
use windlass_api::kind::Condition;
use windlass_api::kind::cluster_api::Cluster;
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

/// What stands for a cluster whose updates may have to be agreed to, and says of them why they do not begin.
pub trait Asks: Resource<DynamicType = ()> {
    /// What says so.
    fn asking(&self) -> Option<&Condition>;
}

impl Asks for TanzuKubernetesCluster {
    fn asking(&self) -> Option<&Condition> {
        let pending = ConditionType::UpdatePending.among(&self.status.as_ref()?.conditions)?;
        (pending.status == ConditionStatus::True.as_str()).then_some(pending)
    }
}

impl Asks for Cluster {
    /// That of a Cluster whose release is a label says all that keeps it from its release: of that only what can be agreed to.
    fn asking(&self) -> Option<&Condition> {
        let applied = ConditionType::ReleaseApplied.among(&self.status.as_ref()?.conditions)?;
        Blocked::asked_to_agree_to(&applied.message).map(|_| applied)
    }
}

impl Pending {
    /// The one of a cluster, if it has one.
    pub fn of(cluster: &impl Asks) -> Option<Self> {
        cluster.asking().and_then(Self::told)
    }

    /// The one that a condition tells of.
    pub fn told(condition: &Condition) -> Option<Self> {
        let digest = Blocked::asked_to_agree_to(&condition.message)?.to_owned();
        Some(Self { message: condition.message.clone(), digest })
    }

    /// What would be done, without how to agree.
    pub fn what(&self) -> &str {
        Blocked::without_agreement(&self.message)
    }

    /// Whether somebody has agreed already, and nobody has looked since.
    pub fn is_agreed(&self, cluster: &impl Asks) -> bool {
        agreed(cluster) == Some(self.digest.as_str())
    }
}

/// What is said of an update that does not begin, whatever it waits for.
pub fn message(cluster: &impl Asks) -> Option<String> {
    cluster.asking().map(|condition| condition.message.clone())
}

/// Whether updates of a cluster have to be approved before they begin.
pub fn needs_approval(cluster: &impl Asks) -> bool {
    annotated(cluster.meta(), annotation::APPROVAL.name).is_some()
}

/// What was agreed to last.
pub fn agreed(cluster: &impl Asks) -> Option<&str> {
    annotated(cluster.meta(), annotation::APPROVED.name)
}

/// Who decided last about an update of a cluster.
pub fn decided_by(cluster: &ObjectMeta) -> Option<&str> {
    annotated(cluster, annotation::DECIDED_BY.name)
}

fn annotated<'c>(cluster: &'c ObjectMeta, key: &str) -> Option<&'c str> {
    cluster.annotations.as_ref()?.get(key).map(String::as_str)
}
