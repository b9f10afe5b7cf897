//! The release that a cluster has, the one that is asked for, and what comes with it.

use serde_json::Value;
use windlass_api::annotation;
use windlass_api::kind::virtual_machine::VirtualMachineImage;
use windlass_api::machine_image::Distribution;
use windlass_api::version::{KubernetesVersion, VersionPrefix};
use windlass_plan::release::{Release, container_images};
use windlass_plan::resolve;
use windlass_plan::risk::Known;
use windlass_plan::risk::evidence::{Ahead, Image, ImageState, Package, PackageKind, Versions};

use super::lists::Lists;
use super::object::{self, name_of, some_text, text};
use crate::rehearsal::Wish;

/// What an add-on is for that connects pods.
const NETWORK: &str = "cni";
pub(super) const FROM: &str = "the release of the cluster";
pub(super) const TO: &str = "the release that is asked for";

/// What is known of both releases.
pub(super) struct Releases {
    pub from: Known<Versions>,
    pub to: Known<Versions>,
    pub packages: Known<Vec<Package>>,
    pub not_offered: Known<Vec<String>>,
    pub ahead: Known<Vec<Ahead>>,
}

pub(super) fn read(management: &Lists<'_>, own: Option<&Value>, wish: &Wish) -> Releases {
    let images = images(management);
    let at = own.and_then(|own| some_text(own, "/spec/distribution/fullVersion").or(some_text(own, "/status/version")));
    let at: Option<KubernetesVersion> = at.and_then(|at| at.parse().ok());
    let has = at.as_ref().and_then(|at| images.iter().find(|image| image.versions.distribution == *at));
    let from = match (has, &at) {
        (Some(image), _) => Known::Read(image.versions.clone()),
        (None, Some(at)) => kept(management, at),
        (None, None) => Known::unread(FROM, "its object is not there, or names none"),
    };
    let image = match wish.to() {
        Some(hint) => asked(&images, hint),
        None => has.ok_or_else(|| "its image is not there any more".to_owned()),
    };
    let to = match (&image, wish.to()) {
        (_, None) => from.clone(),
        (Ok(image), Some(_)) => Known::Read(image.versions.clone()),
        (Err(why), Some(_)) => Known::unread(TO, why),
    };
    let release = image.and_then(|image| Ok((whole(image)?, image)));
    let release = release.map_or_else(|why| Known::unread("the packages of the release", &why), Known::Read);
    let cni = own.and_then(|own| some_text(own, "/spec/settings/network/cni/name"));
    Releases {
        from,
        to,
        packages: release.as_ref().map(|(release, image)| packages(release, image, cni.as_deref())),
        not_offered: release.as_ref().map(|(release, _)| not_offered(release, cni.as_deref())),
        // Add-ons are bound to nodes of their version.
        ahead: Known::Read(Vec::new()),
    }
}

/// A machine image that says which release is on it.
struct Disk<'s> {
    image: &'s Value,
    versions: Versions,
}

fn images<'s>(management: &Lists<'s>) -> Vec<Disk<'s>> {
    let read =
        |image| Some(Disk { image, versions: versions(object::annotation(image, annotation::DISTRIBUTION.name)?)? });
    management.of("VirtualMachineImage").filter_map(read).collect()
}

/// What the annotation of a machine image says.
fn versions(text: &str) -> Option<Versions> {
    let read: Distribution = serde_json::from_str(text).ok()?;
    let (distribution, kubernetes) = (read.distribution.version, read.kubernetes.version);
    Some(Versions { distribution, kubernetes, etcd: Some(read.etcd.version) })
}

/// What is kept for a cluster of a release whose image is gone.
fn kept(management: &Lists<'_>, version: &KubernetesVersion) -> Known<Versions> {
    let copies = management.of("ConfigMap").filter_map(|copy| copy["data"][annotation::DISTRIBUTION.name].as_str());
    let found = copies.filter_map(versions).find(|versions| versions.distribution == *version);
    found.map_or_else(|| Known::unread(FROM, &format!("there is no image and no copy of {version}")), Known::Read)
}

/// The image that a hint leads to.
fn asked<'d, 's>(images: &'d [Disk<'s>], hint: &str) -> Result<&'d Disk<'s>, String> {
    let hint: VersionPrefix = hint.parse().map_err(|error: windlass_api::version::VersionError| error.to_string())?;
    let known: Vec<KubernetesVersion> = images.iter().map(|image| image.versions.distribution.clone()).collect();
    let version = resolve::newest(&hint, &known).map_err(|refusal| refusal.to_string())?;
    let found = images.iter().find(|image| image.versions.distribution == *version);
    found.ok_or_else(|| format!("there is no image of {version}"))
}

fn whole(image: &Disk<'_>) -> Result<Release, String> {
    let read: VirtualMachineImage = serde_json::from_value(image.image.clone()).map_err(|error| error.to_string())?;
    Release::from_image(&read).map_err(|error| error.to_string())
}

/// The packages that the cluster gets: of several networks the one that its owner chose, where he did.
fn packages(release: &Release, image: &Disk<'_>, cni: Option<&str>) -> Vec<Package> {
    let disk = on_disk(image);
    let chosen = release
        .addons
        .iter()
        .filter(|(name, addon)| addon.slot != NETWORK || cni.is_none_or(|cni| name.as_str() == cni));
    chosen
        .map(|(name, addon)| Package {
            name: name.to_string(),
            version: addon.version.clone(),
            images: container_images(&addon.objects)
                .into_iter()
                .map(|name| Image { state: state(&name, disk.as_deref(), image.image), name })
                .collect(),
            kinds: addon.objects.iter().map(kind).collect(),
        })
        .collect()
}

fn kind(object: &Value) -> PackageKind {
    let (api_version, kind) = (text(object, "/apiVersion").to_owned(), text(object, "/kind").to_owned());
    PackageKind { api_version, kind, object: object::full_name(object) }
}

/// What a machine image says is on its disk; `None` where it says nothing, and has what its own manifests name.
fn on_disk(image: &Disk<'_>) -> Option<Vec<String>> {
    serde_json::from_str(object::annotation(image.image, annotation::CONTAINER_IMAGES.name)?).ok()
}

/// Whether an image is on a disk. One of a repository that is on disks and in no registry is nowhere else.
fn state(image: &str, disk: Option<&[String]>, on: &Value) -> ImageState {
    let Some(disk) = disk else { return ImageState::There };
    if disk.iter().any(|known| known == image) {
        return ImageState::There;
    }
    let of_disks = disk.iter().filter(|known| !has_registry(known)).map(|known| repository(known));
    if !has_registry(image) && of_disks.into_iter().any(|known| known == repository(image)) {
        return ImageState::Missing(format!("the disk of VirtualMachineImage {}", name_of(on)));
    }
    ImageState::NotAsked
}

/// What stands before the last part of an image's name.
fn repository(image: &str) -> &str {
    image.rsplit_once('/').map_or("", |(repository, _)| repository)
}

/// Whether an image's name begins with a host.
fn has_registry(image: &str) -> bool {
    let first = image.split_once('/').map(|(first, _)| first);
    first.is_some_and(|first| first.contains(['.', ':']) || first == "localhost")
}

/// What its owner chose that the release does not have.
fn not_offered(release: &Release, cni: Option<&str>) -> Vec<String> {
    let networks: Vec<&str> =
        release.addons.iter().filter(|(_, addon)| addon.slot == NETWORK).map(|(name, _)| name.as_str()).collect();
    let missing = cni.filter(|cni| !networks.contains(cni));
    missing
        .map(|cni| {
            let has =
                if networks.is_empty() { "it has none".to_owned() } else { format!("it has {}", networks.join(", ")) };
            format!("spec.settings.network.cni.name is {cni}, and {} has no such network: {has}", release.distribution)
        })
        .into_iter()
        .collect()
}
