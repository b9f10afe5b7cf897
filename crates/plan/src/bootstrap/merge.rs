//! What the `ClusterBootstrap` of a cluster says: for a new cluster, for one that somebody began, and after a change of release.
//!
//! | part | after a change of release |
//! |---|---|
//! | kapp, csi, cpi | the template's version; one that the cluster has not is added |
//! | cni | the same package as before, in the release's version: who chose another network keeps it |
//! | additional, in both | the template's version; its values only if neither the cluster nor the old template had any |
//! | additional, in the template only | appended |
//! | additional, in the cluster only | the release's version, if it has the package; otherwise left as it is, and said so |
//!
//! Values are kept, and no package is ever removed. Merging once more changes nothing.

use windlass_api::kind::release::{BootstrapPackage, BootstrapPackages, LocalReference};
use windlass_api::name::PackageName;

use super::clone::{CopyOrder, adopted};
use super::listed::{identity, short};
use super::{Blocked, Subject};
use crate::release::PackageSlot;

/// What a `ClusterBootstrap` is to say, and what has to be copied before it can.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Draft {
    /// What it says.
    pub packages: BootstrapPackages,
    /// The copies that its values are made of.
    pub copies: Vec<CopyOrder>,
}

/// The template of a release, for a new cluster.
pub fn cloned(cluster: &Subject, template: &BootstrapPackages) -> Result<Draft, Blocked> {
    let mut draft =
        Draft { packages: BootstrapPackages { paused: template.paused, ..Default::default() }, copies: vec![] };
    for (slot, package) in super::listed::slots(template) {
        draft.take(cluster, slot, package)?;
    }
    Ok(draft)
}

impl Draft {
    /// Takes a package over from a template.
    fn take(&mut self, cluster: &Subject, slot: PackageSlot, package: &BootstrapPackage) -> Result<(), Blocked> {
        let (own, order) = adopted(cluster, &slot.field(), package)?;
        self.copies.extend(order);
        self.put(slot, own);
        Ok(())
    }

    fn put(&mut self, slot: PackageSlot, package: BootstrapPackage) {
        match slot {
            PackageSlot::Kapp => self.packages.kapp = Some(package),
            PackageSlot::Cni => self.packages.cni = Some(package),
            PackageSlot::Cpi => self.packages.cpi = Some(package),
            PackageSlot::Csi => self.packages.csi = Some(package),
            PackageSlot::Additional { .. } => self.packages.additional_packages.push(package),
        }
    }
}

/// A `ClusterBootstrap` that somebody began, with what it lacks of a template.
///
/// A package may be named `antrea*`: the one package of the release that begins so. Of a package that is the template's own, values
/// that are missing are the template's.
pub fn filled(
    cluster: &Subject,
    begun: &BootstrapPackages,
    template: &BootstrapPackages,
    (release, listed): (&str, &[LocalReference]),
    unmanaged_cni: bool,
) -> Result<Draft, Blocked> {
    let mut draft =
        Draft { packages: BootstrapPackages { paused: begun.paused, ..Default::default() }, copies: vec![] };
    let theirs = super::listed::slots(template);
    for (slot, package) in super::listed::slots(begun) {
        let mut package = package.clone();
        package.ref_name = named(&package.ref_name, &slot.field(), release, listed)?;
        let same = theirs.iter().find(|(_, theirs)| identity(&theirs.ref_name) == identity(&package.ref_name));
        match same.filter(|_| package.values_from.is_none()) {
            Some((_, theirs)) => {
                let values = BootstrapPackage { ref_name: package.ref_name, values_from: theirs.values_from.clone() };
                draft.take(cluster, slot, &values)?;
            }
            None => draft.put(slot, package),
        }
    }
    for (slot, package) in theirs {
        let is_there = match slot {
            PackageSlot::Kapp => begun.kapp.is_some(),
            PackageSlot::Cni => begun.cni.is_some() || unmanaged_cni,
            PackageSlot::Cpi => begun.cpi.is_some(),
            PackageSlot::Csi => begun.csi.is_some(),
            PackageSlot::Additional { .. } => has(&draft.packages.additional_packages, package),
        };
        if !is_there {
            draft.take(cluster, slot, package)?;
        }
    }
    Ok(draft)
}

fn has(packages: &[BootstrapPackage], package: &BootstrapPackage) -> bool {
    packages.iter().any(|known| identity(&known.ref_name) == identity(&package.ref_name))
}

/// The whole name of a package that may be named by its beginning only.
fn named(text: &str, field: &str, release: &str, listed: &[LocalReference]) -> Result<String, Blocked> {
    let Some(beginning) = text.strip_suffix('*') else { return Ok(text.to_owned()) };
    let matching: Vec<&str> =
        listed.iter().map(|listed| listed.name.as_str()).filter(|name| name.starts_with(beginning)).collect();
    match matching.as_slice() {
        [one] => Ok((*one).to_owned()),
        [] => Err(Blocked::ChoiceMissing {
            field: format!("{field}.refName"),
            chosen: text.to_owned(),
            release: release.to_owned(),
            listed: listed.iter().map(|listed| listed.name.clone()).collect(),
        }),
        several => Err(Blocked::Unreadable {
            field: format!("{field}.refName"),
            why: format!("{text} could be {}; accepted is what names one of them", several.join(" or ")),
        }),
    }
}

/// What a merge is made of.
#[derive(Debug, Clone, Copy)]
pub struct Merging<'a> {
    /// The cluster.
    pub cluster: &'a Subject,
    /// What its `ClusterBootstrap` says.
    pub current: &'a BootstrapPackages,
    /// The template of the release that these packages are of, where it is still there.
    pub earlier: Option<&'a BootstrapPackages>,
    /// The template of the release that the cluster is asked to have.
    pub template: &'a BootstrapPackages,
    /// That release.
    pub release: &'a str,
    /// All packages that it has.
    pub listed: &'a [LocalReference],
    /// Somebody else looks after the network.
    pub unmanaged_cni: bool,
}

impl Merging<'_> {
    /// What the `ClusterBootstrap` says after a change of release: see the table above.
    pub fn merged(&self) -> Result<Draft, Blocked> {
        let mut merged = Draft::default();
        merged.packages.paused = self.current.paused;
        let (current, template) = (self.current, self.template);
        self.core(&mut merged, PackageSlot::Kapp, current.kapp.as_ref(), template.kapp.as_ref())?;
        self.network(&mut merged)?;
        self.core(&mut merged, PackageSlot::Cpi, current.cpi.as_ref(), template.cpi.as_ref())?;
        self.core(&mut merged, PackageSlot::Csi, current.csi.as_ref(), template.csi.as_ref())?;
        for (position, package) in current.additional_packages.iter().enumerate() {
            self.additional(&mut merged, PackageSlot::Additional { position }, package)?;
        }
        for package in &template.additional_packages {
            if !has(&current.additional_packages, package) {
                let position = merged.packages.additional_packages.len();
                merged.take(self.cluster, PackageSlot::Additional { position }, package)?;
            }
        }
        Ok(merged)
    }

    fn core(
        &self,
        merged: &mut Draft,
        slot: PackageSlot,
        current: Option<&BootstrapPackage>,
        theirs: Option<&BootstrapPackage>,
    ) -> Result<(), Blocked> {
        match (current, theirs) {
            (None, None) => {}
            (None, Some(theirs)) => merged.take(self.cluster, slot, theirs)?,
            (Some(current), Some(theirs)) if identity(&current.ref_name) == identity(&theirs.ref_name) => {
                merged.put(slot, at(&theirs.ref_name, current));
            }
            (Some(current), _) => self.own_choice(merged, slot, current),
        }
        Ok(())
    }

    /// A package that the template does not have in this place.
    fn own_choice(&self, merged: &mut Draft, slot: PackageSlot, current: &BootstrapPackage) {
        match self.in_release(&identity(&current.ref_name)) {
            Some(name) => merged.put(slot, at(&name, current)),
            // Nobody knows a newer one: it is said that it is no part of the release, and left to whoever added it.
            None => merged.put(slot, current.clone()),
        }
    }

    fn network(&self, merged: &mut Draft) -> Result<(), Blocked> {
        let theirs = self.template.cni.as_ref();
        match (&self.current.cni, theirs) {
            (Some(current), _) if self.unmanaged_cni => merged.put(PackageSlot::Cni, current.clone()),
            (None, _) if self.unmanaged_cni => {}
            (None, None) => {}
            (None, Some(theirs)) => merged.take(self.cluster, PackageSlot::Cni, theirs)?,
            (Some(current), Some(theirs)) if identity(&current.ref_name) == identity(&theirs.ref_name) => {
                merged.put(PackageSlot::Cni, at(&theirs.ref_name, current));
            }
            (Some(current), _) => {
                let name = self.in_release(&identity(&current.ref_name)).ok_or_else(|| Blocked::ChoiceMissing {
                    field: "spec.cni.refName".to_owned(),
                    chosen: current.ref_name.clone(),
                    release: self.release.to_owned(),
                    listed: self.listed.iter().map(|listed| listed.name.clone()).collect(),
                })?;
                merged.put(PackageSlot::Cni, at(&name, current));
            }
        }
        Ok(())
    }

    fn additional(&self, merged: &mut Draft, slot: PackageSlot, current: &BootstrapPackage) -> Result<(), Blocked> {
        let of = |packages: &BootstrapPackages| {
            let same = |theirs: &&BootstrapPackage| identity(&theirs.ref_name) == identity(&current.ref_name);
            packages.additional_packages.iter().find(same).cloned()
        };
        let Some(theirs) = of(self.template) else {
            self.own_choice(merged, slot, current);
            return Ok(());
        };
        // Where the old template is gone nobody knows whether somebody took its values out: then nothing is put in.
        let had_none = self.earlier.and_then(of).is_some_and(|earlier| earlier.values_from.is_none());
        if current.values_from.is_none() && had_none {
            return merged.take(self.cluster, slot, &theirs);
        }
        merged.put(slot, at(&theirs.ref_name, current));
        Ok(())
    }

    /// The release's version of a package; the highest where it has several.
    fn in_release(&self, identity: &str) -> Option<String> {
        let names = self.listed.iter().filter_map(|listed| listed.name.parse::<PackageName>().ok());
        let same = names.filter(|name| name.ref_name.as_str() == identity || name.ref_name.short() == short(identity));
        // The same package rather than one that people call the same.
        let best = same.max_by_key(|name| (name.ref_name.as_str() == identity, name.version.clone()));
        best.map(|name| name.to_string())
    }
}

/// A package in another version, with the values that it has.
fn at(ref_name: &str, package: &BootstrapPackage) -> BootstrapPackage {
    BootstrapPackage { ref_name: ref_name.to_owned(), values_from: package.values_from.clone() }
}
