//! Taking note of objects that came, changed or went.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde::de::DeserializeOwned;
use windlass_apiserver::store::{Entry, Key};

use super::super::record::{self, Machine, Stage};
use super::super::seen::{DaemonSet, Deployment, Job, Life, Node, Pod, ReplicaSet, Room, StatefulSet, Taint, Truth};
use super::super::{Workload, kubeadm, termination, write};
use super::{CLOUD_MONITOR_PERIOD, Controller, Due, NODE_MONITOR_GRACE, View, later};
use crate::durations;

/// How long a kubelet asks for an image before it says that it backs off.
const PULL: SignedDuration = SignedDuration::from_secs(10);

impl View {
    pub(super) fn put(&mut self, workload: &Workload, resource: &str, entry: &Entry) {
        self.budgets.put(resource, &entry.key);
        self.volumes.put(resource, entry);
        match resource {
            record::MACHINES => self.put_machine(workload, entry),
            write::NODES => self.put_node(workload, entry),
            write::PODS => self.put_pod(workload, entry),
            write::REPLICA_SETS => self.put_replica_set(entry),
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
            write::STATEFUL_SETS => {
                if let Some(set) = read::<StatefulSet>(resource, entry) {
                    self.owns(&set.metadata.uid, Controller::StatefulSet(entry.key.clone()));
                    self.stateful_sets.insert(entry.key.clone(), set);
                }
            }
            write::JOBS => {
                if let Some(job) = read::<Job>(resource, entry) {
                    self.owns(&job.metadata.uid, Controller::Job(entry.key.clone()));
                    self.jobs.insert(entry.key.clone(), job);
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
        if machine.on && machine.stage != Stage::Done && machine.failure.is_none() {
            self.joining.insert(name.clone(), kubeadm::next_step_at(workload, &machine));
        } else {
            self.joining.remove(&name);
        }
        if let Some(off_at) = machine.off_at {
            let lost_at = later(off_at, NODE_MONITOR_GRACE);
            self.due.insert((lost_at, Due::Lost(name.clone())));
            if let Some(gone_at) = machine.gone_at {
                self.due.insert((later(gone_at.max(lost_at), CLOUD_MONITOR_PERIOD), Due::Gone(name.clone())));
            }
        }
        self.machines.insert(name, machine);
    }

    fn put_node(&mut self, workload: &Workload, entry: &Entry) {
        let Some(node) = read::<Node>(write::NODES, entry) else { return };
        let name = entry.key.name.clone();
        if node.heard() == Some(Truth::False) {
            let after = durations::of(workload.0.durations.node_ready, workload.0.seed, &format!("ready {name}"));
            let at = node.metadata.created_at().checked_add(after).unwrap_or(Timestamp::MAX);
            self.due.insert((at, Due::Ready(name.clone())));
        }
        if drives_away(&node) {
            self.driven.insert(name.clone());
        }
        self.changed_nodes.insert(name.clone());
        self.nodes.insert(name, node);
        self.nodes_changed();
    }

    fn nodes_changed(&mut self) {
        self.schedule = true;
        self.dirty.extend(self.daemon_sets.keys().cloned().map(Controller::DaemonSet));
    }

    fn put_replica_set(&mut self, entry: &Entry) {
        let Some(set) = read::<ReplicaSet>(write::REPLICA_SETS, entry) else { return };
        self.owns(&set.metadata.uid, Controller::ReplicaSet(entry.key.clone()));
        if let Some(owner) = set.metadata.controller() {
            self.sets_of.entry(owner.into()).or_default().insert(entry.key.clone());
            self.touch(owner);
        }
        self.replica_sets.insert(entry.key.clone(), set);
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
            Some(node) => self.put_pod_on(node, key, &pod),
            None if pod.active() => {
                self.unscheduled.insert(key.clone());
                self.schedule |= pod.unschedulable().is_none();
            }
            None => {}
        }
        match pod.life() {
            Some(Life::Starts) => {
                let after = durations::of(workload.0.durations.pod_start, workload.0.seed, &format!("start {key}"));
                let at = pod.scheduled_at().checked_add(after).unwrap_or(Timestamp::MAX);
                self.wake(at, Due::Start(key.clone()));
            }
            Some(Life::ImageMissing { since }) => self.wake(later(since, PULL), Due::StopPulling(key.clone())),
            Some(Life::RunsUntil(at)) => self.wake(at, Due::Exit(key.clone())),
            Some(Life::RestartsAt(at)) => self.wake(at, Due::Restart(key.clone())),
            Some(Life::Runs | Life::ImageAwaited) | None => {}
        }
        if let Some(deadline) = pod.metadata.deletion_timestamp {
            let grace = SignedDuration::from_secs(pod.metadata.deletion_grace_period_seconds);
            let asked_at = deadline.checked_sub(grace).unwrap_or(deadline);
            self.due.insert((later(asked_at, termination::takes(entry)).min(deadline), Due::End(key.clone())));
        }
        let node = pod.spec.node_name.as_deref().filter(|_| !pod.ended());
        self.volumes.put_pod(key, node, pod.spec.claims(&key.namespace));
        self.pods.insert(key.clone(), pod);
    }

    fn put_pod_on(&mut self, node: &str, key: &Key, pod: &Pod) {
        self.pods_on.entry(node.into()).or_default().insert(key.clone());
        if pod.ended() {
            self.schedule |= !self.unscheduled.is_empty();
        } else {
            let asked = self.asked_of.entry(node.into()).or_insert(Room::NONE);
            *asked = asked.plus(pod.spec.room());
        }
        match self.nodes.get(node) {
            None => drop(self.ended.insert(key.clone())),
            Some(found) if drives_away(found) => drop(self.driven.insert(node.into())),
            Some(_) => {}
        }
    }

    pub(super) fn take(&mut self, resource: &str, key: &Key) {
        self.budgets.take(resource, key);
        self.volumes.take(resource, key);
        match resource {
            record::MACHINES => {
                self.machines.remove(&key.name);
                self.joining.remove(&key.name);
            }
            write::NODES => {
                self.nodes.remove(&key.name);
                self.driven.remove(&key.name);
                self.changed_nodes.remove(&key.name);
                // Nobody will ever hear of these again.
                self.ended.extend(self.pods_on.get(&key.name).into_iter().flatten().cloned());
                self.nodes_changed();
            }
            write::PODS => {
                self.take_pod(key);
                self.schedule |= !self.unscheduled.is_empty();
            }
            write::REPLICA_SETS => {
                let Some(set) = self.replica_sets.remove(key) else { return };
                self.controllers.remove(&set.metadata.uid);
                if let Some(owner) = set.metadata.controller() {
                    forget(&mut self.sets_of, owner, key);
                    self.touch(owner);
                }
            }
            _ => self.take_owner(resource, key),
        }
    }

    fn take_owner(&mut self, resource: &str, key: &Key) {
        let metadata = match resource {
            write::DAEMON_SETS => self.daemon_sets.remove(key).map(|set| set.metadata),
            write::DEPLOYMENTS => self.deployments.remove(key).map(|deployment| deployment.metadata),
            write::STATEFUL_SETS => self.stateful_sets.remove(key).map(|set| set.metadata),
            write::JOBS => self.jobs.remove(key).map(|job| job.metadata),
            _ => None,
        };
        if let Some(metadata) = metadata {
            self.controllers.remove(&metadata.uid);
        }
    }

    fn take_pod(&mut self, key: &Key) {
        self.unscheduled.remove(key);
        self.ended.remove(key);
        let Some(pod) = self.pods.remove(key) else { return };
        if let Some(node) = &pod.spec.node_name {
            forget(&mut self.pods_on, node, key);
            if !pod.ended()
                && let Some(asked) = self.asked_of.get_mut(node)
            {
                *asked = asked.minus(pod.spec.room());
            }
            if !self.pods_on.contains_key(node) {
                self.asked_of.remove(node);
            }
        }
        if let Some(owner) = pod.metadata.controller() {
            forget(&mut self.pods_of, owner, key);
            self.touch(owner);
        }
    }
}

/// Whether a node has a taint that pods may have to leave it for.
fn drives_away(node: &Node) -> bool {
    node.spec.taints.iter().any(|taint| &*taint.effect == Taint::NO_EXECUTE)
}

fn forget(index: &mut BTreeMap<Box<str>, BTreeSet<Key>>, under: &str, key: &Key) {
    if let Some(keys) = index.get_mut(under) {
        keys.remove(key);
        if keys.is_empty() {
            index.remove(under);
        }
    }
}

/// An object whose fields have types that no API server would have let in is as good as none.
fn read<T: DeserializeOwned>(resource: &str, entry: &Entry) -> Option<T> {
    serde_json::from_slice(&entry.json)
        .inspect_err(|error| tracing::error!(resource, key = %entry.key, %error, "an object cannot be read"))
        .ok()
}
