use jiff::Timestamp;
use serde_json::json;
use windlass_api::kind::cluster_update::{
    ClusterUpdate, ClusterUpdateSpec, ClusterUpdateStatus, UpdateEnd, UpdateState,
};
use windlass_api::kind::tanzu::{AddonPhase, Phase, TanzuKubernetesCluster, TanzuKubernetesClusterStatus};
use windlass_plan::check::{Finding, Severity};
use windlass_plan::gate::{Blocked, Gates};
use windlass_plan::inventory::{
    ClusterState, ControlPlane, Inventory, Orders, UpdateRecord, UpdateRecordState, Waited, Workload,
};
use windlass_plan::planner::{Planned, PlanningInput, Record, plan};
use windlass_plan::release::Release;
use windlass_plan::report::{Assessment, StageReport, StageState};
use windlass_plan::step::Stage;
use windlass_plan::target::Target;

use super::{Recorded, cluster, condition, notice, update};
use crate::execute::Executed;

const BEGAN: &str = "2026-01-01T00:00:00Z";
const LATER: &str = "2026-01-01T00:10:00Z";

fn tkc() -> TanzuKubernetesCluster {
    let machines = json!({"count": 1, "class": "small", "storageClass": "fast"});
    serde_json::from_value(json!({
        "apiVersion": "run.tanzu.vmware.com/v1alpha1", "kind": "TanzuKubernetesCluster",
        "metadata": {"name": "my-tkc", "namespace": "default", "uid": "1", "generation": 3},
        "spec": {
            "topology": {"controlPlane": machines, "workers": machines},
            "distribution": {"fullVersion": "v1.16.7+vmware.1-guest.1"},
        },
    }))
    .unwrap()
}

/// What was planned for a cluster of which nothing is there yet.
fn planned(now: &str) -> (PlanningInput, Planned) {
    let image = windlass_sim::catalogue::images().unwrap().remove(1);
    let target = Target::new(&tkc(), Release::from_image(&image).unwrap()).unwrap();
    let now: Timestamp = now.parse().unwrap();
    let inventory = Inventory {
        as_of: now,
        cluster: ClusterState::Absent,
        secrets: [].into(),
        control_plane: ControlPlane::default(),
        pools: [].into(),
        topology: None,
        workload: Workload::NotYet,
        update: None,
        orders: Orders::default(),
        gaps: vec![],
    };
    let input = PlanningInput { target, inventory, now, gates: Gates::all() };
    let mut planned = plan(&input);
    (planned.steps, planned.record) = (vec![], None);
    (input, planned)
}

/// An update whose stages are in these states now.
fn at(now: &str, before: &ClusterUpdateStatus, states: [StageState; 3], record: Option<Record>) -> ClusterUpdateStatus {
    let (input, mut planned) = planned(now);
    planned.report.stages = Stage::ALL
        .into_iter()
        .zip(states)
        .map(|(stage, state)| StageReport { stage, state, changes: vec![], blocked: vec![] })
        .collect();
    planned.record = record;
    let recorded = Recorded { input: &input, planned: &planned, findings: &[], executed: &Executed::default() };
    update::status(before, &ClusterUpdate::new("my-tkc-1", ClusterUpdateSpec::default()), &recorded)
}

fn times(status: &ClusterUpdateStatus) -> Vec<(bool, bool)> {
    status.stages.iter().map(|stage| (stage.started_at.is_some(), stage.finished_at.is_some())).collect()
}

#[test]
fn stages_begin_and_end_once_each() {
    use StageState::{Done, Ready, Running, Waiting};
    let mut status = ClusterUpdateStatus::default();
    for (states, stage, expected) in [
        ([Ready, Waiting, Waiting], Some("packages"), [(true, false), (false, false), (false, false)]),
        ([Done, Ready, Waiting], Some("controlPlane"), [(true, true), (true, false), (false, false)]),
        // A package is unwell for a while, as a node has come.
        ([Running, Running, Waiting], Some("controlPlane"), [(true, true), (true, false), (false, false)]),
        ([Done, Done, Waiting], Some("workers"), [(true, true), (true, true), (false, false)]),
        ([Done, Done, Running], Some("workers"), [(true, true), (true, true), (true, false)]),
        // What is left of the old release is removed.
        ([Ready, Done, Done], Some("workers"), [(true, true), (true, true), (true, true)]),
    ] {
        status = at(BEGAN, &status, states, None);
        assert_eq!((status.stage.as_deref(), times(&status)), (stage, expected.to_vec()), "{states:?}");
        assert_eq!(at(LATER, &status, states, None), status, "the same again, later, changes nothing");
    }
    assert!(status.stages.iter().all(|stage| stage.started_at.as_deref() == Some(BEGAN)));
}

#[test]
fn a_stage_with_nothing_to_do_has_no_times() {
    let status = at(BEGAN, &ClusterUpdateStatus::default(), [StageState::Done; 3], Some(Record::Succeeded));
    assert_eq!(times(&status), [(false, false); 3]);
    assert_eq!((status.state, status.finished_at.as_deref()), (Some(UpdateState::Succeeded), Some(BEGAN)));
}

#[test]
fn an_update_that_has_ended_stays_as_it_is_unless_it_is_resumed() {
    use StageState::{Done, Failed, Ready, Waiting};
    let running = at(BEGAN, &ClusterUpdateStatus::default(), [Done, Ready, Waiting], None);
    let gave_up = Record::Failed { message: "four attempts".into() };
    let failed = at(BEGAN, &running, [Done, Failed, Waiting], Some(gave_up));
    assert_eq!((failed.state, failed.failure.as_deref()), (Some(UpdateState::Failed), Some("four attempts")));
    assert_eq!(at(LATER, &failed, [Done, Ready, Waiting], None), failed);

    let resumed = at(LATER, &failed, [Done, Ready, Waiting], Some(Record::Resumed));
    assert_eq!((resumed.state, resumed.failure.clone()), (Some(UpdateState::Running), None));
    assert_eq!((resumed.started_at.as_deref(), resumed.finished_at.as_deref()), (Some(BEGAN), None));

    let told = |before: &ClusterUpdateStatus, after: &ClusterUpdateStatus| {
        let update = ClusterUpdate::new("my-tkc-1", ClusterUpdateSpec::default());
        let notices = notice::of_update(&update, before, after);
        notices.into_iter().map(|notice| notice.reason).collect::<Vec<_>>()
    };
    assert_eq!(told(&ClusterUpdateStatus::default(), &running), ["UpdateBegan", "ControlPlaneBegan"]);
    assert_eq!(told(&running, &failed), ["UpdateFailed"]);
    assert_eq!(told(&failed, &resumed), ["UpdateResumed"]);
    assert!(told(&resumed, &resumed).is_empty());
}

/// The status of a cluster that is assessed so, with this for its stages to wait for.
fn assessed(
    before: &TanzuKubernetesClusterStatus,
    assessment: Assessment,
    blocked: &[Blocked],
) -> TanzuKubernetesClusterStatus {
    let (input, mut planned) = planned(LATER);
    planned.report.assessment = assessment;
    for stage in &mut planned.report.stages {
        stage.state = if blocked.is_empty() { StageState::Done } else { StageState::Waiting };
        stage.blocked = blocked.to_vec();
    }
    let recorded = Recorded { input: &input, planned: &planned, findings: &[], executed: &Executed::default() };
    let status = cluster::status(before, &tkc(), None, None, &recorded);
    condition::dated(before, status, input.now)
}

#[test]
fn a_cluster_says_what_it_waits_for_and_since_when_it_is_not_ready() {
    let creating = assessed(&TanzuKubernetesClusterStatus::default(), Assessment::Creating, &[Blocked::NoWorkloadApi]);
    assert_eq!(creating.phase, Some(Phase::Creating));
    assert_eq!(creating.waiting_for, Some(Blocked::NoWorkloadApi.to_string()));
    assert_eq!(creating.observed_generation, Some(3));
    assert!(creating.addons.values().all(|addon| addon.status == AddonPhase::Pending));
    let conditions = |status: &TanzuKubernetesClusterStatus| {
        let shown = status.conditions.iter().map(|c| format!("{}={} {}", c.type_, c.status, c.reason));
        shown.collect::<Vec<_>>()
    };
    assert_eq!(conditions(&creating), ["Ready=False NoWorkloadApi", "Stalled=False Moving"]);

    let mut earlier = creating.clone();
    earlier.conditions.iter_mut().for_each(|condition| condition.last_transition_time = BEGAN.into());
    assert_eq!(assessed(&earlier, Assessment::Creating, &[Blocked::NoWorkloadApi]), earlier, "nothing has changed");

    let running = assessed(&earlier, Assessment::Running, &[]);
    assert_eq!((running.phase, running.waiting_for.clone()), (Some(Phase::Running), None));
    assert_eq!(conditions(&running), ["Ready=True AsAsked", "Stalled=False Moving"]);
    let since: Vec<&str> = running.conditions.iter().map(|c| c.last_transition_time.as_str()).collect();
    assert_eq!(since, [LATER, BEGAN]);

    let failed = assessed(&running, Assessment::UpdateFailed, &[Blocked::ControlPlaneLost]);
    assert_eq!(conditions(&failed), ["Ready=False ControlPlaneLost", "Stalled=True ControlPlaneLost"]);
    assert_eq!(notice::of_cluster(&running, &failed).map(|notice| notice.reason).as_deref(), Some("ControlPlaneLost"));
    assert_eq!(notice::of_cluster(&failed, &failed), None);
}

/// An update whose last look recorded this, with findings and gates to wait for.
fn waiting(now: &str, before: &ClusterUpdateStatus, findings: &[Finding]) -> ClusterUpdateStatus {
    let (mut input, mut planned) = planned(now);
    let known = before.waiting_for.iter().map(|waiting| Waited {
        reason: waiting.reason.clone(),
        object: waiting.object.clone(),
        since: waiting.since.as_ref().unwrap().parse().unwrap(),
    });
    input.inventory.update = Some(UpdateRecord {
        name: "my-tkc-1".parse().unwrap(),
        ordinal: 1,
        id: "1".parse().unwrap(),
        from: UpdateEnd::default(),
        envelope_digest: planned.envelope.digest(),
        state: UpdateRecordState::Running,
        waiting: known.collect(),
    });
    planned.report = plan(&input).report;
    let recorded = Recorded { input: &input, planned: &planned, findings, executed: &Executed::default() };
    update::status(before, &ClusterUpdate::new("my-tkc-1", ClusterUpdateSpec::default()), &recorded)
}

#[test]
fn an_update_says_since_when_it_waits_and_says_it_once() {
    let objection =
        Finding { id: "V1".into(), severity: Severity::Fatal, object: "Machine/a".into(), message: "too new".into() };
    let first = waiting(BEGAN, &ClusterUpdateStatus::default(), std::slice::from_ref(&objection));
    assert!(first.waiting_for.len() > 1, "{:?}", first.waiting_for);
    assert!(first.waiting_for.iter().all(|waiting| waiting.since.as_deref() == Some(BEGAN)), "{:?}", first.waiting_for);
    assert_eq!(
        waiting(LATER, &first, std::slice::from_ref(&objection)),
        first,
        "the same again, later, changes nothing"
    );

    let another = Finding { object: "Machine/b".into(), ..objection.clone() };
    let both = waiting(LATER, &first, &[objection, another]);
    let since: Vec<&str> = both.waiting_for.iter().take(2).filter_map(|waiting| waiting.since.as_deref()).collect();
    assert_eq!(since, [BEGAN, LATER]);
}
