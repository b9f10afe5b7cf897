//! The stages of an update, the machines that they replace, and the fields that are guilty of it.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ResourceQuota;
use serde::Serialize;
use windlass_api::kind::cluster_api::Machine;
use windlass_api::name::NamespacedName;
use windlass_api::quota::Counted;
use windlass_controller::reconcile::preview::Preview;
use windlass_plan::change::{Effect, FieldChange, classify};
use windlass_plan::step::Stage;
use windlass_sim::timeline::{Event, Lane, What};
use windlass_sim::world::World;

use super::{Error, Spread};
use crate::preview::{ClassPreview, Foreseen, preview};
use crate::rehearsal::{Rehearsal, Request};
use crate::settle;

/// A stage of an update.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StageForeseen {
    /// Which.
    pub stage: String,
    /// How long it took, in the runs that came to its end.
    pub took: Spread,
    /// In how many runs it came to its end.
    pub ended: u32,
    /// What it changes, as the plan says it.
    pub changes: Vec<String>,
}

/// A machine that is replaced.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Replaced {
    /// Its name.
    pub machine: String,
    /// The pool that it belongs to; nothing for the control plane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// The one that takes its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// How long after the beginning it was gone.
    #[schemars(with = "String")]
    pub gone_after: SignedDuration,
    /// The fields that are guilty of it; none where it was not the update that asked for it.
    pub because: Vec<FieldChange>,
}

/// What the plan says of an update that was run. Nothing for one that was not allowed to begin, and for the end of a cluster.
pub(super) fn foresee(start: &World, request: &Request, run: &Rehearsal) -> Result<Foresight, Error> {
    if run.stages.is_empty() {
        return Ok(Foresight::default());
    }
    Ok(match preview(start, request).map_err(Error::Foresee)? {
        Foreseen::Planned(preview) => Foresight::of(&preview),
        Foreseen::OfClass(preview) => Foresight::of_class(&preview),
        Foreseen::Deleted(_) | Foreseen::Refused { .. } => Foresight::default(),
    })
}

/// What the plan says of an update.
#[derive(Default)]
pub(super) struct Foresight {
    /// What each stage changes.
    changes: BTreeMap<String, Vec<String>>,
    /// The fields that replace machines; of a cluster of a class that is for Cluster API to know.
    guilty: Vec<FieldChange>,
}

impl Foresight {
    fn of(preview: &Preview) -> Self {
        let stages = preview.planned.report.stages.iter();
        let changes = classify(&preview.input.target, &preview.input.inventory).changes;
        Self {
            changes: stages.map(|stage| (stage.stage.to_string(), stage.changes.clone())).collect(),
            guilty: changes.into_iter().filter(|change| change.effect == Effect::Replaces).collect(),
        }
    }

    fn of_class(preview: &ClassPreview) -> Self {
        let changes = Stage::ALL.map(|stage| (stage.to_string(), preview.changes(stage))).into();
        Self { changes, guilty: Vec::new() }
    }
}

/// The stages, with what the plan says of them.
pub(super) fn stages(runs: &[Rehearsal], reference: &Rehearsal, foreseen: &Foresight) -> Vec<StageForeseen> {
    let stage = |name: &String| {
        let times: Vec<SignedDuration> = runs.iter().filter_map(|run| took(run, name)).collect();
        StageForeseen {
            stage: name.clone(),
            ended: u32::try_from(times.len()).unwrap_or(u32::MAX),
            took: Spread::of(times.into_iter()),
            changes: foreseen.changes.get(name).cloned().unwrap_or_default(),
        }
    };
    reference.stages.iter().map(|record| stage(&record.stage)).collect()
}

/// How long a stage took, if it came to its end.
pub(super) fn took(run: &Rehearsal, stage: &str) -> Option<SignedDuration> {
    let record = run.stages.iter().find(|record| record.stage == stage)?;
    let time = |text: &Option<String>| text.as_ref()?.parse::<Timestamp>().ok();
    let (from, to) = (time(&record.started_at)?.max(run.began), time(&record.finished_at)?);
    Some(from.duration_until(to))
}

/// The machines that went and for which another came, in order.
pub(super) fn replaced(run: &Rehearsal, Foresight { guilty, .. }: &Foresight) -> Vec<Replaced> {
    let of = |what: What| run.timeline.events.iter().filter(move |event| event.what == what);
    let mut came: Vec<&Event> = of(What::MachineCreated).collect();
    let mut replaced = Vec::new();
    for event in of(What::MachineDeleted) {
        let Some(lane) = &event.lane else { continue };
        // One that was made in this run and goes again is no machine that is replaced.
        if came.iter().any(|other| other.at <= event.at && other.object == event.object) {
            came.retain(|other| other.object != event.object || other.at > event.at);
            continue;
        }
        let takes_place = |other: &&Event| other.lane.as_ref().is_some_and(|new| is_successor(new, lane));
        let by = came.iter().position(takes_place).map(|index| came.remove(index));
        replaced.push(Replaced {
            machine: lane.machine.clone(),
            pool: lane.pool.clone(),
            by: by.and_then(|by| Some(by.lane.as_ref()?.machine.clone())),
            gone_after: run.began.duration_until(event.at),
            because: guilty.iter().filter(|change| is_of(change, lane, &run.cluster)).cloned().collect(),
        });
    }
    replaced
}

/// Whether a machine that came is of the same role as one that went; of a control plane, of the same row.
fn is_successor(new: &Lane, old: &Lane) -> bool {
    let row = |name: &str| name.rsplit_once('-').map(|(row, _)| row.to_owned());
    match (new.control_plane, old.control_plane) {
        (true, true) => row(&new.machine) == row(&old.machine) || new.machine.starts_with(&old.machine),
        (false, false) => new.pool == old.pool,
        _ => false,
    }
}

/// Whether a change is one of the object that a machine is made from.
fn is_of(change: &FieldChange, lane: &Lane, cluster: &NamespacedName) -> bool {
    let Some((kind, name)) = change.role.split_once('/') else { return lane.control_plane == is_control_plane(change) };
    if !lane.control_plane {
        let ends = |pool: &String| pool == name || pool.ends_with(&format!("-{name}"));
        return kind == "workers" && lane.pool.as_ref().is_some_and(ends);
    }
    let base = format!("{}-control-plane-{name}", cluster.name);
    kind == "control-plane" && (lane.machine == base || lane.machine.starts_with(&format!("{base}-")))
}

fn is_control_plane(change: &FieldChange) -> bool {
    change.role.starts_with("control-plane")
}

/// The name of a field in few words: all that a machine reads when it first boots is one.
pub(super) fn short(change: &FieldChange) -> &str {
    if change.kind.starts_with("KubeadmConfig") || change.field.contains("kubeadmConfigSpec") {
        return "bootstrap";
    }
    change.field.rsplit('.').next().unwrap_or(&change.field)
}

/// The narrowest limit for the number of machines in the namespace of a cluster, and who says so.
pub(super) fn quota(world: &World, request: &Request) -> Option<(String, u64)> {
    let scripted = request.faults.infrastructure.machines_per_namespace;
    let scripted = scripted.map(|limit| ("the scenario".to_owned(), limit));
    let quotas = settle::all::<ResourceQuota>(world, request.cluster.namespace.as_str());
    let limits = quotas.iter().flat_map(|quota| {
        let hard = quota.spec.iter().flat_map(|spec| spec.hard.iter().flatten());
        let of_machines = hard.filter(|(resource, _)| Counted::of(resource).is_some_and(Counted::is_machines));
        let by = format!("ResourceQuota/{}", quota.metadata.name.as_deref().unwrap_or_default());
        of_machines.filter_map(move |(_, max)| Some((by.clone(), max.0.parse().ok()?)))
    });
    scripted.into_iter().chain(limits).min_by_key(|(_, limit)| *limit)
}

/// How many machines there are in the namespace of a cluster, of all its clusters.
pub fn machines_of(world: &World, cluster: &NamespacedName) -> u64 {
    settle::all::<Machine>(world, cluster.namespace.as_str()).len() as u64
}
