//! The infrastructure provider: what a cluster needs once, and machines, as far as there is something to make them of.

pub(super) mod cluster;
pub(super) mod machine;
mod placement;
pub(super) mod provided;
mod quota;

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use windlass_api::kind::wcp::FailureDomain;

/// How much there is to make machines of. Without limits and quotas there is always enough.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Infrastructure {
    /// Where machines can be: the failure domains of clusters. Three where nothing is said, as where people want to lose one and
    /// keep their quorum; with none at all, nobody is told of any.
    #[serde(default = "usual_zones")]
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

/// What there is where nothing is said.
static USUAL: LazyLock<Infrastructure> = LazyLock::new(Infrastructure::default);

fn usual_zones() -> Vec<Zone> {
    ["zone-1", "zone-2", "zone-3"].map(|name| Zone { name: name.to_owned(), machines: None }).into()
}

impl Default for Infrastructure {
    /// Three zones, each with any amount of room.
    fn default() -> Self {
        Self { zones: usual_zones(), machines_per_namespace: None, cpus_per_namespace: None }
    }
}

impl Infrastructure {
    /// What there is where nothing is said.
    pub(crate) fn usual() -> &'static Self {
        &USUAL
    }

    /// It is as where nothing is said.
    pub fn is_usual(&self) -> bool {
        self == Self::usual()
    }

    /// There is always enough, wherever a machine goes.
    pub fn is_unlimited(&self) -> bool {
        let quota = self.machines_per_namespace.or(self.cpus_per_namespace);
        quota.is_none() && self.zones.iter().all(|zone| zone.machines.is_none())
    }

    /// The zones as clusters are told of them. Machines of a control plane may be in each.
    fn failure_domains(&self) -> Vec<FailureDomain> {
        let domain = |zone: &Zone| FailureDomain {
            name: zone.name.clone(),
            control_plane: Some(true),
            ..FailureDomain::default()
        };
        self.zones.iter().map(domain).collect()
    }
}
