//! Where a machine goes, and whether there is room for it.
//!
//! A Machine that names a failure domain gets it or waits. One that does not goes to the zone with the fewest machines beside it:
//! those of the same cluster that do the same.
//!
//! Where there are limits, of a scenario or by a `ResourceQuota`, what is taken is what each `WCPMachine` says that it has. It is counted anew for each machine that is
//! made, by one after the other, so that no two of them get the last place. Where there are none, nobody is asked: what the
//! watches have seen is enough to spread machines.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::ListParams;
use tokio::sync::OwnedMutexGuard;
use windlass_api::kind::cluster_api::Machine;
use windlass_api::kind::wcp::WCPMachine;
use windlass_api::label;
use windlass_runtime::key::Key;

use super::{Infrastructure, Zone, quota};
use crate::management::conditions::Fact;
use crate::management::context::{Error, Turn, belonging, deleting, is_control_plane};
use crate::management::write::failed;

/// Where a machine goes.
pub(super) enum Place {
    /// Anywhere.
    Any,
    /// Into this zone.
    Zone(String),
    /// Nowhere, for now: there is no room, or no such zone, as a fact.
    None(Fact),
}

/// Finds a place for a machine. Whoever asks keeps others from asking until the machine says where it is.
pub(super) async fn find(
    turn: &Turn,
    part: &WCPMachine,
    machine: &Machine,
    created: &'static str,
) -> Result<Place, Error> {
    let infrastructure = turn.faults.infrastructure();
    let zones = &infrastructure.zones;
    let refuse = |reason, message: String| Ok(Place::None(Fact::no(created, reason, message)));
    let wish = machine.spec.failure_domain.as_deref();
    if let Some(wish) = wish.filter(|wish| !zones.iter().any(|zone| zone.name == *wish)) {
        return refuse("FailureDomainNotFound", unknown(wish, zones));
    }
    let quotas = quota::of(turn, part);
    if infrastructure.is_unlimited() && quotas.is_empty() {
        let place = wish.map(str::to_owned).or_else(|| spread(turn, zones, part, machine));
        return Ok(place.map_or(Place::Any, Place::Zone));
    }
    let api: Api<WCPMachine> = Api::all(turn.client.clone());
    let listed = api.list(&ListParams::default()).await;
    let listed = listed.map_err(|source| failed("count the machines beside", part, source))?.items;
    let made: Vec<WCPMachine> = listed.into_iter().filter(is_made).collect();
    let beside: Vec<&WCPMachine> =
        made.iter().filter(|other| other.metadata.namespace == part.metadata.namespace).collect();
    let exceeded = quota::exceeded(turn, &quotas, part, &beside);
    if let Some(message) = exceeded.or_else(|| over_quota(turn, infrastructure, part, &made)) {
        return refuse("QuotaExceeded", message);
    }
    if zones.is_empty() {
        return Ok(Place::Any);
    }
    match (with_room(turn, zones, machine, &made), wish) {
        (Some(zone), _) => Ok(Place::Zone(zone.name.clone())),
        (None, Some(wish)) => {
            refuse("InsufficientCapacity", format!("the failure domain {wish} has no room for another machine"))
        }
        (None, None) => refuse("InsufficientCapacity", "there is no zone with room for another machine".to_owned()),
    }
}

fn unknown(wish: &str, zones: &[Zone]) -> String {
    let names: Vec<&str> = zones.iter().map(|zone| zone.name.as_str()).collect();
    match names.as_slice() {
        [] => format!("there is no failure domain {wish}: the infrastructure has none"),
        names => format!("there is no failure domain {wish}, but {}", names.join(", ")),
    }
}

/// The zone that a machine says it is in.
pub(super) fn zone_of(meta: &ObjectMeta) -> Option<&str> {
    meta.labels.as_ref()?.get(label::ZONE.name).map(String::as_str)
}

fn is_made(machine: &WCPMachine) -> bool {
    machine.status.as_ref().is_some_and(|status| status.vm_state.is_some())
}

/// The Machines that do the same in the same cluster, and stay; by name.
fn alike(turn: &Turn, machine: &Machine) -> Vec<Arc<Machine>> {
    let mut all = belonging(&turn.caches.machines, &machine.metadata, &machine.spec.cluster_name);
    let role = is_control_plane(&machine.metadata);
    all.retain(|other| is_control_plane(&other.metadata) == role && !deleting(&other.metadata));
    all
}

/// The zone for a machine that may be anywhere. Those beside it that have no place yet get theirs first if their names come
/// first: whoever of them is asked, and whatever has been seen of the others, each finds the same.
fn spread(turn: &Turn, zones: &[Zone], part: &WCPMachine, machine: &Machine) -> Option<String> {
    if let Some(zone) = zone_of(&part.metadata).filter(|has| zones.iter().any(|zone| zone.name == *has)) {
        return Some(zone.to_owned());
    }
    let mut counts: Vec<(&Zone, usize)> = zones.iter().map(|zone| (zone, 0)).collect();
    let mut before = 0;
    for other in alike(turn, machine) {
        let zone = other.spec.failure_domain.clone().or_else(|| place(turn, &other));
        match counts.iter_mut().find(|(each, _)| Some(&each.name) == zone.as_ref()) {
            Some((_, count)) => *count += 1,
            None => before += usize::from(other.metadata.name < machine.metadata.name),
        }
    }
    for _ in 0..before {
        if let Some((_, count)) = counts.iter_mut().min_by_key(|(_, count)| *count) {
            *count += 1;
        }
    }
    counts.into_iter().min_by_key(|(_, count)| *count).map(|(zone, _)| zone.name.clone())
}

/// Where the infrastructure of a Machine says it is.
fn place(turn: &Turn, machine: &Machine) -> Option<String> {
    let name = machine.spec.infrastructure_ref.name.clone();
    let key = Key { namespace: machine.metadata.namespace.clone(), name };
    let part = turn.caches.machine_infrastructures.get(&key)?;
    zone_of(&part.metadata).map(str::to_owned)
}

fn over_quota(turn: &Turn, limits: &Infrastructure, machine: &WCPMachine, made: &[WCPMachine]) -> Option<String> {
    let namespace = machine.metadata.namespace.as_deref().unwrap_or_default();
    let beside = || made.iter().filter(|other| other.metadata.namespace.as_deref() == Some(namespace));
    let count = beside().count() as u64 + 1;
    if let Some(max) = limits.machines_per_namespace.filter(|max| count > *max) {
        return Some(format!("{namespace} may have {max} machines"));
    }
    let cpus = |machine: &WCPMachine| {
        let class = turn.caches.machine_classes.get(&Key::cluster(&machine.spec.class_name));
        let hardware = class.as_ref().and_then(|class| class.spec.hardware.clone());
        hardware.map(|hardware| u64::from(hardware.cpus)).unwrap_or_default()
    };
    let sum: u64 = beside().map(cpus).sum::<u64>() + cpus(machine);
    let max = limits.cpus_per_namespace.filter(|max| sum > *max)?;
    Some(format!("the machines of {namespace} may have {max} processors"))
}

/// The zone with the fewest machines beside this one, of those that have room and are wished for; of several the one with the
/// fewest machines in all, and then the first.
fn with_room<'a>(turn: &Turn, zones: &'a [Zone], machine: &Machine, made: &[WCPMachine]) -> Option<&'a Zone> {
    let wish = machine.spec.failure_domain.as_ref();
    let beside: BTreeSet<String> =
        alike(turn, machine).into_iter().map(|other| other.spec.infrastructure_ref.name.clone()).collect();
    let is_beside = |other: &ObjectMeta| {
        other.namespace == machine.metadata.namespace && other.name.as_ref().is_some_and(|name| beside.contains(name))
    };
    let counted = zones.iter().filter(|zone| wish.is_none_or(|wish| zone.name == *wish)).map(|zone| {
        let inside = || made.iter().filter(|other| zone_of(&other.metadata) == Some(&zone.name));
        let all = inside().count() as u64;
        (zone, inside().filter(|other| is_beside(&other.metadata)).count(), all)
    });
    let with_room = counted.filter(|(zone, _, all)| zone.machines.is_none_or(|max| *all < max));
    with_room.min_by_key(|(_, own, all)| (*own, *all)).map(|(zone, ..)| zone)
}

/// Who asks for a place where there are limits asks alone, until the answer is dropped.
pub(super) async fn alone(turn: &Turn, part: &WCPMachine) -> Option<OwnedMutexGuard<()>> {
    let limited = !turn.faults.infrastructure().is_unlimited() || !quota::of(turn, part).is_empty();
    if limited { Some(Arc::clone(&turn.placing).lock_owned().await) } else { None }
}
