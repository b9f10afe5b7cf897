//! A second opinion on a plan. It shares types with the planner, and no code.
//!
//! Each rule is one function over what was observed and what would be written; its findings carry the id that the rule has
//! wherever it is checked. A rule whose gate was left out on purpose, which only a rehearsal does, warns instead of stopping:
//! otherwise nobody could be shown what the gate is for.

mod control_plane;
mod etcd;
mod package;
mod release;
mod roll;
mod update;
mod version;

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::gate::Gate;
use crate::inventory::ClusterState;
use crate::planner::{Planned, PlanningInput};
use crate::step::{Action, Place, Step};

pub use roll::roll;

/// A complaint about a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Finding {
    /// A stable id: `V1`, `D2`, `P1` …
    pub id: String,
    /// Whether it stops the plan.
    pub severity: Severity,
    /// The object that it is about, as `Kind/name`.
    pub object: String,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.id, self.object, self.message)
    }
}

/// Whether a finding stops a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub enum Severity {
    /// No step of the plan is executed.
    Fatal,
    /// It is shown.
    Warning,
}

/// One rule.
type Rule = fn(&PlanningInput, &Planned) -> Vec<Finding>;

/// The rules, in the order in which they complain.
const RULES: [Rule; 22] = [
    version::workers_behind_control_plane,
    version::nothing_is_left_too_far_behind,
    version::proxies_behind_control_plane,
    version::versions_go_up_by_one_minor,
    version::workers_join_their_own_minor,
    version::etcd_goes_up_by_one_minor,
    etcd::members_are_ready_for_one_more,
    etcd::members_are_the_machines,
    control_plane::one_machine_at_a_time,
    control_plane::all_machines_are_well,
    control_plane::certificates_before_machines,
    update::recorded_update_only,
    update::marked_by_one_update,
    update::nothing_after_failure,
    update::attempts_are_bounded,
    update::inside_the_envelope,
    package::packages_before_control_plane,
    package::pods_start_where_their_images_are,
    package::only_ours_is_deleted,
    nothing_while_paused,
    update::somebody_asked_for_it,
    release::kept_before_anything,
];

/// All complaints about a plan.
pub fn check(input: &PlanningInput, planned: &Planned) -> Vec<Finding> {
    RULES.iter().flat_map(|rule| rule(input, planned)).collect()
}

/// A finding about a step, which stops the plan as long as the gate for the same thing is in force.
fn finding(input: &PlanningInput, gate: Gate, id: &str, step: &Step, message: String) -> Finding {
    Finding { severity: severity(input.gates.has(gate)), ..fatal(id, step, message) }
}

fn severity(in_force: bool) -> Severity {
    if in_force { Severity::Fatal } else { Severity::Warning }
}

fn fatal(id: &str, step: &Step, message: String) -> Finding {
    let object = format!("{}/{}", step.action.kind(), step.action.name());
    Finding { id: id.to_owned(), severity: Severity::Fatal, object, message }
}

fn written(step: &Step) -> Option<&Value> {
    match &step.action {
        Action::Create { object } | Action::Apply { object, .. } => Some(object),
        Action::CreateSecret { .. } | Action::Delete { .. } => None,
    }
}

/// The steps on the management side. A Job of an add-on is another matter than the one that replaces machines.
fn managing(planned: &Planned) -> impl Iterator<Item = &Step> {
    planned.steps.iter().filter(|step| step.place == Place::Management)
}

fn of_kind<'p>(planned: &'p Planned, kind: &'static str) -> impl Iterator<Item = &'p Step> {
    managing(planned).filter(move |step| step.action.kind() == kind)
}

/// The steps by which machines of an existing control plane are replaced or joined by another: a Job, a Machine beside others,
/// or another version in what Cluster API rolls.
fn joins<'p>(input: &PlanningInput, planned: &'p Planned) -> impl Iterator<Item = &'p Step> {
    let beside_others = !input.inventory.control_plane.machines.is_empty();
    managing(planned).filter(move |step| match step.action.kind() {
        "Job" => replaces(step),
        "KubeadmControlPlane" => true,
        "Machine" => beside_others,
        _ => false,
    })
}

/// Whether a step makes a Job that replaces machines; one that gives an update up makes none.
fn replaces(step: &Step) -> bool {
    let verb = |job: &Value| job["spec"]["template"]["spec"]["containers"][0]["command"][2].clone();
    written(step).is_some_and(|job| verb(job) != "abort")
}

/// D4: nothing is written while somebody holds the cluster.
fn nothing_while_paused(input: &PlanningInput, planned: &Planned) -> Vec<Finding> {
    let ClusterState::Present { paused: Some(by), .. } = &input.inventory.cluster else { return Vec::new() };
    let held = |step: &Step| finding(input, Gate::NotPaused, "D4", step, format!("the cluster is paused: {by}"));
    planned.steps.iter().map(held).collect()
}
