//! What the rules are for: without one of them, an invariant reports what goes wrong, and how to see it again.

use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use windlass_api::annotation;
use windlass_api::kind::virtual_machine::VirtualMachineImage;
use windlass_plan::gate::Gate;
use windlass_rehearse::rehearsal::{Rehearsal, Request, Verdict, rehearse};
use windlass_sim::world::World;

use crate::start;

fn without(gate: Gate, start: &World) -> Rehearsal {
    let request = Request { without_gates: vec![gate], ..start::update() };
    rehearse(start, &request).unwrap()
}

fn check(gate: Gate, invariant: &str, start: &World) {
    let rehearsal = without(gate, start);
    let reported = rehearsal.violations.iter().find(|reported| reported.violation.id == invariant);
    let Some(reported) = reported else { panic!("without {gate} nobody reports {invariant}:\n{rehearsal}") };
    let replay = format!("windlass rehearse my-tkc --to v1.16.7 --seed 1 --without-gate {gate}");
    assert_eq!(reported.replay, replay);
    assert!(rehearsal.text().contains(&replay));
}

/// A World in which one add-on of the release cannot be applied: there is no such kind.
fn with_a_broken_addon() -> World {
    start::changed(start::three_and_one(), |world| async move {
        let images: Api<VirtualMachineImage> = Api::all(world.client());
        let manifest =
            "apiVersion: example.dev/v1\nkind: Unknown\nmetadata:\n  name: broken\n  namespace: kube-system\n";
        let addon = json!({"name": "broken", "type": "inline", "value": manifest}).to_string();
        let key = annotation::addon_key(&"broken".parse().unwrap());
        let patch = json!({"metadata": {"annotations": {key: addon}}});
        let name = "photon-k8sd-v1.16.7-vmware.1-guest.1";
        images.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    })
}

#[test]
fn without_the_order_of_workers_they_run_ahead_of_the_control_plane() {
    check(Gate::WorkerOrder, "D2", &start::three_and_one().world);
}

#[test]
fn an_add_on_that_cannot_be_applied_keeps_every_machine_as_it_is() {
    let rehearsal = rehearse(&with_a_broken_addon(), &start::update()).unwrap();
    let Verdict::Stuck { waiting_for } = &rehearsal.verdict else { panic!("{rehearsal}") };
    assert!(waiting_for.contains("Unknown of example.dev/v1"), "{waiting_for}");
    assert!(rehearsal.machines.is_empty() && rehearsal.violations.is_empty(), "{rehearsal}");
}

#[test]
fn without_packages_first_machines_come_before_their_packages() {
    check(Gate::PackagesFirst, "D1", &with_a_broken_addon());
}
