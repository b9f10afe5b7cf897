//! What can go wrong: each fault, where it is injected, and the number that it has in the list of faults.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use super::pattern::{Pattern, Whom};
use super::request::Requests;
use super::span::Span;
use crate::actor::Caller;

/// Something that goes wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Fault {
    /// A process of Windlass crashes at one of its writes, which are counted from 1 over all of them. Two are a crash during
    /// recovery.
    Crash {
        /// Which write.
        write: u64,
        /// Before or after it.
        moment: Moment,
    },
    /// A request is refused, and does nothing.
    Refusal {
        /// Which.
        #[serde(rename = "to")]
        on: Requests,
        /// The status: 409, 422, 429, 500, 503.
        code: u16,
        /// When to come again, as the answer says it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_seconds: Option<u32>,
    },
    /// A request does what it should, and its sender does not hear of it.
    LostAnswer {
        /// Which.
        #[serde(rename = "to")]
        on: Requests,
        /// What it hears instead.
        instead: Loss,
    },
    /// A request is delivered twice. The second answer is the one that is heard.
    Repetition {
        /// Which.
        #[serde(rename = "to")]
        on: Requests,
    },
    /// Requests take longer. Each is delayed by itself, so that answers overtake each other.
    Delay {
        /// Which.
        #[serde(rename = "to")]
        on: Requests,
        /// At least by so much.
        least: Span,
        /// At most by so much.
        most: Span,
    },
    /// A watch ends in a way that its owner has to cope with.
    WatchEnds {
        /// Which.
        #[serde(rename = "to")]
        on: Requests,
        /// In which way.
        how: WatchEnd,
        /// So long after it began.
        after: Span,
    },
    /// A watch is not told how far it has come.
    BookmarksLost {
        /// Which.
        #[serde(rename = "to")]
        on: Requests,
    },
    /// Of several changes of an object within a while, a watch sees the last one only.
    Coalescing {
        /// Which watches.
        #[serde(rename = "to")]
        on: Requests,
        /// How long changes are kept back.
        within: Span,
    },
    /// What a caller reads comes from a replica of the management API that stands still; what it writes does not. The replica
    /// stops when the fault begins, and is as the others again when it ends.
    StaleReplica {
        /// Who.
        #[serde(rename = "actor")]
        caller: Caller,
        /// So long after it has stopped it is asked: what was seen before may be newer.
        asked_after: Span,
    },
    /// Watches tell of changes late.
    Lag {
        /// Which.
        #[serde(rename = "to")]
        on: Requests,
        /// By so much.
        by: Span,
    },
    /// The controllers stand still for as long as the fault lasts, and others take over. Then they go on where they were,
    /// until they notice.
    SplitLeadership {
        /// How long after the standstill the others begin.
        takeover: Span,
        /// How long they go on before they notice.
        notices_after: Span,
    },
    /// Leases are not renewed.
    LeaseLost {},
    /// A clock is wrong.
    WrongClock {
        /// Whose.
        #[serde(rename = "actor")]
        caller: Caller,
        /// In which way.
        how: Skew,
    },
    /// What is ready runs in any order.
    AnyOrder {},
    /// The disk of the management API fails.
    Disk {
        /// In which way.
        how: DiskFault,
    },
    /// The disk of the management API is slow.
    SlowDisk {
        /// How long a write takes until it is safe.
        by: Span,
    },
    /// A machine does not do what it was made for.
    Machine {
        /// Which, by the names of Machines.
        of: Whom,
        /// In which way.
        how: MachineFault,
    },
    /// A node is not as it should be.
    Node {
        /// Which.
        of: Whom,
        /// In which way.
        how: NodeFault,
    },
    /// kubeadm fails on a machine of the control plane after it has added a member to etcd, which never starts.
    JoinFails {
        /// Which, by the names of Machines.
        of: Whom,
    },
    /// Something is wrong with etcd.
    Etcd {
        /// With which members, by the names of their nodes.
        of: Whom,
        /// In which way.
        how: EtcdFault,
    },
    /// The API of a workload cluster does not answer as it should.
    Unreachable {
        /// Of which clusters, as `namespace/name`.
        #[serde(default, skip_serializing_if = "Pattern::is_any")]
        clusters: Pattern,
        /// Which requests. Who sends them is not known to the network.
        #[serde(default)]
        #[serde(rename = "to")]
        on: Requests,
        /// What is heard instead.
        how: Silence,
    },
    /// The load balancer of a workload cluster's API does not do what it is for.
    LoadBalancer {
        /// Of which clusters, as `namespace/name`.
        #[serde(default, skip_serializing_if = "Pattern::is_any")]
        clusters: Pattern,
        /// In which way.
        how: LoadBalancerFault,
    },
    /// Pods of a workload cluster are restarted when the fault begins: by whoever looks after them, as the cluster is then.
    PodRestart {
        /// Which, as `namespace/name`.
        of: Whom,
        /// On these nodes.
        #[serde(default, skip_serializing_if = "Pattern::is_any")]
        nodes: Pattern,
    },
    /// The containers of pods end as soon as they have started, again and again.
    CrashLoop {
        /// Which pods, as `namespace/name`.
        of: Whom,
    },
    /// Volumes are not detached from nodes.
    VolumeStays {
        /// Which nodes.
        of: Whom,
    },
    /// A virtual machine is gone, and the object that stands for it is not.
    FinalizerStays {
        /// Which, by the names of `WCPMachine`s.
        of: Whom,
    },
    /// The infrastructure makes no machines, or half ones.
    Infrastructure {
        /// Which, by the names of `WCPMachine`s.
        of: Whom,
        /// In which way.
        how: InfrastructureFault,
    },
    /// The admission of Windlass cannot be asked, or takes its time.
    Webhook {
        /// In which way.
        how: WebhookFault,
    },
}

/// Before or after something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Moment {
    /// It has not happened.
    Before,
    /// It has happened, and nobody heard of it.
    After,
}

/// What is heard instead of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Loss {
    /// Status 500.
    InternalError,
    /// Status 504.
    GatewayTimeout,
    /// The connection is reset.
    Reset,
    /// Nothing, until the patience of a client is at its end.
    Timeout,
}

/// How a watch ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WatchEnd {
    /// The connection is closed.
    Dropped,
    /// What it is at is too old: 410.
    Expired,
    /// Nothing comes any more, and nobody says so; the connection is closed in the end, after five minutes.
    Stalled,
}

/// In which way a clock is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "skew", rename_all = "camelCase", deny_unknown_fields)]
pub enum Skew {
    /// It is ahead, or behind.
    Step {
        /// By so much.
        by: SignedDuration,
    },
    /// It goes faster or slower, from when the fault begins.
    Rate {
        /// So many times as fast.
        times: f64,
    },
    /// It stands still.
    Frozen,
}

/// In which way a disk fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DiskFault {
    /// There is no space left.
    NoSpace,
    /// Writes fail.
    WriteError,
    /// What was written is not made durable, and this is said.
    SyncError,
    /// What was written is not made durable, and the contrary is said. A power cut shows it.
    SyncLies,
    /// The power fails in the middle of a write, of which a part is there.
    TornWrite,
    /// What is read is shorter than what was written.
    ShortRead,
    /// A bit is another than it was.
    BitFlip,
}

/// In which way a machine does not do what it was made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "camelCase", deny_unknown_fields)]
pub enum MachineFault {
    /// It does not boot while the fault lasts.
    NeverBoots,
    /// It boots later.
    BootsLate {
        /// By so much.
        by: Span,
    },
    /// It was asked for twice, and the second one takes its name: the provider knows the first only.
    BootsTwice,
    /// It is gone, with nobody having asked for that.
    Vanishes {
        /// So long after it has booted.
        after: Span,
    },
    /// It runs, and the provider says that there is none.
    Unlisted,
}

/// In which way a node is not as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "camelCase", deny_unknown_fields)]
pub enum NodeFault {
    /// Nobody hears of its kubelet while the fault lasts.
    NotReady,
    /// It is not ready and ready again, in turns.
    Flaps {
        /// How long each lasts.
        every: Span,
    },
    /// It registers with the provider id of another machine.
    WrongProviderId,
    /// It gets its labels late.
    LateLabels {
        /// By so much.
        by: Span,
    },
    /// A node of the control plane gets the label of its role late, which kubeadm gives it.
    LateRole {
        /// By so much.
        by: Span,
    },
}

/// What is wrong with etcd.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "camelCase", deny_unknown_fields)]
pub enum EtcdFault {
    /// A member does not reach the others.
    CutOff,
    /// It answers late.
    Slow {
        /// By so much.
        by: Span,
    },
    /// Another member leads, again and again.
    LeaderFlaps {
        /// How long one of them leads.
        every: Span,
    },
    /// A member has no space left. The API refuses writes.
    NoSpace,
    /// The data of a member is not that of the others.
    Corrupt,
    /// Nobody else can be made to lead.
    MoveRefused,
    /// A member is removed, and whoever asked for it does not hear of it.
    RemovalUnanswered,
}

/// What is heard of an API that does not answer as it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Silence {
    /// Nobody listens.
    Refused,
    /// Nothing, until the patience of a client is at its end.
    Timeout,
    /// An answer that begins, and goes on for ever.
    Endless,
    /// Its certificate is by somebody else.
    UnknownAuthority,
    /// The credentials of the kubeconfig are not good any more: 401.
    Unauthorized,
}

/// In which way a load balancer does not do what it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LoadBalancerFault {
    /// It does not notice that a machine behind it is gone: every other connection leads there.
    DeadBackend,
    /// The address moves to another host: connections break, and for a while there are no new ones.
    Moves,
}

/// In which way the infrastructure fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum InfrastructureFault {
    /// The quota is used up.
    Quota,
    /// It is asked too often: 429.
    Throttled,
    /// A machine is made, and its disk is not.
    Partial,
}

/// In which way a webhook fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "camelCase", deny_unknown_fields)]
pub enum WebhookFault {
    /// Nobody listens.
    Down,
    /// It answers late, and from 10 seconds on too late.
    Slow {
        /// By so much.
        by: Span,
    },
}

impl Fault {
    /// Its number in the list of faults. A crash is F01 or F02 by its moment; two of them are F03, which is the scenario's.
    /// A replica that is asked later than it stopped is F12.
    pub fn id(&self) -> &'static str {
        match self {
            Self::Crash { moment: Moment::After, .. } => "F01",
            Self::Crash { moment: Moment::Before, .. } => "F02",
            Self::Refusal { .. } => "F04",
            Self::LostAnswer { .. } => "F05",
            Self::Repetition { .. } => "F06",
            Self::Delay { .. } => "F07",
            Self::WatchEnds { .. } | Self::BookmarksLost { .. } => "F08",
            Self::Coalescing { .. } => "F09",
            Self::StaleReplica { asked_after, .. } if asked_after.is_zero() => "F10",
            Self::StaleReplica { .. } => "F12",
            Self::Lag { .. } => "F11",
            Self::SplitLeadership { .. } => "F13",
            Self::LeaseLost {} => "F14",
            Self::WrongClock { .. } => "F15",
            Self::AnyOrder {} => "F16",
            Self::Disk { .. } => "F17",
            Self::SlowDisk { .. } => "F18",
            Self::Machine { .. } => "F19",
            Self::Node { .. } => "F20",
            Self::JoinFails { .. } => "F21",
            Self::Etcd { .. } => "F22",
            Self::Unreachable { .. } => "F26",
            Self::LoadBalancer { .. } => "F27",
            Self::PodRestart { .. } => "F28",
            Self::CrashLoop { .. } => "F29",
            Self::VolumeStays { .. } | Self::FinalizerStays { .. } => "F30",
            Self::Webhook { .. } => "F33",
            Self::Infrastructure { .. } => "F36",
        }
    }

    /// The numbers that scenarios have besides those of single faults: two crashes, what users do, and a fleet.
    pub fn of_scenarios() -> BTreeSet<&'static str> {
        ["F03", "F23", "F24", "F25", "F39"].into()
    }
}
