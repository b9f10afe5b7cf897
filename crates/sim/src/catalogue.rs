//! What a World has from the beginning: definitions of kinds, images, classes, storage classes, namespaces.
//!
//! All of it is data: [`definition`] has the kinds that are not ours, `catalogue/` has objects. Our own kinds come from
//! [`windlass_api::kind::definition`].

mod addon;
pub mod definition;
pub(crate) mod management;

use std::sync::LazyLock;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use windlass_api::kind::definition::ours;
use windlass_api::kind::package_values::{AntreaConfig, KappControllerConfig, VSphereCPIConfig, VSphereCSIConfig};
use windlass_api::kind::packaging::{Package, PackageMetadata};
use windlass_api::kind::release::{ClusterBootstrapTemplate, OSImage, TanzuKubernetesRelease};
use windlass_api::kind::topology::ClusterClass;
use windlass_api::kind::virtual_machine::{VirtualMachineClass, VirtualMachineImage};

use crate::world::Error;

const NAMESPACES: &str = include_str!("../catalogue/namespaces.yaml");
const STORAGE_CLASSES: &str = include_str!("../catalogue/storage-classes.yaml");
const CLASSES: &str = include_str!("../catalogue/classes.yaml");
const IMAGES: &str = include_str!("../catalogue/images.yaml");
const RELEASES: &str = include_str!("../catalogue/releases.yaml");
const RELEASE_CONFIG_MAPS: &str = include_str!("../catalogue/release-config-maps.yaml");
const CLUSTER_CLASS: &str = include_str!("../catalogue/cluster-class.yaml");

/// The objects of the releases that are objects of their own. They are read once: every World has them, and the registry of
/// packages is asked for them often.
static OF_RELEASES: LazyLock<Option<Vec<DynamicObject>>> = LazyLock::new(|| read(RELEASES).ok());
static PACKAGES: LazyLock<Vec<Package>> = LazyLock::new(of_kind);
static TANZU_RELEASES: LazyLock<Vec<TanzuKubernetesRelease>> = LazyLock::new(of_kind);

/// Has a cluster know the kinds that packages are brought in by.
pub(crate) async fn furnish_packages(client: &Client) -> Result<(), Error> {
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    for definition in definition::of_packages() {
        create(&definitions, &definition).await?;
    }
    Ok(())
}

/// Has a management cluster know an infrastructure. What it knows of that is left as it is.
pub(crate) async fn furnish_infrastructure(
    client: &Client,
    infrastructure: &[CustomResourceDefinition],
) -> Result<(), Error> {
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    for definition in infrastructure {
        create(&definitions, definition).await?;
    }
    Ok(())
}

/// Puts everything into a management cluster that has nothing yet.
pub(crate) async fn furnish(client: &Client) -> Result<(), Error> {
    furnish_images(client).await?;
    furnish_releases(client).await?;
    furnish_class(client).await?;
    furnish_config_maps(client).await
}

async fn furnish_config_maps(client: &Client) -> Result<(), Error> {
    for map in read::<ConfigMap>(RELEASE_CONFIG_MAPS)? {
        let namespace = map.namespace().unwrap_or_default();
        create(&Api::<ConfigMap>::namespaced(client.clone(), &namespace), &map).await?;
    }
    Ok(())
}

/// The same for an API server that is not a World's. Packages are left out: their names are none that a definition could have, and
/// are served by a server of their own on a real cluster.
pub(crate) async fn furnish_real(client: &Client) -> Result<(), Error> {
    let elsewhere = [Package::kind(&()), PackageMetadata::kind(&())];
    let group = Package::group(&());
    furnish_definitions(client, |definition| definition.spec.group != group).await?;
    furnish_classes(client).await?;
    let is_put =
        |object: &&DynamicObject| object.types.as_ref().is_some_and(|it| !elsewhere.contains(&it.kind.as_str().into()));
    put_releases(client, of_releases()?.iter().filter(is_put)).await?;
    furnish_class(client).await?;
    furnish_config_maps(client).await
}

/// The part of it that clusters need whose machines Windlass replaces: definitions, namespaces, classes and images.
pub(crate) async fn furnish_images(client: &Client) -> Result<(), Error> {
    furnish_definitions(client, |_| true).await?;
    furnish_classes(client).await
}

async fn furnish_definitions(client: &Client, wanted: impl Fn(&CustomResourceDefinition) -> bool) -> Result<(), Error> {
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    for definition in definition::foreign().into_iter().chain(ours()).filter(wanted) {
        create(&definitions, &definition).await?;
    }
    Ok(())
}

/// Namespaces, classes and images.
async fn furnish_classes(client: &Client) -> Result<(), Error> {
    for (kind, file) in [
        (ApiResource::erase::<k8s_openapi::api::core::v1::Namespace>(&()), NAMESPACES),
        (ApiResource::erase::<k8s_openapi::api::storage::v1::StorageClass>(&()), STORAGE_CLASSES),
        (ApiResource::erase::<VirtualMachineClass>(&()), CLASSES),
    ] {
        let api = Api::<DynamicObject>::all_with(client.clone(), &kind);
        for object in read::<DynamicObject>(file)? {
            create(&api, &object).await?;
        }
    }
    let images = Api::<DynamicObject>::all_with(client.clone(), &ApiResource::erase::<VirtualMachineImage>(&()));
    for image in with_addons()? {
        create(&images, &image).await?;
    }
    Ok(())
}

/// Puts the class in that clusters of those releases are made by.
async fn furnish_class(client: &Client) -> Result<(), Error> {
    for object in read::<DynamicObject>(CLUSTER_CLASS)? {
        let Some(types) = &object.types else { continue };
        let Ok(kind) = GroupVersionKind::try_from(types) else { continue };
        // The plural of a class is not that of other words.
        let kind = match types.kind.as_str() {
            "ClusterClass" => ApiResource::erase::<ClusterClass>(&()),
            _ => ApiResource::from_gvk(&kind),
        };
        let namespace = object.namespace().unwrap_or_default();
        create(&Api::namespaced_with(client.clone(), &namespace, &kind), &object).await?;
    }
    Ok(())
}

/// Puts the releases in that are objects of their own, with all that belongs to them.
async fn furnish_releases(client: &Client) -> Result<(), Error> {
    put_releases(client, of_releases()?.iter()).await
}

async fn put_releases<'a>(client: &Client, objects: impl Iterator<Item = &'a DynamicObject>) -> Result<(), Error> {
    let kinds = [
        ApiResource::erase::<TanzuKubernetesRelease>(&()),
        ApiResource::erase::<OSImage>(&()),
        ApiResource::erase::<ClusterBootstrapTemplate>(&()),
        ApiResource::erase::<Package>(&()),
        ApiResource::erase::<PackageMetadata>(&()),
        ApiResource::erase::<AntreaConfig>(&()),
        ApiResource::erase::<VSphereCPIConfig>(&()),
        ApiResource::erase::<VSphereCSIConfig>(&()),
        ApiResource::erase::<KappControllerConfig>(&()),
        ApiResource::erase::<Secret>(&()),
        ApiResource::erase::<ConfigMap>(&()),
    ];
    for object in objects {
        let named = object.types.as_ref().map(|types| types.kind.as_str());
        let Some(kind) = kinds.iter().find(|kind| Some(kind.kind.as_str()) == named) else { continue };
        let api: Api<DynamicObject> = match object.namespace() {
            Some(namespace) => Api::namespaced_with(client.clone(), &namespace, kind),
            None => Api::all_with(client.clone(), kind),
        };
        create(&api, object).await?;
        if let Some(status) = object.data.get("status") {
            let (name, patch) = (object.name_any(), serde_json::json!({"status": status}));
            let written = api.patch_status(&name, &PatchParams::default(), &Patch::Merge(&patch)).await;
            written.map_err(|source| Error::Furnish { object: name, source: Box::new(source) })?;
        }
    }
    Ok(())
}

/// The objects of the releases that are objects of their own.
fn of_releases() -> Result<&'static [DynamicObject], Error> {
    match &*OF_RELEASES {
        Some(objects) => Ok(objects),
        // Says what is wrong with them.
        None => read::<DynamicObject>(RELEASES).map(|_| [].as_slice()),
    }
}

/// Those of one kind.
fn of_kind<K: Resource<DynamicType = ()> + DeserializeOwned>() -> Vec<K> {
    let all = of_releases().unwrap_or_default().iter();
    let these = all.filter(|object| object.types.as_ref().is_some_and(|types| types.kind == K::kind(&())));
    these.filter_map(|object| object.clone().try_parse().ok()).collect()
}

/// The packages that a World has.
pub fn packages() -> &'static [Package] {
    &PACKAGES
}

/// The releases that are objects of their own.
pub fn releases() -> &'static [TanzuKubernetesRelease] {
    &TANZU_RELEASES
}

/// The images of the releases that a World has, with their add-ons.
pub fn images() -> Result<Vec<VirtualMachineImage>, Error> {
    with_addons()
}

/// The images, with all fields that the type has.
fn with_addons<K: Resource + DeserializeOwned>() -> Result<Vec<K>, Error> {
    let mut images: Vec<K> = read(IMAGES)?;
    for image in &mut images {
        addon::annotate(image).map_err(|source| Error::Image { image: image.name_any(), source: Box::new(source) })?;
    }
    Ok(images)
}

fn read<T: serde::de::DeserializeOwned>(file: &str) -> Result<Vec<T>, Error> {
    serde_saphyr::from_multiple(file).map_err(|source| Error::Catalogue(Box::new(source)))
}

async fn create<K>(api: &Api<K>, object: &K) -> Result<(), Error>
where
    K: kube::Resource + Clone + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned,
{
    let refused = |source| Error::Furnish { object: object.name_any(), source: Box::new(source) };
    match api.create(&PostParams::default(), object).await {
        Ok(_) => Ok(()),
        // Where it is tried again because a definition was not established yet.
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        Err(source) => Err(refused(source)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use windlass_api::annotation;
    use windlass_api::machine_image::{Addon, Distribution};
    use windlass_api::name::AddonName;
    use windlass_api::version::facts;

    use super::*;

    #[test]
    fn every_image_says_which_release_it_is_and_is_named_after_it() {
        let images = images().unwrap();
        assert_eq!(images.len(), 9);
        for image in images {
            let annotations = image.annotations();
            let distribution: Distribution = serde_json::from_str(&annotations[annotation::DISTRIBUTION.name]).unwrap();
            let version = distribution.distribution.version;
            let name = format!("-k8sd-{}", version.as_str().replace('+', "-"));
            assert!(image.name_any().ends_with(&name), "{} should end in {name}", image.name_any());
            assert!(version.as_str().starts_with(distribution.kubernetes.version.as_str()));
        }
    }

    #[test]
    fn every_image_comes_with_all_add_ons_that_its_version_can_have() {
        for image in images().unwrap() {
            let addons = image.annotations().iter();
            let addons = addons.filter_map(|(key, text)| Some((annotation::addon_name(key)?.unwrap(), text)));
            let addons: BTreeMap<AddonName, Addon> =
                addons.map(|(name, text)| (name, serde_json::from_str(text).unwrap())).collect();
            let distribution: Distribution =
                serde_json::from_str(&image.annotations()[annotation::DISTRIBUTION.name]).unwrap();
            let policies = facts::has_pod_security_policy(&distribution.kubernetes.version).then_some("defaultpsp");
            let wanted = ["antrea", "authsvc", "calico", "pvcsi", "vmware-guest-cluster"].into_iter().chain(policies);
            let found: BTreeSet<&str> = addons.keys().map(AsRef::as_ref).collect();
            assert_eq!(found, wanted.collect(), "{}", image.name_any());
            for (name, addon) in addons {
                assert_eq!(
                    (addon.kind.as_str(), addon.name.is_some()),
                    ("inline", name.as_str() != "authsvc"),
                    "{name}"
                );
                assert!(!serde_saphyr::from_multiple::<DynamicObject>(&addon.value).unwrap().is_empty(), "{name}");
                let left = ["{repository}", "{tag}", "{distribution}", "{version}"];
                assert!(!left.iter().any(|left| addon.value.contains(left)), "{name}: {}", addon.value);
            }
        }
    }
}
