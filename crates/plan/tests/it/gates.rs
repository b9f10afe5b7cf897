//! Each gate: what it refuses, in which words.

use windlass_plan::gate::{self, Blocked};
use windlass_plan::inventory::{Inventory, Job, JobState, MachineState, Workload};
use windlass_plan::target::Target;

use crate::fake::Fake;
use crate::sample::target;

/// A cluster that was created, and is well.
fn well() -> Fake {
    let mut fake = Fake::new(target(3, 1, "v1.15.5"));
    loop {
        let planned = windlass_plan::planner::plan(&fake.input());
        for step in &planned.steps {
            fake.execute(step);
        }
        if fake.tick().is_none() && planned.steps.is_empty() {
            return fake;
        }
    }
}

/// What the gate says of a cluster that is well, but for this change.
fn check(ask: fn(&Target, &Inventory) -> Option<Blocked>, change: fn(&mut Inventory), refusal: &str) {
    let mut fake = well();
    change(&mut fake.inventory);
    let blocked = ask(&fake.target, &fake.inventory);
    assert_eq!(blocked.map(|blocked| blocked.to_string()).unwrap_or_default(), refusal);
}

#[test]
fn packages_come_first() {
    let ask = gate::packages_first;
    check(ask, |_| {}, "");
    check(ask, |it| it.workload = Workload::NotYet, "the workload cluster has no API yet");
    check(
        ask,
        |it| {
            let Workload::Reachable { addons, .. } = &mut it.workload else { panic!() };
            addons.clear();
        },
        "the add-on authsvc is not ready: Deployment/authsvc is not as the release has it",
    );
    check(
        ask,
        |it| {
            let Workload::Reachable { addons, .. } = &mut it.workload else { panic!() };
            addons.get_mut(&"coredns".parse().unwrap()).unwrap()[0].live["status"]["availableReplicas"] = 1.into();
        },
        "the add-on coredns is not ready: Deployment/coredns: 1 of 2 pods are available",
    );
}

#[test]
fn the_control_plane_changes_only_while_all_of_it_is_well() {
    let ask = |target: &Target, inventory: &Inventory| {
        gate::control_plane_healthy(inventory, windlass_api::name::UpdateId::new(&target.cluster.uid, 1))
    };
    check(ask, |_| {}, "");
    check(
        ask,
        |it| it.control_plane.machines[1].state = MachineState::Joining,
        "Machine my-tkc-control-plane-1-14087507168931272006 is not ready: it is on the way to being a node",
    );
    check(
        ask,
        |it| {
            let Workload::Reachable { etcd, .. } = &mut it.workload else { panic!() };
            etcd[2].healthy = false;
        },
        "the member my-tkc-control-plane-2-14087507168931272006 of etcd is not healthy",
    );
    check(
        ask,
        |it| {
            let Workload::Reachable { etcd, .. } = &mut it.workload else { panic!() };
            etcd[2].name.clear();
        },
        "a member of etcd has been added and has not started",
    );
    check(
        ask,
        |it| {
            // Left behind by an attempt of this very update, which the next attempt will deal with.
            let machine = &mut it.control_plane.machines[1];
            machine.name = "my-tkc-control-plane-1-7243477841528164879".parse().unwrap();
            machine.state = MachineState::Joining;
        },
        "",
    );
}

fn job(inventory: &mut Inventory, state: JobState) {
    let update: windlass_api::name::UpdateId = "7".parse().unwrap();
    inventory.control_plane.job = Some(Job { name: update.job_name(), update, state });
}

#[test]
fn one_update_of_a_control_plane_runs_at_a_time_and_none_after_one_that_failed() {
    let ask = |_: &Target, inventory: &Inventory| gate::one_control_plane_update(inventory);
    check(ask, |_| {}, "");
    check(ask, |it| job(it, JobState::Complete), "");
    check(ask, |it| job(it, JobState::Active { failed_attempts: 2 }), "Job update-7 is replacing the control plane");
    check(
        ask,
        |it| job(it, JobState::Failed { message: "timed out".to_owned() }),
        "Job update-7 gave up replacing the control plane: timed out",
    );
}

#[test]
fn workers_wait_for_the_control_plane() {
    let ask = |_: &Target, inventory: &Inventory| gate::worker_order(&"v1.16.7+vmware.1".parse().unwrap(), inventory);
    check(
        ask,
        |it| it.control_plane.machines[0].version = "v1.16.7+vmware.1".parse().unwrap(),
        "Machine my-tkc-control-plane-1-14087507168931272006 of the control plane has v1.15.5+vmware.1, and workers are to \
         have v1.16.7+vmware.1",
    );
    let all_new = |it: &mut Inventory| {
        for machine in &mut it.control_plane.machines {
            machine.version = "v1.16.8".parse().unwrap();
        }
    };
    check(ask, all_new, "");
    let same = |target: &Target, inventory: &Inventory| gate::worker_order(&target.release.kubernetes, inventory);
    check(same, |_| {}, "");
}

#[test]
fn certificates_come_before_machines() {
    let ask = |target: &Target, inventory: &Inventory| gate::certificates_present(&target.cluster.name, inventory);
    check(ask, |_| {}, "");
    check(ask, |it| it.secrets.retain(|secret| secret.to_string() != "ca"), "Secret my-tkc-ca is missing");
}
