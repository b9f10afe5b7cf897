//! How simulators write objects: straight to the store, with the metadata that an API server would have given them.
//!
//! A write that finds the object changed is dropped: whoever was faster has woken the simulators, which look again.

use bytes::Bytes;
use http_body_util::Full;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tower::Service as _;
use windlass_apiserver::store::{Entry, Expect, Key, Range, Resource};
use windlass_apiserver::time;

use super::Workload;
use super::seen::suffix;

pub(super) const CLAIMS: &str = "persistentvolumeclaims";
pub(super) const CLUSTER_ROLES: &str = "clusterroles.rbac.authorization.k8s.io";
pub(super) const CLUSTER_ROLE_BINDINGS: &str = "clusterrolebindings.rbac.authorization.k8s.io";
pub(super) const CONFIG_MAPS: &str = "configmaps";
pub(super) const DAEMON_SETS: &str = "daemonsets.apps";
pub(super) const DEPLOYMENTS: &str = "deployments.apps";
pub(super) const JOBS: &str = "jobs.batch";
pub(super) const NODES: &str = "nodes";
pub(super) const PODS: &str = "pods";
pub(super) const REPLICA_SETS: &str = "replicasets.apps";
pub(super) const REVISIONS: &str = "controllerrevisions.apps";
pub(super) const ROLES: &str = "roles.rbac.authorization.k8s.io";
pub(super) const ROLE_BINDINGS: &str = "rolebindings.rbac.authorization.k8s.io";
pub(super) const SERVICES: &str = "services";
pub(super) const SERVICE_ACCOUNTS: &str = "serviceaccounts";
pub(super) const STATEFUL_SETS: &str = "statefulsets.apps";

/// How long a pod has to end, unless it says otherwise.
const GRACE_SECONDS: i64 = 30;

impl Workload {
    pub(super) fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    /// Creates an object, unless there is one of that name.
    pub(super) fn create(&self, resource: &str, key: &Key, mut object: Value) {
        let now = self.now();
        let metadata = &mut object["metadata"];
        metadata["name"] = (*key.name).into();
        if !key.namespace.is_empty() {
            metadata["namespace"] = (*key.namespace).into();
        }
        metadata["uid"] = self.uid(resource, key, now).into();
        metadata["creationTimestamp"] = time::format(now).into();
        if matches!(resource, PODS | REPLICA_SETS | DAEMON_SETS | DEPLOYMENTS) {
            metadata["generation"] = 1.into();
        }
        drop(self.0.server.store().put(&Resource::from(resource), key, Expect::Absent, object, now));
    }

    /// A uid that a fork would give, too: it follows from what is created, and when.
    fn uid(&self, resource: &str, key: &Key, now: Timestamp) -> String {
        self.0.seed.child("uid").stream(&format!("{resource} {key} {now}")).uuid()
    }

    /// A name for a pod of a controller that no pod has.
    pub(super) fn free_pod_name(&self, controller: &Key, node: &str) -> Key {
        let now = self.now();
        let name = |tries: u32| {
            let chance = self.0.seed.child("pod").stream(&format!("{controller} {node} {now} {tries}")).u64();
            Key::new(&controller.namespace, &format!("{}-{}", controller.name, suffix(chance, 5)))
        };
        let mut names = (0..).map(name);
        let free = names.find(|name| self.0.server.store().get(PODS, name).is_none());
        free.unwrap_or_else(|| controller.clone())
    }

    /// Edits an object, if it is there.
    pub(super) fn change(&self, resource: &str, key: &Key, edit: impl FnOnce(&mut Value)) {
        let store = self.0.server.store();
        let Some(entry) = store.get(resource, key) else { return };
        let mut object = entry.to_value("", "");
        edit(&mut object);
        drop(store.put(&Resource::from(resource), key, Expect::Revision(entry.revision), object, self.now()));
    }

    /// Asks for a pod that is on a node to end.
    pub(super) fn delete_pod(&self, key: &Key) {
        let now = self.now();
        self.change(PODS, key, |object| {
            let grace = object["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(GRACE_SECONDS);
            let at = now.checked_add(SignedDuration::from_secs(grace)).unwrap_or(now);
            object["metadata"]["deletionTimestamp"] = time::format(at).into();
            object["metadata"]["deletionGracePeriodSeconds"] = grace.into();
        });
    }

    /// Removes a pod that has ended. Where something waits for that, the API server is told, which knows what follows.
    pub(super) async fn remove_pod(&self, key: &Key) {
        let store = self.0.server.store();
        let Some(entry) = store.get(PODS, key) else { return };
        if !self.is_waited_for(&entry) {
            let last = entry.to_value("", "");
            drop(store.remove(&Resource::from(PODS), key, entry.revision, last, self.now()));
            return;
        }
        let Key { namespace, name } = key;
        let path =
            format!("/api/v1/namespaces/{namespace}/pods/{name}?gracePeriodSeconds=0&propagationPolicy=Background");
        match http::Request::delete(&path).body(Full::<Bytes>::default()) {
            Ok(request) => match self.0.server.clone().call(request).await {
                Ok(answer) if answer.status().is_success() => {}
                Ok(answer) => {
                    tracing::debug!(pod = %key, status = %answer.status(), "a pod that ended was not removed");
                }
                Err(never) => match never {},
            },
            Err(error) => tracing::error!(pod = %key, %error, "a pod has no address"),
        }
    }

    /// Whether an owner is deleted only after the pod, or its namespace is being emptied.
    fn is_waited_for(&self, pod: &Entry) -> bool {
        let store = self.0.server.store();
        let deleting = |resource: &str, key: &Key| store.get(resource, key).is_some_and(|entry| entry.deleting);
        let namespace = || deleting("namespaces", &Key::new("", &pod.key.namespace));
        let owner = || {
            let all = Range { namespace: Some(&pod.key.namespace), after: None, limit: 0 };
            let owns = |entry: &Entry| entry.deleting && pod.owners.iter().any(|owner| owner.uid == entry.uid);
            [DAEMON_SETS, REPLICA_SETS, STATEFUL_SETS, JOBS]
                .iter()
                .any(|resource| !store.list(resource, all, owns).entries.is_empty())
        };
        pod.owners.iter().any(|owner| owner.blocks) && owner() || namespace()
    }
}

/// Sets a condition, and when it changed.
pub(super) fn set_condition(
    object: &mut Value,
    type_: &str,
    status: &str,
    reason: &str,
    message: &str,
    now: Timestamp,
) {
    let mut condition = json!({"type": type_, "status": status, "lastTransitionTime": time::format(now)});
    if !reason.is_empty() {
        condition["reason"] = reason.into();
        condition["message"] = message.into();
    }
    if !object["status"]["conditions"].is_array() {
        object["status"]["conditions"] = json!([]);
    }
    let Value::Array(conditions) = &mut object["status"]["conditions"] else { return };
    match conditions.iter_mut().find(|condition| condition["type"] == type_) {
        Some(found) if found["status"] == status => {
            condition["lastTransitionTime"] = found["lastTransitionTime"].take();
            *found = condition;
        }
        Some(found) => *found = condition,
        None => conditions.push(condition),
    }
}

/// The reference to the controller of an object.
pub(super) fn controlled_by(api_version: &str, kind: &str, name: &str, uid: &str) -> Value {
    json!([{
        "apiVersion": api_version, "kind": kind, "name": name, "uid": uid,
        "controller": true, "blockOwnerDeletion": true,
    }])
}
