//! The core of Cluster API for Machines: brings infrastructure, bootstrap data and node together, and takes them apart.

mod node;
mod removal;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Resource;
use serde_json::{Map, Value, json};
use windlass_api::kind::bootstrap::KubeadmConfig;
use windlass_api::kind::cluster_api::{
    Cluster, Machine, MachineInitialization, MachineSet, MachineStatus, NodeReference,
};
use windlass_api::kind::wcp::WCPMachine;
use windlass_api::kind::{Condition, condition};
use windlass_runtime::key::Key;
use windlass_runtime::runner::Outcome;

use super::conditions::{self, Fact};
use super::context::{Error, Turn, deleting, paused};
use super::ownership::{controlled_by, owned_by, owners, with_finalizer, with_owner};
use super::write::{self, Watched};
pub(super) use node::Nodes;
use node::Sight;

/// What holds up the deletion of a Machine.
pub(super) const FINALIZER: &str = "machine.cluster.x-k8s.io";

/// How soon a workload API that did not answer is asked again, if no node tells of itself before.
const UNREACHABLE_PAUSE: Duration = Duration::from_secs(30);

/// What a Machine is made of.
struct Parts {
    config: Option<Arc<KubeadmConfig>>,
    infrastructure: Option<Arc<WCPMachine>>,
}

impl Parts {
    fn of(turn: &Turn, machine: &Machine) -> Self {
        let key = |name: &str| Key { namespace: machine.metadata.namespace.clone(), name: name.to_owned() };
        let config = machine.spec.bootstrap.config_ref.as_ref();
        Self {
            config: config.and_then(|config| turn.caches.bootstraps.get(&key(&config.name))),
            infrastructure: turn.caches.machine_infrastructures.get(&key(&machine.spec.infrastructure_ref.name)),
        }
    }
}

pub(super) async fn reconcile(turn: &Turn, machine: &Machine) -> Result<Outcome, Error> {
    let meta = &machine.metadata;
    let key = Key { namespace: meta.namespace.clone(), name: machine.spec.cluster_name.clone() };
    let cluster = turn.caches.clusters.get(&key);
    if cluster.as_ref().is_some_and(|cluster| paused(meta, cluster)) {
        return Ok(Outcome::done());
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
        adopt(turn, machine, &**infrastructure).await?;
    }
    let patched = own_fields(turn, machine, &cluster, &parts).await?;
    let machine = patched.as_ref().unwrap_or(machine);
    let node = if provisioned(&parts) { node::look(turn, machine, &cluster).await? } else { Sight::None };
    let status = status(turn, machine, &parts, node);
    if machine.status.as_ref() != Some(&status) {
        write::status(turn, machine, &status).await?;
    }
    Ok(match node {
        Sight::Unreachable => Outcome::requeue_after(UNREACHABLE_PAUSE),
        Sight::None | Sight::Node { .. } => Outcome::done(),
    })
}

/// Looks after a part from now on. The set that made it no longer does.
async fn adopt<K: Watched>(turn: &Turn, machine: &Machine, part: &K) -> Result<(), Error> {
    let Some(mut owners) = with_owner(part.meta(), controlled_by(machine)) else { return Ok(()) };
    let set = <MachineSet as Resource>::kind(&());
    owners.retain(|owner: &OwnerReference| owner.kind != set);
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

fn status(turn: &Turn, machine: &Machine, parts: &Parts, node: Sight) -> MachineStatus {
    let mut status = machine.status.clone().unwrap_or_default();
    let before = status.initialization.take().unwrap_or_default();
    let reached = MachineInitialization {
        infrastructure_provisioned: before.infrastructure_provisioned || provisioned(parts),
        bootstrap_data_secret_created: before.bootstrap_data_secret_created
            || machine.spec.bootstrap.data_secret_name.is_some(),
    };
    if let Some(infrastructure) = parts.infrastructure.as_ref().and_then(|part| part.status.as_ref()) {
        status.addresses.clone_from(&infrastructure.addresses);
    }
    if matches!(node, Sight::Node { .. }) && status.node_ref.is_none() {
        status.node_ref = Some(NodeReference { name: machine.metadata.name.clone().unwrap_or_default() });
    }
    let phase = match (&reached, &status.node_ref) {
        (MachineInitialization { infrastructure_provisioned: true, .. }, Some(_)) => "Running",
        (MachineInitialization { infrastructure_provisioned: true, .. }, None) => "Provisioned",
        (MachineInitialization { bootstrap_data_secret_created: true, .. }, _) => "Provisioning",
        _ => "Pending",
    };
    status.phase = Some(phase.to_owned());

    let config = parts.config.as_ref().and_then(|config| Some(config.status.as_ref()?.conditions.as_slice()));
    let infrastructure =
        parts.infrastructure.as_ref().and_then(|part| Some(part.status.as_ref()?.conditions.as_slice()));
    let facts = [
        part_fact("BootstrapConfigReady", reached.bootstrap_data_secret_created, config),
        part_fact("InfrastructureReady", reached.infrastructure_provisioned, infrastructure),
    ];
    status.initialization = Some(reached);
    let healthy = node_fact(node, &status);
    let ready = facts.iter().chain(&healthy).find(|fact| !fact.holds()).cloned();
    let ready = ready.map_or_else(|| Fact::yes("Ready", "Ready"), |unready| unready.named("Ready"));
    // Without `minReadySeconds` a Machine that is ready can be relied on.
    let available = ready.clone().named("Available");
    for fact in facts.into_iter().chain(healthy).chain([ready, available]) {
        conditions::set(&mut status.conditions, fact, machine.metadata.generation, &turn.now());
    }
    status
}

/// How a part is doing, in its own words where it says anything.
fn part_fact(type_: &'static str, done: bool, conditions: Option<&[Condition]>) -> Fact {
    if done {
        return Fact::yes(type_, "Ready");
    }
    let said = conditions.unwrap_or_default();
    let said = condition(said, "Ready").or_else(|| said.iter().find(|condition| condition.status == "False"));
    Fact::no(type_, "NotReady", said.map(|said| said.message.clone()).unwrap_or_default())
}

/// How the node is doing. While its API does not answer, nothing new is known.
fn node_fact(node: Sight, status: &MachineStatus) -> Option<Fact> {
    match node {
        Sight::Node { ready: true } => Some(Fact::yes("NodeHealthy", "NodeHealthy")),
        Sight::Node { ready: false } => Some(Fact::no("NodeHealthy", "NodeNotReady", "the node is not ready")),
        Sight::None if status.node_ref.is_some() => Some(Fact::no("NodeHealthy", "NodeDeleted", "the node is gone")),
        Sight::None => Some(Fact::no("NodeHealthy", "WaitingForNode", "there is no node yet")),
        Sight::Unreachable => {
            let known = condition(&status.conditions, "NodeHealthy")?;
            let known_healthy = known.status == "True";
            Some(if known_healthy {
                Fact::yes("NodeHealthy", "NodeHealthy")
            } else {
                Fact::no("NodeHealthy", "ConnectionDown", "the workload API does not answer")
            })
        }
    }
}
