//! How a control plane goes: after all workers, its machines all at once, and nobody counts members of etcd any more.

use std::time::Duration;

use windlass_api::condition::ConditionStatus;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::control_plane::KubeadmControlPlane;
use windlass_runtime::runner::Outcome;

use super::{FINALIZER, etcd, view};
use crate::management::conditions::{self, Fact};
use crate::management::context::{Error, Turn, belonging, deleting};
use crate::management::ownership::is_held;
use crate::management::write;

/// How often a control plane that goes looks for machines that are left, as in Cluster API.
const DELETION_PAUSE: Duration = Duration::from_secs(30);

pub(super) async fn reconcile(turn: &Turn, object: &KubeadmControlPlane, cluster: &Cluster) -> Result<Outcome, Error> {
    if !is_held(&object.metadata, FINALIZER) {
        return Ok(Outcome::done());
    }
    let machines = view::machines(turn, object);
    if machines.is_empty() {
        write::release(turn, object, FINALIZER).await?;
        return Ok(Outcome::done());
    }
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    let of_cluster = belonging(&turn.caches.machines, &cluster.metadata, name);
    let others = of_cluster.len().saturating_sub(machines.len());
    if others > 0 {
        let message = format!("KubeadmControlPlane deletion blocked because {others} worker Machines still exist");
        say(turn, object, "WaitingForWorkersDeletion", message).await?;
        return Ok(Outcome::requeue_after(DELETION_PAUSE));
    }
    say(turn, object, "WaitingForMachineDeletion", format!("Deleting {} Machines", machines.len())).await?;
    for machine in machines {
        if etcd::is_held(&machine) {
            write::patch(turn, &*machine, etcd::without_hold()).await?;
        }
        if !deleting(&machine.metadata) {
            write::delete(turn, &*machine).await?;
        }
    }
    Ok(Outcome::requeue_after(DELETION_PAUSE))
}

async fn say(turn: &Turn, object: &KubeadmControlPlane, reason: &'static str, message: String) -> Result<(), Error> {
    let mut status = object.status.clone().unwrap_or_default();
    let facts = [
        Fact { type_: "Deleting", status: ConditionStatus::True, reason, message },
        Fact::no("Available", "NotAvailable", "* Control plane metadata.deletionTimestamp is set"),
    ];
    for fact in facts {
        conditions::set(&mut status.conditions, fact, object.metadata.generation, &turn.now());
    }
    if object.status.as_ref() != Some(&status) {
        write::status(turn, object, &status).await?;
    }
    Ok(())
}
