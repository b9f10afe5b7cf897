//! How a Machine goes: hooks, pods, volumes, hooks again, infrastructure, bootstrap configuration, node. Each step waits for the
//! one before it, and the `Deleting` condition says which it is.
//!
//! Pods and volumes are looked at every 20 seconds from the start of their step, whoever else wakes the Machine meanwhile: the
//! beat follows from the status, so that a fork keeps it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use windlass_api::annotation::{self, holds};
use windlass_api::kind::cluster_api::{Cluster, Machine};
use windlass_api::kind::control_plane::KubeadmControlPlane;
use windlass_api::kind::machine_deletion::MachineDeletionStatus;
use windlass_api::kind::{Condition, condition};
use windlass_api::reason::DeletionReason;
use windlass_apiserver::time;
use windlass_runtime::key::Key;
use windlass_runtime::runner::Outcome;

use super::drain::{Drained, Leaving};
use super::node::{self, Sight};
use super::{FINALIZER, Parts, status};
use crate::management::conditions::Fact;
use crate::management::context::{Error, Turn, belonging, deleting, is_control_plane, workload_name};
use crate::management::ownership::{controller, is_held};
use crate::management::write::{self, failed};

/// How often pods and volumes are looked at.
const BEAT: Duration = Duration::from_secs(20);
/// How soon a node that could not be deleted is tried again.
const NODE_PAUSE: Duration = Duration::from_secs(10);
/// How long the deletion of a node is tried, unless a Machine says otherwise: the default that the API gives it.
const NODE_DELETION_TIMEOUT_SECONDS: u32 = 10;
/// The hook by which a `KubeadmControlPlane` keeps a machine until it has left etcd.
const KCP_CLEANUP: &str = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/kcp-cleanup";

/// How far a removal is.
struct Step {
    reason: DeletionReason,
    message: String,
    since: MachineDeletionStatus,
    outcome: Outcome,
}

pub(super) async fn reconcile(
    turn: &Turn,
    machine: &Machine,
    cluster: Option<&Cluster>,
    parts: &Parts,
) -> Result<Outcome, Error> {
    if !is_held(&machine.metadata, FINALIZER) {
        return Ok(Outcome::done());
    }
    let step = advance(turn, machine, cluster, parts).await?;
    if step.reason == DeletionReason::DeletionCompleted {
        write::release(turn, machine, FINALIZER).await?;
        return Ok(step.outcome);
    }
    let going = Fact { message: step.message, ..Fact::yes("Deleting", step.reason.as_str()) };
    let mut status = status::of_going(turn, machine, parts, going);
    status.deletion = Some(step.since).filter(|since| *since != MachineDeletionStatus::default());
    if machine.status.as_ref() != Some(&status) {
        write::status(turn, machine, &status).await?;
    }
    Ok(step.outcome)
}

/// Does what there is to do now, and says how far that is.
async fn advance(turn: &Turn, machine: &Machine, cluster: Option<&Cluster>, parts: &Parts) -> Result<Step, Error> {
    let mut since = machine.status.as_ref().and_then(|status| status.deletion.clone()).unwrap_or_default();
    let node = node_to_delete(turn, machine, cluster).await?;
    if let Some((cluster, node)) = &node
        && !is_past_the_node(machine, &since)
        && let Some(step) = leave_node(turn, machine, cluster, node, &mut since).await?
    {
        return Ok(step);
    }
    let hooks = hooks(machine, annotation::PRE_TERMINATE_HOLD_PREFIX);
    if !hooks.is_empty() {
        since.wait_for_pre_terminate_hook_start_time.get_or_insert_with(|| now(turn));
        let message = format!("Waiting for pre-terminate hooks to succeed (hooks: {hooks})");
        return Ok(Step {
            reason: DeletionReason::WaitingForPreTerminateHook,
            message,
            since,
            outcome: Outcome::done(),
        });
    }
    let wait = |reason, kind: &str, since| {
        let message = format!("Waiting for {kind} to be deleted");
        Ok(Step { reason, message, since, outcome: Outcome::done() })
    };
    if let Some(infrastructure) = &parts.infrastructure {
        write::delete_once(turn, infrastructure).await?;
        let kind = &machine.spec.infrastructure_ref.kind;
        return wait(DeletionReason::WaitingForInfrastructureDeletion, kind, since);
    }
    if let Some(config) = &parts.config {
        write::delete_once(turn, &**config).await?;
        let kind = machine.spec.bootstrap.config_ref.as_ref().map(|config| config.kind.as_str()).unwrap_or_default();
        return wait(DeletionReason::WaitingForBootstrapDeletion, kind, since);
    }
    if let Some((cluster, name)) = &node
        && !node::delete(turn, machine, cluster, name).await?
        && !given_up(turn, machine)
    {
        let message = "Error deleting Node, please check controller logs for errors".to_owned();
        let outcome = Outcome::requeue_after(NODE_PAUSE);
        return Ok(Step { reason: DeletionReason::DeletingNode, message, since, outcome });
    }
    let message = "Deletion completed".to_owned();
    Ok(Step { reason: DeletionReason::DeletionCompleted, message, since, outcome: Outcome::done() })
}

/// Whether pods and volumes are not looked at any more: a hook before the end has been reached, or the end itself has begun.
/// Real Cluster API goes on draining while the machine is being switched off; what it finds then is what it has let stay.
fn is_past_the_node(machine: &Machine, since: &MachineDeletionStatus) -> bool {
    let conditions = machine.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let reached = condition(conditions, "Deleting").and_then(Condition::reason_as::<DeletionReason>);
    since.wait_for_pre_terminate_hook_start_time.is_some()
        || matches!(
            reached,
            Some(
                DeletionReason::WaitingForInfrastructureDeletion
                    | DeletionReason::WaitingForBootstrapDeletion
                    | DeletionReason::DeletingNode
            )
        )
}

/// Hooks, pods and volumes; `None` when the node is left.
async fn leave_node(
    turn: &Turn,
    machine: &Machine,
    cluster: &Cluster,
    name: &str,
    since: &mut MachineDeletionStatus,
) -> Result<Option<Step>, Error> {
    let hooks = hooks(machine, annotation::PRE_DRAIN_HOLD_PREFIX);
    if !hooks.is_empty() {
        since.wait_for_pre_drain_hook_start_time.get_or_insert_with(|| now(turn));
        let message = format!("Waiting for pre-drain hooks to succeed (hooks: {hooks})");
        let (reason, since) = (DeletionReason::WaitingForPreDrainHook, since.clone());
        return Ok(Some(Step { reason, message, since, outcome: Outcome::done() }));
    }
    // The step that has begun last gives the beat.
    let drains = may(turn, machine, annotation::EXCLUDE_DRAINING.name, since, Phase::Drain);
    let detaches = may(turn, machine, annotation::EXCLUDE_VOLUME_DETACH.name, since, Phase::Detach);
    if !drains && !detaches {
        return Ok(None);
    }
    let last = since.wait_for_node_volume_detach_start_time.as_ref().or(since.node_drain_start_time.as_ref());
    if let Some(wait) = last.and_then(|last| until_next_beat(turn, last)) {
        return Ok(Some(unchanged(machine, since, wait)));
    }
    let Some(workload) = turn.workloads.get(&workload_name(cluster)?) else { return Ok(None) };
    let client = workload.client();
    let api: Api<Node> = Api::all(client.clone());
    let node = match api.get_opt(name).await {
        Ok(Some(node)) => node,
        // Somebody has deleted it: there is nothing to leave.
        Ok(None) => return Ok(None),
        Err(error) if node::unreachable(&error) => return Ok(Some(unreachable(turn, since, drains))),
        Err(source) => return Err(failed("look at the node of", machine, source)),
    };
    let leaving = Leaving { turn, machine, cluster, client: &client, node: &node };
    if drains {
        let began = began(turn, since.node_drain_start_time.get_or_insert_with(|| now(turn)));
        match leaving.drain(began).await {
            Ok(Drained::Yes) => {}
            Ok(Drained::NotYet(message)) => return Ok(Some(again(DeletionReason::DrainingNode, message, since))),
            Err(error) if no_answer(&error) => return Ok(Some(unreachable(turn, since, true))),
            Err(error) => return Err(error),
        }
    }
    if detaches {
        let began = began(turn, since.wait_for_node_volume_detach_start_time.get_or_insert_with(|| now(turn)));
        match leaving.attached(began).await {
            Ok(None) => {}
            Ok(Some(message)) => return Ok(Some(again(DeletionReason::WaitingForVolumeDetach, message, since))),
            Err(error) if no_answer(&error) => return Ok(Some(unreachable(turn, since, false))),
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// A part of leaving a node.
#[derive(Clone, Copy)]
enum Phase {
    Drain,
    Detach,
}

/// Whether pods or volumes are waited for at all, or still.
fn may(turn: &Turn, machine: &Machine, exclusion: &str, since: &MachineDeletionStatus, phase: Phase) -> bool {
    let annotations = machine.metadata.annotations.as_ref();
    let has = |key: &str| annotations.is_some_and(|annotations| annotations.contains_key(key));
    // A machine that has left etcd has no API server to drain through.
    let left_etcd = is_control_plane(&machine.metadata)
        && controller::<KubeadmControlPlane>(&machine.metadata).is_some()
        && !has(KCP_CLEANUP);
    let limits = machine.spec.deletion.as_ref();
    let (limit, began) = match phase {
        Phase::Drain => (limits.and_then(|limits| limits.node_drain_timeout_seconds), &since.node_drain_start_time),
        Phase::Detach => (
            limits.and_then(|limits| limits.node_volume_detach_timeout_seconds),
            &since.wait_for_node_volume_detach_start_time,
        ),
    };
    let began: Option<Timestamp> = began.as_ref().and_then(|began| began.parse().ok());
    let limit = limit.filter(|seconds| *seconds > 0).map(|seconds| Duration::from_secs(seconds.into()));
    let over = began.zip(limit).is_some_and(|(began, limit)| turn.remaining(began, limit).is_none());
    !left_etcd && !has(exclusion) && !over
}

/// How long it is until pods and volumes are looked at again; `None` if it is now.
fn until_next_beat(turn: &Turn, began: &str) -> Option<Duration> {
    let began: Timestamp = began.parse().ok()?;
    let passed = Duration::try_from(turn.clock.now().duration_since(began)).unwrap_or_default();
    let into = Duration::from_millis(u64::try_from(passed.as_millis() % BEAT.as_millis()).unwrap_or_default());
    // Times in a status are whole seconds: the beat lasts one.
    let is_now = passed >= BEAT && into < Duration::from_secs(1);
    (!is_now).then(|| BEAT.saturating_sub(into))
}

fn again(reason: DeletionReason, message: String, since: &MachineDeletionStatus) -> Step {
    Step { reason, message, since: since.clone(), outcome: Outcome::requeue_after(BEAT) }
}

/// Nothing is looked at before the next beat: all is as it was said.
fn unchanged(machine: &Machine, since: &MachineDeletionStatus, wait: Duration) -> Step {
    let conditions = machine.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let said = condition(conditions, "Deleting");
    let reason = said.and_then(Condition::reason_as).unwrap_or(DeletionReason::DrainingNode);
    let message = said.map(|said| said.message.clone()).unwrap_or_default();
    Step { reason, message, since: since.clone(), outcome: Outcome::requeue_after(wait) }
}

fn unreachable(turn: &Turn, since: &mut MachineDeletionStatus, drains: bool) -> Step {
    if drains {
        since.node_drain_start_time.get_or_insert_with(|| now(turn));
        let message = "Error draining Node, please check controller logs for errors".to_owned();
        again(DeletionReason::DrainingNode, message, since)
    } else {
        since.wait_for_node_volume_detach_start_time.get_or_insert_with(|| now(turn));
        let message = "Error waiting for volumes to be detached from Node, please check controller logs for errors";
        again(DeletionReason::WaitingForVolumeDetach, message.to_owned(), since)
    }
}

fn no_answer(error: &Error) -> bool {
    matches!(error, Error::Api { source, .. } if node::unreachable(source))
}

fn now(turn: &Turn) -> String {
    time::format(turn.now().0)
}

fn began(turn: &Turn, text: &str) -> Timestamp {
    text.parse().unwrap_or_else(|_| turn.now().0)
}

/// The keys of the annotations that hold the Machine, sorted.
fn hooks(machine: &Machine, prefix: &str) -> String {
    let annotations = machine.metadata.annotations.as_ref();
    let keys = annotations.into_iter().flat_map(|annotations| holds(annotations, prefix)).map(|(key, _)| key);
    keys.collect::<Vec<_>>().join(",")
}

/// The node that is to go with the Machine, and its cluster: one that somebody would miss. A cluster that goes as a whole, and
/// one without a control plane, miss nobody.
async fn node_to_delete<'a>(
    turn: &Turn,
    machine: &Machine,
    cluster: Option<&'a Cluster>,
) -> Result<Option<(&'a Cluster, String)>, Error> {
    let Some(cluster) = cluster.filter(|cluster| !deleting(&cluster.metadata)) else { return Ok(None) };
    let reference = machine.status.as_ref().and_then(|status| status.node_ref.as_ref());
    let name = match reference {
        Some(node) => node.name.clone(),
        // It may have joined since it was last looked at.
        None if machine.spec.provider_id.is_some() => match node::look(turn, machine, cluster).await? {
            Sight::Node(_) => machine.metadata.name.clone().unwrap_or_default(),
            Sight::None | Sight::Unreachable => return Ok(None),
        },
        None => return Ok(None),
    };
    let goes = control_plane(turn, cluster).is_some_and(|control_plane| deleting(&control_plane.metadata));
    Ok((!goes && control_plane_remains(turn, machine)).then_some((cluster, name)))
}

fn control_plane(turn: &Turn, cluster: &Cluster) -> Option<Arc<KubeadmControlPlane>> {
    let name = cluster.spec.control_plane_ref.as_ref()?.name.clone();
    turn.caches.control_planes.get(&Key { namespace: cluster.metadata.namespace.clone(), name })
}

fn control_plane_remains(turn: &Turn, machine: &Machine) -> bool {
    let all = belonging(&turn.caches.machines, &machine.metadata, &machine.spec.cluster_name);
    all.iter().any(|other| {
        other.metadata.uid != machine.metadata.uid && is_control_plane(&other.metadata) && !deleting(&other.metadata)
    })
}

/// Whether the Machine goes although its node could not be deleted.
fn given_up(turn: &Turn, machine: &Machine) -> bool {
    let limit = machine.spec.deletion.as_ref().and_then(|limits| limits.node_deletion_timeout_seconds);
    let limit = limit.unwrap_or(NODE_DELETION_TIMEOUT_SECONDS);
    let began = machine.metadata.deletion_timestamp.as_ref().map(|began| began.0);
    limit > 0 && began.is_some_and(|began| turn.remaining(began, Duration::from_secs(limit.into())).is_none())
}
