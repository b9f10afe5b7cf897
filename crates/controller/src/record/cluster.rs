//! The status of a cluster.

use std::collections::BTreeMap;

use windlass_api::kind::cluster_update::ClusterUpdate;
use windlass_api::kind::tanzu::{AddonPhase, AddonStatus, Phase, TanzuKubernetesCluster, TanzuKubernetesClusterStatus};
use windlass_api::name::AddonName;
use windlass_plan::check::Severity;
use windlass_plan::inventory::{AddonObject, Node, Workload};
use windlass_plan::planner::Record;
use windlass_plan::release::AddonRelease;
use windlass_plan::report::{Assessment, Report, StageReport, StageState};
use windlass_plan::step::Stage;

use super::Recorded;
use super::condition::{Waiting, conditions};
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
        addons: addons(before, recorded),
        conditions: conditions(waiting.as_ref(), tkc.metadata.generation),
    }
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
    why: &Unresolved,
) -> TanzuKubernetesClusterStatus {
    let waiting = Waiting { reason: why.reason().to_owned(), message: why.to_string(), stalled: true };
    TanzuKubernetesClusterStatus {
        phase: Some(before.phase.unwrap_or(Phase::Creating)),
        waiting_for: Some(waiting.message.clone()),
        observed_generation: tkc.metadata.generation,
        conditions: conditions(Some(&waiting), tkc.metadata.generation),
        ..before.clone()
    }
}

/// The status of a cluster of which this is left.
pub(super) fn deleting(
    before: &TanzuKubernetesClusterStatus,
    tkc: &TanzuKubernetesCluster,
    left: &str,
) -> TanzuKubernetesClusterStatus {
    let message = format!("{left} is still there");
    let waiting = Waiting { reason: "Deleting".to_owned(), message, stalled: false };
    TanzuKubernetesClusterStatus {
        phase: Some(Phase::Deleting),
        waiting_for: Some(waiting.message.clone()),
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
    let stalled = report.assessment == Assessment::UpdateFailed;
    let current = current(report, stage);
    if let Some(blocked) = current.and_then(|stage| stage.blocked.first()) {
        return Some(Waiting { reason: blocked.reason().to_owned(), message: blocked.to_string(), stalled });
    }
    if let Some(stage) = current {
        let message = format!("the stage {} goes on", stage.stage);
        return Some(Waiting { reason: "Progressing".to_owned(), message, stalled });
    }
    let unwell = nodes(recorded).iter().find(|node| !node.ready)?;
    let message = format!("Node/{} is not ready", unwell.name);
    Some(Waiting { reason: "NodeNotReady".to_owned(), message, stalled: false })
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

fn addons(before: &TanzuKubernetesClusterStatus, recorded: &Recorded<'_>) -> BTreeMap<String, AddonStatus> {
    let release = &recorded.input.target.release;
    let status = |(name, addon): (&AddonName, &AddonRelease)| {
        (addon.slot.clone(), addon_status(before.addons.get(&addon.slot), name, addon, recorded))
    };
    release.addons.iter().map(status).collect()
}

/// An add-on that was neither written nor found complete now is what it was before.
fn addon_status(
    before: Option<&AddonStatus>,
    name: &AddonName,
    addon: &AddonRelease,
    recorded: &Recorded<'_>,
) -> AddonStatus {
    let known = before.filter(|before| before.name == addon.display_name);
    let version = known.and_then(|known| known.version.clone());
    let status = AddonStatus {
        name: addon.display_name.clone(),
        status: AddonPhase::Pending,
        version,
        last_error_message: None,
    };
    if let Some(failure) = recorded.executed.failure_of_addon(name.as_str()) {
        return AddonStatus {
            status: AddonPhase::Error,
            last_error_message: Some(failure.error.to_string()),
            ..status
        };
    }
    if is_applied(name, addon, recorded) {
        return AddonStatus { status: AddonPhase::Applied, version: Some(addon.version.clone()), ..status };
    }
    known.cloned().unwrap_or(status)
}

/// Whether all objects of an add-on are there, and none of them is to be changed: what was to be changed has been, as nothing
/// of it failed.
fn is_applied(name: &AddonName, addon: &AddonRelease, recorded: &Recorded<'_>) -> bool {
    let Workload::Reachable { addons, .. } = &recorded.input.inventory.workload else { return false };
    let planned = recorded.planned;
    let packages = planned.report.stages.iter().find(|stage| stage.stage == Stage::Packages);
    let held = packages.is_none_or(|stage| stage.state == StageState::Waiting) || recorded.executed.outdated;
    if held || matches!(planned.record, Some(Record::Begin { .. })) {
        return false;
    }
    let found = addons.get(name).map(Vec::as_slice).unwrap_or_default();
    let written = |object: &serde_json::Value| {
        let is_it = |step: &windlass_plan::step::Step| {
            step.stage == Stage::Packages
                && step.action.kind() == object["kind"].as_str().unwrap_or_default()
                && step.action.name() == object["metadata"]["name"].as_str().unwrap_or_default()
        };
        planned.steps.iter().any(is_it)
    };
    addon.objects.iter().all(|object| found.iter().any(|live| is_same(live, object)) || written(object))
}

fn is_same(found: &AddonObject, object: &serde_json::Value) -> bool {
    let name = |object: &serde_json::Value| {
        let metadata = &object["metadata"];
        (object["kind"].clone(), metadata["namespace"].clone(), metadata["name"].clone())
    };
    let (kind, namespace, of) = name(object);
    let live = name(&found.live);
    // A manifest may leave out the namespace; then it is the one that it was written to.
    live.0 == kind && live.2 == of && (namespace.is_null() || live.1 == namespace)
}
