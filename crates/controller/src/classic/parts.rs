//! The objects of a classic cluster, as they are, with who owns which field. They are read when they are needed: there are few of them,
//! and a cache without the managed fields would not do.

use kube::api::{DynamicObject, ListParams};
use kube::core::ApiResource;
use kube::{Api, Client, Resource};
use serde_json::Value;
use windlass_api::kind::bootstrap::KubeadmConfigTemplate;
use windlass_api::kind::cluster_api::{Cluster, MachineDeployment};
use windlass_api::kind::control_plane::KubeadmControlPlane;
use windlass_api::kind::release::ReleaseConfigMap;
use windlass_api::kind::wcp::WCPMachineTemplate;
use windlass_api::label;
use windlass_api::version::{KubernetesVersion, VersionPrefix};
use windlass_plan::resolve::labelled::{NAMESPACE, Published};
use windlass_plan::target::{ClassicParts, ClassicPool};

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

/// All releases that are published.
pub async fn published(client: &Client) -> Result<Published, PartsError> {
    let maps: Api<k8s_openapi::api::core::v1::ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let of_releases = ListParams::default().labels(label::RELEASE_VERSION.name);
    let listed = maps.list(&of_releases).await;
    let listed = listed.map_err(read(format!("the releases in {NAMESPACE}")))?;
    let maps: Vec<ReleaseConfigMap> = listed.items.iter().map(release_map).collect();
    Ok(Published::read(&maps))
}

/// The release that somebody means who names it, or begins to. Whoever asks, and wherever, it is this one.
pub async fn named(client: &Client, asked: &VersionPrefix) -> Result<KubernetesVersion, Unplanned> {
    Ok(published(client).await?.chosen(asked)?.distribution.clone())
}

/// A `ConfigMap` as a part of a release.
pub fn release_map(map: &k8s_openapi::api::core::v1::ConfigMap) -> ReleaseConfigMap {
    let binary = map.binary_data.iter().flatten().map(|(key, _)| (key.clone(), Value::Null));
    ReleaseConfigMap {
        metadata: map.metadata.clone(),
        data: map.data.clone().unwrap_or_default(),
        binary_data: binary.collect(),
    }
}

/// The objects of a cluster; `None` while it has no control plane yet.
pub async fn parts(client: &Client, cluster: &Cluster) -> Result<Option<ClassicParts>, PartsError> {
    let namespace = cluster.metadata.namespace.as_deref().unwrap_or_default();
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    let Some(reference) = &cluster.spec.control_plane_ref else { return Ok(None) };
    let by = format!("spec.controlPlaneRef of Cluster/{name}");
    known(&by, &reference.kind, "KubeadmControlPlane")?;
    let reader = Reader { client, namespace };
    let Some(control_plane) = reader.find::<KubeadmControlPlane>(&reference.name).await? else { return Ok(None) };
    let by = format!("KubeadmControlPlane/{}", reference.name);
    let place = "/spec/machineTemplate/spec/infrastructureRef";
    let template = reader.template::<WCPMachineTemplate>(&by, &control_plane, place).await?;
    let mut pools = Vec::new();
    for deployment in reader.all::<MachineDeployment>().await? {
        if deployment["spec"]["clusterName"].as_str() != Some(name)
            || !deployment["metadata"]["deletionTimestamp"].is_null()
        {
            continue;
        }
        let by = format!("MachineDeployment/{}", deployment["metadata"]["name"].as_str().unwrap_or_default());
        let place = "/spec/template/spec/infrastructureRef";
        let infrastructure = reader.template::<WCPMachineTemplate>(&by, &deployment, place).await?;
        let place = "/spec/template/spec/bootstrap/configRef";
        let bootstrap = reader.template::<KubeadmConfigTemplate>(&by, &deployment, place).await?;
        pools.push(ClassicPool { deployment, infrastructure, bootstrap });
    }
    Ok(Some(ClassicParts { cluster: cluster.clone(), control_plane, template, pools }))
}

struct Reader<'a> {
    client: &'a Client,
    namespace: &'a str,
}

impl Reader<'_> {
    fn api<K: Resource<DynamicType = ()>>(&self) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), self.namespace, &ApiResource::erase::<K>(&()))
    }

    async fn find<K: Resource<DynamicType = ()>>(&self, name: &str) -> Result<Option<Value>, PartsError> {
        let object = format!("{}/{name}", K::kind(&()));
        let found = self.api::<K>().get_opt(name).await.map_err(read(object.clone()))?;
        found.map(|found| whole::<K>(&found)).transpose()
    }

    async fn all<K: Resource<DynamicType = ()>>(&self) -> Result<Vec<Value>, PartsError> {
        let what = format!("the {}s of {}", K::kind(&()), self.namespace);
        let listed = self.api::<K>().list(&ListParams::default()).await.map_err(read(what))?;
        listed.items.iter().map(whole::<K>).collect()
    }

    /// The template that an object refers to.
    async fn template<K: Resource<DynamicType = ()>>(
        &self,
        by: &str,
        object: &Value,
        place: &str,
    ) -> Result<Value, PartsError> {
        let text = |key: &str| object.pointer(place).and_then(|found| found[key].as_str()).unwrap_or_default();
        let kind: &'static str =
            if K::kind(&()) == "WCPMachineTemplate" { "WCPMachineTemplate" } else { "KubeadmConfigTemplate" };
        known(by, text("kind"), kind)?;
        let missing = || PartsError::Missing { by: by.to_owned(), object: format!("{kind}/{}", text("name")) };
        self.find::<K>(text("name")).await?.ok_or_else(missing)
    }
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
fn whole<K: Resource<DynamicType = ()>>(found: &DynamicObject) -> Result<Value, PartsError> {
    let name = found.metadata.name.as_deref().unwrap_or_default();
    let unreadable = |error: serde_json::Error| PartsError::Unreadable {
        object: format!("{}/{name}", K::kind(&())),
        why: error.to_string(),
    };
    let mut object = serde_json::to_value(found).map_err(unreadable)?;
    object["apiVersion"] = K::api_version(&()).into();
    object["kind"] = K::kind(&()).into();
    Ok(object)
}
