//! The counters of the notes on rolling updates: an upgrade whose pods wait for a label that comes late. The scenario is the
//! example that `windlass up` can be given.

use k8s_openapi::api::batch::v1::Job;
use windlass_apiserver::store::Range;
use windlass_rehearse::crash::Crashes;
use windlass_rehearse::rehearsal::{self, Ended, Request, Verdict, Wish};
use windlass_sim::fault::Scenario;

use crate::start::{self, SEED, TO, founded, later, manifest};

const JOB_DELETED: &str = "
name: somebody deletes the Job that gave up
actions:
- at: 1m
  action: {do: delete, apiVersion: batch/v1, kind: Job, name: 'vmware-system-tkg/update-*'}
";

const EXAMPLE: &str = include_str!("../../../../deploy/examples/late-role.yaml");

/// Creates a cluster while the scenario is at work, and upgrades it a day later.
fn upgraded(name: &str, control_plane: u32) -> Ended {
    let faults = Scenario::from_yaml(EXAMPLE).unwrap();
    let cluster = format!("default/{name}").parse().unwrap();
    let mut wanted = manifest(control_plane, 1);
    wanted.metadata.name = Some(name.to_owned());
    let mut request = Request { faults, ..Request::new(cluster, start::FROM, SEED, founded()) };
    let created = rehearsal::create(&start::empty(), &request, &wanted).unwrap();
    let text = created.rehearsal.text();
    assert!(matches!(created.rehearsal.verdict, Verdict::Reached { .. }) && !text.contains("F20"), "{text}");
    request = Request { ask: start::update().ask, at: later(), ..request };
    rehearsal::hold(&created.world, &request, Crashes::none()).unwrap()
}

/// How many pods of the only Job failed, and how many succeeded.
fn counters(ended: &Ended) -> (i32, i32) {
    let everything = Range { namespace: None, after: None, limit: 0 };
    let jobs = ended.world.management().store().list("jobs.batch", everything, |_| true).entries;
    assert_eq!(jobs.len(), 1);
    let job: Job = serde_json::from_value(jobs[0].to_value("batch/v1", "Job")).unwrap();
    let status = job.status.unwrap();
    (status.failed.unwrap_or_default(), status.succeeded.unwrap_or_default())
}

#[test]
fn a_late_role_costs_three_attempts_or_all_four_and_never_the_creation() {
    let ended = upgraded("my-tkc", 3);
    let text = ended.rehearsal.text();
    assert_eq!(ended.rehearsal.verdict, Verdict::Reached { distribution: TO.into() }, "{text}");
    assert!(ended.rehearsal.violations.is_empty(), "{text}");
    assert_eq!(counters(&ended), (3, 1), "{text}");

    let ended = upgraded("my-tkc-2", 1);
    let text = ended.rehearsal.text();
    let Verdict::Failed { why } = &ended.rehearsal.verdict else { panic!("{text}") };
    assert!(why.contains("is not labelled as one of the control plane"), "{why}");
    assert!(ended.rehearsal.violations.is_empty(), "{text}");
    assert_eq!(counters(&ended), (4, 0), "{text}");

    // The Job is deleted, and nodes get their labels again: the same update goes on with what is there.
    let request = Request {
        ask: Wish::Nothing,
        faults: Scenario::from_yaml(JOB_DELETED).unwrap(),
        at: ended.world.settings().clock.now(),
        ..Request::new("default/my-tkc-2".parse().unwrap(), TO, SEED, founded())
    };
    let ended = rehearsal::hold(&ended.world, &request, Crashes::none()).unwrap();
    let text = ended.rehearsal.text();
    assert_eq!(ended.rehearsal.verdict, Verdict::Reached { distribution: TO.into() }, "{text}");
    assert_eq!(counters(&ended), (0, 1), "{text}");
    assert!(ended.rehearsal.took.as_mins() < 30, "{text}");
    assert!(ended.rehearsal.violations.is_empty(), "{text}");
}
