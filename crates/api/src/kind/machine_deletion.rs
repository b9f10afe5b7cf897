//! How a Machine of Cluster API goes: how long each step may take, and since when it is at which.

use serde::{Deserialize, Serialize};

/// How long a machine that goes may take for each of its steps. Without a number, and with 0, it takes as long as it takes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineDeletion {
    /// For its pods to leave. Then it goes with those that are left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_drain_timeout_seconds: Option<u32>,
    /// For its volumes to be detached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_volume_detach_timeout_seconds: Option<u32>,
    /// For its node to be deleted. Ten seconds where nothing is said: then the node is left behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_deletion_timeout_seconds: Option<u32>,
}

/// Since when a machine goes through which step of its removal, as RFC 3339.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineDeletionStatus {
    /// Somebody holds it before its pods are evicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_for_pre_drain_hook_start_time: Option<String>,
    /// Its pods are evicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_drain_start_time: Option<String>,
    /// Its volumes are detached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_for_node_volume_detach_start_time: Option<String>,
    /// Somebody holds it before it is switched off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_for_pre_terminate_hook_start_time: Option<String>,
}
