//! The objects of a classic cluster, as they are, with who owns which field. They are read when they are needed: there are few of them,
//! and a cache without the managed fields would not do.

use std::borrow::Borrow;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::Value;
use windlass_api::kind::ContractReference;
use windlass_api::kind::bootstrap::KubeadmConfigTemplate;
use windlass_api::kind::cluster_api::{Cluster, MachineDeployment};
use windlass_api::kind::control_plane::KubeadmControlPlane;
use windlass_api::kind::release::ReleaseConfigMap;
use windlass_api::label;
use windlass_api::version::{KubernetesVersion, VersionPrefix};
use windlass_plan::profile::{self, Profiles};
use windlass_plan::resolve::labelled::{NAMESPACE, Published};
use windlass_plan::target::{ClassicParts, ClassicPool, MachineTemplate};

use super::Unplanned;
use crate::said::said;

/// Why the objects of a cluster are not to be had.
#[derive(Debug, thiserror::Error)]
pub enum PartsError {
    /// The API did not tell.
    #[error("read {object}: {}", said(source))]
    Read {
        /// What.
        object: String,
        /// What the API said.
        #[source]
        source: Box<kube::Error>,
    },
    /// It refers to something that is not there.
    #[error("{by} refers to {object}, which is not there")]
    Missing {
        /// Who does.
        by: String,
        /// What.
        object: String,
    },
    /// Its machines are made from templates that nobody has described.
    #[error("{by} refers to a {kind} of {group}, which no infrastructure profile is about: {way_out}")]
    NoProfile {
        /// Who does.
        by: String,
        /// The kind.
        kind: String,
        /// Its group.
        group: String,
        /// What a person can do about it.
        way_out: String,
    },
    /// It is made of something that no release speaks of.
    #[error("{by} refers to a {found}: only a {known} can be brought to a release")]
    OtherKind {
        /// Who does.
        by: String,
        /// The kind.
        found: String,
        /// The kind that would do.
        known: &'static str,
    },
    /// It cannot be written down as it was read.
    #[error("{object} cannot be read: {why}")]
    Unreadable {
        /// What.
        object: String,
        /// Why.
        why: String,
    },
}

impl PartsError {
    /// Whether it lies with the API, and trying again may help.
    pub fn is_read(&self) -> bool {
        matches!(self, Self::Read { .. })
    }
}

/// All releases that are published, and the infrastructure that they are for.
pub async fn published(client: &Client) -> Result<Published, PartsError> {
    let list = async |namespace: &str, label: &str, what: &str| {
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
        let listed = maps.list(&ListParams::default().labels(label)).await;
        listed.map(|listed| listed.items).map_err(read(format!("the {what} in {namespace}")))
    };
    let profiles = list(profile::NAMESPACE, label::INFRASTRUCTURE_PROFILE.name, "infrastructure profiles").await?;
    let maps = list(NAMESPACE, label::RELEASE_VERSION.name, "releases").await?;
    Ok(published_in(&maps, &profiles))
}

/// The releases of these `ConfigMap`s, for the infrastructure of those.
pub(super) fn published_in<M: Borrow<ConfigMap>>(maps: &[M], profiles: &[M]) -> Published {
    let text = |map: &'_ M| map.borrow().data.as_ref().and_then(|data| data.get(profile::KEY)).cloned();
    let profiles: Vec<(String, Option<String>)> =
        profiles.iter().map(|map| (map.borrow().metadata.name.clone().unwrap_or_default(), text(map))).collect();
    let profiles = Profiles::read(profiles.iter().map(|(name, text)| (name.as_str(), text.as_deref())));
    let maps: Vec<ReleaseConfigMap> = maps.iter().map(|map| release_map(map.borrow())).collect();
    Published::read(&maps, profiles)
}

/// The release that somebody means who names it, or begins to. Whoever asks, and wherever, it is this one.
pub async fn named(client: &Client, asked: &VersionPrefix) -> Result<KubernetesVersion, Unplanned> {
    Ok(published(client).await?.chosen(asked)?.distribution.clone())
}

/// A `ConfigMap` as a part of a release.
fn release_map(map: &ConfigMap) -> ReleaseConfigMap {
    let binary = map.binary_data.iter().flatten().map(|(key, _)| (key.clone(), Value::Null));
    ReleaseConfigMap {
        metadata: map.metadata.clone(),
        data: map.data.clone().unwrap_or_default(),
        binary_data: binary.collect(),
    }
}

/// The objects of a cluster; `None` while it has no control plane yet.
pub async fn parts(
    client: &Client,
    cluster: &Cluster,
    profiles: &Profiles,
) -> Result<Option<ClassicParts>, PartsError> {
    let namespace = cluster.metadata.namespace.as_deref().unwrap_or_default();
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    let Some(reference) = &cluster.spec.control_plane_ref else { return Ok(None) };
    let by = format!("spec.controlPlaneRef of Cluster/{name}");
    known(&by, &reference.kind, "KubeadmControlPlane")?;
    let reader = Reader { client, namespace, profiles };
    let Some(control_plane) = reader.find(&ApiResource::erase::<KubeadmControlPlane>(&()), &reference.name).await?
    else {
        return Ok(None);
    };
    let by = format!("KubeadmControlPlane/{}", reference.name);
    let place = "/spec/machineTemplate/spec/infrastructureRef";
    let template = reader.machines(&by, &control_plane, place).await?;
    let mut pools = Vec::new();
    for deployment in reader.all(&ApiResource::erase::<MachineDeployment>(&())).await? {
        if deployment["spec"]["clusterName"].as_str() != Some(name)
            || !deployment["metadata"]["deletionTimestamp"].is_null()
        {
            continue;
        }
        let by = format!("MachineDeployment/{}", deployment["metadata"]["name"].as_str().unwrap_or_default());
        let place = "/spec/template/spec/infrastructureRef";
        let infrastructure = reader.machines(&by, &deployment, place).await?;
        let bootstrap = reader.bootstrap(&by, &deployment).await?;
        pools.push(ClassicPool { deployment, infrastructure, bootstrap });
    }
    Ok(Some(ClassicParts { cluster: cluster.clone(), control_plane, template, pools }))
}

struct Reader<'a> {
    client: &'a Client,
    namespace: &'a str,
    profiles: &'a Profiles,
}

impl Reader<'_> {
    fn api(&self, resource: &ApiResource) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), self.namespace, resource)
    }

    async fn find(&self, resource: &ApiResource, name: &str) -> Result<Option<Value>, PartsError> {
        let object = format!("{}/{name}", resource.kind);
        let found = self.api(resource).get_opt(name).await.map_err(read(object))?;
        found.map(|found| whole(resource, &found)).transpose()
    }

    async fn all(&self, resource: &ApiResource) -> Result<Vec<Value>, PartsError> {
        let what = format!("the {}s of {}", resource.kind, self.namespace);
        let listed = self.api(resource).list(&ListParams::default()).await.map_err(read(what))?;
        listed.items.iter().map(|found| whole(resource, found)).collect()
    }

    /// The template that machines are made from.
    async fn machines(&self, by: &str, object: &Value, place: &str) -> Result<MachineTemplate, PartsError> {
        let reference = reference(object, place);
        let Some(profile) = self.profiles.of(&reference) else {
            let ContractReference { kind, api_group: group, .. } = reference;
            return Err(PartsError::NoProfile { by: by.to_owned(), kind, group, way_out: self.profiles.way_out() });
        };
        let gvk = GroupVersionKind::gvk(&profile.group, &profile.version, &profile.template);
        let object = self.referred(by, &reference, &ApiResource::from_gvk(&gvk)).await?;
        Ok(MachineTemplate { object, profile: profile.clone() })
    }

    /// The template of what they are told.
    async fn bootstrap(&self, by: &str, object: &Value) -> Result<Value, PartsError> {
        let reference = reference(object, "/spec/template/spec/bootstrap/configRef");
        known(by, &reference.kind, "KubeadmConfigTemplate")?;
        self.referred(by, &reference, &ApiResource::erase::<KubeadmConfigTemplate>(&())).await
    }

    /// The object that a reference is to.
    async fn referred(
        &self,
        by: &str,
        reference: &ContractReference,
        resource: &ApiResource,
    ) -> Result<Value, PartsError> {
        let object = format!("{}/{}", resource.kind, reference.name);
        let missing = || PartsError::Missing { by: by.to_owned(), object: object.clone() };
        self.find(resource, &reference.name).await?.ok_or_else(missing)
    }
}

/// What an object refers to at a place; a reference to nothing where there is none.
fn reference(object: &Value, place: &str) -> ContractReference {
    let text = |key: &str| object.pointer(place).and_then(|found| found[key].as_str()).unwrap_or_default().to_owned();
    ContractReference { api_group: text("apiGroup"), kind: text("kind"), name: text("name") }
}

fn known(by: &str, found: &str, known: &'static str) -> Result<(), PartsError> {
    if found == known {
        return Ok(());
    }
    Err(PartsError::OtherKind { by: by.to_owned(), found: found.to_owned(), known })
}

fn read(object: String) -> impl FnOnce(kube::Error) -> PartsError {
    move |source| PartsError::Read { object, source: Box::new(source) }
}

/// An object with all that it says, also of which kind it is: items of a list do not.
fn whole(resource: &ApiResource, found: &DynamicObject) -> Result<Value, PartsError> {
    let name = found.metadata.name.as_deref().unwrap_or_default();
    let unreadable = |error: serde_json::Error| PartsError::Unreadable {
        object: format!("{}/{name}", resource.kind),
        why: error.to_string(),
    };
    let mut object = serde_json::to_value(found).map_err(unreadable)?;
    object["apiVersion"] = resource.api_version.as_str().into();
    object["kind"] = resource.kind.as_str().into();
    Ok(object)
}
