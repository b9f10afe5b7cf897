//! What the times of a report are made of: what earlier updates of the cluster took, or else the data file of the World.
//!
//! Earlier updates say how long a stage took and how many machines it replaced. One run with the data file says how long the
//! World takes for the same; the quotient of the two is how much slower or faster than the data file this cluster is, and every
//! time of the World is multiplied by it.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use windlass_api::kind::cluster_update::{ClusterUpdate, StageRecord, UpdateState};
use windlass_sim::durations::{Durations, Spread};
use windlass_sim::timeline::What;
use windlass_sim::world::{self, World};

use super::{Error, stage};
use crate::rehearsal::{Rehearsal, Request, rehearse};
use crate::settle;

/// Whoever is further from the data file than this was held up by something else, or measured in another time.
const FACTOR_MAX: f64 = 20.0;
/// Of more updates than this the latest are asked.
const UPDATES_MAX: usize = 10;

/// What the times of a report are made of.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(tag = "from", rename_all = "camelCase")]
pub enum Estimate {
    /// Earlier updates of the cluster.
    Recorded(Recorded),
    /// The data file: what things took elsewhere.
    DataFile,
}

/// What earlier updates of a cluster took.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Recorded {
    /// Which, the latest last.
    pub updates: Vec<String>,
    /// How long a machine of the control plane took.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub control_plane_machine: Option<SignedDuration>,
    /// How long a worker took.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub worker: Option<SignedDuration>,
    /// How many times as long as in the data file that is, in hundredths.
    pub percent: u32,
}

impl Estimate {
    /// How many hundredths of the data file everything takes, where that is another number than 100.
    pub fn percent(&self) -> Option<u32> {
        match self {
            Self::Recorded(recorded) => Some(recorded.percent),
            Self::DataFile => None,
        }
    }
}

/// How long a machine of each role takes.
#[derive(Debug, Clone, Copy, Default)]
struct Pace {
    control_plane: Option<SignedDuration>,
    workers: Option<SignedDuration>,
}

/// What times are made of, and a World in which they are so, where that is another.
pub(super) fn estimate(start: &World, request: &Request) -> Result<(Estimate, Option<World>), Error> {
    let updates = earlier(start, request);
    let recorded = Pace {
        control_plane: median(updates.iter().filter_map(|update| pace(update, "controlPlane"))),
        workers: median(updates.iter().filter_map(|update| pace(update, "workers"))),
    };
    if recorded.control_plane.or(recorded.workers).is_none() {
        return Ok((Estimate::DataFile, None));
    }
    let factor = factor(recorded, in_world(&rehearse(start, request)?));
    let Some(factor) = factor else { return Ok((Estimate::DataFile, None)) };
    let names = updates.iter().filter_map(|update| update.metadata.name.clone()).collect();
    let percent = hundredths(factor);
    let estimate = Estimate::Recorded(Recorded {
        updates: names,
        control_plane_machine: recorded.control_plane,
        worker: recorded.workers,
        percent,
    });
    Ok((estimate, Some(at_pace(start, percent))))
}

/// A fork of a World in which everything takes so many hundredths of what it takes there.
pub fn at_pace(start: &World, percent: u32) -> World {
    let durations = scaled(&start.settings().durations, percent);
    start.fork(world::Settings { durations, ..start.settings().clone() })
}

/// The updates of the cluster that went well, the latest last.
fn earlier(start: &World, request: &Request) -> Vec<ClusterUpdate> {
    let mut updates: Vec<ClusterUpdate> = settle::all(start, request.cluster.namespace.as_str());
    updates.retain(|update| {
        let state = update.status.as_ref().and_then(|status| status.state);
        update.spec.cluster == request.cluster.name.as_str() && state == Some(UpdateState::Succeeded)
    });
    updates.sort_by_key(|update| update.spec.ordinal);
    updates.drain(..updates.len().saturating_sub(UPDATES_MAX));
    updates
}

/// How long a machine took in a stage of an update that replaced all of its role.
fn pace(update: &ClusterUpdate, stage: &str) -> Option<SignedDuration> {
    let record = update.status.as_ref()?.stages.iter().find(|record| record.stage == stage)?;
    let to = &update.spec.to;
    let machines = match stage {
        "controlPlane" => to.control_plane.count,
        _ if to.pools.is_empty() => to.workers.count,
        _ => to.pools.iter().map(|pool| pool.machines.count).sum(),
    };
    each(length(record)?, u64::from(machines))
}

fn length(record: &StageRecord) -> Option<SignedDuration> {
    let time = |text: &Option<String>| text.as_ref()?.parse::<Timestamp>().ok();
    Some(time(&record.started_at)?.duration_until(time(&record.finished_at)?))
}

/// How long a machine of each role took in a run.
fn in_world(run: &Rehearsal) -> Pace {
    let gone = |control_plane: bool| {
        let is_one = |lane: &windlass_sim::timeline::Lane| lane.control_plane == control_plane;
        let gone = run.timeline.events.iter().filter(|event| event.what == What::MachineDeleted);
        gone.filter(|event| event.lane.as_ref().is_some_and(is_one)).count() as u64
    };
    Pace {
        control_plane: stage::took(run, "controlPlane").and_then(|took| each(took, gone(true))),
        workers: stage::took(run, "workers").and_then(|took| each(took, gone(false))),
    }
}

/// The part of one. What took no time at all was no replacement.
fn each(took: SignedDuration, machines: u64) -> Option<SignedDuration> {
    let machines = i32::try_from(machines).ok().filter(|machines| *machines > 0)?;
    Some(took / machines).filter(SignedDuration::is_positive)
}

/// How many times as long as in the World it took, over the roles of which both are known.
fn factor(recorded: Pace, in_world: Pace) -> Option<f64> {
    let pairs = [(recorded.control_plane, in_world.control_plane), (recorded.workers, in_world.workers)];
    let (took, takes) = pairs
        .into_iter()
        .filter_map(|(took, takes)| took.zip(takes))
        .fold((0.0, 0.0), |(all_took, all_take), (took, takes)| {
            (all_took + took.as_secs_f64(), all_take + takes.as_secs_f64())
        });
    (takes > 0.0).then(|| (took / takes).clamp(1.0 / FACTOR_MAX, FACTOR_MAX))
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 5 and 2,000")]
fn hundredths(factor: f64) -> u32 {
    (factor * 100.0).round() as u32
}

fn scaled(durations: &Durations, percent: u32) -> Durations {
    let scale = |spread: Spread| {
        let times = |millis: u64| millis * u64::from(percent) / 100;
        Spread { p50: times(spread.p50), p90: times(spread.p90) }
    };
    Durations {
        load_balancer: scale(durations.load_balancer),
        machine_create: scale(durations.machine_create),
        machine_boot: scale(durations.machine_boot),
        kubeadm_init: scale(durations.kubeadm_init),
        kubeadm_join_control_plane: scale(durations.kubeadm_join_control_plane),
        kubeadm_join: scale(durations.kubeadm_join),
        node_ready: scale(durations.node_ready),
        pod_start: scale(durations.pod_start),
        machine_delete: scale(durations.machine_delete),
    }
}

fn median(times: impl Iterator<Item = SignedDuration>) -> Option<SignedDuration> {
    let mut times: Vec<SignedDuration> = times.collect();
    times.sort_unstable();
    times.get(times.len().checked_sub(1)? / 2).copied()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn update(minutes: u32, machines: u32) -> ClusterUpdate {
        let count = json!({"count": machines, "class": "small", "storageClass": "s"});
        let end = json!({"distribution": "", "kubernetes": "", "controlPlane": count, "workers": count});
        serde_json::from_value(json!({
            "apiVersion": "windlass.dev/v1alpha1", "kind": "ClusterUpdate", "metadata": {"name": "a-1"},
            "spec": {"cluster": "a", "ordinal": 1, "id": "1", "from": end, "to": end, "envelopeDigest": ""},
            "status": {"stages": [{"stage": "controlPlane", "startedAt": "2026-01-01T00:00:00Z",
                "finishedAt": format!("2026-01-01T00:{minutes:02}:00Z")}]},
        }))
        .unwrap()
    }

    #[test]
    fn a_stage_is_worth_what_each_of_its_machines_took() {
        let check = |minutes, machines, each: Option<i64>| {
            let found = pace(&update(minutes, machines), "controlPlane");
            assert_eq!(found.map(|each| each.as_secs()), each, "{minutes} {machines}");
        };
        check(12, 3, Some(240));
        check(0, 3, None);
        check(12, 0, None);
        assert_eq!(pace(&update(12, 3), "workers"), None);
    }

    #[test]
    fn the_factor_is_of_what_both_know_and_is_bounded() {
        let pace = |control_plane: Option<i64>, workers: Option<i64>| Pace {
            control_plane: control_plane.map(SignedDuration::from_secs),
            workers: workers.map(SignedDuration::from_secs),
        };
        let check = |recorded, in_world, percent: Option<u32>| {
            assert_eq!(factor(recorded, in_world).map(hundredths), percent);
        };
        check(pace(Some(400), Some(100)), pace(Some(200), Some(50)), Some(200));
        check(pace(Some(400), None), pace(Some(200), Some(50)), Some(200));
        check(pace(Some(400), None), pace(None, Some(50)), None);
        check(pace(Some(999_999), None), pace(Some(1), None), Some(2_000));
        let twice = scaled(&Durations::default(), 200);
        assert_eq!(twice.machine_boot.p50, Durations::default().machine_boot.p50 * 2);
    }
}
