//! What is different about the machines of a cluster.

use serde::Deserialize;
use serde_json::{Value, json};
use windlass_api::kind::topology::Topology;

use super::rule::{self, rule};
use super::{Effect, FieldChange, classic, kubeadm_control_plane, topology};
use crate::diff::{self, Difference};
use crate::inventory::{Inventory, Machine, Pool, Template};
use crate::planner::{missing, role, rows};
use crate::profile::Profile;
use crate::render::Scope;
use crate::render::workers::template_specs;
use crate::step::Stage;
use crate::target::{Drive, PoolTarget, PoolVersion};

/// What is different about all machines, and which are missing.
pub(super) fn all(scope: &Scope<'_>, inventory: &Inventory) -> Vec<FieldChange> {
    match scope.target.drive {
        Drive::Machines => {
            let machines = inventory.control_plane.machines.iter().flat_map(|found| machine(scope, found));
            count(scope, inventory).into_iter().chain(machines).chain(pools(scope, inventory)).collect()
        }
        Drive::KubeadmControlPlane => {
            let mut changes = match &inventory.control_plane.kubeadm {
                Some(observed) => kubeadm_control_plane::changes(scope, observed),
                None => vec![kubeadm_control_plane::new(scope)],
            };
            changes.extend(pools(scope, inventory));
            changes
        }
        Drive::Topology => of_topology(scope, inventory),
    }
}

/// What is different about a cluster of a class; nothing where its topology cannot be read.
fn of_topology(scope: &Scope<'_>, inventory: &Inventory) -> Vec<FieldChange> {
    let live = inventory.topology.as_ref().and_then(|observed| Topology::deserialize(&observed.spec).ok());
    let Some(live) = live else { return Vec::new() };
    let mut changes = topology::control_plane(scope, &live);
    for pool in &scope.target.pools {
        let observed = inventory.pools.get(&pool.name);
        changes.extend(observed.and_then(|observed| topology::pool_version(scope, pool, observed)));
        changes.extend(topology::pool(scope, pool, &live));
    }
    changes
}

fn pools(scope: &Scope<'_>, inventory: &Inventory) -> Vec<FieldChange> {
    let mut changes = Vec::new();
    for wanted in &scope.target.pools {
        match inventory.pools.get(&wanted.name) {
            Some(observed) => changes.extend(pool(scope, wanted, observed)),
            None => changes.push(new_pool(wanted)),
        }
    }
    changes
}

/// The machines that the control plane does not have yet; or that it has, and should not.
fn count(scope: &Scope<'_>, inventory: &Inventory) -> Vec<FieldChange> {
    let (have, want) = (rows(&inventory.control_plane.machines), scope.target.control_plane.count);
    let of = ("TanzuKubernetesCluster", "spec.topology.controlPlane.count");
    let change = |role: &str| {
        let row = rule(of.0, of.1);
        FieldChange::of(Stage::ControlPlane, role, row, of.1, Some(have.to_string()), Some(want.to_string()))
    };
    let lowered = FieldChange::ordered(Stage::ControlPlane, "control-plane", of, &have, &want);
    let lowered = lowered.filter(|change| change.effect == Effect::Refused);
    lowered.into_iter().chain(missing(scope, inventory).map(|ordinal| change(&role::control_plane(ordinal)))).collect()
}

/// What is different about a machine of the control plane. What is not known (its infrastructure is not there yet) is not
/// different.
pub(crate) fn machine(scope: &Scope<'_>, machine: &Machine) -> Vec<FieldChange> {
    let same = |ordinal: &u32| scope.control_plane_base(*ordinal) == *machine.row();
    let role = (0..scope.target.control_plane.count).find(same);
    let role = role.map_or_else(|| machine.name.to_string(), role::control_plane);
    let stage = Stage::ControlPlane;
    let version = FieldChange::ordered(
        stage,
        &role,
        ("Machine", "spec.version"),
        &machine.version,
        &scope.target.release.kubernetes,
    );
    let desired = json!(scope.infrastructure(&scope.target.control_plane));
    let fields = [
        ("imageName", machine.image.as_ref().map(AsRef::as_ref)),
        ("className", machine.class.as_ref().map(AsRef::as_ref)),
        ("storageClass", machine.storage_class.as_ref().map(AsRef::as_ref)),
    ];
    let made_from = fields.into_iter().filter_map(|(name, is): (&str, Option<&str>)| {
        let (is, should_be) = (is?, desired[name].as_str()?);
        let field = format!("spec.{name}");
        let row = rule("WCPMachine", &field);
        let change = FieldChange::of(stage, &role, row, &field, Some(is.to_owned()), Some(should_be.to_owned()));
        (is != should_be).then_some(change)
    });
    version.into_iter().chain(made_from).chain(registration(scope, &role, machine)).collect()
}

/// What Windlass decides otherwise now of how a machine registers. Its labels are those of its release, which is compared above.
fn registration(scope: &Scope<'_>, role: &str, machine: &Machine) -> Vec<FieldChange> {
    let Some(live) = &machine.registration else { return Vec::new() };
    let decided = scope.target.defaults.node_registration.iter();
    let different = decided.filter(|(field, value)| live[field.as_str()].as_str() != Some(value.as_str()));
    let change = |(name, value): (&String, &String)| {
        let field = format!("spec.joinConfiguration.nodeRegistration.{name}");
        let from = live.get(name).map(shown);
        FieldChange::of(Stage::ControlPlane, role, rule("KubeadmConfig", &field), &field, from, Some(value.clone()))
    };
    different.map(change).collect()
}

/// A pool that is not there yet.
pub(crate) fn new_pool(pool: &PoolTarget) -> FieldChange {
    let field = "spec.replicas";
    let to = Some(pool.machines.count.to_string());
    let new =
        FieldChange::of(Stage::Workers, &role::pool(&pool.name), rule("MachineDeployment", field), field, None, to);
    FieldChange { effect: Effect::Adds, ..new }
}

/// What is different about a pool of workers.
pub(crate) fn pool(scope: &Scope<'_>, pool: &PoolTarget, observed: &Pool) -> Vec<FieldChange> {
    let role = role::pool(&pool.name);
    let stage = Stage::Workers;
    let of = |field| ("MachineDeployment", field);
    let mut changes: Vec<FieldChange> = Vec::new();
    if let Some(fields) = scope.target.fields.as_ref().and_then(|fields| fields.pools.get(&pool.name)) {
        changes.extend(classic::object((stage, &role), "MachineDeployment", &observed.live, &fields.deployment));
        changes.extend(templates(scope, pool, observed).into_iter().flatten());
        return changes;
    }
    // One that keeps its version for now is only scaled: other templates would come with the other version.
    if pool.version == PoolVersion::Release {
        let to = &scope.target.release.kubernetes;
        changes.extend(FieldChange::ordered(stage, &role, of("spec.template.spec.version"), &observed.version, to));
        changes.extend(templates(scope, pool, observed).into_iter().flatten());
    }
    let (from, to) = (observed.replicas, pool.machines.count);
    changes.extend(FieldChange::ordered(stage, &role, of("spec.replicas"), &from, &to));
    changes
}

/// What is different about the two templates of a pool: infrastructure, and bootstrap.
fn templates(scope: &Scope<'_>, pool: &PoolTarget, observed: &Pool) -> [Vec<FieldChange>; 2] {
    let role = role::pool(&pool.name);
    let [infrastructure, bootstrap] = template_specs(scope, pool);
    let place = (Stage::Workers, role.as_str());
    let made_from = Sort::Infrastructure(scope.target.pool_profile(&pool.name));
    [
        template(place, made_from, &infrastructure, &observed.infrastructure_template),
        template(place, Sort::Bootstrap, &bootstrap, &observed.bootstrap_template),
    ]
}

/// Which of the two templates of a pool have to be others: infrastructure, and bootstrap.
pub(crate) fn differing_templates(scope: &Scope<'_>, pool: &PoolTarget, observed: &Pool) -> [bool; 2] {
    templates(scope, pool, observed).map(|changes| !changes.is_empty())
}

/// What a template is for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sort<'p> {
    /// Machines are made from it.
    Infrastructure(&'p Profile),
    /// They are told it when they first boot.
    Bootstrap,
}

/// What is different about a template.
pub(super) fn template(
    (stage, role): (Stage, &str),
    sort: Sort<'_>,
    desired: &Value,
    found: &Template,
) -> Vec<FieldChange> {
    let nothing = json!({});
    let live = found.spec.as_ref().unwrap_or(&nothing);
    let different = diff::differences(desired, live);
    if different.is_empty() {
        return Vec::new();
    }
    let [live, desired] = [live, desired].map(diff::redacted);
    let change = |difference: Difference| {
        let path = difference.path;
        let field = format!("spec.template.spec.{}", path.fields());
        let (kind, row) = match sort {
            Sort::Infrastructure(profile) => (profile.template.as_str(), rule::of_template(profile, path.names())),
            Sort::Bootstrap => ("KubeadmConfigTemplate", rule("KubeadmConfigTemplate", &field)),
        };
        let shown = |side: &Value| path.get(side).map(shown);
        let change = FieldChange::of(stage, role, row, &field, shown(&live), shown(&desired));
        FieldChange { kind: kind.to_owned(), ..change }
    };
    different.into_iter().map(change).collect()
}

/// A value in few words.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}
