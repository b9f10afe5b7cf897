//! A cluster of a class: `Cluster.spec.topology`, from which Cluster API derives all the rest. Nothing that is derived is ever
//! written.
//!
//! The object is people's, too. What they wrote and what we never need to change is not in our writes: variables of others,
//! metadata, how pools are rolled. A variable that people set for the whole topology is not set for a part of it, as long as
//! it says what the target says.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use windlass_api::kind::topology::{MachineDeploymentTopology, Topology, Variable, VariableOverrides};
use windlass_api::name::PoolName;
use windlass_api::{annotation, label};

use super::{Scope, cluster_api_version};
use crate::target::{MachinesTarget, PoolTarget, PoolVersion, TopologyVariable};

/// The value of our own annotation on a pool that waits for a later hop.
pub const DEFERRED_BY_US: &str = "windlass.dev";

/// What is written into the Cluster. `live` is the topology that is there; without one, all that we want is in it.
pub fn change(scope: &Scope<'_>, live: Option<&Topology>) -> Value {
    let id = &scope.target.cluster;
    let pools: Vec<Value> = scope.target.pools.iter().map(|target| pool(scope, target, live)).collect();
    let control_plane = &scope.target.control_plane;
    let theirs = live.and_then(|live| live.control_plane.variables.as_ref());
    let mut topology = json!({
        "version": scope.target.release.kubernetes,
        "controlPlane": part(scope, control_plane, live, theirs),
        "workers": { "machineDeployments": pools },
    });
    if has(scope, TopologyVariable::ReleaseData) {
        let name = TopologyVariable::ReleaseData.as_str();
        let value = release_data(scope, live.and_then(|live| live.variable(name)));
        topology["variables"] = json!([{ "name": name, "value": value }]);
    }
    json!({
        "apiVersion": cluster_api_version(),
        "kind": "Cluster",
        "metadata": { "name": id.name, "namespace": id.namespace },
        "spec": { "topology": topology },
    })
}

fn pool(scope: &Scope<'_>, target: &PoolTarget, live: Option<&Topology>) -> Value {
    let theirs = live.and_then(|live| find(live, &target.name)).and_then(|pool| pool.variables.as_ref());
    let mut pool = part(scope, &target.machines, live, theirs);
    pool["name"] = json!(target.name);
    if target.version == PoolVersion::Kept {
        let (key, value) = annotation::DEFER_UPGRADE.entry(&DEFERRED_BY_US.to_owned());
        pool["metadata"] = json!({ "annotations": { key: value } });
    }
    pool
}

/// The control plane, or a pool. A variable is set for the part if it is so already, or if the whole says otherwise.
fn part(
    scope: &Scope<'_>,
    machines: &MachinesTarget,
    live: Option<&Topology>,
    theirs: Option<&VariableOverrides>,
) -> Value {
    let wanted = [
        (TopologyVariable::MachineClass, machines.class()),
        (TopologyVariable::StorageClass, machines.storage_class()),
    ];
    let is_needed = |(variable, value): &(TopologyVariable, &str)| {
        let name = variable.as_str();
        let for_all = live.and_then(|live| live.variable(name)).and_then(Value::as_str);
        has(scope, *variable) && (overridden(theirs, name).is_some() || for_all != Some(*value))
    };
    let set = |(variable, value): (TopologyVariable, &str)| json!({ "name": variable.as_str(), "value": value });
    let mut overrides: Vec<Value> = wanted.into_iter().filter(is_needed).map(set).collect();
    let name = TopologyVariable::ReleaseData.as_str();
    if let Some(there) = overridden(theirs, name) {
        overrides.push(json!({ "name": name, "value": release_data(scope, Some(there)) }));
    }
    let mut part = json!({ "replicas": machines.count });
    if !overrides.is_empty() {
        part["variables"] = json!({ "overrides": overrides });
    }
    part
}

fn has(scope: &Scope<'_>, variable: TopologyVariable) -> bool {
    scope.target.topology.as_ref().is_some_and(|topology| topology.variables.contains(&variable))
}

/// The pool of that name.
pub fn find<'t>(live: &'t Topology, pool: &PoolName) -> Option<&'t MachineDeploymentTopology> {
    live.workers.machine_deployments.iter().find(|found| found.name == pool.as_str())
}

/// What a class is told for a part of a topology: what is said for the part, or else for the whole.
pub fn told<'t>(live: &'t Topology, part: Option<&'t VariableOverrides>, name: &str) -> Option<&'t Value> {
    overridden(part, name).or_else(|| live.variable(name))
}

fn overridden<'t>(part: Option<&'t VariableOverrides>, name: &str) -> Option<&'t Value> {
    let is = |variable: &&Variable| variable.name == name;
    part.and_then(|part| part.overrides.iter().find(is)).map(|variable| &variable.value)
}

/// What the class is told about releases, by version of Kubernetes. Old and new stand side by side: while there are machines of
/// both, the class makes either from its own entry. None is taken away, and one that was resolved already stays as it is.
fn release_data(scope: &Scope<'_>, there: Option<&Value>) -> Value {
    if there.is_some_and(|there| has_entry(scope, there)) {
        return there.cloned().unwrap_or_default();
    }
    let mut entries: Map<String, Value> = there.and_then(Value::as_object).cloned().unwrap_or_default();
    entries.insert(scope.target.release.kubernetes.to_string(), release_entry(scope));
    entries.into()
}

/// Whether the class has been told about the target's release, for a part of the topology, if it wants to be.
pub fn knows_release(scope: &Scope<'_>, live: &Topology, part: Option<&VariableOverrides>) -> bool {
    let variable = TopologyVariable::ReleaseData;
    !has(scope, variable) || told(live, part, variable.as_str()).is_some_and(|data| has_entry(scope, data))
}

fn has_entry(scope: &Scope<'_>, data: &Value) -> bool {
    let release = &scope.target.release;
    data[release.kubernetes.as_str()]["labels"][label::RELEASE.name] == release.name().as_str()
}

/// What the class is told about the target's release.
fn release_entry(scope: &Scope<'_>) -> Value {
    let release = &scope.target.release;
    let mut kubernetes = json!({ "version": release.kubernetes });
    let components = [("etcd", &release.etcd), ("coredns", &release.coredns), ("pause", &release.pause)];
    for (component, image) in components {
        let Some(image) = image else { continue };
        kubernetes[component] = json!({ "imageRepository": image.repository, "imageTag": image.tag });
    }
    if let Some(repository) = &release.image_repository {
        kubernetes["imageRepository"] = json!(repository);
    }
    let mut labels = BTreeMap::from([(label::RELEASE.name, release.name())]);
    let mut reference = Value::Null;
    if let [image] = release.images.as_slice() {
        labels.insert(label::OS_IMAGE.name, image.name.to_string());
        reference = image.reference.as_ref().map_or_else(|| json!({ "name": image.name }), |it| json!(it.reference));
    }
    json!({ "kubernetesSpec": kubernetes, "osImageRef": reference, "labels": labels })
}
