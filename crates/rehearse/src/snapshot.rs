//! A management cluster and its workload clusters, read once and kept: what a rehearsal of a real update starts from.
//!
//! Only reads are made. Of Secrets everything is kept but what is in them: each value is replaced by a stand-in.

mod kinds;
mod restore;
mod take;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_api::name::NamespacedName;

pub use restore::RestoreError;
pub use take::{TakeError, take};

/// What was read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// When.
    pub taken_at: Timestamp,
    /// The objects of the management cluster.
    pub management: Vec<Value>,
    /// The workload clusters.
    pub workloads: BTreeMap<NamespacedName, WorkloadSnapshot>,
    /// What could not be read.
    pub gaps: Vec<Gap>,
}

/// What was read of a workload cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadSnapshot {
    /// Its objects.
    pub objects: Vec<Value>,
    /// The members of its etcd.
    pub members: Vec<EtcdMember>,
}

/// A member of etcd.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdMember {
    /// Its id.
    pub id: u64,
    /// The node that it runs on; empty while it has not started.
    pub name: String,
    /// It does not count in the quorum yet.
    pub learner: bool,
    /// It answers.
    pub healthy: bool,
    /// It leads.
    pub leader: bool,
}

/// Something that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Gap {
    /// What: `machines of the management cluster`, `the workload cluster default/my-tkc`.
    pub what: String,
    /// Why not.
    pub why: String,
}
