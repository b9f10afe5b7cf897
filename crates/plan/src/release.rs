//! A release: an immutable set of versions, images, add-ons, packages and defaults.
//!
//! It has three spellings, and one type: the annotations of a machine image ([`Release::from_image`]), a
//! `TanzuKubernetesRelease` with its images, template and packages ([`Release::from_objects`]), and a set of `ConfigMap`s
//! ([`Release::from_config_maps`]). Whichever it is, it is read whole or refused whole: nothing of a malformed release is ever
//! applied, and the refusal names the object and the key. The objects of its add-ons are made safe here, once: where and
//! when their pods may run is part of the release.

mod builtin;
mod config_maps;
mod container;
mod defaults;
mod error;
mod field;
mod image;
mod manifest;
mod order;
mod original;
mod package;
mod placement;
mod tkr;
mod yaml;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use windlass_api::kind::release::{MachineImage as ImageReference, OperatingSystem};
use windlass_api::label;
use windlass_api::name::{AddonName, ImageName, Namespace};
use windlass_api::version::KubernetesVersion;

use crate::digest;

pub(crate) use config_maps::VERSION_FIELDS;
pub use container::container_images;
pub use defaults::{FieldDefault, FieldOwner, KindDefaults};
pub use error::{Cause, ReleaseError};
pub use field::{FieldPath, FieldPathError};
pub(crate) use image::slot;
pub use manifest::ManifestError;
pub use order::{Bringing, Brought};
pub use original::{KeptError, Original, kept_image};
pub use package::{PackageRelease, PackageSlot, PackageValues, PackageVersion};

/// An immutable set of versions, images, add-ons, packages and defaults.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Release {
    /// Where it was read.
    #[serde(skip_serializing_if = "Spelling::is_image")]
    pub spelling: Spelling,
    /// The images that machines of it can be made from. What it says about itself may leave several to choose from
    /// ([`Release::with_image`]), or none, where the image is among the defaults of a template.
    #[serde(rename = "image", serialize_with = "names_or_facts")]
    pub images: Vec<MachineImage>,
    /// The version of the whole.
    pub distribution: KubernetesVersion,
    /// The version of Kubernetes in it.
    pub kubernetes: KubernetesVersion,
    /// Where the images of Kubernetes come from; `None` leaves it to kubeadm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_repository: Option<String>,
    /// The image of etcd; `None` leaves it to kubeadm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub etcd: Option<ImageTag>,
    /// The image of `CoreDNS`; `None` leaves it to kubeadm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coredns: Option<ImageTag>,
    /// The image that holds the namespaces of a pod; `None` leaves it to kubeadm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause: Option<ImageTag>,
    /// The image of what answers for the address of the API, if the release has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kube_vip: Option<ImageTag>,
    /// The add-ons, ready to be applied. On a machine image they include `kube-proxy` and `coredns`; in the other spellings
    /// those two are kubeadm's and the control plane's.
    pub addons: BTreeMap<AddonName, AddonRelease>,
    /// The packages that a cluster gets, in the order in which they are brought in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<PackageRelease>,
    /// The packages that a cluster can have: those above, and what their owners may choose instead of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<PackageVersion>,
    /// What objects of a kind get where their owners say nothing, by the kind in lower case.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub defaults: BTreeMap<String, KindDefaults>,
    /// Whether it is meant to be used. Not part of the digest: a release that is deprecated while an update to it runs is
    /// still the release that was reviewed.
    #[serde(skip)]
    pub state: ReleaseState,
    /// What it was read from, where that can be kept for a cluster. It has a digest of its own, which goes by the words.
    #[serde(skip)]
    pub original: Option<Arc<Original>>,
    /// Made once: a release never changes.
    #[serde(skip)]
    digest: String,
}

/// Where a release was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Spelling {
    /// The annotations of a `VirtualMachineImage`.
    Image(ImageName),
    /// A `TanzuKubernetesRelease`, which has the name of its version.
    Objects,
    /// The `ConfigMap`s of a namespace.
    ConfigMaps(Namespace),
}

impl Spelling {
    fn is_image(&self) -> bool {
        matches!(self, Self::Image(_))
    }
}

/// Whether a release is meant to be used. Clusters that have it are never troubled by this.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ReleaseState {
    /// It is.
    #[default]
    Active,
    /// Not any more: no cluster is newly resolved to it.
    Deprecated,
    /// Not yet: it is still being made.
    Wip,
    /// By those who ask for it by its whole version.
    Preview,
}

impl ReleaseState {
    /// All of them, in the order in which a release passes through them.
    pub const ALL: [Self; 4] = [Self::Wip, Self::Preview, Self::Active, Self::Deprecated];

    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Deprecated => "deprecated",
            Self::Wip => "wip",
            Self::Preview => "preview",
        }
    }
}

impl fmt::Display for ReleaseState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// An image that machines can be made from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MachineImage {
    /// The object that it is told by.
    pub name: ImageName,
    /// The operating system on it; `None` where nobody says.
    pub os: Option<OperatingSystem>,
    /// How a provider finds it; `None` if by its name.
    pub reference: Option<ImageReference>,
}

/// The image of a component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImageTag {
    /// The registry, or the part of it.
    pub repository: String,
    /// The tag.
    pub tag: String,
}

/// An add-on of a release.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AddonRelease {
    /// What it is for: the key in `status.addons` (`proxy`, `dns`, `csi` …).
    pub slot: String,
    /// The name that people know it by.
    pub display_name: String,
    /// Its version.
    pub version: String,
    /// Its objects, with the strategies of section 6 of the design already in them.
    pub objects: Vec<Value>,
}

/// What a cluster has an add-on for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddonClass {
    /// The cluster does not work without it: network, volumes, names, the cloud provider, what pods may do.
    Core,
    /// Those who use the cluster want it.
    Extension,
}

impl AddonRelease {
    /// What a cluster has it for. An add-on that is not known here is an extension.
    pub fn class(&self) -> AddonClass {
        match self.slot.as_str() {
            "cloudprovider" | "cni" | "csi" | "dns" | "proxy" | "psp" => AddonClass::Core,
            _ => AddonClass::Extension,
        }
    }
}

impl Release {
    /// A release with versions, and nothing in it yet.
    fn of(spelling: Spelling, distribution: KubernetesVersion, kubernetes: KubernetesVersion) -> Self {
        Self {
            spelling,
            images: Vec::new(),
            distribution,
            kubernetes,
            image_repository: None,
            etcd: None,
            coredns: None,
            pause: None,
            kube_vip: None,
            addons: BTreeMap::new(),
            packages: Vec::new(),
            choices: Vec::new(),
            defaults: BTreeMap::new(),
            state: ReleaseState::default(),
            original: None,
            digest: String::new(),
        }
    }

    /// The release, complete.
    fn sealed(mut self) -> Self {
        self.digest = digest::of(&json!(self));
        self
    }

    /// What tells the release from all others, whatever its name: `sha256:…`.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The name that clusters carry as a label, whatever the spelling: the version, as it can be in a label.
    pub fn name(&self) -> String {
        self.distribution.label().to_string()
    }

    /// The tag of etcd's image; `None` leaves it to kubeadm.
    pub fn etcd_tag(&self) -> Option<&str> {
        self.etcd.as_ref().map(|etcd| etcd.tag.as_str())
    }

    /// The image that machines are made from, where there is no other to choose.
    pub fn image(&self) -> Option<&ImageName> {
        match self.images.as_slice() {
            [only] => Some(&only.name),
            _ => None,
        }
    }

    /// The release on one of its images, which was chosen for a cluster; `None` if it is not one of them. The digest stays: it
    /// is the same release.
    #[must_use]
    pub fn with_image(mut self, chosen: &ImageName) -> Option<Self> {
        self.images.retain(|image| image.name == *chosen);
        (!self.images.is_empty()).then_some(self)
    }

    /// The package of that short name among those that a cluster can have, where there is no other to choose: `antrea`. So the
    /// choice of an owner survives an update.
    pub fn choice(&self, short_name: &str) -> Option<&PackageVersion> {
        let mut found = self.choices.iter().filter(|choice| choice.short_name() == short_name);
        found.next().filter(|_| found.next().is_none())
    }

    /// What it says about objects of a kind.
    pub fn defaults_of(&self, kind: &str) -> Option<&KindDefaults> {
        self.defaults.get(&kind.to_ascii_lowercase())
    }
}

/// An image of which only the name is known is written as its name, and the only one without a list around it: so digests of
/// releases on machine images stay what they were when a release could have no other.
fn names_or_facts<S: Serializer>(images: &[MachineImage], serializer: S) -> Result<S::Ok, S::Error> {
    let written = |image: &MachineImage| match image {
        MachineImage { name, os: None, reference: None } => json!(name),
        image => json!(image),
    };
    match images {
        [only] => written(only).serialize(serializer),
        several => serializer.collect_seq(several.iter().map(written)),
    }
}

/// What an object of an add-on is to its cluster, whichever release it is of: `addon/kube-proxy/DaemonSet`, and
/// `addon/pvcsi/ConfigMap/kube-system/settings` where an add-on has an object of another name than its own.
pub fn addon_role(addon: &AddonName, object: &Value) -> String {
    let kind = object["kind"].as_str().unwrap_or_default();
    let metadata = &object["metadata"];
    let name = metadata["name"].as_str().unwrap_or_default();
    let bound = distribution_of(object).map(|distribution| format!("-{}", distribution.label()));
    let name = bound.and_then(|suffix| name.strip_suffix(&suffix)).unwrap_or(name);
    if name == addon.as_str() {
        return format!("addon/{addon}/{kind}");
    }
    match metadata["namespace"].as_str() {
        Some(namespace) => format!("addon/{addon}/{kind}/{namespace}/{name}"),
        None => format!("addon/{addon}/{kind}/{name}"),
    }
}

/// The distribution that an object of an add-on is bound to; `None` if it is there once for all of them.
pub fn distribution_of(object: &Value) -> Option<KubernetesVersion> {
    object["metadata"]["labels"][label::DISTRIBUTION_VERSION.name].as_str()?.parse().ok()
}
