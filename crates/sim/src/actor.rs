//! Who acts: what a change is put down to in a timeline.
//!
//! A change in a store does not say who made it. Whoever acts says so for as long as it does: [`acting`] is put around a
//! reconciliation or a request, and the recorder asks [`current`] when a change is committed, which is inside of it. What
//! nobody says this of was done by a person, or by a program of the workload cluster itself.
//!
//! There are two answers to the question who it was. An [`Actor`] is a controller, or somebody who is like one: what a *change*
//! is put down to. A [`Caller`] is a process with a client of its own: what is known of a *request*, which may go wrong, be
//! counted, or be the last one before a crash. All simulators of Cluster API are one caller and ten actors.

use std::fmt;

use serde::{Deserialize, Serialize};
use tokio::task::futures::TaskLocalFuture;

tokio::task_local! {
    static CURRENT: Actor;
}

/// Who acts: a controller, or somebody who is like one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Actor {
    /// Somebody outside: a person, or whatever works for one.
    Person,
    /// The controllers of Windlass.
    Windlass,
    /// The program in the pods of an update's Job.
    Upgrader,
    /// Who looks after Clusters.
    Cluster,
    /// Who makes clusters of topologies.
    Topology,
    /// Who rolls control planes.
    KubeadmControlPlane,
    /// Who rolls pools.
    MachineDeployment,
    /// Who makes Machines for pools.
    MachineSet,
    /// Who looks after Machines.
    Machine,
    /// Who replaces Machines that are not well.
    MachineHealthCheck,
    /// Who makes what machines boot from.
    Bootstrap,
    /// Who makes virtual machines.
    Infrastructure,
    /// Who runs the pods of Jobs.
    Job,
    /// Who installs packages.
    Packages,
    /// kubeadm, kubelets, schedulers and controllers of a workload cluster.
    Kubernetes,
    /// etcd.
    Etcd,
    /// What was made to go wrong.
    Fault,
}

impl Actor {
    /// The word for it, as it stands in timelines.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Person => "somebody",
            Self::Windlass => "windlass",
            Self::Upgrader => "upgrader",
            Self::Cluster => "cluster",
            Self::Topology => "topology",
            Self::KubeadmControlPlane => "kubeadm-control-plane",
            Self::MachineDeployment => "machine-deployment",
            Self::MachineSet => "machine-set",
            Self::Machine => "machine",
            Self::MachineHealthCheck => "machine-health-check",
            Self::Bootstrap => "bootstrap",
            Self::Infrastructure => "infrastructure",
            Self::Job => "job",
            Self::Packages => "packages",
            Self::Kubernetes => "kubernetes",
            Self::Etcd => "etcd",
            Self::Fault => "fault",
        }
    }

    /// It removes machines, and what is on them, because it was told to replace them: neither a person nor what looks after
    /// pods.
    pub(crate) fn empties_machines(self) -> bool {
        match self {
            Self::Windlass
            | Self::Upgrader
            | Self::KubeadmControlPlane
            | Self::MachineDeployment
            | Self::MachineSet
            | Self::Machine => true,
            Self::Person
            | Self::Cluster
            | Self::Topology
            | Self::MachineHealthCheck
            | Self::Bootstrap
            | Self::Infrastructure
            | Self::Job
            | Self::Packages
            | Self::Kubernetes
            | Self::Etcd
            | Self::Fault => false,
        }
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Who asks an API: a process, known by its client. Scenarios call it `actor`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Caller {
    /// The controllers of Windlass.
    Controllers,
    /// The program in the pods of an update's Job.
    Upgrader,
    /// The simulators of the management side.
    Simulators,
    /// A person, or another program of theirs.
    User,
}

impl Caller {
    /// The word for it in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Controllers => "controllers",
            Self::Upgrader => "upgrader",
            Self::Simulators => "simulators",
            Self::User => "user",
        }
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// All that is written while `deed` is under way is put down to the actor.
pub fn acting<F: Future>(actor: Actor, deed: F) -> TaskLocalFuture<Actor, F> {
    CURRENT.scope(actor, deed)
}

/// The same for what does not wait.
pub fn acting_now<T>(actor: Actor, deed: impl FnOnce() -> T) -> T {
    CURRENT.sync_scope(actor, deed)
}

/// Who acts, if that was said.
pub(crate) fn current() -> Option<Actor> {
    CURRENT.try_with(|actor| *actor).ok()
}

#[cfg(test)]
mod tests {
    use super::{Actor, acting_now, current};

    #[test]
    fn the_innermost_actor_counts_and_only_for_as_long_as_it_acts() {
        assert_eq!(current(), None);
        acting_now(Actor::Windlass, || {
            acting_now(Actor::Machine, || assert_eq!(current(), Some(Actor::Machine)));
            assert_eq!(current(), Some(Actor::Windlass));
        });
        assert_eq!(current(), None);
    }
}
