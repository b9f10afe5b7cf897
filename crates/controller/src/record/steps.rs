//! What was written for an update, for its record. What the Job's pods write is told by the machines themselves.

use std::collections::BTreeSet;

use windlass_api::kind::cluster_update::{StepOutcome, StepRecord};
use windlass_api::name::MachineName;
use windlass_plan::inventory::{Machine, MachineState};
use windlass_plan::step::Stage;

use super::Recorded;
use super::condition::moment;
use crate::execute::ExecutedStep;

/// How many steps are kept. Enough for all machines of a large cluster; an update that needs more has been repeating itself.
const STEPS_MAX: usize = 200;
/// What a machine of the control plane is to the cluster, whichever it is.
pub(super) const MACHINE: &str = "control-plane/Machine";

/// The steps of an update, with those of this look.
pub(super) fn steps(before: &[StepRecord], recorded: &Recorded<'_>) -> Vec<StepRecord> {
    let mut steps = before.to_vec();
    for executed in &recorded.executed.steps {
        put(&mut steps, executed);
    }
    let update = recorded.input.inventory.update.as_ref().map(|update| update.id);
    let machines = &recorded.input.inventory.control_plane.machines;
    let now = moment(recorded.input.now);
    for machine in machines.iter().filter(|machine| update.is_some_and(|update| machine.is_made_by(update))) {
        made(&mut steps, machine, &now);
    }
    let leaving = machines.iter().filter(|machine| matches!(machine.state, MachineState::Deleting { .. }));
    for machine in leaving {
        let object = format!("Machine/{}", machine.name);
        if !steps.iter().any(|step| step.verb == "delete" && step.object == object) {
            steps.push(begun("delete", object, now.clone()));
        }
    }
    if recorded.input.inventory.gaps.is_empty() {
        gone(&mut steps, machines, &now);
    }
    let extra = steps.len().saturating_sub(STEPS_MAX);
    steps.drain(..extra);
    steps
}

/// A step that was made again, with the same outcome, is what it was: a record that says so would be written for ever.
fn put(steps: &mut Vec<StepRecord>, executed: &ExecutedStep) {
    let new = StepRecord {
        id: executed.role.clone(),
        stage: executed.stage.as_str().to_owned(),
        verb: executed.verb.to_owned(),
        object: executed.object.clone(),
        started_at: moment(executed.started),
        finished_at: Some(moment(executed.finished)),
        outcome: Some(executed.outcome),
        message: executed.message.clone(),
    };
    let same = |step: &&mut StepRecord| (&step.id, &step.verb, &step.object) == (&new.id, &new.verb, &new.object);
    match steps.iter_mut().find(same) {
        Some(known) if (known.outcome, &known.message) == (new.outcome, &new.message) => {}
        Some(known) => *known = StepRecord { started_at: known.started_at.clone(), ..new },
        None => steps.push(new),
    }
}

/// A machine that the Job made, and whether it has become a node.
fn made(steps: &mut Vec<StepRecord>, machine: &Machine, now: &str) {
    let object = format!("Machine/{}", machine.name);
    let position = steps.iter().position(|step| step.verb == "create" && step.object == object);
    let position = position.unwrap_or_else(|| {
        steps.push(begun("create", object, moment(machine.created)));
        steps.len() - 1
    });
    if matches!(machine.state, MachineState::Ready { .. })
        && let Some(step) = steps.get_mut(position).filter(|step| step.outcome.is_none())
    {
        step.finished_at = Some(now.to_owned());
        step.outcome = Some(StepOutcome::Done);
    }
}

/// Machines that were on their way out, and are not there any more.
fn gone(steps: &mut [StepRecord], machines: &[Machine], now: &str) {
    let there: BTreeSet<&MachineName> = machines.iter().map(|machine| &machine.name).collect();
    let is_there = |object: &str| {
        let name = object.strip_prefix("Machine/").and_then(|name| MachineName::new(name).ok());
        name.is_some_and(|name| there.contains(&name))
    };
    let open = steps.iter_mut().filter(|step| step.verb == "delete" && step.id == MACHINE && step.outcome.is_none());
    for step in open.filter(|step| !is_there(&step.object)) {
        step.finished_at = Some(now.to_owned());
        step.outcome = Some(StepOutcome::Done);
    }
}

/// A step of the Job that goes on.
fn begun(verb: &str, object: String, started_at: String) -> StepRecord {
    StepRecord {
        id: MACHINE.to_owned(),
        stage: Stage::ControlPlane.as_str().to_owned(),
        verb: verb.to_owned(),
        object,
        started_at,
        finished_at: None,
        outcome: None,
        message: None,
    }
}
