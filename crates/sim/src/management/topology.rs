//! Managed topologies: from `Cluster.spec.topology` and a `ClusterClass` to all that a cluster is made of.
//!
//! ```text
//! class + templates ─▶ blueprint ─▶ variables, patches ─▶ desired ─┐
//! what there is ─▶ upgrade: which part may have which version ─────┴─▶ apply ─▶ TopologyReconciled
//! ```
//! A change of version goes to the control plane first, and to the pools when that is stable, a few at a time. A part that waits
//! for a version is not changed at all. Templates are never changed: another one is made, and the reference to it.

mod apply;
mod blueprint;
mod class;
mod condition;
mod desired;
mod hook;
mod lookup;
mod name;
mod patch;
mod upgrade;
mod upgrade_plan;
mod variable;
mod view;

use windlass_api::kind::cluster_api::{Cluster, UpgradeStep};
use windlass_api::kind::control_plane::KubeadmControlPlane;
use windlass_api::kind::topology::{ClusterClassSpec, TemplateReference, Topology};
use windlass_runtime::runner::Outcome;

use super::conditions::{self, Fact};
use super::context::{Error, Turn, deleting, is_paused};
use super::extension::PATIENCE;
use super::write;
pub(super) use apply::Applied;
use blueprint::Blueprint;
pub(super) use class::reconcile as reconcile_class;
pub(super) use hook::holds_deletion;
use upgrade::{Decision, State};
use view::View;

/// Why a topology cannot be brought forward, for people.
#[derive(Debug, PartialEq, Eq)]
struct Refusal(String);

/// Why a topology was not brought forward.
enum Stop {
    /// It cannot be, as it is.
    Refused(Refusal),
    /// Whoever has to be asked did not answer.
    Unanswered(String),
    /// Something went wrong on the way.
    Failed(Error),
}

/// What a topology is to become now, and what that was decided by.
struct Decided {
    state: State,
    decision: Decision,
}

/// What came of a look.
struct Looked {
    /// The Cluster, if it was changed.
    changed: Option<Cluster>,
    fact: Fact,
    outcome: Outcome,
}

impl Looked {
    fn only(fact: Fact) -> Self {
        Self { changed: None, fact, outcome: Outcome::done() }
    }
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// Brings what a Cluster is made of forward.
pub(super) async fn reconcile(turn: &Turn, cluster: &Cluster) -> Result<Outcome, Error> {
    let Some(topology) = &cluster.spec.topology else { return Ok(Outcome::done()) };
    let looked = match () {
        () if cluster.spec.paused == Some(true) || is_paused(&cluster.metadata) => {
            Ok(Looked::only(condition::paused(cluster)))
        }
        () if deleting(&cluster.metadata) => let_go(turn, cluster).await,
        () => bring_forward(turn, cluster, topology).await,
    };
    let looked = match looked {
        Ok(looked) => looked,
        Err(Stop::Refused(Refusal(why))) => Looked::only(condition::failed(why)),
        Err(Stop::Unanswered(why)) => {
            Looked { outcome: Outcome::requeue_after(PATIENCE), ..Looked::only(condition::failed(why)) }
        }
        Err(Stop::Failed(error)) => return Err(error),
    };
    say(turn, looked.changed.as_ref().unwrap_or(cluster), looked.fact).await?;
    Ok(looked.outcome)
}

/// Asks whoever wants to be asked before a Cluster goes.
async fn let_go(turn: &Turn, cluster: &Cluster) -> Result<Looked, Stop> {
    let held = hook::before_delete(turn, cluster).await?;
    let fact = condition::deleting(held.as_ref().map(|(held, _)| held.as_str()));
    let outcome = held.map_or_else(Outcome::done, |(_, after)| Outcome::requeue_after(after));
    Ok(Looked { outcome, ..Looked::only(fact) })
}

/// One look: what there is, what each part may become, and the writes that lead there.
async fn bring_forward(turn: &Turn, cluster: &Cluster, topology: &Topology) -> Result<Looked, Stop> {
    let class = class::of(turn, cluster, topology)?;
    if class.status.as_ref().and_then(|status| status.observed_generation) != class.metadata.generation {
        return Ok(Looked::only(condition::class_not_reconciled()));
    }
    if let Some((held, after)) = hook::before_create(turn, cluster).await? {
        return Ok(Looked { outcome: Outcome::requeue_after(after), ..Looked::only(condition::creation_held(&held)) });
    }
    let told = hook::after_initialized(turn, cluster).await?;
    let cluster = told.as_ref().unwrap_or(cluster);
    let blueprint = Blueprint::of(turn, &class)?;
    let view = View::of(turn, cluster, topology, &blueprint);
    let decided = hook::decide(&view).await?;
    let changed = apply::all(&view, &decided).await?;
    let fact = condition::of(&view, &decided.decision);
    let outcome = hook::patience(&decided.state).map_or_else(Outcome::done, Outcome::requeue_after);
    Ok(Looked { changed: changed.or_else(|| told.clone()), fact, outcome })
}

async fn say(turn: &Turn, cluster: &Cluster, fact: Fact) -> Result<(), Error> {
    let mut all = cluster.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default();
    let before = all.clone();
    conditions::set(&mut all, fact, cluster.metadata.generation, &turn.now());
    if all != before {
        write::conditions(turn, cluster, &all).await?;
    }
    Ok(())
}

/// The versions that a control plane still has to go through; none where no topology says so.
pub(super) fn ahead(turn: &Turn, cluster: &Cluster, control_plane: &KubeadmControlPlane) -> Vec<UpgradeStep> {
    let Some(topology) = &cluster.spec.topology else { return Vec::new() };
    let offered =
        class::of(turn, cluster, topology).map(|class| class.spec.kubernetes_versions.clone()).unwrap_or_default();
    let versions = upgrade_plan::control_plane(&control_plane.spec.version, &topology.version, &offered);
    versions.into_iter().map(|version| UpgradeStep { version }).collect()
}

/// All templates that a class refers to.
pub(super) fn references(class: &ClusterClassSpec) -> Vec<&TemplateReference> {
    let machines = class.control_plane.machine_infrastructure.as_ref().map(|part| &part.template_ref);
    let pools = class.workers.machine_deployments.iter();
    let pools = pools.flat_map(|pool| [&pool.bootstrap.template_ref, &pool.infrastructure.template_ref]);
    [&class.infrastructure.template_ref, &class.control_plane.template_ref]
        .into_iter()
        .chain(machines)
        .chain(pools)
        .collect()
}
