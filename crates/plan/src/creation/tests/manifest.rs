//! What a file asks for, and why not.

use serde_json::{Value, json};
use windlass_api::name::{ClusterName, Namespace};
use windlass_api::version::VersionPrefix;

use crate::creation::{Given, Manifest, ManifestError};

fn cluster() -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "wl"},
        "spec": {"topology": {"classRef": {"name": "small"}, "version": "v1.24.9+vmware.1"}},
    })
}

fn read(documents: Vec<Value>, name: Option<&str>, release: Option<&str>) -> Result<Manifest, ManifestError> {
    let name: Option<ClusterName> = name.map(|name| name.parse().unwrap());
    let release: Option<VersionPrefix> = release.map(|release| release.parse().unwrap());
    let namespace: Namespace = "default".parse().unwrap();
    Manifest::of(documents, &Given { name: name.as_ref(), namespace: &namespace, release: release.as_ref() })
}

/// The refusal of the cluster with a field that is something else.
#[track_caller]
fn refused(path: &str, value: Value, wanted: &str) {
    let mut object = cluster();
    let (parent, field) = path.rsplit_once('/').unwrap();
    object.pointer_mut(parent).unwrap()[field] = value;
    assert_eq!(read(vec![object], Some("wl"), Some("v1.24")).unwrap_err().to_string(), wanted);
}

#[test]
fn a_refusal_names_the_field_and_the_object() {
    refused("/metadata/name", json!("other"), "the Cluster in it is \"other\", and the name that was given is \"wl\"");
    refused("/metadata/namespace", json!("dev"), "Cluster/wl is for the namespace dev");
    refused("/spec/topology", Value::Null, "the Cluster wl has no spec.topology: only clusters of a class are created");
    refused("/spec/topology/classRef", json!({}), "spec.topology.classRef.name of the Cluster wl is missing");
    refused("/spec/paused", json!(true), "the Cluster wl has spec.paused: true: nobody would make it");
    refused("/metadata/name", Value::Null, "document 1: metadata.name is missing");
    refused(
        "/apiVersion",
        json!("cluster.x-k8s.io/v1alpha4"),
        "apiVersion of the Cluster: \"cluster.x-k8s.io/v1alpha4\" is not accepted; cluster.x-k8s.io/v1beta2 and v1beta1 are",
    );
    refused(
        "/spec/topology/version",
        json!("v1.25.7"),
        "spec.topology.version is v1.25.7, and --tkr asks for v1.24, which is another release",
    );
    refused(
        "/metadata/labels",
        json!({"run.tanzu.vmware.com/tkr": "v1.25.7---vmware.2-tkg.1"}),
        "metadata.labels[run.tanzu.vmware.com/tkr] is v1.25.7---vmware.2-tkg.1, and --tkr asks for v1.24, which is another release",
    );
    let said = |documents| read(documents, None, None).unwrap_err().to_string();
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}});
    assert_eq!(said(vec![pod]), "there is no Cluster in it: it has Pod");
    assert_eq!(said(Vec::new()), "there is no Cluster in it");
    assert_eq!(said(vec![cluster(), cluster()]), "there are 2 Clusters in it, and one is created at a time");
}

#[test]
fn what_a_server_has_written_is_taken_away_and_what_people_wrote_stays() {
    let mut object = cluster();
    object["metadata"] = json!({
        "name": "wl", "uid": "1", "resourceVersion": "7", "labels": {"team": "a"}, "finalizers": ["x"],
        "annotations": {"note": "b", "TKGOperationInfo": "{}", "run.tanzu.vmware.com/tkr-spec": "H4s",
            "kubectl.kubernetes.io/last-applied-configuration": "{}", "tkg.tanzu.vmware.com/paused": "x"},
    });
    object["spec"]["controlPlaneRef"] = json!({"name": "wl-1"});
    object["status"] = json!({"phase": "Provisioned"});
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}, object,
    ]});
    let manifest = read(vec![list], None, Some("v1.24.9---vmware.1-tkg.1-rc.2")).unwrap();
    let wanted = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": "wl", "namespace": "default", "labels": {"team": "a"}, "annotations": {"note": "b"}},
        "spec": {"topology": {"classRef": {"name": "small"}, "version": "v1.24.9+vmware.1-tkg.1-rc.2"}},
    });
    assert_eq!(manifest.object, wanted);
    assert_eq!(manifest.before.len(), 1);
    let kept = read(vec![cluster()], None, Some("v1.24")).unwrap().object;
    assert_eq!(kept["spec"]["topology"]["version"], "v1.24.9+vmware.1", "the one that says more counts");
}

#[test]
fn a_cluster_of_the_former_version_is_told_in_the_one_that_is_written() {
    let former = |more: Value| {
        let mut object = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": {"name": "wl"},
            "spec": {"topology": {
                "class": "small", "classNamespace": "classes", "version": "v1.24",
                "controlPlane": {"replicas": 3, "nodeDrainTimeout": "10m"},
                "workers": {"machineDeployments": [{"class": "w", "name": "md-0", "nodeDeletionTimeout": "5m0s"}]},
            }},
        });
        let pool = &mut object["spec"]["topology"]["workers"]["machineDeployments"][0];
        more.as_object().unwrap().iter().for_each(|(key, value)| pool[key] = value.clone());
        read(vec![object], None, None)
    };
    let topology = former(json!({})).unwrap().object["spec"]["topology"].clone();
    assert_eq!(topology["classRef"], json!({"name": "small", "namespace": "classes"}));
    assert_eq!(topology["controlPlane"], json!({"replicas": 3, "deletion": {"nodeDrainTimeoutSeconds": 600}}));
    let pool = &topology["workers"]["machineDeployments"][0];
    assert_eq!(pool["deletion"]["nodeDeletionTimeoutSeconds"], 300);
    let path = "spec.topology.workers.machineDeployments[0]";
    let said = |more| former(more).unwrap_err().to_string();
    assert_eq!(
        said(json!({"strategy": {"type": "OnDelete"}})),
        format!(
            "{path}.strategy of the Cluster is written otherwise in cluster.x-k8s.io/v1beta2, and is not guessed at"
        )
    );
    assert_eq!(
        said(json!({"nodeDrainTimeout": "soon"})),
        format!("{path}.nodeDrainTimeout of the Cluster cannot be read; a time such as 10m is accepted")
    );
}

#[test]
fn fields_that_nobody_here_knows_are_named_and_sent() {
    let mut object = cluster();
    object["spec"]["clusterNetwork"] = json!({"pods": {"cidrBlocks": ["10.0.0.0/8"]}});
    object["spec"]["topology"]["variables"] = json!([{"name": "a", "value": {"of": {"any": "shape"}}}]);
    let pool = json!({"class": "w", "name": "md-0", "replicas": 2, "deletion": {"nodeDrainTimeoutSeconds": 5}});
    object["spec"]["topology"]["workers"] = json!({"machineDeployments": [pool]});
    let strangers = |object: &Value| read(vec![object.clone()], None, None).unwrap().strangers().unwrap();
    assert_eq!(strangers(&object), Vec::<String>::new());

    object["spec"]["topology"]["controlPlane"] =
        json!({"replcas": 3, "healthCheck": {"enabled": true}, "metadata": null});
    object["spec"]["topology"]["workers"]["machineDeployments"][0]["replica"] = json!(2);
    let wanted = ["controlPlane.healthCheck.enabled", "controlPlane.replcas", "workers.machineDeployments[0].replica"];
    assert_eq!(strangers(&object), wanted.map(|field| format!("spec.topology.{field}")));
    let sent = read(vec![object], None, None).unwrap().object;
    assert_eq!(sent["spec"]["topology"]["controlPlane"]["healthCheck"], json!({"enabled": true}));
}
