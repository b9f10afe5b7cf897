//! Clusters of plain Cluster API objects, as `deploy/examples/cluster-api.yaml` has them: made, and rolled to the next minor.

use std::time::Duration;

use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use windlass_api::kind::cluster_api::MachineDeployment;
use windlass_api::kind::control_plane::KubeadmControlPlane;

/// One cluster, of which all are copies with other names.
const EXAMPLE: &str = include_str!("../../../../deploy/examples/cluster-api.yaml");
/// What the example has.
pub const FROM: &str = "v1.35.2";
/// What it is rolled to.
pub const TO: &str = "v1.36.1";
/// How long anything may take, in virtual time.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);

/// How many machines a cluster has.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    pub control_plane: u32,
    pub workers: u32,
}

/// Asks for a cluster.
pub async fn create(client: &Client, cluster: &str, size: Size) {
    for text in EXAMPLE.split("\n---\n") {
        let text = text.replace("replicas: 3", &format!("replicas: {}", size.control_plane));
        let text = text.replace("replicas: 2", &format!("replicas: {}", size.workers));
        put(client, &text.replace("plain", cluster)).await;
    }
}

/// Raises a control plane. Templates are never changed: there are new ones, and those who are made from them are told.
pub async fn raise_control_plane(client: &Client, cluster: &str) {
    for text in EXAMPLE.split("\n---\n").filter(|text| text.contains("Template\n")) {
        put(client, &text.replace("plain", cluster).replace(FROM, TO).replace("-1}", "-2}")).await;
    }
    let template = json!({"spec": {"infrastructureRef": {"name": format!("{cluster}-control-plane-2")}}});
    let spec = json!({"spec": {"version": format!("{TO}+vmware.1"), "machineTemplate": template}});
    let api: Api<KubeadmControlPlane> = Api::default_namespaced(client.clone());
    api.patch(&format!("{cluster}-control-plane"), &PatchParams::default(), &Patch::Merge(spec)).await.unwrap();
}

/// Raises the workers of a cluster whose control plane was raised.
pub async fn raise_workers(client: &Client, cluster: &str) {
    let reference = json!({"name": format!("{cluster}-workers-2")});
    let template = json!({"spec": {
        "version": format!("{TO}+vmware.1"), "infrastructureRef": reference, "bootstrap": {"configRef": reference},
    }});
    let api: Api<MachineDeployment> = Api::default_namespaced(client.clone());
    let spec = json!({"spec": {"template": template}});
    api.patch(&format!("{cluster}-workers"), &PatchParams::default(), &Patch::Merge(spec)).await.unwrap();
}

pub async fn put(client: &Client, text: &str) {
    let object: Value = serde_saphyr::from_str(text).unwrap();
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    let kind = ApiResource::from_gvk(&GroupVersionKind::try_from(object.types.as_ref().unwrap()).unwrap());
    let api = Api::<DynamicObject>::default_namespaced_with(client.clone(), &kind);
    api.create(&PostParams::default(), &object).await.unwrap();
}

/// Waits until so many clusters are at a version, with all their machines.
pub async fn settled(client: &Client, clusters: usize, size: Size, version: &str) {
    control_planes_settled(client, clusters, size, version).await;
    let api: Api<MachineDeployment> = Api::default_namespaced(client.clone());
    until(clusters, || async {
        let all = api.list(&ListParams::default()).await.unwrap();
        let settled = all.items.iter().filter(|pool| {
            let counts = pool
                .status
                .as_ref()
                .map(|status| [status.replicas, status.up_to_date_replicas, status.available_replicas]);
            let at = pool.spec.template.spec.version.as_deref();
            let seen = pool.status.as_ref().and_then(|status| status.observed_generation);
            let is_there = at.is_some_and(|at| at.starts_with(version)) && seen == pool.metadata.generation;
            is_there && counts == Some([size.workers; 3])
        });
        settled.count()
    })
    .await;
}

/// Waits until so many control planes are at a version, with all their machines.
pub async fn control_planes_settled(client: &Client, clusters: usize, size: Size, version: &str) {
    let api: Api<KubeadmControlPlane> = Api::default_namespaced(client.clone());
    until(clusters, || async {
        let all = api.list(&ListParams::default()).await.unwrap();
        let settled = all.items.iter().filter(|control_plane| {
            control_plane.status.as_ref().is_some_and(|status| {
                let counts = [status.replicas, status.up_to_date_replicas, status.available_replicas];
                let at = status.version.as_deref();
                let is_there = at.is_some_and(|at| at.starts_with(version));
                is_there
                    && status.observed_generation == control_plane.metadata.generation
                    && counts == [size.control_plane; 3]
            })
        });
        settled.count()
    })
    .await;
}

/// Waits until so many are settled. It asks seldom: it is not to be what is measured.
async fn until<F: Future<Output = usize>>(clusters: usize, settled: impl Fn() -> F) {
    let asked = async {
        while settled().await < clusters {
            tokio::time::sleep(Duration::from_secs(30)).await;
        }
    };
    tokio::time::timeout(PATIENCE, asked).await.unwrap();
}
