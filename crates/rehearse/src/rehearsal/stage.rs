//! The stages of an update that Cluster API drives: nobody has them on record, and what happened tells them.

use jiff::Timestamp;
use windlass_api::condition::ConditionType;
use windlass_api::kind::cluster_update::StageRecord;
use windlass_api::kind::condition;
use windlass_api::kind::release::ClusterBootstrap;
use windlass_api::name::NamespacedName;
use windlass_plan::step::Stage;
use windlass_sim::timeline::{Event, What};
use windlass_sim::world::World;

use super::{Request, Wish};
use crate::settle;

/// Packages, then the control plane, then workers, each if there was something to do.
pub(super) fn of_class(world: &World, request: &Request, events: &[Event]) -> Vec<StageRecord> {
    if request.ask == Wish::Delete {
        return Vec::new();
    }
    let machines = [(Stage::ControlPlane, true), (Stage::Workers, false)];
    let rolled = machines.into_iter().filter_map(|(stage, control_plane)| {
        let of = |what: What| {
            let is_it = move |event: &&Event| {
                let lane = event.lane.as_ref();
                event.what == what && lane.is_some_and(|lane| lane.control_plane == control_plane)
            };
            events.iter().filter(is_it)
        };
        let came = of(What::MachineCreated).next()?.at;
        // One that only grows is done when its last machine runs.
        let gone = of(What::MachineDeleted).chain(of(What::MachineRunning)).map(|event| event.at).max();
        Some(record(stage, came, gone))
    });
    packages(world, request).into_iter().chain(rolled).collect()
}

/// From when they are asked for until every core package is well: the `ClusterBootstrap` says since when that is so.
fn packages(world: &World, request: &Request) -> Option<StageRecord> {
    let NamespacedName { namespace, name } = &request.cluster;
    let bootstrap: ClusterBootstrap = settle::read(world, namespace.as_str(), name.as_str())?;
    let conditions = bootstrap.status?.conditions;
    let ready = condition(&conditions, ConditionType::PackagesReady.as_str())?;
    let since: Timestamp = ready.last_transition_time.parse().ok()?;
    // Those that were well before and stayed so are no stage.
    let is_new = since >= request.at;
    is_new.then(|| record(Stage::Packages, request.at, (ready.status == "True").then_some(since)))
}

fn record(stage: Stage, began: Timestamp, ended: Option<Timestamp>) -> StageRecord {
    let text = |at: Timestamp| at.to_string();
    StageRecord { stage: stage.to_string(), started_at: Some(text(began)), finished_at: ended.map(text) }
}
