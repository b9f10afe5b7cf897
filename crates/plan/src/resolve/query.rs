//! Which release object fits every part of a cluster: one release for the whole of it.
//!
//! Each part says what its version begins with, which labels its release must have and which labels its image must have.
//! Releases that are incompatible, deactivated or invalid are passed over. A release whose name is the version in full is the
//! only one asked for. What is left must have a fitting image for every part; the newest of these is chosen, and then each
//! part must have exactly one image that fits: two that fit are a question to a person, and no choice of ours.

pub(super) mod fit;
mod unresolved;

use std::collections::BTreeMap;
use std::fmt;

use windlass_api::name::{PoolName, ReleaseName};
use windlass_api::version::VersionPrefix;

use super::catalogue::{Catalogue, Image, ReleaseObject};
use super::selector::Selector;

pub use unresolved::{Miss, NearMiss, Unresolved, WhyNot};

/// What a cluster asks for. A part that is not in it is not asked about.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Query {
    /// The control plane.
    pub control_plane: Option<PartQuery>,
    /// The pools of workers.
    pub pools: BTreeMap<PoolName, PartQuery>,
    /// The release that the cluster has: it is not passed over for what became of it since.
    pub in_use: Option<ReleaseName>,
}

/// What one part asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct PartQuery {
    /// What the version of the release begins with.
    pub version: VersionPrefix,
    /// The labels of the release.
    pub releases: Selector,
    /// The labels of the image.
    pub os_images: Selector,
}

/// A part of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The control plane.
    ControlPlane,
    /// A pool of workers.
    Pool(PoolName),
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ControlPlane => f.write_str("the control plane"),
            Self::Pool(pool) => write!(f, "pool {pool}"),
        }
    }
}

/// What fits.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolution<'c> {
    /// The release.
    pub release: &'c ReleaseObject,
    /// The image of each part that was asked about.
    pub os_images: BTreeMap<Part, &'c Image>,
}

impl Query {
    /// The parts that are asked about.
    pub fn parts(&self) -> impl Iterator<Item = (Part, &PartQuery)> {
        let control_plane = self.control_plane.iter().map(|query| (Part::ControlPlane, query));
        control_plane.chain(self.pools.iter().map(|(pool, query)| (Part::Pool(pool.clone()), query)))
    }

    /// The same query about another version.
    #[must_use]
    pub fn with_version(&self, version: &VersionPrefix) -> Self {
        let mut query = self.clone();
        for part in query.control_plane.iter_mut().chain(query.pools.values_mut()) {
            part.version = version.clone();
        }
        query
    }
}

/// What fits every part that is asked about; `None` if none is.
pub fn resolve<'c>(query: &Query, catalogue: &'c Catalogue) -> Result<Option<Resolution<'c>>, Unresolved> {
    if query.parts().next().is_none() {
        return Ok(None);
    }
    let common = fit::common(query, catalogue);
    let newest = common.into_iter().max_by(|left, right| left.version.cmp(&right.version));
    let Some(release) = newest else { return Err(unresolved::nothing_fits(query, catalogue)) };
    match fit::images(query, release) {
        Ok(os_images) => Ok(Some(Resolution { release, os_images })),
        Err(ambiguous) => Err(Unresolved { parts: ambiguous, known: catalogue.versions(), malformed: Vec::new() }),
    }
}

/// Every release that this query could be resolved to if it named the release in full, oldest first.
pub fn all<'c>(query: &Query, catalogue: &'c Catalogue) -> Vec<&'c ReleaseObject> {
    let common = fit::common(query, catalogue).into_iter();
    common.filter(|release| fit::images(query, release).is_ok()).collect()
}

#[cfg(test)]
pub(in crate::resolve) mod tests;
