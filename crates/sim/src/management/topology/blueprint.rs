//! A class and its templates, as they are on the wire.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::api::DynamicObject;
use serde_json::{Value, json};
use windlass_api::kind::topology::{ClusterClass, MachineDeploymentClass, TemplateReference};
use windlass_runtime::cache::Cache;
use windlass_runtime::key::Key;

use super::Refusal;
use crate::management::context::{Caches, Turn, path};

/// All that clusters of a class are made from.
pub(super) struct Blueprint {
    pub class: Arc<ClusterClass>,
    /// What a cluster needs once.
    pub infrastructure: Template,
    /// The control plane.
    pub control_plane: Template,
    /// The infrastructure of its machines.
    pub control_plane_machines: Template,
    /// The sorts of workers, by name.
    pub pools: BTreeMap<String, PoolBlueprint>,
}

/// A sort of workers.
pub(super) struct PoolBlueprint {
    pub class: MachineDeploymentClass,
    pub bootstrap: Template,
    pub infrastructure: Template,
}

/// A template, with the way it was referred to.
#[derive(Debug, Clone)]
pub(super) struct Template {
    pub reference: TemplateReference,
    /// `apiVersion`, `kind` and `spec`.
    pub object: Value,
}

impl Template {
    /// Its group.
    pub(super) fn group(&self) -> &str {
        self.reference.api_version.rsplit_once('/').map_or("", |(group, _)| group)
    }
}

impl Blueprint {
    /// Reads a class and its templates.
    pub(super) fn of(turn: &Turn, class: &Arc<ClusterClass>) -> Result<Self, Refusal> {
        let read = |reference: &TemplateReference| template(turn, class, reference);
        let spec = &class.spec;
        let machines = spec.control_plane.machine_infrastructure.as_ref();
        let machines = machines.ok_or_else(|| {
            let title = path(&class.metadata);
            Refusal(format!("ClusterClass {title} has no spec.controlPlane.machineInfrastructure, without which nothing here makes machines"))
        })?;
        let mut pools = BTreeMap::new();
        for pool in &spec.workers.machine_deployments {
            let blueprint = PoolBlueprint {
                class: pool.clone(),
                bootstrap: read(&pool.bootstrap.template_ref)?,
                infrastructure: read(&pool.infrastructure.template_ref)?,
            };
            pools.insert(pool.class.clone(), blueprint);
        }
        Ok(Self {
            class: Arc::clone(class),
            infrastructure: read(&spec.infrastructure.template_ref)?,
            control_plane: read(&spec.control_plane.template_ref)?,
            control_plane_machines: read(&machines.template_ref)?,
            pools,
        })
    }
}

/// Where templates of a kind are.
pub(super) fn cache<'a>(caches: &'a Caches, kind: &str) -> Option<&'a Cache<DynamicObject>> {
    match kind {
        "WCPClusterTemplate" => Some(&caches.cluster_templates),
        "WCPMachineTemplate" => Some(&caches.infrastructure_templates),
        "KubeadmConfigTemplate" => Some(&caches.bootstrap_templates),
        "KubeadmControlPlaneTemplate" => Some(&caches.control_plane_templates),
        _ => None,
    }
}

fn template(turn: &Turn, class: &ClusterClass, reference: &TemplateReference) -> Result<Template, Refusal> {
    let TemplateReference { kind, name, .. } = reference;
    let namespace = class.metadata.namespace.clone();
    let cache = cache(&turn.caches, kind).ok_or_else(|| {
        Refusal(format!(
            "nobody here makes anything from a {kind}, which ClusterClass {} refers to",
            path(&class.metadata)
        ))
    })?;
    let title = format!("{kind} {}/{name}", namespace.as_deref().unwrap_or_default());
    let found = cache.get(&Key { namespace, name: name.clone() });
    let found = found.ok_or_else(|| Refusal(format!("failed to get {title}: not found")))?;
    let object = json!({"apiVersion": reference.api_version, "kind": kind, "spec": found.data["spec"]});
    Ok(Template { reference: reference.clone(), object })
}
