//! What others did before, put back between Windlass and what it talks to: to see that a sweep would find it.
//!
//! Nobody but a test asks for it: whoever runs clusters has no way to.

mod aged;
mod answer;
mod certificates;
mod change;
mod reads;
mod sent;
mod twice;

use windlass_controller::access::Member;
use windlass_plan::gate::Gate;

pub(crate) use aged::{Aged, Memory};

/// A way in which such systems were broken once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Old {
    /// A rule of safety is not in force.
    Without(Gate),
    /// What is written or deleted is so whatever has become of it since it was read.
    NoPreconditions,
    /// The owner of a Secret is known by name, and its uid is that of somebody else.
    OwnersByName,
    /// Whoever makes the configuration of a machine of the control plane makes it the only owner of the certificates.
    OwnedByConfigurations,
    /// Certificates are taken to belong to the Cluster, whomever they belong to.
    OwnersTakenForGranted,
    /// Where a name is taken, another one is drawn: a creation that comes twice makes two.
    DrawnNames,
    /// A creation that was not answered is sent again as it is, and the server draws another name.
    BlindRetries,
    /// The controllers look again before their caches have seen what they wrote.
    WritesForgotten,
    /// The upgrader lists machines from a cache that is one look behind.
    ListsOneBehind,
    /// The upgrader knows the members of etcd from a cache that is one look behind.
    MembersOneBehind,
    /// A machine whose node is not ready has no member of etcd that anybody would have to remove.
    NodelessMembersStay,
    /// A member of etcd that has never started is not seen.
    GhostsUnseen,
    /// The upgrader takes the first answer of the workload cluster that does not come for a refusal.
    NoPatience,
    /// That a cluster is paused is looked for in another field than the one that says so.
    PauseElsewhere,
    /// Whether a cluster is paused is read from what was seen of it at first.
    PauseUnheard,
    /// A cluster that was paused stays so for whoever has seen it.
    PausedForEver,
    /// The upgrader takes kubeadm's record to be as it read it first.
    RecordReadOnce,
    /// The configuration of a machine is written after the machine: nobody waits for the first of the two writes.
    ConfigurationLast,
    /// A certificate and its key are written one after the other.
    HalfSecrets,
    /// The names of replacements are cut where they begin to differ.
    CutNames,
    /// kube-proxy is not bound to nodes of its version.
    UnboundProxy,
    /// Four keys are made at every look, whether or not anybody needs one.
    KeysAtEveryLook,
    /// What was applied last is applied again at every look, and counts as changed each time.
    AppliesAgain,
}

impl Old {
    /// The rule that is not in force.
    pub(crate) fn left_out(self) -> Option<Gate> {
        match self {
            Self::Without(gate) => Some(gate),
            _ => None,
        }
    }

    /// Requests would have been others.
    fn is_of_requests(self) -> bool {
        !matches!(self, Self::Without(_) | Self::MembersOneBehind | Self::NodelessMembersStay | Self::GhostsUnseen)
    }

    /// The members of etcd as they would have been known. `is_ready` says it of the node of a name.
    pub(crate) fn members(self, members: Vec<Member>, memory: &Memory, is_ready: impl Fn(&str) -> bool) -> Vec<Member> {
        match self {
            Self::GhostsUnseen => members.into_iter().filter(|member| !member.name.is_empty()).collect(),
            Self::NodelessMembersStay => members.into_iter().filter(|member| is_ready(&member.name)).collect(),
            Self::MembersOneBehind => memory.one_behind(members),
            _ => members,
        }
    }
}
