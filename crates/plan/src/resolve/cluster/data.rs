//! What the patches of a class are told about releases: one entry for each version of Kubernetes.
//!
//! Old and new stand side by side, because machines of both are made while a cluster is rolled. No entry is taken away: a pool
//! that is kept back may be of a version that the control plane left long ago.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use windlass_api::kind::release::{ContainerImage, KubernetesSpec};
use windlass_api::label;
use windlass_api::name::{ObjectName, ReleaseName};
use windlass_api::version::KubernetesVersion;

use crate::resolve::catalogue::{Image, Malformed, Problem, ReleaseObject, Subject};

/// The name of the variable.
pub const VARIABLE: &str = "TKR_DATA";

/// All entries of a part of a cluster.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReleaseData {
    entries: Vec<Entry>,
    written: Map<String, Value>,
}

/// What is known of one version.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The version of Kubernetes.
    pub kubernetes: KubernetesVersion,
    /// The release.
    pub release: ReleaseName,
    /// The image.
    pub os_image: ObjectName,
    /// All labels in it, those two included.
    pub labels: BTreeMap<String, String>,
}

impl ReleaseData {
    /// Reads the value of the variable, which is at this key of the object.
    pub(super) fn read(subject: Subject<'_>, key: &str, value: &Value) -> Result<Self, Malformed> {
        if value.is_null() {
            return Ok(Self::default());
        }
        let shapeless = || Problem::Text("it is not an object with an entry for each version".to_owned());
        let written = value.as_object().ok_or_else(|| subject.malformed(key, shapeless()))?;
        let entry =
            |(version, value): (&String, &Value)| Entry::read(subject, &format!("{key}[{version}]"), version, value);
        let entries = written.iter().map(entry).collect::<Result<_, _>>()?;
        Ok(Self { entries, written: written.clone() })
    }

    /// The entry of a release.
    pub fn of(&self, release: &ReleaseName) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.release == *release)
    }

    /// The entry of a version of Kubernetes.
    pub fn at(&self, kubernetes: &KubernetesVersion) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.kubernetes == *kubernetes)
    }

    /// The value of the variable, as it was read.
    pub fn written(&self) -> Map<String, Value> {
        self.written.clone()
    }
}

impl Entry {
    fn read(subject: Subject<'_>, key: &str, version: &str, value: &Value) -> Result<Self, Malformed> {
        let labels = value["labels"].as_object().into_iter().flatten();
        let text = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
        let labels: BTreeMap<String, String> = labels.filter_map(text).collect();
        let named = |name: &str| {
            let key = format!("{key}.labels[{name}]");
            let text = labels.get(name).ok_or_else(|| subject.malformed(&key, Problem::Missing));
            text.map(|text| (key, text.clone()))
        };
        let (release_key, release) = named(label::RELEASE.name)?;
        let (image_key, os_image) = named(label::OS_IMAGE.name)?;
        Ok(Self {
            kubernetes: subject.version(key, version)?,
            release: subject.name(&release_key, &release)?,
            os_image: subject.name(&image_key, &os_image)?,
            labels,
        })
    }
}

/// The entry for a release and one of its images.
pub(super) fn entry(release: &ReleaseObject, image: &Image, repository: Option<&str>) -> Value {
    let mut labels = image.described.clone();
    labels.extend([label::RELEASE.entry(&release.name), (label::OS_IMAGE.name.to_owned(), image.name.to_string())]);
    json!({
        "kubernetesSpec": complete(&release.spec, repository),
        "osImageRef": image.reference,
        "labels": labels,
    })
}

/// Every component says where its image comes from. A repository that a person has chosen is where all of them come from.
fn complete(spec: &KubernetesSpec, chosen: Option<&str>) -> KubernetesSpec {
    let chosen = chosen.map(str::to_owned);
    let common = chosen.clone().or_else(|| spec.image_repository.clone());
    let component = |image: &Option<ContainerImage>| {
        image.clone().map(|image| ContainerImage {
            image_repository: chosen.clone().or(image.image_repository).or_else(|| common.clone()),
            image_tag: image.image_tag,
        })
    };
    KubernetesSpec {
        version: spec.version.clone(),
        image_repository: common.clone(),
        etcd: component(&spec.etcd),
        pause: component(&spec.pause),
        coredns: component(&spec.coredns),
        kube_vip: component(&spec.kube_vip),
    }
}
