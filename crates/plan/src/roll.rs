//! The loop that replaces the machines of a control plane, one step at a time.
//!
//! ```text
//! prepare    what the certificates and the workload cluster need before any machine joins
//! mark       each machine that is to be replaced carries the id of the update and the base of its name
//! replace    create, wait for health, move the lead, remove the member, delete, forget
//! unmark     the id goes, the base of the name stays
//! ```
//!
//! [`next`] is asked again after every step and remembers nothing: where an attempt is follows from what is observed, under
//! names that follow from its id. A run that was killed after any write is carried on by the next one.
//!
//! **Invariant**: a machine is deleted only while another one that takes its place is known to be healthy; a machine that has
//! no such other is never deleted, whatever state it is in.
//!
//! [`abort::next`] goes the other way, as long as there is one.

pub mod abort;
mod decision;
mod etcd;
mod outcome;
mod prepare;
mod replace;
mod rest;
mod row;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use windlass_api::name::{ClusterName, ClusterSecret, MachineName, NodeName, UpdateId};
use windlass_api::version::KubernetesVersion;

use crate::gate::Gates;
use crate::inventory::{EtcdMember, Machine};

pub use abort::{Irrevocable, irrevocable};
pub use decision::{has_ended, next};
pub use outcome::{Failure, Next, RollStep, Wait};
pub use row::{in_flight, replacement_names};

/// How long a machine is still looked at that had its time before the run began: it may have become healthy after all, and
/// the workload API may not answer for a moment.
pub const LAST_LOOK: SignedDuration = SignedDuration::from_secs(30);

/// All that the next step depends on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RollInput {
    /// What is being attempted.
    pub attempt: Attempt,
    /// What was observed.
    pub observed: Observed,
    /// When this run began. A machine whose time was over by then is made anew; one that takes too long while the run looks on
    /// ends the run, so that attempts are counted by the Job.
    pub began: Timestamp,
    /// When this run found that nobody held the cluster any more; `None` if it never found it held. While somebody does, nobody
    /// works on a machine that comes: its time is counted anew from here.
    pub released: Option<Timestamp>,
    /// What this run was last told to wait for, if that was the last thing that it was told. A run that has just begun has
    /// waited for nothing.
    pub waiting: Option<Waiting>,
    /// The time.
    pub now: Timestamp,
    /// The rules that are in force.
    pub gates: Gates,
}

/// What is being attempted. It is the same for every run of an update's Job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Attempt {
    /// The cluster.
    pub cluster: ClusterName,
    /// The update.
    pub id: UpdateId,
    /// The version that all machines will have.
    pub version: KubernetesVersion,
    /// How long a machine may take to become healthy, from its creation on, and how long one may take to go.
    pub machine_timeout: SignedDuration,
    /// How long the control plane may take to come to rest, or etcd to be well, before the run fails.
    pub etcd_timeout: SignedDuration,
}

/// What a run waits for, and since when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Waiting {
    /// For what. What is missing may differ by now: [`Wait::is_same`].
    pub wait: Wait,
    /// Since when.
    pub since: Timestamp,
}

/// What was observed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Observed {
    /// Why nobody may touch the cluster, if so.
    pub hands_off: Option<HandsOff>,
    /// The machines of the control plane. The one that is [`in_flight`] is `Ready` only if its node and its programs are, too;
    /// for the others the word of their Machine is enough.
    pub machines: Vec<Machine>,
    /// What the machines wait for that are being deleted, in words, as far as anybody says.
    pub leaving: BTreeMap<MachineName, String>,
    /// What there is under the names of replacements, besides Machines. A name that is not in here has nothing, or was not
    /// looked at: creating tells. Whoever gives up has looked at all of them.
    pub parts: BTreeMap<MachineName, Parts>,
    /// The members of etcd, or why they are not known.
    pub etcd: Result<Vec<EtcdMember>, String>,
    /// The certificates that are there, and who owns them.
    pub certificates: BTreeMap<ClusterSecret, Ownership>,
    /// What is not yet as it should be in the workload cluster.
    pub unprepared: BTreeSet<Preparation>,
    /// The nodes that kubeadm's `ClusterStatus` names as API servers; from 1.22 on there is none.
    pub endpoints: BTreeSet<NodeName>,
}

/// Why nobody may touch the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum HandsOff {
    /// Somebody holds it, and will let go of it.
    Held {
        /// By what: `spec.paused of Cluster/my-tkc`.
        by: String,
    },
    /// It will never be again what the attempt is for.
    Lost {
        /// What it is instead: `being deleted`.
        state: String,
    },
}

impl HandsOff {
    /// By what it is held, or what it is instead.
    pub fn by(&self) -> &str {
        match self {
            Self::Held { by } => by,
            Self::Lost { state } => state,
        }
    }
}

/// What a machine is made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Parts {
    /// Its infrastructure.
    pub infrastructure: PartState,
    /// Its bootstrap configuration.
    pub configuration: PartState,
}

impl Parts {
    /// Nothing is there, as far as is known.
    pub const NONE: Self = Self { infrastructure: PartState::Absent, configuration: PartState::Absent };
}

/// One of the objects that a machine is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Part {
    /// The infrastructure.
    Infrastructure,
    /// The bootstrap configuration.
    Configuration,
    /// The Machine, which refers to both.
    Machine,
}

/// How an object is that a machine is made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum PartState {
    /// It is not there.
    Absent,
    /// It is there, made by this attempt for a machine that is still to be created.
    Present,
    /// It is of an earlier try, and on the way out.
    Leaving,
    /// It has the name that this attempt gives it, and is not of this attempt.
    Foreign {
        /// What tells.
        why: String,
    },
}

/// Who owns a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Ownership {
    /// The live Cluster, by uid (and maybe others).
    Cluster,
    /// Only others, or nobody: it goes with them.
    Others,
}

/// Something that the workload cluster needs before any machine of the new version joins, in the order in which it is made so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Preparation {
    /// The configuration of kubelets of that minor.
    KubeletConfig,
    /// The right of joining nodes to read it.
    KubeletConfigAccess,
    /// The right of joining nodes to read nodes.
    NodesAccess,
    /// kubeadm's configuration names the version and the images of the release. Last: from here on a machine that joins has
    /// the new version, so everything that it needs has to be there.
    KubeadmConfig,
}

impl fmt::Display for Preparation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::KubeletConfig => "copy the configuration of kubelets for the new minor",
            Self::KubeletConfigAccess => "let joining nodes read the configuration of kubelets",
            Self::NodesAccess => "let joining nodes read nodes",
            Self::KubeadmConfig => "write the new version into kubeadm's configuration",
        })
    }
}
