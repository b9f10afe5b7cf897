//! What owners ask for, and refusals that name the field.

use serde_json::json;
use windlass_api::kind::control_plane::KubeadmControlPlane;
use windlass_api::kind::topology::Topology;
use windlass_plan::target::{Drive, KubeadmParts, PoolParts, Target};

use super::sample::{class, cluster, control_plane, kubeadm, of_topology, pool, release, template, topology};

fn read(control_plane: &KubeadmControlPlane, pools: &[PoolParts]) -> Result<Target, String> {
    let parts =
        KubeadmParts { cluster: &cluster(None), control_plane, template: &template("best-effort-small"), pools };
    Target::of_kubeadm_control_plane(&parts, release("v1.34.2")).map_err(|error| error.to_string())
}

fn addons(target: &Target) -> Vec<&str> {
    target.release.addons.keys().map(AsRef::as_ref).collect()
}

#[test]
fn objects_of_cluster_api_say_what_is_asked_for() {
    let target = read(&control_plane(3), &[pool("md-1", 1, "large"), pool("md-0", 2, "small")]).unwrap();
    assert_eq!((target.drive, target.control_plane.count), (Drive::KubeadmControlPlane, 3));
    let pools: Vec<_> =
        target.pools.iter().map(|it| (it.name.as_str(), it.machines.count, it.machines.class())).collect();
    assert_eq!(pools, [("md-0", 2, "small"), ("md-1", 1, "large")], "in the order of their names");
    assert_eq!(addons(&target), ["authsvc", "coredns", "kube-proxy", "pvcsi"]);
}

#[test]
fn add_ons_that_a_control_plane_brings_itself_are_left_to_it() {
    let mut theirs = control_plane(3);
    theirs.metadata.annotations = None;
    assert_eq!(addons(&read(&theirs, &[]).unwrap()), ["authsvc", "pvcsi"]);
    let asked = topology(3, [(1, None), (1, None)], "v1.34.2");
    let cluster = cluster(Some(asked));
    let target = Target::of_topology(&cluster, &class(), None, release("v1.34.2")).unwrap();
    assert_eq!(addons(&target), ["authsvc", "pvcsi"], "before there is a control plane nobody knows");
}

fn check_kubeadm(change: fn(&mut KubeadmControlPlane, &mut PoolParts), refusal: &str) {
    let (mut control_plane, mut pool) = (control_plane(3), pool("md-0", 1, "small"));
    change(&mut control_plane, &mut pool);
    let error = read(&control_plane, &[pool]).unwrap_err();
    assert!(error.starts_with(refusal), "{error}");
}

#[test]
fn a_refusal_names_the_field_of_the_object() {
    check_kubeadm(
        |control_plane, _| control_plane.spec.replicas = Some(2),
        "KubeadmControlPlane: spec.replicas: 2 machines are no control plane; accepted are 1, 3, 5 and 7",
    );
    check_kubeadm(
        |control_plane, _| {
            let etcd = serde_json::json!({"clusterConfiguration": {"etcd": {"external": {"endpoints": []}}}});
            control_plane.spec.kubeadm_config_spec = serde_json::from_value(etcd).unwrap();
        },
        "KubeadmControlPlane: spec.kubeadmConfigSpec.clusterConfiguration.etcd.external: etcd is elsewhere",
    );
    check_kubeadm(
        |_, pool| pool.template.object["spec"]["template"]["spec"]["className"] = json!(""),
        r#"WCPMachineTemplate/template: spec.template.spec.className: "" is not"#,
    );
    check_kubeadm(
        |_, pool| pool.deployment.metadata.name = Some("MD".to_owned()),
        "MachineDeployment: metadata.name: ",
    );
}

fn check_topology(change: fn(&mut Topology), refusal: &str) {
    let mut asked = topology(3, [(1, None), (1, None)], "v1.34.2");
    change(&mut asked);
    let cluster = cluster(Some(asked));
    let error = Target::of_topology(&cluster, &class(), None, release("v1.34.2")).unwrap_err().to_string();
    assert!(error.starts_with(refusal), "{error}");
}

#[test]
fn a_refusal_names_the_field_of_the_topology() {
    check_topology(
        |asked| asked.control_plane.replicas = Some(4),
        "spec.topology.controlPlane.replicas: 4 machines are no control plane",
    );
    check_topology(
        |asked| asked.workers.machine_deployments[1].replicas = None,
        "spec.topology.workers.machineDeployments[md-1].replicas: it is not set: pools whose size others decide",
    );
    check_topology(
        |asked| asked.variables.retain(|variable| variable.name != "vmClass"),
        "spec.topology.variables[vmClass]: it is not set",
    );
    check_topology(
        |asked| asked.variables[0].value = 7.into(),
        "spec.topology.controlPlane: variable vmClass: it is no text",
    );
    let none = Target::of_topology(&cluster(None), &class(), None, release("v1.34.2"));
    assert_eq!(none.unwrap_err().to_string(), "spec.topology: it is not set: the cluster is of no class");
    let (asked, mut class) = (topology(3, [(1, None), (1, None)], "v1.34.2"), class());
    class.spec.variables.retain(|variable| variable.name != "vmClass");
    let error = Target::of_topology(&cluster(Some(asked)), &class, None, release("v1.34.2")).unwrap_err();
    let refusal = "ClusterClass/tkg-vsphere: spec.variables[vmClass]: it is not set: the class cannot be told";
    assert!(error.to_string().starts_with(refusal), "{error}");
}

#[test]
fn the_end_of_an_update_leads_back_to_its_target() {
    let target = kubeadm(3, [(2, "small"), (1, "large")], "v1.34.2");
    let other = kubeadm(1, [(9, "large"), (9, "large")], "v1.34.2");
    assert_eq!(other.toward(&target.end()), Ok(target));
    let mut target = of_topology(&topology(3, [(2, None), (1, None)], "v1.34.2"), "v1.34.2");
    target.pools[0].version = windlass_plan::target::PoolVersion::Kept;
    let other = of_topology(&topology(5, [(1, None), (1, None)], "v1.34.2"), "v1.34.2");
    assert_eq!(other.toward(&target.end()), Ok(target));
}
