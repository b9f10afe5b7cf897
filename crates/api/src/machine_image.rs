//! What a machine image says about itself: the JSON in its annotations, as it is on the wire.
//!
//! The keys are [`annotation::DISTRIBUTION`](crate::annotation::DISTRIBUTION) and those that begin with
//! [`annotation::ADDON_PREFIX`](crate::annotation::ADDON_PREFIX). Fields that are not known here are passed over: they
//! belong to newer readers. Making a Release of it all is for the planner.

use serde::{Deserialize, Serialize};

use crate::version::KubernetesVersion;

/// What is on the disk of a machine that is made from the image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(expecting = "an object with distribution, kubernetes, etcd and coredns")]
pub struct Distribution {
    /// The whole of it.
    pub distribution: DistributionVersion,
    /// Kubernetes itself, kube-proxy included.
    pub kubernetes: KubernetesImages,
    /// The store behind the API.
    pub etcd: ComponentImage,
    /// The names of services.
    pub coredns: ComponentImage,
}

/// Which distribution it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(expecting = "an object with a version")]
pub struct DistributionVersion {
    /// What hints are matched with: `v1.16.7+vmware.1-guest.1`.
    pub version: KubernetesVersion,
}

/// Where the images of Kubernetes come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an object with imageRepository and version")]
pub struct KubernetesImages {
    /// The registry, or the part of it, that the images are pulled from.
    pub image_repository: String,
    /// The version of Kubernetes, which has fewer tokens than that of the distribution: `v1.16.7+vmware.1`.
    pub version: KubernetesVersion,
}

/// Where the image of a component comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an object with imageRepository and version")]
pub struct ComponentImage {
    /// The registry, or the part of it, that the image is pulled from.
    pub image_repository: String,
    /// The tag of the image, which kubeadm is given as it stands: `v3.3.15_vmware.6`.
    pub version: String,
}

/// An add-on that comes with the image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(expecting = "an object with type and value")]
pub struct Addon {
    /// Its name, where it is not that of the annotation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its version, in whichever way it counts. Older images have none; the add-on is then as old as the distribution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// How `value` is to be read. Only `inline` is known.
    #[serde(rename = "type")]
    pub kind: String,
    /// YAML documents, to be applied to the workload cluster.
    pub value: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISTRIBUTION: &str = r#"{
      "distribution":{"version":"v1.16.7+vmware.1-guest.1"},
      "kubernetes":{"imageRepository":"vmware","version":"v1.16.7+vmware.1"},
      "etcd":{"imageRepository":"vmware","version":"v3.3.15_vmware.6"},
      "coredns":{"imageRepository":"vmware","version":"v1.6.2_vmware.6"}}"#;

    #[test]
    fn a_distribution_is_read_and_written_as_it_stands() {
        let distribution: Distribution = serde_json::from_str(DISTRIBUTION).unwrap();
        assert_eq!(distribution.distribution.version.as_str(), "v1.16.7+vmware.1-guest.1");
        assert_eq!(distribution.kubernetes.version.as_str(), "v1.16.7+vmware.1");
        assert_eq!(distribution.etcd.version, "v3.3.15_vmware.6");

        let same = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(same(&serde_json::to_string(&distribution).unwrap()), same(DISTRIBUTION));
    }

    fn check(annotation: &str, name: Option<&str>, version: Option<&str>) {
        let addon: Addon = serde_json::from_str(annotation).unwrap();
        assert_eq!((addon.name.as_deref(), addon.version.as_deref()), (name, version));
        assert_eq!((addon.kind.as_str(), addon.value.as_str()), ("inline", "..."));
    }

    #[test]
    fn an_add_on_may_come_without_name_or_version() {
        check(r#"{"version": "0.1-63-ge899b1f", "value": "...", "type": "inline"}"#, None, Some("0.1-63-ge899b1f"));
        check(r#"{"name": "pvcsi", "value": "...", "type": "inline"}"#, Some("pvcsi"), None);
    }

    #[test]
    fn a_distribution_with_a_malformed_version_is_refused_in_the_words_of_the_version() {
        let text = DISTRIBUTION.replace("v1.16.7+vmware.1-guest.1", "newest");
        let refusal = serde_json::from_str::<Distribution>(&text).unwrap_err().to_string();
        assert!(refusal.starts_with(r#""newest" is not a version: "newest" is not a number; "#), "{refusal}");
    }
}
