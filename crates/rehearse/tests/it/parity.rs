//! What is rehearsed is what happens: 50 scenarios are rehearsed, and then run as `windlass up` runs them, in time that goes on
//! by itself. Both agree on the outcome, on the order of stages and of control-plane machines, on what happened to each object
//! and in which order, and on how often.
//!
//! A step of that time is a quarter of a second; what is decided by less than that is nobody's decision, and not compared: which of
//! two pods is evicted first, and whether the last look at an update still sees the node that has just gone, by which the version
//! that all machines have is told before the phase or after it. It is told once all the same.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use windlass_rehearse::crash::Crashes;
use windlass_rehearse::rehearsal::{self, Rehearsal, Request};
use windlass_sim::actor::Caller;
use windlass_sim::fault::{
    Action, Fault, Loss, MachineFault, Moment, NodeFault, Requests, Scenario, Skew, Span, WatchEnd, When, Whom,
};
use windlass_sim::timeline::{Event, What};
use windlass_sim::world::World;

use crate::matrix::Sort::{Class, Combined, Delete, Rename, Retarget, Revert, Scale, StorageClass, Upgrade};
use crate::matrix::{Sort, ended};
use crate::start::{self, SEED, cluster_name, later};

/// Far more than `windlass up --speed 600`: a step of the clock stays a quarter of a second.
const TIMES: NonZeroU32 = NonZeroU32::new(20_000).unwrap();

/// All of what both must agree on.
#[derive(Debug, PartialEq, Eq)]
struct Story {
    verdict: String,
    /// The stages, in the order in which they began.
    stages: Vec<String>,
    /// The machines of the control plane as they come and go.
    control_plane: Vec<What>,
    /// How often each row of things happened to an object of a kind.
    objects: BTreeMap<(String, Vec<What>), usize>,
    /// How often each thing happened at all.
    counts: BTreeMap<What, usize>,
}

impl Story {
    fn of(rehearsal: &Rehearsal) -> Self {
        let events = rehearsal.timeline.events.iter().filter(|event| tells(event));
        let mut rows: BTreeMap<(&str, &str), Vec<What>> = BTreeMap::new();
        let mut counts = BTreeMap::new();
        for event in events.clone() {
            *counts.entry(event.what).or_default() += 1;
            if event.what == What::ClusterVersion {
                continue;
            }
            rows.entry((&event.place, &event.object)).or_default().push(event.what);
        }
        let mut objects = BTreeMap::new();
        for ((_, object), row) in rows {
            let kind = object.split('/').next().unwrap_or_default().to_owned();
            *objects.entry((kind, row)).or_default() += 1;
        }
        let of_control_plane = |event: &&Event| event.lane.as_ref().is_some_and(|lane| lane.control_plane);
        let of_machine = |event: &&Event| matches!(event.what, What::MachineCreated | What::MachineDeleted);
        let mut stages = rehearsal.stages.clone();
        stages.sort_by(|one, other| one.started_at.cmp(&other.started_at));
        Self {
            verdict: rehearsal.verdict.to_string(),
            stages: stages.into_iter().map(|stage| stage.stage).collect(),
            control_plane: events.filter(of_control_plane).filter(of_machine).map(|event| event.what).collect(),
            objects,
            counts,
        }
    }
}

/// Whether an event is one that both worlds must have alike.
fn tells(event: &Event) -> bool {
    !event.object.starts_with("Pod/") && !event.object.starts_with("Lease/") && event.what != What::Fault
}

fn agrees(what: &str, world: &World, request: &Request) {
    let rehearsed = rehearsal::hold(world, request, Crashes::none()).unwrap().rehearsal;
    let happened = rehearsal::hold_paced(world, request, TIMES).unwrap().rehearsal;
    assert_eq!(Story::of(&rehearsed), Story::of(&happened), "{what}\n{rehearsed}\n{happened}");
    assert!(rehearsed.violations.is_empty() && happened.violations.is_empty(), "{what}\n{rehearsed}\n{happened}");
}

/// A change of a cluster of some size.
fn sort(control_plane: u32, workers: u32, sorts: &[Sort]) {
    for &sort in sorts {
        let start = start::of(control_plane, workers);
        let renamed = (sort == Rename).then(|| ended::renamed(&start, "photon-by-another-name"));
        let faults = if sort == Delete { deleted() } else { sort.action(workers) };
        let request = Request { faults, ..Request::asking(cluster_name(), sort.wish(workers), SEED, later()) };
        agrees(&format!("{sort:?} of {control_plane}+{workers}"), renamed.as_ref().unwrap_or(&start.world), &request);
    }
}

/// The end of the cluster, at a time when nothing else ends.
fn deleted() -> Scenario {
    let action = Action::Delete {
        cluster: None,
        api_version: "run.tanzu.vmware.com/v1alpha1".into(),
        kind: "TanzuKubernetesCluster".into(),
        name: "default/my-tkc".into(),
    };
    Scenario::default().then(Span::seconds(137), action)
}

/// An upgrade in which something goes wrong.
fn fault(control_plane: u32, workers: u32, faults: Vec<(&str, Scenario)>) {
    for (name, faults) in faults {
        let start = start::of(control_plane, workers);
        agrees(&format!("{name} at {control_plane}+{workers}"), &start.world, &Request { faults, ..start::update() });
    }
}

fn of_requests() -> Vec<(&'static str, Scenario)> {
    let writes = || Requests::to("write", "*").by(Caller::Controllers);
    let all = || Requests::default().by(Caller::Controllers);
    let with = |fault: Fault, when: When| Scenario::default().and(fault, when);
    vec![
        ("F04", with(Fault::Refusal { on: writes(), code: 503, retry_after_seconds: None }, When::times(3))),
        ("F05", with(Fault::LostAnswer { on: writes(), instead: Loss::GatewayTimeout }, When::nth(4))),
        ("F06", with(Fault::Repetition { on: writes() }, When::times(5))),
        ("F07", Scenario::of(Fault::Delay { on: all(), least: Span::seconds(2), most: Span::seconds(2) })),
        (
            "F08",
            with(Fault::WatchEnds { on: all(), how: WatchEnd::Expired, after: Span::seconds(30) }, When::times(20)),
        ),
        ("F11", Scenario::of(Fault::Lag { on: all(), by: Span::seconds(3) })),
    ]
}

fn of_processes() -> Vec<(&'static str, Scenario)> {
    let crash = |write: u64, moment: Moment| Scenario::of(Fault::Crash { write, moment });
    let split = Fault::SplitLeadership { takeover: Span::seconds(20), notices_after: Span::seconds(30) };
    let an_hour = Skew::Step { by: jiff::SignedDuration::from_hours(1) };
    vec![
        // Later on, controllers and upgrader write at the same time, and the same number may be another's write.
        ("F01 at 3", crash(3, Moment::After)),
        ("F01 at 12", crash(12, Moment::After)),
        ("F01 at 19", crash(19, Moment::After)),
        ("F02 at 7", crash(7, Moment::Before)),
        ("F02 at 16", crash(16, Moment::Before)),
        ("F13", Scenario::default().and(split, When::between(Span::seconds(125), Span::seconds(185)))),
        ("F15", Scenario::of(Fault::WrongClock { caller: Caller::Controllers, how: an_hour })),
    ]
}

fn of_machines() -> Vec<(&'static str, Scenario)> {
    let machine = |named: &str, how: MachineFault| {
        Scenario::default().and(Fault::Machine { of: Whom::named(named), how }, When::times(1))
    };
    let late = |minutes: u64| MachineFault::BootsLate { by: Span::minutes(minutes) };
    let node = |how: NodeFault| Scenario::default().and(Fault::Node { of: Whom::default(), how }, When::times(1));
    vec![
        ("F19 of a worker", machine("*-workers-*", late(11))),
        ("F19 of the control plane", machine("*-control-plane-*", late(7))),
        ("late labels", node(NodeFault::LateLabels { by: Span::seconds(47) })),
        ("late role", node(NodeFault::LateRole { by: Span::seconds(47) })),
    ]
}

#[test]
fn one_and_one_is_changed() {
    sort(1, 1, &[Upgrade, Class, StorageClass, Rename, Combined, Retarget, Revert, Scale, Delete]);
}

#[test]
fn few_and_few_are_changed() {
    sort(1, 0, &[Upgrade, Scale]);
    sort(1, 3, &[Upgrade, StorageClass, Scale, Delete]);
    sort(3, 1, &[Upgrade, Class, Combined]);
}

#[test]
fn three_and_three_are_changed() {
    sort(3, 3, &[Upgrade, Rename, Combined, Retarget, Revert, Scale, Delete]);
}

#[test]
fn requests_fail() {
    fault(1, 1, of_requests());
    fault(3, 1, of_requests().split_off(4));
}

#[test]
fn processes_fail() {
    fault(1, 1, of_processes());
    fault(3, 1, of_processes().split_off(5));
}

#[test]
fn machines_fail() {
    fault(1, 1, of_machines());
    fault(1, 3, of_machines().split_off(2));
    fault(3, 1, of_machines().split_off(2));
}
