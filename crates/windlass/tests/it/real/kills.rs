//! Two replicas on a real API server, and the one that leads is killed again and again, at writes that a seed chooses.
//!
//! `WINDLASS_KILLS` says how often in all; without it a few are tried. `WINDLASS_SEED` says at which writes.

use std::collections::BTreeMap;

use windlass_api::kind::cluster_update::UpdateState;
use windlass_rehearse::crash::Crashes;
use windlass_runtime::chance::Seed;
use windlass_sim::actor::Caller;
use windlass_sim::fault::Moment;

use super::stage::{How, really, rehearsed};
use super::{end, say, script, tier, writes};

/// How many it is without being told.
const FEW: u64 = 3;
/// How many in one update: it takes the next replica 15 s to be sure that the one before is gone.
const IN_ONE_UPDATE: u64 = 5;

fn told(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

#[test]
fn an_upgrade_ends_as_it_should_however_often_its_leader_is_killed() {
    let Some(assets) = tier("kills of the leader at random writes") else { return };
    let (kills, seed) = (told("WINDLASS_KILLS").unwrap_or(FEW), Seed(told("WINDLASS_SEED").unwrap_or(50)));
    let how = How::default();
    let expected = rehearsed(&how, &script);
    assert_eq!(expected.came.state, Some(UpdateState::Succeeded));
    let of_the_update = writes(&how.crashes) - expected.came.before;
    say(&format!("{kills} kills with WINDLASS_SEED={}, among {of_the_update} writes of the controllers", seed.0));
    let mut chance = seed.stream("kills");
    let (mut done, mut rounds) = (0, 0);
    while done < kills {
        let mut points = BTreeMap::new();
        for _ in 0..IN_ONE_UPDATE.min(kills - done) {
            let number = expected.came.before + 1 + chance.below(of_the_update);
            points.insert(number, if chance.below(2) == 0 { Moment::Before } else { Moment::After });
        }
        let points: Vec<(u64, Moment)> = points.into_iter().collect();
        let (words, count) = (format!("{points:?}"), points.len());
        let how = How { crashes: Crashes::of(Caller::Controllers, points), ..How::default() };
        let ran = really(assets.clone(), &how, &script);
        // On a real server there may be fewer writes than that: some say what is so already.
        let killed = u64::try_from(count - how.crashes.left()).unwrap();
        assert_eq!(end(ran), end(expected.clone()), "seed {}: {words}", seed.0);
        assert!(killed > 0, "nobody was killed: {words}");
        (done, rounds) = (done + killed, rounds + 1);
        say(&format!("{done} of {kills}: {words}"));
    }
    say(&format!("{done} kills in {rounds} updates: all ended, nothing was made twice, and no version went back"));
}
