//! What a classic cluster is asked to be: one without a topology, whose control plane and pools are objects of its owner's. A label
//! names its release, and the release says which fields of those objects are its own. All other fields stay as they are.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::name::PoolName;

use super::{KubeadmParts, MachineTemplate, PoolParts, Target, TargetError};
use crate::diff::Owners;
use crate::profile::Profile;
use crate::release::{FieldPath, Release, VERSION_FIELDS};
use crate::render::FIELD_MANAGER;

/// The kinds that a classic cluster is made of, as releases name them.
pub(crate) const CONTROL_PLANE: &str = "kubeadmcontrolplane";
pub(crate) const DEPLOYMENT: &str = "machinedeployment";
pub(crate) const BOOTSTRAP: &str = "kubeadmconfigtemplate";

/// Where in a template the machine is.
const TEMPLATE: &str = "/spec/template/spec";

/// The objects of a classic cluster, each as it was read, with who owns which field.
#[derive(Debug, Clone)]
pub struct ClassicParts {
    /// The Cluster.
    pub cluster: Cluster,
    /// Its `KubeadmControlPlane`.
    pub control_plane: Value,
    /// The template that this refers to.
    pub template: MachineTemplate,
    /// Its pools.
    pub pools: Vec<ClassicPool>,
}

/// The objects of a pool of a classic cluster.
#[derive(Debug, Clone)]
pub struct ClassicPool {
    /// The `MachineDeployment`.
    pub deployment: Value,
    /// The template of its infrastructure.
    pub infrastructure: MachineTemplate,
    /// The template of its bootstrap configuration.
    pub bootstrap: Value,
}

/// What a release sets on the objects of a cluster. What is not in here is not written.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fields {
    /// On the `KubeadmControlPlane`.
    pub control_plane: ObjectFields,
    /// On the template of its machines.
    pub template: TemplateFields,
    /// On each pool.
    pub pools: BTreeMap<PoolName, PoolFields>,
}

/// What a release sets on a template of machines.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TemplateFields {
    /// Which kind of template it is.
    pub profile: Profile,
    /// The fields, within `spec.template.spec`.
    pub fields: Value,
}

/// What a release sets on an object that refers to templates.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectFields {
    /// The fields, where they are in the object.
    pub fields: Value,
    /// The references that an earlier update has set: they are said again, or they would go.
    pub references: BTreeSet<Reference>,
}

/// What an object refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reference {
    /// What its machines are made from.
    Infrastructure,
    /// What they are told.
    Bootstrap,
}

/// What a release sets on the objects of a pool.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolFields {
    /// On the `MachineDeployment`.
    pub deployment: ObjectFields,
    /// On the template of its infrastructure.
    pub infrastructure: TemplateFields,
    /// On the template of its bootstrap configuration: within `spec.template.spec`.
    pub bootstrap: Value,
}

impl Target {
    /// What is known of the templates that machines of the control plane are made from.
    pub fn control_plane_profile(&self) -> &Profile {
        match &self.fields {
            Some(fields) => &fields.template.profile,
            None => Profile::built_in(),
        }
    }

    /// What is known of the templates that machines of a pool are made from.
    pub fn pool_profile(&self, pool: &PoolName) -> &Profile {
        let fields = self.fields.as_ref().and_then(|fields| fields.pools.get(pool));
        match fields {
            Some(fields) => &fields.infrastructure.profile,
            None => Profile::built_in(),
        }
    }

    /// What the owner asks for: the objects as they are, and the release that the label names.
    pub fn of_classic(parts: &ClassicParts, release: Release) -> Result<Self, TargetError> {
        complete(&release, parts)?;
        let pools = parts.pools.iter().map(pool_parts).collect::<Result<Vec<_>, _>>()?;
        let fields = fields(parts, &release)?;
        let read = KubeadmParts {
            cluster: &parts.cluster,
            control_plane: &read("KubeadmControlPlane", &parts.control_plane)?,
            template: &parts.template,
            pools: &pools,
        };
        Ok(Self { fields: Some(fields), ..Self::of_kubeadm_control_plane(&read, release)? })
    }
}

/// Refuses a release that leaves open what machines are made of.
fn complete(release: &Release, parts: &ClassicParts) -> Result<(), TargetError> {
    let says = |kind: &str, field: &FieldPath| {
        if release.defaults_of(kind).is_some_and(|found| found.fields.contains_key(field)) {
            return Ok(());
        }
        Err(TargetError::Incomplete {
            release: release.distribution.bare().to_string(),
            map: format!("{kind}-{}", release.distribution.dashed()),
            field: field.to_string(),
        })
    };
    let versioned = if parts.pools.is_empty() { &[CONTROL_PLANE][..] } else { &[CONTROL_PLANE, DEPLOYMENT] };
    for (kind, field) in VERSION_FIELDS.iter().filter(|(kind, _)| versioned.contains(kind)) {
        says(kind, &FieldPath::of(field))?;
    }
    let templates = parts.pools.iter().map(|pool| &pool.infrastructure);
    for template in [&parts.template].into_iter().chain(templates) {
        if let Some(field) = template.profile.required_image() {
            says(&template.profile.map_kind(), field)?;
        }
    }
    Ok(())
}

fn pool_parts(pool: &ClassicPool) -> Result<PoolParts, TargetError> {
    Ok(PoolParts { deployment: read("MachineDeployment", &pool.deployment)?, template: pool.infrastructure.clone() })
}

fn read<K: DeserializeOwned>(kind: &str, object: &Value) -> Result<K, TargetError> {
    serde_json::from_value(object.clone()).map_err(|error| {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        TargetError::Unreadable { field: format!("{kind}/{name}"), why: error.to_string() }
    })
}

fn fields(parts: &ClassicParts, release: &Release) -> Result<Fields, TargetError> {
    let applied = |kind: &str, live: &Value| match release.defaults_of(kind) {
        Some(defaults) => defaults.applied(live, FIELD_MANAGER),
        None => serde_json::json!({}),
    };
    // A template is made anew as a whole, and only what its machines are made of is looked at.
    let within = |kind: &str, live: &Value| applied(kind, live).pointer(TEMPLATE).cloned().unwrap_or_default();
    let machine = |template: &MachineTemplate| TemplateFields {
        fields: within(&template.profile.map_kind(), &template.object),
        profile: template.profile.clone(),
    };
    let object = |kind: &str, live: &Value| {
        let owners = Owners::of(live);
        let is_ours = |(_, path): &(Reference, &[&str])| owners.has(FIELD_MANAGER, &FieldPath::of(path));
        let references = references(kind).iter().copied().filter(is_ours).map(|(reference, _)| reference).collect();
        ObjectFields { fields: applied(kind, live), references }
    };
    let pool = |pool: &ClassicPool| {
        let name = pool.deployment["metadata"]["name"].as_str().unwrap_or_default();
        let fields = PoolFields {
            deployment: object(DEPLOYMENT, &pool.deployment),
            infrastructure: machine(&pool.infrastructure),
            bootstrap: within(BOOTSTRAP, &pool.bootstrap),
        };
        Ok((super::named("MachineDeployment: metadata.name", name)?, fields))
    };
    Ok(Fields {
        control_plane: object(CONTROL_PLANE, &parts.control_plane),
        template: machine(&parts.template),
        pools: parts.pools.iter().map(pool).collect::<Result<_, TargetError>>()?,
    })
}

/// Where objects of a kind refer to templates.
pub(crate) fn references(kind: &str) -> &'static [(Reference, &'static [&'static str])] {
    match kind {
        CONTROL_PLANE => &[(Reference::Infrastructure, &["spec", "machineTemplate", "spec", "infrastructureRef"])],
        DEPLOYMENT => &[
            (Reference::Infrastructure, &["spec", "template", "spec", "infrastructureRef"]),
            (Reference::Bootstrap, &["spec", "template", "spec", "bootstrap", "configRef"]),
        ],
        _ => &[],
    }
}
