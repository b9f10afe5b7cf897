//! What a change comes to: of what sort it is, which stages it touches, and which field is guilty.

mod drives;

use serde_json::json;
use windlass_api::annotation;
use windlass_api::kind::tanzu::{CidrBlocks, Cni, Network, Settings, TanzuKubernetesCluster};
use windlass_api::kind::virtual_machine::VirtualMachineImage;
use windlass_plan::change::{Classification, Effect, Kind, classify, refused_choice};
use windlass_plan::gate::Blocked;
use windlass_plan::planner::plan;
use windlass_plan::release::Release;
use windlass_plan::report::StageState;
use windlass_plan::step::Stage::{self, ControlPlane, Packages, Workers};
use windlass_plan::target::Target;

use crate::fake::Fake;
use crate::sample::{cluster, image, target};
use crate::story::running_cluster;

fn classified(fake: &Fake) -> Classification {
    classify(&fake.target, &fake.inventory)
}

/// Each change as `role field effect (origin)`, in order and each once.
fn lines(found: &Classification) -> Vec<String> {
    let mut lines: Vec<String> = found
        .changes
        .iter()
        .map(|change| {
            let field = change.field.rsplit('.').next().unwrap();
            format!("{} {field} {:?} ({:?})", change.role, change.effect, change.origin)
        })
        .collect();
    lines.dedup();
    lines
}

/// A cluster of one and one that is asked to be something else.
fn check(ask: impl FnOnce(&mut Fake), kind: Kind, stages: &[Stage], expected: &[&str]) {
    let mut fake = running_cluster(1, 1);
    ask(&mut fake);
    let found = classified(&fake);
    assert_eq!((found.kind, lines(&found)), (kind, expected.iter().map(ToString::to_string).collect()));
    assert_eq!(found.stages, stages.iter().copied().collect());
}

/// What the owner asks for, with this release.
fn asked(fake: &mut Fake, change: impl FnOnce(&mut TanzuKubernetesCluster), of: &VirtualMachineImage) {
    let mut tkc = cluster(1, 1);
    change(&mut tkc);
    fake.target = Target::new(&tkc, Release::from_image(of).unwrap()).unwrap();
}

#[test]
fn a_cluster_that_is_as_it_should_be_comes_to_nothing() {
    check(|_| (), Kind::Nothing, &[], &[]);
}

#[test]
fn a_release_that_is_newer_is_an_upgrade_of_all_stages() {
    check(
        |fake| fake.target = target(1, 1, "v1.16.7"),
        Kind::Upgrade,
        &[Packages, ControlPlane, Workers],
        &[
            "addon/authsvc/Deployment image InPlace (Release)",
            "addon/authsvc/Deployment com/kubernetesDistributionVersion] InPlace (Release)",
            "addon/coredns/Deployment image InPlace (Release)",
            "addon/coredns/Deployment com/kubernetesDistributionVersion] InPlace (Release)",
            "addon/kube-proxy/DaemonSet name Adds (Release)",
            "addon/pvcsi/DaemonSet name Adds (Release)",
            "control-plane/0 version Replaces (Release)",
            "control-plane/0 imageName Replaces (Release)",
            "workers/default version Replaces (Release)",
            "workers/default imageName Replaces (Release)",
            "workers/default value Replaces (Release)",
        ],
    );
}

#[test]
fn an_upgrade_stays_one_until_nothing_is_left_of_it() {
    let mut fake = running_cluster(1, 1);
    fake.target = target(1, 1, "v1.16.7");
    let mut kinds = Vec::new();
    for _ in 0..60 {
        let planned = plan(&fake.input());
        planned.record.iter().for_each(|record| fake.record(record));
        planned.steps.iter().for_each(|step| fake.execute(step));
        kinds.push(classified(&fake).kind);
        if fake.tick().is_none() && planned.record.is_none() && planned.steps.is_empty() {
            break;
        }
    }
    kinds.dedup();
    assert_eq!(kinds, [Kind::Upgrade, Kind::Nothing]);
}

#[test]
fn a_release_that_is_older_is_a_downgrade_and_refused() {
    let mut fake = running_cluster(1, 1);
    fake.target = target(1, 1, "v1.15.4");
    let found = classified(&fake);
    assert_eq!(found.kind, Kind::Downgrade);
    let refused = found.changes.iter().filter(|change| change.effect == Effect::Refused);
    let refused: Vec<(&str, &str)> = refused.map(|change| (change.role.as_str(), change.field.as_str())).collect();
    assert_eq!(refused, [("control-plane/0", "spec.version"), ("workers/default", "spec.template.spec.version")]);
}

#[test]
fn the_guilty_field_is_named() {
    check(
        |fake| asked(fake, |tkc| tkc.spec.topology.control_plane.class = "large".into(), &image("v1.15.5")),
        Kind::Update,
        &[ControlPlane],
        &["control-plane/0 className Replaces (Owner)"],
    );
    check(
        |fake| asked(fake, |tkc| tkc.spec.topology.workers.storage_class = "fast".into(), &image("v1.15.5")),
        Kind::Update,
        &[Workers],
        &["workers/default storageClass Replaces (Owner)"],
    );
    check(
        |fake| asked(fake, |tkc| tkc.spec.topology.workers.count = 4, &image("v1.15.5")),
        Kind::Update,
        &[Workers],
        &["workers/default replicas InPlace (Owner)"],
    );
}

#[test]
fn an_image_that_was_renamed_rolls_every_machine() {
    let mut renamed = image("v1.15.5");
    renamed.metadata.name = Some("photon-renamed".to_owned());
    check(
        |fake| asked(fake, |_| (), &renamed),
        Kind::Update,
        &[ControlPlane, Workers],
        &["control-plane/0 imageName Replaces (Release)", "workers/default imageName Replaces (Release)"],
    );
}

#[test]
fn a_control_plane_grows_and_never_shrinks() {
    check(
        |fake| fake.target = target(3, 1, "v1.15.5"),
        Kind::Update,
        &[ControlPlane],
        &["control-plane/1 count Adds (Owner)", "control-plane/2 count Adds (Owner)"],
    );
    let mut fake = running_cluster(3, 1);
    fake.target = target(1, 1, "v1.15.5");
    let found = classified(&fake);
    assert_eq!(lines(&found), ["control-plane count Refused (Owner)"]);
    assert!(found.stages.is_empty(), "what is refused touches nothing");
}

fn network(change: impl FnOnce(&mut Network)) -> impl FnOnce(&mut TanzuKubernetesCluster) {
    let mut network = Network::default();
    change(&mut network);
    move |tkc| tkc.spec.settings = Some(Settings { network: Some(network) })
}

/// A change that is refused for as long as the cluster lives: nothing at all is done, and the way out is the way back.
fn check_refused(fake: &Fake, field: &str, way_out: &str) {
    let found = classified(fake);
    let refused: Vec<&str> = found
        .changes
        .iter()
        .filter(|change| change.effect == Effect::Refused)
        .map(|change| change.field.as_str())
        .collect();
    assert_eq!(refused, [field]);
    let planned = plan(&fake.input());
    assert_eq!((planned.steps, planned.record), (vec![], None));
    assert!(planned.report.current().is_some(), "it is not done");
    for stage in planned.report.stages.iter().filter(|stage| stage.state != StageState::Done) {
        let ways: Vec<String> = stage.blocked.iter().map(Blocked::way_out).collect();
        assert!(ways.contains(&way_out.to_owned()), "{stage:?}");
    }
}

#[test]
fn the_network_of_a_cluster_never_changes() {
    let mut fake = running_cluster(1, 1);
    let pods = CidrBlocks { cidr_blocks: vec!["10.0.0.0/8".to_owned()] };
    asked(&mut fake, network(|network| network.pods = Some(pods)), &image("v1.15.5"));
    check_refused(
        &fake,
        "spec.settings.network.pods.cidrBlocks",
        "set spec.settings.network.pods.cidrBlocks back to 192.168.0.0/16",
    );
    asked(&mut fake, |_| (), &image("v1.15.5"));
    assert_eq!(classified(&fake).kind, Kind::Nothing, "back again, nothing is left of it");
}

#[test]
fn pods_keep_the_network_add_on_that_they_were_started_with() {
    let with = |names: &[&str]| {
        let mut image = image("v1.15.5");
        for name in names {
            let config =
                format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: kube-system}}\n");
            let value = json!({"type": "inline", "value": config}).to_string();
            let annotations = image.metadata.annotations.as_mut().unwrap();
            annotations.insert(format!("{}{name}", annotation::ADDON_PREFIX), value);
        }
        image
    };
    let chosen = |name: &'static str| network(|network| network.cni = Some(Cni { name: name.to_owned() }));
    let both = with(&["calico", "antrea"]);
    let mut tkc = cluster(1, 1);
    chosen("calico")(&mut tkc);
    let mut fake = Fake::new(Target::new(&tkc, Release::from_image(&both).unwrap()).unwrap());
    crate::story::live(&mut fake);
    assert_eq!(classified(&fake).kind, Kind::Nothing);
    let before = fake.target.clone();
    asked(&mut fake, chosen("antrea"), &both);
    check_refused(&fake, "spec.settings.network.cni.name", "set spec.settings.network.cni.name back to calico");
    let refused = refused_choice(&before, &fake.target).unwrap();
    assert_eq!(refused.way_out(), "set spec.settings.network.cni.name back to calico", "admission says the same");
    assert_eq!(refused_choice(&before, &before), None);
}
