//! An update that is crashed after any of its writes ends as if it had not been.
//!
//! Every write is tried. The large cluster is two tests, so that two cores share the work.

use windlass_rehearse::rehearsal::{Ended, Verdict};
use windlass_rehearse::sweep::sweep;

use crate::start::{self, TO};

fn check(start: &Ended, pick: impl FnMut(u64) -> bool) {
    let swept = sweep(&start.world, &start::update(), pick).unwrap();
    assert_eq!(swept.reference.verdict, Verdict::Reached { distribution: TO.into() });
    assert!(swept.writes > 10 && !swept.crashes.is_empty());
    assert_eq!(swept.failures().count(), 0, "of {} writes\n{swept}", swept.writes);
}

#[test]
fn the_upgrade_of_one_and_one_survives_a_crash_after_every_write() {
    check(start::one_and_one(), |_| true);
}

#[test]
fn the_upgrade_of_three_and_one_survives_a_crash_after_every_other_write() {
    check(start::three_and_one(), |number| number % 2 == 0);
}

#[test]
fn the_upgrade_of_three_and_one_survives_a_crash_after_each_of_the_rest() {
    check(start::three_and_one(), |number| number % 2 == 1);
}
