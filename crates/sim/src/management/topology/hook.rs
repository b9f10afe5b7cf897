//! What extensions are asked about a topology, and when.

use std::time::Duration;

use serde_json::json;
use windlass_api::annotation;
use windlass_api::hook::{HookName, Question};
use windlass_api::kind::cluster_api::{Cluster, UpgradeStep};

use super::upgrade::{self, Decision, State};
use super::view::View;
use super::{Decided, Stop};
use crate::management::context::Turn;
use crate::management::extension::{self, Reply};
use crate::management::write;

/// Decides, and asks on the way what has to be known for it.
pub(super) async fn decide(view: &View<'_>) -> Result<Decided, Stop> {
    let mut state = view.state();
    planned(view, &mut state).await?;
    loop {
        let decision = upgrade::decide(&state);
        let Some(hook) = decision.asks else { return Ok(Decided { state, decision }) };
        let reply = ask(view.turn, hook, &question(view, hook, &state, &decision)).await?;
        state.replies.insert(hook, reply);
    }
}

/// How soon somebody who holds a topology wants to be asked again.
pub(super) fn patience(state: &State) -> Option<Duration> {
    let wanted = |reply: &Reply| match reply {
        Reply::Held { after, .. } => Some(*after),
        Reply::Open(_) => None,
    };
    state.replies.values().filter_map(wanted).min()
}

pub(super) async fn ask(turn: &Turn, hook: HookName, question: &Question) -> Result<Reply, Stop> {
    extension::ask(turn, hook, question).await.map_err(Stop::Unanswered)
}

fn question(view: &View<'_>, hook: HookName, state: &State, decision: &Decision) -> Question {
    let at = view.control_plane.as_ref().map(|seen| seen.spec.version.clone());
    let steps = |versions: &[String]| -> Vec<UpgradeStep> {
        versions.iter().map(|version| UpgradeStep { version: version.clone() }).collect()
    };
    let (from, to, reached) = match hook {
        HookName::BeforeClusterUpgrade => (at, Some(state.target.clone()), None),
        HookName::BeforeControlPlaneUpgrade => (at, decision.control_plane_plan.first().cloned(), None),
        HookName::BeforeWorkersUpgrade => {
            let from = state.pools.iter().filter_map(|pool| pool.version.clone()).min();
            (from, decision.workers_plan.first().cloned(), None)
        }
        _ => (None, None, at),
    };
    Question {
        from_kubernetes_version: from,
        to_kubernetes_version: to,
        kubernetes_version: reached,
        control_plane_upgrades: steps(&decision.control_plane_plan),
        workers_upgrades: steps(&decision.workers_plan),
        ..Question::about(hook, view.cluster.clone())
    }
}

/// The versions of an upgrade, where the class says that somebody else plans it.
async fn planned(view: &View<'_>, state: &mut State) -> Result<(), Stop> {
    let external = view.blueprint.class.spec.upgrade.as_ref().and_then(|upgrade| upgrade.external.as_ref());
    let is_asked = external.is_some_and(|external| external.generate_upgrade_plan_extension.is_some());
    let Some(at) = view.control_plane.as_ref().map(|seen| seen.spec.version.clone()).filter(|_| is_asked) else {
        return Ok(());
    };
    let hook = HookName::GenerateUpgradePlan;
    let namespace = view.cluster.metadata.namespace.as_deref().unwrap_or_default();
    if at == state.target || !extension::is_answered(view.turn, hook, namespace) {
        return Ok(());
    }
    let workers = state.pools.iter().filter_map(|pool| pool.version.clone()).min();
    let question = Question {
        from_control_plane_kubernetes_version: Some(at),
        from_workers_kubernetes_version: workers,
        to_kubernetes_version: Some(state.target.clone()),
        ..Question::about(hook, view.cluster.clone())
    };
    if let Reply::Open(answer) = ask(view.turn, hook, &question).await? {
        state.offered = answer.control_plane_upgrades.into_iter().map(|step| step.version).collect();
    }
    Ok(())
}

/// What holds the creation of a topology of which nothing is there yet.
pub(super) async fn before_create(turn: &Turn, cluster: &Cluster) -> Result<Option<(String, Duration)>, Stop> {
    if cluster.spec.infrastructure_ref.is_some() || cluster.spec.control_plane_ref.is_some() {
        return Ok(None);
    }
    let hook = HookName::BeforeClusterCreate;
    Ok(match ask(turn, hook, &Question::about(hook, cluster.clone())).await? {
        Reply::Open(_) => None,
        Reply::Held { message, after } => Some((format!("{hook}: {message}"), after)),
    })
}

/// Tells whoever wants to know that the control plane answers, once.
pub(super) async fn after_initialized(turn: &Turn, cluster: &Cluster) -> Result<Option<Cluster>, Stop> {
    let hook = HookName::AfterControlPlaneInitialized;
    let namespace = cluster.metadata.namespace.as_deref().unwrap_or_default();
    let reached = cluster.status.as_ref().and_then(|status| status.initialization.as_ref());
    let told = cluster.metadata.annotations.as_ref().is_some_and(|all| annotation::TOLD_INITIALIZED.is_in(all));
    let is_due = reached.is_some_and(|reached| reached.control_plane_initialized) && !told;
    if !is_due || !extension::is_answered(turn, hook, namespace) {
        return Ok(None);
    }
    ask(turn, hook, &Question::about(hook, cluster.clone())).await?;
    let change = json!({"metadata": {"annotations": {annotation::TOLD_INITIALIZED.name: ""}}});
    Ok(Some(write::patch(turn, cluster, change).await?))
}

/// Whether somebody still has to agree before a Cluster of a topology goes.
pub(in crate::management) fn holds_deletion(turn: &Turn, cluster: &Cluster) -> bool {
    let annotations = cluster.metadata.annotations.as_ref();
    let agreed = annotations.is_some_and(|annotations| annotation::OK_TO_DELETE.is_in(annotations));
    let namespace = cluster.metadata.namespace.as_deref().unwrap_or_default();
    let is_asked = || extension::is_answered(turn, HookName::BeforeClusterDelete, namespace);
    cluster.spec.topology.is_some() && !agreed && is_asked()
}

/// Asks whether a Cluster may go, and writes down that it may; what holds it otherwise.
pub(super) async fn before_delete(turn: &Turn, cluster: &Cluster) -> Result<Option<(String, Duration)>, Stop> {
    if !holds_deletion(turn, cluster) {
        return Ok(None);
    }
    let hook = HookName::BeforeClusterDelete;
    match ask(turn, hook, &Question::about(hook, cluster.clone())).await? {
        Reply::Held { message, after } => Ok(Some((format!("{hook}: {message}"), after))),
        Reply::Open(_) => {
            let change = json!({"metadata": {"annotations": {annotation::OK_TO_DELETE.name: ""}}});
            write::patch(turn, cluster, change).await?;
            Ok(None)
        }
    }
}
