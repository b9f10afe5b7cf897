//! What is different about a cluster of a class: the fields of its topology, and what follows for its pools.

use serde_json::Value;
use windlass_api::annotation;
use windlass_api::kind::topology::{Topology, VariableOverrides};

use super::kubeadm_control_plane::count;
use super::{Effect, FieldChange, rule};
use crate::inventory::Pool;
use crate::planner::role;
use crate::render::Scope;
use crate::render::topology::{DEFERRED_BY_US, find, knows_release, told};
use crate::step::Stage;
use crate::target::{MachinesTarget, PoolTarget, PoolVersion, TopologyVariable};

const KIND: &str = "Cluster";
const POOLS: &str = "spec.topology.workers.machineDeployments";

/// What is different about the whole, and about the control plane.
pub(crate) fn control_plane(scope: &Scope<'_>, live: &Topology) -> Vec<FieldChange> {
    let (stage, role) = (Stage::ControlPlane, role::CONTROL_PLANE);
    let (field, version) = ("spec.topology.version", &scope.target.release.kubernetes);
    let mut changes = Vec::new();
    if let Ok(from) = live.version.parse() {
        changes.extend(FieldChange::ordered(stage, role, (KIND, field), &from, version));
    } else {
        let (from, to) = (Some(live.version.clone()), Some(version.to_string()));
        changes.push(FieldChange::of(stage, role, rule(KIND, field), field, from, to));
    }
    let (part, field) = (&live.control_plane, "spec.topology.controlPlane");
    changes.extend(release((stage, role, "spec.topology"), scope, live, part.variables.as_ref()));
    let wanted = &scope.target.control_plane;
    changes.extend(variables((stage, role, field), live, part.variables.as_ref(), wanted));
    let replicas = format!("{field}.replicas");
    match part.replicas {
        Some(replicas_now) => changes.extend(count(role, (KIND, &replicas), replicas_now, wanted.count)),
        None => changes.push(in_place((stage, role), &replicas, None, wanted.count)),
    }
    changes
}

/// What has to be written about a pool. A pool that keeps its version is only scaled.
pub(crate) fn pool(scope: &Scope<'_>, pool: &PoolTarget, live: &Topology) -> Vec<FieldChange> {
    let Some(found) = find(live, &pool.name) else { return Vec::new() };
    let (stage, role) = (Stage::Workers, role::pool(&pool.name));
    let annotations = found.metadata.as_ref().map(|metadata| &metadata.annotations);
    let deferred = annotations.and_then(|annotations| annotations.get(annotation::DEFER_UPGRADE.name));
    let mut changes = Vec::new();
    let deferral = |from: Option<&str>, to: Option<&str>| {
        let field = format!("{POOLS}.metadata.annotations");
        FieldChange::of(stage, &role, rule(KIND, &field), &field, from.map(str::to_owned), to.map(str::to_owned))
    };
    match pool.version {
        // Any value holds a pool back, whoever wrote it; we take back only our own.
        PoolVersion::Kept if deferred.is_none() => changes.push(deferral(None, Some(DEFERRED_BY_US))),
        PoolVersion::Release if deferred.is_some_and(|by| by == DEFERRED_BY_US) => {
            changes.push(FieldChange { effect: Effect::Replaces, ..deferral(Some(DEFERRED_BY_US), None) });
        }
        PoolVersion::Kept | PoolVersion::Release => {}
    }
    if pool.version == PoolVersion::Release {
        // What a pool does not say for itself is said for the whole.
        let data = TopologyVariable::ReleaseData.as_str();
        let part = found.variables.as_ref().filter(|part| part.overrides.iter().any(|it| it.name == data));
        changes.extend(part.and_then(|part| release((stage, &role, POOLS), scope, live, Some(part))));
        changes.extend(variables((stage, &role, POOLS), live, found.variables.as_ref(), &pool.machines));
    }
    let replicas = format!("{POOLS}.replicas");
    let is_other = found.replicas != Some(pool.machines.count);
    changes.extend(is_other.then(|| in_place((stage, &role), &replicas, found.replicas, pool.machines.count)));
    changes
}

/// The version of a pool, which Cluster API changes after that of the control plane.
pub(crate) fn pool_version(scope: &Scope<'_>, pool: &PoolTarget, observed: &Pool) -> Option<FieldChange> {
    let of = ("MachineDeployment", "spec.template.spec.version");
    let to = &scope.target.release.kubernetes;
    let change = FieldChange::ordered(Stage::Workers, &role::pool(&pool.name), of, &observed.version, to);
    change.filter(|_| pool.version == PoolVersion::Release)
}

/// What the class is not told yet about the release, for a part.
fn release(
    (stage, role, field): (Stage, &str, &str),
    scope: &Scope<'_>,
    live: &Topology,
    part: Option<&VariableOverrides>,
) -> Option<FieldChange> {
    let field = format!("{field}.variables.{}", TopologyVariable::ReleaseData.as_str());
    let to = Some(scope.target.release.distribution.to_string());
    (!knows_release(scope, live, part)).then(|| FieldChange::of(stage, role, rule(KIND, &field), &field, None, to))
}

fn in_place(of: (Stage, &str), field: &str, from: Option<u32>, to: u32) -> FieldChange {
    let from = from.map(|count| count.to_string());
    let change = FieldChange::of(of.0, of.1, rule(KIND, field), field, from, Some(to.to_string()));
    FieldChange { effect: Effect::InPlace, ..change }
}

/// What the class is told otherwise about the machines of a part.
fn variables(
    (stage, role, field): (Stage, &str, &str),
    live: &Topology,
    part: Option<&VariableOverrides>,
    wanted: &MachinesTarget,
) -> Vec<FieldChange> {
    let variables =
        [(TopologyVariable::MachineClass, wanted.class()), (TopologyVariable::StorageClass, wanted.storage_class())];
    let change = |(variable, should_be): (TopologyVariable, &str)| {
        let name = variable.as_str();
        let is = told(live, part, name).and_then(Value::as_str);
        let field = format!("{field}.variables.{name}");
        let (from, to) = (is.map(str::to_owned), Some(should_be.to_owned()));
        (is != Some(should_be)).then(|| FieldChange::of(stage, role, rule(KIND, &field), &field, from, to))
    };
    variables.into_iter().filter_map(change).collect()
}
