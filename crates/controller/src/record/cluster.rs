//! The status of a cluster.

use jiff::Timestamp;
use windlass_api::kind::cluster_update::{ClusterUpdate, UpdateState};
use windlass_api::kind::tanzu::{Phase, TanzuKubernetesCluster, TanzuKubernetesClusterStatus};
use windlass_plan::check::Severity;
use windlass_plan::gate::Blocked;
use windlass_plan::inventory::{Node, Workload};
use windlass_plan::planner::Record;
use windlass_plan::report::{Assessment, Report, Secrets, StageReport, StageState};
use windlass_plan::step::Stage;
use windlass_plan::why;

use super::condition::{self, Waiting, conditions, pending};
use super::waits::{missing_image, waits};
use super::{Recorded, addons};
use crate::reconcile::deletion::Left;
use crate::resolve::Unresolved;

/// The status of a cluster that was planned for. The stage is the one that its update is at.
pub(super) fn status(
    before: &TanzuKubernetesClusterStatus,
    tkc: &TanzuKubernetesCluster,
    latest: Option<&ClusterUpdate>,
    stage: Option<&str>,
    recorded: &Recorded<'_>,
) -> TanzuKubernetesClusterStatus {
    let waiting = waiting(recorded, stage);
    let phase = match recorded.planned.report.phase(before.phase) {
        Phase::Creating if given_up(recorded).is_some() => Phase::Failed,
        // Stages go by machines and packages; a node may be unwell, or a write fail, while all of them are done.
        Phase::Running if waiting.is_some() => Phase::Unhealthy,
        phase => phase,
    };
    TanzuKubernetesClusterStatus {
        phase: Some(phase),
        version: version(before, phase, recorded),
        update: latest.and_then(|update| update.metadata.name.clone()),
        waiting_for: waiting.as_ref().map(|waiting| waiting.message.clone()),
        observed_generation: tkc.metadata.generation,
        addons: addons::addons(before, recorded),
        waits: {
            let mut waits =
                if is_recorded_elsewhere(latest, recorded) { Vec::new() } else { waits(recorded, &before.waits) };
            waits.extend(missing_image(recorded));
            waits
        },
        conditions: {
            let mut conditions = conditions(waiting.as_ref(), tkc.metadata.generation);
            conditions.extend(condition::secrets(&recorded.planned.report.secrets, tkc.metadata.generation));
            conditions.extend(pending(&recorded.planned.report, tkc.metadata.generation));
            let image = &recorded.input.inventory.releases.image;
            conditions.extend(condition::release(image, &recorded.input.target.release, tkc.metadata.generation));
            conditions
        },
    }
}

/// Whether there is an update whose record says what is waited for.
fn is_recorded_elsewhere(latest: Option<&ClusterUpdate>, recorded: &Recorded<'_>) -> bool {
    let state = |update: &ClusterUpdate| update.status.as_ref().and_then(|status| status.state);
    let unfinished = latest.is_some_and(|update| matches!(state(update), None | Some(UpdateState::Running)));
    unfinished && !matches!(recorded.planned.record, Some(Record::Succeeded))
}

/// The same status, with the time at which each condition last changed.
pub(super) fn dated(
    before: &TanzuKubernetesClusterStatus,
    status: TanzuKubernetesClusterStatus,
    now: Timestamp,
) -> TanzuKubernetesClusterStatus {
    let conditions = condition::dated(&before.conditions, status.conditions, now);
    TanzuKubernetesClusterStatus { conditions, ..status }
}

/// What all machines have. While the cluster is being made it has not all of its machines, and so no version.
fn version(before: &TanzuKubernetesClusterStatus, phase: Phase, recorded: &Recorded<'_>) -> Option<String> {
    let complete = phase != Phase::Creating;
    complete.then(|| oldest(nodes(recorded))).flatten().or_else(|| before.version.clone())
}

/// The status of a cluster of which it is not known what it should be.
pub(super) fn unresolved(
    before: &TanzuKubernetesClusterStatus,
    tkc: &TanzuKubernetesCluster,
    latest: Option<&ClusterUpdate>,
    why: &Unresolved,
) -> TanzuKubernetesClusterStatus {
    let waiting = Waiting { reason: why.reason().to_owned(), message: why.to_string(), stalled: true };
    TanzuKubernetesClusterStatus {
        phase: Some(before.phase.unwrap_or(Phase::Creating)),
        // One that was announced and is not on record will not begin now.
        update: latest.and_then(|update| update.metadata.name.clone()),
        waiting_for: Some(waiting.message.clone()),
        waits: Vec::new(),
        observed_generation: tkc.metadata.generation,
        conditions: conditions(Some(&waiting), tkc.metadata.generation),
        ..before.clone()
    }
}

/// The status of a cluster of which this is left.
pub(super) fn deleting(
    before: &TanzuKubernetesClusterStatus,
    tkc: &TanzuKubernetesCluster,
    left: &Left,
    now: Timestamp,
) -> TanzuKubernetesClusterStatus {
    let why = left.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    let message = format!("{} is still there{why}", left.object);
    let waiting = Waiting { reason: "Deleting".to_owned(), message, stalled: left.is_stalled(now) };
    TanzuKubernetesClusterStatus {
        phase: Some(Phase::Deleting),
        waiting_for: Some(waiting.message.clone()),
        waits: Vec::new(),
        observed_generation: tkc.metadata.generation,
        conditions: conditions(Some(&waiting), tkc.metadata.generation),
        ..before.clone()
    }
}

/// What keeps the cluster from being as it was asked to be: the first of all reasons, in the order in which a person would
/// have to deal with them.
fn waiting(recorded: &Recorded<'_>, stage: Option<&str>) -> Option<Waiting> {
    let report = &recorded.planned.report;
    let objection = recorded.findings.iter().find(|finding| finding.severity == Severity::Fatal);
    if let Some(finding) = objection {
        let message = format!("{} {}: {}", finding.id, finding.object, finding.message);
        return Some(Waiting { reason: "PlanRefused".to_owned(), message, stalled: true });
    }
    if let Some(failure) = recorded.executed.failures.first() {
        let message = format!("{}: {}", failure.role, failure.error);
        return Some(Waiting { reason: failure.error.category().to_owned(), message, stalled: false });
    }
    if let Some(blocked) = given_up(recorded) {
        return Some(Waiting { reason: blocked.reason().to_owned(), message: blocked.to_string(), stalled: true });
    }
    let stalled = report.assessment == Assessment::UpdateFailed;
    let current = current(report, stage);
    if let Some(blocked) = current.and_then(|stage| stage.blocked.first()) {
        let stalled = stalled || is_stuck(recorded, blocked);
        return Some(Waiting { reason: blocked.reason().to_owned(), message: blocked.to_string(), stalled });
    }
    if let Some(stage) = current {
        let message = format!("the stage {} goes on", stage.stage);
        return Some(Waiting { reason: "Progressing".to_owned(), message, stalled });
    }
    if let Secrets::Missing(blocked) = &report.secrets {
        let message = format!("{blocked}: {}", blocked.way_out());
        return Some(Waiting { reason: blocked.reason().to_owned(), message, stalled: true });
    }
    let unwell = nodes(recorded).iter().find(|node| !node.ready)?;
    let message = format!("Node/{} is not ready", unwell.name);
    Some(Waiting { reason: "NodeNotReady".to_owned(), message, stalled: false })
}

/// Whether waiting will not help: it has been waited for long enough.
fn is_stuck(recorded: &Recorded<'_>, blocked: &Blocked) -> bool {
    let since = recorded.planned.report.since(blocked).unwrap_or(recorded.input.now);
    blocked.patience().is_some_and(|patience| recorded.input.now.duration_since(since) >= patience)
}

/// What keeps a cluster from being made, if waiting for it will not help.
fn given_up(recorded: &Recorded<'_>) -> Option<Blocked> {
    why::creation_failed(&recorded.input.inventory, recorded.input.now)
}

/// The stage that a person would look at. Packages may be unwell for a moment while machines are replaced, and have to wait for
/// machines when a cluster is made: neither is what is waited for.
fn current<'a>(report: &'a Report, stage: Option<&str>) -> Option<&'a StageReport> {
    let undone = |stage: &&StageReport| stage.state != StageState::Done;
    let of_update = report.stages.iter().filter(undone).find(|report| Some(report.stage.as_str()) == stage);
    let of_creation = || report.stages.iter().filter(undone).find(|report| report.stage == Stage::ControlPlane);
    match report.assessment {
        Assessment::Creating => of_creation().or_else(|| report.current()),
        Assessment::Running | Assessment::Updating | Assessment::UpdateFailed => of_update.or_else(|| report.current()),
    }
}

fn nodes<'a>(recorded: &Recorded<'a>) -> &'a [Node] {
    match &recorded.input.inventory.workload {
        Workload::Reachable { nodes, .. } => nodes,
        Workload::NotYet | Workload::Unreachable { .. } => &[],
    }
}

/// The distribution that all nodes have at least; nothing as long as one of them does not say.
fn oldest(nodes: &[Node]) -> Option<String> {
    let distributions: Option<Vec<_>> = nodes.iter().map(|node| node.distribution.as_ref()).collect();
    distributions?.into_iter().min().map(ToString::to_string)
}
