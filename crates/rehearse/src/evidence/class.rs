//! The release of a cluster of a class, the one that is asked for, and the packages that come with it before any machine.

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_api::kind::release::{
    BootstrapPackages, ClusterBootstrap, ClusterBootstrapTemplate, TanzuKubernetesRelease,
};
use windlass_api::version::{KubernetesVersion, VersionPrefix};
use windlass_api::{annotation, label};
use windlass_plan::bootstrap::{Listed, listed};
use windlass_plan::release::PackageSlot;
use windlass_plan::resolve;
use windlass_plan::risk::Known;
use windlass_plan::risk::evidence::{Ahead, Image, ImageState, Package, Versions};

use super::lists::Lists;
use super::object::{self, name_of, namespace_of};
use super::release::{FROM, Releases, TO};
use crate::rehearsal::Wish;

/// A release as an object, and the versions in it.
struct Found {
    name: String,
    versions: Versions,
}

pub(super) fn read(management: &Lists<'_>, own: &Value, wish: &Wish) -> Releases {
    let found: Vec<Found> = management.of("TanzuKubernetesRelease").filter_map(release).collect();
    let has = object::label(own, label::RELEASE.name).unwrap_or_default();
    let from = found.iter().find(|release| release.name == has);
    let from = from.ok_or_else(|| format!("there is no TanzuKubernetesRelease {has:?}"));
    let to = match wish.to() {
        Some(hint) => asked(&found, hint),
        None => from.clone(),
    };
    let template = to.clone().and_then(|to| template(management, &to.name));
    let of = |versions: &Result<&Found, String>, what: &str| match versions {
        Ok(found) => Known::Read(found.versions.clone()),
        Err(why) => Known::unread(what, why),
    };
    let unread = |why: &String| Known::unread("the packages of the release", why);
    Releases {
        from: of(&from, FROM),
        to: of(&to, TO),
        packages: template.as_ref().map_or_else(unread, |template| Known::Read(packages(management, template))),
        not_offered: Known::Read(Vec::new()),
        ahead: match (template.as_ref(), bootstrap(management, own)) {
            (Ok(template), Ok(bootstrap)) => Known::Read(ahead(&bootstrap.spec.packages, template)),
            (Err(why), _) => Known::unread("the packages of the release", why),
            (_, Err(why)) => Known::unread("the packages of the cluster", &why),
        },
    }
}

fn release(object: &Value) -> Option<Found> {
    let read: TanzuKubernetesRelease = serde_json::from_value(object.clone()).ok()?;
    let etcd = read.spec.kubernetes.etcd.and_then(|etcd| etcd.image_tag);
    let (distribution, kubernetes) = (read.spec.version.parse().ok()?, read.spec.kubernetes.version.parse().ok()?);
    Some(Found { name: name_of(object).to_owned(), versions: Versions { distribution, kubernetes, etcd } })
}

/// The release that somebody asks for, by its name or the beginning of its version.
fn asked<'f>(found: &'f [Found], hint: &str) -> Result<&'f Found, String> {
    if let Some(named) = found.iter().find(|release| release.name == hint) {
        return Ok(named);
    }
    let hint: VersionPrefix = hint.parse().map_err(|error: windlass_api::version::VersionError| error.to_string())?;
    let known: Vec<KubernetesVersion> = found.iter().map(|release| release.versions.distribution.clone()).collect();
    let version = resolve::newest(&hint, &known).map_err(|refusal| refusal.to_string())?;
    let release = found.iter().find(|release| release.versions.distribution == *version);
    release.ok_or_else(|| format!("there is no release {version}"))
}

fn template(management: &Lists<'_>, name: &str) -> Result<BootstrapPackages, String> {
    let object = management.of("ClusterBootstrapTemplate").find(|object| name_of(object) == name);
    let object = object.ok_or_else(|| format!("there is no ClusterBootstrapTemplate {name}"))?;
    let read: ClusterBootstrapTemplate = serde_json::from_value(object.clone()).map_err(|error| error.to_string())?;
    Ok(read.spec.packages)
}

fn bootstrap(management: &Lists<'_>, own: &Value) -> Result<ClusterBootstrap, String> {
    let is_it = |object: &&Value| name_of(object) == name_of(own) && namespace_of(object) == namespace_of(own);
    let object = management.of("ClusterBootstrap").find(is_it);
    let object = object.ok_or_else(|| "it has no ClusterBootstrap".to_owned())?;
    serde_json::from_value(object.clone()).map_err(|error| error.to_string())
}

/// The packages of a release, with the bundles that they come from: whether those are there only a registry knows.
fn packages(management: &Lists<'_>, template: &BootstrapPackages) -> Vec<Package> {
    let bundles: BTreeMap<&str, Vec<Image>> =
        management.of("Package").map(|package| (name_of(package), images(package))).collect();
    let package = |listed: Listed| Package {
        name: listed.short().to_owned(),
        version: listed.version(),
        images: bundles.get(listed.package.to_string().as_str()).cloned().unwrap_or_default(),
        kinds: Vec::new(),
    };
    listed(template).unwrap_or_default().into_iter().map(package).collect()
}

fn images(package: &Value) -> Vec<Image> {
    let fetched = object::list(package, "/spec/template/spec/fetch");
    let names = fetched.filter_map(|fetch| object::some_text(fetch, "/imgpkgBundle/image"));
    names.map(|name| Image { name, state: ImageState::NotAsked }).collect()
}

/// The core packages that the cluster has in another version than the release.
fn ahead(has: &BootstrapPackages, template: &BootstrapPackages) -> Vec<Ahead> {
    let had = listed(has).unwrap_or_default();
    let wanted = listed(template).unwrap_or_default().into_iter().filter(|package| package.slot.is_core());
    let package = |new: Listed| {
        let old = had.iter().find(|old| old.package.ref_name == new.package.ref_name)?;
        let (from, to) = (old.version(), new.version());
        let is_network = new.slot == PackageSlot::Cni;
        (from != to).then(|| Ahead { name: new.short().to_owned(), is_network, from, to })
    };
    wanted.filter_map(package).collect()
}

/// The network, where somebody else looks after it.
pub(super) fn unmanaged(management: &Lists<'_>, own: &Value) -> Known<Vec<String>> {
    match bootstrap(management, own) {
        Err(why) => Known::unread("the packages of the cluster", &why),
        Ok(bootstrap) => {
            let annotations = bootstrap.metadata.annotations.unwrap_or_default();
            let is_theirs = annotation::UNMANAGED_CNI.is_in(&annotations);
            let packages = listed(&bootstrap.spec.packages).unwrap_or_default();
            let network = packages.into_iter().find(|package| package.slot == PackageSlot::Cni);
            let network = network.map_or_else(|| "the network".to_owned(), |package| package.short().to_owned());
            Known::Read(if is_theirs { vec![format!("{network} (cni)")] } else { Vec::new() })
        }
    }
}
