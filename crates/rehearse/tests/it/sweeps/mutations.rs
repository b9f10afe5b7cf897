//! The sweep is able to fail: with what others did before, or with a rule of safety left out, it says so; and without, it does not.
//!
//! docs/reliability.md has the same table; a test compares the two, and counts.

mod list;

use std::time::Duration;

use windlass_rehearse::drive::Drive;
use windlass_rehearse::rehearsal::Request;
use windlass_rehearse::sweep::{Broken, Change, Oracle, Size, Subject, Sweep, Trial, Tried};
use windlass_sim::fault::{Action, Scenario, Span};

use crate::certificates::{Owner, owned_by};
use crate::start::{self, SEED};
use crate::{aborts, sweeps};
use list::{At, On};
pub use list::{BY_RULE, LIST, Mutation, NOT_HERE};

/// What is changed, run once without a fault.
fn swept(on: On) -> Sweep {
    let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
    match on {
        On::Upgrade => sweeps::swept(&start::one_and_one().world, Request { deadline: minutes(60), ..start::update() }),
        On::UpgradeAlone => {
            sweeps::swept(&start::one_and_one().world, Request { deadline: minutes(20), ..start::update() })
        }
        On::UpgradeOfThree => {
            sweeps::swept(&start::three_and_one().world, Request { deadline: minutes(60), ..start::update() })
        }
        On::Creation => {
            let size = Size { control_plane: 1, workers: 1 };
            let mut subject = Subject::make(Drive::Machines, Change::Create, size, SEED).unwrap();
            subject.request.deadline = minutes(30);
            Sweep::new(subject).unwrap()
        }
        // The new machine is a member of etcd, and its node is not ready yet.
        On::GivenUp => sweeps::swept(&start::one_and_one().world, aborts::request(170)),
        On::TakenOver => sweeps::swept(&owned_by(Owner::First), start::update()),
        On::Stranger => {
            let (cluster, name) = (start::cluster_name(), "stranger".parse().unwrap());
            let faults = Scenario::default().then(Span::seconds(200), Action::AddMember { cluster, name });
            let request = Request { faults, ..start::update() };
            Sweep::new(Subject::new(start::three_and_one().world.clone(), request)).unwrap()
        }
    }
}

/// The trial in which it is seen.
fn trial(sweep: &Sweep, at: At) -> Trial {
    let At::Write { kind, words, nth } = at else { return sweep.again().unwrap() };
    let writes = sweep.reference().writes.iter().filter(|write| write.what.contains(words));
    let number = writes.map(|write| write.number).nth(nth - 1);
    sweep.trial(&format!("{kind}-{}", number.unwrap_or_else(|| panic!("no {words}")))).unwrap()
}

/// Whether an oracle, or the invariant of an id, says so.
fn says(broken: &Broken, says: &str) -> bool {
    match broken.oracle {
        Oracle::Invariants => broken.message.starts_with(&format!("{says}: ")),
        oracle => oracle.to_string() == says,
    }
}

/// Each is seen in its trial by what it should be seen by, and the same trial is survived without it. Where several things are put
/// back, each alone is survived, too: the others stand in its way.
fn check(on: On) {
    let sweep = swept(on);
    let mut survived: Vec<Tried> = Vec::new();
    for Mutation { id, put_back, at, says: by, .. } in LIST.iter().filter(|mutation| mutation.on == on) {
        let as_it_is = trial(&sweep, *at);
        if !survived.iter().any(|tried| tried.name == as_it_is.name()) {
            let tried = sweep.show(&as_it_is);
            let others = tried.broken.iter().filter(|broken| !on.breaks().iter().any(|id| says(broken, id)));
            assert!(tried.bit && others.count() == 0, "{id}, with nothing put back: {tried}");
            survived.push(tried);
        }
        for old in put_back.iter().filter(|_| put_back.len() > 1) {
            let tried = sweep.show(&trial(&sweep, *at).as_of_old(&[*old]));
            assert!(tried.broken.is_empty(), "{id}, with {old:?} alone: {tried}");
        }
        let tried = sweep.show(&as_it_is.as_of_old(put_back));
        assert!(tried.broken.iter().any(|broken| says(broken, by)), "{id} is not said by {by}: {tried}");
    }
    assert!(!survived.is_empty());
}

#[test]
fn what_went_wrong_once_is_seen_in_trials_of_an_upgrade() {
    check(On::Upgrade);
}

#[test]
fn what_went_wrong_once_is_seen_in_an_upgrade_without_a_fault() {
    check(On::UpgradeAlone);
}

#[test]
fn what_went_wrong_once_is_seen_in_the_upgrade_of_three_machines() {
    check(On::UpgradeOfThree);
    check(On::Stranger);
}

#[test]
fn what_went_wrong_once_is_seen_in_the_creation_of_a_cluster() {
    check(On::Creation);
}

#[test]
fn what_went_wrong_once_is_seen_when_an_update_is_given_up() {
    check(On::GivenUp);
}

#[test]
fn what_went_wrong_once_is_seen_when_a_cluster_of_others_is_taken_over() {
    check(On::TakenOver);
}
