//! A release as the annotations of a machine image: what is on its disk, and the add-ons that belong to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use windlass_api::annotation;
use windlass_api::kind::virtual_machine::VirtualMachineImage;
use windlass_api::machine_image::{Addon, Distribution};
use windlass_api::name::{AddonName, ImageName};
use windlass_api::version::facts;

use super::error::{Subject, quoted};
use super::{AddonRelease, ImageTag, MachineImage, Original, Release, ReleaseError, Spelling, builtin, manifest};

impl Release {
    /// Reads the release of a machine image: all of it, or nothing.
    pub fn from_image(image: &VirtualMachineImage) -> Result<Self, ReleaseError> {
        let subject = Subject::new("VirtualMachineImage", None, image.metadata.name.as_deref());
        let name: ImageName = subject.read("metadata.name", image.metadata.name.as_deref().unwrap_or_default())?;
        let none = BTreeMap::new();
        let annotations = image.metadata.annotations.as_ref().unwrap_or(&none);

        let key = annotation::DISTRIBUTION.name;
        let text = annotations.get(key).ok_or_else(|| ReleaseError::NoDistribution { image: name.clone() })?;
        subject.check_length(key, text)?;
        let read: Distribution = serde_json::from_str(text).map_err(|source| subject.unreadable(key, &source))?;

        let spelling = Spelling::Image(name.clone());
        let mut release = Self::of(spelling, read.distribution.version, read.kubernetes.version);
        let coredns = ImageTag { repository: read.coredns.image_repository, tag: read.coredns.version };
        release.original = Some(Arc::new(Original::of(&name, annotations)));
        release.images = vec![MachineImage { name, os: None, reference: None }];
        release.addons = builtin::addons(&release, &read.kubernetes.image_repository, &coredns)
            .map_err(|problem| subject.wrong(key, problem))?;
        release.image_repository = Some(read.kubernetes.image_repository);
        release.etcd = Some(ImageTag { repository: read.etcd.image_repository, tag: read.etcd.version });
        release.coredns = Some(coredns);
        for (key, text) in annotations {
            let Some(addon) = annotation::addon_name(key) else { continue };
            let addon = addon.map_err(|source| subject.addon_name(key, &source))?;
            release.add(&subject, addon, key, text)?;
        }
        Ok(release.sealed())
    }

    fn add(&mut self, subject: &Subject, addon: AddonName, key: &str, text: &str) -> Result<(), ReleaseError> {
        subject.check_length(key, text)?;
        let read: Addon = serde_json::from_str(text).map_err(|source| subject.unreadable(key, &source))?;
        if read.kind != "inline" {
            let problem = format!(r#"has the type {}; only "inline" is known"#, quoted(&read.kind));
            return Err(subject.wrong(key, problem));
        }
        if self.addons.contains_key(&addon) {
            return Err(subject.wrong(key, "is an add-on that comes with every release"));
        }
        let objects = manifest::objects(&read.value, &addon, &self.distribution)
            .map_err(|source| subject.manifest(key, source))?;
        let is_policy = |object: &Value| object["kind"] == "PodSecurityPolicy";
        if !facts::has_pod_security_policy(&self.kubernetes) && objects.iter().any(is_policy) {
            return Err(subject.wrong(key, format!("has a PodSecurityPolicy, a kind that {} has not", self.kubernetes)));
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
pub(crate) fn slot(addon: &AddonName) -> &str {
    match addon.as_str() {
        "pvcsi" => "csi",
        "vmware-guest-cluster" => "cloudprovider",
        "calico" | "antrea" => "cni",
        "defaultpsp" => "psp",
        name => name,
    }
}

#[cfg(test)]
mod tests;
