//! A rehearsal that starts from a snapshot is the same as one that starts from the World that it was taken of.

use windlass_rehearse::rehearsal::rehearse;
use windlass_rehearse::snapshot::Snapshot;
use windlass_runtime::virtual_time::run_virtual;
use windlass_sim::world;

use crate::start::{self, SEED, later};

#[test]
fn a_rehearsal_from_a_snapshot_has_the_same_timeline_as_one_from_a_fork() {
    let start = start::three_and_one();
    let settings = |clock| world::Settings { clock, ..start.world.settings().clone() };
    let (text, restored) = run_virtual(SEED, later(), |time| async move {
        let snapshot = Snapshot::of(&start.world.fork(settings(time.clock.clone()))).await.unwrap();
        assert_eq!(snapshot.gaps, []);
        let text = serde_json::to_string(&snapshot).unwrap();
        let read: Snapshot = serde_json::from_str(&text).unwrap();
        assert_eq!(read, snapshot);
        (text, read.world(settings(time.clock)).await.unwrap())
    })
    .unwrap();
    assert!(!text.contains("STAND-IN"), "the values of Secrets are left out");
    let forked = rehearse(&start.world, &start::update()).unwrap();
    let restored = rehearse(&restored, &start::update()).unwrap();
    assert_eq!(restored.verdict, forked.verdict, "{restored}");
    assert_eq!(restored.timeline.text(), forked.timeline.text());
}
