//! How a cluster is doing, from the objects that say so: what `status` shows, and what is drawn while somebody waits.

mod collect;
mod progress;
mod text;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;
use serde::Serialize;
use windlass_api::kind::cluster_api::Machine;
use windlass_api::kind::cluster_update::{ClusterUpdate, StageRecord, UpdateState, WaitingFor};
use windlass_api::kind::tanzu::AddonStatus;
use windlass_api::kind::{condition, is_true};
use windlass_api::label;
use windlass_plan::step::Stage;

use crate::output;
use crate::standing::Updated;

pub use self::collect::{read, update};
pub use self::progress::Count;

/// The role of machines of a control plane, as it is shown.
pub const CONTROL_PLANE: &str = "control-plane";

/// How a cluster is doing.
#[derive(Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The object that it is asked for with.
    #[serde(skip)]
    pub object: String,
    /// It is what it is asked to be.
    #[serde(skip)]
    pub reached: bool,
    /// What is waited for, in the order in which a person would have to deal with it.
    #[serde(skip)]
    pub waits: Vec<WaitingFor>,
    pub cluster: String,
    pub namespace: String,
    /// The whole in one word.
    pub assessment: &'static str,
    /// What it is asked to be.
    pub release: Option<String>,
    /// What all of its machines are.
    pub running: Option<String>,
    pub waiting_for: Option<String>,
    /// What would be done if somebody agreed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<String>,
    pub update: Option<UpdateReport>,
    pub machines: Vec<MachineReport>,
    pub addons: Vec<AddonStatus>,
}

/// The update that runs, or ran last.
#[derive(Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateReport {
    pub name: String,
    /// What tells it from all others; its Job and its machines have it in their names.
    pub id: String,
    pub state: Option<UpdateState>,
    pub from: String,
    pub to: String,
    pub envelope_digest: String,
    /// How long it took, or has taken so far.
    pub seconds: Option<i64>,
    pub stages: Vec<StageReport>,
    pub failure: Option<String>,
}

/// A stage of an update.
#[derive(Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StageReport {
    pub stage: Stage,
    pub state: StageWord,
    /// How much of it there is to do, and is done; nothing where the update does not touch it.
    pub progress: Option<Count>,
    /// How long it took, or has taken so far.
    pub seconds: Option<i64>,
    pub waiting_for: Vec<WaitingFor>,
}

/// A stage in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum StageWord {
    Done,
    Failed,
    Waiting,
    Running,
    NotBegun,
    /// It had begun when its update was given up.
    GivenUp,
    /// It has nothing to do in this update.
    Untouched,
}

/// A machine of the cluster.
#[derive(Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineReport {
    pub name: String,
    /// `control-plane`, or the deployment that it belongs to.
    pub role: String,
    pub version: Option<String>,
    pub phase: Option<String>,
    pub ready: bool,
    pub node: Option<String>,
    pub message: Option<String>,
}

impl Report {
    /// Out of the objects, at a time by the clock of the server that has them.
    pub fn of(cluster: &impl Updated, update: Option<&ClusterUpdate>, machines: &[Machine], now: Timestamp) -> Self {
        let standing = cluster.standing(update);
        let update = update.map(|update| UpdateReport::of(update, standing.addons.as_ref(), machines, now));
        let mut machines: Vec<MachineReport> = machines.iter().map(MachineReport::of).collect();
        machines.sort_by(|a, b| a.place().cmp(&b.place()));
        Self {
            cluster: standing.cluster,
            namespace: standing.namespace,
            assessment: standing.assessment,
            release: standing.release,
            running: standing.running,
            waiting_for: standing.waiting_for,
            pending: standing.pending,
            update,
            machines,
            addons: standing.addons.unwrap_or_default().into_values().collect(),
            object: standing.object,
            reached: standing.reached,
            waits: standing.waits,
        }
    }

    /// The update, if it has failed.
    pub fn failed_update(&self) -> Option<&UpdateReport> {
        self.update.as_ref().filter(|update| update.state == Some(UpdateState::Failed))
    }

    /// The update, while it goes on.
    pub fn running_update(&self) -> Option<&UpdateReport> {
        self.update.as_ref().filter(|update| update.state == Some(UpdateState::Running))
    }
}

impl UpdateReport {
    fn of(
        update: &ClusterUpdate,
        addons: Option<&BTreeMap<String, AddonStatus>>,
        machines: &[Machine],
        now: Timestamp,
    ) -> Self {
        let status = update.status.clone().unwrap_or_default();
        let stages = Stage::ALL.map(|stage| {
            let record = status.stages.iter().find(|record| record.stage == stage.as_str());
            let waiting = status.waiting_for.iter().filter(|waiting| waiting.stage == stage.as_str()).cloned();
            let progress = progress::of(stage, update, addons, machines);
            StageReport::of(stage, record, waiting.collect(), status.state, progress, now)
        });
        let started = time(status.started_at.as_deref());
        let finished = time(status.finished_at.as_deref()).unwrap_or(now);
        Self {
            name: update.name_any(),
            // That of another one, where that was adopted.
            id: update.id().map_or_else(|_| update.spec.id.clone(), |id| id.to_string()),
            state: status.state,
            from: update.spec.from.distribution.clone(),
            to: update.spec.to.distribution.clone(),
            envelope_digest: update.spec.envelope_digest.clone(),
            seconds: started.map(|started| seconds(started, finished)),
            stages: stages.into(),
            failure: status.failure,
        }
    }
}

impl StageReport {
    fn of(
        which: Stage,
        record: Option<&StageRecord>,
        waiting_for: Vec<WaitingFor>,
        update: Option<UpdateState>,
        progress: Option<Count>,
        now: Timestamp,
    ) -> Self {
        let started = record.and_then(|record| time(record.started_at.as_deref()));
        let finished = record.and_then(|record| time(record.finished_at.as_deref()));
        let state = match (started, finished, update) {
            _ if progress.is_none() && started.is_none() && waiting_for.is_empty() => StageWord::Untouched,
            (_, Some(_), _) | (_, _, Some(UpdateState::Succeeded)) => StageWord::Done,
            (Some(_), None, Some(UpdateState::Failed)) => StageWord::Failed,
            (Some(_), None, Some(UpdateState::Aborted)) => StageWord::GivenUp,
            (None, None, Some(UpdateState::Failed)) => StageWord::NotBegun,
            (None, None, _) if waiting_for.is_empty() => StageWord::NotBegun,
            _ if !waiting_for.is_empty() => StageWord::Waiting,
            _ => StageWord::Running,
        };
        let seconds = started.filter(|_| state != StageWord::GivenUp);
        let seconds = seconds.map(|started| self::seconds(started, finished.unwrap_or(now)));
        Self { stage: which, state, progress, seconds, waiting_for }
    }
}

impl StageWord {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::NotBegun => "not begun",
            Self::GivenUp => "given up",
            Self::Untouched => "untouched",
        }
    }

    /// What stands before the word, so that a glance is enough.
    pub fn sign(self) -> char {
        match self {
            Self::Done => '✔',
            Self::Failed => '✖',
            Self::Waiting => '…',
            Self::Running => '▶',
            Self::NotBegun => '·',
            Self::GivenUp => '↶',
            Self::Untouched => '=',
        }
    }
}

impl MachineReport {
    /// The head of the table of machines.
    pub const HEAD: [&str; 5] = ["MACHINE", "ROLE", "VERSION", "PHASE", "READY"];

    /// Its row.
    pub fn row(&self) -> Vec<String> {
        vec![
            self.name.clone(),
            self.role.clone(),
            output::cell(self.version.as_ref()),
            output::cell(self.phase.as_ref()),
            self.readiness(),
        ]
    }

    /// Out of the object.
    pub fn of(machine: &Machine) -> Self {
        let status = machine.status.clone().unwrap_or_default();
        let role = if is_control_plane(machine) {
            CONTROL_PLANE.to_owned()
        } else {
            machine.labels().get(label::DEPLOYMENT_NAME.name).cloned().unwrap_or_default()
        };
        let ready = is_true(&status.conditions, "Ready");
        let why = condition(&status.conditions, "Ready").filter(|_| !ready).map(|ready| ready.message.clone());
        Self {
            name: machine.name_any(),
            role,
            version: machine.spec.version.clone(),
            phase: status.phase,
            ready,
            node: status.node_ref.map(|node| node.name),
            message: why.filter(|text| !text.is_empty()),
        }
    }

    /// The control plane first, then pool by pool.
    pub fn place(&self) -> (bool, &str, &str) {
        (self.role != CONTROL_PLANE, &self.role, &self.name)
    }

    /// Whether it is ready, and if not, why not.
    pub fn readiness(&self) -> String {
        match (self.ready, &self.message) {
            (true, _) => "yes".to_owned(),
            (false, None) => "no".to_owned(),
            (false, Some(why)) => format!("no: {why}"),
        }
    }
}

fn is_control_plane(machine: &Machine) -> bool {
    label::CONTROL_PLANE.is_in(machine.labels())
}

fn time(text: Option<&str>) -> Option<Timestamp> {
    text?.parse().ok()
}

/// Never less than nothing: clocks differ.
fn seconds(from: Timestamp, to: Timestamp) -> i64 {
    to.duration_since(from).max(SignedDuration::ZERO).as_secs()
}

#[cfg(test)]
mod tests;
