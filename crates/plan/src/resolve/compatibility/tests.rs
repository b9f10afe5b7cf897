use windlass_api::kind::release::LocalReference;

use super::*;
use crate::resolve::catalogue::{Catalogue, image_labels};
use crate::resolve::query::tests::{query, release};
use crate::resolve::query::{Miss, NearMiss, WhyNot, resolve};

const METADATA_TEXT: &str = "
managementClusterVersions:
- version: v1.6.0
  supportedKubernetesVersions: [v1.23.10+vmware.1-tkg.1]
- version: v2.1.0
  supportedKubernetesVersions:
  - v1.24.9+vmware.1-tkg.1
  - v1.24.10---vmware.1-tkg.1
";

fn metadata(text: &str) -> Source<'_> {
    Source { name: METADATA, text }
}

fn read(management: Option<&str>, additional: &[&str]) -> Compatible {
    let additional: Vec<Source<'_>> = additional.iter().map(|text| Source { name: "more", text }).collect();
    Compatible::read(management, Some(metadata(METADATA_TEXT)), &additional).unwrap()
}

fn check(management: Option<&str>, additional: &[&str], versions: &[&str]) {
    let found = read(management, additional);
    let found: Vec<&str> = found.versions.iter().map(KubernetesVersion::as_str).collect();
    assert_eq!(found, versions, "{management:?}");
}

#[test]
fn what_is_compatible_follows_from_the_version_of_the_management_cluster_and_from_what_people_add() {
    check(Some("v2.1.0"), &[], &["v1.24.9+vmware.1-tkg.1", "v1.24.10+vmware.1-tkg.1"]);
    check(Some("v1.6.0"), &["[v1.25.7+vmware.1-tkg.1]"], &["v1.23.10+vmware.1-tkg.1", "v1.25.7+vmware.1-tkg.1"]);
    check(Some("v9.9.9"), &[], &[]);
    check(None, &[], &[]);
    check(None, &["- v1.25.7+vmware.1-tkg.1"], &["v1.25.7+vmware.1-tkg.1"]);
    assert_eq!(Compatible::read(Some("v2.1.0"), None, &[]), Ok(Compatible::default()));
}

fn check_refused(text: &str, more: &str, complaint: &str) {
    let found = Compatible::read(Some("v2.1.0"), Some(metadata(text)), &[Source { name: "more", text: more }]);
    let found = found.unwrap_err().to_string();
    assert!(found.starts_with(complaint), "{found}");
}

#[test]
fn what_cannot_be_read_is_refused_whole_with_the_object_and_the_key() {
    check_refused("][", "[]", "ConfigMap/bom-metadata: binaryData.compatibility: ");
    check_refused("other: []", "[]", "ConfigMap/bom-metadata: binaryData.compatibility: ");
    check_refused(
        "managementClusterVersions: [{version: v1.6.0, supportedKubernetesVersions: [v1.23.10, newest]}]",
        "[]",
        "ConfigMap/bom-metadata: binaryData.compatibility[0][1]: \"newest\" is not a version",
    );
    check_refused(METADATA_TEXT, "{a: b}", "ConfigMap/more: data.tkrVersions: ");
    check_refused(METADATA_TEXT, "[v1.24.9, x]", "ConfigMap/more: data.tkrVersions[1]: \"x\" is not a version");
}

/// The conditions of a release after a change, as `Type=Status Reason`, and the labels that are set.
fn check_standing(change: fn(&mut TanzuKubernetesRelease), conditions: [&str; 3], labels: &[&str]) {
    let (mut release, images) = release("v1.24.9+vmware.1-tkg.1", &[], &["ubuntu"]);
    release.spec.kubernetes.version = "v1.24.9+vmware.1-tkg.1".to_owned();
    change(&mut release);
    let standing = standing(&release, &images, Ok(&read(Some("v2.1.0"), &[])));
    let shown = standing.conditions.map(|fact| {
        let reason = fact.reason.map(|reason| format!(" {reason}")).unwrap_or_default();
        format!("{}={}{reason}", fact.type_, fact.status)
    });
    assert_eq!(shown, conditions);
    let set = standing.labels.iter().filter(|(key, value)| value.is_some() && !key.starts_with("v1"));
    assert_eq!(set.map(|(key, _)| key.as_str()).collect::<Vec<_>>(), labels);
    assert_eq!(standing.labels.get("deactivated"), None, "that one is for people to set");
}

#[test]
fn conditions_and_labels_follow_from_what_is_compatible_and_from_faults() {
    check_standing(|_| {}, ["Compatible=True", "Valid=True", "Ready=True"], &[]);
    check_standing(
        |release| release.metadata.labels = Some([("deactivated".to_owned(), String::new())].into()),
        ["Compatible=True", "Valid=True", "Ready=False Deactivated"],
        &[],
    );
    check_standing(
        |release| release.spec.os_images.push(LocalReference { name: "gone".to_owned() }),
        ["Compatible=True", "Valid=False Invalid", "Ready=False Invalid"],
        &["invalid"],
    );
    check_standing(
        |release| release.spec.bootstrap_packages = None,
        ["Compatible=True", "Valid=True", "Ready=True"],
        &["run.tanzu.vmware.com/legacy-tkr"],
    );
    // The first reason is the one that is told.
    check_standing(
        |release| {
            release.spec.version = "v1.24.11+vmware.1-tkg.1".to_owned();
            release.metadata.labels = Some([("deactivated".to_owned(), String::new())].into());
        },
        ["Compatible=False Incompatible", "Valid=False Invalid", "Ready=False Incompatible"],
        &["incompatible", "invalid"],
    );
    check_standing(
        |release| release.spec.version = "newest".to_owned(),
        ["Compatible=False Incompatible", "Valid=False Invalid", "Ready=False Incompatible"],
        &["incompatible", "invalid"],
    );
}

#[test]
fn a_label_that_does_not_hold_any_more_is_taken_away() {
    let (release, images) = release("v1.24.9+vmware.1-tkg.1", &["incompatible", "invalid"], &[]);
    let labels = standing(&release, &images, Ok(&read(Some("v2.1.0"), &[]))).labels;
    assert_eq!((&labels["incompatible"], &labels["invalid"]), (&None, &None));
    assert_eq!(labels["v1.24.9---vmware"], Some(String::new()));
}

#[test]
fn a_release_stays_what_it_was_while_it_cannot_be_read_what_is_compatible() {
    let malformed = Compatible::read(None, Some(metadata("][")), &[]).unwrap_err();
    for (before, ready) in [(&[][..], ConditionStatus::True), (&["incompatible"], ConditionStatus::False)] {
        let (release, images) = release("v1.24.9+vmware.1-tkg.1", before, &[]);
        let standing = standing(&release, &images, Err(&malformed));
        assert_eq!(standing.labels["incompatible"].is_some(), !before.is_empty());
        let [compatible, _, is_ready] = standing.conditions;
        assert_eq!((compatible.status, is_ready.status), (ConditionStatus::Unknown, ready));
        assert_eq!(compatible.reason, Some(Reason::MetadataMalformed));
        assert!(compatible.message.starts_with("ConfigMap/bom-metadata: "), "{}", compatible.message);
    }
}

#[test]
fn what_is_shown_on_a_release_is_what_resolution_goes_by() {
    let (mut release, images) = release("v1.24.11+vmware.1-tkg.1", &[], &["ubuntu"]);
    let shown = standing(&release, &images, Ok(&read(Some("v2.1.0"), &[]))).labels;
    release.metadata.labels = Some(shown.into_iter().filter_map(|(key, value)| Some((key, value?))).collect());
    let refusal = resolve(&query("v1.24", "", &[]), &Catalogue::read(&[release], &images)).unwrap_err();
    let WhyNot::NoRelease { near, .. } = refusal.parts.values().next().unwrap() else { panic!("{refusal}") };
    assert!(matches!(near.as_slice(), [NearMiss { why: Miss::Excluded("incompatible"), .. }]), "{refusal}");
}

#[test]
fn an_image_is_labelled_by_its_fields() {
    let (_, mut images) = release("v1.24.9+vmware.1-tkg.1", &[], &["ubuntu"]);
    let reference = serde_json::json!({"moid": "vm-48", "image": {"region": "eu+1", "size": 3}, "list": [1]});
    images[0].spec.image.reference = reference.as_object().unwrap().clone();
    images[0].spec.os.version = format!("2004 {}", "x".repeat(80));
    let labels = image_labels(&images[0]);
    let wanted = [
        ("image-type", "ova"),
        ("os-arch", "amd64"),
        ("os-name", "ubuntu"),
        ("os-type", "linux"),
        ("os-version", &format!("2004-{}", "x".repeat(58))),
        ("ova-image-region", "eu---1"),
        ("ova-image-size", "3"),
        ("ova-moid", "vm-48"),
    ];
    assert_eq!(labels, wanted.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
}
