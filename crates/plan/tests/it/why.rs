//! Why an update begins, why one does not, and what is behind what it waits for.

use windlass_api::kind::cluster_update::{AttemptRecord, Cause};
use windlass_api::name::ClusterSecret;
use windlass_plan::gate::Blocked;
use windlass_plan::inventory::{JobState, MachineState, Milestone, Workload};
use windlass_plan::planner::Record;
use windlass_plan::report::{Assessment, Secrets, StageState};
use windlass_plan::step::Stage;
use windlass_plan::why::{Because, Known};

use crate::fake::Fake;
use crate::sample::target;
use crate::story::{checked_plan, running_cluster};

/// Why the update begins that such a change makes.
fn cause(change: impl FnOnce(&mut Fake)) -> Cause {
    let mut fake = running_cluster(3, 2);
    change(&mut fake);
    let Some(Record::Begin { cause, .. }) = checked_plan(&fake).record else { panic!("no update begins") };
    cause
}

#[test]
fn an_update_says_what_differs_who_asked_for_it_and_what_is_replaced() {
    let large = || "best-effort-large".parse().ok();
    let fast = || "fast".parse().ok();
    let check = |change: fn(&mut Fake), summary: &str| assert_eq!(cause(change).summary, summary);
    check(
        |fake| fake.target = target(3, 2, "v1.16.7"),
        "v1.15.5+vmware.1-guest.1 -> v1.16.7+vmware.1-guest.1 (owner): 3 control-plane machines and 2 workers",
    );
    let both = cause(|fake| {
        fake.target.control_plane.class = large();
        fake.target.pools[0].machines.class = large();
    });
    assert_eq!(
        both.summary,
        "class best-effort-small -> best-effort-large (owner): 3 control-plane machines and 2 workers"
    );
    let of_role = |role: &str| both.changes.iter().filter(|change| change.role == role).count();
    assert_eq!((of_role("control-plane/0"), of_role("workers/default")), (1, 1), "{:?}", both.changes);
    let workers = cause(|fake| fake.target.pools[0].machines.storage_class = fast());
    assert_eq!(workers.summary, "storage class of the workers gc-storage-profile -> fast (owner): 2 workers");
    let change = &workers.changes[0];
    assert_eq!((change.from.as_deref(), change.to.as_deref()), (Some("gc-storage-profile"), Some("fast")));
    assert!(workers.changes.len() <= 20);
}

#[test]
fn without_a_certificate_no_update_begins_and_that_is_told_before() {
    let mut fake = running_cluster(1, 1);
    assert_eq!(checked_plan(&fake).report.secrets, Secrets::Intact);
    fake.inventory.secrets.remove(&ClusterSecret::CertificateAuthority);
    let steady = checked_plan(&fake);
    let Secrets::Missing(missing) = &steady.report.secrets else { panic!("{:?}", steady.report.secrets) };
    assert_eq!(missing.to_string(), "Secret my-tkc-ca is missing");
    assert_eq!(missing.way_out(), "windlass secrets recover my-tkc; a new one would not fit");
    assert_eq!(steady.steps, [], "nothing else is wrong");

    fake.target = target(1, 1, "v1.16.7");
    let planned = checked_plan(&fake);
    assert_eq!((&planned.record, planned.steps.len()), (&None, 0), "not even a package is written");
    assert_eq!(planned.report.assessment, Assessment::Updating);
    for stage in &planned.report.stages {
        assert!(stage.blocked.contains(missing), "{stage:?}");
    }
    fake.inventory.secrets.insert(ClusterSecret::CertificateAuthority);
    assert!(matches!(checked_plan(&fake).record, Some(Record::Begin { .. })));
}

/// A cluster whose workers wait for its control plane, which waits for its Job.
fn rolling() -> Fake {
    let mut fake = running_cluster(1, 1);
    fake.target = target(1, 1, "v1.16.7");
    for _ in 0..100 {
        let planned = checked_plan(&fake);
        if let Some(record) = &planned.record {
            fake.record(record);
        }
        for step in &planned.steps {
            fake.execute(step);
        }
        if fake.inventory.control_plane.job.is_some() {
            return fake;
        }
        fake.tick();
    }
    panic!("no Job is ever made");
}

/// What is behind the first thing that a stage waits for.
fn because(fake: &Fake, stage: Stage, attempts: &[AttemptRecord]) -> Because {
    let planned = checked_plan(fake);
    let stage = planned.report.stages.iter().find(|report| report.stage == stage).unwrap();
    assert_ne!(stage.state, StageState::Done);
    Known { report: &planned.report, inventory: &fake.inventory, attempts }.because(&stage.blocked[0])
}

#[test]
fn workers_wait_for_a_machine_of_the_control_plane_and_it_is_named() {
    let mut fake = rolling();
    let job = fake.inventory.control_plane.job.clone().unwrap().name;
    let machine = fake.inventory.control_plane.machines[0].name.clone();
    let waits = because(&fake, Stage::Workers, &[]);
    assert_eq!(
        waits.links,
        [
            format!(
                "Machine {machine} of the control plane has v1.15.5+vmware.1, and workers are to have v1.16.7+vmware.1"
            ),
            format!("Job {job} is replacing the control plane; wait"),
        ]
    );
    assert_eq!((waits.way_out, waits.deadline), (None, None));

    let job_of = &mut fake.inventory.control_plane.job.as_mut().unwrap().state;
    *job_of = JobState::Active { failed_attempts: 1 };
    let mut joining = fake.inventory.control_plane.machines[0].clone();
    joining.name = "new".parse().unwrap();
    joining.state = MachineState::Joining { awaits: Milestone::Node };
    fake.inventory.control_plane.machines.push(joining.clone());
    let failed = AttemptRecord {
        number: 1,
        pod: "a".to_owned(),
        exit_code: Some(1),
        message: Some("timed out".to_owned()),
        ..AttemptRecord::default()
    };
    let waits = because(&fake, Stage::ControlPlane, &[failed]);
    assert_eq!(
        waits.links,
        [
            format!("Job {job} is replacing the control plane"),
            "1 of 4 attempts have failed: timed out".to_owned(),
            "Machine new is on its way in: it has booted, and no node of it has come; wait; if it lasts, look at Machine new \
             and its conditions"
                .to_owned(),
        ]
    );
    assert_eq!(waits.way_out.as_deref(), Some("wait; if it lasts, look at Machine new and its conditions"));
    assert_eq!(waits.deadline, Some(joining.created + windlass_plan::why::MACHINE_TIMEOUT));
}

#[test]
fn a_node_without_the_label_of_its_role_is_named_while_its_machine_says_that_all_is_well() {
    let mut fake = rolling();
    let job = fake.inventory.control_plane.job.clone().unwrap().name;
    let machine = fake.inventory.control_plane.machines[0].clone();
    let MachineState::Ready { node: name } = &machine.state else { panic!("{machine:?}") };
    let Workload::Reachable { nodes, .. } = &mut fake.inventory.workload else { panic!("it answers") };
    nodes.iter_mut().find(|node| node.name == *name).unwrap().labelled = false;
    let waits = because(&fake, Stage::ControlPlane, &[]);
    let way_out = format!("wait; if it lasts, look at the labels of the node {name} in the workload cluster");
    let says = "its node has not been labelled as one of the control plane";
    assert_eq!(
        waits.links,
        [
            format!("Job {job} is replacing the control plane"),
            format!("Machine {} is on its way in: {says}; {way_out}", machine.name),
        ]
    );
    assert_eq!(waits.way_out, Some(way_out));
    assert_eq!(waits.deadline, Some(machine.created + windlass_plan::why::MACHINE_TIMEOUT));
}

#[test]
fn what_has_nothing_behind_it_is_the_cause_itself() {
    let fake = running_cluster(1, 1);
    let planned = checked_plan(&fake);
    let known = Known { report: &planned.report, inventory: &fake.inventory, attempts: &[] };
    let paused = known.because(&Blocked::Paused { by: "spec.paused of Cluster/my-tkc".to_owned() });
    assert_eq!(paused.links, ["the cluster is paused: spec.paused of Cluster/my-tkc; unpause the cluster"]);
    assert_eq!(paused.way_out.as_deref(), Some("unpause the cluster"));
}

#[test]
fn a_package_that_is_not_ready_leads_to_the_node_that_is_not() {
    let mut fake = running_cluster(1, 1);
    let planned = checked_plan(&fake);
    let Workload::Reachable { nodes, .. } = &mut fake.inventory.workload else { panic!("it answers") };
    nodes[1].ready = false;
    let node = nodes[1].name.clone();
    let known = Known { report: &planned.report, inventory: &fake.inventory, attempts: &[] };
    let addon = "coredns".parse().unwrap();
    let waits = known.because(&Blocked::PackageNotReady { addon, why: "1 of 2 pods".to_owned() });
    assert_eq!(waits.links.len(), 2);
    assert!(waits.links[1].starts_with(&format!("Node {node} is not ready; ")), "{:?}", waits.links);
}
