//! `TopologyReconciled`: whether all is as the topology says, and what an upgrade is at.

use windlass_api::condition::ConditionType;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::reason::TopologyReason;

use super::upgrade::{Decision, Move};
use super::view::View;
use crate::management::conditions::Fact;
use crate::management::context::is_paused;

fn no(reason: TopologyReason, message: impl Into<String>) -> Fact {
    Fact::no(ConditionType::TopologyReconciled.as_str(), reason.as_str(), message)
}

/// Nobody touches the cluster.
pub(super) fn paused(cluster: &Cluster) -> Fact {
    let why = [
        (cluster.spec.paused == Some(true)).then_some("Cluster spec.paused is set to true"),
        is_paused(&cluster.metadata).then_some("Cluster has the cluster.x-k8s.io/paused annotation"),
    ];
    let why: Vec<&str> = why.into_iter().flatten().collect();
    no(TopologyReason::Paused, why.join(", "))
}

/// The cluster goes, or would if nobody held it.
pub(super) fn deleting(held: Option<&str>) -> Fact {
    let held = held.map(|held| format!(". Following hooks are blocking delete: {held}")).unwrap_or_default();
    no(TopologyReason::Deleting, format!("Cluster is deleting{held}"))
}

/// It cannot be done.
pub(super) fn failed(why: String) -> Fact {
    no(TopologyReason::ReconcileFailed, why)
}

/// Somebody holds it before anything of it is made.
pub(super) fn creation_held(held: &str) -> Fact {
    no(TopologyReason::ClusterCreating, format!("Following hooks are blocking Cluster topology creation: {held}"))
}

/// Nobody has looked at the class since it changed.
pub(super) fn class_not_reconciled() -> Fact {
    no(
        TopologyReason::ClusterClassNotReconciled,
        "ClusterClass not reconciled. If this condition persists please check ClusterClass status. A ClusterClass is reconciled \
         if .status.observedGeneration == .metadata.generation is true. If this is not the case either ClusterClass \
         reconciliation failed or the ClusterClass is paused",
    )
}

/// What a decision comes to.
pub(super) fn of(view: &View<'_>, decision: &Decision) -> Fact {
    if !decision.is_upgrading() {
        return Fact::yes(ConditionType::TopologyReconciled.as_str(), TopologyReason::ReconcileSucceeded.as_str());
    }
    let at = match &decision.control_plane {
        Move::To(version) => version.clone(),
        Move::Wait => view.control_plane.as_ref().map(|seen| seen.spec.version.clone()).unwrap_or_default(),
    };
    no(reason(decision), lines(&view.topology.version, &at, decision).join("\n  * "))
}

/// Only people hold it up.
fn reason(decision: &Decision) -> TopologyReason {
    let moves = decision.control_plane_upgrading || !decision.upgrading.is_empty() || !decision.pending.is_empty();
    if !decision.deferred.is_empty() && !moves && decision.blocked.is_none() {
        TopologyReason::MachineDeploymentsUpgradeDeferred
    } else {
        TopologyReason::ClusterUpgrading
    }
}

fn lines(target: &str, at: &str, decision: &Decision) -> Vec<String> {
    let mut lines = vec![format!("Cluster is upgrading to {target}")];
    if let Some(blocked) = &decision.blocked {
        lines.push(format!("Following hooks are blocking upgrade: {blocked}"));
    }
    let ahead = |plan: &[String]| {
        let rest: Vec<&str> = plan.iter().map(String::as_str).filter(|version| *version != at).collect();
        if rest.is_empty() { String::new() } else { format!(" ({} pending)", rest.join(", ")) }
    };
    let (cp, workers) = (&decision.control_plane_plan, &decision.workers_plan);
    if decision.control_plane_upgrading {
        lines.push(format!("KubeadmControlPlane upgrading to version {at}{}", ahead(cp)));
    } else if !cp.is_empty() {
        lines.push(format!("KubeadmControlPlane pending upgrade to version {}", cp.join(", ")));
    }
    if !decision.upgrading.is_empty() {
        lines.push(format!("{} upgrading to version {at}{}", named(&decision.upgrading), ahead(workers)));
    }
    if !decision.pending.is_empty() {
        lines.push(format!("{} pending upgrade to version {}", named(&decision.pending), workers.join(", ")));
    }
    if !decision.deferred.is_empty() {
        let those = named(&decision.deferred);
        lines.push(format!(
            "{those} upgrade to version {at} deferred using defer-upgrade or hold-upgrade-sequence annotations"
        ));
    }
    if !decision.pending_create.is_empty() {
        let those = named(&decision.pending_create);
        lines.push(format!("{those} creation deferred while control plane upgrade is in progress"));
    }
    lines
}

/// `MachineDeployment a`, or `MachineDeployments a, b, c, ... (2 more)`.
fn named(names: &[String]) -> String {
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    names.sort_unstable();
    match names.len() {
        1 => format!("MachineDeployment {}", names.join("")),
        count if count <= 3 => format!("MachineDeployments {}", names.join(", ")),
        count => {
            format!("MachineDeployments {}, ... ({} more)", names.get(..3).unwrap_or_default().join(", "), count - 3)
        }
    }
}
