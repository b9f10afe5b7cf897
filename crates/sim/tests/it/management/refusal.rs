//! What the webhooks of Cluster API refuse, in their words.

use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource};
use serde_json::{Value, json};
use windlass_api::kind::bootstrap::KubeadmConfigTemplate;
use windlass_api::kind::cluster_api::{Cluster, MachineDeployment, MachineSet};
use windlass_api::kind::control_plane::{KubeadmControlPlane, KubeadmControlPlaneTemplate};
use windlass_api::kind::topology::ClusterClass;
use windlass_api::kind::wcp::WCPMachineTemplate;

use super::stage::{OLD, fresh, stage};
use super::topology::{annotate, made, pool, settled, upgrade};

fn api<K: Resource<DynamicType = ()>>(client: &Client) -> Api<DynamicObject> {
    Api::default_namespaced_with(client.clone(), &ApiResource::erase::<K>(&()))
}

/// What is wrong with a request: the part of the refusal that is about fields. Empty if nothing is.
fn said<T>(result: Result<T, kube::Error>) -> String {
    match result {
        Ok(_) => String::new(),
        Err(kube::Error::Api(status)) => {
            let (webhook, why) = status.message.split_once("\" denied the request: ").unwrap();
            assert!(webhook.starts_with("admission webhook \"validation"), "{webhook}");
            let (whole, fields) = match why.split_once(" is invalid: ") {
                Some((_, fields)) => ((422, "Invalid"), fields),
                None => ((403, "Forbidden"), why),
            };
            assert_eq!((status.code, status.reason.as_str()), whole, "{why}");
            fields.to_owned()
        }
        Err(other) => panic!("{other}"),
    }
}

async fn created<K: Resource<DynamicType = ()>>(client: &Client, name: &str, spec: Value) -> String {
    let kind = ApiResource::erase::<K>(&());
    let object = DynamicObject::new(name, &kind).data(json!({ "spec": spec }));
    said(api::<K>(client).create(&PostParams::default(), &object).await)
}

/// What is said to a change that is only tried.
async fn tried<K: Resource<DynamicType = ()>>(client: &Client, name: &str, change: Value) -> String {
    said(api::<K>(client).patch(name, &PatchParams::default().dry_run(), &Patch::Merge(change)).await)
}

fn control_plane(replicas: u32, version: &str, etcd: &Value) -> Value {
    json!({
        "replicas": replicas, "version": version,
        "machineTemplate": {"spec": {"infrastructureRef": {
            "apiGroup": "infrastructure.cluster.vmware.com", "kind": "WCPMachineTemplate", "name": "a",
        }}},
        "kubeadmConfigSpec": {"clusterConfiguration": {
            "imageRepository": "vmware", "certificatesDir": "/etc/kubernetes/pki", "etcd": etcd,
        }},
    })
}

#[test]
fn a_control_plane_has_an_odd_number_of_machines_and_a_version() {
    let even = "spec.replicas: Forbidden: cannot be an even number when etcd is stacked";
    let external = json!({"external": {"endpoints": ["https://192.0.2.9:2379"]}});
    stage(|stage| async move {
        let client = stage.client();
        for (name, replicas, version, etcd, expected) in [
            ("three", 3, "v1.35.2+vmware.1", Value::Null, ""),
            ("two", 2, "v1.35.2", Value::Null, even),
            ("two-elsewhere", 2, "v1.35.2", external, ""),
            (
                "none",
                0,
                "v1.35.2",
                Value::Null,
                &format!("[spec.replicas: Forbidden: cannot be less than or equal to 0, {even}]"),
            ),
            (
                "latest",
                1,
                "latest",
                Value::Null,
                r#"[spec.version: Invalid value: "latest": must start with v, spec.version: Invalid value: "latest": must be a valid semantic version]"#,
            ),
        ] {
            let spec = control_plane(replicas, version, &etcd);
            assert_eq!(created::<KubeadmControlPlane>(&client, name, spec).await, expected, "{name}");
        }
        let scaled = |name: &'static str, replicas: u32| {
            let (api, patch) = (api::<KubeadmControlPlane>(&client), json!({"spec": {"replicas": replicas}}));
            async move { said(api.patch_scale(name, &PatchParams::default(), &Patch::Merge(patch)).await) }
        };
        assert_eq!(scaled("three", 4).await, "replicas cannot be an even number when etcd is stacked");
        assert_eq!(scaled("three", 0).await, "replicas should be greater than zero");
        assert_eq!(scaled("three", 5).await, "");
        assert_eq!(scaled("two-elsewhere", 4).await, "");
    });
}

#[test]
fn a_control_plane_goes_one_minor_at_a_time_and_keeps_what_cannot_be_changed() {
    let configuration = |change: Value| json!({"spec": {"kubeadmConfigSpec": {"clusterConfiguration": change}}});
    let version = |version: &str| json!({"spec": {"version": version}});
    let fixed = "spec.kubeadmConfigSpec.clusterConfiguration.certificatesDir: Forbidden: cannot be modified";
    stage(|stage| async move {
        let client = stage.client();
        let spec = control_plane(3, "v1.35.2+vmware.1", &json!({"local": {}}));
        assert_eq!(created::<KubeadmControlPlane>(&client, "c", spec).await, "");
        for (change, expected) in [
            (version("v1.36.1+vmware.1"), ""),
            (version("v1.35.9"), ""),
            (
                version("v1.37.0"),
                "spec.version: Forbidden: cannot update Kubernetes version from v1.35.2+vmware.1 to v1.37.0",
            ),
            // The original has a ceiling and no floor.
            (version("v1.33.0"), ""),
            (version("v1.36"), r#"spec.version: Invalid value: "v1.36": must be a valid semantic version"#),
            (version("1.36.0"), r#"spec.version: Invalid value: "1.36.0": must start with v"#),
            (json!({"spec": {"replicas": 5, "rollout": {"after": "2026-01-01T00:00:00Z"}}}), ""),
            (json!({"spec": {"machineTemplate": {"spec": {"infrastructureRef": {"name": "b"}}}}}), ""),
            (json!({"metadata": {"labels": {"a": "b"}}}), ""),
            (configuration(json!({"imageRepository": "elsewhere", "dns": {"imageTag": "v1.12.0"}})), ""),
            (configuration(json!({"certificatesDir": "/pki"})), fixed),
            (configuration(json!({"certificatesDir": null})), fixed),
            (
                configuration(json!({"etcd": {"local": null, "external": {"endpoints": ["https://192.0.2.9:2379"]}}})),
                "spec.kubeadmConfigSpec.clusterConfiguration.etcd.external: Forbidden: cannot change between external and local etcd",
            ),
        ] {
            assert_eq!(tried::<KubeadmControlPlane>(&client, "c", change.clone()).await, expected, "{change}");
        }
        let fork = stage.world.fork(stage.world.settings().clone());
        assert!(tried::<KubeadmControlPlane>(&fork.client(), "c", version("v1.37.0")).await.contains("v1.37.0"));
    });
}

#[test]
fn a_pool_keeps_its_cluster_and_selects_its_own_machines() {
    stage(|stage| async move {
        let client = stage.client();
        stage.pool("c", 1, OLD).await;
        let selector = r#""a=b,cluster.x-k8s.io/cluster-name=c,cluster.x-k8s.io/deployment-name=c-workers""#;
        for (change, expected) in [
            (json!({"spec": {"replicas": 2}}), String::new()),
            (json!({"spec": {"clusterName": "d"}}), "spec.clusterName: Forbidden: field is immutable".to_owned()),
            (
                json!({"spec": {"selector": {"matchLabels": {"a": "b"}}}}),
                format!("spec.template.metadata.labels: Forbidden: must match spec.selector {selector}"),
            ),
            (
                json!({"spec": {"template": {"spec": {"version": "v2"}}}}),
                r#"spec.template.spec.version: Invalid value: "v2": must be a valid semantic version"#.to_owned(),
            ),
        ] {
            assert_eq!(tried::<MachineDeployment>(&client, "c-workers", change.clone()).await, expected, "{change}");
        }
        let set = json!({
            "clusterName": "c", "replicas": 0, "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "c"}}, "spec": {"clusterName": "c"}},
        });
        assert_eq!(
            created::<MachineSet>(&client, "s", set).await,
            r#"spec.template.metadata.labels: Invalid value: {"a":"c","cluster.x-k8s.io/cluster-name":"c"}: must match spec.selector "a=b,cluster.x-k8s.io/cluster-name=c""#
        );
    });
}

#[test]
fn templates_of_machines_and_control_planes_are_not_changed() {
    stage(|stage| async move {
        let client = stage.client();
        stage.templates("c", OLD).await;
        let name = format!("c-workers-{}", fresh(OLD));
        let other = json!({"spec": {"template": {"spec": {"className": "best-effort-large"}}}});
        let why = tried::<WCPMachineTemplate>(&client, &name, other.clone()).await;
        assert!(
            why.starts_with("spec.template.spec: Invalid value: {\"className\":\"best-effort-large\"")
                && why.ends_with(
                    "WCPMachineTemplate spec.template.spec field is immutable. Please create a new resource instead."
                ),
            "{why}"
        );
        let mut topology_tries = other.clone();
        topology_tries["metadata"] = json!({"annotations": {"topology.cluster.x-k8s.io/dry-run": ""}});
        let labelled = json!({"metadata": {"labels": {"a": "b"}}});
        for change in [topology_tries.clone(), labelled] {
            assert_eq!(tried::<WCPMachineTemplate>(&client, &name, change).await, "");
        }
        let really = api::<WCPMachineTemplate>(&client);
        let really = really.patch(&name, &PatchParams::default(), &Patch::Merge(topology_tries)).await;
        assert!(said(really).contains("immutable"), "only who tries is let through");

        let mounts = json!({"spec": {"template": {"spec": {"format": "ignition"}}}});
        assert_eq!(tried::<KubeadmConfigTemplate>(&client, &name, mounts).await, "");
        let spec = json!({"template": {"spec": {"kubeadmConfigSpec": {"format": "cloud-config"}}}});
        assert_eq!(created::<KubeadmControlPlaneTemplate>(&client, "t", spec).await, "");
        let other = json!({"spec": {"template": {"spec": {"kubeadmConfigSpec": {"format": "ignition"}}}}});
        assert!(tried::<KubeadmControlPlaneTemplate>(&client, "t", other).await.contains("immutable"));
    });
}

#[test]
fn the_version_of_a_topology_goes_up_from_where_all_its_parts_are() {
    const BYPASS: &str = "unsafe.topology.cluster.x-k8s.io/disable-update-version-check";
    const HOLD: &str = "before-upgrade.hook.cluster.cluster.x-k8s.io/windlass";
    let version = |version: &str| json!({"spec": {"topology": {"version": version}}});
    let invalid = |version: &str, why: &str| format!("spec.topology.version: Invalid value: {version:?}: {why}");
    stage(|stage| async move {
        let client = stage.client();
        made(&stage, 1, json!([pool("a", 1)])).await;
        let [deployment] = stage.list::<MachineDeployment>().await.try_into().unwrap();
        for (change, expected) in [
            (version("v1.16.7+vmware.1"), String::new()),
            (version("v1.17.4+vmware.1"), String::new()),
            (
                version("v1.15.5+vmware.1"),
                invalid(
                    "v1.15.5+vmware.1",
                    r#"version cannot be decreased from "1.16.7+vmware.1" to "1.15.5+vmware.1""#,
                ),
            ),
            (
                version("v1.18.0"),
                invalid("v1.18.0", r#"version cannot be increased from "1.16.7+vmware.1" to "1.18.0""#),
            ),
            (version("v1.17"), invalid("v1.17", "version must be a valid semantic version")),
            (
                json!({"spec": {"topology": null}}),
                "spec.topology: Forbidden: cannot be removed from an existing Cluster".to_owned(),
            ),
            (
                json!({"spec": {"controlPlaneRef": null}}),
                "spec.controlPlaneRef: Forbidden: cannot be removed".to_owned(),
            ),
        ] {
            assert_eq!(tried::<Cluster>(&client, "c", change.clone()).await, expected, "{change}");
        }

        annotate(&stage, json!({ HOLD: "" })).await;
        upgrade(&stage).await;
        stage.pass(60).await;
        let next = "v1.18.0";
        let waits = format!(
            "version cannot be changed: [Cluster.spec.topology.version 1.17.4+vmware.1 was not propagated to control plane yet \
             (control plane version 1.16.7+vmware.1), there are still MachineDeployments completing a previous upgrade: \
             [{deployment}]]"
        );
        assert_eq!(tried::<Cluster>(&client, "c", version(next)).await, invalid(next, &waits));
        let mut anyway = version(next);
        anyway["metadata"] = json!({"annotations": {BYPASS: ""}});
        assert_eq!(tried::<Cluster>(&client, "c", anyway).await, "");

        annotate(&stage, json!({ HOLD: null })).await;
        stage.pass(60).await;
        let blocks = r#"version cannot be changed when the "AfterClusterUpgrade" hook is still blocking"#;
        assert_eq!(tried::<Cluster>(&client, "c", version(next)).await, invalid(next, blocks));
        settled(&stage).await;
        assert_eq!(tried::<Cluster>(&client, "c", version(next)).await, "");

        let far = "v1.19.3";
        assert!(tried::<Cluster>(&client, "c", version(far)).await.contains("cannot be increased"));
        let offered = json!({"spec": {"kubernetesVersions": ["v1.17.4+vmware.1", "v1.18.0", far]}});
        let class = api::<ClusterClass>(&client);
        class.patch("plain", &PatchParams::default(), &Patch::Merge(offered)).await.unwrap();
        assert_eq!(tried::<Cluster>(&client, "c", version(far)).await, "");
    });
}
