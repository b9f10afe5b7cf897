//! Where a machine goes, and whether there is room for it.
//!
//! What is taken is what each `WCPMachine` says that it has. It is counted anew for each machine that is made, by one after the
//! other, so that no two of them get the last place.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::ListParams;
use tokio::sync::OwnedMutexGuard;
use windlass_api::kind::wcp::WCPMachine;
use windlass_runtime::key::Key;

use super::{Infrastructure, Zone};
use crate::management::conditions::Fact;
use crate::management::context::{Error, Turn, cluster_name};
use crate::management::write::failed;

/// The label that says which zone a machine is in.
pub(super) const ZONE: &str = "topology.kubernetes.io/zone";

/// Where a machine goes.
pub(super) enum Place {
    /// Anywhere.
    Any,
    /// Into this zone.
    Zone(String),
    /// Nowhere: there is no room, as a fact.
    None(Fact),
}

/// Finds a place for a machine. Whoever asks keeps others from asking until the machine says where it is.
pub(super) async fn find(turn: &Turn, machine: &WCPMachine, created: &'static str) -> Result<Place, Error> {
    let Some(infrastructure) = turn.faults.infrastructure().filter(|all| !all.is_unlimited()) else {
        return Ok(Place::Any);
    };
    let api: Api<WCPMachine> = Api::all(turn.client.clone());
    let listed = api.list(&ListParams::default()).await;
    let listed = listed.map_err(|source| failed("count the machines beside", machine, source))?.items;
    let made: Vec<WCPMachine> = listed.into_iter().filter(is_made).collect();
    let refuse = |reason, message: String| Ok(Place::None(Fact::no(created, reason, message)));
    if let Some(message) = over_quota(turn, infrastructure, machine, &made) {
        return refuse("QuotaExceeded", message);
    }
    if infrastructure.zones.is_empty() {
        return Ok(Place::Any);
    }
    match zone(&infrastructure.zones, &machine.metadata, &made) {
        Some(zone) => Ok(Place::Zone(zone.name.clone())),
        None => refuse("InsufficientCapacity", "there is no zone with room for another machine".to_owned()),
    }
}

fn is_made(machine: &WCPMachine) -> bool {
    machine.status.as_ref().is_some_and(|status| status.vm_state.is_some())
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

/// The zone with the fewest machines of the same cluster, of those that have room; of several the one with the fewest machines
/// in all, and then the first.
fn zone<'a>(zones: &'a [Zone], meta: &ObjectMeta, made: &[WCPMachine]) -> Option<&'a Zone> {
    let zone_of = |meta: &ObjectMeta| meta.labels.as_ref().and_then(|labels| labels.get(ZONE)).cloned();
    let of_cluster =
        |other: &ObjectMeta| other.namespace == meta.namespace && cluster_name(other) == cluster_name(meta);
    let counted = zones.iter().map(|zone| {
        let inside = || made.iter().filter(|other| zone_of(&other.metadata).as_ref() == Some(&zone.name));
        let all = inside().count() as u64;
        (zone, inside().filter(|other| of_cluster(&other.metadata)).count(), all)
    });
    let with_room = counted.filter(|(zone, _, all)| zone.machines.is_none_or(|max| *all < max));
    with_room.min_by_key(|(_, own, all)| (*own, *all)).map(|(zone, ..)| zone)
}

/// Who asks for a place asks alone, until the answer is dropped.
pub(super) async fn alone(turn: &Turn) -> Option<OwnedMutexGuard<()>> {
    turn.faults.placing().await
}
