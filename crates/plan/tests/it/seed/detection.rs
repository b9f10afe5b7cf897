//! What begins an update.

use windlass_api::kind::tanzu::Distribution;
use windlass_api::version::KubernetesVersion;
use windlass_plan::inventory::Inventory;
use windlass_plan::planner::Record;
use windlass_plan::release::Release;
use windlass_plan::resolve;
use windlass_plan::step::Stage;
use windlass_plan::target::Target;

use super::{begins, changed, ends, reasons};
use crate::fake::Fake;
use crate::sample::{cluster, image, target};
use crate::story::{assert_at_rest, checked_plan, live, running_cluster};

const OLD: &str = "v1.15.5+vmware.1-guest.1";
const NEW: &str = "v1.16.7+vmware.1-guest.1";

/// Such a change begins an update of these stages, which ends.
fn check(change: impl FnOnce(&mut Fake), stages: &[Stage]) -> String {
    let mut fake = running_cluster(1, 1);
    change(&mut fake);
    let planned = checked_plan(&fake);
    assert!(begins(&planned).is_some(), "{:?}", planned.report);
    let done = planned.steps.iter().find(|step| step.role != "release");
    assert_eq!(done, None, "nothing is done before it is on record, but that its release is kept");
    assert_eq!(changed(&planned), stages);
    ends(&mut fake)
}

const ALL: [Stage; 3] = Stage::ALL;
const MACHINES: [Stage; 2] = [Stage::ControlPlane, Stage::Workers];

fn ask(change: impl FnOnce(&mut Target)) -> impl FnOnce(&mut Fake) {
    |fake| change(&mut fake.target)
}

#[test]
pub fn whatever_changes_about_machines_rolls_in_the_same_fashion() {
    let version = check(|fake| fake.target = target(1, 1, "v1.16.7"), &ALL);
    let class = check(ask(|it| it.control_plane.class = "best-effort-large".parse().ok()), &[Stage::ControlPlane]);
    let storage = check(ask(|it| it.control_plane.storage_class = "fast".parse().ok()), &[Stage::ControlPlane]);
    for story in [version, class, storage] {
        let [job, comes, goes] =
            ["create Job update-", "takes the place of", "is being deleted"].map(|line| story.find(line).unwrap());
        assert!(job < comes && comes < goes, "{story}");
    }
}

#[test]
pub fn an_upgrade_is_kept_within_the_skew_that_versions_allow() {
    let mut fake = running_cluster(1, 1);
    fake.target = target(1, 1, "v1.17.4");
    let planned = checked_plan(&fake);
    assert_eq!(begins(&planned), None);
    assert!(reasons(&planned, Stage::ControlPlane).contains(&"VersionRefused"), "two minors at once");
}

#[test]
pub fn a_downgrade_is_refused_with_the_reason() {
    let mut fake = Fake::new(target(1, 1, "v1.16.7"));
    ends(&mut fake);
    fake.target = target(1, 1, "v1.15.5");
    let planned = checked_plan(&fake);
    assert_eq!((begins(&planned), planned.steps.len()), (None, 0));
    for stage in ALL {
        assert!(reasons(&planned, stage).contains(&"VersionRefused"), "{stage}");
    }
}

#[test]
pub fn another_distribution_begins_an_update() {
    let mut fake = running_cluster(1, 1);
    fake.target = target(1, 1, "v1.16.7");
    assert_eq!(begins(&checked_plan(&fake)), Some((OLD, NEW)));
    ends(&mut fake);
}

#[test]
pub fn a_hint_beside_a_full_version_that_it_does_not_match_is_refused() {
    let releases: Vec<KubernetesVersion> = [OLD, NEW].map(|text| text.parse().unwrap()).into();
    let asked = |full: Option<&str>| Distribution {
        version: Some("v1.16.7".to_owned()),
        full_version: full.map(str::to_owned),
    };
    let refusal = resolve::requested(&asked(Some(OLD)), None, &releases).unwrap_err().to_string();
    assert!(refusal.contains("set fullVersion to null"), "{refusal}");
    let found = resolve::requested(&asked(None), None, &releases).unwrap();
    assert_eq!(found.as_str(), NEW, "without it the hint is resolved");
}

#[test]
pub fn another_class_begins_an_update() {
    check(ask(|it| it.control_plane.class = "best-effort-xlarge".parse().ok()), &[Stage::ControlPlane]);
    check(ask(|it| it.pools[0].machines.class = "best-effort-xlarge".parse().ok()), &[Stage::Workers]);
}

#[test]
pub fn another_storage_class_begins_an_update() {
    check(ask(|it| it.control_plane.storage_class = "fast".parse().ok()), &[Stage::ControlPlane]);
    check(ask(|it| it.pools[0].machines.storage_class = "fast".parse().ok()), &[Stage::Workers]);
}

#[test]
pub fn any_combination_of_changes_is_one_update() {
    let story = check(
        |fake| {
            fake.target = target(1, 1, "v1.16.7");
            fake.target.control_plane.class = "best-effort-xlarge".parse().ok();
            fake.target.pools[0].machines.storage_class = "fast".parse().ok();
        },
        &ALL,
    );
    assert_eq!(story.matches("record begin").count(), 1, "{story}");
    assert_eq!(story.matches("create Job").count(), 1, "{story}");
}

#[test]
pub fn an_image_that_was_renamed_begins_an_update() {
    let mut renamed = image("v1.15.5");
    renamed.metadata.name = Some("ubuntu-k8sd-v1.15.5-vmware.1-guest.1".to_owned());
    let release = Release::from_image(&renamed).unwrap();
    let mut fake = running_cluster(1, 1);
    fake.target = Target::new(&cluster(1, 1), release).unwrap();
    let planned = checked_plan(&fake);
    assert_eq!(begins(&planned), Some((OLD, OLD)), "of the same distribution");
    assert_eq!(changed(&planned), MACHINES);
    assert!(planned.report.stages[1].changes[0].contains("imageName"), "{:?}", planned.report.stages[1].changes);
    let story = live(&mut fake);
    assert_eq!(story.matches("create Job").count(), 1, "{story}");
    assert_at_rest(&fake);
}

fn change_bootstrap(inventory: &mut Inventory) {
    let pool = inventory.pools.values_mut().next().unwrap();
    let spec = pool.bootstrap_template.spec.as_mut().unwrap();
    spec["joinConfiguration"]["nodeRegistration"]["kubeletExtraArgs"][0]["value"] = "as it was before".into();
}

#[test]
pub fn new_values_of_the_generator_begin_an_update() {
    let mut fake = running_cluster(1, 1);
    change_bootstrap(&mut fake.inventory);
    let planned = checked_plan(&fake);
    assert_eq!(begins(&planned), Some((OLD, OLD)), "of the same distribution");
    assert_eq!(changed(&planned), [Stage::Workers]);
    assert!(planned.report.stages[2].changes[0].contains("bootstrap"), "{:?}", planned.report.stages[2].changes);
    let story = live(&mut fake);
    assert_eq!(story.matches("create Job").count(), 0, "only workers are replaced: {story}");
    assert_at_rest(&fake);
}

#[test]
pub fn an_image_that_was_renamed_is_part_of_whatever_else_is_asked_for() {
    let mut renamed = image("v1.15.5");
    renamed.metadata.name = Some("ubuntu-k8sd-v1.15.5-vmware.1-guest.1".to_owned());
    let mut fake = running_cluster(1, 1);
    fake.target = Target::new(&cluster(1, 1), Release::from_image(&renamed).unwrap()).unwrap();
    fake.target.pools[0].machines.class = "best-effort-xlarge".parse().ok();
    let story = live(&mut fake);
    assert_eq!(story.matches("record begin").count(), 1, "{story}");
    assert_eq!(story.matches("create Job").count(), 1, "{story}");
    assert_at_rest(&fake);
}

#[test]
pub fn what_should_be_is_compared_with_what_is_again_and_again() {
    let mut fake = running_cluster(1, 1);
    let planned = checked_plan(&fake);
    assert_eq!((&planned.record, planned.steps.len()), (&None, 0), "nothing differs");
    change_bootstrap(&mut fake.inventory);
    assert!(matches!(checked_plan(&fake).record, Some(Record::Begin { .. })), "now something does");
}

#[test]
pub fn only_a_difference_in_what_was_asked_for_counts() {
    let mut fake = running_cluster(1, 1);
    let pool = fake.inventory.pools.values_mut().next().unwrap();
    for template in [&mut pool.infrastructure_template, &mut pool.bootstrap_template] {
        template.spec.as_mut().unwrap()["somebodyElses"] = "field".into();
    }
    let windlass_plan::inventory::Workload::Reachable { addons, .. } = &mut fake.inventory.workload else { panic!() };
    for object in addons.values_mut().flatten() {
        object.live["metadata"]["annotations"]["somebodyElses"] = "note".into();
        object.live["metadata"]["resourceVersion"] = "7".into();
    }
    let planned = checked_plan(&fake);
    assert_eq!((planned.record, planned.steps), (None, Vec::new()));
}

#[test]
pub fn an_update_rolls_the_nodes_that_differ() {
    let mut fake = running_cluster(3, 1);
    let wanted: windlass_api::name::MachineClassName = "best-effort-large".parse().unwrap();
    fake.target.control_plane.class = Some(wanted.clone());
    let first = fake.inventory.control_plane.machines[0].name.clone();
    for machine in fake.inventory.control_plane.machines.iter_mut().skip(1) {
        machine.class = Some(wanted.clone());
    }
    let planned = checked_plan(&fake);
    let lines = &planned.report.stages[1].changes;
    assert_eq!(lines.len(), 1, "only {first} differs: {lines:?}");
    assert_eq!(changed(&planned), [Stage::ControlPlane]);
}
