//! The three sorts of clusters that can be changed here: how each is asked, and what runs for it.
//!
//! What differs between them is decided here, in [`settle`](crate::settle) (how a cluster says how far it is) and in `ask` (what is
//! written to ask it for something). All else is the same for all of them.

use kube::api::DynamicObject;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::name::NamespacedName;
use windlass_plan::resolve::hold::HoldBy;
use windlass_sim::world::World;

use crate::settle;

/// The way in which an update reaches the machines of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drive {
    /// A `TanzuKubernetesCluster`: Windlass replaces its machines.
    Machines,
    /// A Cluster of a class: Windlass brings its packages, and holds its machines in this way until they are in.
    Topology(HoldBy),
    /// A classic cluster, whose release is a label: Windlass brings its objects to that, and Cluster API rolls its machines.
    Label,
}

impl Drive {
    /// That of a cluster in a World; one that is not there is taken for a `TanzuKubernetesCluster`.
    pub fn of(world: &World, cluster: &NamespacedName, hold_by: HoldBy) -> Self {
        let (namespace, name) = (cluster.namespace.as_str(), cluster.name.as_str());
        if settle::read::<TanzuKubernetesCluster>(world, namespace, name).is_some() {
            return Self::Machines;
        }
        match settle::read::<Cluster>(world, namespace, name).map(|cluster| cluster.spec.topology) {
            Some(Some(_)) => Self::Topology(hold_by),
            Some(None) => Self::Label,
            None => Self::Machines,
        }
    }

    /// Whether classic clusters are looked after.
    pub fn is_label(self) -> bool {
        self == Self::Label
    }

    /// How clusters of a class are held, where they are looked after.
    pub fn classes(self) -> Option<HoldBy> {
        match self {
            Self::Machines | Self::Label => None,
            Self::Topology(hold_by) => Some(hold_by),
        }
    }

    /// The kind of object that people ask for such a cluster with, as `apiVersion` and `kind`.
    pub fn kind(self) -> (&'static str, &'static str) {
        match self {
            Self::Machines => ("run.tanzu.vmware.com/v1alpha1", "TanzuKubernetesCluster"),
            Self::Topology(_) | Self::Label => ("cluster.x-k8s.io/v1beta2", "Cluster"),
        }
    }
}

/// A cluster as people write it.
#[derive(Debug, Clone, PartialEq)]
pub enum Manifest {
    /// A `TanzuKubernetesCluster`.
    Machines(Box<TanzuKubernetesCluster>),
    /// A Cluster of a class.
    Topology(Box<Cluster>),
    /// The objects of a classic cluster.
    Label(Vec<DynamicObject>),
}

impl From<&TanzuKubernetesCluster> for Manifest {
    fn from(cluster: &TanzuKubernetesCluster) -> Self {
        Self::Machines(Box::new(cluster.clone()))
    }
}

impl From<&Cluster> for Manifest {
    fn from(cluster: &Cluster) -> Self {
        Self::Topology(Box::new(cluster.clone()))
    }
}

impl Manifest {
    /// The way in which it is looked after.
    pub fn drive(&self, hold_by: HoldBy) -> Drive {
        match self {
            Self::Machines(_) => Drive::Machines,
            Self::Topology(_) => Drive::Topology(hold_by),
            Self::Label(_) => Drive::Label,
        }
    }
}
