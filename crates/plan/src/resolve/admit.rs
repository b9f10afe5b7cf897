//! What becomes of a cluster of a class that somebody writes: its release is resolved, and it is held until the packages of a new
//! one are in.
//!
//! Nothing is read here and nothing is remembered. Asked again about its own answer, with the same cluster before, it changes
//! nothing: API servers ask again when somebody else has changed the object in between.

mod wish;
mod write;

use std::fmt;

use windlass_api::annotation;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::release::{OSImage, TanzuKubernetesRelease};
use windlass_api::kind::topology::ClusterClass;
use windlass_api::label;
use windlass_api::name::ReleaseName;
use windlass_api::version::{KubernetesVersion, VersionPrefix};

use super::catalogue::{Catalogue, Malformed};
use super::cluster::{Asked, Resolved, resolve, wanted_releases};
use super::hold::{Held, HoldBy, Told, held};
use super::query::Unresolved;
use super::{Refusal, change, copy, listed};
use crate::hook::Unasked;
use wish::Wish;

/// A cluster that somebody writes, and what has to be known to judge it.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// What it is to be.
    pub cluster: &'a Cluster,
    /// What it was; nothing when it is made.
    pub before: Option<&'a Cluster>,
    /// Its class, if that is there.
    pub class: Option<&'a ClusterClass>,
    /// The releases that there are.
    pub releases: &'a [TanzuKubernetesRelease],
    /// Their images.
    pub os_images: &'a [OSImage],
    /// The version of Kubernetes that its control plane is told to have, where that is known.
    pub control_plane: Option<&'a KubernetesVersion>,
    /// How machines are kept back.
    pub hold_by: HoldBy,
    /// Why Cluster API would not ask before it goes on, where hooks are to keep machines back. A pause keeps them back then.
    pub unasked: Option<Unasked>,
}

/// What becomes of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Admitted {
    /// Its release, where that was resolved.
    pub resolved: Option<Resolved>,
    /// The copy of its release, where it has none of that release.
    pub copy: Option<String>,
    /// Whether it is held.
    pub held: Held,
    /// What people are told.
    pub warnings: Vec<String>,
}

/// Why it may not be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// Something in it cannot be read.
    Malformed(Box<Malformed>),
    /// There is no class to make it by.
    NoClass {
        /// Which, with its namespace.
        class: String,
    },
    /// It asks for two releases.
    Two {
        /// By its label.
        label: ReleaseName,
        /// By its version.
        version: VersionPrefix,
    },
    /// Its label was changed to what names no release.
    NoName {
        /// The label.
        label: ReleaseName,
        /// The names that it could have.
        known: Vec<ReleaseName>,
    },
    /// No release fits.
    Unresolved(Box<Unresolved>),
    /// It may not go there.
    Path(Box<Refusal>),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(malformed) => malformed.fmt(f),
            Self::NoClass { class } => write!(
                f,
                "spec.topology.classRef: there is no ClusterClass {class}, and without it no release can be resolved; create \
                 it first, or remove the annotation {}",
                annotation::RESOLVE_RELEASE
            ),
            Self::Two { label, version } => write!(
                f,
                "metadata.labels[{}] asks for {label} and spec.topology.version for {version}, with which that does not \
                 begin; change one of them, and the other follows",
                label::RELEASE
            ),
            Self::NoName { label, known } => write!(
                f,
                "metadata.labels[{}]: {label} names no release: a label has the whole of a name, and the beginning of a \
                 version can be asked for in spec.topology.version; there are {}",
                label::RELEASE,
                listed(known)
            ),
            Self::Unresolved(unresolved) => write!(f, "spec.topology: {unresolved}"),
            Self::Path(refusal) => write!(f, "spec.topology: {refusal}"),
        }
    }
}

/// Whether there is anything to judge about a cluster: it has a topology, and is not on its way out.
pub fn concerns(cluster: &Cluster) -> bool {
    cluster.spec.topology.is_some() && cluster.metadata.deletion_timestamp.is_none()
}

/// Whether a class is needed to judge a cluster, by its namespace and name.
pub fn class_of(cluster: &Cluster) -> Option<(String, String)> {
    let reference = &cluster.spec.topology.as_ref()?.class_ref;
    let namespace = reference.namespace.clone().or_else(|| cluster.metadata.namespace.clone());
    Some((namespace.unwrap_or_default(), reference.name.clone()))
}

/// Whether machines of a cluster may still wait for packages: then it goes from what its control plane has, and not from what it
/// was asked to have. Where Cluster API asks before it goes on, nothing on the cluster says that it waits.
pub fn may_go_back(before: &Cluster, hold_by: HoldBy) -> bool {
    hold_by == HoldBy::Hooks || Held::of(before).hold.is_some()
}

/// Judges a cluster.
pub fn admit(request: &Request<'_>) -> Result<Admitted, Refused> {
    let mut asked = Held::of(request.cluster);
    // What its owner has paused is stored as it is, and resolved when the owner goes on: so it can be moved and restored.
    let resolved = if asked.is_paused_by_owner() { None } else { resolved(request)? };
    if let Some(resolved) = &resolved {
        asked.release = Some(resolved.release.to_string());
    }
    let (held, told) = match request.before {
        None => (asked, None),
        Some(before) => held(&Held::of(before), &asked, effective(request), can_end(request, before, &asked)),
    };
    let copy = held.release.as_ref().and_then(|release| missing_copy(request, release));
    let mut warnings: Vec<String> = told.iter().map(Told::words).collect();
    if let (Some(Told::Held { .. }), Some(unasked)) = (told, request.unasked) {
        warnings.push(format!(
            "the cluster is paused, and not held by hooks: Cluster API does not ask Windlass, as {unasked}"
        ));
    }
    Ok(Admitted { resolved, copy, held, warnings })
}

/// How machines are kept back now. Nobody would be told to wait who does not ask.
fn effective(request: &Request<'_>) -> HoldBy {
    if request.unasked.is_some() { HoldBy::Pause } else { request.hold_by }
}

/// Whether a hold for the release that is asked for would end: packages are brought in where an API answers, and of releases
/// that have any.
fn can_end(request: &Request<'_>, before: &Cluster, asked: &Held) -> bool {
    let reached = before.status.as_ref().and_then(|status| status.initialization.as_ref());
    let answers = reached.is_some_and(|reached| reached.control_plane_initialized);
    let release = asked.release.as_ref().and_then(|release| request.release(release));
    answers && release.is_some_and(|release| release.spec.bootstrap_packages.is_some())
}

/// The copy of a release for a cluster that has none of it.
fn missing_copy(request: &Request<'_>, release: &str) -> Option<String> {
    let name: ReleaseName = release.parse().ok()?;
    let annotations = request.cluster.metadata.annotations.as_ref();
    let text = annotations.and_then(|annotations| annotations.get(annotation::RELEASE_COPY.name));
    if copy::is_of(text, &name) {
        return None;
    }
    request.release(release).map(copy::write)
}

fn resolved(request: &Request<'_>) -> Result<Option<Resolved>, Refused> {
    let (cluster, before) = (request.cluster, request.before);
    let Some(class) = request.class else {
        // Others may have it made by a class that comes later; who asks for a release cannot.
        let is_asked = wanted_releases(cluster.metadata.annotations.as_ref()).is_some();
        let missing = class_of(cluster).filter(|_| is_asked);
        return missing
            .map_or(Ok(None), |(namespace, name)| Err(Refused::NoClass { class: format!("{namespace}/{name}") }));
    };
    let malformed = |malformed| Refused::Malformed(Box::new(malformed));
    let wish = Wish::of(cluster, before);
    let read = match wish.clone() {
        Wish::Release(release) => Asked::read(&wish::asking_for(cluster, &release), class),
        Wish::Version => Asked::read(cluster, class),
        Wish::Both(release) => {
            let typed = Asked::read(cluster, class).map_err(malformed)?;
            if let Some(version) = typed.map(|asked| asked.version).filter(|version| !wish::begins(version, &release)) {
                return Err(Refused::Two { label: release, version });
            }
            Asked::read(&wish::asking_for(cluster, &release), class)
        }
    };
    let Some(mut asked) = read.map_err(malformed)? else { return Ok(None) };
    let catalogue = Catalogue::read(request.releases, request.os_images);
    if let Wish::Release(label) = wish
        && label.version().is_err()
    {
        let known = catalogue.releases.into_iter().map(|release| release.name).collect();
        return Err(Refused::NoName { label, known });
    }
    if let Some(before) = before {
        asked.current = release_of(before);
    }
    // A label that was changed while its owner had paused it: what is on record is of the release before.
    if let Some(release) = wish::unheard(&asked, cluster, before) {
        asked.version = release;
    }
    let found = resolve(&asked, &catalogue).map_err(|unresolved| Refused::Unresolved(Box::new(unresolved)))?;
    let to = found.release.version().ok().filter(|_| before.is_some());
    if let (Some(from), Some(to)) = (start(request, &asked), to)
        && from != to
    {
        change(&from, &to).map_err(|refusal| Refused::Path(Box::new(refusal)))?;
    }
    Ok(Some(found))
}

/// The release that a cluster goes from. One that we hold goes from what its machines have: the release that it is held for was
/// only asked for.
fn start(request: &Request<'_>, asked: &Asked) -> Option<KubernetesVersion> {
    let before = request.before?;
    let recorded = &asked.control_plane.recorded;
    let control_plane = request.control_plane.filter(|_| may_go_back(before, request.hold_by));
    let held = control_plane.and_then(|version| recorded.at(version));
    let release = held.map(|entry| entry.release.clone()).or_else(|| release_of(before));
    release?.version().ok()
}

/// The release that a cluster was resolved to, if that can be read.
fn release_of(cluster: &Cluster) -> Option<ReleaseName> {
    label::RELEASE.get(cluster.metadata.labels.as_ref()?).ok().flatten()
}

impl Request<'_> {
    fn release(&self, name: &str) -> Option<&TanzuKubernetesRelease> {
        self.releases.iter().find(|release| release.metadata.name.as_deref() == Some(name))
    }
}

#[cfg(test)]
mod tests;
