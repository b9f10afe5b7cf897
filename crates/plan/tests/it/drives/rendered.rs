//! The objects of each drive, as they go over the wire.

use std::fmt::Write;

use serde_json::{Value, json};
use windlass_api::name::{Uid, UpdateId};
use windlass_api::version::facts;
use windlass_plan::render::{Scope, kubeadm, kubeadm_control_plane, topology, workers};
use windlass_plan::target::Target;

use super::sample::{kubeadm as asked, of_topology, topology as asked_topology};
use crate::story::assert_golden;

fn scope(target: &Target) -> Scope<'_> {
    Scope { target, update: "1280807".parse::<UpdateId>().unwrap() }
}

fn uid() -> Uid {
    Uid::new("uid-of-the-cluster").unwrap()
}

fn told(objects: &[(&str, Value)]) -> String {
    let mut text = String::new();
    for (title, object) in objects {
        writeln!(text, "--- {title}\n{object:#}").unwrap();
    }
    text
}

#[test]
fn a_control_plane_that_cluster_api_rolls_goes_over_the_wire_so() {
    let target = asked(3, [(2, "best-effort-small"), (1, "best-effort-large")], "v1.34.2");
    let scope = scope(&target);
    let pool = &target.pools[1];
    let name = "theirs".parse().unwrap();
    let template = kubeadm_control_plane::template_name(&scope);
    let templates = workers::PoolTemplates::of(&scope, pool);
    let [infrastructure, bootstrap] = workers::templates(&scope, pool, [None, None], &uid());
    let objects = [
        ("the Cluster is told", kubeadm_control_plane::reference(&scope)),
        ("a template is made", kubeadm_control_plane::template(&scope, None, &uid())),
        ("a control plane is made", kubeadm_control_plane::created(&scope, &uid())),
        ("a control plane that is there is changed", kubeadm_control_plane::changed(&scope, &name, &template)),
        ("templates of a pool are made", infrastructure),
        ("", bootstrap),
        ("a pool is made", workers::deployment(&scope, pool, &templates, &uid())),
        ("a pool that is there is changed", workers::changed_deployment(&scope, pool, &templates)),
    ];
    assert_golden("rendered-kubeadm-control-plane.out", &told(&objects));
}

#[test]
fn a_topology_goes_over_the_wire_so() {
    let live = asked_topology(3, [(2, None), (1, Some("best-effort-large"))], "v1.33.1");
    let old = of_topology(&live, "v1.33.1");
    let mut there = live.clone();
    let written = topology::change(&scope(&old), Some(&live));
    let variables: Vec<_> = serde_json::from_value(written["spec"]["topology"]["variables"].clone()).unwrap();
    there.variables.extend::<Vec<_>>(variables);
    let new = of_topology(&there, "v1.34.2");
    let mut kept = new.clone();
    kept.pools[1].version = windlass_plan::target::PoolVersion::Kept;
    let objects = [
        ("a topology is filled in", written),
        ("a topology is upgraded, old and new side by side", topology::change(&scope(&new), Some(&there))),
        ("a pool waits for a later hop", topology::change(&scope(&kept), Some(&there))),
        ("what is reviewed", topology::change(&scope(&new), None)),
    ];
    assert_golden("rendered-topology.out", &told(&objects));
}

#[test]
fn what_others_wrote_into_a_template_is_in_the_next_one() {
    let target = asked(3, [(2, "best-effort-small"), (1, "best-effort-large")], "v1.34.2");
    let infrastructure = json!({"imageName": "old", "className": "old", "storageClass": "old", "network": "theirs"});
    let bootstrap = json!({
        "preKubeadmCommands": ["theirs"],
        "joinConfiguration": {"nodeRegistration": {"kubeletExtraArgs": [{"name": "v", "value": "4"}]}},
    });
    let before = [Some(&infrastructure), Some(&bootstrap)];
    let [infrastructure, bootstrap] = workers::templates(&scope(&target), &target.pools[0], before, &uid());
    let spec = &infrastructure["spec"]["template"]["spec"];
    assert_eq!([&spec["network"], &spec["className"]], ["theirs", "best-effort-small"]);
    let spec = &bootstrap["spec"]["template"]["spec"];
    assert_eq!(spec["preKubeadmCommands"], json!(["theirs"]));
    let arguments = spec["joinConfiguration"]["nodeRegistration"]["kubeletExtraArgs"].as_array().unwrap();
    let names: Vec<&str> = arguments.iter().filter_map(|it| it["name"].as_str()).collect();
    assert_eq!(names, ["v", "node-labels"]);
}

/// The versions around which something changed.
const VERSIONS: [&str; 9] =
    ["v1.15.5", "v1.16.7", "v1.21.14", "v1.22.0", "v1.24.9", "v1.25.7", "v1.27.3", "v1.31.0", "v1.34.2"];

#[test]
fn what_kubeadm_is_told_and_what_it_does_depends_on_the_version() {
    let mut text = String::new();
    for version in VERSIONS {
        let target = asked(3, [(2, "best-effort-small"), (1, "best-effort-large")], version);
        let (scope, kubernetes) = (scope(&target), &target.release.kubernetes);
        let yes = |fact: bool| if fact { "yes" } else { "no" };
        writeln!(text, "--- {version}").unwrap();
        for (fact, holds) in [
            ("kubeadm reads", facts::kubeadm_api(kubernetes).to_owned()),
            ("kubelets read", facts::kubelet_config_name(kubernetes)),
            ("ClusterStatus", yes(facts::has_cluster_status(kubernetes)).to_owned()),
            ("label master", yes(facts::has_master_label(kubernetes)).to_owned()),
            ("label control-plane", yes(facts::has_control_plane_label(kubernetes)).to_owned()),
            ("taint master", yes(facts::has_master_taint(kubernetes)).to_owned()),
            ("taint control-plane", yes(facts::has_control_plane_taint(kubernetes)).to_owned()),
            ("PodSecurityPolicy", yes(facts::has_pod_security_policy(kubernetes)).to_owned()),
            ("etcd learners", yes(facts::joins_etcd_as_learner(kubernetes)).to_owned()),
            ("local API server", yes(facts::kubelet_uses_local_api_server(kubernetes)).to_owned()),
            ("kubelets behind", facts::behind_max(kubernetes).to_string()),
        ] {
            writeln!(text, "{fact}: {holds}").unwrap();
        }
        for (machine, told) in [
            ("the first machine", kubeadm::init(&scope)),
            ("a machine of the control plane", kubeadm::join_control_plane(&scope)),
            ("a worker", kubeadm::join_workers(&scope)),
            ("a control plane that Cluster API rolls", kubeadm::control_plane(&scope)),
        ] {
            writeln!(text, "{machine}: {}", json!(told)).unwrap();
        }
    }
    assert_golden("kubeadm.out", &text);
}
