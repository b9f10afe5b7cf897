//! How a Machine goes: infrastructure, then bootstrap configuration, then node.

use std::time::Duration;

use windlass_api::kind::cluster_api::{Cluster, Machine};
use windlass_runtime::runner::Outcome;

use super::{FINALIZER, Parts, node};
use crate::management::conditions::{self, Fact};
use crate::management::context::{Error, Turn, deleting, is_control_plane};
use crate::management::ownership::is_held;
use crate::management::write::{self, Watched};

/// How soon a workload API that did not answer is asked again to delete a node.
const UNREACHABLE_PAUSE: Duration = Duration::from_secs(10);

pub(super) async fn reconcile(
    turn: &Turn,
    machine: &Machine,
    cluster: Option<&Cluster>,
    parts: &Parts,
) -> Result<Outcome, Error> {
    if !is_held(&machine.metadata, FINALIZER) {
        return Ok(Outcome::done());
    }
    let said = say(turn, machine).await?;
    let machine = said.as_ref().unwrap_or(machine);
    if let Some(infrastructure) = &parts.infrastructure {
        return delete(turn, &**infrastructure).await;
    }
    if let Some(config) = &parts.config {
        return delete(turn, &**config).await;
    }
    if !delete_node(turn, machine, cluster).await? {
        return Ok(Outcome::requeue_after(UNREACHABLE_PAUSE));
    }
    write::release(turn, machine, FINALIZER).await?;
    Ok(Outcome::done())
}

/// Deletes a part, and waits until it is gone.
async fn delete<K: Watched>(turn: &Turn, part: &K) -> Result<Outcome, Error> {
    if !deleting(part.meta()) {
        write::delete(turn, part).await?;
    }
    Ok(Outcome::done())
}

/// Says once that the Machine goes. From then on nobody relies on it.
async fn say(turn: &Turn, machine: &Machine) -> Result<Option<Machine>, Error> {
    let mut status = machine.status.clone().unwrap_or_default();
    status.phase = Some("Deleting".to_owned());
    let facts = [
        Fact::yes("Deleting", "WaitingForInfrastructureDeletion"),
        Fact::no("Ready", "Deleting", "the machine is being deleted"),
        Fact::no("Available", "Deleting", "the machine is being deleted"),
    ];
    for fact in facts {
        conditions::set(&mut status.conditions, fact, machine.metadata.generation, &turn.now());
    }
    if machine.status.as_ref() == Some(&status) {
        return Ok(None);
    }
    write::status(turn, machine, &status).await.map(Some)
}

/// Deletes the node, where there is somebody who would miss it. `false` if it has to be tried again.
async fn delete_node(turn: &Turn, machine: &Machine, cluster: Option<&Cluster>) -> Result<bool, Error> {
    let Some(cluster) = cluster.filter(|cluster| !deleting(&cluster.metadata)) else { return Ok(true) };
    let node = machine.status.as_ref().and_then(|status| status.node_ref.as_ref());
    let Some(node) = node else { return Ok(true) };
    // After the last machine of the control plane nobody will ever answer.
    Ok(node::delete(turn, machine, cluster, &node.name).await? || !control_plane_remains(turn, machine))
}

fn control_plane_remains(turn: &Turn, machine: &Machine) -> bool {
    let all = turn.caches.machines.list_in(machine.metadata.namespace.as_deref().unwrap_or_default());
    all.iter().any(|other| {
        other.spec.cluster_name == machine.spec.cluster_name
            && other.metadata.uid != machine.metadata.uid
            && is_control_plane(&other.metadata)
            && !deleting(&other.metadata)
    })
}
