//! Whoever waits says what for, since when, and what would end it.

use jiff::{SignedDuration, Timestamp};
use windlass_plan::inventory::{UpdateRecordState, Waited};
use windlass_plan::planner::{Planned, plan};

use crate::fake::Fake;
use crate::sample::target;
use crate::story::running_cluster;

fn at(seconds: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
}

fn planned(fake: &Fake, now: Timestamp) -> Planned {
    let mut input = fake.input();
    input.now = now;
    plan(&input)
}

/// A cluster in the middle of an upgrade, whose packages have been written and are not ready.
fn upgrading() -> Fake {
    let mut fake = running_cluster(1, 1);
    fake.target = target(1, 1, "v1.16.7");
    for _ in 0..2 {
        let planned = plan(&fake.input());
        planned.record.iter().for_each(|record| fake.record(record));
        planned.steps.iter().for_each(|step| fake.execute(step));
    }
    fake
}

fn waited(planned: &Planned) -> Vec<(String, String, i64)> {
    let waited = |waited: &Waited| (waited.reason.clone(), waited.object.clone(), waited.since.as_second());
    planned.report.waiting.iter().map(waited).collect()
}

#[test]
fn what_an_update_waits_for_is_dated_once_and_stays_so() {
    let mut fake = upgrading();
    let first = planned(&fake, at(100));
    assert!(!first.report.waiting.is_empty());
    assert!(first.report.waiting.iter().all(|waited| waited.since == at(100)), "{:?}", first.report.waiting);

    // The record remembers it; a later look does not date it anew, whatever the sentence is by then.
    fake.inventory.update.as_mut().unwrap().waiting = first.report.waiting.clone();
    assert_eq!(waited(&planned(&fake, at(200))), waited(&first));

    // Something else is waited for since now.
    let forgotten = fake.inventory.update.as_mut().unwrap().waiting.pop().unwrap();
    let later = planned(&fake, at(300));
    let since = |object: &str| later.report.waiting.iter().find(|waited| waited.object == object).unwrap().since;
    assert_eq!(since(&forgotten.object), at(300));
    assert_eq!(
        later.report.waiting.iter().filter(|waited| waited.since == at(100)).count(),
        first.report.waiting.len() - 1
    );
}

#[test]
fn a_wait_names_its_object_and_the_way_out() {
    let fake = upgrading();
    let report = planned(&fake, at(100)).report;
    let stage = report.stages.iter().find(|stage| !stage.blocked.is_empty()).unwrap();
    let waits = report.waits(stage);
    assert_eq!(waits.len(), stage.blocked.len());
    assert_eq!(waits[0].reason, "PackageNotReady");
    assert!(waits[0].object.starts_with("Addon/"), "{waits:?}");
    assert_eq!(waits[0].since, Some(at(100)));
    assert!(waits[0].way_out.as_ref().is_some_and(|way_out| way_out.starts_with("wait; if it lasts")), "{waits:?}");
    let wire = serde_json::to_value(&waits[0]).unwrap();
    assert_eq!(wire["since"], "1970-01-01T00:01:40Z");
}

#[test]
fn nobody_remembers_since_when_a_cluster_waits_that_is_not_being_updated() {
    let mut fake = Fake::new(target(1, 1, "v1.15.5"));
    assert!(planned(&fake, at(100)).report.stages.iter().any(|stage| !stage.blocked.is_empty()));
    assert_eq!(planned(&fake, at(100)).report.waiting, []);

    // The record of an update that failed stays as it was: what it waited for then is known, and nothing else.
    fake = upgrading();
    let known = planned(&fake, at(100)).report.waiting.swap_remove(0);
    let record = fake.inventory.update.as_mut().unwrap();
    record.state = UpdateRecordState::Succeeded;
    record.waiting = vec![known];
    assert_eq!(planned(&fake, at(200)).report.waiting, []);
}
