//! What to do next.
//!
//! The stages are planned apart from each other. What may be done now is decided by each stage's gates and not by the order in
//! which the stages are asked; every reason not to go on is reported.

mod abort;
mod applied;
mod case;
mod cause;
mod control_plane;
mod creation;
mod kubeadm_control_plane;
mod observed;
mod packages;
mod pool_health;
mod record;
mod release;
pub(crate) mod role;
mod topology;
mod workers;
mod workload;

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Serialize, Serializer};
use windlass_api::kind::cluster_update::{Cause, UpdateEnd};
use windlass_api::name::{ObjectName, UpdateId};

use crate::envelope::Envelope;
use crate::gate::{Blocked, Gates};
use crate::inventory::Inventory;
use crate::report::{Report, StageReport, StageState};
use crate::step::{Stage, Step};
use crate::target::{Drive, Target};

pub(crate) use case::{Case, Course};
pub(crate) use control_plane::{missing, rows};

/// All that a plan depends on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanningInput {
    /// What the cluster is asked to be. While an update runs, and after it failed, it is what that update leads to.
    pub target: Target,
    /// What it is.
    pub inventory: Inventory,
    /// The time, for the record.
    pub now: Timestamp,
    /// The rules that are in force.
    pub gates: Gates,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[must_use = "a plan is to be checked, and either executed or shown"]
pub struct Planned {
    /// What to write down first. While an update is to be begun or resumed there are no steps but the one that keeps its release,
    /// which comes before the record.
    pub record: Option<Record>,
    /// The next admissible writes, in order.
    pub steps: Vec<Step>,
    /// What is going on, and why not more.
    pub report: Report,
    /// What the update may do in all; the same for every plan of it.
    #[serde(serialize_with = "shared")]
    pub envelope: Arc<Envelope>,
}

fn shared<S: Serializer>(envelope: &Arc<Envelope>, serializer: S) -> Result<S::Ok, S::Error> {
    envelope.serialize(serializer)
}

/// What to write into a `ClusterUpdate`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(clippy::large_enum_variant, reason = "a plan has at most one")]
pub enum Record {
    /// An update begins: create its record.
    Begin {
        /// The name of the record.
        name: ObjectName,
        /// Which update of the cluster it is.
        ordinal: u64,
        /// Its id.
        id: UpdateId,
        /// What the cluster is.
        from: UpdateEnd,
        /// What it is to be.
        to: UpdateEnd,
        /// The digest of the envelope.
        envelope_digest: String,
        /// Why it begins.
        cause: Cause,
    },
    /// The update goes on after it had failed: somebody deleted the Job that gave up, which says "try again". Its state is
    /// to be running again, under the same id, so that the next Job goes on where the last one stopped.
    Resumed,
    /// The update is done: nothing differs any more, and all is well.
    Succeeded,
    /// The update gave up.
    Failed {
        /// Why.
        message: String,
    },
    /// The update was given up, because somebody wanted that: the cluster is what it was before.
    Aborted,
}

/// What to do next to a cluster, and why not more.
pub fn plan(input: &PlanningInput) -> Planned {
    let case = Case::of(input);
    let mut planned =
        Planned { record: None, steps: Vec::new(), report: Report::new(&case), envelope: Arc::clone(&case.envelope) };
    planned.report.exemptions.extend(packages::left_over(&case));
    if case.course == Course::Aborting {
        planned.stage(&case, Stage::Packages, abort::rest);
        planned.stage(&case, Stage::ControlPlane, abort::control_plane);
        planned.stage(&case, Stage::Workers, abort::rest);
    } else {
        planned.stages(&case);
        planned.steps.extend(control_plane::tidy(&case));
    }
    record::settle(&case, &mut planned);
    // What is kept and what is left over is no part of what a cluster is: whether it is as it was asked to be is settled without.
    if planned.steps.is_empty() && planned.record.is_none() {
        planned.steps.extend(release::tidy(&case));
        planned.steps.extend(workers::tidy(&case));
    }
    let waits = matches!(case.course, Course::Begin { .. }) && planned.record.is_none();
    planned.steps.splice(0..0, release::keep(&case).filter(|_| !waits));
    planned.report.date(&case, input.now);
    planned
}

/// What plans one stage.
type StagePlanner = fn(&Case<'_>) -> StagePlan;

impl Planned {
    fn stages(&mut self, case: &Case<'_>) {
        self.stage(case, Stage::Packages, packages::plan);
        let (control_plane, workers): (StagePlanner, StagePlanner) = match case.target.drive {
            Drive::Machines => (control_plane::plan, workers::plan),
            Drive::KubeadmControlPlane => (kubeadm_control_plane::plan, workers::plan),
            Drive::Topology => (topology::control_plane, topology::pools),
        };
        self.stage(case, Stage::ControlPlane, control_plane);
        self.stage(case, Stage::Workers, workers);
    }

    fn stage(&mut self, case: &Case<'_>, stage: Stage, plan: StagePlanner) {
        let StagePlan { steps, state, mut changes, blocked } = plan(case);
        changes.sort();
        self.report.stages.push(StageReport { stage, state, changes, blocked });
        self.steps.extend(steps);
    }
}

/// What a stage comes to.
struct StagePlan {
    steps: Vec<Step>,
    state: StageState,
    changes: Vec<String>,
    blocked: Vec<Blocked>,
}

impl StagePlan {
    fn done() -> Self {
        Self { steps: Vec::new(), state: StageState::Done, changes: Vec::new(), blocked: Vec::new() }
    }

    fn ready(steps: Vec<Step>, changes: Vec<String>) -> Self {
        Self { steps, state: StageState::Ready, changes, blocked: Vec::new() }
    }

    /// It may not go on, for reasons of which there is at least one.
    fn waiting(blocked: Vec<Blocked>, changes: Vec<String>) -> Self {
        Self { steps: Vec::new(), state: StageState::Waiting, changes, blocked }
    }

    /// Others are at work.
    fn running(blocked: Vec<Blocked>, changes: Vec<String>) -> Self {
        Self { steps: Vec::new(), state: StageState::Running, changes, blocked }
    }
}
