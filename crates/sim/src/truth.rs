//! What is true in a World, folded from the changes of all its API servers into one small model.
//!
//! ```text
//! change ── read ──▶ Truth ──▶ Fact ──▶ a sentence of the timeline
//!                                  └──▶ the rules of `invariant`, on the Truth as it is after the change
//! ```
//!
//! This runs on every write of every API server, under the store's lock. So a change is told apart by the name of its
//! resource first, and of most objects nothing is read at all; of the others only the few fields that are kept here.

mod budget;
mod fact;
mod management;
mod read;
mod workload;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use windlass_api::name::ClusterSecret;
use windlass_api::version::KubernetesVersion;
use windlass_apiserver::store::{Change, ChangeKind};

use crate::actor::{self, Actor};
use crate::world::KeptStores;

pub(crate) use budget::Budget;
pub(crate) use fact::{Fact, OwnerChange, Topic};
pub(crate) use workload::{Health, Member, Pod, PodSort, Proxy, Workload};

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
    /// When the latest change was made that this knows of.
    pub(crate) now: Timestamp,
    /// Who made it, if that was said.
    pub(crate) actor: Option<Actor>,
    pub(crate) wish: Option<Wish>,
    /// The Cluster of Cluster API, by which certificates are owned.
    pub(crate) object: Option<Live>,
    /// Who says that nobody may touch it.
    pub(crate) held: Held,
    /// The name of the control plane that the Cluster refers to.
    control_plane_name: Option<Box<str>>,
    /// The control plane, where Cluster API rolls it.
    pub(crate) control_plane: Option<ControlPlane>,
    /// The latest update on record.
    pub(crate) update: Option<Update>,
    /// All updates that are running, by name, with their ids.
    pub(crate) running_updates: BTreeMap<Box<str>, Box<str>>,
    pub(crate) machines: BTreeMap<Box<str>, Machine>,
    pub(crate) pools: BTreeMap<Box<str>, Pool>,
    /// The Secrets that are there, and the uids of their owners.
    pub(crate) secrets: BTreeMap<ClusterSecret, Box<[Box<str>]>>,
    /// What was in each Secret when it was first seen, as a hash: it outlives the Secret.
    keys: BTreeMap<ClusterSecret, u64>,
    jobs: BTreeMap<Box<str>, Job>,
    pub(crate) workload: Workload,
}

/// Since when somebody says that nobody may touch a cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// On the Cluster of Cluster API.
    by_cluster: Option<Timestamp>,
    /// On what was asked of Windlass.
    by_wish: Option<Timestamp>,
}

impl Held {
    /// Since the first of them said so.
    pub(crate) fn since(self) -> Option<Timestamp> {
        [self.by_cluster, self.by_wish].into_iter().flatten().min()
    }
}

/// What the `TanzuKubernetesCluster` asks for, and says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wish {
    pub(crate) control_plane_count: u32,
    pub(crate) distribution: Option<Box<str>>,
    pub(crate) phase: Option<Box<str>>,
    pub(crate) version: Option<Box<str>>,
    /// The add-ons that could not be applied.
    pub(crate) addon_errors: BTreeSet<Box<str>>,
    /// Those that are in the cluster as they should be.
    addons_applied: BTreeSet<Box<str>>,
    pub(crate) deleting: bool,
}

/// An object that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Live {
    pub(crate) uid: Box<str>,
    pub(crate) owners: Box<[Box<str>]>,
    pub(crate) deleting: bool,
}

/// A `KubeadmControlPlane`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ControlPlane {
    pub(crate) name: Box<str>,
    pub(crate) live: Live,
    /// The version that is asked for.
    pub(crate) version: Option<KubernetesVersion>,
    /// The oldest version that a machine has, as it says itself.
    pub(crate) reached: Option<KubernetesVersion>,
    pub(crate) replicas: u32,
    /// A machine goes before the one that takes its place comes.
    pub(crate) goes_first: bool,
    /// etcd is somebody else's.
    pub(crate) external_etcd: bool,
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
    Aborted,
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
    /// The pool that it belongs to.
    pub(crate) pool: Option<Box<str>>,
    pub(crate) provider_id: Option<Box<str>>,
    /// How many have to let it go before it can be gone.
    pub(crate) finalizers: usize,
    pub(crate) deleting: bool,
    pub(crate) removal: Removal,
    /// Its node has been ready.
    pub(crate) settled: bool,
    running: bool,
}

/// How a Machine goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Removal {
    /// Since when it does.
    pub(crate) since: Option<Timestamp>,
    /// After how long its pods may be killed; never, if there is no number.
    drain_max: Option<SignedDuration>,
    /// After how long nobody waits for its volumes any more.
    detach_max: Option<SignedDuration>,
    drain_since: Option<Timestamp>,
    detach_since: Option<Timestamp>,
    skips_drain: bool,
    skips_detach: bool,
    /// It is replaced because it is not well.
    pub(crate) is_remedy: bool,
    /// What its condition says that it waits for: a reason, and a sentence.
    pub(crate) waits_for: Option<(Box<str>, Box<str>)>,
}

/// A `MachineDeployment`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pool {
    pub(crate) version: Option<KubernetesVersion>,
    /// The templates of infrastructure and bootstrap.
    templates: [Box<str>; 2],
    pub(crate) bounds: Bounds,
    pub(crate) deleting: bool,
}

/// Between which numbers a pool is kept while it is rolled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) replicas: u32,
    pub(crate) surge_max: u32,
    pub(crate) unavailable_max: u32,
    /// Machines are replaced when somebody deletes them.
    pub(crate) on_delete: bool,
}

/// A Job that updates a control plane.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Job {
    failed: u32,
    end: Option<JobEnd>,
    /// The add-ons that were applied when it was created.
    addons_applied: BTreeSet<Box<str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobEnd {
    Complete,
    Failed,
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
            Place::Workload(name) => {
                let cluster = self.cluster_mut(name);
                cluster.now = change.at;
                cluster.actor = actor::current();
                cluster.fold_workload(resource, change).map(|facts| (name.clone(), facts))
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

    /// Takes note of all that was there when nobody looked. What a machine is follows from its node as well, and whose a control
    /// plane is from a Cluster that may have been written later: so management is looked at before workload clusters and after.
    pub(crate) fn know(&mut self, kept: &KeptStores) {
        let (management, workloads): (Vec<_>, Vec<_>) = kept.iter().partition(|(place, _)| &***place == MANAGEMENT);
        let again = management.clone();
        let first = management.into_iter().chain(workloads).map(|of| (of, ChangeKind::Added));
        for ((place, recovered), kind) in first.chain(again.into_iter().map(|of| (of, ChangeKind::Modified))) {
            let place = Place::new(place);
            let mut objects: Vec<_> = recovered.objects().collect();
            objects.sort_unstable_by_key(|(_, entry)| entry.revision);
            for (resource, entry) in objects {
                let (revision, at, object) = (entry.revision, recovered.at, entry.clone());
                let previous = (kind == ChangeKind::Modified).then(|| entry.clone());
                // What it says was told when it happened.
                drop(self.fold(&place, resource, &Change { kind, revision, at, object, previous }));
            }
        }
    }

    /// The cluster of that name, `namespace/name`.
    pub(crate) fn cluster(&self, name: &str) -> Option<&Cluster> {
        self.clusters.get(name)
    }

    /// All clusters, by `namespace/name`.
    pub(crate) fn clusters(&self) -> impl Iterator<Item = (&str, &Cluster)> {
        self.clusters.iter().map(|(name, cluster)| (&**name, cluster))
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

    /// The latest update, unless it is over. One that gave up is not: what it made stays, and it goes on when it is told to.
    fn unfinished_update(&self) -> Option<&Update> {
        self.update.as_ref().filter(|update| matches!(update.state, UpdateState::Running | UpdateState::Failed))
    }

    /// The version that the control plane is being brought to, until it is there: by an update on record, or by Cluster API
    /// alone.
    pub(crate) fn rolls_to(&self) -> Option<&KubernetesVersion> {
        if let Some(update) = self.unfinished_update() {
            return Some(&update.to);
        }
        let to = self.control_plane.as_ref()?.version.as_ref()?;
        self.machines_of(Role::ControlPlane).any(|(_, machine)| machine.version.as_ref() != Some(to)).then_some(to)
    }

    /// Whether a node is of the control plane: it says so itself, or its Machine does while the label is still to come.
    pub(crate) fn is_of_control_plane(&self, node: &str) -> bool {
        self.workload.nodes.get(node).is_some_and(|node| node.control_plane)
            || self.machines.get(node).is_some_and(|machine| machine.role == Role::ControlPlane)
    }

    /// How many machines the control plane should have.
    pub(crate) fn control_plane_count(&self) -> Option<u32> {
        let asked = self.wish.as_ref().map(|wish| wish.control_plane_count);
        asked.or_else(|| self.control_plane.as_ref().map(|control_plane| control_plane.replicas))
    }

    /// Whoever asked for it asked Windlass: there are add-ons to come first, and pools to come last.
    pub(crate) fn is_ours(&self) -> bool {
        self.wish.is_some() || self.update.is_some()
    }

    /// A machine of the control plane has come as far as whoever rolls it waits for: its node is ready or, where Cluster API
    /// rolls it, it serves and votes.
    pub(crate) fn has_joined(&self, name: &str, machine: &Machine) -> bool {
        machine.settled || (self.control_plane.is_some() && self.workload.serves_and_votes(name))
    }

    /// The machine of that name can be relied on.
    pub(crate) fn is_available(&self, name: &str, machine: &Machine) -> bool {
        !machine.deleting && self.workload.nodes.get(name).is_some_and(|node| node.ready)
    }

    /// Whether this add-on was applied when the Job was created that is at work.
    pub(crate) fn was_applied(&self, addon: &str) -> bool {
        self.jobs.values().any(|job| job.end.is_none() && job.addons_applied.contains(addon))
    }

    /// The Jobs that have not ended.
    pub(crate) fn active_jobs(&self) -> impl Iterator<Item = &str> {
        self.jobs.iter().filter(|(_, job)| job.end.is_none()).map(|(name, _)| &**name)
    }

    /// The machines of a role, in the order of their names.
    pub(crate) fn machines_of(&self, role: Role) -> impl Iterator<Item = (&str, &Machine)> {
        self.machines.iter().filter(move |(_, machine)| machine.role == role).map(|(name, machine)| (&**name, machine))
    }
}

impl Removal {
    /// The pods of the machine are no longer waited for.
    pub(crate) fn drain_is_over(&self, now: Timestamp) -> bool {
        self.skips_drain || is_past(self.drain_since.or(self.since), self.drain_max, now)
    }

    /// The volumes of the machine are no longer waited for.
    pub(crate) fn detach_is_over(&self, now: Timestamp) -> bool {
        self.skips_detach || is_past(self.detach_since.or(self.since), self.detach_max, now)
    }
}

/// Without a limit nothing is ever over. Cluster API takes a limit of nothing for none.
fn is_past(since: Option<Timestamp>, max: Option<SignedDuration>, now: Timestamp) -> bool {
    match (since, max.filter(SignedDuration::is_positive)) {
        (Some(since), Some(max)) => now.duration_since(since) >= max,
        _ => false,
    }
}

impl Update {
    /// Whether a machine is one that this update brings.
    pub(crate) fn brings(&self, machine: &Machine) -> bool {
        let is_of_it = machine.update.as_ref() == Some(&self.id);
        is_of_it || (self.from != self.to && machine.version.as_ref() == Some(&self.to))
    }
}
