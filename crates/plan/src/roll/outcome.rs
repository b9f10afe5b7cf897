//! What a decision can be.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use windlass_api::name::{ClusterSecret, MachineName, NodeName, UpdateId};

use super::{Attempt, Irrevocable, Part, Preparation};
use crate::gate::Blocked;
use crate::inventory::Milestone;
use crate::step::Revision;

/// What is said of something that is to go, and says nothing itself.
pub(super) const STILL_THERE: &str = "it is still there";

/// What to do next.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[must_use]
pub enum Next {
    /// One write.
    Do(RollStep),
    /// Something else has to happen first, until a time.
    Wait {
        /// For what.
        wait: Wait,
        /// When waiting becomes failing, or something else is done about it.
        until: Timestamp,
    },
    /// A rule forbids to touch the cluster at all.
    Blocked(Blocked),
    /// This run gives up. The Job counts it as an attempt.
    Failed(Failure),
    /// Every machine is as it should be, and nothing of the attempt is left.
    Done,
}

/// One write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RollStep {
    /// Makes the live Cluster an owner of a certificate.
    OwnCertificate {
        /// Which.
        secret: ClusterSecret,
    },
    /// Makes one thing in the workload cluster as it should be.
    Prepare {
        /// What.
        preparation: Preparation,
    },
    /// Takes a node that is not there out of kubeadm's `ClusterStatus`.
    ForgetEndpoint {
        /// Which.
        node: NodeName,
    },
    /// Marks a machine that is to be replaced.
    Mark {
        /// Which.
        machine: MachineName,
        /// The base of its name, which is written down too where it is not yet.
        base: MachineName,
    },
    /// Creates the infrastructure of a replacement.
    CreateInfrastructure {
        /// The machine that it takes the place of.
        original: MachineName,
        /// Its name.
        name: MachineName,
    },
    /// Creates the bootstrap configuration of a replacement.
    CreateConfiguration {
        /// The machine that it takes the place of.
        original: MachineName,
        /// Its name.
        name: MachineName,
    },
    /// Creates the Machine of a replacement.
    CreateMachine {
        /// The machine that it takes the place of.
        original: MachineName,
        /// Its name.
        name: MachineName,
    },
    /// Makes another member of etcd lead.
    MoveLeader {
        /// Who.
        to: u64,
    },
    /// Removes a member of etcd.
    RemoveMember {
        /// Which.
        id: u64,
    },
    /// Deletes a machine in the state that was seen.
    DeleteMachine {
        /// Which.
        machine: MachineName,
        /// In which state.
        expect: Revision,
    },
    /// Takes the id of the attempt from a machine.
    Unmark {
        /// Which.
        machine: MachineName,
    },
    /// Deletes something that a machine was to be made from, and that no machine was.
    DeletePart {
        /// Under which name.
        machine: MachineName,
        /// What.
        part: Part,
    },
    /// Writes the version that the machines have into kubeadm's configuration again.
    RestoreKubeadmConfig,
}

impl fmt::Display for RollStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OwnCertificate { secret } => write!(f, "make the cluster an owner of its Secret {secret}"),
            Self::Prepare { preparation } => write!(f, "{preparation}"),
            Self::ForgetEndpoint { node } => write!(f, "take the node {node} out of kubeadm's ClusterStatus"),
            Self::Mark { machine, .. } => write!(f, "mark the machine {machine}"),
            Self::CreateInfrastructure { original, name } => {
                write!(f, "create the infrastructure {name}, in the place of {original}")
            }
            Self::CreateConfiguration { original, name } => {
                write!(f, "create the configuration {name}, in the place of {original}")
            }
            Self::CreateMachine { original, name } => {
                write!(f, "create the machine {name}, in the place of {original}")
            }
            Self::MoveLeader { to } => write!(f, "make the member {to:x} of etcd lead"),
            Self::RemoveMember { id } => write!(f, "remove the member {id:x} of etcd"),
            Self::DeleteMachine { machine, .. } => write!(f, "delete the machine {machine}"),
            Self::Unmark { machine } => write!(f, "take the mark from the machine {machine}"),
            Self::DeletePart { machine, part: Part::Infrastructure } => {
                write!(f, "delete the infrastructure {machine}, of which no machine was made")
            }
            Self::DeletePart { machine, .. } => {
                write!(f, "delete the configuration {machine}, of which no machine was made")
            }
            Self::RestoreKubeadmConfig => f.write_str("write the old version into kubeadm's configuration again"),
        }
    }
}

/// What has to happen first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Wait {
    /// A replacement becomes healthy.
    Healthy {
        /// Which.
        machine: MachineName,
        /// What it does not have yet; `None` if it has all and is not well.
        awaits: Option<Milestone>,
        /// What is missing, in words.
        missing: String,
    },
    /// The control plane comes to rest: every machine is ready, and etcd is made of exactly these machines.
    AtRest {
        /// What is missing, in words.
        missing: String,
    },
    /// etcd can do without the member of a machine.
    Etcd {
        /// Without which.
        without: MachineName,
        /// What is missing, in words.
        missing: String,
    },
    /// A machine goes.
    Gone {
        /// Which.
        machine: MachineName,
        /// What it waits for, in words.
        missing: String,
    },
    /// Whoever holds the cluster lets go of it. There is no end to this.
    Released {
        /// By what it is held.
        by: String,
    },
    /// What an earlier try left goes.
    PartGone {
        /// Of which machine.
        machine: MachineName,
        /// Which part of it.
        part: Part,
    },
}

impl Wait {
    /// Whether both are for the same thing, whatever is missing of it: time goes on being counted.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Healthy { machine: one, .. }, Self::Healthy { machine: another, .. })
            | (Self::Etcd { without: one, .. }, Self::Etcd { without: another, .. })
            | (Self::Gone { machine: one, .. }, Self::Gone { machine: another, .. }) => one == another,
            (Self::AtRest { .. }, Self::AtRest { .. }) | (Self::Released { .. }, Self::Released { .. }) => true,
            (Self::PartGone { .. }, Self::PartGone { .. }) => self == other,
            (
                Self::Healthy { .. }
                | Self::Etcd { .. }
                | Self::Gone { .. }
                | Self::AtRest { .. }
                | Self::Released { .. }
                | Self::PartGone { .. },
                _,
            ) => false,
        }
    }

    /// How long it may take.
    pub fn patience(&self, attempt: &Attempt) -> SignedDuration {
        match self {
            Self::Healthy { .. } | Self::Gone { .. } => attempt.machine_timeout,
            Self::AtRest { .. } | Self::Etcd { .. } | Self::PartGone { .. } => attempt.etcd_timeout,
            Self::Released { .. } => SignedDuration::MAX,
        }
    }

    /// What is missing, in words.
    pub fn missing(&self) -> &str {
        match self {
            Self::Healthy { missing, .. }
            | Self::AtRest { missing }
            | Self::Etcd { missing, .. }
            | Self::Gone { missing, .. } => missing,
            Self::PartGone { .. } => STILL_THERE,
            Self::Released { by } => by,
        }
    }
}

/// Why a run gives up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Failure {
    /// Something took too long.
    TimedOut {
        /// What.
        wait: Wait,
    },
    /// A replacement is not well, and nothing is left that could stand in for it while it is made anew. It is never deleted:
    /// it may be all that there is.
    ReplacementLost {
        /// Which.
        machine: MachineName,
        /// Why it cannot be made anew.
        why: String,
    },
    /// There are no machines.
    NoMachines,
    /// A machine carries the id of another update.
    ForeignAttempt {
        /// Which.
        machine: MachineName,
        /// Whose.
        theirs: UpdateId,
    },
    /// Two machines have the same base of their names: one of them would have no replacement.
    SharedBase {
        /// The one.
        first: MachineName,
        /// The other.
        second: MachineName,
        /// What both have.
        base: MachineName,
    },
    /// A certificate is missing.
    CertificateMissing {
        /// Which.
        secret: ClusterSecret,
    },
    /// An object has the name of a replacement and is not of this attempt.
    Foreign {
        /// Which machine's.
        machine: MachineName,
        /// Which part of it.
        part: Part,
        /// What tells.
        why: String,
    },
    /// The attempt cannot be given up any more.
    Irrevocable {
        /// Why not.
        why: Irrevocable,
    },
}
