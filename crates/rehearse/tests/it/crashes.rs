//! An update that is crashed after any of its writes ends as if it had not been.
//!
//! All writes of the small cluster are tried. Of the large one every fifth, as each takes a while without optimisation;
//! `WINDLASS_EVERY_WRITE=1` tries all.

use windlass_rehearse::rehearsal::{Ended, Verdict};
use windlass_rehearse::sweep::sweep;

use crate::start::{self, TO};

fn check(start: &Ended, pick: impl FnMut(u64) -> bool) {
    let swept = sweep(&start.world, &start::update(), pick).unwrap();
    assert_eq!(swept.reference.verdict, Verdict::Reached { distribution: TO.into() });
    assert!(swept.writes > 10 && !swept.crashes.is_empty());
    assert_eq!(swept.failures().count(), 0, "of {} writes\n{swept}", swept.writes);
}

fn every_write() -> bool {
    std::env::var_os("WINDLASS_EVERY_WRITE").is_some()
}

#[test]
fn the_upgrade_of_one_and_one_survives_a_crash_after_every_write() {
    check(start::one_and_one(), |_| true);
}

#[test]
fn the_upgrade_of_three_and_one_survives_a_crash_after_any_write() {
    check(start::three_and_one(), |number| every_write() || number % 5 == 1);
}
