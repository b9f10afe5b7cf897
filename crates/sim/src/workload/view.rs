//! What the simulators of a workload cluster know about it: an index over the store, kept current by its changes, with what
//! has to be looked at again and what is due when. It holds nothing that could not be read from the store once more.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde::de::DeserializeOwned;
use windlass_apiserver::store::{Change, ChangeKind, Entry, Key, Range};

use super::record::{self, Machine, Stage};
use super::seen::{DaemonSet, Deployment, Node, Pod, ReplicaSet, Truth};
use super::{Workload, kubeadm, write};
use crate::durations;

/// How long a kubelet may be silent before its node counts as lost: kube-controller-manager's default.
const NODE_MONITOR_GRACE: SignedDuration = SignedDuration::from_secs(40);
/// How long before its pods are given up, too: what pods tolerate unless they say otherwise comes on top.
const EVICTION_GRACE: SignedDuration = SignedDuration::from_secs(40 + 300);
/// From the wish until a container has ended: most of them heed SIGTERM.
const POD_END: SignedDuration = SignedDuration::from_secs(1);

/// Something that happens by itself at its time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// A node that has registered is ready.
    Ready(Box<str>),
    /// Nobody has heard of a node for too long.
    Lost(Box<str>),
    /// The pods of a lost node are replaced elsewhere.
    Evict(Box<str>),
    /// A pod has started.
    Start(Key),
    /// A pod has ended.
    End(Key),
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
    /// By the uid of their controller.
    pods_of: BTreeMap<Box<str>, BTreeSet<Key>>,
    sets_of: BTreeMap<Box<str>, BTreeSet<Key>>,
    /// By the node that they are bound to.
    pods_on: BTreeMap<Box<str>, BTreeSet<Key>>,
    /// Who has a uid that pods or sets refer to.
    controllers: BTreeMap<Box<str>, Controller>,
    /// Machines on which kubeadm is at work, and when its next step is done.
    joining: BTreeMap<Box<str>, Timestamp>,
    due: BTreeSet<(Timestamp, Due)>,
    /// To be looked at again.
    pub(super) dirty: BTreeSet<Controller>,
    pub(super) unscheduled: BTreeSet<Key>,
    /// Whether something has changed for pods that wait for a node.
    pub(super) schedule: bool,
    /// Pods whose end is to be made known.
    pub(super) ended: BTreeSet<Key>,
}

/// Something that has pods.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Controller {
    DaemonSet(Key),
    Deployment(Key),
    ReplicaSet(Key),
}

impl View {
    /// Everything that there is now; all of it is to be looked at.
    pub(super) fn read(workload: &Workload) -> Self {
        let mut view = Self::default();
        let store = workload.server().store();
        // Machines and owners come before what refers to them.
        for resource in
            [record::MACHINES, write::NODES, write::DEPLOYMENTS, write::REPLICA_SETS, write::DAEMON_SETS, write::PODS]
        {
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

    fn put(&mut self, workload: &Workload, resource: &str, entry: &Entry) {
        match resource {
            record::MACHINES => self.put_machine(workload, entry),
            write::NODES => self.put_node(workload, entry),
            write::PODS => self.put_pod(workload, entry),
            write::DAEMON_SETS => {
                if let Some(set) = read::<DaemonSet>(resource, entry) {
                    self.owns(&set.metadata.uid, Controller::DaemonSet(entry.key.clone()));
                    self.daemon_sets.insert(entry.key.clone(), set);
                }
            }
            write::DEPLOYMENTS => {
                if let Some(deployment) = read::<Deployment>(resource, entry) {
                    self.owns(&deployment.metadata.uid, Controller::Deployment(entry.key.clone()));
                    self.deployments.insert(entry.key.clone(), deployment);
                }
            }
            write::REPLICA_SETS => {
                if let Some(set) = read::<ReplicaSet>(resource, entry) {
                    self.owns(&set.metadata.uid, Controller::ReplicaSet(entry.key.clone()));
                    if let Some(owner) = set.metadata.controller() {
                        self.sets_of.entry(owner.into()).or_default().insert(entry.key.clone());
                        self.touch(owner);
                    }
                    self.replica_sets.insert(entry.key.clone(), set);
                }
            }
            _ => {}
        }
    }

    fn owns(&mut self, uid: &str, controller: Controller) {
        self.dirty.insert(controller.clone());
        self.controllers.insert(uid.into(), controller);
    }

    /// Whoever has this uid is to be looked at again; a `Deployment` looks after the pods of its sets.
    fn touch(&mut self, uid: &str) {
        let Some(controller) = self.controllers.get(uid).cloned() else { return };
        if let Controller::ReplicaSet(key) = &controller
            && let Some(owner) = self.replica_sets.get(key).and_then(|set| set.metadata.controller())
            && let Some(deployment) = self.controllers.get(owner)
        {
            self.dirty.insert(deployment.clone());
        }
        self.dirty.insert(controller);
    }

    fn put_machine(&mut self, workload: &Workload, entry: &Entry) {
        let Some(machine) = record::read::<Machine>(entry) else { return };
        let name = entry.key.name.clone();
        if machine.on && machine.stage != Stage::Done {
            self.joining.insert(name.clone(), kubeadm::next_step_at(workload, &machine));
        } else {
            self.joining.remove(&name);
        }
        if let Some(off_at) = machine.off_at {
            self.due.insert((later(off_at, NODE_MONITOR_GRACE), Due::Lost(name.clone())));
            self.due.insert((later(off_at, EVICTION_GRACE), Due::Evict(name.clone())));
        }
        self.machines.insert(name, machine);
    }

    fn put_node(&mut self, workload: &Workload, entry: &Entry) {
        let Some(node) = read::<Node>(write::NODES, entry) else { return };
        let name = entry.key.name.clone();
        if node.ready() == Truth::False {
            let after = durations::of(workload.0.durations.node_ready, workload.0.seed, &format!("ready {name}"));
            let at = node.metadata.created_at().checked_add(after).unwrap_or(Timestamp::MAX);
            self.due.insert((at, Due::Ready(name.clone())));
        }
        self.nodes.insert(name, node);
        self.nodes_changed();
    }

    fn nodes_changed(&mut self) {
        self.schedule = true;
        self.dirty.extend(self.daemon_sets.keys().cloned().map(Controller::DaemonSet));
    }

    fn put_pod(&mut self, workload: &Workload, entry: &Entry) {
        let key = &entry.key;
        self.take_pod(key);
        let Some(pod) = read::<Pod>(write::PODS, entry) else { return };
        if let Some(owner) = pod.metadata.controller() {
            self.pods_of.entry(owner.into()).or_default().insert(key.clone());
            self.touch(owner);
        }
        match &pod.spec.node_name {
            Some(node) => {
                self.pods_on.entry(node.clone()).or_default().insert(key.clone());
                if !self.nodes.contains_key(node) {
                    self.ended.insert(key.clone());
                }
            }
            None if pod.active() => {
                self.unscheduled.insert(key.clone());
                self.schedule |= !pod.known_unschedulable();
            }
            None => {}
        }
        if pod.starts() {
            let after = durations::of(workload.0.durations.pod_start, workload.0.seed, &format!("start {key}"));
            let at = pod.scheduled_at().checked_add(after).unwrap_or(Timestamp::MAX);
            self.due.insert((at, Due::Start(key.clone())));
        }
        if let Some(deadline) = pod.metadata.deletion_timestamp {
            let grace = SignedDuration::from_secs(pod.metadata.deletion_grace_period_seconds);
            let asked_at = deadline.checked_sub(grace).unwrap_or(deadline);
            self.due.insert((later(asked_at, POD_END).min(deadline), Due::End(key.clone())));
        }
        self.pods.insert(key.clone(), pod);
    }

    fn take(&mut self, resource: &str, key: &Key) {
        match resource {
            record::MACHINES => drop(self.machines.remove(&key.name)),
            write::NODES => {
                self.nodes.remove(&key.name);
                // Nobody will ever hear of these again.
                self.ended.extend(self.pods_on.get(&key.name).into_iter().flatten().cloned());
                self.nodes_changed();
            }
            write::PODS => self.take_pod(key),
            write::DAEMON_SETS => {
                if let Some(set) = self.daemon_sets.remove(key) {
                    self.controllers.remove(&set.metadata.uid);
                }
            }
            write::DEPLOYMENTS => {
                if let Some(deployment) = self.deployments.remove(key) {
                    self.controllers.remove(&deployment.metadata.uid);
                }
            }
            write::REPLICA_SETS => {
                let Some(set) = self.replica_sets.remove(key) else { return };
                self.controllers.remove(&set.metadata.uid);
                if let Some(owner) = set.metadata.controller() {
                    forget(&mut self.sets_of, owner, key);
                    self.touch(owner);
                }
            }
            _ => {}
        }
    }

    fn take_pod(&mut self, key: &Key) {
        self.unscheduled.remove(key);
        self.ended.remove(key);
        let Some(pod) = self.pods.remove(key) else { return };
        if let Some(node) = &pod.spec.node_name {
            forget(&mut self.pods_on, node, key);
        }
        if let Some(owner) = pod.metadata.controller() {
            forget(&mut self.pods_of, owner, key);
            self.touch(owner);
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

    /// Whether a pod stays with its node, whatever becomes of it.
    pub(super) fn stays(&self, pod: &Pod) -> bool {
        let controller = pod.metadata.controller().and_then(|uid| self.controllers.get(uid));
        matches!(controller, Some(Controller::DaemonSet(_))) || pod.spec.tolerates_unreachable()
    }

    /// How many pods are bound to a node.
    pub(super) fn count_on(&self, node: &str) -> usize {
        self.pods_on.get(node).map_or(0, BTreeSet::len)
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
        joining.into_iter().chain(due).min().copied()
    }

    /// What is due by `now`, in order.
    pub(super) fn take_due(&mut self, now: Timestamp) -> Vec<Due> {
        let mut ripe = Vec::new();
        while self.due.first().is_some_and(|(at, _)| *at <= now) {
            ripe.extend(self.due.pop_first().map(|(_, due)| due));
        }
        ripe
    }
}

fn forget(index: &mut BTreeMap<Box<str>, BTreeSet<Key>>, under: &str, key: &Key) {
    if let Some(keys) = index.get_mut(under) {
        keys.remove(key);
        if keys.is_empty() {
            index.remove(under);
        }
    }
}

fn later(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}

/// An object whose fields have types that no API server would have let in is as good as none.
fn read<T: DeserializeOwned>(resource: &str, entry: &Entry) -> Option<T> {
    serde_json::from_slice(&entry.json)
        .inspect_err(|error| tracing::error!(resource, key = %entry.key, %error, "an object cannot be read"))
        .ok()
}
