//! Pools of workers, and how far Cluster API is with their machines.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;
use windlass_api::name::{MachineName, ObjectName, PoolName, Uid};
use windlass_api::version::KubernetesVersion;

use super::MachineState;
use crate::digest;
use crate::step::Revision;

/// A pool of workers: a `MachineDeployment` and what it refers to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pool {
    /// Which state of the `MachineDeployment` was seen.
    pub revision: Revision,
    /// How many machines it should have.
    pub replicas: u32,
    /// The version of Kubernetes in its template.
    pub version: KubernetesVersion,
    /// The template of its infrastructure.
    pub infrastructure_template: Template,
    /// The template of its bootstrap configuration.
    pub bootstrap_template: Template,
    /// How far its controller is.
    pub progress: PoolProgress,
    /// Its machines, old and new, by name. They are looked at only while the pool is not at rest.
    pub machines: Vec<PoolMachine>,
    /// When it last moved: something about it was other than the record of the update says. `None` while it is at rest, and
    /// where no record remembers.
    pub moved_at: Option<Timestamp>,
    /// The `MachineDeployment` as it was read, with who owns which field. Only where a release sets fields of it.
    #[serde(skip_serializing_if = "serde_json::Value::is_null")]
    pub live: serde_json::Value,
}

impl Pool {
    /// Whether it has as many machines as it should have, all of them as its template says, and all of them to be relied on.
    pub fn is_at_rest(&self) -> bool {
        let PoolProgress { observed, replicas, up_to_date, available } = self.progress;
        observed && [replicas, up_to_date, available].iter().all(|count| *count == self.replicas)
    }

    /// All that moves while a pool is rolled. As long as it stays the same, nothing does. What machines say about themselves is
    /// not in it: whoever repeats a refusal in other words has not moved.
    pub fn fingerprint(&self) -> String {
        let machine = |machine: &PoolMachine| {
            let PoolMachine { uid, up_to_date, state, leaving, .. } = machine;
            let step = leaving.as_ref().map(|leaving| &leaving.step);
            json!([uid, up_to_date, state.word(), step])
        };
        let machines: Vec<serde_json::Value> = self.machines.iter().map(machine).collect();
        digest::of(&json!([self.replicas, self.infrastructure_template.name, self.progress, machines]))
    }
}

/// A machine of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PoolMachine {
    /// Its name.
    pub name: MachineName,
    /// What tells it from another one of the same name.
    pub uid: Uid,
    /// It is as the template of its pool says.
    pub up_to_date: bool,
    /// When it was created.
    pub created: Timestamp,
    /// How far it is.
    pub state: MachineState,
    /// What Cluster API says is wrong with it, if anything.
    pub failing: Option<Failing>,
    /// How far its removal is, if it is on the way out.
    pub leaving: Option<Leaving>,
}

/// What is wrong with a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failing {
    /// Since when.
    pub since: Timestamp,
    /// What Cluster API says about it.
    pub why: String,
}

/// How far the removal of a machine is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Leaving {
    /// Since when it is on the way out.
    pub since: Timestamp,
    /// The step, in the word of Cluster API: `DrainingNode`.
    pub step: String,
    /// What Cluster API says about it; empty if it says nothing.
    pub why: String,
}

/// A template that a pool refers to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Template {
    /// Its name.
    pub name: ObjectName,
    /// Its `spec.template.spec`; `None` if there is no such object.
    pub spec: Option<serde_json::Value>,
}

/// How far the rollout of a pool is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PoolProgress {
    /// The counts below are about the latest change.
    pub observed: bool,
    /// How many machines there are, old and new.
    pub replicas: u32,
    /// How many of them are as the template says.
    pub up_to_date: u32,
    /// How many can be relied on.
    pub available: u32,
}

/// What the record of an update remembers of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PoolMoved {
    /// Which.
    pub pool: PoolName,
    /// What it was then: [`Pool::fingerprint`].
    pub fingerprint: String,
    /// When it became so.
    pub moved_at: Timestamp,
}
