//! Exceptions to rules, as data: each is declared here, and reported whenever it is made use of.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use windlass_api::version::{KubernetesVersion, MinorVersion, facts};

/// An exception to a rule.
#[derive(Debug, PartialEq, Eq)]
pub struct Exemption {
    /// The rule.
    pub rule: &'static str,
    /// Only for versions below this minor and patch; for all, if there is none.
    pub below: Option<(MinorVersion, u64)>,
    /// Why it cannot be otherwise, and how far it goes.
    pub why: &'static str,
}

impl Exemption {
    /// Whether it may be made use of at a version.
    pub(super) fn covers(&self, version: &KubernetesVersion) -> bool {
        self.below.is_none_or(|below| (version.minor(), version.patch()) < below)
    }
}

/// The kubelet of a new control-plane machine.
pub(super) const KUBELET_OF_NEW_CONTROL_PLANE: Exemption = Exemption {
    rule: "V1",
    below: Some((facts::LOCAL_API_SERVER_SINCE, 0)),
    why: "below 1.31 the kubelet of a new control-plane machine reaches all API servers through the address of the cluster, \
          and some of them are older until the update that brought it is over",
};

/// kube-proxy on a new control-plane machine.
pub(super) const PROXY_OF_NEW_CONTROL_PLANE: Exemption = Exemption {
    rule: "V5",
    below: None,
    why: "the disk of a new control-plane machine has no older kube-proxy, and some API servers are older until the update that \
          brought it is over",
};

/// A member that joins etcd at once as a voter.
pub(super) const JOIN_AS_VOTER: Exemption = Exemption {
    rule: "E1",
    below: Some((facts::ETCD_LEARNER_SINCE, 0)),
    why: "below 1.27 kubeadm adds a member as a voter before it starts; the quorum counts it until then, and there is one at a \
          time",
};

/// A member that counts before it has learnt.
pub(super) const JOIN_WITHOUT_LEARNING: Exemption = Exemption {
    rule: "E4",
    below: Some((facts::ETCD_LEARNER_SINCE, 0)),
    why: "below 1.27 kubeadm has no learners: a member counts from the moment that it is added",
};

/// Controller managers and schedulers that use the address of the cluster.
pub(super) const PROGRAMS_THROUGH_THE_CLUSTER_ADDRESS: Exemption = Exemption {
    rule: "V4",
    below: Some(facts::LOCAL_MANAGERS_SINCE),
    why: "below 1.19.1 kubeadm lets controller managers and schedulers use the address of the cluster, and they \
          reach an API server of the other minor while a control plane is rolled",
};

/// All exceptions.
pub const EXEMPTIONS: [&Exemption; 5] = [
    &KUBELET_OF_NEW_CONTROL_PLANE,
    &PROGRAMS_THROUGH_THE_CLUSTER_ADDRESS,
    &PROXY_OF_NEW_CONTROL_PLANE,
    &JOIN_AS_VOTER,
    &JOIN_WITHOUT_LEARNING,
];

/// An exception was made use of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Exempted {
    /// The rule: `V1`.
    pub id: String,
    /// Since when.
    pub at: Timestamp,
    /// How many writes there had been.
    pub write: u64,
    /// The cluster, as `namespace/name`.
    pub cluster: String,
    /// What would be wrong without it, in a sentence.
    pub message: String,
    /// Why it is not.
    pub why: String,
}
