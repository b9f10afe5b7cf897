//! The infrastructure provider: what a cluster needs once, and machines, as far as there is something to make them of.

pub(super) mod cluster;
pub(super) mod machine;
mod placement;

use serde::{Deserialize, Serialize};

/// How much there is to make machines of. Without zones and quotas there is always enough.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Infrastructure {
    /// Where machines can be: the failure domains of clusters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<Zone>,
    /// How many machines a namespace may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machines_per_namespace: Option<u64>,
    /// How many processors the machines of a namespace may have, by their classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus_per_namespace: Option<u64>,
}

/// A place for machines that fails by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Zone {
    /// Its name.
    pub name: String,
    /// How many machines fit; any number without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machines: Option<u64>,
}

impl Infrastructure {
    /// There is always enough, and no difference where.
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }
}
