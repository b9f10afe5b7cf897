//! The pools of workers. A pool is rolled by switching it to new templates in one write; Cluster API does the rest.

use serde_json::Value;
use windlass_api::name::Uid;

use super::case::Case;
use super::{StagePlan, role};
use crate::gate::{self, Blocked, Gate};
use crate::inventory::{Inventory, Pool};
use crate::render::workers::{PoolTemplates, deployment, template_specs, templates};
use crate::render::{self, Scope};
use crate::report::StageState;
use crate::step::{Action, Place, Stage, Step};
use crate::target::PoolTarget;

pub(super) fn plan(case: &Case<'_>) -> StagePlan {
    let mut stage = StagePlan::done();
    for pool in &case.target.pools {
        // One pool at a time: the next is not touched before this one is done.
        let ahead = stage.blocked.first().cloned().filter(|_| stage.state != StageState::Done);
        let planned = pool_plan(case, pool, ahead);
        stage.changes.extend(planned.changes);
        stage.steps.extend(planned.steps);
        stage.blocked.extend(planned.blocked);
        if stage.state == StageState::Done {
            stage.state = planned.state;
        }
    }
    stage
}

fn pool_plan(case: &Case<'_>, pool: &PoolTarget, ahead: Option<Blocked>) -> StagePlan {
    let scope = case.scope();
    let observed = case.inventory.pools.get(&pool.name);
    let changes =
        observed.map_or_else(|| vec![format!("{}: new", role::pool(&pool.name))], |it| changes(&scope, pool, it));
    if let Some(observed) = observed.filter(|_| changes.is_empty()) {
        return if is_at_rest(pool, observed) {
            StagePlan::done()
        } else {
            StagePlan::running(vec![rolling(pool, observed)], changes)
        };
    }
    let (Some(cluster), true) = (case.cluster_uid(), case.is_initialized()) else {
        return StagePlan::waiting(vec![Blocked::NoWorkloadApi], changes);
    };
    let replaced = observed.is_none_or(|observed| is_replaced(&scope, pool, observed));
    let mut blocked = case.held.clone();
    blocked.extend(ahead);
    blocked.extend(refusals(case, observed.filter(|_| !replaced)));
    if let Some(observed) = observed.filter(|_| replaced) {
        blocked.extend(replacement_refusals(case, pool, observed));
    }
    if !blocked.is_empty() {
        return StagePlan::waiting(blocked, changes);
    }
    let steps = match observed {
        None => create(&scope, pool, cluster),
        Some(observed) if replaced => switch(&scope, pool, observed, cluster),
        Some(observed) => vec![scale(&scope, pool, observed, cluster)],
    };
    StagePlan::ready(steps, changes)
}

/// The refusals to make workers at all: of the target's version, or of the one that a pool keeps.
fn refusals(case: &Case<'_>, kept: Option<&Pool>) -> Vec<Blocked> {
    let Case { target, inventory, gates, .. } = case;
    let version = kept.map_or(&target.release.kubernetes, |pool| &pool.version);
    [
        gates.ask(Gate::CertificatesPresent, || gate::certificates_present(&target.cluster.name, inventory)),
        gates.ask(Gate::WorkerOrder, || gate::worker_order(version, inventory)),
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
    let kinds = [
        ("WCPMachineTemplate", &names.infrastructure, infrastructure, &observed.infrastructure_template),
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
    let objects = templates(scope, pool, cluster).into_iter().chain([object]);
    objects.map(|object| step(pool, Action::Create { object }, "the cluster has an API to join")).collect()
}

/// New templates, and one write that switches to both and to the version.
fn switch(scope: &Scope<'_>, pool: &PoolTarget, observed: &Pool, cluster: &Uid) -> Vec<Step> {
    let why = "the control plane is ahead of it";
    let create = |object| step(pool, Action::Create { object }, why);
    let mut steps: Vec<Step> = templates(scope, pool, cluster).into_iter().map(create).collect();
    let object = deployment(scope, pool, &PoolTemplates::of(scope, pool), cluster);
    steps.push(step(pool, Action::Apply { object, expect: Some(observed.revision.clone()) }, why));
    steps
}

/// Another number of machines, made from the templates that there are.
fn scale(scope: &Scope<'_>, pool: &PoolTarget, observed: &Pool, cluster: &Uid) -> Step {
    let kept = PoolTemplates {
        infrastructure: observed.infrastructure_template.name.clone(),
        bootstrap: observed.bootstrap_template.name.clone(),
        version: observed.version.clone(),
    };
    let object = deployment(scope, pool, &kept, cluster);
    step(
        pool,
        Action::Apply { object, expect: Some(observed.revision.clone()) },
        "another number of machines is wanted",
    )
}

/// Whether a pool's machines have to be replaced.
pub(super) fn differs(scope: &Scope<'_>, inventory: &Inventory) -> bool {
    let is_replaced =
        |pool: &PoolTarget| inventory.pools.get(&pool.name).is_some_and(|observed| is_replaced(scope, pool, observed));
    scope.target.pools.iter().any(is_replaced)
}

fn is_replaced(scope: &Scope<'_>, pool: &PoolTarget, observed: &Pool) -> bool {
    let [infrastructure, bootstrap] = template_specs(scope, pool);
    let is = |desired, template: &crate::inventory::Template| {
        template.spec.as_ref().is_some_and(|spec| render::covers(desired, spec))
    };
    observed.version != scope.target.release.kubernetes
        || !is(&infrastructure, &observed.infrastructure_template)
        || !is(&bootstrap, &observed.bootstrap_template)
}

/// Whether all machines of a pool are as they should be, and can be relied on.
pub(super) fn is_rolled(scope: &Scope<'_>, pool: &PoolTarget, inventory: &Inventory) -> bool {
    let observed = inventory.pools.get(&pool.name);
    observed.is_some_and(|observed| !is_replaced(scope, pool, observed) && is_at_rest(pool, observed))
}

fn is_at_rest(pool: &PoolTarget, observed: &Pool) -> bool {
    let (count, progress) = (pool.machines.count, observed.progress);
    progress.observed
        && [observed.replicas, progress.replicas, progress.up_to_date, progress.available].iter().all(|n| *n == count)
}

fn rolling(pool: &PoolTarget, observed: &Pool) -> Blocked {
    let Pool { progress, .. } = observed;
    // Counts about an earlier change say nothing about this one.
    let up_to_date = if progress.observed { progress.up_to_date.min(progress.available) } else { 0 };
    Blocked::PoolRolling { pool: pool.name.clone(), up_to_date, replicas: pool.machines.count }
}

/// What will change about a pool: one line if its machines are replaced, one if their number changes.
fn changes(scope: &Scope<'_>, pool: &PoolTarget, observed: &Pool) -> Vec<String> {
    let release = &scope.target.release;
    let (mut lines, mut fields) = (Vec::new(), Vec::new());
    if observed.version != release.kubernetes {
        lines.push(format!("version {} -> {}", observed.version, release.kubernetes));
        fields.push("version");
    }
    let [infrastructure, bootstrap] = template_specs(scope, pool);
    let live = observed.infrastructure_template.spec.as_ref();
    for (field, word) in [("imageName", "image"), ("className", "class"), ("storageClass", "storage class")] {
        let text = |spec: Option<&Value>| spec.and_then(|spec| spec[field].as_str()).unwrap_or("nothing").to_owned();
        let (is, should_be) = (text(live), text(Some(&infrastructure)));
        if is != should_be {
            lines.push(format!("{word} {is} -> {should_be}"));
            fields.push(field);
        }
    }
    if !observed.bootstrap_template.spec.as_ref().is_some_and(|spec| render::covers(&bootstrap, spec)) {
        lines.push("another bootstrap configuration".to_owned());
        fields.push("bootstrap");
    }
    let role = role::pool(&pool.name);
    let mut changes = Vec::new();
    if !fields.is_empty() {
        changes.push(format!("{role}: {}, forces replacement: {}", lines.join(", "), fields.join(", ")));
    }
    if observed.replicas != pool.machines.count {
        changes.push(format!("{role}: replicas {} -> {}", observed.replicas, pool.machines.count));
    }
    changes
}
