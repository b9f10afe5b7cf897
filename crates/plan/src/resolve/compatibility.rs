//! Which releases can be used on this management cluster, and how that is shown on them.
//!
//! A release is compatible if the metadata of the management cluster's own version lists it, or somebody has declared it so.
//! Conditions and labels follow from that, from the faults that the release has, and from what people have put on it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use windlass_api::condition::{ConditionStatus, ConditionType};
use windlass_api::key::Present;
use windlass_api::kind::release::{OSImage, TanzuKubernetesRelease};
use windlass_api::label;
use windlass_api::reason::Reason;
use windlass_api::version::KubernetesVersion;

use super::catalogue::{Malformed, Problem, Subject};

/// The `ConfigMap` that the metadata is in.
pub const METADATA: &str = "bom-metadata";
/// The key of it.
pub const METADATA_KEY: &str = "compatibility";
/// The key of a `ConfigMap` that declares more releases compatible.
pub const ADDITIONAL_KEY: &str = "tkrVersions";

/// The releases that can be used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Compatible {
    versions: BTreeSet<KubernetesVersion>,
}

/// The metadata as it is on the wire.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    management_cluster_versions: Vec<Supported>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Supported {
    version: String,
    #[serde(default)]
    supported_kubernetes_versions: Vec<String>,
}

/// What a `ConfigMap` says under a key.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The name of the `ConfigMap`.
    pub name: &'a str,
    /// What it says.
    pub text: &'a str,
}

impl Compatible {
    /// Finds out which releases can be used. Without a management cluster, or a version of it, none can but those that people
    /// have declared so. What cannot be read is refused whole: a release that is missing by mistake would look incompatible.
    pub fn read(
        management: Option<&str>,
        metadata: Option<Source<'_>>,
        additional: &[Source<'_>],
    ) -> Result<Self, Malformed> {
        let mut versions = BTreeSet::new();
        if let Some(source) = metadata {
            let key = format!("binaryData.{METADATA_KEY}");
            let read: Metadata = source.yaml(&key)?;
            // All of it is read, also where it is for others: half a file is no file.
            for (row, entry) in read.management_cluster_versions.iter().enumerate() {
                let supported = source.versions(&format!("{key}[{row}]"), &entry.supported_kubernetes_versions)?;
                if management == Some(entry.version.as_str()) {
                    versions.extend(supported);
                }
            }
        }
        for source in additional {
            let key = format!("data.{ADDITIONAL_KEY}");
            versions.extend(source.versions(&key, &source.yaml::<Vec<String>>(&key)?)?);
        }
        Ok(Self { versions })
    }

    /// Whether a release can be used.
    pub fn contains(&self, version: &KubernetesVersion) -> bool {
        self.versions.contains(version)
    }
}

impl Source<'_> {
    fn subject(&self) -> Subject<'_> {
        Subject { kind: "ConfigMap", name: self.name }
    }

    fn yaml<T: DeserializeOwned>(&self, key: &str) -> Result<T, Malformed> {
        let read = serde_saphyr::from_str(self.text);
        read.map_err(|error| self.subject().malformed(key, Problem::Text(error.to_string())))
    }

    fn versions(&self, key: &str, texts: &[String]) -> Result<Vec<KubernetesVersion>, Malformed> {
        let version = |(row, text): (usize, &String)| self.subject().version(&format!("{key}[{row}]"), text);
        texts.iter().enumerate().map(version).collect()
    }
}

/// A condition, without the time at which it changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// What it is about.
    pub type_: ConditionType,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Why, in one word, where there is one.
    pub reason: Option<Reason>,
    /// Why, in a sentence.
    pub message: String,
}

/// How a release stands: what is shown on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// `Compatible`, `Valid` and `Ready`.
    pub conditions: [Fact; 3],
    /// The labels that are ours: what they should be, and nothing where they should not be.
    pub labels: BTreeMap<String, Option<String>>,
}

/// How a release stands, among the images that there are. Where it cannot be read what is compatible, a release stays what it
/// was: one that clusters are made of must not look incompatible because of a typing error.
pub fn standing(
    release: &TanzuKubernetesRelease,
    images: &[OSImage],
    compatible: Result<&Compatible, &Malformed>,
) -> Standing {
    let version: Option<KubernetesVersion> = release.spec.version.parse().ok();
    let faults = faults(release, images);
    let labels = release.metadata.labels.clone().unwrap_or_default();
    let is_compatible = match compatible {
        Ok(compatible) => version.as_ref().is_some_and(|version| compatible.contains(version)),
        Err(_) => !label::INCOMPATIBLE.is_in(&labels),
    };

    let mut wanted: BTreeMap<String, Option<String>> = BTreeMap::new();
    if let Some(version) = &version {
        wanted.extend(label::version_prefixes(version).into_iter().map(|(key, value)| (key, Some(value))));
    }
    let shown = [
        (label::INCOMPATIBLE, !is_compatible),
        (label::INVALID, !faults.is_empty()),
        (label::LEGACY_RELEASE, release.spec.bootstrap_packages.is_none()),
    ];
    let present = shown.map(|(key, holds)| (key.name.to_owned(), holds.then(|| key.text(&Present))));
    wanted.extend(present);

    let incompatible = "this management cluster does not support it".to_owned();
    let invalid = faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    // In the order in which they explain why a release cannot be used.
    let trouble = [
        (!is_compatible, Reason::Incompatible, incompatible.clone()),
        (label::DEACTIVATED.is_in(&labels), Reason::Deactivated, "somebody has taken it out of use".to_owned()),
        (!faults.is_empty(), Reason::Invalid, invalid.clone()),
    ];
    let trouble = trouble.into_iter().find(|(holds, ..)| *holds).map(|(_, reason, message)| (reason, message));
    let compatible = match compatible {
        Ok(_) => fact(ConditionType::Compatible, (!is_compatible).then_some((Reason::Incompatible, incompatible))),
        Err(malformed) => Fact {
            type_: ConditionType::Compatible,
            status: ConditionStatus::Unknown,
            reason: Some(Reason::MetadataMalformed),
            message: malformed.to_string(),
        },
    };
    Standing {
        conditions: [
            compatible,
            fact(ConditionType::Valid, (!faults.is_empty()).then_some((Reason::Invalid, invalid))),
            fact(ConditionType::Ready, trouble),
        ],
        labels: wanted,
    }
}

fn fact(type_: ConditionType, trouble: Option<(Reason, String)>) -> Fact {
    match trouble {
        None => Fact { type_, status: ConditionStatus::True, reason: None, message: String::new() },
        Some((reason, message)) => Fact { type_, status: ConditionStatus::False, reason: Some(reason), message },
    }
}

/// The faults of a release: what in it contradicts itself, or is not there.
pub fn faults(release: &TanzuKubernetesRelease, images: &[OSImage]) -> Vec<Malformed> {
    let name = release.metadata.name.as_deref().unwrap_or_default();
    let subject = Subject { kind: "TanzuKubernetesRelease", name };
    let mut faults = Vec::new();
    match subject.version("spec.version", &release.spec.version) {
        Ok(version) if version.label().to_string() != name => {
            let problem = Problem::Other { expected: version.label().to_string(), found: name.to_owned() };
            faults.push(subject.malformed("metadata.name", problem));
        }
        Ok(_) => {}
        Err(malformed) => faults.push(malformed),
    }
    let kubernetes = subject.version("spec.kubernetes.version", &release.spec.kubernetes.version);
    for (row, reference) in release.spec.os_images.iter().enumerate() {
        let image = images.iter().find(|image| image.metadata.name.as_deref() == Some(reference.name.as_str()));
        let problem = match (image, &kubernetes) {
            (None, _) => Problem::Text(format!("there is no OSImage {}", reference.name)),
            (Some(image), Ok(kubernetes))
                if image.spec.kubernetes_version.parse().ok().as_ref() != Some(kubernetes) =>
            {
                Problem::Other { expected: kubernetes.to_string(), found: image.spec.kubernetes_version.clone() }
            }
            (Some(_), _) => continue,
        };
        faults.push(subject.malformed(&format!("spec.osImages[{row}]"), problem));
    }
    faults.extend(kubernetes.err());
    faults
}

#[cfg(test)]
mod tests;
