//! What files say of clusters, beside what the clusters are.

use serde_json::{Value, json};
use windlass_plan::source::{File, Standing, compare};

use super::{BASE, corpus, file};

fn tkc() -> Value {
    json!({
        "apiVersion": "run.tanzu.vmware.com/v1alpha1", "kind": "TanzuKubernetesCluster",
        "metadata": {"name": "wl", "namespace": "org-acme", "labels": {"team": "phoenix"}},
        "spec": {
            "distribution": {"version": "v1.17", "fullVersion": "v1.17.4+vmware.1-guest.1"},
            "topology": {
                "controlPlane": {"count": 3, "class": "small", "storageClass": "fast"},
                "workers": {"count": 5, "class": "small", "storageClass": "fast"},
            },
        },
    })
}

fn cluster(release: &str) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster",
        "metadata": {"name": "wl", "namespace": "org-acme", "labels": {"release.giantswarm.io/version": release}},
        "spec": {},
    })
}

fn manifest(version: &str) -> File {
    file(
        "clusters/wl.yaml",
        &format!(
            "apiVersion: run.tanzu.vmware.com/v1alpha1\nkind: TanzuKubernetesCluster\nmetadata:\n  name: wl\n  \
             namespace: org-acme\n  labels: {{team: phoenix}}\nspec:\n  distribution:\n    version: {version}\n    \
             fullVersion: null\n  topology:\n    controlPlane: {{count: 3, class: small, storageClass: fast}}\n    \
             workers:\n      count: 5\n      class: \"small\"\n      storageClass: fast\n"
        ),
    )
}

/// A line for each difference.
fn told(files: &[File], clusters: &[Value]) -> Vec<String> {
    let line = |it: &windlass_plan::source::Difference| {
        let live = it.live.as_deref().unwrap_or("-");
        format!("{} {}: {} | {live}: {}", it.place, it.object, it.said, it.standing)
    };
    compare(files, clusters).differences.iter().map(line).collect()
}

#[track_caller]
fn release(version: &str, expected: Option<Standing>) {
    let comparison = compare(&[manifest(version)], &[tkc()]);
    let found: Vec<_> = comparison.differences.iter().map(|it| (it.place.line, it.standing)).collect();
    assert_eq!(found, expected.map(|standing| (9, standing)).into_iter().collect::<Vec<_>>(), "{version}");
    assert_eq!(comparison.compared, ["TanzuKubernetesCluster/org-acme/wl"]);
}

#[test]
fn it_is_said_which_of_file_and_cluster_is_older() {
    release("v1.17", None);
    release("v1.17.4", None);
    release("v1.17.4+vmware.1-guest.1", None);
    release("v1.16", Some(Standing::Older));
    release("v1.16.7", Some(Standing::Older));
    release("v1.17.4+vmware.1-guest.0", Some(Standing::Older));
    release("v1.18", Some(Standing::Newer));
    release("v1.17.4+vmware.2", Some(Standing::Newer));
    release("latest", Some(Standing::Drifts));
}

#[test]
fn a_field_that_somebody_changed_beside_the_repository_is_named_with_both_values() {
    let mut live = tkc();
    live["spec"]["topology"]["workers"]["count"] = json!(7);
    live["metadata"]["labels"]["team"] = json!("atlas");
    live["metadata"]["labels"]["more"] = json!("is nobody's business");
    let of = "TanzuKubernetesCluster/org-acme/wl";
    assert_eq!(
        told(&[manifest("v1.17")], &[live]),
        [
            format!("clusters/wl.yaml:6 (metadata.labels.team) {of}: phoenix | atlas: drifts"),
            format!("clusters/wl.yaml:14 (spec.topology.workers.count) {of}: 5 | 7: drifts"),
        ]
    );
}

#[test]
fn the_label_of_each_file_of_the_corpus_is_older_than_a_cluster_that_went_on() {
    for (name, trigger, ..) in super::CHANGED.iter().filter(|row| row.1 == super::ReleaseVersion) {
        let comparison = compare(&[corpus(name)], &[cluster("27.2.0")]);
        let found = comparison.differences.iter().filter(|it| it.object == "Cluster/org-acme/wl");
        let standings: Vec<Standing> = found.map(|it| it.standing).collect();
        assert!(standings.contains(&Standing::Older), "{name} {trigger:?}: {comparison:?}");
    }
}

#[test]
fn a_manifest_that_an_overlay_patches_is_compared_by_its_release_alone() {
    let base = format!("{BASE}spec:\n  paused: true\n");
    let files = |overlay: &str| {
        vec![
            file("base/cluster.yaml", &base),
            file("base/kustomization.yaml", "resources: [cluster.yaml]\n"),
            file("live/kustomization.yaml", overlay),
        ]
    };
    let patched = "resources: [../base]\npatches:\n- target: {kind: Cluster, name: wl}\n  patch: |-\n    - op: replace\n      path: /metadata/labels/release.giantswarm.io~1version\n      value: 27.0.0\n";
    let said = told(&files(patched), &[cluster("27.1.0")]);
    assert_eq!(
        said,
        ["live/kustomization.yaml:7 (value of /metadata/labels/release.giantswarm.io~1version) \
            Cluster/org-acme/wl: 27.0.0 | 27.1.0: older"]
    );
    let said = told(&files("resources: [../base]\n"), &[cluster("27.0.0")]);
    assert_eq!(said, ["base/cluster.yaml:8 (spec.paused) Cluster/org-acme/wl: true | -: drifts"]);
}

#[test]
fn what_is_not_there_and_what_is_elsewhere_is_said() {
    let comparison = compare(&[manifest("v1.17")], &[cluster("27.0.0")]);
    assert_eq!(comparison.elsewhere, ["Cluster/org-acme/wl"]);
    let standings: Vec<_> = comparison.differences.iter().map(|it| (it.object.as_str(), it.standing)).collect();
    assert_eq!(standings, [("TanzuKubernetesCluster/org-acme/wl", Standing::Newer)]);
}

#[test]
fn where_files_do_not_say_one_thing_nothing_is_compared_and_the_places_are_named() {
    let comparison = compare(&[corpus("twice.yaml")], &[cluster("27.0.0")]);
    let [(object, why)] = &comparison.unclear[..] else { panic!("{comparison:?}") };
    assert_eq!(object, "Cluster/org-acme/wl");
    assert!(why.to_string().contains("twice.yaml:6"), "{why}");
}

#[test]
fn what_sounds_secret_is_not_shown() {
    let text = format!("{BASE}spec:\n  topology:\n    variables:\n    - {{name: adminPassword, value: hunter2}}\n");
    let mut live = cluster("27.0.0");
    live["spec"] = json!({"topology": {"variables": [{"name": "adminPassword", "value": "hunter3"}]}});
    let comparison = compare(&[file("wl.yaml", &text)], &[live]);
    let [difference] = &comparison.differences[..] else { panic!("{comparison:?}") };
    assert_eq!(difference.place.field, "spec.topology.variables[adminPassword].value");
    assert!(difference.said.starts_with("sha256:") && !format!("{comparison:?}").contains("hunter"), "{comparison:?}");
}
