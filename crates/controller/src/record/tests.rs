use jiff::Timestamp;
use serde_json::json;
use windlass_api::kind::cluster_update::{
    ClusterUpdate, ClusterUpdateSpec, ClusterUpdateStatus, StepOutcome, StepRecord, UpdateEnd, UpdateState,
};
use windlass_api::kind::is_true;
use windlass_api::kind::tanzu::{AddonPhase, Phase, TanzuKubernetesCluster, TanzuKubernetesClusterStatus};
use windlass_api::name::{NameLimit, NodeName, replacement_name};
use windlass_plan::check::{Finding, Severity};
use windlass_plan::gate::{Blocked, Gates};
use windlass_plan::inventory::{
    ClusterState, ControlPlane, Inventory, Machine, MachineState, Milestone, Orders, Releases, UpdateRecord,
    UpdateRecordState, Waited, Workload,
};
use windlass_plan::planner::{Planned, PlanningInput, Record, plan};
use windlass_plan::release::Release;
use windlass_plan::report::{Assessment, Secrets, StageReport, StageState};
use windlass_plan::step::{Revision, Stage};
use windlass_plan::target::Target;
use windlass_runtime::events::Kind;

use super::{Recorded, cluster, notice, steps, update};
use crate::execute::{Executed, ExecutedStep};

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
pub(super) fn planned(now: &str) -> (PlanningInput, Planned) {
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
        consent: None,
        releases: Releases::default(),
        earlier_templates: Vec::new(),
        deployed: None,
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
    let recorded =
        Recorded { input: &input, planned: &planned, findings: &[], executed: &Executed::default(), attempts: &[] };
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
fn packages_that_are_unwell_while_nodes_come_have_not_begun() {
    use StageState::{Done, Ready, Running};
    let mut status = ClusterUpdateStatus::default();
    for states in [[Done, Ready, Ready], [Running, Running, Running], [Done, Done, Running], [Done; 3]] {
        status = at(BEGAN, &status, states, None);
        assert_eq!(times(&status)[0], (false, false), "{states:?}");
    }
    assert_eq!(times(&status)[1..], [(true, true); 2]);
    // After a crash, the write of its steps may be all that is left of the beginning of a stage.
    let waits = at(BEGAN, &ClusterUpdateStatus::default(), [Running, StageState::Waiting, StageState::Waiting], None);
    assert_eq!(times(&waits)[0], (true, false));
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

    assert_eq!(told(&ClusterUpdateStatus::default(), &running), ["UpdateBegan", "ControlPlaneBegan"]);
    assert_eq!(told(&running, &failed), ["UpdateFailed"]);
    assert_eq!(told(&failed, &resumed), ["UpdateResumed"]);
    assert!(told(&resumed, &resumed).is_empty());
}

/// The events between two statuses of an update, each in a word.
fn told(before: &ClusterUpdateStatus, after: &ClusterUpdateStatus) -> Vec<String> {
    let update = ClusterUpdate::new("my-tkc-1", ClusterUpdateSpec::default());
    notice::of_update(&update, before, after).into_iter().map(|notice| notice.reason).collect()
}

#[test]
fn an_update_that_was_given_up_has_ended_no_stage_and_replaced_nobody() {
    use StageState::{Done, Ready, Waiting};
    let running = at(BEGAN, &ClusterUpdateStatus::default(), [Done, Ready, Waiting], None);
    let aborted = at(LATER, &running, [Waiting; 3], Some(Record::Aborted));
    assert_eq!((aborted.state, aborted.finished_at.as_deref()), (Some(UpdateState::Aborted), Some(LATER)));
    assert_eq!((aborted.stage.as_deref(), aborted.waiting_for.len()), (None, 0));
    assert_eq!(times(&aborted), times(&running));
    assert_eq!(told(&running, &aborted), ["UpdateAborted"]);

    // A machine that the update made, and that is gone again.
    let step = |verb: &str, outcome| StepRecord {
        id: steps::MACHINE.to_owned(),
        stage: Stage::ControlPlane.as_str().to_owned(),
        verb: verb.to_owned(),
        object: "Machine/my-tkc-control-plane-a-1".to_owned(),
        started_at: BEGAN.to_owned(),
        finished_at: None,
        outcome,
        message: None,
    };
    let came = step("create", Some(StepOutcome::Done));
    let with = |gone| ClusterUpdateStatus { steps: vec![came.clone(), step("delete", gone)], ..running.clone() };
    assert!(told(&with(None), &with(Some(StepOutcome::Done))).is_empty());
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
        stage.changes.clear();
    }
    let recorded =
        Recorded { input: &input, planned: &planned, findings: &[], executed: &Executed::default(), attempts: &[] };
    let status = cluster::status(before, &tkc(), None, None, &recorded);
    cluster::dated(before, status, input.now)
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

    let unwell = assessed(&running, Assessment::Creating, &[Blocked::NoWorkloadApi]);
    assert_eq!(unwell.phase, Some(Phase::Unhealthy), "a cluster that was running is not created again");

    let failed = assessed(&running, Assessment::UpdateFailed, &[Blocked::ControlPlaneLost]);
    assert_eq!(conditions(&failed), ["Ready=False ControlPlaneLost", "Stalled=True ControlPlaneLost"]);
    let told: Vec<String> = notice::of_cluster(&running, &failed).into_iter().map(|notice| notice.reason).collect();
    assert_eq!(told, ["ControlPlaneLost"]);
    assert_eq!(notice::of_cluster(&failed, &failed), []);
}

/// An update whose last look recorded this, with findings and gates to wait for.
fn waiting(now: &str, before: &ClusterUpdateStatus, findings: &[Finding]) -> ClusterUpdateStatus {
    let (mut input, mut planned) = planned(now);
    let known = before.waiting_for.iter().map(|waiting| Waited {
        reason: waiting.reason.clone(),
        object: waiting.object.clone(),
        since: waiting.since.as_ref().unwrap().parse().unwrap(),
    });
    input.inventory.update = Some(UpdateRecord { waiting: known.collect(), ..update_record(&planned) });
    planned.report = plan(&input).report;
    let recorded =
        Recorded { input: &input, planned: &planned, findings, executed: &Executed::default(), attempts: &[] };
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

#[test]
fn what_a_cluster_waits_for_after_its_update_has_failed_is_dated_once() {
    let objection =
        Finding { id: "V1".into(), severity: Severity::Fatal, object: "Machine/a".into(), message: "too new".into() };
    let mut latest = ClusterUpdate::new("my-tkc-1", ClusterUpdateSpec::default());
    latest.status = Some(ClusterUpdateStatus { state: Some(UpdateState::Failed), ..ClusterUpdateStatus::default() });
    let look = |now: &str, before: &TanzuKubernetesClusterStatus| {
        let (mut input, planned) = planned(now);
        let state = UpdateRecordState::Failed;
        input.inventory.update = Some(UpdateRecord { state, ..update_record(&planned) });
        let (executed, findings) = (Executed::default(), std::slice::from_ref(&objection));
        let recorded = Recorded { input: &input, planned: &planned, findings, executed: &executed, attempts: &[] };
        cluster::dated(before, cluster::status(before, &tkc(), Some(&latest), None, &recorded), input.now)
    };
    let first = look(BEGAN, &TanzuKubernetesClusterStatus::default());
    assert_eq!(first.waits[0].since.as_deref(), Some(BEGAN));
    assert_eq!(look(LATER, &first), first, "the same again, later, changes nothing");
}

#[test]
fn a_certificate_that_is_missing_is_a_condition_and_a_warning_of_its_own() {
    let (input, mut planned) = planned(LATER);
    planned.report.assessment = Assessment::Running;
    planned.report.stages.iter_mut().for_each(|stage| (stage.state, stage.blocked) = (StageState::Done, vec![]));
    let of = |secrets: Secrets, before: &TanzuKubernetesClusterStatus| {
        let mut planned = planned.clone();
        planned.report.secrets = secrets;
        let recorded =
            Recorded { input: &input, planned: &planned, findings: &[], executed: &Executed::default(), attempts: &[] };
        cluster::dated(before, cluster::status(before, &tkc(), None, None, &recorded), input.now)
    };
    let intact = of(Secrets::Intact, &TanzuKubernetesClusterStatus::default());
    assert!(is_true(&intact.conditions, "SecretsIntact") && is_true(&intact.conditions, "Ready"));
    assert_eq!(intact.phase, Some(Phase::Running));

    let missing = Blocked::CertificateMissing { secret: "my-tkc-ca".parse().unwrap() };
    let lost = of(Secrets::Missing(missing), &intact);
    let says = "Secret my-tkc-ca is missing: windlass secrets recover my-tkc; a new one would not fit";
    assert_eq!((lost.phase, lost.waiting_for.as_deref()), (Some(Phase::Unhealthy), Some(says)));
    assert!(!is_true(&lost.conditions, "SecretsIntact") && is_true(&lost.conditions, "Stalled"));
    assert_eq!(lost.waits.last().map(|wait| wait.object.as_str()), Some("Secret/my-tkc-ca"));
    let told = notice::of_secrets(&intact, &lost).unwrap();
    assert_eq!((told.reason.as_str(), told.note.as_str(), told.kind), ("SecretsLost", says, Kind::Warning));
    assert_eq!(notice::of_secrets(&lost, &lost), None, "it is said once");

    let unknown = of(Secrets::Unknown { why: "Secrets of default/my-tkc: forbidden".into() }, &intact);
    let condition = windlass_api::kind::condition(&unknown.conditions, "SecretsIntact").unwrap();
    assert_eq!((condition.status.as_str(), unknown.phase), ("Unknown", Some(Phase::Running)));
}

/// An update of which these steps were made now, with these machines in the control plane.
fn stepped(
    now: &str,
    before: &ClusterUpdateStatus,
    made: &[ExecutedStep],
    machines: &[Machine],
) -> ClusterUpdateStatus {
    let (mut input, planned) = planned(now);
    input.inventory.control_plane.machines = machines.to_vec();
    input.inventory.update = Some(update_record(&planned));
    let executed = Executed { steps: made.to_vec(), ..Executed::default() };
    let recorded = Recorded { input: &input, planned: &planned, findings: &[], executed: &executed, attempts: &[] };
    update::status(before, &ClusterUpdate::new("my-tkc-1", ClusterUpdateSpec::default()), &recorded)
}

fn update_record(planned: &Planned) -> UpdateRecord {
    UpdateRecord {
        name: "my-tkc-1".parse().unwrap(),
        ordinal: 1,
        id: "1".parse().unwrap(),
        from: UpdateEnd::default(),
        envelope_digest: planned.envelope.digest(),
        state: UpdateRecordState::Running,
        waiting: vec![],
        progress: vec![],
    }
}

fn machine(name: &str, base: &str, state: MachineState) -> Machine {
    Machine {
        registration: None,
        name: name.parse().unwrap(),
        revision: Revision { uid: "u".parse().unwrap(), resource_version: "1".into() },
        base: Some(base.parse().unwrap()),
        update: None,
        created: BEGAN.parse().unwrap(),
        version: "v1.16.7+vmware.1".parse().unwrap(),
        image: None,
        class: None,
        storage_class: None,
        state,
    }
}

#[test]
fn steps_are_on_record_once_each_those_of_the_job_too() {
    let step = |outcome: StepOutcome, message: Option<&str>| ExecutedStep {
        stage: Stage::Packages,
        role: "addon/coredns/Deployment".into(),
        verb: "apply",
        object: "Deployment/coredns".into(),
        started: BEGAN.parse().unwrap(),
        finished: BEGAN.parse().unwrap(),
        outcome,
        message: message.map(str::to_owned),
    };
    let shown = |status: &ClusterUpdateStatus| {
        let one = |it: &StepRecord| format!("{} {} {:?} {}", it.verb, it.object, it.outcome, it.finished_at.is_some());
        status.steps.iter().map(one).collect::<Vec<_>>()
    };
    let failed = stepped(BEGAN, &ClusterUpdateStatus::default(), &[step(StepOutcome::Failed, Some("refused"))], &[]);
    assert_eq!(shown(&failed), ["apply Deployment/coredns Some(Failed) true"]);
    let again = stepped(LATER, &failed, &[step(StepOutcome::Failed, Some("refused"))], &[]);
    assert_eq!(again.steps, failed.steps, "the same again is nothing new");
    let done = stepped(LATER, &failed, &[step(StepOutcome::Done, None)], &[]);
    assert_eq!(shown(&done), ["apply Deployment/coredns Some(Done) true"]);

    let new = replacement_name(&"cp-0".parse().unwrap(), "1".parse().unwrap(), NameLimit::LabelValue);
    let joining = machine(new.as_str(), "cp-0", MachineState::Joining { awaits: Milestone::Node });
    let old = |state| machine("cp-0", "cp-0", state);
    let node = || NodeName::new("n").unwrap();
    let rolling = stepped(LATER, &done, &[], &[joining.clone(), old(MachineState::Ready { node: node() })]);
    assert_eq!(shown(&rolling)[1..], [format!("create Machine/{new} None false")]);
    let ready = Machine { state: MachineState::Ready { node: node() }, ..joining };
    let leaving = stepped(LATER, &rolling, &[], &[ready.clone(), old(MachineState::Deleting { node: None })]);
    assert_eq!(
        shown(&leaving)[1..],
        [format!("create Machine/{new} Some(Done) true"), "delete Machine/cp-0 None false".to_owned()]
    );
    let gone = stepped(LATER, &leaving, &[], &[ready]);
    assert_eq!(shown(&gone)[2], "delete Machine/cp-0 Some(Done) true");
    let update = ClusterUpdate::new("my-tkc-1", ClusterUpdateSpec::default());
    let told = notice::of_update(&update, &leaving, &gone);
    let notes: Vec<&str> = told.iter().map(|notice| notice.note.as_str()).collect();
    assert_eq!(notes, ["my-tkc-1: Machine/cp-0 has been replaced"]);
}

#[test]
fn an_update_has_facts_that_others_can_wait_for() {
    use StageState::{Done, Failed, Ready, Waiting};
    let facts = |status: &ClusterUpdateStatus| {
        status.conditions.iter().map(|it| format!("{}={}", it.type_, it.status)).collect::<Vec<_>>().join(" ")
    };
    let running = at(BEGAN, &ClusterUpdateStatus::default(), [Done, Ready, Waiting], None);
    assert_eq!(
        facts(&running),
        "PackagesReady=True ControlPlaneReady=False WorkersReady=False Stalled=False Succeeded=Unknown"
    );
    let gave_up = Record::Failed { message: "four attempts".into() };
    let failed = at(LATER, &running, [Done, Failed, Waiting], Some(gave_up));
    assert!(facts(&failed).ends_with("Stalled=True Succeeded=False"), "{}", facts(&failed));
    let succeeded = at(LATER, &running, [Done; 3], Some(Record::Succeeded));
    assert_eq!(
        facts(&succeeded),
        "PackagesReady=True ControlPlaneReady=True WorkersReady=True Stalled=False Succeeded=True"
    );
    let since: Vec<&str> = succeeded.conditions.iter().map(|it| it.last_transition_time.as_str()).collect();
    assert_eq!(since, [BEGAN, LATER, LATER, BEGAN, LATER]);
}
