//! Whether the pods of a cluster are those that it should have.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;

use super::{Owner, PODS, PodRow, Role, Runs, pod};

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

/// What is wrong with the pods of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
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
        }
    }
}

/// What is wrong with the pods of a cluster of this role that should have these packages.
pub fn verify(role: Role, packages: &BTreeSet<String>, seen: &[Seen]) -> Vec<Finding> {
    let missing = PODS.iter().filter(|row| is_expected(row, role, packages)).filter_map(|row| complaint(row, seen));
    let misplaced = seen.iter().filter_map(|pod| misplaced(pod, role));
    let findings: BTreeSet<Finding> = missing.chain(misplaced).collect();
    findings.into_iter().collect()
}

fn is_expected(row: &PodRow, role: Role, packages: &BTreeSet<String>) -> bool {
    let has_owner = match row.owner {
        Owner::Kubernetes => true,
        Owner::Package(package) => packages.contains(package),
    };
    has_owner && row.runs(role) != Runs::No
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
        Runs::Yes => return None,
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
