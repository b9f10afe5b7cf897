//! What a control plane does in etcd: no leader goes with its machine, and no member outlives one.

use serde_json::{Value, json};
use windlass_api::annotation;
use windlass_api::kind::cluster_api::Machine;
use windlass_api::kind::condition;
use windlass_api::version::{KubernetesVersion, facts};

use super::machine::CLEANUP_HOLD;
use super::view::{Replica, View};
use crate::management::context::{Error, Turn, workload_name};
use crate::management::write;
use crate::workload::{EtcdError, Workload};

/// Lets another member lead, if the one on this machine does: the one on the newest machine that stays.
pub(super) fn forward_leadership(turn: &Turn, view: &View<'_>, leaving: &Replica) -> Result<(), Error> {
    let (Some(members), Some(node)) = (view.sight.members(), leaving.node()) else { return Ok(()) };
    if !members.iter().any(|member| member.leader && member.name == node) {
        return Ok(());
    }
    let stay = view.replicas.iter().rev().filter(|other| !other.leaves() && other.name() != leaving.name());
    let able = |other: &Replica| members.iter().find(|member| Some(member.name.as_str()) == other.node());
    let Some(next) = stay.filter_map(able).find(|member| member.healthy && !member.learner) else { return Ok(()) };
    let Some(workload) = workload(turn, view)? else { return Ok(()) };
    workload.move_leader(next.id).map_err(|error| failed(view, &format!("make {} lead", next.name), &error))
}

/// Removes members whose machines are gone, once it is known which machine is which node.
pub(super) fn remove_orphans(turn: &Turn, view: &View<'_>) -> Result<(), Error> {
    let Some(members) = view.sight.members() else { return Ok(()) };
    if view.replicas.is_empty() || view.replicas.iter().any(|replica| replica.node().is_none()) {
        return Ok(());
    }
    let is_known = |node: &str| view.replicas.iter().any(|replica| replica.node() == Some(node));
    for orphan in members.iter().filter(|member| !member.name.is_empty() && !is_known(&member.name)) {
        remove(turn, view, orphan.id, &orphan.name)?;
    }
    Ok(())
}

/// Lets a machine go that waits for nothing but its member of etcd to be removed. One at a time, the first to leave first.
pub(super) async fn release(turn: &Turn, view: &View<'_>) -> Result<(), Error> {
    let held = view.replicas.iter().filter(|replica| replica.leaves() && is_held(&replica.machine));
    let first = held.min_by_key(|replica| replica.machine.metadata.deletion_timestamp.as_ref().map(|at| at.0));
    let Some(leaving) = first.filter(|replica| waits_for_us(&replica.machine)) else { return Ok(()) };
    if view.replicas.len() > 1
        && let Some(node) = leaving.node()
    {
        forward_leadership(turn, view, leaving)?;
        // Nobody answers for etcd: the machine waits, as its member could not be counted out.
        let Some(members) = view.sight.members() else { return Ok(()) };
        if let Some(member) = members.iter().find(|member| member.name == node) {
            remove(turn, view, member.id, node)?;
        }
    }
    write::patch(turn, &*leaving.machine, without_hold()).await.map(drop)
}

/// The change by which a machine no longer waits for its member to be removed.
pub(super) fn without_hold() -> Value {
    json!({"metadata": {"annotations": {CLEANUP_HOLD: null}}})
}

/// Whether the machine waits for its member to be removed, now or later.
pub(super) fn is_held(machine: &Machine) -> bool {
    machine.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(CLEANUP_HOLD))
}

/// Whether the machine has come so far that it waits for holds before it is switched off; and for this one alone, where its
/// kubelet talks to the API server beside it and to no other, which is gone with the member.
fn waits_for_us(machine: &Machine) -> bool {
    let status = machine.status.as_ref();
    let reason = status.and_then(|status| condition(&status.conditions, "Deleting")).map(|said| said.reason.as_str());
    if reason != Some("WaitingForPreTerminateHook") {
        return false;
    }
    let version = machine.spec.version.as_deref().and_then(|version| version.parse::<KubernetesVersion>().ok());
    let comes_last = version.as_ref().is_some_and(facts::kubelet_uses_local_api_server);
    let annotations = machine.metadata.annotations.iter().flatten();
    let holds = annotations.filter(|(key, _)| key.starts_with(annotation::PRE_TERMINATE_HOLD_PREFIX)).count();
    !comes_last || holds == 1
}

fn remove(turn: &Turn, view: &View<'_>, id: u64, node: &str) -> Result<(), Error> {
    let Some(workload) = workload(turn, view)? else { return Ok(()) };
    workload.remove_member(id).map_err(|error| failed(view, &format!("remove the member on {node}"), &error))
}

fn workload(turn: &Turn, view: &View<'_>) -> Result<Option<Workload>, Error> {
    Ok(turn.workloads.get(&workload_name(view.cluster)?))
}

fn failed(view: &View<'_>, what: &str, error: &EtcdError) -> Error {
    let cluster = view.cluster.metadata.name.as_deref().unwrap_or_default();
    Error::Text { what: format!("{what} of {cluster}"), why: error.to_string() }
}
