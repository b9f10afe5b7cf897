//! Changes that are broken on purpose, and survive it. Here is a slice; `.ci/run` and `windlass sweep` have the rest.

use windlass_rehearse::rehearsal::{Request, Verdict};
use windlass_rehearse::sweep::{Kind, Pick, Subject, Sweep, Tried};
use windlass_sim::world::World;

use crate::start::{self, TO};

/// Of every so many writes of 3+3 one is crashed after here. `.ci/run` has the others.
const EVERY: u64 = 8;

/// On as many threads as there are cores: tests of this sort are few, and long.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

pub fn swept(start: &World, request: Request) -> Sweep {
    let sweep = Sweep::new(Subject::new(start.fork(start.settings().clone()), request)).unwrap();
    assert!(sweep.reference().broken.is_empty(), "{:?}", sweep.reference().broken);
    sweep
}

/// All that is picked of a kind is survived, and did bite.
pub fn check(sweep: &Sweep, kind: &str, pick: &Pick) -> Vec<Tried> {
    let kinds = Kind::called(kind);
    assert!(!kinds.is_empty(), "there is no kind {kind}");
    let mut all = Vec::new();
    for kind in kinds {
        let trials = sweep.trials(kind, pick);
        all.extend(sweep.run(&trials, threads(), |_| ()));
    }
    let broken: Vec<String> =
        all.iter().filter(|tried| !tried.bit || !tried.broken.is_empty()).map(ToString::to_string).collect();
    assert!(!all.is_empty() && broken.is_empty(), "{} of {}:\n{}", broken.len(), all.len(), broken.join("\n"));
    all
}

#[test]
fn the_upgrade_of_one_and_one_survives_a_crash_after_every_write() {
    let sweep = swept(&start::one_and_one().world, start::update());
    assert_eq!(sweep.reference().verdict, Verdict::Reached { distribution: TO.into() });
    let tried = check(&sweep, "F01", &Pick::all(0));
    assert_eq!(tried.len(), sweep.reference().writes.len());
}

#[test]
fn the_upgrade_of_three_and_three_survives_a_crash_after_a_slice_of_its_writes() {
    let sweep = swept(&start::of(3, 3).world, start::update());
    check(&sweep, "F01", &Pick { every: EVERY, ..Pick::all(0) });
}
