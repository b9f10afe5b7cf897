//! Releases that are objects of their own, and what is shown on them.

use std::collections::BTreeMap;

use serde::Serialize;
use windlass_api::condition::ConditionType;
use windlass_api::kind::Condition;
use windlass_api::kind::release::TanzuKubernetesRelease;
use windlass_api::label;
use windlass_api::version::KubernetesVersion;

use super::{Addon, Summary};
use crate::client::{self, Management};
use crate::output;

/// What is shown on a `TanzuKubernetesRelease`.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Object {
    /// Its name, by which clusters are labelled.
    pub name: String,
    /// Whether clusters can be led to it; unknown while nobody has looked at it.
    pub ready: String,
    /// Whether this management cluster supports it.
    pub compatible: String,
    /// Somebody has taken it out of use.
    pub deactivated: bool,
    /// Why it is not ready, if it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The images of machines that it can be on.
    pub os_images: Vec<String>,
    /// The packages that clusters of it can have.
    pub packages: Vec<String>,
}

/// A release object that can be read.
pub struct Read {
    pub version: KubernetesVersion,
    pub release: TanzuKubernetesRelease,
}

/// All release objects, oldest first. Of those that cannot be read, people are told.
pub async fn all(management: &Management) -> Result<Vec<Read>, client::Error> {
    let mut read = Vec::new();
    for release in management.all::<TanzuKubernetesRelease>("releases").await? {
        match release.spec.version.parse() {
            Ok(version) => read.push(Read { version, release }),
            Err(error) => {
                let name = release.metadata.name.unwrap_or_default();
                output::warning(&format!("TanzuKubernetesRelease/{name}: spec.version: {error}; it is left out"));
            }
        }
    }
    read.sort_by(|a, b| a.version.cmp(&b.version));
    Ok(read)
}

impl Object {
    pub fn of(release: &TanzuKubernetesRelease) -> Self {
        let conditions = release.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        let names = |references: &[windlass_api::kind::release::LocalReference]| {
            references.iter().map(|reference| reference.name.clone()).collect()
        };
        let labels = release.metadata.labels.clone().unwrap_or_default();
        Self {
            name: release.metadata.name.clone().unwrap_or_default(),
            ready: status(conditions, ConditionType::Ready),
            compatible: status(conditions, ConditionType::Compatible),
            deactivated: label::DEACTIVATED.is_in(&labels),
            why: why(conditions),
            os_images: names(&release.spec.os_images),
            packages: names(release.spec.bootstrap_packages.as_deref().unwrap_or_default()),
        }
    }
}

fn status(conditions: &[Condition], type_: ConditionType) -> String {
    type_.among(conditions).map_or("Unknown", |condition| condition.status.as_str()).to_owned()
}

fn why(conditions: &[Condition]) -> Option<String> {
    let unready = ConditionType::Ready.among(conditions).filter(|condition| condition.status != "True")?;
    Some(format!("{}: {}", unready.reason, unready.message))
}

/// Puts what is shown on release objects beside what machine images say, and adds those that no image has.
pub fn merge(summaries: &mut Vec<Summary>, objects: Vec<Read>) {
    let mut shown: BTreeMap<KubernetesVersion, TanzuKubernetesRelease> =
        objects.into_iter().map(|read| (read.version, read.release)).collect();
    for summary in summaries.iter_mut() {
        summary.object = shown.get(&summary.version).map(Object::of);
    }
    shown.retain(|version, _| summaries.iter().all(|summary| summary.version != *version));
    summaries.extend(shown.into_iter().filter_map(|(version, release)| alone(version, &release)));
    summaries.sort_by(|a, b| a.version.cmp(&b.version));
}

/// A release that no machine image says anything of.
fn alone(version: KubernetesVersion, release: &TanzuKubernetesRelease) -> Option<Summary> {
    let spec = &release.spec;
    let packages = spec.bootstrap_packages.as_deref().unwrap_or_default();
    let tag = spec.kubernetes.etcd.as_ref().and_then(|etcd| etcd.image_tag.clone());
    Some(Summary {
        version,
        kubernetes: spec.kubernetes.version.parse().ok()?,
        etcd: tag.unwrap_or_default(),
        addons: packages.iter().map(|package| addon(&package.name)).collect(),
        image: String::new(),
        digest: String::new(),
        object: Some(Object::of(release)),
        label: None,
    })
}

/// A package by its short name, and its version: what follows the name that all versions share.
fn addon(full: &str) -> Addon {
    let short = full.split('.').next().unwrap_or_default();
    let version = full.match_indices('.').map(|(dot, _)| &full[dot + 1..]);
    let version = version.into_iter().find(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    Addon { name: short.to_owned(), version: version.unwrap_or_default().to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn release(version: &str) -> Read {
        let release = serde_json::from_value(json!({
            "apiVersion": "run.tanzu.vmware.com/v1alpha3", "kind": "TanzuKubernetesRelease",
            "metadata": {"name": version.replace('+', "---"), "labels": {"deactivated": ""}},
            "spec": {
                "version": version, "kubernetes": {"version": "v1.24.9+vmware.1", "etcd": {"imageTag": "v3.5.6"}},
                "bootstrapPackages": [{"name": "antrea.tanzu.vmware.com.1.7.2+vmware.1-tkg.1-advanced"}],
            },
        }));
        Read { version: version.parse().unwrap(), release: release.unwrap() }
    }

    #[test]
    fn a_release_is_one_row_whether_an_image_or_an_object_or_both_say_it() {
        let both = "v1.24.9+vmware.1-tkg.1";
        let mut summaries = vec![Summary {
            version: both.parse().unwrap(),
            kubernetes: "v1.24.9+vmware.1".parse().unwrap(),
            etcd: String::new(),
            addons: Vec::new(),
            image: "photon".to_owned(),
            digest: String::new(),
            object: None,
            label: None,
        }];
        merge(&mut summaries, vec![release(both), release("v1.24.9+vmware.1-tkg.0")]);
        let rows: Vec<_> = summaries.iter().map(|it| (it.version.as_str(), it.image.as_str())).collect();
        assert_eq!(rows, [("v1.24.9+vmware.1-tkg.0", ""), (both, "photon")]);
        let object = summaries[1].object.as_ref().unwrap();
        assert_eq!((object.ready.as_str(), object.deactivated), ("Unknown", true), "nobody has looked at it yet");
        let addon = &summaries[0].addons[0];
        assert_eq!((addon.name.as_str(), addon.version.as_str()), ("antrea", "1.7.2+vmware.1-tkg.1-advanced"));
    }
}
