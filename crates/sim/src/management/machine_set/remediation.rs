//! Machines that something is wrong with, as their health check says, are deleted; the set then makes others.

use std::cmp::Reverse;
use std::sync::Arc;

use windlass_api::annotation;
use windlass_api::kind::cluster_api::{Amount, Machine};
use windlass_api::kind::condition;

use super::{View, fact, preflight};
use crate::management::conditions::{self, Fact};
use crate::management::context::{Error, deleting};
use crate::management::write;

/// The word for a machine that goes for this.
const MACHINE_DELETING: &str = "RemediationMachineDeleting";

/// Deletes those that may go now, and says of the others why not.
pub(super) async fn machines(view: &View<'_>) -> Result<(), Error> {
    let (ill, others): (Vec<&Arc<Machine>>, Vec<_>) =
        view.machines.iter().partition(|machine| fact::to_be_remediated(machine) && !deleting(&machine.metadata));
    if ill.is_empty() {
        return Ok(());
    }
    if !view.is_current() {
        let why = "Machine won't be remediated because it is pending removal due to rollout";
        return say_all(view, &ill, &Fact::no("OwnerRemediated", "CannotBeRemediated", why)).await;
    }
    let (mut now, later) = split(view, ill, &others);
    if let Some(limit) = limit(view) {
        let limit = text(&limit);
        let why = format!(
            "Waiting because there are already too many remediations in progress (spec.strategy.remediation.maxInFlight is {limit})"
        );
        say_all(view, &later, &Fact::no("OwnerRemediated", "RemediationDeferred", why)).await?;
    }
    let refusals = preflight::refusals(view);
    if !refusals.is_empty() {
        let why = format!("* {}", refusals.join("\n* "));
        return say_all(view, &now, &Fact::no("OwnerRemediated", "RemediationDeferred", why)).await;
    }
    // It is said first: a machine that goes is not looked at again.
    say_all(view, &now, &Fact::no("OwnerRemediated", MACHINE_DELETING, "Machine is deleting")).await?;
    for machine in now.drain(..) {
        write::delete(view.turn, &**machine).await?;
    }
    Ok(())
}

/// How many may be on their way out at a time.
fn limit(view: &View<'_>) -> Option<Amount> {
    view.deployment.as_ref()?.spec.remediation.as_ref()?.max_in_flight.clone()
}

fn text(amount: &Amount) -> String {
    match amount {
        Amount::Count(count) => count.to_string(),
        Amount::Share(share) => share.clone(),
    }
}

/// Those whose turn it is, and those who wait. What was asked for goes first, then the newest: it may not carry anything yet.
fn split<'a>(
    view: &View<'_>,
    mut ill: Vec<&'a Arc<Machine>>,
    others: &[&Arc<Machine>],
) -> (Vec<&'a Arc<Machine>>, Vec<&'a Arc<Machine>>) {
    ill.sort_by_key(|machine| {
        let asked_for =
            machine.metadata.annotations.as_ref().is_some_and(|all| annotation::REMEDIATE_MACHINE.is_in(all));
        let made = machine.metadata.creation_timestamp.as_ref().map(|at| at.0);
        (!asked_for, Reverse(made), machine.metadata.name.clone())
    });
    let replicas = view.deployment.as_ref().and_then(|deployment| deployment.spec.replicas).unwrap_or(1);
    let Some(limit) = limit(view).and_then(|limit| limit.of_rounded_up(replicas)) else { return (ill, Vec::new()) };
    let in_flight =
        others.iter().filter(|machine| deleting(&machine.metadata) && says(machine, MACHINE_DELETING)).count();
    let room = usize::try_from(limit).unwrap_or(usize::MAX).saturating_sub(in_flight);
    let later = ill.split_off(room.min(ill.len()));
    (ill, later)
}

fn says(machine: &Machine, reason: &str) -> bool {
    let conditions = machine.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    condition(conditions, "OwnerRemediated").is_some_and(|said| said.reason == reason)
}

async fn say_all(view: &View<'_>, machines: &[&Arc<Machine>], fact: &Fact) -> Result<(), Error> {
    for machine in machines {
        let mut status = machine.status.clone().unwrap_or_default();
        conditions::set(&mut status.conditions, fact.clone(), machine.metadata.generation, &view.turn.now());
        if machine.status.as_ref() != Some(&status) {
            write::status(view.turn, &***machine, &status).await?;
        }
    }
    Ok(())
}
