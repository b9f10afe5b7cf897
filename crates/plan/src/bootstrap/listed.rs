//! The packages of a `ClusterBootstrap`, one by one, in the order in which they are brought in.

use windlass_api::kind::release::{BootstrapPackage, BootstrapPackages, ValuesFrom};
use windlass_api::name::{ClusterName, ObjectName, PackageChild, PackageName, PackagePart};

use super::Blocked;
use crate::release::PackageSlot;

/// A package that a cluster should have.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// What it is for.
    pub slot: PackageSlot,
    /// Which package, in which version.
    pub package: PackageName,
    /// Where its values come from.
    pub values: Option<ValuesFrom>,
}

impl Listed {
    /// What people call it.
    pub fn short(&self) -> &str {
        self.package.ref_name.short()
    }

    /// The version, as constraints and statuses write it.
    pub fn version(&self) -> String {
        self.package.version.bare().to_string()
    }

    /// The name of an object that the cluster has for it.
    pub fn child(&self, cluster: &ClusterName, part: PackagePart) -> ObjectName {
        PackageChild { cluster, package: &self.package.ref_name, part }.name()
    }
}

/// The packages of a cluster, in order: what installs the others, what connects pods, nodes and volumes, then all others.
pub fn listed(packages: &BootstrapPackages) -> Result<Vec<Listed>, Blocked> {
    slots(packages).into_iter().map(read).collect()
}

/// The parts of a `ClusterBootstrap`, in order.
pub(super) fn slots(packages: &BootstrapPackages) -> Vec<(PackageSlot, &BootstrapPackage)> {
    let BootstrapPackages { paused: _, cni, csi, cpi, kapp, additional_packages } = packages;
    let core = [(PackageSlot::Kapp, kapp), (PackageSlot::Cni, cni), (PackageSlot::Cpi, cpi), (PackageSlot::Csi, csi)];
    let core = core.into_iter().filter_map(|(slot, package)| Some((slot, package.as_ref()?)));
    let additional = additional_packages.iter().enumerate();
    core.chain(additional.map(|(position, package)| (PackageSlot::Additional { position }, package))).collect()
}

fn read((slot, package): (PackageSlot, &BootstrapPackage)) -> Result<Listed, Blocked> {
    let wrong = |why: String| Blocked::Unreadable { field: format!("{}.refName", slot.field()), why };
    let name: PackageName = package.ref_name.parse().map_err(|error| wrong(format!("{error}")))?;
    Ok(Listed { slot, package: name, values: package.values_from.clone() })
}

/// What people call a package, by its whole name: all up to the first dot.
pub(super) fn short(ref_name: &str) -> &str {
    ref_name.split('.').next().unwrap_or_default()
}

/// The name that all versions of a package share, where its whole name can be read; otherwise the whole name.
pub(super) fn identity(ref_name: &str) -> String {
    ref_name.parse::<PackageName>().map_or_else(|_| ref_name.to_owned(), |name| name.ref_name.to_string())
}
