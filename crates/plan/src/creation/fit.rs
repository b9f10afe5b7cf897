//! Whether a cluster fits the class that it is of, as far as both say so.

use std::collections::BTreeSet;
use std::fmt;

use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::topology::{ClusterClass, Variable};

use crate::resolve::cluster::VARIABLE;

/// Why a cluster cannot be of its class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misfit {
    /// It says something that its class does not ask.
    UnknownVariable {
        /// The field.
        field: String,
        /// What it says.
        name: String,
        /// What it could say.
        known: BTreeSet<String>,
    },
    /// It does not say what it must.
    MissingVariable {
        /// What.
        name: String,
    },
    /// etcd would not be safer for the last machine.
    Even {
        /// How many machines its control plane is to have.
        count: u32,
    },
    /// Its class has no such pools.
    UnknownPool {
        /// The pool.
        pool: String,
        /// What it should be of.
        class: String,
        /// What it could be of.
        known: BTreeSet<String>,
    },
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed = |names: &BTreeSet<String>| names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        match self {
            Self::UnknownVariable { field, name, known } => {
                write!(f, "{field}: its class has no variable {name}; it has {}", listed(known))
            }
            Self::MissingVariable { name } => write!(f, "spec.topology.variables: its class needs the variable {name}"),
            Self::Even { count } => write!(
                f,
                "spec.topology.controlPlane.replicas: {count} cannot be: etcd needs an odd number of machines to lose one"
            ),
            Self::UnknownPool { pool, class, known } => {
                let known = listed(known);
                write!(f, "spec.topology.workers: pool {pool} is of {class}, and its class has only {known}")
            }
        }
    }
}

/// The first thing in which a cluster does not fit its class. What its release tells the class is filled in by others.
pub fn misfit(cluster: &Cluster, class: &ClusterClass) -> Option<Misfit> {
    let topology = cluster.spec.topology.as_ref()?;
    let names = class.spec.variables.iter().map(|variable| variable.name.clone()).filter(|name| name != VARIABLE);
    let known: BTreeSet<String> = names.collect();
    let pools = &topology.workers.machine_deployments;
    let overrides = pools.iter().filter_map(|pool| pool.variables.as_ref()).flat_map(|given| &given.overrides);
    let overrides = topology.control_plane.variables.iter().flat_map(|given| &given.overrides).chain(overrides);
    let said = topology.variables.iter().map(|variable| ("spec.topology.variables", variable));
    let mut said = said.chain(overrides.map(|variable| ("an override in spec.topology", variable)));
    // Others may add variables to a class, and are asked by Cluster API alone.
    let closed = class.spec.patches.iter().all(|patch| patch.external.is_none());
    let is_unknown = |(_, variable): &(&str, &Variable)| variable.name != VARIABLE && !known.contains(&variable.name);
    if let Some((field, variable)) = said.find(is_unknown).filter(|_| closed) {
        return Some(Misfit::UnknownVariable { field: field.to_owned(), name: variable.name.clone(), known });
    }
    let needed = class.spec.variables.iter().filter(|variable| variable.required == Some(true));
    let has_default =
        |schema: &windlass_api::kind::topology::VariableSchema| !schema.open_api_v3_schema["default"].is_null();
    let mut needed = needed.filter(|variable| !variable.schema.as_ref().is_some_and(has_default));
    if let Some(missing) = needed.find(|it| it.name != VARIABLE && topology.variable(&it.name).is_none()) {
        return Some(Misfit::MissingVariable { name: missing.name.clone() });
    }
    if let Some(count) = topology.control_plane.replicas.filter(|count| count % 2 == 0) {
        return Some(Misfit::Even { count });
    }
    let known: BTreeSet<String> = class.spec.workers.machine_deployments.iter().map(|it| it.class.clone()).collect();
    let stranger = pools.iter().find(|pool| !known.contains(&pool.class))?;
    Some(Misfit::UnknownPool { pool: stranger.name.clone(), class: stranger.class.clone(), known })
}
