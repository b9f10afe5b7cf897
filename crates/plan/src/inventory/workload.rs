//! What a workload cluster says of its nodes, its add-ons and its etcd.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;
use windlass_api::name::{AddonName, NodeName};
use windlass_api::version::KubernetesVersion;

use super::AppliedAddons;
use crate::step::Revision;

/// What the workload cluster says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Workload {
    /// It has no API yet.
    NotYet,
    /// It has one, which did not answer.
    Unreachable {
        /// What went wrong.
        why: String,
    },
    /// It answers.
    Reachable {
        /// Its nodes.
        nodes: Vec<Node>,
        /// The objects of add-ons that were found, sorted by kind, namespace and name.
        addons: BTreeMap<AddonName, Vec<AddonObject>>,
        /// The members of etcd.
        etcd: Vec<EtcdMember>,
        /// The add-ons that somebody else has brought in, and their objects, as `Kind/name`.
        foreign: BTreeMap<AddonName, Vec<String>>,
        /// The record of what was applied, if there is one.
        applied: Option<AppliedAddons>,
    },
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Node {
    /// Its name.
    pub name: NodeName,
    /// It is one of the control plane.
    pub control_plane: bool,
    /// It is labelled as one: kubeadm does that last, and the Job waits for it.
    pub labelled: bool,
    /// The version of its kubelet.
    pub kubelet: KubernetesVersion,
    /// The distribution that it says it was made from.
    pub distribution: Option<KubernetesVersion>,
    /// It is ready.
    pub ready: bool,
}

/// An object of an add-on, as it is in the workload cluster: found by our label, whichever release it is of.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AddonObject {
    /// Which state of it was seen.
    pub revision: Revision,
    /// The whole of it, without `managedFields`.
    pub live: serde_json::Value,
}

/// A member of etcd.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EtcdMember {
    /// Its id.
    pub id: u64,
    /// The node that it runs on; empty while it has not started.
    pub name: String,
    /// It answers.
    pub healthy: bool,
    /// It does not vote yet.
    pub learner: bool,
    /// It leads.
    pub leader: bool,
    /// The version that it runs, where that is known.
    pub version: Option<KubernetesVersion>,
    /// What it warns of.
    pub alarms: BTreeSet<Alarm>,
}

/// What a member of etcd warns of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Alarm {
    /// It has no more space.
    NoSpace,
    /// Its data is not what the others have.
    Corrupt,
}

impl fmt::Display for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::NoSpace => "it has no more space",
            Self::Corrupt => "its data is corrupt",
        })
    }
}

impl EtcdMember {
    /// What people know it by: the name of its node, or its id in hexadecimal while it has not started.
    pub fn shown(&self) -> String {
        if self.name.is_empty() { format!("{:x}", self.id) } else { self.name.clone() }
    }

    /// It has started, it answers, and it votes.
    pub fn is_sound(&self) -> bool {
        self.healthy && !self.learner && !self.name.is_empty()
    }
}
