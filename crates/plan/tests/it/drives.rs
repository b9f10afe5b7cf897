//! Whole lives of clusters that Cluster API rolls, as texts that are read before they are committed.
//!
//! `WINDLASS_UPDATE=1 cargo test -p windlass-plan --test it` writes them anew.

mod rendered;
mod sample;
mod targets;

use windlass_plan::check::{Severity, check};
use windlass_plan::gate::{Blocked, Gate, Gates};
use windlass_plan::inventory::{ClusterState, MachineState};
use windlass_plan::planner::{Planned, plan};
use windlass_plan::report::StageState;
use windlass_plan::step::Stage;
use windlass_plan::target::{PoolVersion, Target};

use crate::fake::Fake;
use crate::story::{assert_at_rest, assert_golden, checked_plan, live};
use sample::{kubeadm, of_topology, topology};

const SMALL: &str = "best-effort-small";
const LARGE: &str = "best-effort-large";

/// What was written in a story, without what is about packages.
fn writes(story: &str) -> Vec<&str> {
    let is_write = |line: &&str| line.starts_with("controlPlane ") || line.starts_with("workers ");
    story.lines().filter(is_write).filter_map(|line| line.split("  [").next()).collect()
}

fn kubeadm_cluster() -> Fake {
    let mut fake = Fake::of_cluster_api(kubeadm(3, [(2, SMALL), (1, SMALL)], "v1.33.1"));
    live(&mut fake);
    fake
}

#[test]
fn a_cluster_whose_control_plane_cluster_api_rolls_is_created_and_upgraded() {
    let mut fake = Fake::of_cluster_api(kubeadm(3, [(2, SMALL), (1, SMALL)], "v1.33.1"));
    let mut story = live(&mut fake);
    assert_at_rest(&fake);
    story.push_str("\n--- the owner asks for v1.34.2 ---\n\n");
    fake.target = kubeadm(3, [(2, SMALL), (1, SMALL)], "v1.34.2");
    story.push_str(&live(&mut fake));
    assert_golden("kubeadm-control-plane.out", &story);
    assert_at_rest(&fake);
}

#[test]
fn a_pool_that_gets_another_class_is_the_only_one_that_is_touched() {
    let mut fake = kubeadm_cluster();
    fake.target = kubeadm(3, [(2, SMALL), (1, LARGE)], "v1.33.1");
    let story = live(&mut fake);
    let update = fake.update().unwrap();
    let template = format!("c1-workers-md-1-0-{update}");
    assert_eq!(
        writes(&story),
        [
            format!("workers      create WCPMachineTemplate {template}"),
            format!("workers      create KubeadmConfigTemplate {template}"),
            "workers      apply MachineDeployment md-1".to_owned(),
        ]
    );
    assert!(!story.contains("of md-0") && !story.contains("packages "), "{story}");
    assert_at_rest(&fake);
}

#[test]
fn another_number_of_machines_is_one_write_without_a_record() {
    let mut fake = kubeadm_cluster();
    fake.target = kubeadm(3, [(4, SMALL), (1, SMALL)], "v1.33.1");
    let story = live(&mut fake);
    assert_eq!(writes(&story), ["workers      apply MachineDeployment md-0"], "{story}");
    fake.target = kubeadm(5, [(4, SMALL), (1, SMALL)], "v1.33.1");
    let story = live(&mut fake);
    assert_eq!(writes(&story), ["controlPlane apply KubeadmControlPlane c1-control-plane"], "{story}");
    assert_eq!((fake.inventory.control_plane.machines.len(), fake.update()), (5, None));
    assert_at_rest(&fake);
}

fn topology_cluster() -> Fake {
    let asked = topology(3, [(2, None), (1, Some(SMALL))], "v1.33.1");
    let mut fake = Fake::of_topology(of_topology(&asked, "v1.33.1"), &asked);
    live(&mut fake);
    fake
}

#[test]
fn a_cluster_of_a_class_is_created_and_upgraded() {
    let asked = topology(3, [(2, None), (1, Some(SMALL))], "v1.33.1");
    let mut fake = Fake::of_topology(of_topology(&asked, "v1.33.1"), &asked);
    let mut story = live(&mut fake);
    assert_at_rest(&fake);
    story.push_str("\n--- the owner asks for v1.34.2 ---\n\n");
    fake.target = of_topology(&asked, "v1.34.2");
    story.push_str(&live(&mut fake));
    assert_golden("topology.out", &story);
    assert_eq!(story.matches(" apply Cluster ").count(), 2, "one write each\n{story}");
    let spec = &fake.inventory.topology.as_ref().unwrap().spec;
    let variables = spec["variables"].as_array().unwrap();
    assert!(variables.iter().any(|it| it["name"] == "proxy" && it["value"]["httpProxy"] == "http://proxy:3128"));
    assert_eq!(spec["controlPlane"]["metadata"], serde_json::to_value(asked.control_plane.metadata).unwrap());
    assert_at_rest(&fake);
}

#[test]
fn a_class_for_one_pool_of_a_topology_is_written_for_that_pool_alone() {
    let mut fake = topology_cluster();
    fake.target = of_topology(&topology(3, [(2, None), (1, Some(LARGE))], "v1.33.1"), "v1.33.1");
    let story = live(&mut fake);
    assert_eq!(writes(&story), ["workers      apply Cluster c1"], "{story}");
    assert!(!story.contains("of md-0") && !story.contains("machine derived"), "{story}");
    let spec = &fake.inventory.topology.as_ref().unwrap().spec;
    let pools = &spec["workers"]["machineDeployments"];
    assert_eq!(pools[0]["variables"], serde_json::json!({}), "what is said for all is not said again for one");
    assert_eq!(pools[1]["variables"]["overrides"][0]["value"], LARGE);
    assert_at_rest(&fake);
}

#[test]
fn another_number_of_machines_of_a_topology_is_one_write_without_a_record() {
    let mut fake = topology_cluster();
    fake.target = of_topology(&topology(5, [(3, None), (1, Some(SMALL))], "v1.33.1"), "v1.33.1");
    let story = live(&mut fake);
    assert_eq!(writes(&story), ["controlPlane apply Cluster c1"], "{story}");
    assert_eq!((fake.inventory.control_plane.machines.len(), fake.update()), (5, None));
    assert_at_rest(&fake);
}

fn hop(mut target: Target) -> Target {
    target.pools.iter_mut().for_each(|pool| pool.version = PoolVersion::Kept);
    target
}

fn minors(fake: &Fake) -> (u64, Vec<u64>) {
    let control_plane = fake.inventory.control_plane.kubeadm.as_ref().unwrap().version.minor().minor;
    (control_plane, fake.inventory.pools.values().map(|pool| pool.version.minor().minor).collect())
}

#[test]
fn at_a_hop_only_the_control_plane_is_rolled() {
    let mut fake = kubeadm_cluster();
    fake.target = hop(kubeadm(3, [(2, SMALL), (1, SMALL)], "v1.34.2"));
    let story = live(&mut fake);
    assert_eq!(minors(&fake), (34, vec![33, 33]), "{story}");
    assert_at_rest(&fake);
    // More workers would be of a minor that the control plane has left behind: they come with the last hop.
    fake.target = hop(kubeadm(3, [(3, SMALL), (1, SMALL)], "v1.34.2"));
    assert_eq!(writes(&live(&mut fake)), Vec::<&str>::new());
    fake.target = kubeadm(3, [(3, SMALL), (1, SMALL)], "v1.35.1");
    let story = live(&mut fake);
    assert_eq!(minors(&fake), (35, vec![35, 35]), "{story}");
    assert_at_rest(&fake);
}

#[test]
fn at_a_hop_the_pools_of_a_topology_are_held_back_and_then_let_go() {
    let asked = topology(3, [(2, None), (1, Some(SMALL))], "v1.33.1");
    let mut fake = topology_cluster();
    fake.target = hop(of_topology(&asked, "v1.34.2"));
    let story = live(&mut fake);
    assert_eq!(minors(&fake), (34, vec![33, 33]), "{story}");
    assert_at_rest(&fake);
    fake.target = of_topology(&asked, "v1.35.1");
    let story = live(&mut fake);
    assert_eq!(minors(&fake), (35, vec![35, 35]), "{story}");
    let pools = &fake.inventory.topology.as_ref().unwrap().spec["workers"]["machineDeployments"];
    assert_eq!(pools[0]["metadata"]["annotations"], serde_json::json!({}));
    assert_at_rest(&fake);
}

/// Where a stage waits, and for what.
fn waits(planned: &Planned, stage: Stage) -> Vec<&'static str> {
    let found = planned.report.stages.iter().find(|report| report.stage == stage).unwrap();
    assert_ne!(found.state, StageState::Ready, "{found:?}");
    found.blocked.iter().map(Blocked::reason).collect()
}

/// What a change to a cluster in the middle of nothing makes the control plane wait for.
fn check_waits(mut fake: Fake, asked: Target, change: fn(&mut Fake), reason: &str) {
    fake.target = asked;
    change(&mut fake);
    for _ in 0..3 {
        let planned = checked_plan(&fake);
        if let Some(record) = &planned.record {
            fake.record(record);
        }
    }
    let planned = checked_plan(&fake);
    let machines = planned.steps.iter().filter(|step| step.stage != Stage::Packages);
    assert_eq!(machines.count(), 0, "{reason}");
    let found = waits(&planned, Stage::ControlPlane);
    assert!(found.contains(&reason), "{reason}: {found:?}");
}

fn rolls(fake: &mut Fake) {
    fake.inventory.control_plane.kubeadm.as_mut().unwrap().progress.up_to_date = 1;
}

fn is_unwell(fake: &mut Fake) {
    fake.inventory.control_plane.machines[0].state =
        MachineState::Unhealthy { node: "node".parse().unwrap(), why: "its etcd does not answer".to_owned() };
}

fn is_paused(fake: &mut Fake) {
    let ClusterState::Present { paused, .. } = &mut fake.inventory.cluster else { panic!() };
    *paused = Some("somebody looks at it".to_owned());
}

fn loses_a_certificate(fake: &mut Fake) {
    assert!(fake.inventory.secrets.pop_first().is_some());
}

#[test]
fn the_gates_are_the_same_whoever_rolls_the_machines() {
    let asked = topology(3, [(2, None), (1, Some(SMALL))], "v1.33.1");
    for (fake, target) in [
        (kubeadm_cluster(), kubeadm(3, [(2, SMALL), (1, SMALL)], "v1.34.2")),
        (topology_cluster(), of_topology(&asked, "v1.34.2")),
    ] {
        check_waits(fake.clone(), target.clone(), |_| {}, "PackageNotReady");
        check_waits(fake.clone(), target.clone(), rolls, "ControlPlaneRolling");
        check_waits(fake.clone(), target.clone(), is_unwell, "ControlPlaneMachineNotReady");
        check_waits(fake.clone(), target.clone(), is_paused, "Paused");
        check_waits(fake, target, loses_a_certificate, "CertificateMissing");
    }
}

/// Without these gates, the plan that raises the control plane is one that the second opinion complains about.
fn check_found(mut fake: Fake, asked: Target, left_out: &[Gate], id: &str) {
    fake.target = asked;
    fake.gates = Gates::without(left_out);
    if let Some(record) = plan(&fake.input()).record {
        fake.record(&record);
    }
    let input = fake.input();
    let planned = plan(&input);
    assert!(planned.steps.iter().any(|step| step.stage == Stage::ControlPlane), "{id}: {:?}", planned.report);
    let found = check(&input, &planned);
    assert!(found.iter().any(|it| it.id == id && it.severity == Severity::Warning), "{id} is not in {found:#?}");
}

#[test]
fn the_second_opinion_is_the_same_whoever_rolls_the_machines() {
    let asked = topology(3, [(2, None), (1, Some(SMALL))], "v1.33.1");
    let pools = [(2, SMALL), (1, SMALL)];
    check_found(kubeadm_cluster(), kubeadm(3, pools, "v1.34.2"), &[Gate::PackagesFirst], "D1");
    check_found(topology_cluster(), of_topology(&asked, "v1.34.2"), &[Gate::PackagesFirst], "D1");
    check_found(kubeadm_cluster(), kubeadm(3, pools, "v1.35.1"), &[Gate::PackagesFirst, Gate::VersionPath], "V6");
    check_found(topology_cluster(), of_topology(&asked, "v1.35.1"), &[Gate::PackagesFirst, Gate::VersionPath], "V6");
    check_found(topology_cluster(), of_topology(&asked, "v1.32.2"), &[Gate::PackagesFirst, Gate::VersionPath], "V8");
}

#[test]
fn what_others_made_is_neither_taken_over_nor_made_again() {
    let asked = || kubeadm(3, [(2, SMALL), (1, SMALL)], "v1.34.2");
    let gone = |fake: &mut Fake| fake.inventory.control_plane.kubeadm = None;
    check_waits(kubeadm_cluster(), asked(), gone, "ControlPlaneUnowned");
    let lost = |fake: &mut Fake| {
        fake.inventory.control_plane.kubeadm = None;
        fake.inventory.control_plane.machines.clear();
    };
    check_waits(kubeadm_cluster(), asked(), lost, "ControlPlaneLost");
    let elsewhere = |fake: &mut Fake| {
        let observed = fake.inventory.control_plane.kubeadm.as_mut().unwrap();
        observed.configuration["clusterConfiguration"]["etcd"]["external"] = serde_json::json!({"endpoints": []});
    };
    check_waits(kubeadm_cluster(), asked(), elsewhere, "EtcdElsewhere");
}
