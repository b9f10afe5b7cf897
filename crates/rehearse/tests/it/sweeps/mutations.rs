//! The sweep is able to fail: with a rule of safety left out, or with what others did before, it says so.

use std::time::Duration;

use windlass_plan::gate::Gate;
use windlass_rehearse::rehearsal::{Request, Verdict};
use windlass_rehearse::seam::Old;
use windlass_rehearse::sweep::{Change, Size, Subject, Sweep};

use crate::start::{self, SEED};

/// A rule, and the invariant that does not hold without it.
const RULES: [(Gate, &str); 2] = [(Gate::WorkerOrder, "D2"), (Gate::PackagesFirst, "D1")];

#[test]
fn without_a_rule_of_safety_the_sweep_says_what_is_broken() {
    for (gate, invariant) in RULES {
        let request = Request { without_gates: vec![gate], ..start::update() };
        let sweep = Sweep::new(Subject::new(start::one_and_one().world.clone(), request)).unwrap();
        let broken = &sweep.reference().broken;
        let says = broken.iter().any(|broken| broken.message.starts_with(&format!("{invariant}: ")));
        assert!(says, "without {gate} nobody reports {invariant}: {broken:?}");
    }
}

/// The upgrade of 1+1 as it would have been.
fn of_old(old: Old) -> Sweep {
    let subject = Subject::new(start::one_and_one().world.clone(), start::update());
    Sweep::new(Subject { old: Some(old), ..subject }).unwrap()
}

#[test]
fn without_preconditions_a_release_that_is_taken_back_meanwhile_is_not_heard() {
    let sweep = of_old(Old::NoPreconditions);
    assert!(sweep.reference().broken.is_empty(), "alone it does no harm: {:?}", sweep.reference().broken);
    let tried = sweep.show(&super::at(&sweep, "reverted", "create configmaps"));
    assert!(!tried.broken.is_empty(), "{tried}");
}

#[test]
fn with_machines_whose_names_are_drawn_not_even_the_run_without_a_fault_ends_well() {
    let reference = of_old(Old::DrawnNames).reference().clone();
    assert!(!matches!(reference.verdict, Verdict::Reached { .. }) || !reference.broken.is_empty(), "{reference:?}");
}

#[test]
fn with_owners_by_name_the_certificates_of_a_new_cluster_are_lost() {
    let size = Size { control_plane: 1, workers: 1 };
    let mut subject = Subject::make(Change::Create, size, SEED).unwrap();
    // They are made again and again, and collected each time: no need to watch that for hours.
    subject.request.deadline = Duration::from_secs(60);
    let sweep = Sweep::new(Subject { old: Some(Old::OwnersByName), ..subject }).unwrap();
    let reference = sweep.reference();
    let of_secrets = reference.writes.iter().filter(|write| write.what.contains("secrets")).count();
    assert!(matches!(reference.verdict, Verdict::Stuck { .. }) && of_secrets > 20, "{reference:?}");
}
