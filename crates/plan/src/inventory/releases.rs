//! The releases that are kept for a cluster, and what has become of their images.

use serde::Serialize;
use windlass_api::name::ObjectName;

use crate::release::Release;
use crate::step::Revision;

/// The releases that are kept for a cluster. Where Cluster API rolls the machines there are none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Releases {
    /// The digest of what the release said that the cluster has; `None` if that is on no record.
    pub in_use: Option<String>,
    /// Those that are kept.
    pub kept: Vec<KeptRelease>,
    /// What has become of the image of the release that the cluster is to have.
    pub image: ImageState,
}

impl Releases {
    /// Whether a release is kept.
    pub fn has(&self, digest: &str) -> bool {
        self.kept.iter().any(|kept| kept.digest == digest)
    }
}

/// A release that is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeptRelease {
    /// The object that it is kept in.
    pub name: ObjectName,
    /// The digest of what is in it.
    pub digest: String,
    /// Which state of the object was seen.
    pub revision: Revision,
}

/// What has become of the image of a release.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub enum ImageState {
    /// It is there, and says what is kept of it.
    #[default]
    There,
    /// There is none of that version any more.
    Gone,
    /// It says something else by now, or another image has taken its place.
    Replaced,
    /// What it says cannot be read.
    Malformed {
        /// What is wrong.
        why: String,
    },
    /// There are several of that version, and the cluster is made from none of them.
    Ambiguous {
        /// Which.
        why: String,
    },
}

impl ImageState {
    /// Why nothing but the copy is left, in one word; `None` while the image is there.
    pub fn reason(&self) -> Option<&'static str> {
        match self {
            Self::There => None,
            Self::Gone => Some("ImageGone"),
            Self::Replaced => Some("ImageReplaced"),
            Self::Malformed { .. } => Some("ImageMalformed"),
            Self::Ambiguous { .. } => Some("ImageAmbiguous"),
        }
    }

    /// The same in a sentence, for those who have the release. It is a warning: what is done goes by the copy.
    pub fn told(&self, release: &Release) -> Option<String> {
        let version = &release.distribution;
        let copy = "the cluster goes on with the copy that is kept for it";
        match self {
            Self::There => None,
            Self::Gone => {
                Some(format!("there is no VirtualMachineImage with the distribution {version} any more, and {copy}"))
            }
            Self::Replaced => {
                Some(format!("the VirtualMachineImage of {version} does not say what it said, and {copy}"))
            }
            Self::Malformed { why } => Some(format!("{why}; {copy}")),
            Self::Ambiguous { why } => {
                Some(format!("the distribution {version} is that of several VirtualMachineImages, {why}, and {copy}"))
            }
        }
    }

    /// What a person can do about it; `None` where there is nothing to do.
    pub fn way_out(&self) -> Option<&'static str> {
        match self {
            Self::There => None,
            Self::Gone => Some("bring the image back before machines have to be made from it"),
            Self::Replaced => Some("wait: what is new comes with an update of its own"),
            Self::Malformed { .. } => Some("mend what the image says about itself"),
            Self::Ambiguous { .. } => Some("delete all but one"),
        }
    }
}
