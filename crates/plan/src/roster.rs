//! Which packages there are, of which category, and what runs where.
//!
//! Two tables of data, [`PACKAGES`] and [`PODS`], and what they say about a cluster of which [`Facts`] are known: which packages
//! should run in it and do ([`rows`]), which pods it should have and has ([`pods`]), and what of that is wrong ([`findings`]).
//! Pods that the table does not know belong to people, and are nobody's business here.

mod installed;
mod package;
mod pod;
mod verdict;
mod view;

use std::collections::BTreeSet;

use serde::Serialize;

pub use installed::{Install, State};
pub use package::PACKAGES;
pub use pod::PODS;
pub use verdict::{Finding, PodCount, Seen, findings, pods, verify};
pub use view::{Does, Facts, Row, Should, Wanted, placement, placement_words, rows};

/// What sort of package one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Category {
    /// What makes a cluster a management cluster. Nobody gives it values, and its contents may change without a release.
    Management,
    /// What every cluster has: what connects pods, nodes and volumes, and what installs the rest. It takes values.
    Core,
    /// What needs no other package.
    Standalone,
    /// Cluster API and its providers. They are brought in as such, and not installed as packages.
    ClusterApi,
}

impl Category {
    /// As people read it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Management => "management",
            Self::Core => "core",
            Self::Standalone => "standalone",
            Self::ClusterApi => "Cluster API",
        }
    }

    /// Why its packages take no values from people, where they do not.
    pub fn refuses_values(self) -> Option<&'static str> {
        match self {
            Self::Management => Some("management packages come as they are: they take no values"),
            Self::ClusterApi => {
                Some("Cluster API is not installed as a package: there is nothing that would read them")
            }
            Self::Core | Self::Standalone => None,
        }
    }

    /// Whether a change of contents without a change of release is nothing to wonder about.
    pub fn may_change_within_a_release(self) -> bool {
        matches!(self, Self::Management)
    }
}

/// The infrastructure that a package is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Infrastructure {
    /// Amazon's.
    Aws,
    /// Microsoft's.
    Azure,
    /// `VMware`'s.
    Vsphere,
}

/// A package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PackageRow {
    /// Its short name.
    pub name: &'static str,
    /// What sort it is.
    pub category: Category,
    /// The meta package that brings it in.
    pub part_of: Option<&'static str>,
    /// Others of the same meta package that must be there before.
    pub after: &'static [&'static str],
    /// The only infrastructure that has it.
    pub only_on: Option<Infrastructure>,
}

/// What a cluster is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Role {
    /// It has Cluster API, and makes others.
    Management,
    /// It runs what people need.
    Workload,
    /// It runs what people need, on workers with Windows.
    Windows,
}

impl Role {
    /// As people read it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Management => "management",
            Self::Workload => "workload",
            Self::Windows => "Windows",
        }
    }
}

/// Where in a cluster pods of a sort run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Runs {
    /// Nowhere: where one is seen, something is wrong.
    No,
    /// Where it is placed.
    Yes,
    /// On machines of the control plane only.
    ControlPlane,
    /// Where it is placed, and for a while: that none is there says nothing.
    Sometimes,
}

/// Whose pods they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Owner {
    /// Kubernetes itself: every cluster has them.
    Kubernetes,
    /// A package: clusters that have it have them.
    Package(&'static str),
}

/// A sort of pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodRow {
    /// Where they are.
    pub namespace: &'static str,
    /// What their names begin with.
    pub name: &'static str,
    /// Whose they are.
    pub owner: Owner,
    /// Whether a management cluster has them.
    pub management: Runs,
    /// Whether a workload cluster has them.
    pub workload: Runs,
    /// Whether a workload cluster with Windows has them.
    pub windows: Runs,
    /// Why the row differs from what was written elsewhere.
    pub note: Option<&'static str>,
}

impl PodRow {
    /// Where clusters of a role run them.
    pub fn runs(&self, role: Role) -> Runs {
        match role {
            Role::Management => self.management,
            Role::Workload => self.workload,
            Role::Windows => self.windows,
        }
    }

    /// Whether a pod of this name is one of them: its name is followed by what its owner adds.
    fn is(&self, namespace: &str, pod: &str) -> bool {
        let rest = || pod.strip_prefix(self.name);
        namespace == self.namespace && rest().is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    }
}

/// The row of a package.
pub fn package(name: &str) -> Option<&'static PackageRow> {
    PACKAGES.iter().find(|row| row.name == name)
}

/// What a meta package brings in, in the order in which it does. Of those that are for one infrastructure, only this one's.
pub fn parts(meta: &str, infrastructure: Infrastructure) -> Vec<&'static PackageRow> {
    let fits = |row: &&PackageRow| row.only_on.is_none_or(|only| only == infrastructure);
    let mut waiting: Vec<_> = PACKAGES.iter().filter(|row| row.part_of == Some(meta)).filter(fits).collect();
    let mut ordered: Vec<&'static PackageRow> = Vec::new();
    while !waiting.is_empty() {
        let is_free =
            |row: &&'static PackageRow| !row.after.iter().any(|before| waiting.iter().any(|w| w.name == *before));
        let (free, held): (Vec<_>, Vec<_>) = waiting.iter().copied().partition(is_free);
        // Two that wait for each other would wait for ever; the table has none, which a test sees to.
        if free.is_empty() {
            ordered.extend(held);
            break;
        }
        ordered.extend(free);
        waiting = held;
    }
    ordered
}

/// The management packages that a management cluster on an infrastructure has.
pub fn of_management(infrastructure: Infrastructure) -> BTreeSet<&'static str> {
    let is_one = |row: &&PackageRow| row.category == Category::Management;
    let fits = |row: &&PackageRow| row.only_on.is_none_or(|only| only == infrastructure);
    PACKAGES.iter().filter(is_one).filter(fits).map(|row| row.name).collect()
}

/// The row that a pod belongs to: of several the longest, as `cert-manager-webhook-0` is no `cert-manager`.
pub fn pod(namespace: &str, name: &str) -> Option<&'static PodRow> {
    PODS.iter().filter(|row| row.is(namespace, name)).max_by_key(|row| row.name.len())
}
