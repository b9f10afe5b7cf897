//! A control plane that Cluster API rolls. One write says what its machines should be; the rest is waiting.

use windlass_api::name::Uid;

use super::case::Case;
use super::workers::is_replacing;
use super::{StagePlan, abort, role, workload};
use crate::change;
use crate::change::kubeadm_control_plane::{changes, template_changes};
use crate::gate::{self, Blocked, Gate};
use crate::inventory::{Inventory, KubeadmControlPlane};
use crate::render::classic::{self, Rendered};
use crate::render::{Scope, kubeadm_control_plane as rendered};
use crate::step::{Action, Place, Stage, Step};

pub(super) fn plan(case: &Case<'_>) -> StagePlan {
    let mut stage = next(case);
    // Whoever wanted it is told, and it goes on.
    stage.blocked.extend(abort::refused(case));
    stage
}

fn next(case: &Case<'_>) -> StagePlan {
    let Some(cluster) = case.cluster_uid() else {
        return StagePlan::waiting(vec![Blocked::ClusterAbsent], Vec::new());
    };
    let observed = case.inventory.control_plane.kubeadm.as_ref();
    let scope = case.scope();
    let different = observed.map_or_else(|| vec![change::kubeadm_control_plane::new(&scope)], |it| changes(&scope, it));
    let changes = change::lines(&different);
    if !case.held.is_empty() {
        return StagePlan::waiting(case.held.clone(), changes);
    }
    let blocked = match observed {
        None => lost(case).into_iter().collect(),
        Some(observed) if changes.is_empty() => return settle(case, observed),
        Some(observed) => refusals(case, observed),
    };
    if !blocked.is_empty() {
        return StagePlan::waiting(blocked, changes);
    }
    let steps = observed.map_or_else(|| create(case, cluster), |observed| change(case, observed, cluster));
    StagePlan::ready(steps, changes)
}

fn step(role: &str, action: Action, why: &str) -> Step {
    Step { stage: Stage::ControlPlane, role: role.to_owned(), place: Place::Management, action, why: why.to_owned() }
}

/// The Cluster is told first. Should nothing come after that, there is still no `KubeadmControlPlane`, and all of it is done
/// again.
fn create(case: &Case<'_>, cluster: &Uid) -> Vec<Step> {
    let scope = case.scope();
    let reference = Action::Apply { object: rendered::reference(&scope), expect: None };
    let template = Action::Create { object: rendered::template(&scope, None, cluster) };
    let created = Action::Create { object: rendered::created(&scope, cluster) };
    vec![
        step(role::CLUSTER, reference, "the cluster has no control plane yet"),
        step(role::CONTROL_PLANE_TEMPLATE, template, "the control plane is made from it"),
        step(role::KUBEADM_CONTROL_PLANE, created, "the cluster has no control plane yet"),
    ]
}

/// Refuses to make a control plane for a cluster that had one.
fn lost(case: &Case<'_>) -> Option<Blocked> {
    match case.inventory.control_plane.machines.first() {
        Some(machine) => Some(Blocked::ControlPlaneUnowned { machine: machine.name.clone() }),
        None => case.is_initialized().then_some(Blocked::ControlPlaneLost),
    }
}

/// A new template where the machines are made from another, and one write that switches to it and to all the rest.
fn change(case: &Case<'_>, observed: &KubeadmControlPlane, cluster: &Uid) -> Vec<Step> {
    let scope = case.scope();
    let found = &observed.infrastructure_template;
    let why = match (is_replaced(&scope, observed), &scope.target.fields) {
        (true, _) => "every package is ready, and the control plane is well",
        (false, Some(_)) => "the release has it so",
        (false, None) => "another number of machines is wanted",
    };
    if scope.target.fields.is_some() {
        let rendered = classic::control_plane(&scope, observed).into_iter();
        let action = |it: &Rendered| it.action(&observed.revision);
        return rendered.map(|it| step(&it.role, action(&it), why)).collect();
    }
    let is_other = !template_changes(&scope, observed).is_empty();
    let template = if is_other { rendered::template_name(&scope) } else { found.name.clone() };
    let mut steps = Vec::new();
    if is_other {
        let object = rendered::template(&scope, found.spec.as_ref(), cluster);
        steps.push(step(role::CONTROL_PLANE_TEMPLATE, Action::Create { object }, why));
    }
    let object = rendered::changed(&scope, &observed.name, &template);
    let apply = Action::Apply { object, expect: Some(observed.revision.clone()) };
    steps.push(step(role::KUBEADM_CONTROL_PLANE, apply, why));
    steps
}

fn refusals(case: &Case<'_>, observed: &KubeadmControlPlane) -> Vec<Blocked> {
    let scope = case.scope();
    let own = [
        case.gates.ask(Gate::OneControlPlaneUpdate, || rolling(observed)),
        elsewhere(observed),
        taken(&scope, observed),
        case.gates.ask(Gate::ControlPlaneHealthy, || unwell(observed)),
    ];
    own.into_iter().flatten().chain(replacement_refusals(case, is_replaced(&scope, observed))).collect()
}

/// The refusals to let Cluster API change the machines of the control plane, whoever tells it to. Packages are not asked where
/// only the number of machines changes.
pub(super) fn replacement_refusals(case: &Case<'_>, replaced: bool) -> Vec<Blocked> {
    let Case { target, inventory, gates, .. } = case;
    let machines = &inventory.control_plane.machines;
    let packages = || gate::packages_first(target, inventory);
    let refusals = [
        gates.ask(Gate::CertificatesPresent, || gate::certificates_present(&target.cluster.name, &inventory.secrets)),
        gates.ask(Gate::PackagesFirst, || replaced.then(packages).flatten()),
        gates.ask(Gate::OneMachineAtATime, || gate::one_machine_at_a_time(machines, |_| false)),
        gates.ask(Gate::ControlPlaneHealthy, || gate::control_plane_healthy(machines, |_| false)),
    ];
    let workload = if replaced { workload::replacement_refusals(case) } else { workload::join_refusals(case) };
    refusals.into_iter().flatten().chain(workload).collect()
}

/// Whether Cluster API is still at work on an earlier change. With another in the middle of it, machines of three versions
/// could be there at a time.
pub(super) fn rolling(observed: &KubeadmControlPlane) -> Option<Blocked> {
    (!is_at_rest(observed)).then(|| Blocked::ControlPlaneRolling {
        control_plane: observed.name.clone(),
        // Counts about an earlier change say nothing about this one.
        up_to_date: if observed.progress.observed { observed.progress.up_to_date } else { 0 },
        replicas: observed.replicas,
    })
}

fn elsewhere(observed: &KubeadmControlPlane) -> Option<Blocked> {
    let external = observed.configuration.pointer("/clusterConfiguration/etcd/external");
    let is_set = external.is_some_and(|external| !external.is_null());
    is_set.then(|| Blocked::EtcdElsewhere { control_plane: observed.name.clone() })
}

/// Whether the template that this update would make is the one that is there, with something else in it.
fn taken(scope: &Scope<'_>, observed: &KubeadmControlPlane) -> Option<Blocked> {
    let found = &observed.infrastructure_template;
    let other = found.spec.is_some() && !template_changes(scope, observed).is_empty();
    let template = || format!("WCPMachineTemplate/{}", found.name);
    (found.name == rendered::template_name(scope) && other).then(|| Blocked::TemplateTaken { template: template() })
}

fn unwell(observed: &KubeadmControlPlane) -> Option<Blocked> {
    let why = observed.unwell.clone()?;
    Some(Blocked::ControlPlaneUnwell { control_plane: observed.name.clone(), why })
}

/// It says what it should: what is left is to see its machines so, and well.
fn settle(case: &Case<'_>, observed: &KubeadmControlPlane) -> StagePlan {
    let blocked = unsettled(case, observed);
    if blocked.is_empty() { StagePlan::done() } else { StagePlan::running(blocked, Vec::new()) }
}

/// What keeps a control plane from being done that says what it should.
pub(super) fn unsettled(case: &Case<'_>, observed: &KubeadmControlPlane) -> Vec<Blocked> {
    let mut blocked: Vec<Blocked> = rolling(observed).into_iter().chain(unwell(observed)).collect();
    blocked.extend(case.inventory.control_plane.machines.iter().filter_map(gate::not_ready));
    if !case.is_initialized() {
        blocked.push(Blocked::NoWorkloadApi);
    }
    blocked
}

/// Whether every machine is there, and of the version that was last asked for.
fn is_at_rest(observed: &KubeadmControlPlane) -> bool {
    let (progress, replicas) = (observed.progress, observed.replicas);
    progress.observed
        && [progress.replicas, progress.up_to_date, progress.available].iter().all(|count| *count == replicas)
        && !observed.versions.is_empty()
        && observed.versions.iter().all(|version| *version == observed.version)
}

/// Whether the machines have to be replaced.
pub(super) fn differs(scope: &Scope<'_>, inventory: &Inventory) -> bool {
    inventory.control_plane.kubeadm.as_ref().is_some_and(|observed| is_replaced(scope, observed))
}

/// Whether machines are still to join.
pub(super) fn joins_are_coming(scope: &Scope<'_>, inventory: &Inventory) -> bool {
    let Some(observed) = &inventory.control_plane.kubeadm else { return scope.target.control_plane.count > 1 };
    is_replaced(scope, observed)
        || observed.replicas < scope.target.control_plane.count
        || observed.progress.up_to_date < observed.replicas
}

/// Whether it says what it should, and its machines are so.
pub(super) fn is_rolled(scope: &Scope<'_>, inventory: &Inventory) -> bool {
    let observed = inventory.control_plane.kubeadm.as_ref();
    observed.is_some_and(|observed| changes(scope, observed).is_empty() && is_at_rest(observed))
}

fn is_replaced(scope: &Scope<'_>, observed: &KubeadmControlPlane) -> bool {
    is_replacing(&changes(scope, observed))
}
