//! Add-ons that somebody else has brought in.
//!
//! Clusters may have got an extension while they were made, before it was an add-on: its objects are there under the names that
//! ours would have, without our label and not on our record. To apply ours over them would take them away from whoever keeps
//! them. What a cluster cannot be without is always ours.

use std::collections::BTreeMap;

use kube::Client;
use serde_json::Value;
use windlass_api::label;
use windlass_api::name::AddonName;
use windlass_plan::inventory::{AppliedAddons, AppliedObject};
use windlass_plan::release::AddonClass;
use windlass_plan::step::Place;
use windlass_plan::target::Target;

use super::Addons;
use crate::execute::Kinds;
use crate::said::{is_not_found, said};

/// The extensions of the target of which somebody else has brought in an object, and those objects.
pub(super) async fn addons(
    kinds: &Kinds,
    client: &Client,
    target: &Target,
    found: &Addons,
    applied: Option<&AppliedAddons>,
) -> Result<BTreeMap<AddonName, Vec<String>>, String> {
    let mut foreign: BTreeMap<AddonName, Vec<String>> = BTreeMap::new();
    let extensions = target.release.addons.iter().filter(|(_, addon)| addon.class() == AddonClass::Extension);
    for (name, addon) in extensions {
        let ours = found.get(name).map(Vec::as_slice).unwrap_or_default();
        for desired in &addon.objects {
            let wanted = AppliedObject::of(name, desired);
            // A namespace that is there is no installation.
            if wanted.kind == "Namespace" || ours.iter().any(|found| wanted.is(&found.live)) {
                continue;
            }
            if is_foreign(kinds, client, &wanted, desired, applied).await? {
                foreign.entry(name.clone()).or_default().push(format!("{}/{}", wanted.kind, wanted.name));
            }
        }
    }
    Ok(foreign)
}

/// Whether there is an object in the place of ours that is not ours. One of ours that has lost its label is on record.
async fn is_foreign(
    kinds: &Kinds,
    client: &Client,
    wanted: &AppliedObject,
    desired: &Value,
    applied: Option<&AppliedAddons>,
) -> Result<bool, String> {
    let AppliedObject { api_version, kind, namespace, name, .. } = wanted;
    let api = match kinds.api(client, Place::Workload, api_version, kind, namespace.as_deref()).await {
        Ok(api) => api,
        Err(error) if error.is_no_such_kind() => return Ok(false),
        Err(error) => return Err(error.to_string()),
    };
    let live = match api.get_opt(name).await {
        Ok(Some(live)) => live.metadata,
        Ok(None) => return Ok(false),
        Err(error) if is_not_found(&error) => return Ok(false),
        Err(error) => return Err(format!("read {kind}/{name}: {}", said(&error))),
    };
    let labelled = label::ADDON.is_in(&live.labels.unwrap_or_default());
    let recorded =
        |entry: &AppliedObject| entry.is(desired) && entry.uid.as_ref().map(AsRef::as_ref) == live.uid.as_deref();
    let on_record = applied.is_some_and(|applied| applied.objects.iter().any(recorded));
    Ok(!labelled && !on_record && live.deletion_timestamp.is_none())
}
