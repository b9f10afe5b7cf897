//! What a cluster is asked to be whose control plane Cluster API rolls. Its owner says so in the objects themselves: how many
//! machines in the `KubeadmControlPlane` and in each `MachineDeployment`, of which sort in the templates that they refer to.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde_json::Value;
use windlass_api::annotation;
use windlass_api::kind::cluster_api::{Cluster, MachineDeployment};
use windlass_api::kind::control_plane::KubeadmControlPlane;
use windlass_api::name::NameError;

use super::{
    ClusterId, Drive, MachinesTarget, NetworkTarget, PoolTarget, PoolVersion, Target, TargetError, named, odd,
    one_image,
};
use crate::profile::{MachineField, Profile};
use crate::release::Release;
use crate::render::Defaults;

/// The objects of a cluster whose control plane Cluster API rolls.
#[derive(Debug, Clone, Copy)]
pub struct KubeadmParts<'a> {
    /// The Cluster.
    pub cluster: &'a Cluster,
    /// Its control plane.
    pub control_plane: &'a KubeadmControlPlane,
    /// The template that the control plane refers to.
    pub template: &'a MachineTemplate,
    /// Its pools.
    pub pools: &'a [PoolParts],
}

/// The objects of a pool.
#[derive(Debug, Clone)]
pub struct PoolParts {
    /// The pool.
    pub deployment: MachineDeployment,
    /// The template that it refers to.
    pub template: MachineTemplate,
}

/// A template that machines are made from, as it was read, and what is known of such templates.
#[derive(Debug, Clone)]
pub struct MachineTemplate {
    /// The template.
    pub object: Value,
    /// Where in it is what.
    pub profile: Profile,
}

impl Target {
    /// What the owner asks for: the machines that there are, with the release. Pools are rolled in the order of their names.
    pub fn of_kubeadm_control_plane(parts: &KubeadmParts<'_>, mut release: Release) -> Result<Self, TargetError> {
        let metadata = &parts.cluster.metadata;
        let (namespace, name) = (metadata.namespace.as_deref(), metadata.name.as_deref());
        let control_plane = &parts.control_plane.spec;
        let etcd = control_plane.kubeadm_config_spec.cluster_configuration.as_ref().and_then(|it| it.etcd.as_ref());
        if etcd.is_some_and(|etcd| etcd.external.is_some()) {
            let field = "KubeadmControlPlane: spec.kubeadmConfigSpec.clusterConfiguration.etcd.external".to_owned();
            return Err(TargetError::ExternalEtcd { field });
        }
        // Cluster API's own default is one.
        let count = odd("KubeadmControlPlane: spec.replicas", control_plane.replicas.unwrap_or(1))?;
        let mut pools = parts.pools.iter().map(pool).collect::<Result<Vec<_>, _>>()?;
        pools.sort_by(|left, right| left.name.cmp(&right.name));
        let templates = parts.pools.iter().map(|pool| &pool.template).chain([parts.template]);
        if templates.into_iter().any(|template| template.profile == *Profile::built_in()) {
            one_image("WCPMachineTemplate: spec.template.spec.imageName", &release)?;
        }
        leave_theirs(&mut release, parts.control_plane.metadata.annotations.as_ref());
        Ok(Self {
            cluster: ClusterId::new(namespace, name, metadata.uid.as_deref())?,
            drive: Drive::KubeadmControlPlane,
            release,
            control_plane: machines(count, parts.template)?,
            pools,
            network: NetworkTarget::of(parts.cluster.spec.cluster_network.as_ref())?,
            defaults: Defaults::default(),
            topology: None,
            fields: None,
        })
    }
}

fn pool(parts: &PoolParts) -> Result<PoolTarget, TargetError> {
    let name = parts.deployment.metadata.name.as_deref().unwrap_or_default();
    let machines = machines(parts.deployment.spec.replicas.unwrap_or(1), &parts.template)?;
    Ok(PoolTarget { name: named("MachineDeployment: metadata.name", name)?, machines, version: PoolVersion::Release })
}

fn machines(count: u32, template: &MachineTemplate) -> Result<MachinesTarget, TargetError> {
    let profile = &template.profile;
    let class = profile.class.as_ref().map(|field| template.name_at(field)).transpose()?;
    let storage_class = profile.storage_class.as_ref().map(|field| template.name_at(field)).transpose()?;
    Ok(MachinesTarget { count, class, storage_class })
}

impl MachineTemplate {
    /// What its machine has, with what else is in it.
    pub fn machine(&self) -> Option<&Value> {
        self.object.pointer("/spec/template/spec")
    }

    /// The name that a field has.
    fn name_at<T: FromStr<Err = NameError>>(&self, field: &MachineField) -> Result<T, TargetError> {
        let (kind, name) = (&self.profile.template, self.object["metadata"]["name"].as_str().unwrap_or_default());
        let text = field.path().get(&self.object).and_then(Value::as_str).unwrap_or_default();
        named(&format!("{kind}/{name}: {}", field.path()), text)
    }
}

/// Leaves to a `KubeadmControlPlane` the add-ons that it brings: two of one would fight.
pub(super) fn leave_theirs(release: &mut Release, annotations: Option<&BTreeMap<String, String>>) {
    for (addon, skipped) in [("kube-proxy", annotation::SKIP_KUBE_PROXY), ("coredns", annotation::SKIP_COREDNS)] {
        if !annotations.is_some_and(|annotations| skipped.is_in(annotations)) {
            release.addons.retain(|name, _| name.as_str() != addon);
        }
    }
}
