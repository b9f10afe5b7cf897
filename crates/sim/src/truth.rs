//! What is true in a World, folded from the changes of all its API servers into one small model.
//!
//! ```text
//! change ── read ──▶ Truth ──▶ Fact ──▶ a sentence of the timeline
//!                                  └──▶ the rules of `invariant`, on the Truth as it is after the change
//! ```
//!
//! This runs on every write of every API server, under the store's lock. So a change is told apart by the name of its
//! resource first, and of most objects nothing is read at all; of the others only the few fields that are kept here.

mod fact;
mod management;
mod read;
mod workload;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use windlass_api::name::ClusterSecret;
use windlass_api::version::{KubernetesVersion, MinorVersion};
use windlass_apiserver::store::Change;

pub(crate) use fact::{Fact, Topic};

/// Which API server a change was committed by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// That of the management cluster.
    Management,
    /// That of a workload cluster, as `namespace/name`.
    Workload(Box<str>),
}

/// How the management cluster is called where a workload cluster would be `namespace/name`.
pub(crate) const MANAGEMENT: &str = "management";

/// The add-ons of every release, which no annotation of its image mentions.
const BUILT_IN_ADDONS: [&str; 2] = ["coredns", "kube-proxy"];

impl Place {
    pub(crate) fn new(text: &str) -> Self {
        if text == MANAGEMENT { Self::Management } else { Self::Workload(text.into()) }
    }

    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Management => MANAGEMENT,
            Self::Workload(cluster) => cluster,
        }
    }
}

/// All clusters of a World, by `namespace/name`, and the add-ons of each release, by its distribution version.
#[derive(Debug, Clone, Default)]
pub(crate) struct Truth {
    clusters: BTreeMap<Box<str>, Cluster>,
    addons: BTreeMap<Box<str>, BTreeSet<Box<str>>>,
}

/// A cluster: what it is asked to be, its machines, and what is in its own API server.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cluster {
    pub(crate) wish: Option<Wish>,
    /// The Cluster of Cluster API, by which certificates are owned.
    pub(crate) object: Option<Live>,
    /// The latest update on record.
    pub(crate) update: Option<Update>,
    pub(crate) machines: BTreeMap<Box<str>, Machine>,
    pub(crate) pools: BTreeMap<Box<str>, Pool>,
    /// The certificates that are there, and the uids of their owners.
    pub(crate) secrets: BTreeMap<ClusterSecret, Box<[Box<str>]>>,
    jobs: BTreeMap<Box<str>, Job>,
    pub(crate) workload: Workload,
}

/// What the `TanzuKubernetesCluster` asks for, and says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wish {
    pub(crate) control_plane_count: u32,
    pub(crate) distribution: Option<Box<str>>,
    pub(crate) phase: Option<Box<str>>,
    pub(crate) version: Option<Box<str>>,
    pub(crate) deleting: bool,
}

/// An object that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Live {
    pub(crate) uid: Box<str>,
    pub(crate) deleting: bool,
}

/// An update on record.
#[derive(Debug, Clone)]
pub(crate) struct Update {
    pub(crate) name: Box<str>,
    /// Which update of the cluster it is.
    ordinal: u64,
    pub(crate) id: Box<str>,
    pub(crate) from: KubernetesVersion,
    pub(crate) to: KubernetesVersion,
    pub(crate) to_distribution: Box<str>,
    /// The add-ons of the release that it leads to.
    pub(crate) addons: BTreeSet<Box<str>>,
    pub(crate) state: UpdateState,
    stage: Option<Box<str>>,
}

/// Whether an update is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UpdateState {
    Running,
    Succeeded,
    Failed,
}

/// What a machine is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    ControlPlane,
    Worker,
}

impl Role {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::ControlPlane => "control plane",
            Self::Worker => "worker",
        }
    }
}

/// A Machine of Cluster API. Its node, and the machine that is switched on, have its name.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    pub(crate) role: Role,
    pub(crate) version: Option<KubernetesVersion>,
    /// What all machines share that replace each other in a row.
    pub(crate) base: Option<Box<str>>,
    /// The update that made it.
    pub(crate) update: Option<Box<str>>,
    pub(crate) deleting: bool,
    /// Its node has been ready.
    pub(crate) settled: bool,
    running: bool,
}

/// A `MachineDeployment`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pool {
    pub(crate) version: Option<KubernetesVersion>,
    /// The templates of infrastructure and bootstrap.
    templates: [Box<str>; 2],
}

/// A Job that updates a control plane.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Job {
    failed: u32,
    end: Option<JobEnd>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JobEnd {
    Complete,
    Failed,
}

/// What is in a workload cluster's own API server, or beside it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Workload {
    pub(crate) nodes: BTreeMap<Box<str>, Node>,
    /// The versions of API servers, by node.
    pub(crate) api_servers: BTreeMap<Box<str>, KubernetesVersion>,
    /// Every minor that an API server of the cluster ever had.
    pub(crate) minors_served: BTreeSet<MinorVersion>,
    /// The pods of kube-proxy that have a node, by name.
    pub(crate) proxies: BTreeMap<Box<str>, Proxy>,
    /// The members of etcd, by node.
    pub(crate) members: BTreeMap<Box<str>, Member>,
    /// The machines that are switched on, by node, and the version of kubelet and kubeadm on their disks.
    pub(crate) running: BTreeMap<Box<str>, KubernetesVersion>,
    /// The objects of add-ons, by resource and `namespace/name`.
    pub(crate) addons: BTreeMap<(Arc<str>, Box<str>), AddonObject>,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) kubelet: Option<KubernetesVersion>,
    pub(crate) control_plane: bool,
    pub(crate) ready: bool,
}

/// A pod of kube-proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Proxy {
    pub(crate) node: Box<str>,
    pub(crate) version: KubernetesVersion,
}

/// A member of etcd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    /// It does not count in the quorum yet.
    pub(crate) learner: bool,
    /// It has joined: it runs for as long as its machine does.
    pub(crate) started: bool,
    pub(crate) leader: bool,
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

impl Truth {
    /// Takes note of a change. Returns the cluster that it is about and what it says, if anything.
    pub(crate) fn fold(
        &mut self,
        place: &Place,
        resource: &Arc<str>,
        change: &Change,
    ) -> Option<(Box<str>, Vec<Fact>)> {
        let folded = match place {
            Place::Management => self.fold_management(resource, change),
            Place::Workload(cluster) => {
                let facts = self.cluster_mut(cluster).fold_workload(resource, change);
                facts.map(|facts| (cluster.clone(), facts))
            }
        };
        match folded {
            Ok((_, facts)) if facts.is_empty() => None,
            Ok(told) => Some(told),
            Err(source) => {
                let object = format!("{resource}/{}", change.object.key.name);
                Some((place.as_str().into(), vec![Fact::Unreadable { object, why: source.to_string() }]))
            }
        }
    }

    /// The cluster of that name, `namespace/name`.
    pub(crate) fn cluster(&self, name: &str) -> Option<&Cluster> {
        self.clusters.get(name)
    }

    fn cluster_mut(&mut self, name: &str) -> &mut Cluster {
        self.clusters.entry(name.into()).or_default()
    }
}

impl Cluster {
    /// The whole of it is being removed: machines, members and Secrets go with it.
    pub(crate) fn is_ending(&self) -> bool {
        self.wish.as_ref().is_some_and(|wish| wish.deleting)
            || self.object.as_ref().is_some_and(|object| object.deleting)
    }

    /// The update that is running.
    pub(crate) fn running_update(&self) -> Option<&Update> {
        self.update.as_ref().filter(|update| update.state == UpdateState::Running)
    }

    /// The machines of a role, in the order of their names.
    pub(crate) fn machines_of(&self, role: Role) -> impl Iterator<Item = (&str, &Machine)> {
        self.machines.iter().filter(move |(_, machine)| machine.role == role).map(|(name, machine)| (&**name, machine))
    }
}

impl Update {
    /// Whether a machine is one that this update brings.
    pub(crate) fn brings(&self, machine: &Machine) -> bool {
        let is_of_it = machine.update.as_ref() == Some(&self.id);
        is_of_it || (self.from != self.to && machine.version.as_ref() == Some(&self.to))
    }
}

impl Workload {
    /// The API servers that run: their version, by node.
    pub(crate) fn serving(&self) -> impl Iterator<Item = (&str, &KubernetesVersion)> {
        self.api_servers.iter().filter(|(node, _)| self.runs(node)).map(|(node, version)| (&**node, version))
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
        member.started && self.runs(node)
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
