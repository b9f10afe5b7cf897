//! The releases that a cluster can be created at: all that belongs to them is there.

use windlass_api::kind::packaging::Package;
use windlass_api::kind::release::{ClusterBootstrapTemplate, OSImage, TanzuKubernetesRelease};
use windlass_api::label::EXCLUDED_FROM_RESOLUTION;
use windlass_api::name::ReleaseName;
use windlass_api::version::KubernetesVersion;

use super::check::{Check, Facts, Subject};
use crate::release::Release;

/// What is known of a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseFact {
    /// Its name.
    pub name: String,
    /// Its version, where that can be read.
    pub version: Option<KubernetesVersion>,
    /// Why it is passed over: `incompatible`, `deactivated`, `invalid`.
    pub excluded: Option<&'static str>,
    /// What is wrong with it, or missing.
    pub fault: Option<String>,
}

impl ReleaseFact {
    fn is_usable(&self) -> bool {
        self.version.is_some() && self.excluded.is_none() && self.fault.is_none()
    }
}

/// Reads every release with all that it refers to.
pub fn release_facts(
    releases: &[TanzuKubernetesRelease],
    os_images: &[OSImage],
    templates: &[ClusterBootstrapTemplate],
    packages: &[Package],
) -> Vec<ReleaseFact> {
    let fact = |release: &TanzuKubernetesRelease| {
        let name = release.metadata.name.clone().unwrap_or_default();
        let template = templates.iter().find(|template| template.metadata.name.as_deref() == Some(&name));
        let labels = release.metadata.labels.clone().unwrap_or_default();
        let excluded = EXCLUDED_FROM_RESOLUTION.into_iter().find(|key| key.is_in(&labels)).map(|key| key.name);
        let fault = Release::from_objects(release, os_images, template, packages).err().map(|why| why.to_string());
        ReleaseFact { name, version: release.spec.version.parse().ok(), excluded, fault }
    };
    releases.iter().map(fact).collect()
}

/// The data of releases is there.
pub(super) fn releases(facts: &Facts) -> Check {
    let subject = Subject::Releases;
    let known = match &facts.releases {
        Ok(known) => known,
        Err(why) => return subject.unknown(format!("they cannot be read: {why}")),
    };
    let wanted = facts.wanted.as_ref().and_then(|wanted| wanted.release.as_ref()).map(ReleaseName::as_str);
    let fault = known.iter().find(|release| Some(release.name.as_str()) == wanted).and_then(|it| it.fault.as_ref());
    if let Some(fault) = fault {
        return subject.failed(fault.clone(), "kubectl get tkr,osimg,cbt,packages -A");
    }
    let usable = known.iter().filter(|release| release.is_usable()).count();
    if usable == 0 {
        return none(subject, facts, format!("none of {} can be used", known.len()));
    }
    let broken = known.iter().filter(|release| release.excluded.is_none());
    let broken: Vec<&str> = broken.filter_map(|release| release.fault.as_deref()).collect();
    if !broken.is_empty() {
        return subject.warning(broken.join("; "), "kubectl get tkr,osimg,cbt,packages -A");
    }
    subject.well(format!("{usable} of {} can be used, with all that belongs to them", known.len()))
}

/// What a new cluster gets where nobody says which release.
pub(super) fn default_release(facts: &Facts) -> Check {
    let subject = Subject::DefaultRelease;
    let known = match &facts.releases {
        Ok(known) => known,
        Err(why) => return subject.unknown(format!("releases cannot be read: {why}")),
    };
    let usable = known.iter().filter(|release| release.is_usable()).filter_map(|release| release.version.as_ref());
    match usable.filter(|version| version.pre_release().is_none()).max() {
        Some(version) => subject.well(version.to_string()),
        None => none(subject, facts, "there is none that can be used".to_owned()),
    }
}

/// There is no release. A cluster that has none of them does not miss any.
fn none(subject: Subject, facts: &Facts, said: String) -> Check {
    let way = "windlass release list";
    let without = facts.wanted.as_ref().is_some_and(|wanted| wanted.release.is_none());
    if without { subject.warning(said, way) } else { subject.failed(said, way) }
}
