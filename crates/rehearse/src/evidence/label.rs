//! The release that the label of a classic cluster names, and the one that is asked for.

use serde_json::Value;
use windlass_api::kind::release::ReleaseConfigMap;
use windlass_api::version::{KubernetesVersion, VersionPrefix};
use windlass_api::{annotation, label};
use windlass_plan::release::Release;
use windlass_plan::resolve::labelled::{NAMESPACE, Published};
use windlass_plan::risk::Known;
use windlass_plan::risk::evidence::Versions;

use super::lists::Lists;
use super::object::{self, namespace_of};
use super::release::{FROM, Releases, TO};
use crate::rehearsal::Wish;

/// Whether a Cluster is one whose release is a label.
pub(super) fn is_one(object: &Value) -> bool {
    object["kind"] == "Cluster"
        && object["spec"]["topology"].is_null()
        && object::label(object, label::RELEASE_VERSION.name).is_some()
}

/// It has no packages of its release: what comes with Kubernetes is its control plane's.
pub(super) fn read(management: &Lists<'_>, own: &Value, wish: &Wish) -> Releases {
    let maps = management.of("ConfigMap").filter(|map| namespace_of(map) == NAMESPACE);
    let labelled = maps.filter(|map| object::label(map, label::RELEASE_VERSION.name).is_some());
    let maps: Vec<ReleaseConfigMap> = labelled.filter_map(|map| serde_json::from_value(map.clone()).ok()).collect();
    let published = Published::read(&maps);
    let annotated = own["metadata"]["annotations"][annotation::LAST_DEPLOYED_VERSION.name].as_str();
    let has = annotated.or_else(|| object::label(own, label::RELEASE_VERSION.name)).unwrap_or_default();
    let version = has.parse::<KubernetesVersion>().map_err(|error| error.to_string());
    let found = version.and_then(|version| published.find(&version).map_err(|why| why.to_string()));
    let from = found.map_or_else(|why| Known::unread(FROM, &why), |release| Known::Read(versions(release)));
    let to = wish.to().map_or_else(|| from.clone(), |to| chosen(&published, to));
    let none = || Known::Read(Vec::new());
    Releases { from, to, packages: none(), not_offered: Known::Read(Vec::new()), ahead: Known::Read(Vec::new()) }
}

fn chosen(published: &Published, asked: &str) -> Known<Versions> {
    let asked = asked.parse::<VersionPrefix>().map_err(|error| error.to_string());
    let found = asked.and_then(|asked| published.chosen(&asked).map_err(|why| why.to_string()));
    found.map_or_else(|why| Known::unread(TO, &why), |release| Known::Read(versions(release)))
}

fn versions(release: &Release) -> Versions {
    Versions {
        distribution: release.distribution.clone(),
        kubernetes: release.kubernetes.clone(),
        etcd: release.etcd_tag().map(str::to_owned),
    }
}
