//! The sweep is able to fail: with a rule of safety left out, it says so.

use windlass_plan::gate::Gate;
use windlass_rehearse::rehearsal::Request;
use windlass_rehearse::sweep::{Subject, Sweep};

use crate::start;

/// A rule, and the invariant that does not hold without it.
const TABLE: [(Gate, &str); 2] = [(Gate::WorkerOrder, "D2"), (Gate::PackagesFirst, "D1")];

#[test]
fn without_a_rule_of_safety_the_sweep_says_what_is_broken() {
    for (gate, invariant) in TABLE {
        let request = Request { without_gates: vec![gate], ..start::update() };
        let sweep = Sweep::new(Subject::new(start::one_and_one().world.clone(), request)).unwrap();
        let broken = &sweep.reference().broken;
        let says = broken.iter().any(|broken| broken.message.starts_with(&format!("{invariant}: ")));
        assert!(says, "without {gate} nobody reports {invariant}: {broken:?}");
    }
}
