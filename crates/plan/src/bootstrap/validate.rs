//! What a `ClusterBootstrap` may say, and how it may change.

use std::collections::{BTreeMap, BTreeSet};

use windlass_api::annotation;
use windlass_api::kind::release::{BootstrapPackage, ClusterBootstrap, ValuesFrom};
use windlass_api::name::PackageName;

use super::listed::{short, slots};
use super::{Reference, SYSTEM_NAMESPACE, references};
use crate::release::PackageSlot;
use crate::roster;

/// Something that a `ClusterBootstrap` may not say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The field.
    pub field: String,
    /// What is wrong, and what would be accepted.
    pub why: String,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.field, self.why)
    }
}

/// What there is that a `ClusterBootstrap` could refer to.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// The names of Packages in the system namespace.
    pub packages: BTreeSet<String>,
    /// The names of those that the release has which the cluster is asked to have.
    pub of_release: BTreeSet<String>,
    /// Secrets and objects in its own namespace, of those that it refers to.
    pub values: BTreeSet<Reference>,
}

/// Everything that is wrong with a `ClusterBootstrap`, and with the way that it changes. Nothing is said about one that is being
/// deleted: its finalizers have to be removable.
pub fn refusals(asked: &ClusterBootstrap, before: Option<&ClusterBootstrap>, known: &Known) -> Vec<Refused> {
    if asked.metadata.deletion_timestamp.is_some() {
        return Vec::new();
    }
    let mut refused = Vec::new();
    let has = |key: &str| asked.metadata.annotations.as_ref().is_some_and(|annotations| annotations.contains_key(key));
    let is_begun = has(annotation::ADD_MISSING_FIELDS.name);
    let packages = &asked.spec.packages;
    let required = [
        (PackageSlot::Kapp, packages.kapp.is_some()),
        (PackageSlot::Cni, packages.cni.is_some() || has(annotation::UNMANAGED_CNI.name)),
    ];
    for (slot, is_there) in required {
        if !is_there && !is_begun {
            let way_out = match slot {
                PackageSlot::Cni => {
                    format!("name a package, or annotate the object with {}", annotation::UNMANAGED_CNI)
                }
                _ => "name a package".to_owned(),
            };
            refused.push(Refused { field: slot.field(), why: format!("no cluster can do without it; {way_out}") });
        }
    }
    let mut seen: BTreeMap<&str, String> = BTreeMap::new();
    for (slot, package) in slots(packages) {
        let field = slot.field();
        refused.extend(name_refusal(&field, package, is_begun, known));
        refused.extend(package.values_from.as_ref().and_then(|values| values_refusal(&field, values)));
        refused.extend(category_refusal(&field, package));
        // Objects in clusters are named after it.
        if let Some(other) = seen.insert(short(&package.ref_name), field.clone()) {
            let why = format!("{} is in {other} already; each package can be there once", short(&package.ref_name));
            refused.push(Refused { field: format!("{field}.refName"), why });
        }
    }
    for (field, reference) in references(packages) {
        if !known.values.contains(&reference) {
            let namespace = asked.metadata.namespace.as_deref().unwrap_or_default();
            let why = format!("there is no {reference} in the namespace {namespace}; create it first");
            refused.push(Refused { field, why });
        }
    }
    refused.extend(before.into_iter().flat_map(|before| changes(asked, before, known)));
    refused
}

fn name_refusal(field: &str, package: &BootstrapPackage, is_begun: bool, known: &Known) -> Option<Refused> {
    let field = format!("{field}.refName");
    if is_begun && package.ref_name.ends_with('*') {
        return None;
    }
    if let Err(error) = package.ref_name.parse::<PackageName>() {
        return Some(Refused { field, why: error.to_string() });
    }
    if known.packages.contains(&package.ref_name) {
        return None;
    }
    let alike: Vec<&str> =
        known.packages.iter().map(String::as_str).filter(|name| short(name) == short(&package.ref_name)).collect();
    let alike = if alike.is_empty() { String::new() } else { format!("; there is {}", alike.join(", ")) };
    Some(Refused { field, why: format!("there is no Package {SYSTEM_NAMESPACE}/{}{alike}", package.ref_name) })
}

fn values_refusal(field: &str, values: &ValuesFrom) -> Option<Refused> {
    let ValuesFrom { inline, secret_ref, provider_ref } = values;
    let count = [inline.is_some(), secret_ref.is_some(), provider_ref.is_some()].into_iter().filter(|set| *set).count();
    let why = "names several sources; accepted is one of inline, secretRef and providerRef".to_owned();
    (count > 1).then(|| Refused { field: format!("{field}.valuesFrom"), why })
}

/// Management packages come as they are; nobody gives them values.
fn category_refusal(field: &str, package: &BootstrapPackage) -> Option<Refused> {
    let values = package.values_from.as_ref()?;
    let row = roster::package(short(&package.ref_name)).filter(|_| *values != ValuesFrom::default())?;
    let why = format!("{}: {}; leave valuesFrom out", row.name, row.category.refuses_values()?);
    Some(Refused { field: format!("{field}.valuesFrom"), why })
}

/// What is wrong with the way that it changes.
fn changes(asked: &ClusterBootstrap, before: &ClusterBootstrap, known: &Known) -> Vec<Refused> {
    let [asked, before] = [asked, before].map(|bootstrap| slots(&bootstrap.spec.packages));
    let mut refused = Vec::new();
    for (slot, was) in before {
        let is = asked.iter().find(|(other, package)| match slot {
            PackageSlot::Additional { .. } => !other.is_core() && short(&package.ref_name) == short(&was.ref_name),
            core => *other == core,
        });
        let Some((now, is)) = is else {
            // The core may be left to somebody else; what is required is told above.
            if !slot.is_core() {
                let why =
                    format!("{} cannot be taken out; packages stay for as long as the cluster lives", was.ref_name);
                refused.push(Refused { field: "spec.additionalPackages".to_owned(), why });
            }
            continue;
        };
        // A cluster that is asked to have the release before again gets the versions of that.
        let goes_back = known.of_release.contains(&is.ref_name);
        refused.extend(package_change(&now.field(), is, was, goes_back));
    }
    refused
}

fn package_change(field: &str, is: &BootstrapPackage, was: &BootstrapPackage, goes_back: bool) -> Vec<Refused> {
    let mut refused = Vec::new();
    // A name that only begins is being filled in.
    let names = (was.ref_name.parse::<PackageName>(), is.ref_name.parse::<PackageName>());
    if let (Ok(was), Ok(is)) = names {
        let field = format!("{field}.refName");
        if was.ref_name != is.ref_name {
            let why =
                format!("cannot be made {}: a cluster keeps {} for as long as it lives", is.ref_name, was.ref_name);
            refused.push(Refused { field, why });
        } else if is.version < was.version && !goes_back {
            let why = format!(
                "package downgrade is not allowed, original version: {}, updated version {}",
                was.version.bare(),
                is.version.bare()
            );
            refused.push(Refused { field, why });
        }
    }
    let provider = |package: &BootstrapPackage| package.values_from.as_ref().and_then(|from| from.provider_ref.clone());
    if let Some(was) = provider(was) {
        let field = format!("{field}.valuesFrom.providerRef");
        let same = |is: &windlass_api::kind::release::ProviderReference| {
            (&is.api_group, &is.kind) == (&was.api_group, &was.kind)
        };
        if !provider(is).as_ref().is_some_and(same) {
            let why =
                format!("has to stay of the kind {} in {}: its controller makes the values", was.kind, was.api_group);
            refused.push(Refused { field, why });
        }
    }
    refused
}
