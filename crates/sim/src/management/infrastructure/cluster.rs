//! `WCPCluster`: a load balancer, and behind it the API of a workload cluster that does not answer yet.

use std::sync::Arc;

use serde_json::json;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::wcp::{Initialization, WCPCluster};
use windlass_api::name::NamespacedName;
use windlass_runtime::key::Key;
use windlass_runtime::runner::Outcome;

use crate::management::conditions::{self, Fact};
use crate::management::context::{Error, Turn, after, beside, deleting, workload_name};
use crate::management::ownership::{controller, is_held, with_finalizer};
use crate::management::{pause, write};

use super::provided::Provided;

type Part = Provided<WCPCluster>;

const FINALIZER: &str = "wcpcluster.infrastructure.cluster.vmware.com";

pub(in crate::management) async fn reconcile(turn: &Turn, infrastructure: &Part) -> Result<Outcome, Error> {
    let meta = &infrastructure.metadata;
    let cluster = owner(turn, infrastructure);
    if let Some(outcome) = pause::held(turn, infrastructure, cluster.as_deref()).await? {
        return Ok(outcome);
    }
    if deleting(meta) {
        return remove(turn, infrastructure).await;
    }
    let Some(cluster) = cluster else { return Ok(Outcome::done()) };
    let held = match with_finalizer(meta, FINALIZER) {
        None => None,
        Some(finalizers) => {
            Some(write::patch(turn, infrastructure, json!({"metadata": {"finalizers": finalizers}})).await?)
        }
    };
    let infrastructure = held.as_ref().unwrap_or(infrastructure);

    let began = meta.creation_timestamp.clone().unwrap_or_else(|| turn.now()).0;
    let takes = turn.takes(turn.durations.load_balancer, "load balancer", meta);
    let remaining = turn.remaining(began, takes);
    if remaining.is_some() {
        return Ok(after(remaining));
    }
    open(turn, infrastructure, &workload_name(&cluster)?).await
}

/// The Cluster that looks after it.
fn owner(turn: &Turn, infrastructure: &Part) -> Option<Arc<Cluster>> {
    let name = controller::<Cluster>(&infrastructure.metadata)?;
    turn.caches.clusters.get(&Key { namespace: infrastructure.metadata.namespace.clone(), name: name.to_owned() })
}

/// Opens the API, also when it was open before: after a restart nobody listens.
async fn open(turn: &Turn, infrastructure: &Part, name: &NamespacedName) -> Result<Outcome, Error> {
    let workload = turn.workloads.ensure(name);
    let endpoint = turn.doors.open(name, &workload).await?;
    let patched = if infrastructure.spec.control_plane_endpoint.as_ref() == Some(&endpoint) {
        None
    } else {
        Some(write::patch(turn, infrastructure, json!({"spec": {"controlPlaneEndpoint": endpoint}})).await?)
    };
    let infrastructure = patched.as_ref().unwrap_or(infrastructure);

    let mut status = infrastructure.status.clone().unwrap_or_default();
    status.initialization = Some(Initialization { provisioned: true });
    if infrastructure.is_known() {
        status.failure_domains = turn.faults.infrastructure().failure_domains();
    }
    let ready = Fact::yes("Ready", "Provisioned");
    conditions::set(&mut status.conditions, ready, infrastructure.metadata.generation, &turn.now());
    if infrastructure.status.as_ref() != Some(&status) {
        write::status(turn, infrastructure, &status).await?;
    }
    Ok(Outcome::done())
}

/// Closes the API, and forgets the workload cluster.
async fn remove(turn: &Turn, infrastructure: &Part) -> Result<Outcome, Error> {
    let meta = &infrastructure.metadata;
    if is_held(meta, FINALIZER) {
        // Its own name, where nobody looks after it: it then never opened anything.
        let name = controller::<Cluster>(meta).or(meta.name.as_deref()).unwrap_or_default();
        let name = beside(meta, name)?;
        turn.doors.close(&name);
        turn.workloads.remove(&name);
        write::release(turn, infrastructure, FINALIZER).await?;
    }
    Ok(Outcome::done())
}
