//! What is in a workload cluster's own API server, or beside it: nodes, programs of the control plane, pods, members of etcd.

mod fold;
mod pod;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use windlass_api::version::{KubernetesVersion, MinorVersion};

use super::Budget;

/// What is in a workload cluster's own API server, or beside it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Workload {
    pub(crate) nodes: BTreeMap<Box<str>, Node>,
    /// The programs of the control plane, by node.
    pub(crate) programs: BTreeMap<Box<str>, Programs>,
    /// Every minor that an API server of the cluster ever had.
    pub(crate) minors_served: BTreeSet<MinorVersion>,
    /// The pods of kube-proxy that have a node, by name.
    pub(crate) proxies: BTreeMap<Box<str>, Proxy>,
    /// All pods that have a node, by `namespace/name`.
    pub(crate) pods: BTreeMap<Box<str>, Pod>,
    /// The budgets of pods, by `namespace/name`.
    pub(crate) budgets: BTreeMap<Box<str>, Budget>,
    /// The nodes that volumes are attached to, by the name of the attachment.
    pub(crate) attachments: BTreeMap<Box<str>, Box<str>>,
    /// The members of etcd, by node.
    pub(crate) members: BTreeMap<Box<str>, Member>,
    /// What is wrong with members of etcd, by node.
    pub(crate) troubles: BTreeMap<Box<str>, Trouble>,
    /// The newest minor of etcd that a member ever had.
    pub(crate) etcd_newest: Option<MinorVersion>,
    /// The machines that are switched on, by node, and the version of kubelet and kubeadm on their disks.
    pub(crate) running: BTreeMap<Box<str>, KubernetesVersion>,
    /// Those of them on which kubeadm has given up.
    pub(crate) given_up: BTreeSet<Box<str>>,
    /// What kubeadm keeps for those who join.
    pub(crate) kubeadm: Kubeadm,
    /// How many `PodSecurityPolicy` objects there are.
    pub(crate) security_policies: usize,
    /// The objects of add-ons, by resource and `namespace/name`.
    pub(crate) addons: BTreeMap<(Arc<str>, Box<str>), AddonObject>,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) kubelet: Option<KubernetesVersion>,
    pub(crate) control_plane: bool,
    pub(crate) ready: bool,
    /// Nothing new is scheduled on it.
    pub(crate) cordoned: bool,
    /// The distribution that it was made from, as fields have it.
    pub(crate) distribution: Option<Box<str>>,
    pub(crate) provider_id: Option<Box<str>>,
}

/// The static pods of a machine of the control plane: the version of each that is there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Programs {
    pub(crate) api_server: Option<Program>,
    pub(crate) controller_manager: Option<Program>,
    pub(crate) scheduler: Option<Program>,
    pub(crate) etcd: Option<Program>,
}

/// A program of the control plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    /// The tag of its image, where that is a version.
    pub(crate) version: Option<KubernetesVersion>,
    pub(crate) ready: bool,
}

/// A pod of kube-proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Proxy {
    pub(crate) node: Box<str>,
    pub(crate) version: KubernetesVersion,
}

/// A pod that has a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pod {
    pub(crate) node: Box<str>,
    pub(crate) sort: PodSort,
    /// The distribution whose nodes it may run on, as fields have it: an add-on's pod.
    pub(crate) bound: Option<Box<str>>,
    pub(crate) health: Health,
    /// Who said that it has to go, if it was said in its status.
    pub(crate) disruption: Option<Disruption>,
    pub(crate) deleting: bool,
    pub(crate) labels: Box<[(Box<str>, Box<str>)]>,
}

/// How a pod is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Health {
    Ready,
    /// Its node has not what it is made from, and nobody else has.
    LacksImage,
    /// It has come to its end by itself.
    Ended,
    /// It starts, or is not well.
    Unready,
}

/// Who said that a pod has to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disruption {
    /// The Eviction API, which asked its budgets.
    Eviction,
    /// Whoever found that its node is lost, or needed its place.
    Other,
}

/// Who sees to a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PodSort {
    /// The kubelet of its node, from a file.
    Static,
    /// A `DaemonSet`.
    Daemon,
    /// Whoever brings it up again elsewhere, or nobody.
    Other,
}

/// A member of etcd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    /// It does not count in the quorum yet.
    pub(crate) learner: bool,
    /// It has joined: it runs for as long as its machine does.
    pub(crate) started: bool,
    pub(crate) leader: bool,
    pub(crate) version: Option<KubernetesVersion>,
}

/// What is wrong with a member of etcd.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// It does not reach the others.
    pub(crate) cut_off: bool,
    /// What it complains of.
    pub(crate) alarms: BTreeSet<Box<str>>,
}

/// What kubeadm keeps for those who join.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Kubeadm {
    pub(crate) version: Option<KubernetesVersion>,
    /// etcd is somebody else's; `None` before it says anything.
    pub(crate) external_etcd: Option<bool>,
    /// The nodes whose API servers it names.
    pub(crate) endpoints: BTreeSet<Box<str>>,
}

/// An object of an add-on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AddonObject {
    pub(crate) addon: Box<str>,
    /// The distribution whose nodes its pods are bound to, as on nodes; nothing for what has no pods.
    pub(crate) distribution: Option<Box<str>>,
    generation: Option<i64>,
    /// Whoever makes pods of it has seen it as it is now.
    observed: bool,
}

impl Workload {
    /// The API servers that run: their version, by node.
    pub(crate) fn serving(&self) -> impl Iterator<Item = (&str, &KubernetesVersion)> {
        self.programs.iter().filter_map(|(node, programs)| {
            let version = programs.api_server.as_ref()?.version.as_ref()?;
            self.runs(node).then_some((&**node, version))
        })
    }

    /// The machine of that node is switched on.
    pub(crate) fn runs(&self, node: &str) -> bool {
        self.running.contains_key(node)
    }

    /// The members of etcd that count in the quorum, by node.
    pub(crate) fn voters(&self) -> impl Iterator<Item = (&str, &Member)> {
        self.members.iter().filter(|(_, member)| !member.learner).map(|(node, member)| (&**node, member))
    }

    /// A member answers.
    pub(crate) fn is_healthy(&self, node: &str, member: &Member) -> bool {
        member.started && self.runs(node) && !self.troubles.get(node).is_some_and(|trouble| trouble.cut_off)
    }

    /// Members that are on their way in: learners, and those that have not started.
    pub(crate) fn joining(&self) -> impl Iterator<Item = &str> {
        self.members.iter().filter(|(_, member)| member.learner || !member.started).map(|(node, _)| &**node)
    }

    /// The node has an API server, and a member of etcd that counts.
    pub(crate) fn serves_and_votes(&self, node: &str) -> bool {
        let votes = self.members.get(node).is_some_and(|member| !member.learner && member.started);
        votes && self.programs.get(node).is_some_and(|programs| programs.api_server.is_some())
    }

    /// All four programs of the control plane are well on a node.
    pub(crate) fn is_whole(&self, node: &str) -> bool {
        let member = self.members.get(node);
        self.programs.get(node).is_some_and(Programs::are_ready)
            && member.is_some_and(|member| self.is_healthy(node, member))
    }

    /// Whether an add-on is there for the nodes of a distribution: it has objects, and if any of them is bound to nodes, one is
    /// bound to those and was seen by whoever makes its pods.
    pub(crate) fn has_addon(&self, addon: &str, distribution: &str) -> bool {
        let objects = || self.addons.values().filter(|object| &*object.addon == addon);
        let mut bound = objects().filter(|object| object.distribution.is_some()).peekable();
        if bound.peek().is_none() {
            return objects().next().is_some();
        }
        bound.any(|object| object.observed && object.distribution.as_deref() == Some(distribution))
    }
}

impl Programs {
    /// Those that talk to an API server, with their names.
    pub(crate) fn clients(&self) -> impl Iterator<Item = (&'static str, &KubernetesVersion)> {
        let named = [("controller manager", &self.controller_manager), ("scheduler", &self.scheduler)];
        named.into_iter().filter_map(|(name, program)| Some((name, program.as_ref()?.version.as_ref()?)))
    }

    fn are_ready(&self) -> bool {
        let all = [&self.api_server, &self.controller_manager, &self.scheduler, &self.etcd];
        all.into_iter().all(|program| program.as_ref().is_some_and(|program| program.ready))
    }
}

impl Pod {
    /// It has to leave its node before that may go.
    pub(crate) fn must_leave(&self) -> bool {
        self.sort == PodSort::Other && self.health != Health::Ended
    }
}
