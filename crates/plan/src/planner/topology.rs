//! A cluster of a class. One write of its topology says what all of it should be; Cluster API derives the rest, in its order,
//! and says how far it is.
//!
//! The write belongs to the first stage that it changes something in: a pool that gets another class is rolled without a word
//! about the control plane.

use serde::Deserialize;
use windlass_api::kind::topology as wire;
use windlass_api::version::KubernetesVersion;

use super::case::Case;
use super::workers::is_replacing;
use super::{StagePlan, kubeadm_control_plane, pool_health, role, workers};
use crate::change::{self, FieldChange};
use crate::gate::{self, Blocked, Gate};
use crate::inventory::{ClusterState, Inventory, Pool};
use crate::render::Scope;
use crate::render::topology::{self as rendered, find};
use crate::report::StageState;
use crate::step::{Action, Place, Stage, Step};
use crate::target::{PoolTarget, PoolVersion};

/// What there is to be written.
enum Write {
    Nothing,
    Refused(Vec<Blocked>),
    Now(Box<Step>),
}

pub(super) fn control_plane(case: &Case<'_>) -> StagePlan {
    let live = match live(case.inventory) {
        Ok(live) => live,
        Err(blocked) => return StagePlan::waiting(vec![blocked], Vec::new()),
    };
    let changes = change::lines(&change::topology::control_plane(&case.scope(), &live));
    if !case.held.is_empty() {
        return StagePlan::waiting(case.held.clone(), changes);
    }
    match write(case, &live) {
        Write::Now(step) if step.stage == Stage::ControlPlane => StagePlan::ready(vec![*step], changes),
        Write::Refused(blocked) if !changes.is_empty() => StagePlan::waiting(blocked, changes),
        Write::Nothing | Write::Now(_) | Write::Refused(_) => settle(case),
    }
}

pub(super) fn pools(case: &Case<'_>) -> StagePlan {
    let live = match live(case.inventory) {
        Ok(live) => live,
        Err(blocked) => return StagePlan::waiting(vec![blocked], Vec::new()),
    };
    let scope = case.scope();
    let changes: Vec<FieldChange> = scope.target.pools.iter().flat_map(|pool| of_pool(case, pool, &live)).collect();
    let changes = change::lines(&changes);
    if !case.held.is_empty() {
        return StagePlan::waiting(case.held.clone(), changes);
    }
    match write(case, &live) {
        Write::Now(step) if step.stage == Stage::Workers => StagePlan::ready(vec![*step], changes),
        // The same write is about the pools, too.
        Write::Now(_) if !changes.is_empty() => StagePlan::ready(Vec::new(), changes),
        Write::Refused(blocked) if !changes.is_empty() => StagePlan::waiting(blocked, changes),
        Write::Nothing | Write::Now(_) | Write::Refused(_) => settle_pools(case, changes),
    }
}

/// The topology that is there.
fn live(inventory: &Inventory) -> Result<wire::Topology, Blocked> {
    let observed = inventory.topology.as_ref().ok_or(Blocked::ClusterAbsent)?;
    wire::Topology::deserialize(&observed.spec)
        .map_err(|error| Blocked::Gap { object: "Cluster".to_owned(), why: format!("spec.topology: {error}") })
}

/// The write that is needed, if it is and if it may be made.
fn write(case: &Case<'_>, live: &wire::Topology) -> Write {
    let scope = case.scope();
    let control_plane = change::topology::control_plane(&scope, live);
    let pools: Vec<FieldChange> = written_about_pools(&scope, live);
    let stage = match (control_plane.is_empty(), pools.is_empty()) {
        (true, true) => return Write::Nothing,
        (true, false) => Stage::Workers,
        (false, _) => Stage::ControlPlane,
    };
    let replaced = is_replacing(&control_plane) || is_replacing(&pools);
    let why = match (case.is_initialized(), replaced) {
        (false, _) => "the cluster is to be derived from it",
        (true, true) => "every package is ready, and the control plane is well",
        (true, false) => "another number of machines is wanted",
    };
    let blocked = match stage {
        Stage::ControlPlane | Stage::Packages => refusals(case, live, is_replacing(&control_plane)),
        Stage::Workers => pool_refusals(case, live, is_replacing(&pools)),
    };
    let Some(observed) = case.inventory.topology.as_ref().filter(|_| blocked.is_empty()) else {
        return Write::Refused(blocked);
    };
    let object = rendered::change(&scope, Some(live));
    Write::Now(Box::new(Step {
        stage,
        role: role::CLUSTER.to_owned(),
        place: Place::Management,
        action: Action::Apply { object, expect: Some(observed.revision.clone()) },
        why: why.to_owned(),
    }))
}

fn refusals(case: &Case<'_>, live: &wire::Topology, replaced: bool) -> Vec<Blocked> {
    let absent = absent(case, live);
    // Before the first machine there is nothing that could be unwell, and nowhere to put packages.
    if !case.is_initialized() {
        return absent.into_iter().collect();
    }
    let busy = case.gates.ask(Gate::OneControlPlaneUpdate, || unfinished(case).into_iter().next());
    let refusals = kubeadm_control_plane::replacement_refusals(case, replaced);
    absent.into_iter().chain(busy).chain(refusals).collect()
}

fn pool_refusals(case: &Case<'_>, live: &wire::Topology, replaced: bool) -> Vec<Blocked> {
    let Case { target, inventory, gates, .. } = case;
    let replaced = replaced && case.is_initialized();
    let makes = |pool: &PoolTarget| find(live, &pool.name).is_some_and(|it| it.replicas < Some(pool.machines.count));
    let makes = case.is_initialized() && (replaced || target.pools.iter().any(makes));
    let joins = || gate::join_at_control_plane_version(&target.release.kubernetes, &inventory.control_plane);
    let certificates = || gate::certificates_present(&target.cluster.name, &inventory.secrets);
    let refusals = [
        absent(case, live),
        gates.ask(Gate::CertificatesPresent, || makes.then(certificates).flatten()),
        gates.ask(Gate::PackagesFirst, || replaced.then(|| gate::packages_first(target, inventory)).flatten()),
        gates.ask(Gate::JoinAtControlPlaneVersion, || makes.then(joins).flatten()),
    ];
    refusals.into_iter().flatten().collect()
}

/// A pool that is not in the topology cannot be changed there, and what its class should be nobody knows.
fn absent(case: &Case<'_>, live: &wire::Topology) -> Option<Blocked> {
    let missing = case.target.pools.iter().find(|pool| find(live, &pool.name).is_none())?;
    Some(Blocked::PoolAbsent { pool: missing.name.clone() })
}

/// What Cluster API has not done yet of what the topology says now.
fn unfinished(case: &Case<'_>) -> Vec<Blocked> {
    let mut blocked = Vec::new();
    if let Some(observed) = &case.inventory.control_plane.kubeadm {
        blocked.extend(kubeadm_control_plane::rolling(observed));
    }
    let pending = case.inventory.topology.as_ref().and_then(|topology| topology.pending.clone());
    blocked.extend(pending.map(|why| Blocked::TopologyPending { why }));
    blocked
}

/// The topology says what it should about the control plane: what is left is to see its machines so, and well.
fn settle(case: &Case<'_>) -> StagePlan {
    let Some(observed) = &case.inventory.control_plane.kubeadm else {
        return StagePlan::running(vec![pending(case)], Vec::new());
    };
    let mut blocked = Vec::new();
    // What is pending may be about pools only; those that are not at rest speak for themselves.
    let is_resting = |pool: &PoolTarget| is_rolled(case, pool);
    if observed.version != case.target.release.kubernetes || case.target.pools.iter().all(is_resting) {
        let pending = case.inventory.topology.as_ref().and_then(|topology| topology.pending.clone());
        blocked.extend(pending.map(|why| Blocked::TopologyPending { why }));
    }
    if observed.version != case.target.release.kubernetes && blocked.is_empty() {
        blocked.push(pending(case));
    }
    blocked.extend(kubeadm_control_plane::unsettled(case, observed));
    if blocked.is_empty() { StagePlan::done() } else { StagePlan::running(blocked, Vec::new()) }
}

fn pending(case: &Case<'_>) -> Blocked {
    let why = case.inventory.topology.as_ref().and_then(|topology| topology.pending.clone());
    Blocked::TopologyPending { why: why.unwrap_or_else(|| "its control plane is not derived yet".to_owned()) }
}

fn settle_pools(case: &Case<'_>, changes: Vec<String>) -> StagePlan {
    let unrolled = |pool: &&PoolTarget| !is_rolled(case, pool);
    let rolling = |pool: &PoolTarget| match case.inventory.pools.get(&pool.name) {
        Some(observed) if observed.version == wanted(case, pool, observed) => {
            pool_health::judge(case.now, pool, observed)
        }
        _ => {
            let begins = Blocked::PoolRolling { pool: pool.name.clone(), up_to_date: 0, replicas: pool.machines.count };
            (StageState::Running, vec![begins])
        }
    };
    let (states, blocked): (Vec<StageState>, Vec<Vec<Blocked>>) =
        case.target.pools.iter().filter(unrolled).map(rolling).unzip();
    if blocked.is_empty() {
        return StagePlan::done();
    }
    let gave_up = states.contains(&StageState::Failed);
    let state = if gave_up { StageState::Failed } else { StageState::Running };
    StagePlan { state, ..StagePlan::running(blocked.concat(), changes) }
}

fn wanted(case: &Case<'_>, pool: &PoolTarget, observed: &Pool) -> KubernetesVersion {
    match pool.version {
        PoolVersion::Release => case.target.release.kubernetes.clone(),
        PoolVersion::Kept => observed.version.clone(),
    }
}

fn is_rolled(case: &Case<'_>, pool: &PoolTarget) -> bool {
    let observed = case.inventory.pools.get(&pool.name);
    observed.is_some_and(|it| it.version == wanted(case, pool, it) && workers::is_at_rest(pool, it))
}

/// Whether machines have to be replaced. A topology that is not a cluster yet is only filled in.
pub(super) fn differs(scope: &Scope<'_>, inventory: &Inventory) -> bool {
    let is_cluster = matches!(inventory.cluster, ClusterState::Present { initialized: true, .. });
    let Some(live) = live(inventory).ok().filter(|_| is_cluster) else { return false };
    is_replacing(&change::topology::control_plane(scope, &live)) || is_replacing(&written_about_pools(scope, &live))
}

/// What has to be written about the pools.
fn written_about_pools(scope: &Scope<'_>, live: &wire::Topology) -> Vec<FieldChange> {
    scope.target.pools.iter().flat_map(|pool| change::topology::pool(scope, pool, live)).collect()
}

/// What will change about a pool, written by us or not.
fn of_pool(case: &Case<'_>, pool: &PoolTarget, live: &wire::Topology) -> Vec<FieldChange> {
    let scope = case.scope();
    let observed = case.inventory.pools.get(&pool.name);
    let version = observed.and_then(|observed| change::topology::pool_version(&scope, pool, observed));
    version.into_iter().chain(change::topology::pool(&scope, pool, live)).collect()
}

/// How many machines the topology says that the control plane should have.
pub(super) fn replicas(inventory: &Inventory) -> Option<u32> {
    live(inventory).ok().and_then(|live| live.control_plane.replicas)
}

/// Whether machines are still to join the control plane.
pub(super) fn joins_are_coming(scope: &Scope<'_>, inventory: &Inventory) -> bool {
    let changes = live(inventory).map(|live| change::topology::control_plane(scope, &live)).unwrap_or_default();
    let count = scope.target.control_plane.count;
    let observed = inventory.control_plane.kubeadm.as_ref();
    is_replacing(&changes)
        || observed.map_or(count > 1, |it| it.replicas < count || it.progress.up_to_date < it.replicas)
}

/// Whether all that the topology should say is said, and done.
pub(super) fn is_settled(case: &Case<'_>) -> bool {
    let Ok(live) = live(case.inventory) else { return false };
    let Some(control_plane) = &case.inventory.control_plane.kubeadm else { return false };
    matches!(write(case, &live), Write::Nothing)
        && unfinished(case).is_empty()
        && control_plane.version == case.target.release.kubernetes
        && case.target.pools.iter().all(|pool| is_rolled(case, pool))
}
