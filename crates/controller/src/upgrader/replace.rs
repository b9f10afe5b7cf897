//! One machine of the control plane, from the first look at it until it is gone and another does its work.

use std::time::Duration;

use jiff::SignedDuration;
use kube::{Resource, ResourceExt};
use windlass_api::kind::cluster_api::Machine;

use super::attempt::Attempt;
use super::row::Place;
use super::wait::Patience;
use super::{Error, health, remove, replacement, settle};

/// How long to look at a machine that has had its time: it may have become healthy after all, and the workload API may not
/// answer for a moment.
const LAST_LOOK: Duration = Duration::from_secs(30);

/// Replaces one machine.
pub async fn one(attempt: &Attempt<'_>, place: &Place) -> Result<(), Error> {
    let replacement = match &place.replacement {
        Some(begun) => match carried_on(attempt, place, begun).await? {
            Some(node) => return remove::original(attempt, place, &node).await,
            None => created(attempt, place).await?,
        },
        None => created(attempt, place).await?,
    };
    let patience = until_healthy(attempt, &replacement);
    let node = health::wait(attempt, place.name.as_str(), &patience).await?;
    tracing::info!(machine = %place.name, node, "the replacement is healthy");
    remove::original(attempt, place, &node).await
}

async fn created(attempt: &Attempt<'_>, place: &Place) -> Result<Machine, Error> {
    settle::control_plane(attempt).await?;
    let machine = replacement::create(attempt, place).await?;
    tracing::info!(machine = %place.name, replaces = place.original.name_any(), "the replacement is created");
    Ok(machine)
}

/// Looks at a replacement that an earlier run has created. Returns its node once it is healthy, or nothing if it had its time,
/// was not, and is gone.
async fn carried_on(attempt: &Attempt<'_>, place: &Place, begun: &Machine) -> Result<Option<String>, Error> {
    if begun.meta().deletion_timestamp.is_some() {
        remove::replacement(attempt, place, begun).await?;
        return Ok(None);
    }
    let patience = until_healthy(attempt, begun);
    let has_had_its_time = patience.is_over();
    let patience = if has_had_its_time { last_look(place) } else { patience };
    match health::wait(attempt, place.name.as_str(), &patience).await {
        Ok(node) => Ok(Some(node)),
        Err(Error::Waited { missing, .. }) if has_had_its_time => {
            tracing::info!(machine = %place.name, missing, "the replacement did not become healthy: it is made anew");
            remove::replacement(attempt, place, begun).await?;
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn last_look(place: &Place) -> Patience {
    Patience::of(LAST_LOOK, wanted(place.name.as_str()))
}

/// The time that a machine has is counted from its creation, not from the beginning of a run: a run that is killed again and
/// again gives it no more.
fn until_healthy(attempt: &Attempt<'_>, machine: &Machine) -> Patience {
    let now = attempt.access.clock.now();
    let created = machine.creation_timestamp().map_or(now, |time| time.0);
    let age = Duration::try_from(now.duration_since(created).max(SignedDuration::ZERO)).unwrap_or_default();
    Patience::rest_of(attempt.arguments.machine_timeout, age, wanted(&machine.name_any()))
}

fn wanted(machine: &str) -> String {
    format!("the machine {machine} to be healthy")
}
