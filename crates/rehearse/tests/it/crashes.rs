//! An update that is crashed after any of its writes ends as if it had not been, and no machine was ever made that it did not need.
//!
//! Every write is tried. The large cluster is four tests, so that all cores share the work.

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
fn the_upgrade_of_three_and_three_survives_a_crash_after_every_fourth_write() {
    check(&start::of(3, 3), |number| number % 4 == 0);
}

#[test]
fn the_upgrade_of_three_and_three_survives_a_crash_after_each_write_that_follows_those() {
    check(&start::of(3, 3), |number| number % 4 == 1);
}

#[test]
fn the_upgrade_of_three_and_three_survives_a_crash_after_each_write_half_way_between_those() {
    check(&start::of(3, 3), |number| number % 4 == 2);
}

#[test]
fn the_upgrade_of_three_and_three_survives_a_crash_after_each_of_the_rest() {
    check(&start::of(3, 3), |number| number % 4 == 3);
}
