//! A release: an immutable set of versions, images and add-ons.
//!
//! It is read whole from the annotations of a machine image, or refused whole: no add-on of a malformed image is ever
//! applied. The objects of its add-ons are made safe here, once: where and when their pods may run is part of the release.

mod builtin;
mod manifest;
mod placement;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};
use windlass_api::annotation;
use windlass_api::kind::virtual_machine::VirtualMachineImage;
use windlass_api::label;
use windlass_api::machine_image::{Addon, Distribution};
use windlass_api::name::{AddonName, ImageName, NameError};
use windlass_api::version::KubernetesVersion;

use crate::digest;

/// An immutable set of versions, images and add-ons.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Release {
    /// The machine image that it is on.
    pub image: ImageName,
    /// The version of the whole.
    pub distribution: KubernetesVersion,
    /// The version of Kubernetes in it.
    pub kubernetes: KubernetesVersion,
    /// Where the images of Kubernetes come from.
    pub image_repository: String,
    /// The image of etcd.
    pub etcd: ImageTag,
    /// The image of `CoreDNS`.
    pub coredns: ImageTag,
    /// The add-ons, `kube-proxy` and `coredns` included, ready to be applied.
    pub addons: BTreeMap<AddonName, AddonRelease>,
    /// Made once: a release never changes.
    #[serde(skip)]
    digest: String,
}

/// The image of a component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImageTag {
    /// The registry, or the part of it.
    pub repository: String,
    /// The tag.
    pub tag: String,
}

/// An add-on of a release.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AddonRelease {
    /// What it is for: the key in `status.addons` (`proxy`, `dns`, `csi` …).
    pub slot: String,
    /// The name that people know it by.
    pub display_name: String,
    /// Its version.
    pub version: String,
    /// Its objects, with the strategies of section 6 of the design already in them.
    pub objects: Vec<Value>,
}

/// A machine image that is no release. Nothing of it is used.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseError {
    /// It has no name, or one that no image has.
    #[error("read the release of a VirtualMachineImage")]
    Name(#[source] NameError),
    /// It does not say what is on it.
    #[error("VirtualMachineImage {image} is no release: it has no annotation {}", annotation::DISTRIBUTION)]
    NoDistribution {
        /// Its name.
        image: ImageName,
    },
    /// An annotation is not the JSON that it should be.
    #[error("VirtualMachineImage {image}: {key} cannot be read")]
    Json {
        /// The image.
        image: ImageName,
        /// The annotation.
        key: String,
        /// What is wrong.
        #[source]
        source: serde_json::Error,
    },
    /// The key of an add-on ends in no name.
    #[error("VirtualMachineImage {image}: {key} names no add-on")]
    AddonName {
        /// The image.
        image: ImageName,
        /// The annotation.
        key: String,
        /// What is wrong.
        #[source]
        source: NameError,
    },
    /// An add-on's value is to be read in a way that is not known.
    #[error("VirtualMachineImage {image}: {key} has the type {kind:?}; only \"inline\" is known")]
    UnknownType {
        /// The image.
        image: ImageName,
        /// The annotation.
        key: String,
        /// Its type.
        kind: String,
    },
    /// An add-on has the name of one that comes with Kubernetes.
    #[error("VirtualMachineImage {image}: {key} is an add-on that comes with every release")]
    Builtin {
        /// The image.
        image: ImageName,
        /// The annotation.
        key: String,
    },
    /// An add-on's manifests cannot be used.
    #[error("VirtualMachineImage {image}: the manifests of {key} cannot be used")]
    Manifest {
        /// The image.
        image: ImageName,
        /// The annotation.
        key: String,
        /// What is wrong.
        #[source]
        source: ManifestError,
    },
}

pub use manifest::ManifestError;

impl Release {
    /// Reads the release of a machine image: all of it, or nothing.
    pub fn from_image(image: &VirtualMachineImage) -> Result<Self, ReleaseError> {
        let name = ImageName::new(image.metadata.name.as_deref().unwrap_or_default()).map_err(ReleaseError::Name)?;
        let none = BTreeMap::new();
        let annotations = image.metadata.annotations.as_ref().unwrap_or(&none);

        let key = annotation::DISTRIBUTION.name;
        let text = annotations.get(key).ok_or_else(|| ReleaseError::NoDistribution { image: name.clone() })?;
        let read: Distribution = serde_json::from_str(text).map_err(|source| ReleaseError::Json {
            image: name.clone(),
            key: key.to_owned(),
            source,
        })?;

        let mut release = Self {
            image: name,
            distribution: read.distribution.version,
            kubernetes: read.kubernetes.version,
            image_repository: read.kubernetes.image_repository,
            etcd: ImageTag { repository: read.etcd.image_repository, tag: read.etcd.version },
            coredns: ImageTag { repository: read.coredns.image_repository, tag: read.coredns.version },
            addons: BTreeMap::new(),
            digest: String::new(),
        };
        release.addons = builtin::addons(&release).map_err(ReleaseError::Name)?;
        for (key, text) in annotations {
            let Some(addon) = annotation::addon_name(key) else { continue };
            let (image, key) = (release.image.clone(), key.clone());
            let addon = addon.map_err(|source| ReleaseError::AddonName { image, key: key.clone(), source })?;
            release.add(addon, key, text)?;
        }
        release.digest = digest::of(&json!(release));
        Ok(release)
    }

    /// What tells the release from all others, whatever its name: `sha256:…`.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    fn add(&mut self, addon: AddonName, key: String, text: &str) -> Result<(), ReleaseError> {
        let image = self.image.clone();
        let read: Addon = match serde_json::from_str(text) {
            Ok(read) => read,
            Err(source) => return Err(ReleaseError::Json { image, key, source }),
        };
        if read.kind != "inline" {
            return Err(ReleaseError::UnknownType { image, key, kind: read.kind });
        }
        if self.addons.contains_key(&addon) {
            return Err(ReleaseError::Builtin { image, key });
        }
        let mut objects = match manifest::objects(&read.value) {
            Ok(objects) => objects,
            Err(source) => return Err(ReleaseError::Manifest { image, key, source }),
        };
        for object in &mut objects {
            placement::make_safe(object, &addon, &self.distribution);
        }
        let release = AddonRelease {
            slot: slot(&addon).to_owned(),
            display_name: read.name.unwrap_or_else(|| addon.to_string()),
            version: read.version.unwrap_or_else(|| self.distribution.to_string()),
            objects,
        };
        self.addons.insert(addon, release);
        Ok(())
    }
}

/// What an add-on is for. An add-on that is not known here is for itself.
fn slot(addon: &AddonName) -> &str {
    match addon.as_str() {
        "pvcsi" => "csi",
        "vmware-guest-cluster" => "cloudprovider",
        "calico" | "antrea" => "cni",
        "defaultpsp" => "psp",
        name => name,
    }
}

/// What an object of an add-on is to its cluster, whichever release it is of: `addon/kube-proxy/DaemonSet`, and
/// `addon/pvcsi/ConfigMap/kube-system/settings` where an add-on has an object of another name than its own.
pub fn addon_role(addon: &AddonName, object: &Value) -> String {
    let kind = object["kind"].as_str().unwrap_or_default();
    let metadata = &object["metadata"];
    let name = metadata["name"].as_str().unwrap_or_default();
    let bound = distribution_of(object).map(|distribution| format!("-{}", distribution.label()));
    let name = bound.and_then(|suffix| name.strip_suffix(&suffix)).unwrap_or(name);
    if name == addon.as_str() {
        return format!("addon/{addon}/{kind}");
    }
    match metadata["namespace"].as_str() {
        Some(namespace) => format!("addon/{addon}/{kind}/{namespace}/{name}"),
        None => format!("addon/{addon}/{kind}/{name}"),
    }
}

/// The distribution that an object of an add-on is bound to; `None` if it is there once for all of them.
pub fn distribution_of(object: &Value) -> Option<KubernetesVersion> {
    object["metadata"]["labels"][label::DISTRIBUTION_VERSION.name].as_str()?.parse().ok()
}

#[cfg(test)]
mod tests;
