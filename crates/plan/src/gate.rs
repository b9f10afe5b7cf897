//! Safety rules, one file each, and the refusals that they give.

mod a_whole_node_stays;
mod blocked;
mod certificates_present;
mod consent;
mod control_plane_healthy;
mod etcd_quorum;
mod etcd_step;
mod join_at_control_plane_version;
mod kubelets_not_too_old;
mod last_voter;
mod leader_moves_first;
mod member_change;
mod member_leaves_first;
mod members_are_machines;
mod membership_known;
mod no_alarms;
mod no_gaps;
mod no_retarget;
mod not_paused;
mod one_attempt;
mod one_control_plane_update;
mod one_machine_at_a_time;
mod one_member_change;
mod packages_first;
mod pool_moves;
mod proxy_not_ahead;
mod replacement_healthy;
mod roll;
mod sick_member_first;
mod version_path;
mod worker_order;

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::Serialize;

pub use a_whole_node_stays::a_whole_node_stays;
pub use blocked::Blocked;
pub(crate) use blocked::by_kubectl;
pub use certificates_present::certificates_present;
pub use consent::{approval, consent};
pub use control_plane_healthy::control_plane_healthy;
pub(crate) use control_plane_healthy::not_ready;
pub use etcd_quorum::etcd_quorum;
pub use etcd_step::etcd_step;
pub use join_at_control_plane_version::join_at_control_plane_version;
pub use kubelets_not_too_old::kubelets_not_too_old;
pub use last_voter::last_voter;
pub use leader_moves_first::{leader_moves_first, may_lead};
pub use member_change::MemberChange;
pub use member_leaves_first::member_leaves_first;
pub use members_are_machines::members_are_machines;
pub use membership_known::membership_known;
pub use no_alarms::no_alarms;
pub use no_gaps::no_gaps;
pub use no_retarget::no_retarget;
pub use not_paused::not_paused;
pub use one_attempt::{one_attempt, one_version};
pub use one_control_plane_update::one_control_plane_update;
pub use one_machine_at_a_time::one_machine_at_a_time;
pub use one_member_change::one_member_change;
pub use packages_first::packages_first;
pub(crate) use pool_moves::gave_up;
pub use pool_moves::pool_moves;
pub use proxy_not_ahead::proxy_not_ahead;
pub use replacement_healthy::replacement_healthy;
pub use roll::roll_step;
pub use sick_member_first::sick_member_first;
pub use version_path::version_path;
pub use worker_order::worker_order;

/// A safety rule, by its name. [`Gates`] says which are in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gate {
    /// Versions go up, one minor at a time.
    VersionPath,
    /// Nothing is left behind further than API servers support it.
    KubeletsNotTooOld,
    /// No kube-proxy runs ahead of an API server.
    ProxyNotAhead,
    /// Workers join a control plane of their own minor, and one that is at rest.
    JoinAtControlPlaneVersion,
    /// etcd goes up by one minor at a time, and from a patch that is known to work.
    EtcdStep,
    /// etcd keeps its quorum, whatever else goes wrong meanwhile.
    EtcdQuorum,
    /// The members of etcd change one at a time.
    OneMemberChange,
    /// What does not answer leaves etcd before anything else changes in it.
    SickMemberFirst,
    /// Who leads etcd hands that on before it goes.
    LeaderMovesFirst,
    /// A machine leaves etcd before it goes.
    MemberLeavesFirst,
    /// etcd is made of the machines of the control plane, and of nothing else.
    MembersAreMachines,
    /// A member that has not started is removed only when no machine is left that could start it.
    MembershipKnown,
    /// The last voter of etcd never goes, and the last but one only while both answer.
    LastVoter,
    /// Nothing changes in a control plane whose etcd raises an alarm.
    NoAlarms,
    /// A control plane changes by one machine at a time.
    OneMachineAtATime,
    /// The control plane changes only while all of its machines are well.
    ControlPlaneHealthy,
    /// One machine of the control plane with all its programs well is left, whatever goes.
    AWholeNodeStays,
    /// Of a machine and the one that takes its place, one is always well.
    ReplacementHealthy,
    /// One update of a control plane at a time, and none after one that failed.
    OneControlPlaneUpdate,
    /// A machine belongs to one update until that lets go of it.
    OneAttempt,
    /// No update changes its target on the way.
    NoRetarget,
    /// The four certificates are there before any machine joins.
    CertificatesPresent,
    /// Machines of the control plane are replaced only when every package is at the target and well.
    PackagesFirst,
    /// Workers never run ahead of the control plane.
    WorkerOrder,
    /// What is paused is left alone.
    NotPaused,
    /// No decision is made across a gap in what was observed.
    NoGaps,
    /// No machine is touched beside a pool of workers that has given up moving.
    PoolMoves,
    /// What only Windlass asks for, and what a namespace wants approved, is begun only when somebody has agreed to just that.
    Consent,
}

impl Gate {
    /// All of them.
    pub const ALL: [Self; 28] = [
        Self::VersionPath,
        Self::KubeletsNotTooOld,
        Self::ProxyNotAhead,
        Self::JoinAtControlPlaneVersion,
        Self::EtcdStep,
        Self::EtcdQuorum,
        Self::OneMemberChange,
        Self::SickMemberFirst,
        Self::LeaderMovesFirst,
        Self::MemberLeavesFirst,
        Self::MembersAreMachines,
        Self::MembershipKnown,
        Self::LastVoter,
        Self::NoAlarms,
        Self::OneMachineAtATime,
        Self::ControlPlaneHealthy,
        Self::AWholeNodeStays,
        Self::ReplacementHealthy,
        Self::OneControlPlaneUpdate,
        Self::OneAttempt,
        Self::NoRetarget,
        Self::CertificatesPresent,
        Self::PackagesFirst,
        Self::WorkerOrder,
        Self::NotPaused,
        Self::NoGaps,
        Self::PoolMoves,
        Self::Consent,
    ];

    /// The name by which it can be switched off in a rehearsal: `worker-order`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::VersionPath => "version-path",
            Self::KubeletsNotTooOld => "kubelets-not-too-old",
            Self::ProxyNotAhead => "proxy-not-ahead",
            Self::JoinAtControlPlaneVersion => "join-at-control-plane-version",
            Self::EtcdStep => "etcd-step",
            Self::EtcdQuorum => "etcd-quorum",
            Self::OneMemberChange => "one-member-change",
            Self::SickMemberFirst => "sick-member-first",
            Self::LeaderMovesFirst => "leader-moves-first",
            Self::MemberLeavesFirst => "member-leaves-first",
            Self::MembersAreMachines => "members-are-machines",
            Self::MembershipKnown => "membership-known",
            Self::LastVoter => "last-voter",
            Self::NoAlarms => "no-alarms",
            Self::OneMachineAtATime => "one-machine-at-a-time",
            Self::ControlPlaneHealthy => "control-plane-healthy",
            Self::AWholeNodeStays => "a-whole-node-stays",
            Self::ReplacementHealthy => "replacement-healthy",
            Self::OneControlPlaneUpdate => "one-control-plane-update",
            Self::OneAttempt => "one-attempt",
            Self::NoRetarget => "no-retarget",
            Self::CertificatesPresent => "certificates-present",
            Self::PackagesFirst => "packages-first",
            Self::WorkerOrder => "worker-order",
            Self::NotPaused => "not-paused",
            Self::NoGaps => "no-gaps",
            Self::PoolMoves => "pool-moves",
            Self::Consent => "consent",
        }
    }

    /// The ids of the rules that it keeps; the second opinion knows them by these.
    pub fn rules(self) -> &'static [&'static str] {
        match self {
            Self::VersionPath => &["V6", "V8"],
            Self::KubeletsNotTooOld => &["V2", "V7"],
            Self::ProxyNotAhead => &["V5", "D7"],
            Self::JoinAtControlPlaneVersion => &["V9"],
            Self::EtcdStep => &["V10"],
            Self::EtcdQuorum => &["E1", "E2"],
            Self::OneMemberChange => &["E3", "E4"],
            Self::SickMemberFirst => &["E5"],
            Self::LeaderMovesFirst => &["E6"],
            Self::MemberLeavesFirst => &["E7"],
            Self::MembersAreMachines => &["E8"],
            Self::MembershipKnown => &["E9"],
            Self::LastVoter => &["E10"],
            Self::NoAlarms => &["E13"],
            Self::OneMachineAtATime => &["C1", "C8"],
            Self::ControlPlaneHealthy | Self::AWholeNodeStays => &["C2"],
            Self::ReplacementHealthy => &["C3"],
            Self::OneControlPlaneUpdate => &["C4", "C5"],
            Self::OneAttempt => &["C4"],
            Self::NoRetarget => &["C7"],
            Self::CertificatesPresent => &["C9"],
            Self::PackagesFirst => &["D1", "D8", "V11"],
            Self::WorkerOrder => &["V1", "D2"],
            Self::NotPaused => &["D4"],
            Self::NoGaps | Self::Consent => &[],
            Self::PoolMoves => &["C5"],
        }
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A text that names no gate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a gate; there are {}", Gate::ALL.map(Gate::as_str).join(", "))]
pub struct UnknownGate {
    text: String,
}

impl FromStr for Gate {
    type Err = UnknownGate;

    fn from_str(text: &str) -> Result<Self, UnknownGate> {
        let known = Self::ALL.into_iter().find(|gate| gate.as_str() == text);
        known.ok_or_else(|| UnknownGate { text: text.to_owned() })
    }
}

/// The gates that are in force. On a cluster that is all of them; a rehearsal may leave some out, to show what they are for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gates(BTreeSet<Gate>);

impl Gates {
    /// Every gate there is.
    pub fn all() -> Self {
        Self(Gate::ALL.into())
    }

    /// All but these. For rehearsals only.
    pub fn without(left_out: &[Gate]) -> Self {
        Self(Gate::ALL.into_iter().filter(|gate| !left_out.contains(gate)).collect())
    }

    /// Whether a gate is in force.
    pub fn has(&self, gate: Gate) -> bool {
        self.0.contains(&gate)
    }

    /// The refusal of a gate, if it is in force and refuses.
    pub fn ask(&self, gate: Gate, refuse: impl FnOnce() -> Option<Blocked>) -> Option<Blocked> {
        if self.has(gate) { refuse() } else { None }
    }
}
