//! The order of things.

use jiff::{SignedDuration, Timestamp};
use windlass_api::name::UpdateId;

use super::row::{Row, rows};
use super::{Failure, HandsOff, Next, RollInput, RollStep, Wait, prepare, replace, rest};
use crate::gate::{self, Blocked, Gate};
use crate::inventory::Machine;

/// What to do next, given all that there is to know. Doing it and asking again replaces a control plane; asking again after
/// [`Next::Done`] is answered by `Done`. No step is proposed that a gate refuses, whatever the order of things would be.
pub fn next(input: &RollInput) -> Next {
    match proposed(input) {
        Next::Do(step) => gate::roll_step(input, &step).map_or(Next::Do(step), Next::Blocked),
        other => other,
    }
}

fn proposed(input: &RollInput) -> Next {
    let machines = &input.observed.machines;
    if !machines.is_empty() && has_ended(machines, input.attempt.id) {
        return Next::Done;
    }
    if let Some(next) = hands_off(input) {
        return next;
    }
    if let Some(failure) = foreign_or_missing(input) {
        return Next::Failed(failure);
    }
    let rows = match rows(machines, input.attempt.id) {
        Ok(rows) => rows,
        Err(failure) => return Next::Failed(failure),
    };
    prepare::next(input)
        .or_else(|| mark(input, &rows))
        .or_else(|| replace::carry_on(input, &rows))
        .or_else(|| rest::next(input, &rows))
        .or_else(|| replace::begin(input, &rows))
        .or_else(|| unmark(input))
        .unwrap_or(Next::Done)
}

/// A machine that another update has not let go of is not passed over: the run would end well with nothing done.
pub(super) fn foreign_or_missing(input: &RollInput) -> Option<Failure> {
    let machines = &input.observed.machines;
    if machines.is_empty() {
        return Some(Failure::NoMachines);
    }
    match input.gates.ask(Gate::OneAttempt, || gate::one_attempt(machines, input.attempt.id))? {
        Blocked::ForeignAttempt { machine, theirs } => Some(Failure::ForeignAttempt { machine, theirs }),
        _ => None,
    }
}

/// Whether an attempt has ended, and nothing else has to be known: the marks are the last to go, so where there are none, and
/// nothing is left to replace, all else is done.
pub fn has_ended(machines: &[Machine], id: UpdateId) -> bool {
    machines.iter().all(|machine| machine.update.is_none() && machine.is_made_by(id))
}

/// A cluster that somebody holds is waited for, for as long as they like: it is no fault of the attempt, so it costs none. One
/// that is lost will not come back.
pub(super) fn hands_off(input: &RollInput) -> Option<Next> {
    let hands_off = input.observed.hands_off.as_ref()?;
    let refusal = input.gates.ask(Gate::NotPaused, || gate::not_paused(Some(hands_off.by())))?;
    Some(match hands_off {
        HandsOff::Held { by } => patiently(input, Wait::Released { by: by.clone() }),
        HandsOff::Lost { .. } => Next::Blocked(refusal),
    })
}

/// Marks every machine that is to be replaced, before any is.
fn mark(input: &RollInput, rows: &[Row<'_>]) -> Option<Next> {
    let unmarked = rows.iter().filter_map(|row| Some((row, row.original?)));
    let mut unmarked: Vec<_> = unmarked.filter(|(_, original)| original.update != Some(input.attempt.id)).collect();
    unmarked.sort_by_key(|(row, original)| (row.replacement.is_none(), &original.name));
    let (row, original) = unmarked.first()?;
    Some(Next::Do(RollStep::Mark { machine: original.name.clone(), base: row.base.clone() }))
}

/// The update has ended: its id goes, the base of the name stays.
pub(super) fn unmark(input: &RollInput) -> Option<Next> {
    let marked = input.observed.machines.iter().filter(|machine| machine.update.is_some());
    let machine = marked.min_by_key(|machine| &machine.name)?;
    Some(Next::Do(RollStep::Unmark { machine: machine.name.clone() }))
}

/// Waits as long as may be waited for this, and then gives up.
pub(super) fn patiently(input: &RollInput, wait: Wait) -> Next {
    let until = later(waiting_since(input, &wait), wait.patience(&input.attempt));
    if input.now < until { Next::Wait { wait, until } } else { Next::Failed(Failure::TimedOut { wait }) }
}

/// Since when this run has been waiting for the same.
pub(super) fn waiting_since(input: &RollInput, wait: &Wait) -> Timestamp {
    let waiting = input.waiting.as_ref().filter(|waiting| waiting.wait.is_same(wait));
    waiting.map_or(input.now, |waiting| waiting.since)
}

/// A time that cannot be told any more is far enough in the future.
pub(super) fn later(time: Timestamp, by: SignedDuration) -> Timestamp {
    time.checked_add(by).unwrap_or(Timestamp::MAX)
}
