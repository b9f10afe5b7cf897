//! The core of Cluster API for Clusters: from the infrastructure to "the control plane is initialized", and all of it back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde_json::{Map, Value, json};
use windlass_api::kind::cluster_api::{Cluster, ClusterInitialization, ClusterStatus, Machine};
use windlass_api::kind::wcp::WCPCluster;
use windlass_api::label;
use windlass_api::name::{ClusterName, ClusterSecret};
use windlass_runtime::cache::Cache;
use windlass_runtime::key::Key;
use windlass_runtime::runner::Outcome;

use super::conditions::{self, Fact};
use super::context::{Error, Turn, cluster_name, deleting, is_control_plane, path, paused, workload_name};
use super::ownership::{controlled_by, is_held, owned_by, with_finalizer, with_owner};
use super::write::{self, Watched};

const FINALIZER: &str = "cluster.cluster.x-k8s.io";

/// How often a Cluster that goes looks for what is left of it, as in Cluster API.
const DELETION_PAUSE: Duration = Duration::from_secs(5);

/// The type of the Secrets of Cluster API.
pub(super) const SECRET_TYPE: &str = "cluster.x-k8s.io/secret";

pub(super) async fn reconcile(turn: &Turn, cluster: &Cluster) -> Result<Outcome, Error> {
    if paused(&cluster.metadata, cluster) {
        return Ok(Outcome::done());
    }
    let infrastructure = infrastructure(turn, cluster);
    if deleting(&cluster.metadata) {
        return remove(turn, cluster, infrastructure).await;
    }
    if let Some(infrastructure) = &infrastructure {
        adopt(turn, cluster, infrastructure).await?;
    }
    let patched = own_fields(turn, cluster, infrastructure.as_deref()).await?;
    let cluster = patched.as_ref().unwrap_or(cluster);
    let status = status(turn, cluster, infrastructure.as_deref());
    if cluster.status.as_ref() != Some(&status) {
        write::status(turn, cluster, &status).await?;
    }
    hand_out_kubeconfig(turn, cluster).await?;
    Ok(Outcome::done())
}

/// What the Cluster needs once.
fn infrastructure(turn: &Turn, cluster: &Cluster) -> Option<Arc<WCPCluster>> {
    let name = cluster.spec.infrastructure_ref.as_ref()?.name.clone();
    turn.caches.cluster_infrastructures.get(&Key { namespace: cluster.metadata.namespace.clone(), name })
}

async fn adopt(turn: &Turn, cluster: &Cluster, infrastructure: &WCPCluster) -> Result<(), Error> {
    if let Some(owners) = with_owner(&infrastructure.metadata, controlled_by(cluster)) {
        let name = cluster.metadata.name.as_deref();
        let labels = json!({label::CLUSTER_NAME.name: name});
        write::patch(turn, infrastructure, json!({"metadata": {"ownerReferences": owners, "labels": labels}})).await?;
    }
    Ok(())
}

/// The finalizer and the copied endpoint, in one write.
async fn own_fields(
    turn: &Turn,
    cluster: &Cluster,
    infrastructure: Option<&WCPCluster>,
) -> Result<Option<Cluster>, Error> {
    let mut change = Map::new();
    if let Some(finalizers) = with_finalizer(&cluster.metadata, FINALIZER) {
        change.insert("metadata".into(), json!({"finalizers": finalizers}));
    }
    let endpoint = infrastructure
        .filter(|infrastructure| provisioned(infrastructure))
        .and_then(|infrastructure| infrastructure.spec.control_plane_endpoint.as_ref());
    if endpoint.is_some() && endpoint != cluster.spec.control_plane_endpoint.as_ref() {
        change.insert("spec".into(), json!({"controlPlaneEndpoint": endpoint}));
    }
    if change.is_empty() {
        return Ok(None);
    }
    write::patch(turn, cluster, Value::Object(change)).await.map(Some)
}

fn provisioned(infrastructure: &WCPCluster) -> bool {
    let initialization = infrastructure.status.as_ref().and_then(|status| status.initialization.as_ref());
    initialization.is_some_and(|initialization| initialization.provisioned)
}

fn status(turn: &Turn, cluster: &Cluster, infrastructure: Option<&WCPCluster>) -> ClusterStatus {
    let mut status = cluster.status.clone().unwrap_or_default();
    // Both say what was ever reached, and never go back.
    let before = status.initialization.take().unwrap_or_default();
    let initialization = ClusterInitialization {
        infrastructure_provisioned: before.infrastructure_provisioned || infrastructure.is_some_and(provisioned),
        control_plane_initialized: before.control_plane_initialized || has_node(turn, cluster),
    };
    let phase = match (&cluster.spec.infrastructure_ref, initialization.infrastructure_provisioned) {
        (None, _) => "Pending",
        (Some(_), false) => "Provisioning",
        (Some(_), true) => "Provisioned",
    };
    let facts = [
        if initialization.infrastructure_provisioned {
            Fact::yes("InfrastructureReady", "Ready")
        } else {
            Fact::no("InfrastructureReady", "NotReady", "the infrastructure is not provisioned yet")
        },
        if initialization.control_plane_initialized {
            Fact::yes("ControlPlaneInitialized", "Initialized")
        } else {
            Fact::no("ControlPlaneInitialized", "NotInitialized", "no machine of the control plane has a node yet")
        },
    ];
    status.phase = Some(phase.to_owned());
    status.initialization = Some(initialization);
    for fact in facts {
        conditions::set(&mut status.conditions, fact, cluster.metadata.generation, &turn.now());
    }
    status
}

/// Whether a machine of the control plane has a node.
fn has_node(turn: &Turn, cluster: &Cluster) -> bool {
    let machines = members(&turn.caches.machines, cluster);
    machines.iter().any(|machine| {
        is_control_plane(&machine.metadata) && machine.status.as_ref().is_some_and(|status| status.node_ref.is_some())
    })
}

/// The objects of a kind that belong to the Cluster, by name.
fn members<K: Resource>(cache: &Cache<K>, cluster: &Cluster) -> Vec<Arc<K>> {
    let all = cache.list_in(cluster.metadata.namespace.as_deref().unwrap_or_default());
    all.into_iter().filter(|object| cluster_name(object.meta()) == cluster.metadata.name.as_deref()).collect()
}

/// Makes the kubeconfig, once there is an authority that could sign it. It is never changed.
async fn hand_out_kubeconfig(turn: &Turn, cluster: &Cluster) -> Result<(), Error> {
    let Some(endpoint) = &cluster.spec.control_plane_endpoint else { return Ok(()) };
    let meta = &cluster.metadata;
    let name = ClusterName::new(meta.name.as_deref().unwrap_or_default())
        .map_err(|source| Error::Name { object: path(meta), source })?;
    let secret = |secret: ClusterSecret| {
        let key = Key { namespace: meta.namespace.clone(), name: secret.object_name(&name).to_string() };
        turn.caches.secrets.get(&key)
    };
    if secret(ClusterSecret::CertificateAuthority).is_none() || secret(ClusterSecret::Kubeconfig).is_some() {
        return Ok(());
    }
    let kubeconfig = turn.doors.kubeconfig(&workload_name(cluster)?, endpoint).await?;
    let secret = Secret {
        metadata: ObjectMeta {
            name: Some(ClusterSecret::Kubeconfig.object_name(&name).to_string()),
            namespace: meta.namespace.clone(),
            labels: Some(BTreeMap::from([label::CLUSTER_NAME.entry(&name)])),
            owner_references: Some(vec![owned_by(cluster)]),
            ..ObjectMeta::default()
        },
        type_: Some(SECRET_TYPE.to_owned()),
        data: Some(BTreeMap::from([("value".to_owned(), ByteString(kubeconfig.into_bytes()))])),
        ..Secret::default()
    };
    match write::create(turn, &secret).await {
        Err(error) if error.already_exists() => Ok(()),
        result => result.map(drop),
    }
}

/// Machines go first, and what the Cluster needs once goes last.
async fn remove(turn: &Turn, cluster: &Cluster, infrastructure: Option<Arc<WCPCluster>>) -> Result<Outcome, Error> {
    if !is_held(&cluster.metadata, FINALIZER) {
        return Ok(Outcome::done());
    }
    let status = ClusterStatus { phase: Some("Deleting".to_owned()), ..cluster.status.clone().unwrap_or_default() };
    let written = if cluster.status.as_ref() == Some(&status) {
        None
    } else {
        Some(write::status(turn, cluster, &status).await?)
    };
    let cluster = written.as_ref().unwrap_or(cluster);

    let deployments = members(&turn.caches.machine_deployments, cluster);
    let sets = members(&turn.caches.machine_sets, cluster);
    let machines: Vec<Arc<Machine>> = members(&turn.caches.machines, cluster);
    delete_all(turn, &deployments).await?;
    delete_all(turn, &sets).await?;
    delete_all(turn, &machines).await?;
    if !(deployments.is_empty() && sets.is_empty() && machines.is_empty()) {
        return Ok(Outcome::requeue_after(DELETION_PAUSE));
    }
    if let Some(infrastructure) = infrastructure {
        delete_all(turn, &[infrastructure]).await?;
        return Ok(Outcome::done());
    }
    write::release(turn, cluster, FINALIZER).await?;
    Ok(Outcome::done())
}

async fn delete_all<K: Watched>(turn: &Turn, objects: &[Arc<K>]) -> Result<(), Error> {
    for object in objects.iter().filter(|object| !deleting(object.meta())) {
        write::delete(turn, &**object).await?;
    }
    Ok(())
}
