//! Clusters of a class: made, changed and upgraded by `spec.topology` alone.

use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use windlass_api::kind::bootstrap::KubeadmConfigTemplate;
use windlass_api::kind::cluster_api::{Cluster, Machine, MachineDeployment, MachineSet};
use windlass_api::kind::control_plane::KubeadmControlPlane;
use windlass_api::kind::topology::ClusterClass;
use windlass_api::kind::wcp::{WCPCluster, WCPMachine, WCPMachineTemplate};
use windlass_api::kind::{Condition, condition};

use super::stage::{Stage, image, machine_spec, stage};
use super::trace::{Run, check_role, recorded};
use super::{is_available, is_rolled_out};

const OLD: &str = "v1.16.7";
const NEW: &str = "v1.17.4";

fn version(version: &str) -> String {
    format!("{version}+vmware.1")
}

fn reference(api_version: &str, kind: &str, name: &str) -> Value {
    json!({"templateRef": {"apiVersion": api_version, "kind": kind, "name": name}})
}

/// A class whose machines are of the image, the class and with the label that a cluster says.
pub(super) async fn class(stage: &Stage, patches: Value) {
    let infrastructure = "infrastructure.cluster.vmware.com/v1alpha2";
    let bootstrap = "bootstrap.cluster.x-k8s.io/v1beta2";
    let control_plane = "controlplane.cluster.x-k8s.io/v1beta2";
    let machine = json!({"template": {"spec": machine_spec(OLD)}});
    for (api_version, kind, name, spec) in [
        (infrastructure, "WCPClusterTemplate", "plain", json!({"template": {"spec": {}}})),
        (
            control_plane,
            "KubeadmControlPlaneTemplate",
            "plain",
            json!({"template": {"spec": {
                "kubeadmConfigSpec": {"clusterConfiguration": {"imageRepository": "vmware"}},
            }}}),
        ),
        (infrastructure, "WCPMachineTemplate", "plain-control-plane", machine.clone()),
        (infrastructure, "WCPMachineTemplate", "plain-workers", machine),
        (
            bootstrap,
            "KubeadmConfigTemplate",
            "plain-workers",
            json!({"template": {"spec": {"joinConfiguration": {"nodeRegistration": {}}}}}),
        ),
    ] {
        stage.create(json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec})).await;
    }
    stage
        .create(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "ClusterClass", "metadata": {"name": "plain"},
            "spec": {
                "infrastructure": reference(infrastructure, "WCPClusterTemplate", "plain"),
                "controlPlane": {
                    "templateRef": reference(control_plane, "KubeadmControlPlaneTemplate", "plain")["templateRef"],
                    "machineInfrastructure": reference(infrastructure, "WCPMachineTemplate", "plain-control-plane"),
                },
                "workers": {"machineDeployments": [{
                    "class": "worker",
                    "bootstrap": reference(bootstrap, "KubeadmConfigTemplate", "plain-workers"),
                    "infrastructure": reference(infrastructure, "WCPMachineTemplate", "plain-workers"),
                }]},
                "variables": [
                    {"name": "image", "required": true, "schema": {"openAPIV3Schema": {"type": "string"}}},
                    {"name": "machineClass", "schema": {"openAPIV3Schema": {"type": "string", "default": "best-effort-small"}}},
                ],
                "patches": patches,
            },
        }))
        .await;
}

/// The image and the class of machines, by variables.
pub(super) fn patches() -> Value {
    let selector = json!({
        "apiVersion": "infrastructure.cluster.vmware.com/v1alpha2", "kind": "WCPMachineTemplate",
        "matchResources": {"controlPlane": true, "machineDeploymentClass": {"names": ["*"]}},
    });
    json!([{"name": "machines", "definitions": [{"selector": selector, "jsonPatches": [
        {"op": "replace", "path": "/spec/template/spec/imageName", "valueFrom": {"variable": "image"}},
        {"op": "replace", "path": "/spec/template/spec/className", "valueFrom": {"variable": "machineClass"}},
    ]}]}])
}

pub(super) fn pool(name: &str, replicas: u32) -> Value {
    json!({"class": "worker", "name": name, "replicas": replicas})
}

pub(super) async fn cluster(stage: &Stage, control_plane: u32, pools: Value) {
    stage
        .create(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "c"},
            "spec": {
                "clusterNetwork": {"services": {"cidrBlocks": ["198.51.100.0/12"]}, "pods": {"cidrBlocks": ["192.0.2.0/16"]}},
                "topology": {
                    "classRef": {"name": "plain"}, "version": version(OLD),
                    "controlPlane": {"replicas": control_plane},
                    "workers": {"machineDeployments": pools},
                    "variables": [{"name": "image", "value": image(OLD)}],
                },
            },
        }))
        .await;
}

async fn change(stage: &Stage, topology: Value) -> Cluster {
    let api: Api<Cluster> = Api::default_namespaced(stage.client());
    let patch = Patch::Merge(json!({"spec": {"topology": topology}}));
    api.patch("c", &PatchParams::default(), &patch).await.unwrap()
}

pub(super) async fn annotate(stage: &Stage, annotations: Value) {
    let api: Api<Cluster> = Api::default_namespaced(stage.client());
    let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
    api.patch("c", &PatchParams::default(), &patch).await.unwrap();
}

pub(super) async fn upgrade(stage: &Stage) {
    change(stage, json!({"version": version(NEW), "variables": [{"name": "image", "value": image(NEW)}]})).await;
}

fn reconciled(cluster: &Cluster) -> Option<&Condition> {
    condition(&cluster.status.as_ref()?.conditions, "TopologyReconciled")
}

pub(super) fn said(cluster: &Cluster) -> (&str, &str, &str) {
    let condition = reconciled(cluster).unwrap();
    (condition.status.as_str(), condition.reason.as_str(), condition.message.as_str())
}

async fn deployment(stage: &Stage, pool: &str) -> MachineDeployment {
    let labelled = ListParams::default().labels(&format!("topology.cluster.x-k8s.io/deployment-name={pool}"));
    let all = Api::<MachineDeployment>::default_namespaced(stage.client()).list(&labelled).await.unwrap().items;
    let [deployment] = all.try_into().unwrap();
    deployment
}

async fn control_plane(stage: &Stage) -> KubeadmControlPlane {
    let all =
        Api::<KubeadmControlPlane>::default_namespaced(stage.client()).list(&ListParams::default()).await.unwrap();
    let [control_plane] = all.items.try_into().unwrap();
    control_plane
}

/// The cluster is what it should be, and all of its machines can be relied on.
pub(super) async fn settled(stage: &Stage) {
    for _ in 0..400 {
        stage.pass(30).await;
        let cluster: Cluster = stage.get("c").await;
        let done = reconciled(&cluster).is_some_and(|condition| condition.status == "True");
        let deployments = Api::<MachineDeployment>::default_namespaced(stage.client())
            .list(&ListParams::default())
            .await
            .unwrap()
            .items;
        let planes =
            Api::<KubeadmControlPlane>::default_namespaced(stage.client()).list(&ListParams::default()).await.unwrap();
        let at_rest = planes.items.iter().all(|plane| {
            let status = plane.status.clone().unwrap_or_default();
            let wanted = plane.spec.replicas.unwrap_or(1);
            [status.replicas, status.up_to_date_replicas, status.available_replicas] == [wanted; 3]
        });
        if done && at_rest && deployments.iter().all(is_rolled_out) {
            return;
        }
    }
    let cluster: Cluster = stage.get("c").await;
    panic!("the cluster never came to rest: {:#?} {:#?}", cluster.status, stage.list::<Machine>().await);
}

pub(super) async fn made(stage: &Stage, control_plane: u32, pools: Value) {
    class(stage, patches()).await;
    cluster(stage, control_plane, pools).await;
    settled(stage).await;
}

#[test]
fn a_cluster_of_a_class_is_made_of_what_the_class_says() {
    stage(|stage| async move {
        made(&stage, 3, json!([pool("a", 2)])).await;
        let class: ClusterClass = stage.get("plain").await;
        assert_eq!(class.status.as_ref().unwrap().observed_generation, class.metadata.generation);

        let cluster: Cluster = stage.get("c").await;
        let infrastructure: WCPCluster = stage.get(&cluster.spec.infrastructure_ref.clone().unwrap().name).await;
        assert!(infrastructure.name_any().starts_with("c-") && infrastructure.name_any().len() == 7);
        let plane = control_plane(&stage).await;
        assert_eq!(cluster.spec.control_plane_ref.clone().unwrap().name, plane.name_any());
        assert_eq!((plane.spec.replicas, plane.spec.version.as_str()), (Some(3), "v1.16.7+vmware.1"));
        for labels in [infrastructure.labels(), plane.labels()] {
            assert_eq!(labels["topology.cluster.x-k8s.io/owned"], "");
            assert_eq!(labels["cluster.x-k8s.io/cluster-name"], "c");
        }
        assert_eq!(plane.annotations()["cluster.x-k8s.io/cloned-from-name"], "plain");

        let pool = deployment(&stage, "a").await;
        assert!(pool.name_any().starts_with("c-a-"));
        let template: WCPMachineTemplate = stage.get(&pool.spec.template.spec.infrastructure_ref.name).await;
        assert_eq!(template.spec.template.spec.image_name, image(OLD));
        assert_eq!(
            template.annotations()["cluster.x-k8s.io/cloned-from-groupkind"],
            "WCPMachineTemplate.infrastructure.cluster.vmware.com"
        );
        assert_eq!(stage.list::<Machine>().await.len(), 5);
        assert_eq!(stage.nodes("c").await.len(), 5);
        let requests = stage.requests();
        stage.pass(3600).await;
        assert_eq!(
            stage.requests(),
            requests,
            "an hour later nothing has been asked or changed\n{}",
            stage.request_table()
        );
    });
}

#[test]
fn the_example_that_ships_becomes_a_cluster_with_ready_nodes() {
    stage(|stage| async move {
        let example = include_str!("../../../../../deploy/examples/cluster-class.yaml");
        for object in serde_saphyr::from_multiple::<Value>(example).unwrap() {
            stage.create(object).await;
        }
        let all_are_there = |cluster: &Cluster| {
            let progress = cluster.status.as_ref().and_then(|status| status.control_plane.as_ref());
            progress.is_some_and(|progress| progress.available_replicas == Some(1))
        };
        stage.until::<Cluster>("classy", all_are_there).await;
        stage.pass(600).await;
        let machines = Api::<Machine>::default_namespaced(stage.client()).list(&ListParams::default()).await.unwrap();
        assert_eq!(machines.items.len(), 3);
        assert!(machines.items.iter().all(is_available));
        assert_eq!(stage.nodes("classy").await.len(), 3);
    });
}

#[test]
fn an_upgrade_happens_in_the_order_that_was_recorded_from_cluster_api() {
    for (name, replicas, surge, unavailable) in [
        ("surge 1, unavailable 0, 3+4", 4, 1, 0),
        ("surge 2, unavailable 0, 3+5", 5, 2, 0),
        ("surge 0, unavailable 1, 3+5", 5, 0, 1),
    ] {
        stage(|stage| async move {
            let mut pool = pool("a", replicas);
            pool["rollout"] = json!({"strategy": {
                "type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable},
            }});
            made(&stage, 3, json!([pool])).await;
            let over = async {
                upgrade(&stage).await;
                settled(&stage).await;
            };
            let run = Run::until(&stage, over).await;
            let trace = recorded(name);
            check_role(&run, &trace, "cp", 1);
            check_role(&run, &trace, "worker", surge);
            let count = |what: &str| run.steps.iter().filter(|step| step.what == what).count();
            assert_eq!((count("create"), count("gone")), (trace.created, trace.gone));
            let first_worker = run.steps.iter().position(|step| step.role == "worker");
            let last_cp = run.steps.iter().rposition(|step| step.role == "cp");
            assert!(last_cp < first_worker, "workers wait for the whole control plane: {:?}", run.steps);
        });
    }
}

#[test]
fn pools_follow_the_control_plane_one_by_one_and_the_condition_tells_it() {
    stage(|stage| async move {
        made(&stage, 1, json!([pool("a", 1), pool("b", 1)])).await;
        let (a, b) = (deployment(&stage, "a").await.name_any(), deployment(&stage, "b").await.name_any());
        upgrade(&stage).await;
        let begun: Cluster = stage.until("c", |cluster: &Cluster| said(cluster).0 == "False").await;
        assert_eq!(
            said(&begun),
            (
                "False",
                "ClusterUpgrading",
                format!(
                    "Cluster is upgrading to v1.17.4+vmware.1\n  * KubeadmControlPlane upgrading to version v1.17.4+vmware.1\n  \
                     * MachineDeployments {a}, {b} pending upgrade to version v1.17.4+vmware.1"
                )
                .as_str()
            )
        );
        assert_eq!(
            begun.annotations()["runtime.cluster.x-k8s.io/pending-hooks"],
            "AfterClusterUpgrade,AfterControlPlaneUpgrade,AfterWorkersUpgrade,BeforeWorkersUpgrade"
        );
        assert_eq!(begun.annotations()["topology.internal.cluster.x-k8s.io/upgrade-step"], "v1.17.4+vmware.1");
        // What is asked of a pool while it waits is kept for later.
        change(&stage, json!({"workers": {"machineDeployments": [pool("a", 1), pool("b", 2)]}})).await;
        let one: Cluster =
            stage.until("c", |cluster: &Cluster| said(cluster).2.contains(&format!("{a} upgrading"))).await;
        assert!(said(&one).2.ends_with(&format!("MachineDeployment {b} pending upgrade to version v1.17.4+vmware.1")));
        assert_eq!(deployment(&stage, "b").await.spec.replicas, Some(1));
        settled(&stage).await;
        assert_eq!(deployment(&stage, "b").await.spec.replicas, Some(2));
        let over: Cluster = stage.get("c").await;
        assert!(!over.annotations().contains_key("runtime.cluster.x-k8s.io/pending-hooks"));
        stage.pass(600).await;
        assert_eq!(stage.list::<KubeadmConfigTemplate>().await.len(), 3, "one of the class, and one of each pool");
    });
}

#[test]
fn a_pool_that_somebody_holds_back_keeps_its_version_and_the_reason_says_so() {
    stage(|stage| async move {
        made(&stage, 1, json!([pool("a", 1), pool("b", 1)])).await;
        let mut held = pool("a", 1);
        held["metadata"] = json!({"annotations": {"topology.cluster.x-k8s.io/defer-upgrade": ""}});
        change(&stage, json!({"workers": {"machineDeployments": [held, pool("b", 1)]}})).await;
        upgrade(&stage).await;
        let waits: Cluster =
            stage.until("c", |cluster: &Cluster| said(cluster).1 == "MachineDeploymentsUpgradeDeferred").await;
        assert!(said(&waits).2.ends_with("deferred using defer-upgrade or hold-upgrade-sequence annotations"));
        let version = |deployment: MachineDeployment| deployment.spec.template.spec.version.unwrap();
        assert_eq!(version(deployment(&stage, "a").await), "v1.16.7+vmware.1");
        assert_eq!(version(deployment(&stage, "b").await), "v1.17.4+vmware.1");
        change(&stage, json!({"workers": {"machineDeployments": [pool("a", 1), pool("b", 1)]}})).await;
        settled(&stage).await;
        assert_eq!(version(deployment(&stage, "a").await), "v1.17.4+vmware.1");
    });
}

#[test]
fn an_upgrade_that_somebody_holds_does_not_begin() {
    stage(|stage| async move {
        made(&stage, 1, json!([pool("a", 1)])).await;
        let hold = "before-upgrade.hook.cluster.cluster.x-k8s.io/windlass";
        annotate(&stage, json!({ hold: "" })).await;
        upgrade(&stage).await;
        stage.pass(1800).await;
        let cluster: Cluster = stage.get("c").await;
        assert!(
            said(&cluster).2.contains(&format!(
                "Following hooks are blocking upgrade: BeforeClusterUpgrade: annotation {hold} is set"
            )),
            "{:?}",
            said(&cluster)
        );
        assert_eq!(control_plane(&stage).await.spec.version, "v1.16.7+vmware.1");
        annotate(&stage, json!({ hold: null })).await;
        settled(&stage).await;
        assert_eq!(control_plane(&stage).await.spec.version, "v1.17.4+vmware.1");
    });
}

#[test]
fn a_variable_of_one_pool_rolls_that_pool_by_other_templates() {
    stage(|stage| async move {
        made(&stage, 1, json!([pool("a", 1), pool("b", 1)])).await;
        let before = (deployment(&stage, "a").await, deployment(&stage, "b").await);
        let mut larger = pool("b", 1);
        larger["variables"] = json!({"overrides": [{"name": "machineClass", "value": "best-effort-large"}]});
        change(&stage, json!({"workers": {"machineDeployments": [pool("a", 1), larger]}})).await;
        stage.pass(1800).await;
        settled(&stage).await;
        let after = (deployment(&stage, "a").await, deployment(&stage, "b").await);
        let template = |deployment: &MachineDeployment| deployment.spec.template.spec.infrastructure_ref.name.clone();
        assert_eq!(template(&before.0), template(&after.0));
        assert_ne!(template(&before.1), template(&after.1));
        assert_eq!(before.1.spec.template.spec.bootstrap, after.1.spec.template.spec.bootstrap, "only what differs");
        let machines: Api<WCPMachine> = Api::default_namespaced(stage.client());
        let of_pool = ListParams::default().labels("topology.cluster.x-k8s.io/deployment-name=b");
        let [machine] = machines.list(&of_pool).await.unwrap().items.try_into().unwrap();
        assert_eq!(machine.spec.class_name, "best-effort-large");
        let left: Vec<String> = stage.list::<WCPMachineTemplate>().await;
        assert!(!left.contains(&template(&before.1)), "nobody needs it any more: {left:?}");
    });
}

#[test]
fn a_class_that_needs_go_templates_is_refused_by_the_name_of_its_patch() {
    stage(|stage| async move {
        let mut with_template = patches();
        with_template[0]["definitions"][0]["jsonPatches"][0]["valueFrom"] =
            json!({"template": "photon-{{ .builtin.cluster.name }}"});
        class(&stage, with_template).await;
        cluster(&stage, 1, json!([pool("a", 1)])).await;
        let refused: Cluster = stage.until("c", |cluster: &Cluster| reconciled(cluster).is_some()).await;
        let (status, reason, message) = said(&refused);
        assert_eq!((status, reason), ("False", "ReconcileFailed"));
        assert!(
            message.starts_with(
                "patch \"machines\": valueFrom.template of /spec/template/spec/imageName is a Go template"
            ),
            "{message}"
        );
        assert_eq!(stage.list::<Machine>().await, Vec::<String>::new());
        assert_eq!(
            stage.list::<WCPCluster>().await,
            Vec::<String>::new(),
            "nothing is made of what cannot be worked out"
        );
    });
}

#[test]
fn a_pool_that_the_topology_no_longer_has_goes_and_a_new_one_comes() {
    stage(|stage| async move {
        made(&stage, 1, json!([pool("a", 1), pool("b", 1)])).await;
        change(&stage, json!({"workers": {"machineDeployments": [pool("a", 1), pool("d", 1)]}})).await;
        stage.pass(1800).await;
        settled(&stage).await;
        let mut pools: Vec<String> = Api::<MachineDeployment>::default_namespaced(stage.client())
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .iter()
            .map(|deployment| deployment.labels()["topology.cluster.x-k8s.io/deployment-name"].clone())
            .collect();
        pools.sort();
        assert_eq!(pools, ["a", "d"]);
        assert_eq!(stage.list::<MachineSet>().await.len(), 2);
    });
}

#[test]
fn workers_wait_for_a_control_plane_and_their_set_says_for_which() {
    stage(|stage| async move {
        class(&stage, patches()).await;
        cluster(&stage, 1, json!([pool("a", 1)])).await;
        // The load balancer comes first, and takes longer.
        stage.pass(5).await;
        let plane = control_plane(&stage).await.name_any();
        let [set] = Api::<MachineSet>::default_namespaced(stage.client())
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .try_into()
            .unwrap();
        let scaling = condition(&set.status.as_ref().unwrap().conditions, "ScalingUp").unwrap();
        assert_eq!(
            scaling.message,
            format!(
                "Scaling up from 0 to 1 replicas is blocked because:\n\
                 * KubeadmControlPlane default/{plane} is provisioning (\"ControlPlaneIsStable\" preflight check failed)"
            )
        );
        assert!(!stage.list::<Machine>().await.iter().any(|name| name.contains("-a-")));
        settled(&stage).await;
        let machines = Api::<Machine>::default_namespaced(stage.client()).list(&ListParams::default()).await.unwrap();
        assert!(machines.items.iter().all(is_available));
    });
}

#[test]
fn a_cluster_of_a_class_is_deleted_and_only_the_class_is_left() {
    stage(|stage| async move {
        made(&stage, 1, json!([pool("a", 1)])).await;
        stage.delete::<Cluster>("c").await;
        stage.pass(900).await;
        let left = [
            stage.list::<Cluster>().await,
            stage.list::<WCPCluster>().await,
            stage.list::<KubeadmControlPlane>().await,
            stage.list::<MachineDeployment>().await,
            stage.list::<MachineSet>().await,
            stage.list::<Machine>().await,
        ];
        assert_eq!(left.concat(), Vec::<String>::new());
        assert_eq!(stage.list::<WCPMachineTemplate>().await, ["plain-control-plane", "plain-workers"]);
    });
}
