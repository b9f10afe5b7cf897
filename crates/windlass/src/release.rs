//! The releases that a management cluster has, as people choose among them.

pub mod object;

use serde::Serialize;
use windlass_api::kind::virtual_machine::VirtualMachineImage;
use windlass_api::version::{KubernetesVersion, VersionPrefix};
use windlass_controller::classic::Unplanned;
use windlass_controller::classic::parts::{named, published};
use windlass_plan::release::{Release, ReleaseError, ReleaseState};
use windlass_plan::resolve::Refusal;

use crate::client::{self, Management};
use crate::error::{Exit, Explained, Kind};
use crate::output;

/// All releases there are, oldest first. Of images that should be one and cannot be read, people are told.
pub async fn all(management: &Management) -> Result<Vec<Release>, client::Error> {
    let images: Vec<VirtualMachineImage> = management.all("machine images").await?;
    let mut releases = Vec::new();
    for image in &images {
        match Release::from_image(image) {
            Ok(release) => releases.push(release),
            // An image of something else.
            Err(ReleaseError::NoDistribution { .. }) => {}
            Err(error) => output::warning(&format!("{error}; it is left out")),
        }
    }
    releases.sort_by(|a, b| a.distribution.cmp(&b.distribution).then_with(|| a.image().cmp(&b.image())));
    Ok(releases)
}

/// The newest of all, for those who say nothing else. A pre-release is for those who ask for it.
pub fn newest(releases: &[Release]) -> Result<&Release, Error> {
    let finished = releases.iter().filter(|release| release.distribution.pre_release().is_none());
    finished.max_by(|a, b| a.distribution.cmp(&b.distribution)).ok_or(Error::None)
}

/// A release in a few words.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// The version of the whole.
    pub version: KubernetesVersion,
    /// The version of Kubernetes in it.
    pub kubernetes: KubernetesVersion,
    /// The tag of etcd's image.
    pub etcd: String,
    /// What comes with it, and in which version.
    pub addons: Vec<Addon>,
    /// The machine image that it is on.
    pub image: String,
    /// What tells it from all others.
    pub digest: String,
    /// What is shown on it, where it is an object of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<object::Object>,
    /// How the label of a cluster names it, and whether it is for use, where it is a set of `ConfigMap`s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<Label>,
}

/// A release that the label of a cluster can name.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Label {
    /// The value of the label.
    pub name: String,
    /// Whether it is for use.
    #[schemars(with = "String")]
    pub state: ReleaseState,
    /// The `ConfigMap`s that it is made of, by the kinds that they are about.
    pub kinds: Vec<String>,
}

/// The releases that the labels of clusters can name, oldest first. Of those that cannot be read, people are told.
pub async fn labelled(management: &Management) -> Result<Vec<Summary>, client::Error> {
    let published = published(&management.client).await;
    let published = published.map_err(|error| client::Error::Unread { why: error.to_string() })?;
    for error in published.malformed() {
        output::warning(&format!("{error}; it is left out"));
    }
    let summary = |release: &Release| Summary {
        label: Some(Label {
            name: release.distribution.bare().to_string(),
            state: release.state,
            kinds: release.defaults.keys().cloned().collect(),
        }),
        ..Summary::from(release)
    };
    Ok(published.releases().map(summary).collect())
}

/// The release that somebody means for the label of a cluster, as the label names it.
pub async fn chosen(management: &Management, asked: &VersionPrefix) -> Result<String, Error> {
    let chosen = named(&management.client, asked).await.map_err(|source| Error::Unplanned(Box::new(source)))?;
    Ok(chosen.bare().to_string())
}

/// What comes with a release.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Addon {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

impl From<&Release> for Summary {
    fn from(release: &Release) -> Self {
        let addon = |(name, addon): (&_, &windlass_plan::release::AddonRelease)| Addon {
            name: ToString::to_string(name),
            version: addon.version.clone(),
        };
        Self {
            version: release.distribution.clone(),
            kubernetes: release.kubernetes.clone(),
            etcd: release.etcd_tag().unwrap_or_default().to_owned(),
            addons: release.addons.iter().map(addon).collect(),
            image: release.image().map(ToString::to_string).unwrap_or_default(),
            digest: release.digest().to_owned(),
            object: None,
            label: None,
        }
    }
}

/// There is no such release, or no way to it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the management cluster has no releases: no machine image says what is on it")]
    None,
    #[error(transparent)]
    Refused(Box<Refusal>),
    #[error(transparent)]
    Unplanned(Box<Unplanned>),
    #[error("{}", not_one(asked, found, known))]
    NotOne { asked: VersionPrefix, found: Vec<KubernetesVersion>, known: Vec<KubernetesVersion> },
    #[error(
        "{version} is the release of a machine image only: there is no TanzuKubernetesRelease of it that could be taken out of use"
    )]
    NoObject { version: KubernetesVersion },
}

fn not_one(asked: &VersionPrefix, found: &[KubernetesVersion], known: &[KubernetesVersion]) -> String {
    let listed =
        |versions: &[KubernetesVersion]| versions.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if found.is_empty() {
        return format!("no release begins with {asked}; there are {}", listed(known));
    }
    format!("{} releases begin with {asked}: {}", found.len(), listed(found))
}

impl From<Unplanned> for Error {
    fn from(why: Unplanned) -> Self {
        Self::Unplanned(Box::new(why))
    }
}

impl From<Box<Refusal>> for Error {
    fn from(refusal: Box<Refusal>) -> Self {
        Self::Refused(refusal)
    }
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::None => Kind::Environment,
            Self::Unplanned(why) => match **why {
                Unplanned::Parts(_) => Kind::Environment,
                Unplanned::Release(_) | Unplanned::Target(_) | Unplanned::NotYet | Unplanned::NoLabel => Kind::User,
            },
            Self::Refused(_) | Self::NotOne { .. } | Self::NoObject { .. } => Kind::User,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Unplanned(why) => return why.way_out(),
            Self::None => "kubectl get virtualmachineimages".to_owned(),
            Self::Refused(_) | Self::NotOne { .. } => "windlass release list".to_owned(),
            Self::NoObject { .. } => "kubectl get tanzukubernetesreleases".to_owned(),
        })
    }

    fn exit(&self) -> Exit {
        match self {
            Self::Unplanned(why) => match **why {
                Unplanned::Parts(_) => Exit::Failed,
                Unplanned::Release(_) | Unplanned::Target(_) | Unplanned::NotYet | Unplanned::NoLabel => Exit::Refused,
            },
            Self::None | Self::NotOne { .. } | Self::NoObject { .. } => Exit::Failed,
            Self::Refused(refusal) => match &**refusal {
                Refusal::Downgrade { .. }
                | Refusal::SkippedMinor { .. }
                | Refusal::OtherMajor { .. }
                | Refusal::NotOffered { .. }
                | Refusal::PassedOver { .. }
                | Refusal::WorkersTooOld { .. }
                | Refusal::NoPath { .. } => Exit::Refused,
                Refusal::Hint(_)
                | Refusal::FullVersion(_)
                | Refusal::Nothing { .. }
                | Refusal::NoMatch { .. }
                | Refusal::NoRelease { .. }
                | Refusal::HintMismatch { .. } => Exit::Failed,
            },
        }
    }
}
