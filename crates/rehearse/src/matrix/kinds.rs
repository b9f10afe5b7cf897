//! The faults that a matrix knows by name. What takes care of itself has an end, so that it can be asked whether all becomes well.

use std::fmt;
use std::str::FromStr;

use jiff::SignedDuration;
use windlass_sim::actor::Caller;
use windlass_sim::fault::{
    EtcdFault, Fault, InfrastructureFault, Injection, LoadBalancerFault, Loss, MachineFault, Moment, NodeFault,
    Pattern, Requests, Silence, Skew, Span, WatchEnd, WebhookFault, When, Whom,
};

macro_rules! kinds {
    ($($kind:ident $id:literal $name:literal $what:literal,)*) => {
        /// A fault by its name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum FaultKind {
            $(#[doc = $what] $kind,)*
        }

        impl FaultKind {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$kind,)*];

            /// Its number in the list of faults: `F19`.
            pub fn id(self) -> &'static str {
                match self { $(Self::$kind => $id,)* }
            }

            /// Its name: `machine-never-boots`.
            pub fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }
        }
    };
}

kinds! {
    CrashAfter "F01" "crash-after" "A process crashes after a write.",
    CrashBefore "F02" "crash-before" "A process crashes before a write.",
    Refused "F04" "api-refuses" "Writes of the controllers are refused with 503 for two minutes.",
    AnswerLost "F05" "answer-lost" "Three writes are done, and their answers are lost.",
    Repeated "F06" "delivered-twice" "Three writes are delivered twice.",
    Slow "F07" "api-slow" "Requests take up to 20 seconds longer, for five minutes.",
    WatchExpires "F08" "watch-expires" "Watches of the controllers expire, for five minutes.",
    Coalesced "F09" "watch-coalesces" "Watches see the last of several changes only, for five minutes.",
    StaleReplica "F10" "stale-replica" "The controllers read from a replica that stands still, for two minutes.",
    Lag "F11" "watch-lags" "Watches of the controllers lag by 10 seconds, for five minutes.",
    SplitLeadership "F13" "two-leaders" "The controllers stand still, others take over, and the old ones go on.",
    WrongClock "F15" "clock-ahead" "The clock of the controllers is an hour ahead.",
    AnyOrder "F16" "any-order" "What is ready runs in any order, for five minutes.",
    NeverBoots "F19" "machine-never-boots" "A machine does not boot for 20 minutes.",
    BootsLate "F19" "machine-boots-late" "A machine boots ten minutes late.",
    Vanishes "F19" "machine-vanishes" "A machine is gone a minute after it has booted.",
    NotReady "F20" "node-not-ready" "A node is not heard of for three minutes.",
    LateLabels "F20" "labels-late" "A node gets its labels two minutes late.",
    JoinFails "F21" "join-fails" "kubeadm fails after it has added a member to etcd.",
    EtcdCutOff "F22" "etcd-cut-off" "A member of etcd does not reach the others for two minutes.",
    EtcdLeader "F22" "etcd-leader-flaps" "Another member of etcd leads, again and again, for five minutes.",
    EtcdUnanswered "F22" "etcd-removal-lost" "A member of etcd is removed, and nobody hears of it.",
    Unreachable "F26" "api-unreachable" "The API of the cluster cannot be reached for two minutes.",
    DeadBackend "F27" "dead-backend" "The load balancer leads to a machine that is gone, for five minutes.",
    AddressMoves "F27" "address-moves" "The address of the API moves to another host.",
    CrashLoop "F29" "pod-crash-loops" "A pod of the cluster ends as soon as it starts, for five minutes.",
    FinalizerStays "F30" "machine-object-stays" "A machine is gone, and its object stays for five minutes.",
    WebhookDown "F33" "webhook-down" "The admission of Windlass is down for two minutes.",
    Quota "F36" "quota-exceeded" "The quota is used up for ten minutes.",
    Throttled "F36" "provider-throttles" "The infrastructure is asked too often, for two minutes.",
}

/// A text that is no fault.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("there is no fault {0:?}; there are {known}", known = FaultKind::ALL.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", "))]
pub struct UnknownFault(pub String);

impl FromStr for FaultKind {
    type Err = UnknownFault;

    fn from_str(text: &str) -> Result<Self, UnknownFault> {
        Self::ALL.iter().copied().find(|kind| kind.name() == text).ok_or_else(|| UnknownFault(text.to_owned()))
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A crash, as a file says it.
pub(super) fn crash(write: u64, moment: Moment) -> Injection {
    Injection { fault: Fault::Crash { write, moment }, when: When::default() }
}

impl FaultKind {
    /// Before or after a write, where it is a crash.
    pub(super) fn crash(self) -> Option<Moment> {
        match self {
            Self::CrashAfter => Some(Moment::After),
            Self::CrashBefore => Some(Moment::Before),
            _ => None,
        }
    }

    /// The fault, so long after the beginning, for one cluster (`namespace/name`).
    pub(super) fn at(self, after: SignedDuration, cluster: &str) -> Injection {
        let after = Span(after.unsigned_abs());
        let (lasts, times) = self.extent();
        let until = lasts.map(|lasts| Span(after.0 + lasts.0));
        let when = When { after, until, times, ..When::default() };
        Injection { fault: self.fault(cluster), when }
    }

    /// The rules that the fault itself does not let hold: without one machine of a control plane there may be no quorum.
    pub(super) fn tolerated(self) -> &'static [&'static str] {
        match self {
            Self::EtcdCutOff | Self::Vanishes => &["C2", "E1"],
            _ => &[],
        }
    }

    /// How long it lasts, and how often it bites.
    fn extent(self) -> (Option<Span>, Option<u64>) {
        match self {
            Self::CrashAfter | Self::CrashBefore | Self::WrongClock => (None, None),
            Self::AnswerLost | Self::Repeated => (None, Some(3)),
            Self::BootsLate | Self::Vanishes | Self::LateLabels | Self::JoinFails | Self::EtcdUnanswered => {
                (None, Some(1))
            }
            Self::NeverBoots => (Some(Span::minutes(20)), Some(1)),
            Self::NotReady => (Some(Span::minutes(3)), Some(1)),
            Self::EtcdCutOff => (Some(Span::minutes(2)), Some(1)),
            Self::SplitLeadership => (Some(Span::seconds(60)), None),
            Self::AddressMoves => (Some(Span::seconds(30)), None),
            Self::Quota => (Some(Span::minutes(10)), None),
            Self::Refused | Self::StaleReplica | Self::Unreachable | Self::WebhookDown | Self::Throttled => {
                (Some(Span::minutes(2)), None)
            }
            Self::Slow
            | Self::WatchExpires
            | Self::Coalesced
            | Self::Lag
            | Self::AnyOrder
            | Self::EtcdLeader
            | Self::DeadBackend
            | Self::CrashLoop
            | Self::FinalizerStays => (Some(Span::minutes(5)), None),
        }
    }

    fn fault(self, cluster: &str) -> Fault {
        let (of, clusters) = (Whom::of(cluster), Pattern::new(cluster));
        let writes = || Requests::to("write", "*").by(Caller::Controllers);
        let theirs = || Requests::default().by(Caller::Controllers);
        match self {
            Self::CrashAfter => Fault::Crash { write: 1, moment: Moment::After },
            Self::CrashBefore => Fault::Crash { write: 1, moment: Moment::Before },
            Self::Refused => Fault::Refusal { on: writes(), code: 503, retry_after_seconds: None },
            Self::AnswerLost => Fault::LostAnswer { on: writes(), instead: Loss::GatewayTimeout },
            Self::Repeated => Fault::Repetition { on: writes() },
            Self::Slow => Fault::Delay { on: Requests::default(), least: Span::default(), most: Span::seconds(20) },
            Self::WatchExpires => Fault::WatchEnds { on: theirs(), how: WatchEnd::Expired, after: Span::seconds(10) },
            Self::Coalesced => Fault::Coalescing { on: theirs(), within: Span::seconds(10) },
            Self::StaleReplica => Fault::StaleReplica { caller: Caller::Controllers, asked_after: Span::default() },
            Self::Lag => Fault::Lag { on: theirs(), by: Span::seconds(10) },
            Self::SplitLeadership => {
                Fault::SplitLeadership { takeover: Span::seconds(20), notices_after: Span::seconds(30) }
            }
            Self::WrongClock => {
                let how = Skew::Step { by: SignedDuration::from_hours(1) };
                Fault::WrongClock { caller: Caller::Controllers, how }
            }
            Self::AnyOrder => Fault::AnyOrder {},
            Self::NeverBoots => Fault::Machine { of, how: MachineFault::NeverBoots },
            Self::BootsLate => Fault::Machine { of, how: MachineFault::BootsLate { by: Span::minutes(10) } },
            Self::Vanishes => Fault::Machine { of, how: MachineFault::Vanishes { after: Span::minutes(1) } },
            Self::NotReady => Fault::Node { of, how: NodeFault::NotReady },
            Self::LateLabels => Fault::Node { of, how: NodeFault::LateLabels { by: Span::minutes(2) } },
            Self::JoinFails => Fault::JoinFails { of },
            Self::EtcdCutOff => Fault::Etcd { of, how: EtcdFault::CutOff },
            Self::EtcdLeader => Fault::Etcd { of, how: EtcdFault::LeaderFlaps { every: Span::seconds(20) } },
            Self::EtcdUnanswered => Fault::Etcd { of, how: EtcdFault::RemovalUnanswered },
            Self::Unreachable => Fault::Unreachable { clusters, on: Requests::default(), how: Silence::Refused },
            Self::DeadBackend => Fault::LoadBalancer { clusters, how: LoadBalancerFault::DeadBackend },
            Self::AddressMoves => Fault::LoadBalancer { clusters, how: LoadBalancerFault::Moves },
            Self::CrashLoop => Fault::CrashLoop { of: Whom { clusters, names: Pattern::new("kube-system/coredns-*") } },
            Self::FinalizerStays => Fault::FinalizerStays { of },
            Self::WebhookDown => Fault::Webhook { how: WebhookFault::Down },
            Self::Quota => Fault::Infrastructure { of, how: InfrastructureFault::Quota },
            Self::Throttled => Fault::Infrastructure { of, how: InfrastructureFault::Throttled },
        }
    }
}

#[cfg(test)]
mod tests {
    use windlass_sim::fault::Scenario;

    use super::*;

    #[test]
    fn every_fault_has_a_name_of_its_own_the_number_of_what_it_is_and_can_be_written_down() {
        for kind in FaultKind::ALL {
            assert_eq!(kind.name().parse(), Ok(*kind));
            let injection = kind.at(SignedDuration::from_secs(90), "default/my-tkc");
            assert_eq!(injection.fault.id(), kind.id(), "{kind}");
            let scenario = Scenario { faults: vec![injection], ..Scenario::default() };
            assert_eq!(Scenario::from_yaml(&scenario.to_yaml()).unwrap(), scenario, "{kind}");
        }
        let why = "earthquake".parse::<FaultKind>().unwrap_err().to_string();
        assert!(why.contains("earthquake") && why.contains("machine-never-boots"), "{why}");
    }
}
