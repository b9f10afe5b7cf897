//! The release objects that there are, and the images that they come with, read once.
//!
//! An object that cannot be read is never half used. It is kept in the list of [`Malformed`] objects, so that a refusal can
//! say why the one release that somebody waits for is not among those that fit.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value};
use windlass_api::kind::release::{KubernetesSpec, OSImage, TanzuKubernetesRelease};
use windlass_api::label;
use windlass_api::name::{NameError, ObjectName, ReleaseName};
use windlass_api::version::{KubernetesVersion, VersionError};

use super::query::fit;
use super::{Versioned, selector};

/// The release objects that there are.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Catalogue {
    /// Those that can be read, oldest first.
    pub releases: Vec<ReleaseObject>,
    /// What cannot be read, in the order in which it was found.
    pub malformed: Vec<Malformed>,
}

/// A release object, with its images.
#[derive(Debug, Clone, PartialEq)]
pub struct ReleaseObject {
    /// Its name.
    pub name: ReleaseName,
    /// The version of the whole.
    pub version: KubernetesVersion,
    /// The version of Kubernetes in it.
    pub kubernetes: KubernetesVersion,
    /// Kubernetes and what it cannot do without.
    pub spec: KubernetesSpec,
    /// Its labels, and those that it has by its version.
    pub labels: BTreeMap<String, String>,
    /// The images of it that are there and can be read, by name.
    pub os_images: Vec<Image>,
}

impl Versioned for ReleaseObject {
    fn version(&self) -> &KubernetesVersion {
        &self.version
    }

    fn kubernetes(&self) -> &KubernetesVersion {
        &self.kubernetes
    }
}

/// What machines can boot.
#[derive(Debug, Clone, PartialEq)]
pub struct Image {
    /// Its name.
    pub name: ObjectName,
    /// The version of Kubernetes on it.
    pub kubernetes: KubernetesVersion,
    /// Its labels, and those that it has by its fields.
    pub labels: BTreeMap<String, String>,
    /// Those that it has by its fields.
    pub described: BTreeMap<String, String>,
    /// What a provider is told.
    pub reference: Map<String, Value>,
}

/// An object that is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{object}: {key}: {problem}")]
pub struct Malformed {
    /// The object, as `Kind/name`.
    pub object: String,
    /// The field of it.
    pub key: String,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// It is no version.
    Version(Box<VersionError>),
    /// It is no name.
    Name(Box<NameError>),
    /// Its text cannot be read as what it should be.
    Text(String),
    /// It is not what another field says.
    Other {
        /// What it should be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// It is not there.
    Missing,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(error) => error.fmt(f),
            Self::Name(error) => error.fmt(f),
            Self::Text(text) => f.write_str(text),
            Self::Other { expected, found } => write!(f, "{found:?} is not {expected:?}"),
            Self::Missing => f.write_str("it is not there"),
        }
    }
}

impl Catalogue {
    /// Reads all releases and images.
    pub fn read(releases: &[TanzuKubernetesRelease], images: &[OSImage]) -> Self {
        let mut malformed = Vec::new();
        let mut readable = BTreeMap::new();
        for image in images {
            match Image::read(image) {
                Ok(image) => drop(readable.insert(image.name.to_string(), image)),
                Err(error) => malformed.push(error),
            }
        }
        let mut found = Vec::new();
        for release in releases {
            match ReleaseObject::read(release, &readable) {
                Ok(release) => found.push(release),
                Err(error) => malformed.push(error),
            }
        }
        found.sort_by(|left, right| left.version.cmp(&right.version).then_with(|| left.name.cmp(&right.name)));
        Self { releases: found, malformed }
    }

    /// Those that clusters can be led to: nothing on them keeps them from it.
    pub fn usable(self) -> Vec<ReleaseObject> {
        let is_usable = |release: &ReleaseObject| fit::excluded(&release.labels).is_none();
        self.releases.into_iter().filter(is_usable).collect()
    }

    /// The release of this name.
    pub fn release(&self, name: &ReleaseName) -> Option<&ReleaseObject> {
        self.releases.iter().find(|release| release.name == *name)
    }

    /// The versions that there are, in order.
    pub fn versions(&self) -> Vec<KubernetesVersion> {
        super::known(&self.releases)
    }
}

/// An object that is read field by field.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub kind: &'a str,
    pub name: &'a str,
}

impl Subject<'_> {
    pub(super) fn malformed(&self, key: &str, problem: Problem) -> Malformed {
        Malformed { object: format!("{}/{}", self.kind, self.name), key: key.to_owned(), problem }
    }

    pub(super) fn version(&self, key: &str, text: &str) -> Result<KubernetesVersion, Malformed> {
        text.parse().map_err(|error| self.malformed(key, Problem::Version(Box::new(error))))
    }

    pub(super) fn name<T: FromStr<Err = NameError>>(&self, key: &str, text: &str) -> Result<T, Malformed> {
        text.parse().map_err(|error| self.malformed(key, Problem::Name(Box::new(error))))
    }
}

impl ReleaseObject {
    /// Reads a release: all of it but the images that are not there.
    fn read(object: &TanzuKubernetesRelease, images: &BTreeMap<String, Image>) -> Result<Self, Malformed> {
        let name = object.metadata.name.as_deref().unwrap_or_default();
        let subject = Subject { kind: "TanzuKubernetesRelease", name };
        let name = subject.name("metadata.name", name)?;
        let version = subject.version("spec.version", &object.spec.version)?;
        let kubernetes = subject.version("spec.kubernetes.version", &object.spec.kubernetes.version)?;
        let mut labels = object.metadata.labels.clone().unwrap_or_default();
        labels.extend(label::version_prefixes(&version));
        let os_images = object.spec.os_images.iter().filter_map(|image| images.get(&image.name).cloned()).collect();
        Ok(Self { name, version, kubernetes, spec: object.spec.kubernetes.clone(), labels, os_images })
    }
}

impl Image {
    fn read(object: &OSImage) -> Result<Self, Malformed> {
        let name = object.metadata.name.as_deref().unwrap_or_default();
        let subject = Subject { kind: "OSImage", name };
        let name = subject.name("metadata.name", name)?;
        let kubernetes = subject.version("spec.kubernetesVersion", &object.spec.kubernetes_version)?;
        let described = image_labels(object);
        let mut labels = object.metadata.labels.clone().unwrap_or_default();
        labels.extend(described.clone());
        Ok(Self { name, kubernetes, labels, described, reference: object.spec.image.reference.clone() })
    }
}

/// The labels that an image has by its fields: `os-name=ubuntu`, and what its provider is told (`ova-version=…`). A `+` cannot
/// be in a label, and no more than 63 characters can.
pub fn image_labels(image: &OSImage) -> BTreeMap<String, String> {
    let OSImage { spec, .. } = image;
    let mut labels = BTreeMap::new();
    let fields = [
        (label::OS_TYPE, &spec.os.type_),
        (label::OS_NAME, &spec.os.name),
        (label::OS_VERSION, &spec.os.version),
        (label::OS_ARCH, &spec.os.arch),
        (label::IMAGE_TYPE, &spec.image.type_),
    ];
    labels.extend(fields.map(|(key, value)| (key.name.to_owned(), label_value(value))));
    reference_labels(&spec.image.type_, &spec.image.reference, &mut labels);
    labels
}

fn reference_labels(path: &str, reference: &Map<String, Value>, labels: &mut BTreeMap<String, String>) {
    for (key, value) in reference {
        let path = format!("{path}-{key}");
        let text = match value {
            Value::Object(inner) => {
                reference_labels(&path, inner, labels);
                continue;
            }
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Bool(bool) => bool.to_string(),
            Value::Null | Value::Array(_) => continue,
        };
        if selector::is_key(&path) {
            labels.insert(path, label_value(&text));
        }
    }
}

/// A text as the value of a label.
fn label_value(text: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let text: String = text.replace('+', "---").chars().map(|c| if fits(c) { c } else { '-' }).take(63).collect();
    text.trim_matches(['-', '_', '.']).to_owned()
}
