//! What a World has from the beginning: definitions of kinds, images, classes, storage classes, namespaces.
//!
//! All of it is data: [`definition`] has the kinds that are not ours, `catalogue/` has objects. Our own kinds come from
//! [`windlass_api::kind::definition`].

pub mod definition;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::ApiResource;
use kube::{Client, ResourceExt};
use windlass_api::kind::definition::ours;
use windlass_api::kind::virtual_machine::{VirtualMachineClass, VirtualMachineImage};

use crate::world::Error;

const NAMESPACES: &str = include_str!("../catalogue/namespaces.yaml");
const STORAGE_CLASSES: &str = include_str!("../catalogue/storage-classes.yaml");
const CLASSES: &str = include_str!("../catalogue/classes.yaml");
const IMAGES: &str = include_str!("../catalogue/images.yaml");

/// Puts everything into a management cluster that has nothing yet.
pub(crate) async fn furnish(client: &Client) -> Result<(), Error> {
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    for definition in definition::foreign().into_iter().chain(ours()) {
        create(&definitions, &definition).await?;
    }
    for (kind, file) in [
        (ApiResource::erase::<k8s_openapi::api::core::v1::Namespace>(&()), NAMESPACES),
        (ApiResource::erase::<k8s_openapi::api::storage::v1::StorageClass>(&()), STORAGE_CLASSES),
        (ApiResource::erase::<VirtualMachineClass>(&()), CLASSES),
        (ApiResource::erase::<VirtualMachineImage>(&()), IMAGES),
    ] {
        let api = Api::<DynamicObject>::all_with(client.clone(), &kind);
        for object in read::<DynamicObject>(file)? {
            create(&api, &object).await?;
        }
    }
    Ok(())
}

/// The images of the releases that a World has.
pub fn images() -> Result<Vec<VirtualMachineImage>, Error> {
    read(IMAGES)
}

fn read<T: serde::de::DeserializeOwned>(file: &str) -> Result<Vec<T>, Error> {
    serde_saphyr::from_multiple(file).map_err(|source| Error::Catalogue(Box::new(source)))
}

async fn create<K>(api: &Api<K>, object: &K) -> Result<(), Error>
where
    K: kube::Resource + Clone + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned,
{
    let refused = |source| Error::Furnish { object: object.name_any(), source: Box::new(source) };
    api.create(&PostParams::default(), object).await.map_err(refused)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use windlass_api::annotation;
    use windlass_api::machine_image::{Addon, Distribution};

    use super::*;

    #[test]
    fn every_image_says_which_release_it_is_and_is_named_after_it() {
        let images = images().unwrap();
        assert_eq!(images.len(), 4);
        for image in images {
            let annotations = image.annotations();
            let distribution: Distribution = serde_json::from_str(&annotations[annotation::DISTRIBUTION.name]).unwrap();
            let version = distribution.distribution.version;
            assert_eq!(image.name_any(), format!("photon-k8sd-{}", version.as_str().replace('+', "-")));
            assert!(version.as_str().starts_with(distribution.kubernetes.version.as_str()));
            let addons = annotations.iter().filter(|(key, _)| annotation::addon_name(key).is_some());
            for (key, addon) in addons {
                let addon: Addon = serde_json::from_str(addon).unwrap();
                assert_eq!(addon.kind, "inline", "{key}");
                assert!(serde_saphyr::from_multiple::<DynamicObject>(&addon.value).unwrap().len() == 1, "{key}");
            }
        }
    }
}
