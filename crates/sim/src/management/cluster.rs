//! The core of Cluster API for Clusters: from the infrastructure to "the control plane is initialized", and all of it back.

use std::sync::Arc;
use std::time::Duration;

use kube::Resource;
use serde_json::{Map, Value, json};
use windlass_api::kind::cluster_api::{Cluster, ClusterInitialization, ClusterStatus, Machine, Progress};
use windlass_api::kind::condition;
use windlass_api::kind::control_plane::KubeadmControlPlane;
use windlass_api::kind::wcp::WCPCluster;
use windlass_api::label;
use windlass_runtime::cache::Cache;
use windlass_runtime::key::Key;
use windlass_runtime::runner::Outcome;

use super::conditions::{self, Fact};
use super::context::{Error, Turn, belonging, deleting, is_control_plane};
use super::ownership::{controlled_by, controller, is_held, owned_by, with_finalizer, with_owner};
use super::pause;
use super::secret;
use super::topology;
use super::write::{self, Watched};

const FINALIZER: &str = "cluster.cluster.x-k8s.io";

/// How often a Cluster that goes looks for what is left of it, as in Cluster API.
const DELETION_PAUSE: Duration = Duration::from_secs(5);

pub(super) async fn reconcile(turn: &Turn, cluster: &Cluster) -> Result<Outcome, Error> {
    if let Some(outcome) = pause::held(turn, cluster, Some(cluster)).await? {
        return Ok(outcome);
    }
    let infrastructure = infrastructure(turn, cluster);
    if deleting(&cluster.metadata) {
        return remove(turn, cluster, infrastructure).await;
    }
    if let Some(infrastructure) = &infrastructure {
        adopt(turn, cluster, &**infrastructure).await?;
    }
    let control_plane = control_plane(turn, cluster);
    if let Some(control_plane) = &control_plane {
        adopt(turn, cluster, &**control_plane).await?;
    }
    let patched = own_fields(turn, cluster, infrastructure.as_deref()).await?;
    let cluster = patched.as_ref().unwrap_or(cluster);
    let status = status(turn, cluster, infrastructure.as_deref(), control_plane.as_deref());
    if cluster.status.as_ref() != Some(&status) {
        write::status(turn, cluster, &status).await?;
    }
    // Whoever rolls the control plane hands it out, too.
    if cluster.spec.control_plane_ref.is_none() {
        secret::ensure_kubeconfig(turn, cluster, owned_by(cluster)).await?;
    }
    Ok(Outcome::done())
}

/// What the Cluster needs once.
fn infrastructure(turn: &Turn, cluster: &Cluster) -> Option<Arc<WCPCluster>> {
    let name = cluster.spec.infrastructure_ref.as_ref()?.name.clone();
    turn.caches.cluster_infrastructures.get(&Key { namespace: cluster.metadata.namespace.clone(), name })
}

/// Who rolls the machines of its control plane.
fn control_plane(turn: &Turn, cluster: &Cluster) -> Option<Arc<KubeadmControlPlane>> {
    let name = cluster.spec.control_plane_ref.as_ref()?.name.clone();
    turn.caches.control_planes.get(&Key { namespace: cluster.metadata.namespace.clone(), name })
}

/// Looks after what the Cluster refers to.
async fn adopt<K: Watched>(turn: &Turn, cluster: &Cluster, part: &K) -> Result<(), Error> {
    if let Some(owners) = with_owner(part.meta(), controlled_by(cluster)) {
        let name = cluster.metadata.name.as_deref();
        let labels = json!({label::CLUSTER_NAME.name: name});
        write::patch(turn, part, json!({"metadata": {"ownerReferences": owners, "labels": labels}})).await?;
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

fn status(
    turn: &Turn,
    cluster: &Cluster,
    infrastructure: Option<&WCPCluster>,
    control_plane: Option<&KubeadmControlPlane>,
) -> ClusterStatus {
    let mut status = cluster.status.clone().unwrap_or_default();
    // Both say what was ever reached, and never go back.
    let before = status.initialization.take().unwrap_or_default();
    let initialization = ClusterInitialization {
        infrastructure_provisioned: before.infrastructure_provisioned || infrastructure.is_some_and(provisioned),
        control_plane_initialized: before.control_plane_initialized || is_initialized(turn, cluster, control_plane),
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
    if let Some(infrastructure) = infrastructure.filter(|infrastructure| provisioned(infrastructure)) {
        let said = infrastructure.status.as_ref().map(|status| status.failure_domains.clone());
        status.failure_domains = said.unwrap_or_default();
    }
    if let Some(control_plane) = control_plane {
        status.control_plane = Some(progress(turn, cluster, control_plane));
        let available = control_plane_available(control_plane);
        conditions::set(&mut status.conditions, available, cluster.metadata.generation, &turn.now());
    }
    for fact in facts {
        conditions::set(&mut status.conditions, fact, cluster.metadata.generation, &turn.now());
    }
    status
}

/// Whether the control plane can be relied on, in its own words.
fn control_plane_available(control_plane: &KubeadmControlPlane) -> Fact {
    let said = control_plane.status.as_ref().and_then(|status| condition(&status.conditions, "Available"));
    match said {
        Some(said) if said.status == "True" => Fact::yes("ControlPlaneAvailable", "Available"),
        Some(said) => Fact::no("ControlPlaneAvailable", "NotAvailable", said.message.as_str()),
        None => Fact::no("ControlPlaneAvailable", "NotYetReported", "the control plane has not said anything yet"),
    }
}

/// How far the control plane is, in its own words, and what is ahead of it.
fn progress(turn: &Turn, cluster: &Cluster, control_plane: &KubeadmControlPlane) -> Progress {
    let status = control_plane.status.clone().unwrap_or_default();
    Progress {
        desired_replicas: control_plane.spec.replicas,
        replicas: Some(status.replicas),
        up_to_date_replicas: Some(status.up_to_date_replicas),
        ready_replicas: Some(status.ready_replicas),
        available_replicas: Some(status.available_replicas),
        versions: status.versions,
        upgrade_plan: topology::ahead(turn, cluster, control_plane),
    }
}

/// Whether the API has answered: whoever rolls the control plane says so; where nobody does, its first node.
fn is_initialized(turn: &Turn, cluster: &Cluster, control_plane: Option<&KubeadmControlPlane>) -> bool {
    if cluster.spec.control_plane_ref.is_none() {
        return has_node(turn, cluster);
    }
    let reached = control_plane.and_then(|control_plane| control_plane.status.as_ref()?.initialization.as_ref());
    reached.is_some_and(|reached| reached.control_plane_initialized)
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
    belonging(cache, &cluster.metadata, cluster.metadata.name.as_deref().unwrap_or_default())
}

/// Workers go first, then the control plane, and what the Cluster needs once goes last.
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
    let control_plane = control_plane(turn, cluster);
    let mut machines: Vec<Arc<Machine>> = members(&turn.caches.machines, cluster);
    // Those of a control plane that is rolled go with it.
    machines.retain(|machine| controller::<KubeadmControlPlane>(&machine.metadata).is_none());
    delete_all(turn, &deployments).await?;
    delete_all(turn, &sets).await?;
    delete_all(turn, &machines).await?;
    if !(deployments.is_empty() && sets.is_empty() && machines.is_empty()) {
        return Ok(Outcome::requeue_after(DELETION_PAUSE));
    }
    if let Some(control_plane) = control_plane {
        delete_all(turn, &[control_plane]).await?;
        return Ok(Outcome::done());
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
