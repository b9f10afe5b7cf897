//! The pools of workers. A pool is rolled by switching it to new templates in one write; Cluster API does the rest.

use serde_json::Value;
use windlass_api::name::Uid;

use super::case::{Case, Course};
use super::{StagePlan, pool_health, role};
use crate::change::{self, Effect, FieldChange};
use crate::gate::{self, Blocked, Gate};
use crate::inventory::{EarlierTemplate, Inventory, Pool};
use crate::render::classic;
use crate::render::workers::{PoolTemplates, changed_deployment, deployment, template_specs, templates};
use crate::render::{self, Scope};
use crate::report::StageState;
use crate::step::{Action, Place, Stage, Step};
use crate::target::{Drive, MachinesTarget, PoolTarget, PoolVersion};

pub(super) fn plan(case: &Case<'_>) -> StagePlan {
    let mut stage = StagePlan::done();
    // One pool at a time: the next is not rolled before this one is done.
    let mut ahead = None;
    for pool in &case.target.pools {
        let planned = pool_plan(case, pool, ahead.clone());
        if planned.state != StageState::Done {
            let replicas = pool.machines.count;
            let rolled = || Blocked::PoolRolling { pool: pool.name.clone(), up_to_date: 0, replicas };
            ahead = ahead.or_else(|| planned.blocked.first().cloned()).or_else(|| Some(rolled()));
        }
        stage.changes.extend(planned.changes);
        stage.steps.extend(planned.steps);
        let new: Vec<Blocked> = planned.blocked.into_iter().filter(|it| !stage.blocked.contains(it)).collect();
        stage.blocked.extend(new);
        if stage.state == StageState::Done || planned.state == StageState::Failed {
            stage.state = planned.state;
        }
    }
    stage
}

fn pool_plan(case: &Case<'_>, pool: &PoolTarget, ahead: Option<Blocked>) -> StagePlan {
    let scope = case.scope();
    let observed = case.inventory.pools.get(&pool.name);
    let different = observed.map_or_else(|| vec![change::new_pool(pool)], |it| change::pool(&scope, pool, it));
    let changes = change::lines(&different);
    if let Some(observed) = observed.filter(|_| changes.is_empty()) {
        return if is_at_rest(pool, observed) { StagePlan::done() } else { at_work(case, pool, observed, changes) };
    }
    let (Some(cluster), true) = (case.cluster_uid(), case.is_initialized()) else {
        return StagePlan::waiting(vec![Blocked::NoWorkloadApi], changes);
    };
    let replaced = observed.is_none() || (is_replacing(&different) && case.may_replace());
    if let Some(observed) =
        observed.filter(|observed| is_deferred(case, pool, observed) || is_pending(case, pool, observed))
    {
        return deferred(case, pool, observed, changes);
    }
    let mut blocked = case.held.clone();
    blocked.extend(ahead.filter(|_| replaced && observed.is_some()));
    blocked.extend(refusals(case, pool, observed, replaced));
    if let Some(observed) = observed.filter(|_| replaced) {
        blocked.extend(replacement_refusals(case, pool, observed));
    }
    if !blocked.is_empty() {
        return StagePlan::waiting(blocked, changes);
    }
    let steps = match observed {
        None => create(&scope, pool, cluster),
        Some(observed) if scope.target.fields.is_some() => brought(&scope, pool, observed, replaced),
        Some(observed) if replaced => switch(&scope, pool, observed, cluster),
        Some(observed) => vec![scale(&scope, pool, observed, cluster)],
    };
    StagePlan::ready(steps, changes)
}

/// Whether a pool should grow that keeps its version, and cannot: the control plane has left its minor behind. It grows when
/// it gets its new version, with a later hop; waiting for it here would be waiting for ever.
fn is_deferred(case: &Case<'_>, pool: &PoolTarget, observed: &Pool) -> bool {
    let control_plane = case.inventory.control_plane.kubeadm.as_ref();
    pool.version == PoolVersion::Kept
        && pool.machines.count > observed.replicas
        && control_plane.is_some_and(|it| it.version.minor() > observed.version.minor())
}

/// Whether a pool has all that it was asked for, and is only not made as Windlass would make it now.
fn is_pending(case: &Case<'_>, pool: &PoolTarget, observed: &Pool) -> bool {
    !case.may_replace() && pool.machines.count == observed.replicas
}

/// Cluster API rolls a pool.
fn at_work(case: &Case<'_>, pool: &PoolTarget, observed: &Pool, changes: Vec<String>) -> StagePlan {
    let (state, blocked) = pool_health::judge(case.now, pool, observed);
    StagePlan { state, ..StagePlan::running(blocked, changes) }
}

fn deferred(case: &Case<'_>, pool: &PoolTarget, observed: &Pool, changes: Vec<String>) -> StagePlan {
    let machines = MachinesTarget { count: observed.replicas, ..pool.machines.clone() };
    let as_it_is = PoolTarget { machines, ..pool.clone() };
    if is_at_rest(&as_it_is, observed) {
        return StagePlan { changes, ..StagePlan::done() };
    }
    at_work(case, &as_it_is, observed, changes)
}

/// The refusals to make workers at all: of the target's version, or of the one that a pool keeps.
fn refusals(case: &Case<'_>, pool: &PoolTarget, observed: Option<&Pool>, replaced: bool) -> Vec<Blocked> {
    let Case { target, inventory, gates, .. } = case;
    let from = observed.map(|pool| &pool.version);
    let version = from.filter(|_| !replaced).unwrap_or(&target.release.kubernetes);
    let control_plane = &inventory.control_plane;
    // A pool that shrinks makes none.
    let makes = replaced || observed.is_none_or(|observed| pool.machines.count > observed.replicas);
    let joins = || makes.then(|| gate::join_at_control_plane_version(version, control_plane)).flatten();
    [
        gates.ask(Gate::CertificatesPresent, || gate::certificates_present(&target.cluster.name, &inventory.secrets)),
        gates.ask(Gate::WorkerOrder, || gate::worker_order(version, from, &control_plane.machines)),
        // Only where Cluster API makes the machines: it joins none to a control plane of another minor.
        gates.ask(Gate::JoinAtControlPlaneVersion, || (target.drive != Drive::Machines).then(joins).flatten()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The refusals to replace the workers that there are. A new cluster's are not asked: its packages need nodes before they
/// can be well.
fn replacement_refusals(case: &Case<'_>, pool: &PoolTarget, observed: &Pool) -> Vec<Blocked> {
    let packages = case.gates.ask(Gate::PackagesFirst, || gate::packages_first(case.target, case.inventory));
    packages.into_iter().chain(taken(&case.scope(), pool, observed)).collect()
}

/// Whether the template that this update would make is the one that is there, with something else in it.
fn taken(scope: &Scope<'_>, pool: &PoolTarget, observed: &Pool) -> Option<Blocked> {
    let names = PoolTemplates::of(scope, pool);
    let [infrastructure, bootstrap] = template_specs(scope, pool);
    let profile = scope.target.pool_profile(&pool.name);
    let kinds = [
        (profile.template.as_str(), &names.infrastructure, infrastructure, &observed.infrastructure_template),
        ("KubeadmConfigTemplate", &names.bootstrap, bootstrap, &observed.bootstrap_template),
    ];
    kinds.into_iter().find_map(|(kind, name, desired, found)| {
        let other = found.spec.as_ref().is_some_and(|spec| !render::covers(&desired, spec));
        (found.name == *name && other).then(|| Blocked::TemplateTaken { template: format!("{kind}/{name}") })
    })
}

fn step(pool: &PoolTarget, action: Action, why: &str) -> Step {
    Step {
        stage: Stage::Workers,
        role: format!("{}/{}", role::pool(&pool.name), action.kind()),
        place: Place::Management,
        action,
        why: why.to_owned(),
    }
}

fn create(scope: &Scope<'_>, pool: &PoolTarget, cluster: &Uid) -> Vec<Step> {
    let object = deployment(scope, pool, &PoolTemplates::of(scope, pool), cluster);
    let objects = templates(scope, pool, [None, None], cluster).into_iter().chain([object]);
    objects.map(|object| step(pool, Action::Create { object }, "the cluster has an API to join")).collect()
}

/// What the release sets on a pool of its owner's.
fn brought(scope: &Scope<'_>, wanted: &PoolTarget, observed: &Pool, replaced: bool) -> Vec<Step> {
    let why = if replaced { "the control plane is ahead of it" } else { "the release has it so" };
    let rendered = classic::pool(scope, wanted, observed).into_iter();
    rendered.map(|it| step(wanted, it.action(&observed.revision), why)).collect()
}

/// New templates, and one write that switches to both and to the version.
fn switch(scope: &Scope<'_>, pool: &PoolTarget, observed: &Pool, cluster: &Uid) -> Vec<Step> {
    let why = "the control plane is ahead of it";
    let create = |object| step(pool, Action::Create { object }, why);
    let before = match scope.target.drive {
        Drive::Machines => [None, None],
        // Others may have made them, with more in them than we know.
        Drive::KubeadmControlPlane | Drive::Topology => {
            [observed.infrastructure_template.spec.as_ref(), observed.bootstrap_template.spec.as_ref()]
        }
    };
    let mut steps: Vec<Step> = templates(scope, pool, before, cluster).into_iter().map(create).collect();
    let object = changed(scope, pool, &PoolTemplates::of(scope, pool), cluster);
    steps.push(step(pool, Action::Apply { object, expect: Some(observed.revision.clone()) }, why));
    steps
}

/// What is written into a pool that is there. Where all of it is ours it is the whole.
fn changed(scope: &Scope<'_>, pool: &PoolTarget, templates: &PoolTemplates, cluster: &Uid) -> Value {
    match scope.target.drive {
        Drive::Machines => deployment(scope, pool, templates, cluster),
        Drive::KubeadmControlPlane | Drive::Topology => changed_deployment(scope, pool, templates),
    }
}

/// Another number of machines, made from the templates that there are.
fn scale(scope: &Scope<'_>, pool: &PoolTarget, observed: &Pool, cluster: &Uid) -> Step {
    let kept = PoolTemplates {
        infrastructure: observed.infrastructure_template.name.clone(),
        bootstrap: observed.bootstrap_template.name.clone(),
        version: observed.version.clone(),
    };
    let object = changed(scope, pool, &kept, cluster);
    step(
        pool,
        Action::Apply { object, expect: Some(observed.revision.clone()) },
        "another number of machines is wanted",
    )
}

/// Removes the templates of earlier updates, when all is at rest and nobody refers to them.
pub(super) fn tidy(case: &Case<'_>) -> Vec<Step> {
    if case.course != Course::Steady || !case.held.is_empty() || !case.is_settled() {
        return Vec::new();
    }
    let in_use = |template: &&EarlierTemplate| {
        let mut pools = case.inventory.pools.values();
        let control_plane = case.inventory.control_plane.kubeadm.as_ref();
        control_plane.is_some_and(|it| it.infrastructure_template.name == template.name)
            || pools.any(|pool| {
                [&pool.infrastructure_template.name, &pool.bootstrap_template.name].contains(&&template.name)
            })
    };
    let step = |template: &EarlierTemplate| Step {
        stage: Stage::Workers,
        role: role::EARLIER_TEMPLATE.to_owned(),
        place: Place::Management,
        action: Action::Delete {
            api_version: template.api_version.clone(),
            kind: template.kind.to_owned(),
            namespace: Some(case.target.cluster.namespace.to_string()),
            name: template.name.to_string(),
            expect: template.revision.clone(),
        },
        why: "no machine is made from it any more".to_owned(),
    };
    case.inventory.earlier_templates.iter().filter(|template| !in_use(template)).map(step).collect()
}

/// Whether a pool's machines have to be replaced.
pub(super) fn differs(scope: &Scope<'_>, inventory: &Inventory) -> bool {
    let is_replaced =
        |pool: &PoolTarget| inventory.pools.get(&pool.name).is_some_and(|observed| is_replaced(scope, pool, observed));
    scope.target.pools.iter().any(is_replaced)
}

fn is_replaced(scope: &Scope<'_>, pool: &PoolTarget, observed: &Pool) -> bool {
    is_replacing(&change::pool(scope, pool, observed))
}

/// A version that would be lowered is refused, and still is a change of machines.
pub(super) fn is_replacing(changes: &[FieldChange]) -> bool {
    changes.iter().any(|change| matches!(change.effect, Effect::Replaces | Effect::Refused))
}

/// Whether all machines of a pool are as they should be, and can be relied on.
pub(super) fn is_rolled(scope: &Scope<'_>, pool: &PoolTarget, inventory: &Inventory) -> bool {
    let observed = inventory.pools.get(&pool.name);
    observed.is_some_and(|observed| !is_replaced(scope, pool, observed) && is_at_rest(pool, observed))
}

pub(super) fn is_at_rest(pool: &PoolTarget, observed: &Pool) -> bool {
    let (count, progress) = (pool.machines.count, observed.progress);
    progress.observed
        && [observed.replicas, progress.replicas, progress.up_to_date, progress.available].iter().all(|n| *n == count)
}

pub(super) fn rolling(pool: &PoolTarget, observed: &Pool) -> Blocked {
    let Pool { progress, .. } = observed;
    // Counts about an earlier change say nothing about this one.
    let up_to_date = if progress.observed { progress.up_to_date.min(progress.available) } else { 0 };
    Blocked::PoolRolling { pool: pool.name.clone(), up_to_date, replicas: pool.machines.count }
}
