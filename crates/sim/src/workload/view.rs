//! What the simulators of a workload cluster know about it: an index over the store, kept current by its changes, with what
//! has to be looked at again and what is due when. It holds nothing that could not be read from the store once more.

mod note;

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use windlass_apiserver::store::{Change, ChangeKind, Key, Range};

use super::disruption::Budgets;
use super::record::{self, Machine, Stage};
use super::seen::{DaemonSet, Deployment, Job, Node, Pod, ReplicaSet, Room, StatefulSet};
use super::volumes::Volumes;
use super::{Workload, disruption, volumes, write};

/// How long a kubelet may be silent before its node counts as lost: kube-controller-manager's default.
const NODE_MONITOR_GRACE: SignedDuration = SignedDuration::from_secs(40);

/// How often a cloud provider looks for the machines of nodes that are not ready: its default.
const CLOUD_MONITOR_PERIOD: SignedDuration = SignedDuration::from_secs(5);

/// Something that happens by itself at its time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// A node that has registered is ready.
    Ready(Box<str>),
    /// Nobody has heard of a node for too long.
    Lost(Box<str>),
    /// The cloud provider looks for the machine of a node.
    Gone(Box<str>),
    /// Some pods have put up with a taint of their node for long enough.
    Evict(Box<str>),
    /// A pod has started.
    Start(Key),
    /// A kubelet stops asking for an image that cannot be had.
    StopPulling(Key),
    /// The containers of a pod end by themselves.
    Exit(Key),
    /// The containers of a pod are started again.
    Restart(Key),
    /// A pod has ended that was to end.
    End(Key),
    /// A controller wanted to be woken.
    Look(Controller),
}

/// The index.
#[derive(Default)]
pub(super) struct View {
    pub(super) machines: BTreeMap<Box<str>, Machine>,
    pub(super) nodes: BTreeMap<Box<str>, Node>,
    pub(super) pods: BTreeMap<Key, Pod>,
    pub(super) daemon_sets: BTreeMap<Key, DaemonSet>,
    pub(super) deployments: BTreeMap<Key, Deployment>,
    pub(super) replica_sets: BTreeMap<Key, ReplicaSet>,
    pub(super) stateful_sets: BTreeMap<Key, StatefulSet>,
    pub(super) jobs: BTreeMap<Key, Job>,
    /// By the uid of their controller.
    pods_of: BTreeMap<Box<str>, BTreeSet<Key>>,
    sets_of: BTreeMap<Box<str>, BTreeSet<Key>>,
    /// By the node that they are bound to.
    pods_on: BTreeMap<Box<str>, BTreeSet<Key>>,
    /// What they ask of it together, as long as they have not ended.
    asked_of: BTreeMap<Box<str>, Room>,
    /// Who has a uid that pods or sets refer to.
    controllers: BTreeMap<Box<str>, Controller>,
    /// Machines on which kubeadm is at work, and when its next step is done.
    joining: BTreeMap<Box<str>, Timestamp>,
    due: BTreeSet<(Timestamp, Due)>,
    /// To be looked at again.
    pub(super) dirty: BTreeSet<Controller>,
    /// Nodes that have changed.
    pub(super) changed_nodes: BTreeSet<Box<str>>,
    /// Nodes with a taint that may drive pods away.
    pub(super) driven: BTreeSet<Box<str>>,
    pub(super) unscheduled: BTreeSet<Key>,
    /// Whether something has changed for pods that wait for a node.
    pub(super) schedule: bool,
    /// Pods whose end is to be made known.
    pub(super) ended: BTreeSet<Key>,
    pub(super) budgets: Budgets,
    pub(super) volumes: Volumes,
}

/// Something that has pods.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Controller {
    DaemonSet(Key),
    Deployment(Key),
    ReplicaSet(Key),
    StatefulSet(Key),
    Job(Key),
}

impl View {
    /// Everything that there is now; all of it is to be looked at.
    pub(super) fn read(workload: &Workload) -> Self {
        let mut view = Self::default();
        let store = workload.server().store();
        // Machines and owners come before what refers to them.
        for resource in [
            record::MACHINES,
            write::NODES,
            write::DEPLOYMENTS,
            write::REPLICA_SETS,
            write::DAEMON_SETS,
            write::STATEFUL_SETS,
            write::JOBS,
            disruption::BUDGETS,
            write::CLAIMS,
            volumes::VOLUMES,
            volumes::ATTACHMENTS,
            write::PODS,
        ] {
            let range = Range { namespace: None, after: None, limit: 0 };
            for entry in store.list(resource, range, |_| true).entries {
                view.put(workload, resource, &entry);
            }
        }
        view
    }

    /// Takes note of a change.
    pub(super) fn apply(&mut self, workload: &Workload, resource: &str, change: &Change) {
        match change.kind {
            ChangeKind::Added | ChangeKind::Modified => self.put(workload, resource, &change.object),
            ChangeKind::Deleted => self.take(resource, &change.object.key),
        }
    }

    /// The pods of a controller, by name.
    pub(super) fn pods_of(&self, uid: &str) -> impl Iterator<Item = (&Key, &Pod)> {
        let keys = self.pods_of.get(uid).into_iter().flatten();
        keys.filter_map(|key| self.pods.get(key).map(|pod| (key, pod)))
    }

    /// The sets of a `Deployment`, by name.
    pub(super) fn sets_of(&self, uid: &str) -> impl Iterator<Item = (&Key, &ReplicaSet)> {
        let keys = self.sets_of.get(uid).into_iter().flatten();
        keys.filter_map(|key| self.replica_sets.get(key).map(|set| (key, set)))
    }

    /// The pods that are bound to a node, by name.
    pub(super) fn pods_on(&self, node: &str) -> impl Iterator<Item = (&Key, &Pod)> {
        let keys = self.pods_on.get(node).into_iter().flatten();
        keys.filter_map(|key| self.pods.get(key).map(|pod| (key, pod)))
    }

    /// How many pods are bound to a node.
    pub(super) fn count_on(&self, node: &str) -> usize {
        self.pods_on.get(node).map_or(0, BTreeSet::len)
    }

    /// How much the pods of a node leave of it.
    pub(super) fn left_on(&self, name: &str, node: &Node) -> Room {
        node.allocatable().minus(self.asked_of.get(name).copied().unwrap_or(Room::NONE))
    }

    /// Whether the kubelet of a node is silent for so long that the node is lost. The machine may be another one of the same
    /// name than the one that was switched off.
    pub(super) fn is_silent(&self, node: &str, now: Timestamp) -> bool {
        let off_at = self.machines.get(node).and_then(|machine| machine.off_at);
        off_at.is_some_and(|off_at| later(off_at, NODE_MONITOR_GRACE) <= now)
    }

    /// Whether there is a kubelet at work on a node.
    pub(super) fn is_on(&self, node: &str) -> bool {
        self.machines.get(node).is_some_and(|machine| machine.on && machine.stage == Stage::Done)
    }

    /// The machines whose kubeadm has done its next step by `now`, or waits for something with it, in order.
    pub(super) fn joins_by(&self, now: Timestamp) -> Vec<Machine> {
        let mut ripe: Vec<_> = self.joining.iter().filter(|(_, at)| **at <= now).map(|(name, at)| (at, name)).collect();
        ripe.sort();
        ripe.into_iter().filter_map(|(_, name)| self.machines.get(name).cloned()).collect()
    }

    /// When something happens next by itself; `answers` says whether it is only kubeadm that goes on.
    pub(super) fn next_at(&self, now: Timestamp, answers: bool) -> Option<Timestamp> {
        let joining = self.joining.values().filter(|at| **at > now).min();
        let due = self.due.first().map(|(at, _)| at).filter(|_| answers);
        let detached = self.volumes.next_at(|node| self.is_on(node)).filter(|_| answers);
        joining.into_iter().chain(due).chain(&detached).min().copied()
    }

    /// What is due by `now`, in order.
    pub(super) fn take_due(&mut self, now: Timestamp) -> Vec<Due> {
        let mut ripe = Vec::new();
        while self.due.first().is_some_and(|(at, _)| *at <= now) {
            ripe.extend(self.due.pop_first().map(|(_, due)| due));
        }
        ripe
    }

    /// Something will happen by itself.
    pub(super) fn wake(&mut self, at: Timestamp, due: Due) {
        self.due.insert((at, due));
    }
}

fn later(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}
