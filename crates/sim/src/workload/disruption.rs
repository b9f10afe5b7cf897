//! The disruption controller: how many pods of each `PodDisruptionBudget` may be evicted now.
//!
//! The API server spends what a budget allows when it evicts, and lists the pod as disrupted; this controller counts again when
//! pods or those who own them change. The arithmetic is [`eviction::status`]'s.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use windlass_apiserver::builtin::eviction;
use windlass_apiserver::store::{Key, Range, Store};

use super::Workload;
use super::view::View;
use super::write::{DEPLOYMENTS, PODS, REPLICA_SETS, STATEFUL_SETS};

pub(super) const BUDGETS: &str = "poddisruptionbudgets.policy";
const REPLICATION_CONTROLLERS: &str = "replicationcontrollers";

/// The budgets there are, and which of them are to be counted again.
#[derive(Debug, Default)]
pub(super) struct Budgets {
    known: BTreeSet<Key>,
    dirty: BTreeSet<Key>,
}

impl Budgets {
    /// Something is there, or has changed.
    pub(super) fn put(&mut self, resource: &str, key: &Key) {
        if resource == BUDGETS {
            self.known.insert(key.clone());
            self.dirty.insert(key.clone());
        } else {
            self.touch(resource, key);
        }
    }

    /// Something is gone.
    pub(super) fn take(&mut self, resource: &str, key: &Key) {
        if resource == BUDGETS {
            self.known.remove(key);
            self.dirty.remove(key);
        } else {
            self.touch(resource, key);
        }
    }

    /// What budgets count has changed. Most clusters have none, and most namespaces of the others neither.
    fn touch(&mut self, resource: &str, key: &Key) {
        let counts = matches!(resource, PODS | DEPLOYMENTS | REPLICA_SETS | STATEFUL_SETS | REPLICATION_CONTROLLERS);
        if counts && !self.known.is_empty() {
            let beside = self.known.iter().filter(|budget| budget.namespace == key.namespace);
            self.dirty.extend(beside.cloned());
        }
    }
}

/// Counts again what has changed.
pub(super) fn sync(workload: &Workload, view: &mut View) {
    let dirty = std::mem::take(&mut view.budgets.dirty);
    let mut pods: BTreeMap<Box<str>, Vec<Value>> = BTreeMap::new();
    for key in dirty {
        let store = workload.server().store();
        let Some(entry) = store.get(BUDGETS, &key) else { continue };
        let budget = entry.look();
        let here = pods.entry(key.namespace.clone()).or_insert_with(|| all(store, &key.namespace));
        let selected: Vec<Value> = here.iter().filter(|pod| eviction::selects(&budget, pod)).cloned().collect();
        let expected = expected(store, &key.namespace, &selected);
        let status = eviction::status(&budget, &selected, expected, workload.now());
        if budget["status"] != status {
            workload.change(BUDGETS, &key, |object| object["status"] = status);
        }
    }
}

fn all(store: &Store, namespace: &str) -> Vec<Value> {
    let range = Range { namespace: Some(namespace), after: None, limit: 0 };
    store.list(PODS, range, |_| true).entries.iter().map(|entry| entry.to_value("", "")).collect()
}

/// How many pods those who own these are to have altogether. Pods that nobody owns, or somebody without a scale, do not count.
fn expected(store: &Store, namespace: &str, pods: &[Value]) -> i64 {
    let owners = pods.iter().filter_map(|pod| scaled(store, namespace, pod));
    let owners: BTreeMap<String, i64> = owners.collect();
    owners.values().sum()
}

/// The uid of whoever decides how many pods like this one there are, and how many those are.
fn scaled(store: &Store, namespace: &str, pod: &Value) -> Option<(String, i64)> {
    let get = |object: &Value| {
        let owner = controller(object)?;
        let resource = match owner["kind"].as_str()? {
            "Deployment" => DEPLOYMENTS,
            "ReplicaSet" => REPLICA_SETS,
            "StatefulSet" => STATEFUL_SETS,
            "ReplicationController" => REPLICATION_CONTROLLERS,
            _ => return None,
        };
        store.get(resource, &Key::new(namespace, owner["name"].as_str()?)).map(|entry| entry.to_value("", ""))
    };
    let owner = get(pod)?;
    // A ReplicaSet has as many as its Deployment has told it, which is what people have told the Deployment.
    let owner = get(&owner).unwrap_or(owner);
    let uid = owner["metadata"]["uid"].as_str()?.to_owned();
    Some((uid, owner["spec"]["replicas"].as_i64().unwrap_or(1)))
}

fn controller(object: &Value) -> Option<&Value> {
    object["metadata"]["ownerReferences"].as_array()?.iter().find(|owner| owner["controller"] == true)
}
