//! What a release brings into a cluster, in order.

use serde::Serialize;
use serde_json::{Value, json};
use windlass_api::label;
use windlass_api::name::AddonName;

use super::{AddonRelease, PackageRelease, Release, Spelling, distribution_of};

/// How an add-on or a package is brought in. Both are applied before the control plane is rolled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Bringing {
    /// It is one for old and new nodes, and has to be well before the first new machine.
    BeforeControlPlane,
    /// There is one for each distribution, side by side: that of the new one has no pods until there are new nodes, and that
    /// of the old one serves the old nodes until the last of them is gone.
    VersionBound,
}

/// An add-on or a package.
#[derive(Debug, Clone, Copy)]
pub enum Brought<'a> {
    /// An add-on, as objects.
    Addon(&'a AddonName, &'a AddonRelease),
    /// A package.
    Package(&'a PackageRelease),
}

impl Brought<'_> {
    /// How it is brought in. Of what is in a package nothing is known here: it is one for all nodes.
    pub fn bringing(&self) -> Bringing {
        match self {
            Self::Addon(_, addon) => addon.bringing(),
            Self::Package(_) => Bringing::BeforeControlPlane,
        }
    }

    /// The name that people know it by.
    pub fn name(&self) -> &str {
        match self {
            Self::Addon(name, _) => name.as_str(),
            Self::Package(package) => package.package.short_name(),
        }
    }
}

impl AddonRelease {
    /// How it is brought in: an add-on with anything that is bound to the distribution is bound.
    pub fn bringing(&self) -> Bringing {
        if self.objects.iter().any(|object| distribution_of(object).is_some()) {
            Bringing::VersionBound
        } else {
            Bringing::BeforeControlPlane
        }
    }

    /// Its place among the add-ons: what pods need to be admitted, to reach Services, to get an address, then what nodes,
    /// volumes and names of Services need, then all others.
    fn rank(&self) -> usize {
        const SLOTS: [&str; 6] = ["psp", "proxy", "cni", "cloudprovider", "csi", "dns"];
        SLOTS.iter().position(|slot| *slot == self.slot).unwrap_or(SLOTS.len())
    }
}

impl Release {
    /// What it brings into a cluster, in the order of bringing it in: add-ons by what they are for and then by name, packages
    /// as their slots say. Add-ons do not wait for each other; the order is the one of reports and writes.
    pub fn in_order(&self) -> Vec<Brought<'_>> {
        let mut addons: Vec<_> = self.addons.iter().collect();
        addons.sort_by_key(|(name, addon)| (addon.rank(), *name));
        let addons = addons.into_iter().map(|(name, addon)| Brought::Addon(name, addon));
        addons.chain(self.packages.iter().map(Brought::Package)).collect()
    }

    /// The values that each package of the release gets beside its own, on an infrastructure where the images of containers
    /// are only on the disks of machines: new pods of a package run on nodes of the release, and old ones until then. In the
    /// file `tkgs-values.yaml` of its Secret. `None` for a release that has no name which nodes are labelled with.
    pub fn tkgs_values(&self) -> Option<Value> {
        match self.spelling {
            Spelling::Objects => Some(json!({
                "nodeSelector": { (label::RELEASE.name): self.name() },
                "deployment": {
                    "updateStrategy": "RollingUpdate",
                    "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 },
                },
                "daemonset": { "updateStrategy": "OnDelete" },
            })),
            Spelling::Image(_) | Spelling::ConfigMaps(_) => None,
        }
    }
}
