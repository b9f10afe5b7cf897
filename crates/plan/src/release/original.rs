//! What a release was read from, word for word: so it can be kept for a cluster, and read again when its image is gone.
//!
//! The words are kept and not what they were read as: a later Windlass that reads them otherwise must not take a release that
//! nobody has touched for another one.

use std::collections::BTreeMap;

use serde_json::json;
use windlass_api::annotation;
use windlass_api::kind::virtual_machine::{VirtualMachineImage, VirtualMachineImageSpec};
use windlass_api::name::{ImageName, NameError};

use super::{Release, ReleaseError};
use crate::digest;

/// The key of the image's name beside its annotations, none of which is called so.
const IMAGE: &str = "image";

/// What a machine image said about the release on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Original {
    data: BTreeMap<String, String>,
    digest: String,
}

/// A release that was kept, and is of no use.
#[derive(Debug, thiserror::Error)]
pub enum KeptError {
    /// It does not say which image it is of.
    #[error("it has no key {IMAGE}")]
    NoImage,
    /// What it says is the name of its image is none.
    #[error("its key {IMAGE}")]
    Image(#[source] NameError),
    /// Somebody has put something else in its place.
    #[error("what is in it has the digest {found}, and not {expected}")]
    Other {
        /// The digest of what is in it.
        found: String,
        /// The one that it should have.
        expected: String,
    },
    /// It cannot be read as a release.
    #[error("read what it says")]
    Release(#[source] ReleaseError),
}

impl Original {
    /// What an image says. Annotations that are not about its release are not part of it.
    pub(super) fn of(image: &ImageName, annotations: &BTreeMap<String, String>) -> Self {
        let is_read = |key: &&String| *key == annotation::DISTRIBUTION.name || annotation::addon_name(key).is_some();
        let read = annotations.iter().filter(|(key, _)| is_read(key));
        let mut data: BTreeMap<String, String> = read.map(|(key, text)| (key.clone(), text.clone())).collect();
        data.insert(IMAGE.to_owned(), image.to_string());
        Self { digest: digest::of(&json!(data)), data }
    }

    /// What tells it from all others: `sha256:…`.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// As it is kept: the annotations by their keys, and the name of the image. All annotations of an object are 256 KiB at
    /// most, so there is always room for them in an object of 1 MiB.
    pub fn data(&self) -> &BTreeMap<String, String> {
        &self.data
    }
}

/// The image that something was kept of, as far as it is known by that.
pub fn kept_image(data: &BTreeMap<String, String>, expected: &str) -> Result<VirtualMachineImage, KeptError> {
    let name: ImageName = data.get(IMAGE).ok_or(KeptError::NoImage)?.parse().map_err(KeptError::Image)?;
    let original = Original::of(&name, data);
    if original.digest != expected {
        return Err(KeptError::Other { found: original.digest, expected: expected.to_owned() });
    }
    let mut image = VirtualMachineImage::new(name.as_str(), VirtualMachineImageSpec::default());
    image.metadata.annotations = Some(data.clone());
    Ok(image)
}

impl Release {
    /// Reads a release from what was kept of it, if that is what it should be.
    pub fn from_kept(data: &BTreeMap<String, String>, expected: &str) -> Result<Self, KeptError> {
        Self::from_image(&kept_image(data, expected)?).map_err(KeptError::Release)
    }

    /// The digest of what it was read from, where that is kept.
    pub fn original_digest(&self) -> Option<&str> {
        self.original.as_deref().map(Original::digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image() -> VirtualMachineImage {
        let component = json!({"imageRepository": "vmware", "version": "v1"});
        let distribution = json!({
            "distribution": {"version": "v1.16.7+vmware.1-guest.1"},
            "kubernetes": {"imageRepository": "vmware", "version": "v1.16.7+vmware.1"},
            "etcd": component, "coredns": component,
        });
        let mut image = VirtualMachineImage::new("photon", VirtualMachineImageSpec::default());
        let all = [(annotation::DISTRIBUTION.name, distribution.to_string()), ("owner", "somebody".to_owned())];
        image.metadata.annotations = Some(all.map(|(key, text)| (key.to_owned(), text)).into());
        image
    }

    #[test]
    fn a_release_is_read_from_what_was_kept_of_it_as_it_was_from_its_image() {
        let release = Release::from_image(&image()).unwrap();
        let original = release.original.clone().unwrap();
        assert_eq!(
            original.data().keys().map(String::as_str).collect::<Vec<_>>(),
            [IMAGE, annotation::DISTRIBUTION.name]
        );
        assert_eq!(Release::from_kept(original.data(), original.digest()).unwrap(), release);
    }

    #[test]
    fn what_is_not_about_the_release_makes_it_no_other() {
        let digest = |change: fn(&mut VirtualMachineImage)| {
            let mut image = image();
            change(&mut image);
            Release::from_image(&image).unwrap().original_digest().unwrap().to_owned()
        };
        let before = digest(|_| ());
        let label = |image: &mut VirtualMachineImage| {
            image.metadata.annotations.as_mut().unwrap().insert("owner".to_owned(), "else".to_owned());
        };
        assert_eq!(digest(label), before);
        assert_ne!(digest(|image| image.metadata.name = Some("renamed".to_owned())), before);
    }

    #[test]
    fn what_somebody_has_put_in_its_place_is_not_believed() {
        let original = Release::from_image(&image()).unwrap().original.unwrap();
        let mut data = original.data().clone();
        data.insert(IMAGE.to_owned(), "another".to_owned());
        let error = Release::from_kept(&data, original.digest()).unwrap_err();
        assert!(matches!(error, KeptError::Other { .. }), "{error}");
        data.remove(IMAGE);
        assert!(matches!(Release::from_kept(&data, original.digest()), Err(KeptError::NoImage)));
    }
}
