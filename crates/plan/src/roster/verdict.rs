//! Whether the packages and the pods of a cluster are those that it should have.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;

use super::{Category, Facts, Owner, PODS, PodRow, Role, Row, Runs, Should, State, pod, rows};

/// A pod that was seen.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen {
    /// Where it is.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Whether it is ready.
    pub ready: bool,
    /// Whether its node is one of the control plane.
    pub control_plane: bool,
}

/// What is wrong with the packages and the pods of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", tag = "what")]
pub enum Finding {
    /// Pods of a sort should be there, and none is.
    #[serde(rename_all = "camelCase")]
    Missing {
        /// Where they should be.
        namespace: String,
        /// What their names begin with.
        name: String,
        /// The package that brings them in; nothing for Kubernetes itself.
        package: Option<String>,
    },
    /// Pods of a sort are there, and none is ready.
    #[serde(rename_all = "camelCase")]
    NotReady {
        /// Where they are.
        namespace: String,
        /// What their names begin with.
        name: String,
        /// How many there are.
        count: usize,
    },
    /// A pod is where none of its sort may be.
    #[serde(rename_all = "camelCase")]
    Misplaced {
        /// Where it is.
        namespace: String,
        /// Its name.
        pod: String,
        /// Where its sort belongs.
        belongs: String,
    },
    /// A package should be there, and nobody asked for it.
    #[serde(rename_all = "camelCase")]
    PackageMissing {
        /// Its short name.
        package: String,
        /// The meta package that brings it in.
        part_of: Option<String>,
    },
    /// A package could not be brought in, or not be taken out.
    #[serde(rename_all = "camelCase")]
    PackageFailed {
        /// Its short name.
        package: String,
        /// Its `PackageInstall`, with the namespace.
        install: String,
        /// What kapp-controller says.
        said: String,
    },
    /// A package is there that must not be.
    #[serde(rename_all = "camelCase")]
    PackageMisplaced {
        /// Its short name.
        package: String,
        /// Its `PackageInstall`, with the namespace.
        install: String,
        /// Why it must not be.
        why: String,
    },
}

impl Finding {
    /// The object that it is about, as kubectl names it.
    pub fn object(&self) -> String {
        match self {
            Self::Missing { namespace, name, .. } | Self::NotReady { namespace, name, .. } => {
                format!("pod/{name} -n {namespace}")
            }
            Self::Misplaced { namespace, pod, .. } => format!("pod/{pod} -n {namespace}"),
            Self::PackageMissing { package, .. } => format!("package {package}"),
            Self::PackageFailed { install, .. } | Self::PackageMisplaced { install, .. } => {
                let (namespace, name) = install.split_once('/').unwrap_or(("", install));
                format!("packageinstall/{name} -n {namespace}")
            }
        }
    }

    /// What somebody can do about it. `cluster` is the one that it was found in; nothing for the management cluster.
    pub fn way_out(&self, cluster: Option<&str>) -> String {
        let packages = cluster.map_or("windlass packages".to_owned(), |name| format!("windlass packages {name}"));
        let inside = if cluster.is_some() { " (with the kubeconfig of the cluster)" } else { "" };
        match self {
            Self::Missing { package: Some(_), .. } => format!("{packages} says how its package is"),
            Self::Missing { namespace, package: None, .. } => {
                format!("kubectl get pods -n {namespace}{inside}, and the logs of the kubelets of its control plane")
            }
            Self::NotReady { namespace, .. } => format!("kubectl describe pods -n {namespace}{inside}"),
            Self::Misplaced { namespace, pod, .. } => {
                format!("remove what runs it; kubectl describe pod {pod} -n {namespace}{inside} says what that is")
            }
            Self::PackageMissing { part_of: Some(meta), .. } => {
                format!("kubectl describe packageinstall -n tkg-system {meta} says what keeps it from bringing this in")
            }
            Self::PackageMissing { part_of: None, .. } => match cluster {
                Some(cluster) => format!("kubectl describe clusterbootstrap {cluster} says what it waits for"),
                None => "install it".to_owned(),
            },
            Self::PackageFailed { .. } => format!("kubectl describe {}{inside}", self.object()),
            Self::PackageMisplaced { .. } => format!("kubectl delete {}{inside}", self.object()),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { namespace, name, package: Some(package) } => {
                write!(f, "{namespace}/{name} is missing: package {package} brings it in")
            }
            Self::Missing { namespace, name, package: None } => {
                write!(f, "{namespace}/{name} is missing: every cluster has it")
            }
            Self::NotReady { namespace, name, count: 1 } => write!(f, "{namespace}/{name}: its pod is not ready"),
            Self::NotReady { namespace, name, count } => {
                write!(f, "{namespace}/{name}: none of its {count} pods is ready")
            }
            Self::Misplaced { namespace, pod, belongs } => {
                write!(f, "{namespace}/{pod} must not be here: it belongs {belongs}")
            }
            Self::PackageMissing { package, part_of: Some(meta) } => {
                write!(f, "package {package} is missing: {meta} brings it in")
            }
            Self::PackageMissing { package, part_of: None } => write!(f, "package {package} is missing"),
            Self::PackageFailed { package, said, .. } => write!(f, "package {package} failed: {said}"),
            Self::PackageMisplaced { package, why, .. } => write!(f, "package {package} must not be here: {why}"),
        }
    }
}

/// Everything that is wrong with the packages and the pods of a cluster.
pub fn findings(facts: &Facts) -> Vec<Finding> {
    let expected = facts.expected().into_keys().collect();
    let packages = rows(facts).into_iter().filter_map(|row| package_finding(facts, row));
    packages.chain(verify(facts.role, &expected, &facts.pods)).collect()
}

fn package_finding(facts: &Facts, row: Row) -> Option<Finding> {
    let Row { package, category, should_run, state, message, install, .. } = row;
    match (should_run, install) {
        (Should::No, Some(install)) => {
            let why = misplaced_package(category, facts.role);
            Some(Finding::PackageMisplaced { package, install, why })
        }
        (_, Some(install)) if matches!(state, State::Failed | State::DeleteFailed) => {
            let said = message.unwrap_or_else(|| "kapp-controller does not say why".to_owned());
            Some(Finding::PackageFailed { package, install, said })
        }
        (Should::Yes, None) => {
            let is_listed = facts.wanted.iter().flatten().any(|wanted| wanted.package == package);
            // Others may be there without a PackageInstall; whether they are, their pods say.
            if !is_listed && category != Some(Category::Management) {
                return None;
            }
            let part_of = super::package(&package).and_then(|row| row.part_of).map(str::to_owned);
            Some(Finding::PackageMissing { package, part_of })
        }
        (Should::Yes | Should::No | Should::Open, _) => None,
    }
}

fn misplaced_package(category: Option<Category>, role: Role) -> String {
    match (category, role) {
        (Some(Category::Core), _) => "the ClusterBootstrap does not list it".to_owned(),
        (_, Role::Management) => "it is for another infrastructure".to_owned(),
        (_, Role::Workload | Role::Windows) => "it belongs to management clusters".to_owned(),
    }
}

/// The pods of a sort in a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodCount {
    /// Where they are.
    pub namespace: &'static str,
    /// What their names begin with.
    pub name: &'static str,
    /// The package that brings them in; nothing for Kubernetes itself.
    pub package: Option<&'static str>,
    /// Whether they should be there.
    pub should_run: Runs,
    /// How many there are.
    pub count: usize,
    /// How many of them are ready.
    pub ready: usize,
    /// Why the table differs from what was written elsewhere.
    pub note: Option<&'static str>,
}

/// The pods that a cluster should have or has, of those that the table knows.
pub fn pods(facts: &Facts) -> Vec<PodCount> {
    let expected: BTreeSet<String> = facts.expected().into_keys().collect();
    let count = |row: &'static PodRow| {
        let these = || facts.pods.iter().filter(|seen| pod(&seen.namespace, &seen.name) == Some(row));
        let should_run = if has_owner(row, &expected) { row.runs(facts.role) } else { Runs::No };
        PodCount {
            namespace: row.namespace,
            name: row.name,
            package: match row.owner {
                Owner::Kubernetes => None,
                Owner::Package(package) => Some(package),
            },
            should_run,
            count: these().count(),
            ready: these().filter(|seen| seen.ready).count(),
            note: row.note,
        }
    };
    PODS.iter().map(count).filter(|row| row.count > 0 || row.should_run != Runs::No).collect()
}

/// What is wrong with the pods of a cluster of this role that should have these packages.
pub fn verify(role: Role, packages: &BTreeSet<String>, seen: &[Seen]) -> Vec<Finding> {
    let missing = PODS.iter().filter(|row| is_expected(row, role, packages)).filter_map(|row| complaint(row, seen));
    let misplaced = seen.iter().filter_map(|pod| misplaced(pod, role));
    let findings: BTreeSet<Finding> = missing.chain(misplaced).collect();
    findings.into_iter().collect()
}

fn is_expected(row: &PodRow, role: Role, packages: &BTreeSet<String>) -> bool {
    has_owner(row, packages) && matches!(row.runs(role), Runs::Yes | Runs::ControlPlane)
}

fn has_owner(row: &PodRow, packages: &BTreeSet<String>) -> bool {
    match row.owner {
        Owner::Kubernetes => true,
        Owner::Package(package) => packages.contains(package),
    }
}

fn complaint(row: &PodRow, seen: &[Seen]) -> Option<Finding> {
    let is_one = |seen: &&Seen| pod(&seen.namespace, &seen.name) == Some(row);
    let these: Vec<&Seen> = seen.iter().filter(is_one).collect();
    let (namespace, name) = (row.namespace.to_owned(), row.name.to_owned());
    if these.is_empty() {
        let package = match row.owner {
            Owner::Kubernetes => None,
            Owner::Package(package) => Some(package.to_owned()),
        };
        return Some(Finding::Missing { namespace, name, package });
    }
    let is_ready = these.iter().any(|seen| seen.ready);
    (!is_ready).then_some(Finding::NotReady { namespace, name, count: these.len() })
}

fn misplaced(seen: &Seen, role: Role) -> Option<Finding> {
    let row = pod(&seen.namespace, &seen.name)?;
    let belongs = match row.runs(role) {
        Runs::Yes | Runs::Sometimes => return None,
        Runs::ControlPlane if seen.control_plane => return None,
        Runs::ControlPlane => "to machines of the control plane".to_owned(),
        Runs::No => format!("to {} clusters", belongs(row)),
    };
    Some(Finding::Misplaced { namespace: seen.namespace.clone(), pod: seen.name.clone(), belongs })
}

/// The roles that have pods of a sort.
fn belongs(row: &PodRow) -> String {
    let roles = [Role::Management, Role::Workload, Role::Windows];
    let words: Vec<&str> = roles.into_iter().filter(|role| row.runs(*role) != Runs::No).map(Role::word).collect();
    words.join(" and ")
}
