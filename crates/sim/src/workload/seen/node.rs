//! A node: what it has, what it says of itself, and what keeps pods away from it.

use jiff::Timestamp;
use serde::Deserialize;
use windlass_apiserver::quantity::Quantity;

use super::{Condition, Meta, Truth, find};

#[derive(Debug, Deserialize)]
pub(in crate::workload) struct Node {
    pub(in crate::workload) metadata: Meta,
    #[serde(default)]
    pub(in crate::workload) spec: NodeSpec,
    #[serde(default)]
    status: NodeStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(in crate::workload) struct NodeSpec {
    #[serde(rename = "providerID")]
    pub(in crate::workload) provider_id: String,
    pub(in crate::workload) unschedulable: bool,
    pub(in crate::workload) taints: Vec<Taint>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeStatus {
    conditions: Vec<Condition>,
    addresses: Vec<Address>,
    node_info: NodeInfo,
    allocatable: Room,
    images: Vec<Image>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Image {
    names: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Address {
    #[serde(rename = "type")]
    type_: Box<str>,
    address: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeInfo {
    kubelet_version: String,
}

impl Node {
    /// What the kubelet says, or is said of it once it is silent; nothing where nobody has said anything yet.
    pub(in crate::workload) fn heard(&self) -> Option<Truth> {
        find(&self.status.conditions, "Ready").map(|condition| condition.status)
    }

    /// Since when that is so.
    pub(in crate::workload) fn heard_at(&self) -> Option<Timestamp> {
        find(&self.status.conditions, "Ready")?.last_transition_time
    }

    pub(in crate::workload) fn kubelet(&self) -> &str {
        &self.status.node_info.kubelet_version
    }

    pub(in crate::workload) fn address(&self) -> String {
        let internal = self.status.addresses.iter().find(|address| &*address.type_ == "InternalIP");
        internal.map(|address| address.address.clone()).unwrap_or_default()
    }

    /// The images that it says are on its disk.
    pub(in crate::workload) fn images(&self) -> Vec<String> {
        self.status.images.iter().flat_map(|image| image.names.iter().cloned()).collect()
    }

    /// What pods may ask for in all.
    pub(in crate::workload) fn allocatable(&self) -> Room {
        self.status.allocatable
    }
}

/// An amount of everything that the scheduler counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(from = "Written")]
pub(in crate::workload) struct Room {
    pub(in crate::workload) cpu_millis: i64,
    pub(in crate::workload) memory_bytes: i64,
    pub(in crate::workload) pods: i64,
}

impl Room {
    pub(in crate::workload) const NONE: Self = Self { cpu_millis: 0, memory_bytes: 0, pods: 0 };

    pub(in crate::workload) fn plus(self, other: Self) -> Self {
        Self {
            cpu_millis: self.cpu_millis.saturating_add(other.cpu_millis),
            memory_bytes: self.memory_bytes.saturating_add(other.memory_bytes),
            pods: self.pods.saturating_add(other.pods),
        }
    }

    pub(in crate::workload) fn minus(self, other: Self) -> Self {
        Self {
            cpu_millis: self.cpu_millis.saturating_sub(other.cpu_millis),
            memory_bytes: self.memory_bytes.saturating_sub(other.memory_bytes),
            pods: self.pods.saturating_sub(other.pods),
        }
    }

    /// The larger amount of each.
    pub(in crate::workload) fn max(self, other: Self) -> Self {
        Self {
            cpu_millis: self.cpu_millis.max(other.cpu_millis),
            memory_bytes: self.memory_bytes.max(other.memory_bytes),
            pods: self.pods.max(other.pods),
        }
    }
}

impl Default for Room {
    /// A node that does not say how much it has takes everything.
    fn default() -> Self {
        Self { cpu_millis: i64::MAX, memory_bytes: i64::MAX, pods: i64::MAX }
    }
}

/// As a node has it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Written {
    cpu: Option<Box<str>>,
    memory: Option<Box<str>>,
    pods: Option<Box<str>>,
}

impl From<Written> for Room {
    fn from(written: Written) -> Self {
        let read = |text: &Option<Box<str>>| text.as_deref().and_then(|text| Quantity::parse(text).ok());
        Self {
            cpu_millis: read(&written.cpu).map_or(i64::MAX, Quantity::millis),
            memory_bytes: read(&written.memory).map_or(i64::MAX, Quantity::units),
            pods: read(&written.pods).map_or(i64::MAX, Quantity::units),
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(in crate::workload) struct Taint {
    pub(in crate::workload) key: Box<str>,
    pub(in crate::workload) value: Box<str>,
    pub(in crate::workload) effect: Box<str>,
    pub(in crate::workload) time_added: Option<Timestamp>,
}

impl Taint {
    pub(in crate::workload) const NO_SCHEDULE: &str = "NoSchedule";
    pub(in crate::workload) const NO_EXECUTE: &str = "NoExecute";
    pub(in crate::workload) const PREFER_NO_SCHEDULE: &str = "PreferNoSchedule";

    pub(in crate::workload) fn new(key: &str, effect: &str) -> Self {
        Self { key: key.into(), value: Box::default(), effect: effect.into(), time_added: None }
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(in crate::workload) struct Toleration {
    pub(in crate::workload) key: Box<str>,
    pub(in crate::workload) operator: Box<str>,
    pub(in crate::workload) value: Box<str>,
    pub(in crate::workload) effect: Box<str>,
    #[serde(rename = "tolerationSeconds")]
    pub(in crate::workload) seconds: Option<i64>,
}

impl Toleration {
    /// One for a taint of any value.
    pub(in crate::workload) fn of(key: &str, effect: &str) -> Self {
        Self { key: key.into(), operator: "Exists".into(), effect: effect.into(), ..Self::default() }
    }

    pub(in crate::workload) fn tolerates(&self, taint: &Taint) -> bool {
        let effect = self.effect.is_empty() || self.effect == taint.effect;
        let key = self.key == taint.key || (self.key.is_empty() && &*self.operator == "Exists");
        effect && key && (&*self.operator == "Exists" || self.value == taint.value)
    }
}
