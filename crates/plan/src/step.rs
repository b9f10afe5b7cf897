//! One write that may be made now, and what must still be true when it is made.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_api::name::{ClusterSecret, Uid};

use crate::planner::role;

/// A stage of an update. Stages are planned apart from each other; gates decide which may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Stage {
    /// Add-ons and packages in the workload cluster.
    Packages,
    /// The machines of the control plane, and what the cluster needs once.
    ControlPlane,
    /// The pools of workers.
    Workers,
}

impl Stage {
    /// All of them, in order.
    pub const ALL: [Self; 3] = [Self::Packages, Self::ControlPlane, Self::Workers];

    /// The word for it in status, CLI and Events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Packages => "packages",
            Self::ControlPlane => "controlPlane",
            Self::Workers => "workers",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Which API a write goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Place {
    /// The management cluster.
    Management,
    /// The workload cluster.
    Workload,
}

/// One state of one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Revision {
    /// Which object.
    pub uid: Uid,
    /// Which state of it.
    pub resource_version: String,
}

/// One write.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// The stage that it belongs to.
    pub stage: Stage,
    /// What the object is to the cluster, with the update left out: `control-plane/0/Machine`, `addon/kube-proxy/DaemonSet`.
    /// Envelopes name objects by it.
    pub role: String,
    /// Which API.
    pub place: Place,
    /// What is written.
    pub action: Action,
    /// Why, in a sentence for people.
    pub why: String,
}

impl Step {
    /// Whether it makes the Job that replaces the machines of the control plane.
    pub fn begins_control_plane(&self) -> bool {
        self.role == role::JOB && matches!(self.action, Action::Create { .. })
    }

    /// Whether Cluster API replaces machines by the object that is written.
    pub fn tells_cluster_api(&self) -> bool {
        let is_read = matches!(self.action.kind(), "KubeadmControlPlane" | "MachineDeployment");
        is_read && self.place == Place::Management && matches!(self.action, Action::Apply { .. })
    }
}

/// What is written. Whoever executes it makes no choices.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Action {
    /// POST. Where there is one of that name already, it is taken over only if it has the same controlling owner (by uid) and
    /// carries the same update id; anything else is an error.
    Create {
        /// The whole object, with `apiVersion`, `kind`, `metadata.name`, and `metadata.namespace` where it has one.
        object: Value,
    },
    /// Server-side apply, forced, of exactly these fields.
    Apply {
        /// The fields, with `apiVersion`, `kind`, `metadata.name`, and `metadata.namespace` where it has one.
        object: Value,
        /// The state that the decision was made on; it must still be so. `None` where any state will do.
        expect: Option<Revision>,
    },
    /// Makes a certificate or key of the cluster where there is none, and never where there is one. What is in it is made by
    /// whoever executes this: no Secret's data is ever in a plan.
    CreateSecret {
        /// Which.
        secret: ClusterSecret,
        /// Its metadata: name, namespace, labels, owner.
        metadata: Value,
    },
    /// Deletes this object in this state.
    Delete {
        /// The version of its kind.
        api_version: String,
        /// Its kind.
        kind: String,
        /// Its namespace, where it has one.
        namespace: Option<String>,
        /// Its name.
        name: String,
        /// The state that the decision was made on.
        expect: Revision,
    },
}

impl Action {
    /// `create`, `apply` or `delete`.
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Create { .. } | Self::CreateSecret { .. } => "create",
            Self::Apply { .. } => "apply",
            Self::Delete { .. } => "delete",
        }
    }

    /// The kind of the object that is written.
    pub fn kind(&self) -> &str {
        match self {
            Self::Create { object } | Self::Apply { object, .. } => object["kind"].as_str().unwrap_or_default(),
            Self::CreateSecret { .. } => "Secret",
            Self::Delete { kind, .. } => kind,
        }
    }

    /// The name of the object that is written.
    pub fn name(&self) -> &str {
        match self {
            Self::Create { object } | Self::Apply { object, .. } => {
                object["metadata"]["name"].as_str().unwrap_or_default()
            }
            Self::CreateSecret { metadata, .. } => metadata["name"].as_str().unwrap_or_default(),
            Self::Delete { name, .. } => name,
        }
    }
}
