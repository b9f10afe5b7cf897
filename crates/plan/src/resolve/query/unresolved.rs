//! Why nothing fits: for each part, and for each release that nearly did.

use std::collections::BTreeMap;
use std::fmt;

use windlass_api::label;
use windlass_api::name::ObjectName;
use windlass_api::version::{KubernetesVersion, VersionPrefix};

use super::{Part, PartQuery, Query, fit};
use crate::resolve::catalogue::{Catalogue, Malformed, ReleaseObject};
use crate::resolve::listed;

/// There is no release that fits every part of a cluster, or not one image for each.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Unresolved {
    /// The parts, and why not.
    pub parts: BTreeMap<Part, WhyNot>,
    /// The releases that there are.
    pub known: Vec<KubernetesVersion>,
    /// The objects that cannot be read, one of which may be what is missing.
    pub malformed: Vec<Malformed>,
}

/// Why there is nothing for a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhyNot {
    /// No release fits it.
    NoRelease {
        /// What its version begins with.
        version: VersionPrefix,
        /// The releases that begin so, and what keeps them from fitting.
        near: Vec<NearMiss>,
    },
    /// Releases fit it, but none of them fits all other parts, too.
    NotInCommon {
        /// What fits it.
        alone: Vec<KubernetesVersion>,
    },
    /// Several images of the release fit it.
    Ambiguous {
        /// The release.
        release: KubernetesVersion,
        /// The images, and the selector that would fit no other of them.
        images: Vec<(ObjectName, Option<String>)>,
    },
}

/// A release that nearly fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NearMiss {
    /// Its version.
    pub release: KubernetesVersion,
    /// What keeps it from fitting.
    pub why: Miss,
}

/// What keeps a release from fitting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Miss {
    /// It has a label for which it is passed over: `incompatible`, `deactivated`, `invalid`.
    Excluded(&'static str),
    /// Its labels do not meet this requirement.
    Labels(String),
    /// None of its images fits: each of them, and the label or requirement that keeps it from that.
    Images(Vec<(ObjectName, String)>),
}

/// Says why nothing fits.
pub(super) fn nothing_fits(query: &Query, catalogue: &Catalogue) -> Unresolved {
    let why = |(part, asked): (Part, &PartQuery)| {
        let alone = fit::releases(query, asked, catalogue);
        let why = if alone.is_empty() {
            WhyNot::NoRelease { version: asked.version.clone(), near: near_misses(query, asked, catalogue) }
        } else {
            WhyNot::NotInCommon { alone: alone.iter().map(|release| release.version.clone()).collect() }
        };
        (part, why)
    };
    let mut parts: BTreeMap<Part, WhyNot> = query.parts().map(why).collect();
    // Where some part has nothing at all, the others are not to blame.
    if parts.values().any(|why| matches!(why, WhyNot::NoRelease { .. })) {
        parts.retain(|_, why| matches!(why, WhyNot::NoRelease { .. }));
    }
    Unresolved { parts, known: catalogue.versions(), malformed: catalogue.malformed.clone() }
}

fn near_misses(query: &Query, asked: &PartQuery, catalogue: &Catalogue) -> Vec<NearMiss> {
    let prefix = label::version_prefix(&asked.version);
    let near = catalogue.releases.iter().filter(|release| release.labels.contains_key(&prefix));
    near.map(|release| NearMiss { release: release.version.clone(), why: miss(query, asked, release) }).collect()
}

fn miss(query: &Query, asked: &PartQuery, release: &ReleaseObject) -> Miss {
    if let Some(label) = fit::exclusion(query, release) {
        return Miss::Excluded(label);
    }
    if let Some(unmet) = asked.releases.unmet(&release.labels) {
        return Miss::Labels(unmet.to_string());
    }
    let why = |labels: &BTreeMap<String, String>| {
        let unmet = || asked.os_images.unmet(labels).map(|unmet| format!("is not {unmet}"));
        fit::excluded(labels).map(|label| format!("is {label}")).or_else(unmet).unwrap_or_default()
    };
    Miss::Images(release.os_images.iter().map(|image| (image.name.clone(), why(&image.labels))).collect())
}

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no release fits")?;
        for (part, why) in &self.parts {
            write!(f, "; {part}: {why}")?;
        }
        write!(f, "; there are {}", listed(&self.known))?;
        if !self.malformed.is_empty() {
            write!(f, "; not readable: {}", listed(&self.malformed))?;
        }
        Ok(())
    }
}

impl fmt::Display for WhyNot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRelease { version, near } if near.is_empty() => write!(f, "no release begins with {version}"),
            Self::NoRelease { version, near } => {
                write!(f, "no release that begins with {version} can be used: {}", listed(near))
            }
            Self::NotInCommon { alone } => {
                write!(f, "alone it could have {}, but a cluster has one release for all its parts", listed(alone))
            }
            Self::Ambiguous { release, images } => {
                let image = |(name, apart): &(ObjectName, Option<String>)| match apart {
                    Some(selector) => format!("{name} (alone by {selector})"),
                    None => format!("{name} (no label tells it from the others)"),
                };
                write!(f, "{release} has {} images that fit: {}", images.len(), listed(images.iter().map(image)))
            }
        }
    }
}

impl fmt::Display for NearMiss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.release, self.why)
    }
}

impl fmt::Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Excluded(label) => write!(f, "is {label}"),
            Self::Labels(requirement) => write!(f, "is not {requirement}"),
            Self::Images(images) if images.is_empty() => f.write_str("has no image"),
            Self::Images(images) => {
                let image = |(name, why): &(ObjectName, String)| format!("{name} {why}");
                let images: Vec<String> = images.iter().map(image).collect();
                write!(f, "has no image that fits ({})", images.join(", "))
            }
        }
    }
}
