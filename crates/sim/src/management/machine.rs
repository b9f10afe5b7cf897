//! The core of Cluster API for Machines: brings infrastructure, bootstrap data and node together, and takes them apart.

mod drain;
mod mark;
mod node;
mod removal;
mod status;
mod volumes;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Resource;
use serde_json::{Map, Value, json};
use windlass_api::kind::bootstrap::KubeadmConfig;
use windlass_api::kind::cluster_api::{Cluster, Machine, MachineSet};
use windlass_api::kind::control_plane::KubeadmControlPlane;
use windlass_api::kind::wcp::WCPMachine;
use windlass_runtime::key::Key;
use windlass_runtime::runner::Outcome;

use super::context::{Error, Turn, deleting};
use super::infrastructure::provided::Provided;
use super::ownership::{controlled_by, owned_by, owners, with_finalizer, with_owner};
use super::pause;
use super::write::{self, Writable};
#[cfg(test)]
pub(super) use node::seen;
pub(super) use node::{Nodes, Seen, Sight, look};

/// What holds up the deletion of a Machine.
pub(super) const FINALIZER: &str = "machine.cluster.x-k8s.io";

/// How soon a workload API that did not answer is asked again, if no node tells of itself before.
const UNREACHABLE_PAUSE: Duration = Duration::from_secs(30);

/// What a Machine is made of.
struct Parts {
    config: Option<Arc<KubeadmConfig>>,
    infrastructure: Option<Provided<WCPMachine>>,
}

impl Parts {
    fn of(turn: &Turn, machine: &Machine) -> Self {
        let key = |name: &str| Key { namespace: machine.metadata.namespace.clone(), name: name.to_owned() };
        let config = machine.spec.bootstrap.config_ref.as_ref().filter(|part| part.is_of::<KubeadmConfig>());
        Self {
            config: config.and_then(|part| turn.caches.bootstraps.get(&key(&part.name))),
            infrastructure: turn
                .caches
                .provided(&machine.spec.infrastructure_ref, machine.metadata.namespace.as_deref()),
        }
    }
}

pub(super) async fn reconcile(turn: &Turn, machine: &Machine) -> Result<Outcome, Error> {
    let meta = &machine.metadata;
    let key = Key { namespace: meta.namespace.clone(), name: machine.spec.cluster_name.clone() };
    let cluster = turn.caches.clusters.get(&key);
    if let Some(outcome) = pause::held(turn, machine, cluster.as_deref()).await? {
        return Ok(outcome);
    }
    let parts = Parts::of(turn, machine);
    if deleting(meta) {
        return removal::reconcile(turn, machine, cluster.as_deref(), &parts).await;
    }
    let Some(cluster) = cluster else { return Ok(Outcome::done()) };
    if let Some(config) = &parts.config {
        adopt(turn, machine, &**config).await?;
    }
    if let Some(infrastructure) = &parts.infrastructure {
        adopt(turn, machine, infrastructure).await?;
    }
    let patched = own_fields(turn, machine, &cluster, &parts).await?;
    let machine = patched.as_ref().unwrap_or(machine);
    let node = if provisioned(&parts) { node::look(turn, machine, &cluster).await? } else { Sight::None };
    let (status, wait) = status::of(turn, machine, &cluster, &parts, &node);
    if machine.status.as_ref() != Some(&status) {
        write::status(turn, machine, &status).await?;
    }
    let answered = match &node {
        Sight::Node(node) => mark::put(turn, machine, &cluster, node).await?,
        Sight::None => true,
        Sight::Unreachable => false,
    };
    let wait = if answered { wait } else { Some(UNREACHABLE_PAUSE) };
    Ok(wait.map_or_else(Outcome::done, Outcome::requeue_after))
}

/// Looks after a part from now on. The set or control plane that made it no longer does.
async fn adopt<K: Writable>(turn: &Turn, machine: &Machine, part: &K) -> Result<(), Error> {
    let Some(mut owners) = with_owner(part.metadata(), controlled_by(machine)) else { return Ok(()) };
    let makers = [<MachineSet as Resource>::kind(&()), <KubeadmControlPlane as Resource>::kind(&())];
    owners.retain(|owner: &OwnerReference| !makers.iter().any(|maker| owner.kind == *maker));
    write::patch(turn, part, json!({"metadata": {"ownerReferences": owners}})).await.map(drop)
}

/// The finalizer, an owner, and what is copied from the parts, in one write.
async fn own_fields(
    turn: &Turn,
    machine: &Machine,
    cluster: &Cluster,
    parts: &Parts,
) -> Result<Option<Machine>, Error> {
    let (mut metadata, mut spec) = (Map::new(), Map::new());
    if let Some(finalizers) = with_finalizer(&machine.metadata, FINALIZER) {
        metadata.insert("finalizers".into(), json!(finalizers));
    }
    if owners(&machine.metadata).is_empty() {
        metadata.insert("ownerReferences".into(), json!([owned_by(cluster)]));
    }
    let secret = parts.config.as_ref().and_then(|config| config.status.as_ref()?.data_secret_name.clone());
    if secret.is_some() && secret != machine.spec.bootstrap.data_secret_name {
        spec.insert("bootstrap".into(), json!({"dataSecretName": secret}));
    }
    let infrastructure = parts.infrastructure.as_ref().filter(|_| provisioned(parts));
    let provider_id = infrastructure.and_then(|infrastructure| infrastructure.spec.provider_id.clone());
    if provider_id.is_some() && provider_id != machine.spec.provider_id {
        spec.insert("providerID".into(), json!(provider_id));
    }
    let change: Map<String, Value> = [("metadata", metadata), ("spec", spec)]
        .into_iter()
        .filter(|(_, fields)| !fields.is_empty())
        .map(|(part, fields)| (part.to_owned(), Value::Object(fields)))
        .collect();
    if change.is_empty() {
        return Ok(None);
    }
    write::patch(turn, machine, Value::Object(change)).await.map(Some)
}

fn provisioned(parts: &Parts) -> bool {
    let status = parts.infrastructure.as_ref().and_then(|infrastructure| infrastructure.status.as_ref());
    status.and_then(|status| status.initialization.as_ref()).is_some_and(|reached| reached.provisioned)
}
