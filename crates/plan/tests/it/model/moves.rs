//! Everything that can happen next, by name.

use super::state::{Asked, Seat, Version};

/// Who makes something happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum By {
    /// A step of a plan, or what it puts on record.
    Planner,
    /// A step of a plan that was made before the last thing happened.
    StalePlanner,
    /// A step of the roll, in a pod of the Job.
    Roll,
    /// The environment, as one hopes: things start, heal and go.
    Kind,
    /// The environment, as one fears.
    Adverse,
    /// A person.
    Person,
}

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    // The planner's.
    Begins { to: Asked },
    Resumes,
    Succeeds,
    Fails,
    AppliesDns(Version),
    AppliesProxy(Version),
    DeletesProxy(Version),
    CreatesJob,
    CreatesMachine { slot: usize },
    CreatesPool,
    SwitchesPool(Version),
    // The roll's.
    Prepares,
    ForgetsEndpoint,
    Marks(Seat),
    CreatesInfrastructure { slot: usize },
    CreatesConfiguration { slot: usize },
    Replaces { slot: usize },
    MovesLead { to: Seat },
    RemovesMember(Seat),
    RemovesGhost(Ghost),
    DeletesMachine(Seat),
    Unmarks(Seat),
    GivesUp,
    Completes,
    // The environment's.
    MachineProgresses(Seat),
    MemberIsAdded(Seat),
    MemberStarts(Seat),
    MemberIsPromoted(Seat),
    MachineIsGone(Seat),
    PartsAreGone { slot: usize },
    MachineFails(Seat),
    MachineRecovers(Seat),
    MemberFails(Seat),
    MemberRecovers(Seat),
    ApiFails,
    ApiRecovers,
    DnsIsSeen,
    DnsFails,
    DnsRecovers,
    ProxyIsSeen(Version),
    CertificateIsLost,
    CertificateIsRestored,
    TimeIsUp(Seat),
    PodCrashes,
    PoolIsSeen,
    WorkerIsMade(Version),
    WorkerJoins(Version),
    WorkerIsRemoved(Version),
    WorkerFails(Version),
    WorkerRecovers(Version),
    // A person's.
    Asks(Asked),
    Pauses,
    Unpauses,
    DeletesJob,
}

/// What a member of etcd without a machine was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ghost {
    Voter,
    Unstarted,
    Learner,
}
