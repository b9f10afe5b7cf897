//! What is no object in reality, as records in the store: machines, and members of etcd. The API does not serve them; forks
//! carry them, and observers of the store see them change.
//!
//! A record is stored as `{"metadata": {"name": …}, "record": {…}}`, under the name of its node.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_api::name::NodeName;
use windlass_api::version::KubernetesVersion;
use windlass_apiserver::store::{Entry, Expect, Key, Range, Resource, Store};

use super::{Begins, Capacity};

/// The resource of [`Machine`].
pub const MACHINES: &str = "machines.sim.windlass.dev";
/// The resource of [`Member`].
pub const MEMBERS: &str = "members.etcd.sim.windlass.dev";

/// A machine that has booted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Machine {
    /// Its name, and that of its node.
    pub name: NodeName,
    /// What tells it from all others.
    #[serde(rename = "providerID")]
    pub provider_id: String,
    /// Its address.
    pub address: String,
    /// The kubelet on its disk. Its kubeadm is as old.
    pub kubelet: KubernetesVersion,
    /// What it does first.
    pub begins: Begins,
    /// When kubeadm began.
    pub booted_at: Timestamp,
    /// How far kubeadm is.
    pub stage: Stage,
    /// It is switched on. Once it is off, it stays off.
    pub on: bool,
    /// When it was switched off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off_at: Option<Timestamp>,
    /// When the infrastructure had it no more: it is not only off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone_at: Option<Timestamp>,
    /// How much of everything it has.
    #[serde(default)]
    pub capacity: Capacity,
    /// The container images on its disk.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<String>,
    /// The zone that it is in, where zones are told apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// What kubeadm was told.
    pub configuration: Configuration,
    /// Why kubeadm has given up, if it has: nobody starts it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// How far kubeadm is on a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Stage {
    /// It works, and nobody else notices.
    Begun,
    /// It has added a member to etcd, which starts.
    MemberAdded {
        /// When.
        at: Timestamp,
    },
    /// Its member of etcd has started as a learner, and is promoted when it has caught up.
    Learning {
        /// Since when.
        at: Timestamp,
    },
    /// The node is registered.
    Done,
}

/// What kubeadm is told, as far as others can see it afterwards.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Configuration {
    /// The labels that the kubelet gives its node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_labels: BTreeMap<String, String>,
    /// The taints of the node; kubeadm's own where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taints: Option<Vec<Value>>,
    /// The `ClusterConfiguration`, on the machine that begins the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<Value>,
    /// The phases that are left out there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skip_phases: Vec<String>,
}

/// A member of etcd.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its id.
    pub id: u64,
    /// The node that it runs on.
    pub name: NodeName,
    /// It does not count in the quorum yet.
    pub learner: bool,
    /// It has started. Until then etcd does not know its name.
    pub started: bool,
    /// It leads.
    pub leader: bool,
    /// The version in the tag of its image, once it has started and if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<KubernetesVersion>,
}

/// What is kept as a record.
pub trait Record: Serialize + DeserializeOwned {
    /// The resource that it is kept under.
    const RESOURCE: &str;

    /// The node that it belongs to.
    fn node(&self) -> &NodeName;
}

impl Record for Machine {
    const RESOURCE: &str = MACHINES;

    fn node(&self) -> &NodeName {
        &self.name
    }
}

impl Record for Member {
    const RESOURCE: &str = MEMBERS;

    fn node(&self) -> &NodeName {
        &self.name
    }
}

#[derive(Deserialize)]
struct Stored<T> {
    record: T,
}

/// The record in an entry; `None` where it is none of that type.
pub fn read<T: Record>(entry: &Entry) -> Option<T> {
    serde_json::from_slice::<Stored<T>>(&entry.json).ok().map(|stored| stored.record)
}

/// All records of a type, by node.
pub fn all<T: Record>(store: &Store) -> Vec<T> {
    let range = Range { namespace: None, after: None, limit: 0 };
    store.list(T::RESOURCE, range, |_| true).entries.iter().filter_map(|entry| read(entry)).collect()
}

/// The record of a node.
pub fn of<T: Record>(store: &Store, node: &NodeName) -> Option<T> {
    store.get(T::RESOURCE, &key(node)).as_deref().and_then(read)
}

/// Writes a record over the one of its node, if there is one. All writers hold the workload's lock.
pub(super) fn put<T: Record>(store: &Store, record: &T, now: Timestamp) {
    let key = key(record.node());
    let expect = match store.get(T::RESOURCE, &key) {
        Some(entry) => Expect::Revision(entry.revision),
        None => Expect::Absent,
    };
    let object = serde_json::json!({"metadata": {"name": record.node()}, "record": record});
    // Under the lock nobody can have been faster.
    if store.put(&Resource::from(T::RESOURCE), &key, expect, object, now).is_err() {
        tracing::error!(record = %key, resource = T::RESOURCE, "a record was written by somebody else");
    }
}

/// Removes the record of a node.
pub(super) fn remove<T: Record>(store: &Store, node: &NodeName, now: Timestamp) {
    let key = key(node);
    let Some(entry) = store.get(T::RESOURCE, &key) else { return };
    let last = entry.to_value("", "");
    if store.remove(&Resource::from(T::RESOURCE), &key, entry.revision, last, now).is_err() {
        tracing::error!(record = %key, resource = T::RESOURCE, "a record was removed by somebody else");
    }
}

fn key(node: &NodeName) -> Key {
    Key::new("", node.as_str())
}
