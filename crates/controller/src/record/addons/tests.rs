use std::collections::BTreeMap;

use windlass_api::name::Uid;
use windlass_plan::step::Revision;
use windlass_plan::target::Target;

use super::super::tests::planned;
use super::*;
use crate::execute::{Executed, StepFailure, WriteError};

const NOW: &str = "2026-01-01T00:00:00Z";
const OLD: &str = "v1.15.5+vmware.1-guest.1";
const NEW: &str = "v1.16.7+vmware.1-guest.1";

/// A workload cluster with all objects of the release in it, but for what is changed about it.
fn answering(target: &Target, change: impl FnOnce(&mut Vec<AddonObject>)) -> Workload {
    let revision = Revision { uid: Uid::new("uid").unwrap(), resource_version: "1".to_owned() };
    let live = |object: &serde_json::Value| AddonObject { revision: revision.clone(), live: object.clone() };
    let objects = |addon: &AddonRelease| addon.objects.iter().map(live).collect();
    let addons = target.release.addons.iter().map(|(name, addon)| (name.clone(), objects(addon)));
    let mut addons: BTreeMap<AddonName, Vec<AddonObject>> = addons.collect();
    change(addons.get_mut(&"pvcsi".parse::<AddonName>().unwrap()).unwrap());
    Workload::Reachable { nodes: vec![], addons, etcd: vec![], foreign: BTreeMap::new(), applied: None }
}

fn theirs(target: &Target) -> Workload {
    let mut workload = answering(target, Vec::clear);
    let Workload::Reachable { foreign, .. } = &mut workload else { panic!() };
    foreign.insert("pvcsi".parse().unwrap(), vec!["DaemonSet/pvcsi".to_owned()]);
    workload
}

fn silent(_: &Target) -> Workload {
    Workload::Unreachable { why: "no route to host".to_owned() }
}

/// What is said of the storage driver, of which this was said before, as `status version: message`.
fn check(workload: impl FnOnce(&Target) -> Workload, failed: bool, before: (AddonPhase, Option<&str>), wanted: &str) {
    let (mut input, planned) = planned(NOW);
    input.inventory.workload = workload(&input.target);
    let mut executed = Executed::default();
    if failed {
        let role = "addon/pvcsi/DaemonSet".to_owned();
        executed.failures.push(StepFailure { stage: Stage::Packages, role, error: WriteError::NoWorkload });
    }
    let mut status = TanzuKubernetesClusterStatus::default();
    let known = AddonStatus {
        name: "pvcsi".to_owned(),
        status: before.0,
        version: before.1.map(str::to_owned),
        last_error_message: None,
    };
    status.addons.insert("csi".to_owned(), known);
    let recorded = Recorded { input: &input, planned: &planned, findings: &[], executed: &executed, attempts: &[] };
    let said = addons(&status, &recorded);
    let AddonStatus { status, version, last_error_message, .. } = &said["csi"];
    let message = last_error_message.as_ref().map(|message| format!(": {message}")).unwrap_or_default();
    let said = format!("{status:?} {}{message}", version.as_deref().unwrap_or("-"));
    assert_eq!(said, wanted, "{before:?}");
}

#[test]
fn an_add_on_is_applied_when_all_of_its_objects_are() {
    let all = |target: &Target| answering(target, |_| ());
    let one_missing = |target: &Target| answering(target, |objects| drop(objects.pop()));
    check(all, false, (AddonPhase::Pending, None), &format!("Applied {NEW}"));
    check(all, false, (AddonPhase::Error, Some(OLD)), &format!("Applied {NEW}"));
    check(one_missing, false, (AddonPhase::Pending, None), "Pending -");
    check(one_missing, false, (AddonPhase::Applied, Some(OLD)), &format!("Applied {OLD}"));
    check(|_| Workload::NotYet, false, (AddonPhase::Pending, None), "Pending -");
}

#[test]
fn an_error_says_what_went_wrong_and_keeps_the_version() {
    let all = |target: &Target| answering(target, |_| ());
    let refused = format!("Error {OLD}: the workload cluster cannot be reached");
    check(all, true, (AddonPhase::Applied, Some(OLD)), &refused);
    let unreachable = format!("Error {OLD}: the workload cluster cannot be reached: no route to host");
    check(silent, false, (AddonPhase::Applied, Some(OLD)), &unreachable);
    check(silent, false, (AddonPhase::Pending, None), "Pending -");
}

#[test]
fn an_add_on_of_somebody_else_is_unmanaged_until_it_is_gone() {
    check(theirs, false, (AddonPhase::Pending, None), "Unmanaged -");
    let gone = |target: &Target| answering(target, Vec::clear);
    check(gone, false, (AddonPhase::Unmanaged, None), "Pending -");
}

#[test]
fn no_add_on_is_applied_whose_record_could_not_be_written() {
    let (mut input, planned) = planned(NOW);
    input.inventory.workload = answering(&input.target, |_| ());
    let role = "addons/applied".to_owned();
    let failure = StepFailure { stage: Stage::Packages, role, error: WriteError::NoWorkload };
    let executed = Executed { failures: vec![failure], ..Executed::default() };
    let recorded = Recorded { input: &input, planned: &planned, findings: &[], executed: &executed, attempts: &[] };
    let said = addons(&TanzuKubernetesClusterStatus::default(), &recorded);
    assert!(said.values().all(|addon| addon.status == AddonPhase::Error), "{said:?}");
}
