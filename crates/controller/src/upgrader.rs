//! The program that replaces the machines of a control plane, one at a time. It runs in the pods of the Job `update-<id>`, and
//! as `windlass control-plane upgrade`.
//!
//! ```text
//! begin     read the cluster and its machines; refuse what must not be touched   writes nothing
//! prepare   certificates, kubeadm's and the kubelets' configuration              each as it should be, or made so
//! mark      each machine carries the id of the update and the base of its name
//! replace   settled? create, wait for health, part from etcd, delete, wait        one machine after the other
//! finish    settled? remove the marks
//! ```
//!
//! **Invariant**: nothing is remembered. Each run derives where it is from what it observes, under names that follow from the
//! id, so that a run that was killed after any write is carried on by the next one, and no machine is made twice.
//!
//! **Invariant**: a machine is deleted only while another one that takes its place is known to be healthy; a machine that has
//! no such other is never deleted, whatever state it is in.

pub mod arguments;
mod attempt;
mod etcd;
mod health;
mod mark;
mod prepare;
mod remove;
mod replace;
mod replacement;
mod row;
mod settle;
mod wait;
mod write;

mod error;

use std::fmt;
use std::sync::Arc;

use kube::Client;
use windlass_api::version::KubernetesVersion;
use windlass_runtime::clock::Clock;

use crate::access::Workloads;
pub use arguments::{Arguments, Command};
pub use error::Error;

use attempt::Attempt;

/// What the program is given.
#[derive(Clone)]
pub struct UpgraderAccess {
    /// The management cluster.
    pub client: Client,
    /// The way to the workload cluster.
    pub workloads: Arc<dyn Workloads>,
    /// The time.
    pub clock: Clock,
}

/// What a run has done. Its text is what the pod says last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// How many machines this run has replaced. Earlier runs of the same update may have replaced others.
    pub replaced: usize,
    /// The version that all machines of the control plane have now.
    pub version: KubernetesVersion,
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { replaced, version } = self;
        let plural = if *replaced == 1 { "" } else { "s" };
        write!(f, "the control plane is at {version}; this run replaced {replaced} machine{plural}")
    }
}

/// Replaces every machine of the control plane that this update has not replaced yet.
pub async fn run(access: &UpgraderAccess, arguments: &Arguments) -> Result<Done, Error> {
    let (attempt, machines) = Attempt::begin(access, arguments).await?;
    let id = arguments.upgrade_id;
    let places = row::to_replace(&machines, id)?;
    let done = Done { replaced: places.len(), version: arguments.kubernetes_version.clone() };
    if places.is_empty() && !machines.iter().any(|machine| mark::carries(machine, id)) {
        return Ok(done);
    }

    prepare::run(&attempt).await?;
    mark::set(&attempt, &places).await?;
    for place in &places {
        replace::one(&attempt, place).await?;
    }
    let machines = settle::control_plane(&attempt).await?;
    mark::remove(&attempt, machines).await?;
    Ok(done)
}
