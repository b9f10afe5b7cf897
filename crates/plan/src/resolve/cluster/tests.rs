use serde_json::json;
use windlass_api::kind::release::ContainerImage;

use super::*;
use crate::resolve::query::tests::{catalogue, release, sample};

fn cluster(version: &str, pools: &[&str]) -> Cluster {
    let pool = |name: &&str| {
        json!({"class": "worker", "name": name, "metadata": {"annotations": {
        "run.tanzu.vmware.com/resolve-os-image": "os-name=ubuntu"}}})
    };
    serde_json::from_value(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": {"name": "wl", "namespace": "dev", "annotations": {"run.tanzu.vmware.com/resolve-tkr": ""}},
        "spec": {"topology": {
            "classRef": {"name": "default"},
            "version": version,
            "controlPlane": {"metadata": {"annotations": {"run.tanzu.vmware.com/resolve-os-image": "os-name=ubuntu"}}},
            "workers": {"machineDeployments": pools.iter().map(pool).collect::<Vec<_>>()},
        }},
    }))
    .unwrap()
}

fn asked(cluster: &Cluster) -> Asked {
    Asked::read(cluster, &ClusterClass::default()).unwrap().unwrap()
}

/// Writes what was resolved into the cluster, as admission does.
fn write(cluster: &mut Cluster, resolved: &Resolved) {
    cluster.metadata.labels.get_or_insert_default().extend([label::RELEASE.entry(&resolved.release)]);
    let topology = cluster.spec.topology.as_mut().unwrap();
    topology.version = resolved.kubernetes.to_string();
    let variable =
        |part: &ResolvedPart| Variable { name: VARIABLE.to_owned(), value: Value::Object(part.data.clone()) };
    topology.variables = vec![variable(&resolved.parts[&Part::ControlPlane])];
    for pool in &mut topology.workers.machine_deployments {
        let part = &resolved.parts[&Part::Pool(pool.name.parse().unwrap())];
        pool.variables = Some(windlass_api::kind::topology::VariableOverrides { overrides: vec![variable(part)] });
    }
}

/// A pool that is added to a cluster, with other images than all others.
fn add_pool(cluster: &mut Cluster, name: &str) {
    let annotations = [(annotation::RESOLVE_OS_IMAGE.name.to_owned(), "os-name=photon".to_owned())].into();
    let metadata = Some(TemplateMetadata { annotations, ..TemplateMetadata::default() });
    let pool = MachineDeploymentTopology { name: name.to_owned(), metadata, ..MachineDeploymentTopology::default() };
    cluster.spec.topology.as_mut().unwrap().workers.machine_deployments.push(pool);
}

/// A cluster that was resolved once.
fn settled(version: &str, pools: &[&str], catalogue: &Catalogue) -> Cluster {
    let mut cluster = cluster(version, pools);
    let resolved = resolve(&asked(&cluster), catalogue).unwrap();
    write(&mut cluster, &resolved);
    cluster
}

fn check(cluster: &Cluster, catalogue: &Catalogue, wanted: &str) {
    let found = resolve(&asked(cluster), catalogue).map_or_else(
        |unresolved| unresolved.to_string(),
        |resolved| {
            let images: Vec<&str> = resolved.parts.values().map(|part| part.os_image.as_str()).collect();
            format!("{} at {}: {}", resolved.release, resolved.kubernetes, images.join(", "))
        },
    );
    assert_eq!(found, wanted);
}

#[test]
fn what_was_typed_becomes_a_release_a_version_and_an_image_for_each_part() {
    let image = "v1.24.10---vmware.1-tkg.1-ubuntu";
    let wanted = format!("v1.24.10---vmware.1-tkg.1 at v1.24.10+vmware.1: {image}, {image}");
    for typed in ["v1.24", "v1.24.10", "v1.24.10+vmware.1", "v1.24.10+vmware.1-tkg.1"] {
        check(&cluster(typed, &["md-0"]), &sample(), &wanted);
    }
}

#[test]
fn resolving_again_changes_nothing_and_a_newer_patch_is_not_taken_unasked() {
    let old = catalogue([release("v1.24.9+vmware.1-tkg.1", &[], &["ubuntu", "photon"])]);
    let cluster = settled("v1.24", &["md-0"], &old);
    for catalogue in [&old, &sample(), &Catalogue::default()] {
        let mut again = cluster.clone();
        let resolved = resolve(&asked(&again), catalogue).unwrap();
        write(&mut again, &resolved);
        assert_eq!(again, cluster);
    }
}

#[test]
fn a_release_that_is_not_offered_any_more_stays_with_the_clusters_that_have_it() {
    let old = catalogue([release("v1.24.9+vmware.1-tkg.1", &[], &["ubuntu"])]);
    let mut cluster = settled("v1.24", &["md-0"], &old);
    let off = catalogue([
        release("v1.24.9+vmware.1-tkg.1", &["deactivated"], &["ubuntu", "photon"]),
        release("v1.24.10+vmware.1-tkg.1", &[], &["ubuntu", "photon"]),
    ]);
    add_pool(&mut cluster, "md-1");
    let image = "v1.24.9---vmware.1-tkg.1-ubuntu";
    let photon = "v1.24.9---vmware.1-tkg.1-photon";
    check(&cluster, &off, &format!("v1.24.9---vmware.1-tkg.1 at v1.24.9+vmware.1: {image}, {image}, {photon}"));
}

#[test]
fn a_pool_that_needs_another_image_is_refused_when_the_release_of_the_control_plane_is_gone() {
    let old = catalogue([release("v1.24.9+vmware.1-tkg.1", &[], &["ubuntu"])]);
    let mut cluster = settled("v1.24", &[], &old);
    add_pool(&mut cluster, "md-0");
    let new = catalogue([release("v1.24.10+vmware.1-tkg.1", &[], &["ubuntu"])]);
    check(
        &cluster,
        &new,
        "no release fits; pool md-0: no release begins with v1.24.9+vmware.1-tkg.1; there are v1.24.10+vmware.1-tkg.1",
    );
}

#[test]
fn old_and_new_data_stand_side_by_side() {
    let (mut old, images) = release("v1.24.9+vmware.1-tkg.1", &[], &["ubuntu"]);
    old.spec.kubernetes.image_repository = Some("registry/tkg".to_owned());
    old.spec.kubernetes.etcd =
        Some(ContainerImage { image_tag: Some("v3.5.6".to_owned()), ..ContainerImage::default() });
    let catalogue = catalogue([(old, images), release("v1.25.7+vmware.2-tkg.1", &[], &["ubuntu"])]);
    let mut cluster = settled("v1.24", &["md-0"], &catalogue);
    cluster.spec.topology.as_mut().unwrap().version = "v1.25".to_owned();
    let resolved = resolve(&asked(&cluster), &catalogue).unwrap();
    for part in resolved.parts.values() {
        assert_eq!(part.data.keys().collect::<Vec<_>>(), ["v1.24.9+vmware.1", "v1.25.7+vmware.2"]);
    }
    assert_eq!(
        resolved.parts[&Part::ControlPlane].data["v1.24.9+vmware.1"],
        json!({
            "kubernetesSpec": {
                "version": "v1.24.9+vmware.1",
                "imageRepository": "registry/tkg",
                "etcd": {"imageRepository": "registry/tkg", "imageTag": "v3.5.6"},
            },
            "osImageRef": {"version": "v1.24.9+vmware.1-tkg.1-ubuntu"},
            "labels": {
                "image-type": "ova",
                "os-arch": "amd64",
                "os-name": "ubuntu",
                "os-type": "linux",
                "os-version": "",
                "ova-version": "v1.24.9---vmware.1-tkg.1-ubuntu",
                "run.tanzu.vmware.com/os-image": "v1.24.9---vmware.1-tkg.1-ubuntu",
                "run.tanzu.vmware.com/tkr": "v1.24.9---vmware.1-tkg.1",
            },
        })
    );
}

#[test]
fn a_changed_selector_is_a_question_anew() {
    let mut cluster = settled("v1.24.9", &[], &sample());
    let metadata = cluster.spec.topology.as_mut().unwrap().control_plane.metadata.as_mut().unwrap();
    metadata.annotations.insert(annotation::RESOLVE_OS_IMAGE.name.to_owned(), "os-name=photon".to_owned());
    check(&cluster, &sample(), "v1.24.9---vmware.1-tkg.1 at v1.24.9+vmware.1: v1.24.9---vmware.1-tkg.1-photon");
}

#[test]
fn nothing_is_resolved_that_nobody_asked_for() {
    let read = |change: fn(&mut Cluster)| {
        let mut cluster = cluster("v1.24", &[]);
        change(&mut cluster);
        Asked::read(&cluster, &ClusterClass::default()).unwrap()
    };
    assert!(read(|_| {}).is_some());
    assert_eq!(read(|cluster| cluster.metadata.annotations = None), None);
    assert_eq!(read(|cluster| cluster.spec.topology = None), None);
}

fn check_malformed(change: fn(&mut Cluster), complaint: &str) {
    let mut cluster = settled("v1.24", &["md-0"], &sample());
    change(&mut cluster);
    let found = Asked::read(&cluster, &ClusterClass::default()).unwrap_err().to_string();
    assert!(found.starts_with(complaint), "{found}");
}

#[test]
fn a_complaint_names_the_cluster_and_the_key() {
    check_malformed(
        |cluster| cluster.spec.topology.as_mut().unwrap().version = "newest".to_owned(),
        "Cluster/wl: spec.topology.version: \"newest\" is not a prefix of a version",
    );
    check_malformed(
        |cluster| {
            cluster.metadata.annotations.get_or_insert_default().values_mut().for_each(|it| *it = "a,".to_owned());
        },
        "Cluster/wl: metadata.annotations[run.tanzu.vmware.com/resolve-tkr]: \"a,\" is no label selector, at character 3",
    );
    check_malformed(
        |cluster| cluster.spec.topology.as_mut().unwrap().variables[0].value = json!({"v1.24.10+vmware.1": {}}),
        "Cluster/wl: spec.topology.variables[TKR_DATA][v1.24.10+vmware.1].labels[run.tanzu.vmware.com/tkr]: it is not there",
    );
    check_malformed(
        |cluster| {
            let pool = &mut cluster.spec.topology.as_mut().unwrap().workers.machine_deployments[0];
            pool.variables.as_mut().unwrap().overrides[0].value = json!("x");
        },
        "Cluster/wl: spec.topology.workers.machineDeployments[md-0].variables[TKR_DATA]: it is not an object",
    );
}
