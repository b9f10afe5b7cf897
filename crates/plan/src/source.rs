//! Manifests as people keep them in files: which of them says the release of a cluster, and that file with the one value
//! changed.
//!
//! Plain manifests, kustomize overlays (patches in files and inline, labels), and variables that Flux fills in
//! (`postBuild.substitute`). Comments, quotes, line endings and everything else stay as they are. Where there is more than one
//! place, or others share it, nothing is changed: the refusal names the places.

mod compare;
mod find;
mod overlay;
mod tree;
mod variable;
mod write;

use std::fmt;

use windlass_api::label;
use windlass_api::name::NamespacedName;

pub use compare::{Comparison, Difference, Standing, compare};
use find::{Hit, Reading};
use tree::Content;

/// A file of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Where it is, from the root of the repository, with `/`.
    pub path: String,
    /// What is in it.
    pub text: String,
}

/// The field that a change of the release is asked for with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// `release.giantswarm.io/version` on a Cluster.
    ReleaseVersion,
    /// `run.tanzu.vmware.com/tkr` on a Cluster.
    ReleaseName,
    /// `spec.topology.version` of a Cluster.
    Topology,
    /// `spec.distribution.version` of a `TanzuKubernetesCluster`.
    Distribution,
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wish<'a> {
    /// The cluster.
    pub cluster: &'a NamespacedName,
    /// How it is asked.
    pub trigger: Trigger,
    /// The value that the field is to have.
    pub to: &'a str,
    /// Only a place in this file, or in files below it, is meant.
    pub only: Option<&'a str>,
}

/// One value that changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// Where.
    pub place: Place,
    /// What it was.
    pub from: String,
    /// What it is to be.
    pub to: String,
    /// The whole file, with it.
    pub text: String,
}

/// Where a value stands.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// The field.
    pub field: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{} ({})", self.path, self.line, self.field)
    }
}

/// Why no file was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// The cluster is in no file.
    #[error("no file has {kind} {cluster}{}", unread_too(.unread))]
    NoCluster {
        /// Its kind.
        kind: &'static str,
        /// Its name.
        cluster: NamespacedName,
        /// Files that look like YAML, and cannot be read.
        unread: Vec<String>,
    },
    /// The cluster is there, and says nothing of its release.
    #[error("{} has no {field}; write the release that the cluster has there first", all(.places))]
    NoField {
        /// Where the cluster is.
        places: Vec<Place>,
        /// What is missing.
        field: String,
    },
    /// There is more than one place.
    #[error("more than one place says the release: {}; say which file is meant", all(.places))]
    Ambiguous {
        /// Those.
        places: Vec<Place>,
    },
    /// Others would change, too.
    #[error(
        "{place} is shared with others by an anchor, or by a manifest for several clusters; write it out for this one first"
    )]
    Shared {
        /// The place.
        place: Place,
    },
    /// It is not a single line.
    #[error("{place} is written in a form that cannot be changed in one line; write it as a plain value first")]
    Form {
        /// The place.
        place: Place,
    },
    /// It is filled in from something that is not in the files.
    #[error(
        "{place} is filled in from ${{{variable}}}, and no Flux Kustomization here sets it in postBuild.substitute"
    )]
    Variable {
        /// The place.
        place: Place,
        /// The name of the variable.
        variable: String,
    },
    /// A field beside it says the same in another way.
    #[error("{place} names the release, too, and would contradict; remove it first")]
    Contradiction {
        /// The other field.
        place: Place,
    },
}

fn all(places: &[Place]) -> String {
    places.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn unread_too(unread: &[String]) -> String {
    if unread.is_empty() { String::new() } else { format!("; these cannot be read as YAML: {}", unread.join(", ")) }
}

impl Trigger {
    /// All of them.
    const ALL: [Self; 4] = [Self::ReleaseVersion, Self::ReleaseName, Self::Topology, Self::Distribution];

    /// The keys that lead to the field.
    pub fn path(self) -> &'static [&'static str] {
        match self {
            Self::ReleaseVersion => &["metadata", "labels", label::RELEASE_VERSION.name],
            Self::ReleaseName => &["metadata", "labels", label::RELEASE.name],
            Self::Topology => &["spec", "topology", "version"],
            Self::Distribution => &["spec", "distribution", "version"],
        }
    }

    /// The kind of the objects that have it.
    pub fn kind(self) -> &'static str {
        if self == Self::Distribution { "TanzuKubernetesCluster" } else { "Cluster" }
    }

    /// The group of the objects that have it.
    fn group(self) -> &'static str {
        if self == Self::Distribution { "run.tanzu.vmware.com" } else { "cluster.x-k8s.io" }
    }

    /// As a JSON pointer, in which patches name it.
    fn pointer(self) -> String {
        let escaped = |key: &&str| key.replace('~', "~0").replace('/', "~1");
        [String::new()].into_iter().chain(self.path().iter().map(escaped)).collect::<Vec<_>>().join("/")
    }

    /// The name of the label, if it is one.
    fn label(self) -> Option<&'static str> {
        match self {
            Self::ReleaseVersion => Some(label::RELEASE_VERSION.name),
            Self::ReleaseName => Some(label::RELEASE.name),
            Self::Topology | Self::Distribution => None,
        }
    }

    fn field(self) -> String {
        self.path().join(".")
    }
}

/// The one change that asks for another release. `None` if the files ask for it already.
pub fn edit(files: &[File], wish: &Wish<'_>) -> Result<Option<Edit>, SourceError> {
    let reading = Reading::of(files);
    let hit = find::place(&reading, wish)?;
    let Hit { file, found, .. } = hit;
    let place = hit.place(&reading);
    let from = found.meant.scalar().unwrap_or_default().trim_end().to_owned();
    if from == wish.to {
        return Ok(None);
    }
    let is_alias = matches!(found.node.content, Content::Alias(_));
    if found.is_shared || !is_alias && hit.tree.is_used_elsewhere(found.node) {
        return Err(SourceError::Shared { place });
    }
    let old = &reading.files[file];
    let text = write::replaced(&old.text, found.node, wish.to).filter(|new| is_one_line(&old.text, new));
    let Some(text) = text else { return Err(SourceError::Form { place }) };
    Ok(Some(Edit { place, from, to: wish.to.to_owned(), text }))
}

/// Whether two texts are the same but for one line.
fn is_one_line(old: &str, new: &str) -> bool {
    let differing = old.split('\n').zip(new.split('\n')).filter(|(old, new)| old != new).count();
    old.split('\n').count() == new.split('\n').count() && differing == 1
}
