//! What a Cluster says of all that belongs to it, and what people see of that.

use std::collections::BTreeMap;
use std::pin::pin;

use futures::StreamExt;
use http::Request;
use kube::api::{Patch, PatchParams};
use kube::runtime::watcher::watch_object;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use windlass_api::kind::cluster_api::{Cluster, MachineDeployment, Progress, VersionCount};
use windlass_api::kind::control_plane::KubeadmControlPlane;
use windlass_api::kind::{condition, is_true};

use super::control_plane::{cluster, is_at_rest, version};
use super::stage::{NEW, OLD, Stage, stage};
use super::{is_available, is_rolled_out};

/// A condition of the Cluster: its status, reason and message.
async fn said(stage: &Stage, type_: &str) -> (String, String, String) {
    said_by(&stage.get("c").await, type_)
}

fn said_by(cluster: &Cluster, type_: &str) -> (String, String, String) {
    let status = cluster.status.clone().unwrap_or_default();
    let found = condition(&status.conditions, type_).cloned();
    let found = found.unwrap_or_else(|| panic!("{type_} is not among {:#?}", status.conditions));
    (found.status, found.reason, found.message)
}

#[track_caller]
fn check(cluster: &Cluster, type_: &str, status: &str, reason: &str) {
    let (is, why, message) = said_by(cluster, type_);
    assert_eq!((is.as_str(), why.as_str()), (status, reason), "{type_}: {message}");
}

/// All is as it should be, with that many workers at this version.
fn all_well(count: u32, version: &str) -> Progress {
    Progress {
        desired_replicas: Some(count),
        replicas: Some(count),
        up_to_date_replicas: Some(count),
        ready_replicas: Some(count),
        available_replicas: Some(count),
        versions: vec![VersionCount { version: version.to_owned(), replicas: count }],
        upgrade_plan: Vec::new(),
    }
}

async fn with_everything(stage: &Stage) {
    cluster(stage, 3).await;
    stage.until::<KubeadmControlPlane>("c-cp", is_at_rest).await;
    stage.pool("c", 2, OLD).await;
    stage.until::<MachineDeployment>("c-workers", is_rolled_out).await;
    stage.pass(5).await;
}

async fn change<K>(stage: &Stage, name: &str, spec: Value)
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let api: Api<K> = Api::default_namespaced(stage.client());
    api.patch(name, &PatchParams::default(), &Patch::Merge(json!({"spec": spec}))).await.unwrap();
}

#[test]
fn a_cluster_sums_up_its_control_plane_and_its_pools() {
    stage(|stage| async move {
        with_everything(&stage).await;
        let cluster: Cluster = stage.get("c").await;
        let status = cluster.status.clone().unwrap();
        assert_eq!(status.control_plane, Some(all_well(3, &version(OLD))));
        assert_eq!(status.workers, Some(all_well(2, &version(OLD))));
        for (type_, status, reason) in [
            ("Available", "True", "Available"),
            ("InfrastructureReady", "True", "Ready"),
            ("ControlPlaneInitialized", "True", "Initialized"),
            ("ControlPlaneAvailable", "True", "Available"),
            ("WorkersAvailable", "True", "Available"),
            ("ControlPlaneMachinesReady", "True", "Ready"),
            ("WorkerMachinesReady", "True", "Ready"),
            ("ControlPlaneMachinesUpToDate", "True", "UpToDate"),
            ("WorkerMachinesUpToDate", "True", "UpToDate"),
            ("RollingOut", "False", "NotRollingOut"),
            ("ScalingUp", "False", "NotScalingUp"),
            ("ScalingDown", "False", "NotScalingDown"),
            ("Remediating", "False", "NotRemediating"),
            ("Deleting", "False", "NotDeleting"),
            ("Paused", "False", "NotPaused"),
        ] {
            check(&cluster, type_, status, reason);
        }
        let requests = stage.requests();
        stage.pass(600).await;
        let later: Cluster = stage.get("c").await;
        assert_eq!(cluster.resource_version(), later.resource_version(), "it rests");
        assert_eq!(stage.requests(), requests, "{}", stage.request_table());
    });
}

#[test]
fn a_pool_that_rolls_grows_or_shrinks_is_named_by_its_cluster() {
    stage(|stage| async move {
        with_everything(&stage).await;
        stage.templates("c", NEW).await;
        stage.switch_pool("c", NEW).await;
        let rolling = |cluster: &Cluster| is_true(&cluster.status.as_ref().unwrap().conditions, "RollingOut");
        let cluster: Cluster = stage.until("c", rolling).await;
        let message = "* MachineDeployment c-workers: Rolling out 2 not up-to-date replicas";
        assert_eq!(said_by(&cluster, "RollingOut"), ("True".into(), "RollingOut".into(), message.into()));
        check(&cluster, "WorkerMachinesUpToDate", "False", "NotUpToDate");
        check(&cluster, "ControlPlaneMachinesUpToDate", "True", "UpToDate");
        check(&cluster, "Available", "True", "Available");
        stage.until::<MachineDeployment>("c-workers", is_rolled_out).await;
        stage.pass(5).await;
        let cluster: Cluster = stage.get("c").await;
        assert_eq!(cluster.status.unwrap().workers, Some(all_well(2, &version(NEW))), "no trace of the old version");

        change::<MachineDeployment>(&stage, "c-workers", json!({"replicas": 4})).await;
        stage.pass(5).await;
        let (is, reason, message) = said(&stage, "ScalingUp").await;
        assert_eq!((is.as_str(), reason.as_str()), ("False", "NotScalingUp"), "{message}");
        let unready = "* Machines c-workers-";
        let (is, reason, message) = said(&stage, "WorkerMachinesReady").await;
        assert_eq!((is.as_str(), reason.as_str()), ("False", "NotReady"));
        assert!(message.starts_with(unready), "{message}");
        check(&stage.get("c").await, "WorkersAvailable", "False", "NotAvailable");
        let (is, _, message) = said(&stage, "Available").await;
        assert_eq!(is, "False");
        let why = "* WorkersAvailable:\n  * MachineDeployment c-workers: 2 available replicas, at least 4 required";
        assert!(message.starts_with(why), "{message}");

        stage.until::<MachineDeployment>("c-workers", is_rolled_out).await;
        change::<MachineDeployment>(&stage, "c-workers", json!({"replicas": 0})).await;
        let scaling = |cluster: &Cluster| is_true(&cluster.status.as_ref().unwrap().conditions, "ScalingDown");
        stage.until::<Cluster>("c", scaling).await;
        stage.until::<MachineDeployment>("c-workers", is_rolled_out).await;
        stage.pass(5).await;
        let cluster: Cluster = stage.get("c").await;
        let workers = cluster.status.clone().unwrap().workers.unwrap();
        assert_eq!(workers, Progress { versions: Vec::new(), ..all_well(0, "") });
        check(&cluster, "WorkerMachinesReady", "True", "NoReplicas");
        check(&cluster, "Available", "True", "Available");
    });
}

#[test]
fn machines_that_stand_for_themselves_are_counted_and_nobody_says_whether_they_are_up_to_date() {
    stage(|stage| async move {
        stage.cluster("c").await;
        stage.control_plane_machine("c", 0).await;
        stage.until("c-control-plane-0", is_available).await;
        stage.pass(5).await;
        let cluster: Cluster = stage.get("c").await;
        let counted = cluster.status.clone().unwrap();
        assert_eq!(
            counted.control_plane,
            Some(Progress { up_to_date_replicas: Some(0), ..all_well(1, &version(OLD)) })
        );
        assert_eq!(counted.workers, None);
        check(&cluster, "ControlPlaneMachinesUpToDate", "Unknown", "UpToDateUnknown");
        check(&cluster, "WorkersAvailable", "True", "NoWorkers");
        check(&cluster, "Available", "True", "Available");
    });
}

#[test]
fn a_cluster_is_not_available_before_its_gates_are_open() {
    stage(|stage| async move {
        with_everything(&stage).await;
        change::<Cluster>(&stage, "c", json!({"availabilityGates": [{"conditionType": "PackagesReady"}]})).await;
        stage.pass(5).await;
        let message = "* PackagesReady: Condition not yet reported";
        let expected = ("Unknown".into(), "AvailableUnknown".into(), message.into());
        assert_eq!(said(&stage, "Available").await, expected);
    });
}

#[test]
fn a_cluster_that_goes_says_what_it_waits_for() {
    stage(|stage| async move {
        with_everything(&stage).await;
        let api: Api<Cluster> = Api::default_namespaced(stage.client());
        let mut seen = pin!(watch_object(api, "c"));
        assert!(seen.next().await.unwrap().unwrap().is_some());
        stage.delete::<Cluster>("c").await;
        let mut reasons: Vec<String> = Vec::new();
        while let Some(cluster) = seen.next().await.unwrap().unwrap() {
            let (status, reason, message) = said_by(&cluster, "Deleting");
            if status == "True" && reasons.last() != Some(&reason) {
                let expected = match reason.as_str() {
                    "WaitingForWorkersDeletion" => "* MachineDeployments: c-workers",
                    "WaitingForControlPlaneDeletion" => "* KubeadmControlPlanes: c-cp",
                    "WaitingForInfrastructureDeletion" => "* WCPClusters: c",
                    _ => "",
                };
                assert!(message.starts_with(expected), "{reason}: {message}");
                check(&cluster, "Available", "False", "NotAvailable");
                reasons.push(reason);
            }
        }
        let waits = ["Workers", "ControlPlane", "Infrastructure"].map(|part| format!("WaitingFor{part}Deletion"));
        assert_eq!(reasons, [waits.as_slice(), &["DeletionCompleted".to_owned()]].concat());
    });
}

/// The first row that `kubectl get` shows of a kind, by column.
async fn row(stage: &Stage, path: &str) -> BTreeMap<String, Value> {
    let table = Request::get(path).header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io").body(Vec::new());
    let table: Value = stage.client().request(table.unwrap()).await.unwrap();
    let names = table["columnDefinitions"].as_array().unwrap().iter().map(|column| column["name"].as_str().unwrap());
    let cells = table["rows"][0]["cells"].as_array().unwrap().iter().cloned();
    names.map(str::to_owned).zip(cells).collect()
}

#[test]
fn people_see_the_counts_of_a_cluster_and_the_cluster_of_a_control_plane() {
    stage(|stage| async move {
        with_everything(&stage).await;
        let shown = row(&stage, "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/clusters").await;
        for (column, expected) in [
            ("Available", json!("True")),
            ("CP Desired", json!(3)),
            ("CP Available", json!(3)),
            ("CP Up-to-date", json!(3)),
            ("W Desired", json!(2)),
            ("W Available", json!(2)),
            ("W Up-to-date", json!(2)),
            ("Phase", json!("Provisioned")),
        ] {
            assert_eq!(shown[column], expected, "{column} in {shown:?}");
        }
        let path = "/apis/controlplane.cluster.x-k8s.io/v1beta2/namespaces/default/kubeadmcontrolplanes";
        assert_eq!(row(&stage, path).await["Cluster"], json!("c"));
    });
}

#[test]
fn a_reference_to_another_kind_leads_nowhere() {
    stage(|stage| async move {
        let nowhere = json!({"apiGroup": "infrastructure.cluster.vmware.com", "kind": "NoSuchKind", "name": "c"});
        stage
            .create(json!({
                "apiVersion": "infrastructure.cluster.vmware.com/v1alpha2", "kind": "WCPCluster",
                "metadata": {"name": "c"}, "spec": {},
            }))
            .await;
        stage
            .create(json!({
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "c"},
                "spec": {"infrastructureRef": nowhere},
            }))
            .await;
        stage.pass(600).await;
        let cluster: Cluster = stage.get("c").await;
        let conditions = cluster.status.unwrap().conditions;
        let ready = condition(&conditions, "InfrastructureReady").unwrap();
        assert_eq!((ready.reason.as_str(), ready.message.as_str()), ("DoesNotExist", "NoSuchKind does not exist"));
    });
}

#[test]
fn a_template_of_another_kind_is_no_template() {
    stage(|stage| async move {
        cluster(&stage, 1).await;
        stage.until::<KubeadmControlPlane>("c-cp", is_at_rest).await;
        let nowhere = json!({"spec": {"infrastructureRef": {"kind": "NoSuchTemplate"}}});
        let changed = json!({"spec": {"replicas": 3, "machineTemplate": nowhere}});
        let api: Api<KubeadmControlPlane> = Api::default_namespaced(stage.client());
        api.patch("c-cp", &PatchParams::default(), &Patch::Merge(changed)).await.unwrap();
        stage.pass(600).await;
        let object: KubeadmControlPlane = stage.get("c-cp").await;
        let status = object.status.unwrap();
        assert_eq!(status.replicas, 1, "nothing is made of it");
        let scaling = condition(&status.conditions, "ScalingUp").unwrap();
        assert!(scaling.message.contains("NoSuchTemplate does not exist"), "{scaling:?}");
    });
}
