//! What is put back, where that is seen, and by what.

use std::fmt;

use windlass_plan::gate::Gate;
use windlass_rehearse::seam::Old;

/// Something that went wrong once, put back.
pub struct Mutation {
    /// Its number, or the rule that is left out.
    pub id: &'static str,
    /// What is put back.
    pub put_back: &'static [Old],
    /// The same in words.
    pub what: &'static str,
    /// In which change it is seen.
    pub on: On,
    /// In which trial.
    pub at: At,
    /// The oracle or the invariant that says so.
    pub says: &'static str,
}

impl Mutation {
    /// Its row in docs/reliability.md.
    pub fn row(&self) -> String {
        let Self { id, what, on, at, says, .. } = self;
        format!("| {id} | {what} | {on}, {at} | {says} |")
    }
}

/// A change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    Upgrade,
    /// The same, with less time for it.
    UpgradeAlone,
    UpgradeOfThree,
    Creation,
    GivenUp,
    /// The certificates belong to the configuration of the first machine, as others have it.
    TakenOver,
    /// In the middle of it somebody adds a member to etcd that never starts.
    Stranger,
}

impl On {
    /// What does not hold there anyway.
    pub fn breaks(self) -> &'static [&'static str] {
        match self {
            Self::Stranger => &["E4"],
            _ => &[],
        }
    }
}

impl fmt::Display for On {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Upgrade | Self::UpgradeAlone => "upgrade of 1+1",
            Self::UpgradeOfThree => "upgrade of 3+1",
            Self::Creation => "creation of 1+1",
            Self::GivenUp => "upgrade of 1+1 that is given up",
            Self::TakenOver => "upgrade of 1+1 made by others",
            Self::Stranger => "upgrade of 3+1 with a strange member of etcd",
        })
    }
}

/// A trial.
#[derive(Debug, Clone, Copy)]
pub enum At {
    /// The run without a fault.
    Alone,
    /// That of a kind, at a write that has these words.
    Write { kind: &'static str, words: &'static str, nth: usize },
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alone => f.write_str("without a fault"),
            Self::Write { kind, words, nth: 1 } => write!(f, "`{kind}` at `{words}`"),
            Self::Write { kind, words, nth } => write!(f, "`{kind}` at `{words}` number {nth}"),
        }
    }
}

const fn at(kind: &'static str, words: &'static str) -> At {
    At::Write { kind, words, nth: 1 }
}

const fn row(
    id: &'static str,
    put_back: &'static [Old],
    what: &'static str,
    (on, at): (On, At),
    says: &'static str,
) -> Mutation {
    Mutation { id, put_back, what, on, at, says }
}

/// All of them.
pub const LIST: [Mutation; 27] = [
    row(
        "B01",
        &[Old::OwnersByName],
        "the new owner of a certificate is named with the uid of somebody else",
        (On::TakenOver, At::Alone),
        "settling",
    ),
    row(
        "B02",
        &[Old::OwnedByConfigurations],
        "the configuration of the new machine becomes the only owner of the certificates, and goes with the machine",
        (On::Upgrade, at("never-boots", "create machines")),
        "O5",
    ),
    row(
        "B03",
        &[Old::OwnedByConfigurations],
        "the configuration of the first machine is the only owner of the certificates",
        (On::Creation, At::Alone),
        "O2",
    ),
    row(
        "B04",
        &[Old::OwnersTakenForGranted],
        "certificates are taken to belong to the Cluster, whomever they belong to",
        (On::TakenOver, At::Alone),
        "O1",
    ),
    row(
        "B05",
        &[Old::NodelessMembersStay],
        "a machine whose node is not ready has no member of etcd that would have to be removed",
        (On::GivenUp, At::Alone),
        "E7",
    ),
    row(
        "B06",
        &[Old::GhostsUnseen],
        "a member of etcd that has never started is not seen",
        (On::Stranger, At::Alone),
        "settling",
    ),
    row(
        "B07",
        &[Old::NoPreconditions, Old::DrawnNames],
        "who leads no more writes without preconditions, and where a name is taken another one is drawn",
        (On::Upgrade, at("two-leaders", "create configmaps")),
        "C4",
    ),
    row(
        "B08",
        &[Old::NoPatience],
        "an API server that does not answer is not asked again",
        (On::Upgrade, at("dead-backend", "remove member")),
        "settling",
    ),
    row(
        "B09",
        &[Old::DrawnNames],
        "where a name is taken, another one is drawn",
        (On::Creation, at("older-list", "create machinedeployments")),
        "counts",
    ),
    row(
        "B10",
        &[Old::ListsOneBehind, Old::DrawnNames],
        "machines are listed from a cache that is one look behind, and where a name is taken another one is drawn",
        (On::Upgrade, at("lost-answer", "create machines")),
        "C1",
    ),
    row(
        "B11",
        &[Old::MembersOneBehind],
        "the members of etcd are known from a cache that is one look behind",
        (On::UpgradeOfThree, At::Write { kind: "member-cut-off", words: "patch clusterupdates/status", nth: 8 }),
        "E5",
    ),
    row(
        "B12",
        &[Old::DrawnNames],
        "where a name is taken, another one is drawn",
        (On::Upgrade, at("older-list", "create wcpmachinetemplates")),
        "counts",
    ),
    row(
        "B13",
        &[Old::PauseElsewhere],
        "that a cluster is paused is looked for in another field",
        (On::Upgrade, at("paused", "create configmaps")),
        "D4",
    ),
    row(
        "B14",
        &[Old::PauseUnheard],
        "whether a cluster is paused is read once",
        (On::Upgrade, at("paused", "create configmaps")),
        "D4",
    ),
    row(
        "B15",
        &[Old::PausedForEver],
        "that a pause is over is not heard",
        (On::Upgrade, at("paused", "create machines")),
        "settling",
    ),
    row(
        "B18",
        &[Old::DrawnNames],
        "where a name is taken, another one is drawn",
        (On::Creation, at("repeated", "create machinedeployments")),
        "counts",
    ),
    row(
        "B19",
        &[Old::RecordReadOnce],
        "kubeadm's record is taken to be as it was read first, also when an endpoint is gone from it",
        (On::UpgradeAlone, At::Alone),
        "settling",
    ),
    row(
        "B20",
        &[Old::ConfigurationLast],
        "the configuration of a machine is written after the machine",
        (On::Upgrade, at("crash-after", "create kubeadmconfigs")),
        "counts",
    ),
    row(
        "B21",
        &[Old::WritesForgotten, Old::DrawnNames],
        "nobody waits until a cache has seen what was written, and where a name is taken another one is drawn",
        (On::Upgrade, at("lag", "create wcpmachinetemplates")),
        "counts",
    ),
    row(
        "B22",
        &[Old::HalfSecrets],
        "a certificate and its key are written one after the other",
        (On::Creation, at("crash-after", "create secrets")),
        "end state",
    ),
    row(
        "B23",
        &[Old::CutNames],
        "the names of replacements are cut where they begin to differ",
        (On::UpgradeOfThree, At::Alone),
        "settling",
    ),
    row(
        "B24",
        &[Old::UnboundProxy],
        "kube-proxy is not bound to nodes of its version",
        (On::UpgradeAlone, At::Alone),
        "V5",
    ),
    row(
        "B25",
        &[Old::BlindRetries],
        "a creation that is not answered is sent again, and the server draws another name",
        (On::Upgrade, at("lost-answer", "create machines")),
        "C1",
    ),
    row("B26", &[Old::KeysAtEveryLook], "four keys are made at every look", (On::UpgradeAlone, At::Alone), "counts"),
    row(
        "B27",
        &[Old::AppliesAgain],
        "what was applied last is applied again at every look, and counts as changed",
        (On::UpgradeAlone, At::Alone),
        "settling",
    ),
    row(
        "`worker-order`",
        &[Old::Without(Gate::WorkerOrder)],
        "the rule is left out",
        (On::UpgradeAlone, At::Alone),
        "D2",
    ),
    row(
        "`packages-first`",
        &[Old::Without(Gate::PackagesFirst)],
        "the rule is left out",
        (On::UpgradeAlone, At::Alone),
        "D1",
    ),
];

/// Those that no write of Windlass could bring back: a test shows what they would have led to, and a rule says so.
pub const BY_RULE: [(&str, &str, &str); 2] = [
    (
        "B16",
        "whoever is asked before machines follow has crashed, and is not waited for; Cluster API asks, and not Windlass",
        "rehearse/tests/it/packages_first/crashes.rs::machines_that_do_not_wait_for_an_answer_come_before_their_packages_and_are_seen",
    ),
    (
        "B17",
        "a member of etcd counts before it has learnt, or leads; kubeadm adds members, and not Windlass",
        "sim/src/invariant/tests/etcd.rs::e4_a_member_learns_before_it_counts",
    ),
];

/// Those that are about something that Windlass does not have.
pub const NOT_HERE: [&str; 0] = [];
