//! The same where Cluster API rolls the machines.

use serde_json::{Value, json};
use windlass_api::name::{Uid, UpdateId};
use windlass_plan::change::Kind;
use windlass_plan::inventory::{KubeadmControlPlane, PoolProgress, Template, Topology};
use windlass_plan::render::{Scope, kubeadm, kubeadm_control_plane, topology};
use windlass_plan::step::Revision;
use windlass_plan::step::Stage::{self, ControlPlane, Packages, Workers};
use windlass_plan::target::{Drive, Target, TopologyTarget, TopologyVariable};

use super::{classified, lines};
use crate::fake::Fake;
use crate::sample::target;
use crate::story::running_cluster;

fn scope(target: &Target) -> Scope<'_> {
    Scope { target, update: UpdateId::new(&target.cluster.uid, 0) }
}

fn revision() -> Revision {
    Revision { uid: Uid::new("uid").unwrap(), resource_version: "1".to_owned() }
}

/// A cluster of one and one whose control plane Cluster API rolls, and that is as it should be.
fn kubeadm() -> Fake {
    let mut fake = running_cluster(1, 1);
    fake.target.drive = Drive::KubeadmControlPlane;
    let version = fake.target.release.kubernetes.clone();
    fake.inventory.control_plane.kubeadm = Some(KubeadmControlPlane {
        name: "my-tkc-control-plane".parse().unwrap(),
        revision: revision(),
        replicas: 1,
        version: version.clone(),
        infrastructure_template: Template {
            name: "template".parse().unwrap(),
            spec: Some(kubeadm_control_plane::template_spec(&scope(&fake.target))),
        },
        configuration: json!(kubeadm::control_plane(&scope(&fake.target))),
        progress: PoolProgress { observed: true, replicas: 1, up_to_date: 1, available: 1 },
        versions: vec![version],
        unwell: None,
        owns_addons: false,
        live: serde_json::Value::Null,
    });
    fake
}

fn check(mut fake: Fake, ask: impl FnOnce(&mut Fake), kind: Kind, stages: &[Stage], expected: &[&str]) {
    ask(&mut fake);
    let found = classified(&fake);
    let machines = lines(&found).into_iter().filter(|line| !line.starts_with("addon/"));
    assert_eq!((found.kind, machines.collect::<Vec<_>>()), (kind, expected.iter().map(ToString::to_string).collect()));
    assert_eq!(found.stages, stages.iter().copied().collect());
}

fn configuration(fake: &mut Fake) -> &mut Value {
    &mut fake.inventory.control_plane.kubeadm.as_mut().unwrap().configuration
}

#[test]
fn a_control_plane_of_cluster_api_is_told_what_its_fields_do() {
    check(kubeadm(), |_| (), Kind::Nothing, &[], &[]);
    check(
        kubeadm(),
        |fake| {
            let drive = fake.target.drive;
            fake.target = Target { drive, ..target(1, 1, "v1.16.7") };
        },
        Kind::Upgrade,
        &[Packages, ControlPlane, Workers],
        &[
            "control-plane version Replaces (Release)",
            "control-plane imageName Replaces (Release)",
            "control-plane imageTag InPlace (Release)",
            "control-plane value Replaces (Release)",
            "workers/default version Replaces (Release)",
            "workers/default imageName Replaces (Release)",
            "workers/default value Replaces (Release)",
        ],
    );
    // CoreDNS is changed where it is; an etcd of another image is another machine.
    check(
        kubeadm(),
        |fake| configuration(fake)["clusterConfiguration"]["dns"]["imageTag"] = "older".into(),
        Kind::Update,
        &[ControlPlane],
        &["control-plane imageTag InPlace (Release)"],
    );
    check(
        kubeadm(),
        |fake| configuration(fake)["clusterConfiguration"]["etcd"]["local"]["imageTag"] = "older".into(),
        Kind::Update,
        &[ControlPlane],
        &["control-plane imageTag Replaces (Release)"],
    );
    // What others put there is theirs.
    check(kubeadm(), |fake| configuration(fake)["files"] = json!([{"path": "/a"}]), Kind::Nothing, &[], &[]);
    check(
        kubeadm(),
        |fake| fake.inventory.control_plane.kubeadm.as_mut().unwrap().replicas = 3,
        Kind::Update,
        &[],
        &["control-plane replicas Refused (Owner)"],
    );
}

/// A cluster of a class, as it should be.
fn of_class() -> Fake {
    let mut fake = kubeadm();
    fake.target.drive = Drive::Topology;
    let variables = [TopologyVariable::MachineClass, TopologyVariable::StorageClass].into();
    fake.target.topology = Some(TopologyTarget { class: "small-clusters".to_owned(), variables });
    let mut spec = topology::change(&scope(&fake.target), None)["spec"]["topology"].clone();
    spec["classRef"] = json!({"name": "small-clusters"});
    spec["workers"]["machineDeployments"][0]["class"] = "workers".into();
    fake.inventory.topology = Some(Topology {
        revision: revision(),
        class: "small-clusters".to_owned(),
        version: fake.target.release.kubernetes.clone(),
        spec,
        pending: None,
    });
    fake
}

#[test]
fn a_topology_is_told_what_its_fields_do() {
    check(of_class(), |_| (), Kind::Nothing, &[], &[]);
    check(
        of_class(),
        |fake| {
            let asked = target(1, 1, "v1.16.7");
            fake.target.release = asked.release;
        },
        Kind::Upgrade,
        &[Packages, ControlPlane, Workers],
        &["control-plane version Replaces (Release)", "workers/default version Replaces (Release)"],
    );
    check(
        of_class(),
        |fake| fake.target.pools[0].machines.class = "large".parse().ok(),
        Kind::Update,
        &[Workers],
        &["workers/default vmClass Replaces (Owner)"],
    );
    check(
        of_class(),
        |fake| fake.target.pools[0].machines.count = 5,
        Kind::Update,
        &[Workers],
        &["workers/default replicas InPlace (Owner)"],
    );
}
