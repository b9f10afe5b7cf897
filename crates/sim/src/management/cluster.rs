//! The core of Cluster API for Clusters: from the infrastructure to "the control plane is initialized", and all of it back.

mod pace;
mod status;
mod summary;

use std::sync::Arc;
use std::time::Duration;

use kube::Resource;
use serde_json::{Map, Value, json};
use windlass_api::kind::cluster_api::{Cluster, ClusterStatus, Machine, MachineDeployment, MachineSet};
use windlass_api::kind::control_plane::KubeadmControlPlane;
use windlass_api::kind::wcp::WCPCluster;
use windlass_api::label;
use windlass_runtime::cache::Cache;
use windlass_runtime::key::Key;
use windlass_runtime::runner::Outcome;

use super::context::{Error, Turn, belonging, deleting};
use super::infrastructure::provided::Provided;
use super::ownership::{controlled_by, controller, is_held, owned_by, with_finalizer, with_owner};
use super::pause;
use super::secret;
use super::topology;
use super::write::{self, Watched, Writable};
pub(super) use pace::Pace;

const FINALIZER: &str = "cluster.cluster.x-k8s.io";

/// How often a Cluster that goes looks for what is left of it, as in Cluster API.
const DELETION_PAUSE: Duration = Duration::from_secs(5);

/// What belongs to a Cluster, by name.
struct Descendants {
    /// What the Cluster needs once.
    infrastructure: Option<Provided<WCPCluster>>,
    /// Who rolls the machines of its control plane.
    control_plane: Option<Arc<KubeadmControlPlane>>,
    deployments: Vec<Arc<MachineDeployment>>,
    sets: Vec<Arc<MachineSet>>,
    machines: Vec<Arc<Machine>>,
}

impl Descendants {
    fn of(turn: &Turn, cluster: &Cluster) -> Self {
        let key = |name: &str| Key { namespace: cluster.metadata.namespace.clone(), name: name.to_owned() };
        let (infrastructure, control_plane) = (&cluster.spec.infrastructure_ref, &cluster.spec.control_plane_ref);
        let caches = &turn.caches;
        Self {
            infrastructure: infrastructure
                .as_ref()
                .and_then(|part| caches.provided(part, cluster.metadata.namespace.as_deref())),
            control_plane: control_plane
                .as_ref()
                .filter(|part| part.is_of::<KubeadmControlPlane>())
                .and_then(|part| caches.control_planes.get(&key(&part.name))),
            deployments: members(&caches.machine_deployments, cluster),
            sets: members(&caches.machine_sets, cluster),
            machines: members(&caches.machines, cluster),
        }
    }
}

/// The objects of a kind that belong to the Cluster, by name.
fn members<K: Resource>(cache: &Cache<K>, cluster: &Cluster) -> Vec<Arc<K>> {
    belonging(cache, &cluster.metadata, cluster.metadata.name.as_deref().unwrap_or_default())
}

pub(super) async fn reconcile(turn: &Turn, cluster: &Cluster) -> Result<Outcome, Error> {
    if let Some(outcome) = pause::held(turn, cluster, Some(cluster)).await? {
        return Ok(outcome);
    }
    let parts = Descendants::of(turn, cluster);
    if deleting(&cluster.metadata) {
        return remove(turn, cluster, parts).await;
    }
    if let Some(infrastructure) = &parts.infrastructure {
        adopt(turn, cluster, infrastructure).await?;
    }
    if let Some(control_plane) = &parts.control_plane {
        adopt(turn, cluster, &**control_plane).await?;
    }
    let patched = own_fields(turn, cluster, parts.infrastructure.as_deref()).await?;
    let cluster = patched.as_ref().unwrap_or(cluster);
    let status = status::of(turn, cluster, &parts);
    let later = if pace::is_urgent(cluster.status.as_ref(), &status) || cluster.status.as_ref() == Some(&status) {
        None
    } else {
        turn.pace.wait(&Key::of(cluster))
    };
    if later.is_none() {
        say(turn, cluster, &status).await?;
    }
    // Whoever rolls the control plane hands it out, too.
    if cluster.spec.control_plane_ref.is_none() {
        secret::ensure_kubeconfig(turn, cluster, owned_by(cluster)).await?;
    }
    Ok(later.map_or_else(Outcome::done, Outcome::requeue_after))
}

/// Changes the status, if that changes anything.
async fn say(turn: &Turn, cluster: &Cluster, status: &ClusterStatus) -> Result<Option<Cluster>, Error> {
    turn.pace.settle(&Key::of(cluster));
    if cluster.status.as_ref() == Some(status) {
        return Ok(None);
    }
    write::status(turn, cluster, &status::on_the_wire(status)).await.map(Some)
}

/// Looks after what the Cluster refers to.
async fn adopt<K: Writable>(turn: &Turn, cluster: &Cluster, part: &K) -> Result<(), Error> {
    if let Some(owners) = with_owner(part.metadata(), controlled_by(cluster)) {
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

/// Workers go first, then the control plane, and what the Cluster needs once goes last.
async fn remove(turn: &Turn, cluster: &Cluster, parts: Descendants) -> Result<Outcome, Error> {
    if !is_held(&cluster.metadata, FINALIZER) {
        return Ok(Outcome::done());
    }
    // Whoever has to agree is asked where the topology is looked after.
    if topology::holds_deletion(turn, cluster) {
        return Ok(Outcome::done());
    }
    let written = say(turn, cluster, &status::of_going(turn, cluster, &parts)).await?;
    let cluster = written.as_ref().unwrap_or(cluster);

    let Descendants { infrastructure, control_plane, deployments, sets, mut machines } = parts;
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
        write::delete_once(turn, &infrastructure).await?;
        return Ok(Outcome::done());
    }
    write::release(turn, cluster, FINALIZER).await?;
    Ok(Outcome::done())
}

async fn delete_all<K: Watched>(turn: &Turn, objects: &[Arc<K>]) -> Result<(), Error> {
    for object in objects {
        write::delete_once(turn, &**object).await?;
    }
    Ok(())
}
