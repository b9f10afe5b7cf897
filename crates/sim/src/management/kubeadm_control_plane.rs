//! The kubeadm control-plane provider: machines of a control plane, made and replaced one at a time.
//!
//! ```text
//! certificates ─▶ kubeconfig ─▶ look at machines, components and etcd ─▶ tell the machines ─▶ let machines go ─▶ one step
//! ```
//! The order is Cluster API's. Nothing is done while a machine leaves, has no node, or has a component that is not well.

mod addons;
mod adoption;
mod domain;
mod etcd;
mod handing;
mod health;
mod kubeadm_config;
mod machine;
mod outdated;
mod plan;
mod remediation;
mod removal;
mod status;
mod view;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::control_plane::KubeadmControlPlane;
use windlass_runtime::key::Key;
use windlass_runtime::runner::Outcome;

use super::context::{Error, Turn, deleting};
use super::machine_deployment::adopt_template;
use super::ownership::{controlled_by, controller, with_finalizer};
use super::{pause, secret, write};
pub(super) use health::Components;
use health::Sight;
use plan::Step;
use view::View;
pub(super) use wire::Wire;

/// What holds up the deletion of a control plane.
const FINALIZER: &str = "kubeadm.controlplane.cluster.x-k8s.io";

/// How soon a workload API that did not answer is asked again, if no component tells of itself before: as long as Cluster API
/// waits after a preflight that failed.
const UNREACHABLE_PAUSE: Duration = Duration::from_secs(15);

/// Brings a control plane forward.
pub(super) async fn reconcile(turn: &Turn, object: &KubeadmControlPlane) -> Result<Outcome, Error> {
    let cluster = owner(turn, object);
    if let Some(outcome) = pause::held(turn, object, cluster.as_deref()).await? {
        return Ok(outcome);
    }
    let Some(cluster) = cluster else { return Ok(Outcome::done()) };
    if deleting(&object.metadata) {
        return removal::reconcile(turn, object, &cluster).await;
    }
    if deleting(&cluster.metadata) {
        return Ok(Outcome::done());
    }
    let held = hold(turn, object).await?;
    let object = held.as_ref().unwrap_or(object);
    adopt_template(turn, &cluster, &object.spec.machine_template.spec.infrastructure_ref).await?;

    let reached = cluster.status.as_ref().and_then(|status| status.initialization.clone()).unwrap_or_default();
    if !reached.infrastructure_provisioned {
        return Ok(Outcome::done());
    }
    secret::ensure_certificates(turn, &cluster, &controlled_by(object)).await?;
    if cluster.spec.control_plane_endpoint.is_none() {
        return Ok(Outcome::done());
    }
    secret::ensure_kubeconfig(turn, &cluster, controlled_by(object)).await?;

    if !adoption::machines(turn, object, &cluster).await? {
        return Ok(Outcome::done());
    }
    let Some(view) = View::of(turn, object, &cluster).await? else { return Ok(Outcome::done()) };
    if remediation::settle(turn, &view).await? || handing::on(turn, &view).await? {
        // What was written will be heard of.
        return Ok(Outcome::done());
    }
    roll(turn, &view).await
}

/// What is done with the machines, in Cluster API's order: they are told how they are, those that go are let go, one that is ill
/// is replaced, and else one step is taken towards what is asked for.
async fn roll(turn: &Turn, view: &View<'_>) -> Result<Outcome, Error> {
    status::tell_machines(turn, view).await?;
    etcd::remove_orphans(turn, view)?;
    etcd::release(turn, view).await?;
    let verdict = remediation::decide(view, turn.clock.now());
    if let Some(verdict) = &verdict
        && remediation::act(turn, view, verdict).await?
    {
        // It was written on the control plane, which is looked at again for that.
        return Ok(Outcome::done());
    }
    let step = plan::next(view);
    let taken = take(turn, view, &step).await;
    status::say(turn, view, &step).await?;
    taken?;
    let later = match verdict {
        Some(remediation::Verdict::Later(_, _, pause)) => pause,
        Some(remediation::Verdict::Never(..) | remediation::Verdict::Replace(..)) | None => None,
    };
    Ok(again(turn, view, later))
}

/// The Cluster that looks after it.
fn owner(turn: &Turn, object: &KubeadmControlPlane) -> Option<Arc<Cluster>> {
    let name = controller::<Cluster>(&object.metadata)?;
    turn.caches.clusters.get(&Key { namespace: object.metadata.namespace.clone(), name: name.to_owned() })
}

async fn hold(turn: &Turn, object: &KubeadmControlPlane) -> Result<Option<KubeadmControlPlane>, Error> {
    match with_finalizer(&object.metadata, FINALIZER) {
        None => Ok(None),
        Some(finalizers) => write::patch(turn, object, json!({"metadata": {"finalizers": finalizers}})).await.map(Some),
    }
}

/// Takes a step. A template that is not there yet will be heard of.
async fn take(turn: &Turn, view: &View<'_>, step: &Step<'_>) -> Result<(), Error> {
    match step {
        Step::Rest if view.initialized() => addons::follow(turn, view).await,
        Step::Rest | Step::Wait(_) => Ok(()),
        Step::Begin => machine::create(turn, view, &wire::begins(&view.wish)).await,
        Step::Grow => {
            prepare(turn, view).await?;
            machine::create(turn, view, &wire::joins(&view.wish)).await
        }
        Step::Shrink(replica) => {
            prepare(turn, view).await?;
            etcd::forward_leadership(turn, view, replica)?;
            write::delete(turn, &*replica.machine).await
        }
    }
}

/// Before machines are replaced, what they read when they join is.
async fn prepare(turn: &Turn, view: &View<'_>) -> Result<(), Error> {
    if view.outdated().next().is_some() { kubeadm_config::prepare(turn, view).await } else { Ok(()) }
}

/// When to look again, where nobody will tell.
fn again(turn: &Turn, view: &View<'_>, later: Option<Duration>) -> Outcome {
    let now = turn.clock.now();
    let by_time = view.replicas.iter().filter_map(|replica| outdated::next_by_time(view.object, &replica.machine, now));
    let by_time = by_time.min().and_then(|at: Timestamp| Duration::try_from(at.duration_since(now)).ok());
    let unreachable = view.initialized() && matches!(view.sight, Sight::Unreachable);
    match unreachable.then_some(UNREACHABLE_PAUSE).into_iter().chain(by_time).chain(later).min() {
        Some(pause) => Outcome::requeue_after(pause),
        None => Outcome::done(),
    }
}
