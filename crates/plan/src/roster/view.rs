//! The packages of a cluster: what should run, what does, and how it is.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::installed::{Install, State};
use super::verdict::Seen;
use super::{Category, Infrastructure, Owner, PACKAGES, PODS, PackageRow, PodRow, Role, Runs, package, pod};

/// A package that a cluster's `ClusterBootstrap` lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Its short name.
    pub package: String,
    /// The version.
    pub version: String,
}

/// What is known of the packages of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// What the cluster is for.
    pub role: Role,
    /// What its `ClusterBootstrap` lists; nothing where it has none.
    pub wanted: Option<Vec<Wanted>>,
    /// What was asked for in it.
    pub installs: Vec<Install>,
    /// Its pods.
    pub pods: Vec<Seen>,
}

/// Whether a package should run in a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Should {
    /// It should.
    Yes,
    /// It must not.
    No,
    /// As its owner likes: no table and no `ClusterBootstrap` says anything about it.
    Open,
}

/// Whether a package does run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Does {
    /// A pod of it is ready; without pods, it was brought in.
    Yes,
    /// It has no pod that is ready; without pods, it is not there.
    No,
    /// It has no pods, and was asked for and not brought in: what is there of it, nobody tells.
    Unknown,
}

/// A package in a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Its short name.
    pub package: String,
    /// What sort it is; nothing for people's own.
    pub category: Option<Category>,
    /// The clusters that have it.
    pub placement: Vec<Role>,
    /// Whether it should run here.
    pub should_run: Should,
    /// Whether it does.
    pub runs: Does,
    /// The version that it should have.
    pub wanted_version: Option<String>,
    /// The version that it has.
    pub observed_version: Option<String>,
    /// How it is.
    pub state: State,
    /// What went wrong.
    pub message: Option<String>,
    /// Its `PackageInstall`, with the namespace.
    pub install: Option<String>,
}

impl Facts {
    /// Whether anything of a package is there.
    fn shows(&self, name: &str) -> bool {
        let installed = self.installs.iter().any(|install| install.package == name);
        installed || self.pods_of(name).next().is_some()
    }

    fn pods_of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Seen> {
        self.pods.iter().filter(move |seen| pod(&seen.namespace, &seen.name).is_some_and(|row| is_of(row, name)))
    }

    /// The infrastructure that what is there is for.
    pub fn infrastructure(&self) -> Option<Infrastructure> {
        let shown = PACKAGES.iter().filter(|row| row.only_on.is_some()).find(|row| self.shows(row.name));
        shown.and_then(|row| row.only_on)
    }

    /// The packages that the cluster should have, with the versions that somebody said.
    pub fn expected(&self) -> BTreeMap<String, Option<String>> {
        let wanted = self.wanted.iter().flatten();
        let mut expected: BTreeMap<_, _> =
            wanted.map(|wanted| (wanted.package.clone(), Some(wanted.version.clone()))).collect();
        if self.role == Role::Management {
            let infrastructure = self.infrastructure();
            let is_managed = PACKAGES.iter().any(|row| row.category == Category::Management && self.shows(row.name));
            for row in PACKAGES.iter().filter(|row| row.only_on.is_none() || row.only_on == infrastructure) {
                let is_expected = match row.category {
                    Category::ClusterApi => true,
                    // A cluster that has one of them was made to have them all; Windlass itself needs none.
                    Category::Management => is_managed,
                    // Where nobody lists them, what is there of one says that the rest of it should be.
                    Category::Core | Category::Standalone => self.shows(row.name),
                };
                if is_expected {
                    expected.entry(row.name.to_owned()).or_default();
                }
            }
        }
        expected
    }

    /// Whether a package should run here that may be there or not.
    pub(super) fn should(&self, name: &str, expected: &BTreeMap<String, Option<String>>) -> Should {
        if expected.contains_key(name) {
            return Should::Yes;
        }
        match (package(name).map(|row| row.category), self.role) {
            (None | Some(Category::Standalone), _) => Should::Open,
            // A cluster without a list has whatever it has.
            (Some(Category::Core), _) if self.wanted.is_none() => Should::Open,
            (Some(Category::Core | Category::Management | Category::ClusterApi), _) => Should::No,
        }
    }

    fn does(&self, name: &str, state: State) -> Does {
        let is_pod = |row: &PodRow| is_of(row, name) && matches!(row.runs(self.role), Runs::Yes | Runs::ControlPlane);
        let ready = self.pods_of(name).any(|seen| seen.ready);
        match state {
            _ if ready => Does::Yes,
            _ if PODS.iter().any(is_pod) => Does::No,
            State::Succeeded => Does::Yes,
            State::NotInstalled | State::ByManifests => Does::No,
            State::Reconciling | State::Failed | State::Deleting | State::DeleteFailed | State::Held => Does::Unknown,
        }
    }
}

/// Whether pods of a sort are a package's.
fn is_of(row: &PodRow, name: &str) -> bool {
    match row.owner {
        Owner::Kubernetes => false,
        Owner::Package(package) => package == name,
    }
}

/// The packages of a cluster, those that should be there first, in the order of the table; then all others.
pub fn rows(facts: &Facts) -> Vec<Row> {
    let expected = facts.expected();
    let installed: BTreeSet<&str> = facts.installs.iter().map(|install| install.package.as_str()).collect();
    let seen = PACKAGES.iter().map(|row| row.name).filter(|name| facts.pods_of(name).next().is_some());
    let bare: BTreeSet<&str> =
        expected.keys().map(String::as_str).chain(seen).filter(|name| !installed.contains(name)).collect();
    let of_installs = facts.installs.iter().map(|install| row(facts, &expected, &install.package, Some(install)));
    let mut rows: Vec<Row> =
        of_installs.chain(bare.into_iter().map(|name| row(facts, &expected, name, None))).collect();
    let place = |name: &str| PACKAGES.iter().position(|row| row.name == name).unwrap_or(PACKAGES.len());
    rows.sort_by_key(|row| (row.should_run, place(&row.package), row.package.clone(), row.install.clone()));
    rows
}

fn row(facts: &Facts, expected: &BTreeMap<String, Option<String>>, name: &str, install: Option<&Install>) -> Row {
    let known: Option<&PackageRow> = package(name);
    let category = known.map(|row| row.category);
    let without = if category == Some(Category::ClusterApi) { State::ByManifests } else { State::NotInstalled };
    let state = install.map_or(without, |install| install.state);
    let wanted = expected.get(name).cloned().flatten();
    Row {
        package: name.to_owned(),
        category,
        placement: known.map(placement).unwrap_or_default(),
        should_run: facts.should(name, expected),
        runs: facts.does(name, state),
        wanted_version: wanted.or_else(|| install.and_then(|install| install.wanted.clone())),
        observed_version: install.and_then(|install| install.observed.clone()),
        state,
        message: install.and_then(|install| install.message.clone()),
        install: install.map(|install| format!("{}/{}", install.namespace, install.name)),
    }
}

/// The clusters that have a package: those that have pods of it, and for one without pods those of its category.
pub fn placement(row: &PackageRow) -> Vec<Role> {
    let roles = [Role::Management, Role::Workload, Role::Windows];
    let pods: Vec<&PodRow> = PODS.iter().filter(|pod| is_of(pod, row.name)).collect();
    let has = |role: &Role| match row.category {
        _ if !pods.is_empty() => pods.iter().any(|pod| pod.runs(*role) != Runs::No),
        Category::Management | Category::ClusterApi => *role == Role::Management,
        Category::Core | Category::Standalone => true,
    };
    roles.into_iter().filter(has).collect()
}

/// The clusters that have a package, as people read it.
pub fn placement_words(roles: &[Role]) -> String {
    match roles {
        [] => "-".to_owned(),
        [_, _, _] => "every cluster".to_owned(),
        some => some.iter().map(|role| role.word()).collect::<Vec<_>>().join(", "),
    }
}
