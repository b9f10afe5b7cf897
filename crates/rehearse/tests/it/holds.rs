//! What costs no attempt: somebody holds a cluster in the middle of its update, or the management API does not answer for a
//! while. Nothing is touched, and it goes on afterwards. What does cost one says why.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, LogParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use windlass_rehearse::crash::Crashes;
use windlass_rehearse::rehearsal::{Ended, Request, Verdict, hold};
use windlass_runtime::virtual_time::run_virtual;
use windlass_sim::actor::{Actor, Caller};
use windlass_sim::fault::{Action, Fault, Place, Requests, Scenario, Span, When};
use windlass_sim::world::{Settings, World};

use crate::start::{self, SEED, TO};

/// What Jobs have come to, and what their pods have said.
struct Attempts {
    failed: i32,
    pods: usize,
    said: String,
}

fn attempts(world: &World) -> Attempts {
    run_virtual(SEED, start::later(), |time| {
        let world = world.fork(Settings { clock: time.clock, ..world.settings().clone() });
        async move {
            let jobs: Api<Job> = Api::all(world.client());
            let jobs = jobs.list(&ListParams::default()).await.unwrap();
            let failed = jobs.iter().map(|job| job.status.as_ref().and_then(|status| status.failed).unwrap_or(0)).sum();
            let pods: Api<Pod> = Api::namespaced(world.client(), "vmware-system-tkg");
            let names: Vec<String> =
                pods.list(&ListParams::default()).await.unwrap().iter().map(ResourceExt::name_any).collect();
            let mut said = String::new();
            for name in &names {
                said.push_str(&pods.logs(name, &LogParams::default()).await.unwrap());
            }
            Attempts { failed, pods: names.len(), said }
        }
    })
    .unwrap()
}

fn patch(api_version: &str, kind: &str, patch: Value) -> Action {
    let (api_version, kind) = (api_version.into(), kind.into());
    Action::Patch { cluster: None, api_version, kind, name: "default/my-tkc".into(), patch }
}

const CLUSTER: (&str, &str) = ("cluster.x-k8s.io/v1beta2", "Cluster");
const WISH: (&str, &str) = ("run.tanzu.vmware.com/v1alpha1", "TanzuKubernetesCluster");

fn paused(yes: bool) -> Value {
    json!({ "spec": { "paused": yes } })
}

fn annotated(yes: bool) -> Value {
    json!({ "metadata": { "annotations": { "cluster.x-k8s.io/paused": if yes { json!("") } else { Value::Null } } } })
}

/// Holds a cluster for an hour from a moment on.
fn held(start: &Ended, at: u64, (api_version, kind): (&str, &str), change: fn(bool) -> Value) -> Ended {
    let faults = Scenario::default()
        .then(Span::seconds(at), patch(api_version, kind, change(true)))
        .then(Span::seconds(at + 60 * 60), patch(api_version, kind, change(false)));
    hold(&start.world, &Request { faults, ..start::update() }, Crashes::none()).unwrap()
}

fn check(start: &Ended, at: u64, held_by: (&str, &str), change: fn(bool) -> Value, by: &str) {
    let Ended { rehearsal, world, .. } = held(start, at, held_by, change);
    assert_eq!(rehearsal.verdict, Verdict::Reached { distribution: TO.into() }, "{rehearsal}");
    assert!(rehearsal.violations.is_empty(), "{rehearsal}");
    assert!(rehearsal.took.as_mins() >= 60, "{rehearsal}");
    let mut told = rehearsal.waited.iter().flat_map(|waited| &waited.why);
    assert!(told.any(|line| line.contains("is paused") && line.contains(by)), "{:#?}", rehearsal.waited);
    let began = rehearsal.began;
    let touched = rehearsal.timeline.events.iter().filter(|event| {
        let second = event.at.duration_since(began).as_secs();
        // What was decided a moment before may still be written.
        matches!(event.actor, Actor::Upgrader | Actor::Windlass)
            && (at + 2..at + 60 * 60).contains(&second.unsigned_abs())
    });
    assert_eq!(touched.count(), 0, "{rehearsal}");
    let Attempts { failed, pods, said } = attempts(&world);
    assert_eq!((failed, pods), (0, 1), "{said}");
    let waited = said.lines().filter(|line| line.contains(&format!("wait until default/my-tkc is released: {by}")));
    assert!((11..=13).contains(&waited.count()), "every five minutes\n{said}");
    assert!(said.contains("my-tkc is released\n"), "{said}");
}

#[test]
fn a_pause_of_an_hour_in_the_control_plane_stage_costs_no_attempt() {
    // Its replacement boots, joins, and has taken over.
    for at in [40, 156, 190] {
        check(start::one_and_one(), at, CLUSTER, paused, "spec.paused of Cluster/my-tkc");
    }
    check(start::three_and_one(), 300, CLUSTER, paused, "spec.paused of Cluster/my-tkc");
}

#[test]
fn whoever_pauses_the_cluster_or_what_it_was_made_for_is_heard() {
    let annotation = "the annotation cluster.x-k8s.io/paused of";
    check(start::one_and_one(), 60, CLUSTER, annotated, &format!("{annotation} Cluster/my-tkc"));
    check(start::one_and_one(), 60, WISH, annotated, &format!("{annotation} TanzuKubernetesCluster/my-tkc"));
}

#[test]
fn a_management_api_that_does_not_answer_for_two_minutes_costs_no_attempt() {
    // When the program begins, and when the new machine has come up and the old one is to go.
    for after in [1, 170] {
        let on = Requests { place: Some(Place::Management), ..Requests::default() }.by(Caller::Upgrader);
        let refused = Fault::Refusal { on, code: 503, retry_after_seconds: None };
        let when = When::between(Span::seconds(after), Span::seconds(after + 120));
        let request = Request { faults: Scenario::default().and(refused, when), ..start::update() };
        let Ended { rehearsal, world, .. } = hold(&start::one_and_one().world, &request, Crashes::none()).unwrap();
        assert_eq!(rehearsal.verdict, Verdict::Reached { distribution: TO.into() }, "{rehearsal}");
        assert!(rehearsal.violations.is_empty(), "{rehearsal}");
        assert_eq!(rehearsal.machines.len(), 4, "two come and two go\n{rehearsal}");
        let bitten = rehearsal.timeline.events.iter().any(|event| event.text.contains("F04: "));
        let Attempts { failed, pods, said } = attempts(&world);
        assert_eq!((bitten, failed, pods), (true, 0, 1), "{said}\n{rehearsal}");
    }
}
