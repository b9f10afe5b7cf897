//! Each gate of the planner: what it refuses, in which words, and that it lets pass what is well.
//!
//! They are asked through a plan: a gate that nobody asks, or that was left out, is found out here.

mod approval;
mod roll;
mod table;

use std::sync::LazyLock;

use jiff::{SignedDuration, Timestamp};
use windlass_plan::check;
use windlass_plan::gate;
use windlass_plan::inventory::{
    AddonObject, Alarm, ClusterState, ControlPlane, EtcdMember, Gap, Inventory, Job, JobState, KubeadmControlPlane,
    MachineState, Milestone, Node, PoolProgress, Template, Workload,
};
use windlass_plan::planner::{Planned, plan};
use windlass_plan::report::StageState;
use windlass_plan::step::Stage;
use windlass_plan::target::Drive;

use crate::fake::Fake;
use crate::sample::target;
use crate::story::{assert_at_rest, live};

/// Lives until the plan has a step of this kind, and stops before it is made.
fn until(mut fake: Fake, wanted: impl Fn(&Planned) -> bool) -> Fake {
    for _ in 0..200 {
        let planned = plan(&fake.input());
        if wanted(&planned) {
            return fake;
        }
        planned.record.iter().for_each(|record| fake.record(record));
        planned.steps.iter().for_each(|step| fake.execute(step));
        fake.tick();
    }
    panic!("it never came so far");
}

fn writes(planned: &Planned, kind: &str) -> bool {
    planned.steps.iter().any(|step| step.action.kind() == kind)
}

/// A cluster that was created, and is well.
fn well() -> Fake {
    let idle = |fake: &mut Fake| plan(&fake.input()).steps.is_empty() && fake.tick().is_none();
    let mut fake = until(Fake::new(target(3, 1, "v1.15.5")), |planned| writes(planned, "MachineDeployment"));
    while !idle(&mut fake) {
        plan(&fake.input()).steps.iter().for_each(|step| fake.execute(step));
    }
    fake
}

/// One that has an update on record, and none of its packages yet.
pub static AT_THE_PACKAGES: LazyLock<Fake> = LazyLock::new(|| {
    let mut fake = well();
    fake.target = target(3, 1, "v1.16.7");
    until(fake, |planned| writes(planned, "DaemonSet"))
});

/// One whose control plane is about to be replaced.
pub static AT_THE_JOB: LazyLock<Fake> =
    LazyLock::new(|| until(AT_THE_PACKAGES.clone(), |planned| writes(planned, "Job")));

/// One whose workers are about to be replaced.
pub static AT_THE_POOL: LazyLock<Fake> =
    LazyLock::new(|| until(AT_THE_JOB.clone(), |planned| writes(planned, "MachineDeployment")));

/// One whose second machine is about to join.
pub static AT_THE_JOIN: LazyLock<Fake> = LazyLock::new(|| {
    let second = |planned: &Planned| writes(planned, "Machine");
    let mut fake = until(Fake::new(target(3, 1, "v1.15.5")), second);
    plan(&fake.input()).steps.iter().for_each(|step| fake.execute(step));
    until(fake, second)
});

/// A moment of a life, the stage that is about to go on, and the kind that it writes then.
type Moment = (&'static LazyLock<Fake>, Stage, &'static str);

const PACKAGES: Moment = (&AT_THE_PACKAGES, Stage::Packages, "DaemonSet");
const JOB: Moment = (&AT_THE_JOB, Stage::ControlPlane, "Job");
const JOIN: Moment = (&AT_THE_JOIN, Stage::ControlPlane, "Machine");
const POOL: Moment = (&AT_THE_POOL, Stage::Workers, "MachineDeployment");

/// After the change the stage goes on if there is no refusal to expect, and says this one otherwise.
fn check((moment, stage, kind): Moment, change: impl Fn(&mut Fake), refusal: &str) {
    let mut fake = Fake::clone(moment);
    change(&mut fake);
    let input = fake.input();
    let planned = plan(&input);
    assert_eq!(check::check(&input, &planned), [], "the second opinion");
    let stages = &planned.report.stages;
    let blocked = stages.iter().filter(|report| report.stage == stage).flat_map(|report| &report.blocked);
    let said: Vec<String> = blocked.map(ToString::to_string).collect();
    assert_eq!(writes(&planned, kind), refusal.is_empty(), "{kind}: {said:#?}");
    assert!(refusal.is_empty() || said.iter().any(|said| said == refusal), "{refusal:?} is not in {said:#?}");
}

/// The same, of what was observed alone.
fn check_seen(moment: Moment, change: impl Fn(&mut Inventory), refusal: &str) {
    check(moment, |fake| change(&mut fake.inventory), refusal);
}

fn check_members(moment: Moment, change: impl Fn(&mut Vec<EtcdMember>), refusal: &str) {
    let etcd = |inventory: &mut Inventory| match &mut inventory.workload {
        Workload::Reachable { etcd, .. } => change(etcd),
        _ => panic!("no API"),
    };
    check_seen(moment, etcd, refusal);
}

fn check_nodes(moment: Moment, change: impl Fn(&mut Vec<Node>), refusal: &str) {
    let nodes = |inventory: &mut Inventory| match &mut inventory.workload {
        Workload::Reachable { nodes, .. } => change(nodes),
        _ => panic!("no API"),
    };
    check_seen(moment, nodes, refusal);
}

fn check_addon(moment: Moment, addon: &str, change: impl Fn(&mut Vec<AddonObject>), refusal: &str) {
    let objects = |inventory: &mut Inventory| match &mut inventory.workload {
        Workload::Reachable { addons, .. } => change(addons.get_mut(&addon.parse().unwrap()).unwrap()),
        _ => panic!("no API"),
    };
    check_seen(moment, objects, refusal);
}

const CP_0: &str = "my-tkc-control-plane-0-14087507168931272006";
const CP_1: &str = "my-tkc-control-plane-1-14087507168931272006";

#[test]
fn what_is_well_passes_every_gate() {
    for moment in [PACKAGES, JOB, JOIN, POOL] {
        check(moment, |_| {}, "");
    }
}

#[test]
fn versions_go_up_one_minor_at_a_time() {
    let asked = |version: &'static str, refusal: &str| {
        let mut fake = well();
        fake.target = target(3, 1, version);
        let planned = plan(&fake.input());
        let said: Vec<String> = planned.report.stages[1].blocked.iter().map(ToString::to_string).collect();
        assert_eq!(planned.record.is_some(), refusal.is_empty(), "{said:?}");
        assert!(refusal.is_empty() || said.iter().any(|said| said.starts_with(refusal)), "{said:?}");
    };
    asked("v1.16.7", "");
    asked("v1.17.4", "v1.17.4+vmware.1 is 2 minors ahead of v1.15.5+vmware.1");
    asked("v1.14.9", "v1.14.9+vmware.1 is older than v1.15.5+vmware.1");
}

#[test]
fn nothing_is_left_behind_further_than_api_servers_support_it() {
    let kubelet = |version: &'static str| move |nodes: &mut Vec<Node>| nodes[3].kubelet = version.parse().unwrap();
    check_nodes(JOB, kubelet("v1.14.9"), "");
    let refusal = "Node/worker has v1.13.9, which API servers of v1.16.7+vmware.1 do not support";
    check_nodes(JOB, kubelet("v1.13.9"), refusal);
    let image = |objects: &mut Vec<AddonObject>| {
        let path = "/spec/template/spec/containers/0/image";
        *objects[0].live.pointer_mut(path).unwrap() = "vmware/kube-proxy:v1.12.1_vmware.1".into();
    };
    let refusal = "DaemonSet/kube-proxy-v1.15.5---vmware.1-guest.1 has v1.12.1+vmware.1, which API servers of \
                   v1.16.7+vmware.1 do not support";
    check_addon(JOB, "kube-proxy", image, refusal);
}

#[test]
fn no_kube_proxy_runs_ahead_of_an_api_server() {
    let unbind = |objects: &mut Vec<AddonObject>| {
        objects[0].live["spec"]["template"]["spec"]["nodeSelector"] = serde_json::json!({});
    };
    let mut fake = AT_THE_PACKAGES.clone();
    let Workload::Reachable { addons, .. } = &mut fake.inventory.workload else { panic!() };
    unbind(addons.get_mut(&"kube-proxy".parse().unwrap()).unwrap());
    let planned = plan(&fake.input());
    let roles: Vec<&str> = planned.steps.iter().map(|step| step.role.as_str()).collect();
    assert!(!roles.contains(&"addon/kube-proxy/DaemonSet"), "{roles:?}");
    assert!(roles.contains(&"addon/coredns/Deployment"), "one add-on that is refused stops no other: {roles:?}");

    let refusal = "DaemonSet/kube-proxy-v1.15.5---vmware.1-guest.1 is bound to no distribution: on an old node it would run \
                   ahead of the API servers";
    check_addon(JOB, "kube-proxy", unbind, refusal);
    let label = |version: &'static str| move |nodes: &mut Vec<Node>| nodes[3].distribution = version.parse().ok();
    let refusal = format!(
        "node worker would get kube-proxy v1.16.7+vmware.1 while the API server of Machine {CP_0} has v1.15.5+vmware.1"
    );
    check_nodes(JOB, label("v1.16.7+vmware.1-guest.1"), &refusal);
}

#[test]
fn etcd_goes_up_by_one_minor_from_a_patch_that_can() {
    let at = |version: &'static str| move |etcd: &mut Vec<EtcdMember>| etcd[1].version = version.parse().ok();
    check_members(JOB, at("v3.3.10"), "");
    check_members(JOB, at("v3.2.24"), "");
    let refusal = |why: &str| format!("the member {CP_1} of etcd {why}");
    let far = "has v3.1.20, and v3.3.15+vmware.6 is more than one minor ahead";
    check_members(JOB, at("v3.1.20"), &refusal(far));
    check_members(JOB, at("v3.4.3"), &refusal("has v3.4.3, and v3.3.15+vmware.6 is older"));
    let member = |version: &str| {
        let mut fake = AT_THE_JOB.clone();
        let Workload::Reachable { etcd, .. } = &mut fake.inventory.workload else { panic!() };
        etcd[0].version = version.parse().ok();
        gate::etcd_step("v3.6.1_vmware.1", &etcd[..1]).map(|blocked| blocked.to_string())
    };
    assert_eq!(member("v3.5.32"), None);
    let floor = format!(
        "the member {CP_0} of etcd has v3.5.20, and must have at least v3.5.32 before it goes to v3.6.1+vmware.1"
    );
    assert_eq!(member("v3.5.20"), Some(floor));
}

#[test]
fn etcd_keeps_its_quorum() {
    let refusal = "of the 4 voters that etcd would have, 2 may not answer: it could lose its quorum";
    check_members(JOB, |etcd| etcd[2].healthy = false, refusal);
    let two = |etcd: &mut Vec<EtcdMember>| {
        let sick = EtcdMember { id: 9, healthy: false, leader: false, ..etcd[0].clone() };
        etcd.push(sick);
    };
    let refusal = "of the 3 voters that etcd would have, 2 may not answer: it could lose its quorum";
    check_members(JOIN, two, refusal);
}

#[test]
fn the_members_of_etcd_change_one_at_a_time() {
    let learner = format!("the member {CP_1} of etcd does not vote yet");
    check_members(JOB, |etcd| etcd[1].learner = true, &learner);
    check_members(JOB, |etcd| etcd[1].name.clear(), "the member 2 of etcd has been added and has not started");
    let learner = format!("the member {CP_0} of etcd does not vote yet");
    check_members(JOIN, |etcd| etcd[0].learner = true, &learner);
}

#[test]
fn what_does_not_answer_leaves_etcd_first() {
    check_members(JOB, |etcd| etcd[1].healthy = false, &format!("the member {CP_1} of etcd is not healthy"));
    check_members(JOIN, |etcd| etcd[0].healthy = false, &format!("the member {CP_0} of etcd is not healthy"));
}

#[test]
fn etcd_is_made_of_the_machines_and_nothing_else() {
    let ghost = |etcd: &mut Vec<EtcdMember>| etcd[1].name = "ghost".to_owned();
    check_members(JOB, ghost, &format!("Machine {CP_1} is no member of etcd"));
    let more = |etcd: &mut Vec<EtcdMember>| {
        let ghost = EtcdMember { id: 9, name: "ghost".to_owned(), leader: false, ..etcd[0].clone() };
        etcd.push(ghost);
    };
    check_members(JOB, more, "the member ghost of etcd belongs to no machine");
    check_members(JOIN, more, "the member ghost of etcd belongs to no machine");
}

#[test]
fn nothing_changes_while_etcd_raises_an_alarm() {
    let refusal = format!("the member {CP_0} of etcd warns: it has no more space");
    for moment in [JOB, JOIN] {
        check_members(moment, |etcd| etcd[0].alarms = [Alarm::NoSpace].into(), &refusal);
    }
    let refusal = format!("the member {CP_0} of etcd warns: its data is corrupt");
    check_members(JOB, |etcd| etcd[0].alarms = [Alarm::Corrupt].into(), &refusal);
}

fn state(inventory: &mut Inventory, which: usize, state: MachineState) {
    inventory.control_plane.machines[which].state = state;
}

#[test]
fn a_control_plane_changes_by_one_machine_at_a_time() {
    let joining = |inventory: &mut Inventory| state(inventory, 0, MachineState::Joining { awaits: Milestone::Node });
    for moment in [JOB, JOIN] {
        check_seen(moment, joining, &format!("Machine {CP_0} is not ready: it is on the way to being a node"));
    }
    // Whoever deletes it: a repair by somebody else is also one machine at a time.
    let deleting = |inventory: &mut Inventory| {
        state(inventory, 0, MachineState::Deleting { node: Some(CP_0.parse().unwrap()) });
    };
    check_seen(JOB, deleting, &format!("Machine {CP_0} is not ready: it is on the way out"));
    // Left behind by an attempt of this very update, which the next attempt will deal with.
    let ours = |inventory: &mut Inventory| {
        let mut machine = inventory.control_plane.machines[1].clone();
        machine.name = "my-tkc-control-plane-1-7243477841528164879".parse().unwrap();
        machine.version = "v1.16.7+vmware.1".parse().unwrap();
        machine.state = MachineState::Joining { awaits: Milestone::Node };
        inventory.control_plane.machines.push(machine);
    };
    check_seen(JOB, ours, "");
}

#[test]
fn the_control_plane_changes_only_while_its_machines_are_well() {
    let sick = |inventory: &mut Inventory| {
        let why = "no heartbeat".to_owned();
        state(inventory, 0, MachineState::Unhealthy { node: CP_0.parse().unwrap(), why });
    };
    for moment in [JOB, JOIN] {
        check_seen(moment, sick, &format!("Machine {CP_0} is not ready: no heartbeat"));
    }
}

fn job(inventory: &mut Inventory, state: JobState) {
    let update: windlass_api::name::UpdateId = "7".parse().unwrap();
    inventory.control_plane.job = Some(Job { name: update.job_name(), update, state });
}

#[test]
fn one_update_of_a_control_plane_runs_at_a_time_and_none_after_one_that_failed() {
    check_seen(JOB, |it| job(it, JobState::Complete), "");
    let refusal = "Job update-7 is replacing the control plane";
    check_seen(JOB, |it| job(it, JobState::Active { failed_attempts: 2 }), refusal);
    let failed = |it: &mut Inventory| job(it, JobState::Failed { message: "timed out".to_owned() });
    for moment in [JOB, POOL] {
        check_seen(moment, failed, "Job update-7 gave up replacing the control plane: timed out");
    }
}

#[test]
fn a_machine_belongs_to_one_update() {
    let mark = |update: &'static str| {
        move |inventory: &mut Inventory| inventory.control_plane.machines[0].update = update.parse().ok()
    };
    check_seen(JOB, mark("7"), &format!("Machine {CP_0} is marked by the update 7"));
    check_seen(JOB, mark("7243477841528164879"), "");
}

#[test]
fn no_update_changes_its_target_on_the_way() {
    let refusal = "my-tkc-1 was begun for another target than there is now, and no update is changed on its way";
    for moment in [PACKAGES, JOB, POOL] {
        check(moment, |fake| fake.target.control_plane.class = "best-effort-large".parse().ok(), refusal);
    }
}

#[test]
fn certificates_come_before_machines() {
    for moment in [JOB, JOIN, POOL] {
        let lose = |it: &mut Inventory| it.secrets.retain(|secret| secret.to_string() != "ca");
        check_seen(moment, lose, "Secret my-tkc-ca is missing");
    }
}

#[test]
fn packages_come_first() {
    check_addon(
        JOB,
        "coredns",
        |objects| objects[0].live["status"]["availableReplicas"] = 1.into(),
        "the add-on coredns is not ready: Deployment/coredns: 1 of 2 pods are available",
    );
    // A report about an older generation is a report about nothing.
    check_addon(
        JOB,
        "coredns",
        |objects| objects[0].live["metadata"]["generation"] = 9.into(),
        "the add-on coredns is not ready: Deployment/coredns: its latest change was not seen yet",
    );
    check_addon(
        POOL,
        "authsvc",
        Vec::clear,
        "the add-on authsvc is not ready: Deployment/authsvc is not as the release has it",
    );
    check_seen(JOB, |it| it.workload = Workload::NotYet, "the workload cluster has no API yet");
}

#[test]
fn workers_wait_for_the_control_plane() {
    let older = |it: &mut Inventory| it.control_plane.machines[0].version = "v1.16.6".parse().unwrap();
    let name = "my-tkc-control-plane-0-7243477841528164879";
    let refusal = format!("Machine {name} of the control plane has v1.16.6, and workers are to have v1.16.7+vmware.1");
    check_seen(POOL, older, &refusal);
    let deleting = |it: &mut Inventory| state(it, 0, MachineState::Deleting { node: None });
    check_seen(POOL, deleting, &format!("Machine {name} is not ready: it is on the way out"));
}

#[test]
fn what_is_paused_is_left_alone() {
    let pause = |it: &mut Inventory| {
        let ClusterState::Present { paused, .. } = &mut it.cluster else { panic!() };
        *paused = Some("by hand".to_owned());
    };
    for moment in [PACKAGES, JOB, JOIN, POOL] {
        check_seen(moment, pause, "the cluster is paused: by hand");
    }
}

#[test]
fn no_decision_is_made_across_a_gap() {
    let gap = |it: &mut Inventory| it.gaps.push(Gap { object: "Machine/x".to_owned(), why: "forbidden".to_owned() });
    for moment in [JOB, JOIN, POOL] {
        check_seen(moment, gap, "Machine/x could not be observed: forbidden");
    }
}

#[test]
fn no_machine_is_touched_beside_a_pool_that_has_given_up_moving() {
    let stands_still = |minutes: i64, available: u32| {
        move |it: &mut Inventory| {
            it.as_of = Timestamp::UNIX_EPOCH + SignedDuration::from_mins(minutes);
            let pool = it.pools.values_mut().next().unwrap();
            (pool.progress.available, pool.moved_at) = (available, Some(Timestamp::UNIX_EPOCH));
        }
    };
    let refusal = "the pool default has not moved since 1970-01-01T00:00:00Z";
    for moment in [JOB, POOL] {
        check_seen(moment, stands_still(59, 0), "");
        check_seen(moment, stands_still(60, 0), refusal);
        check_seen(moment, stands_still(60, 1), "");
    }
}

#[test]
fn machines_are_replaced_for_new_defaults_only_with_consent() {
    let mut fake = well();
    fake.target.defaults.node_registration = [("imagePullPolicy".to_owned(), "Always".to_owned())].into();
    let planned = plan(&fake.input());
    assert_eq!((&planned.record, &planned.steps), (&None, &vec![]));
    assert!(planned.report.stages.iter().all(|stage| stage.state == StageState::Done), "{:#?}", planned.report);
    let pending = planned.report.pending.unwrap();
    let said = "this Windlass would replace machines for defaults of its own: ";
    assert!(pending.to_string().starts_with(said) && pending.to_string().contains("imagePullPolicy"), "{pending}");
    let gate::Blocked::ConsentNeeded { digest, .. } = pending else { panic!("{pending}") };

    let begins = |change: &dyn Fn(&mut Fake)| {
        let mut fake = fake.clone();
        change(&mut fake);
        let input = fake.input();
        let planned = plan(&input);
        assert_eq!(check::check(&input, &planned), [], "the second opinion");
        planned.record.is_some()
    };
    assert!(!begins(&|fake| fake.inventory.consent = Some("sha256:another".to_owned())));
    assert!(begins(&|fake| fake.inventory.consent = Some(digest.clone())));
    // With a change that somebody asked for, they come along.
    assert!(begins(&|fake| fake.target.pools[0].machines.class = "best-effort-large".parse().ok()));
    let mut agreed = fake.clone();
    agreed.inventory.consent = Some(digest.clone());
    let story = live(&mut agreed);
    assert!(story.contains("create Job") && story.contains("apply MachineDeployment"), "{story}");
    assert_at_rest(&agreed);
    assert_eq!(plan(&agreed.input()).report.pending, None);
    // Another number of workers is none: they are made as the others are.
    fake.target.pools[0].machines.count = 2;
    let planned = plan(&fake.input());
    assert!(planned.record.is_none() && planned.report.pending.is_some());
    let kinds: Vec<&str> = planned.steps.iter().map(|step| step.action.kind()).collect();
    assert_eq!(kinds, ["MachineDeployment"]);
}

/// A control plane that Cluster API rolls, of this version, with so many machines as they should be.
fn rolled_by_cluster_api(version: &str, up_to_date: u32) -> ControlPlane {
    let kubeadm = KubeadmControlPlane {
        name: "my-tkc".parse().unwrap(),
        revision: AT_THE_POOL.inventory.control_plane.machines[0].revision.clone(),
        replicas: 3,
        version: version.parse().unwrap(),
        infrastructure_template: Template { name: "template".parse().unwrap(), spec: None },
        configuration: serde_json::Value::Null,
        progress: PoolProgress { observed: true, replicas: 3, up_to_date, available: 3 },
        versions: vec![version.parse().unwrap()],
        unwell: None,
        owns_addons: false,
        live: serde_json::Value::Null,
    };
    ControlPlane { kubeadm: Some(kubeadm), ..ControlPlane::default() }
}

#[test]
fn workers_join_a_control_plane_of_their_own_minor() {
    let ahead = |fake: &mut Fake| {
        fake.target.drive = Drive::KubeadmControlPlane;
        fake.inventory.control_plane.machines[0].version = "v1.17.0".parse().unwrap();
    };
    check(POOL, ahead, "workers of v1.16.7+vmware.1 cannot join yet: the control plane has v1.17.0");

    let joins = |version: &str, up_to_date: u32| {
        let control_plane = rolled_by_cluster_api(version, up_to_date);
        let refused = gate::join_at_control_plane_version(&"v1.30.2".parse().unwrap(), &control_plane);
        refused.map(|blocked| blocked.to_string()).unwrap_or_default()
    };
    assert_eq!(joins("v1.30.1", 3), "");
    assert_eq!(joins("v1.31.0", 3), "workers of v1.30.2 cannot join yet: the control plane has v1.31.0");
    assert_eq!(joins("v1.30.1", 2), "workers of v1.30.2 cannot join yet: my-tkc is still changing its machines");
}
