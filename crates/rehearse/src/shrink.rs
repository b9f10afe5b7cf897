//! The smallest part of a scenario that still breaks an update: faults and actions are taken away as long as it stays broken in
//! the same way (delta debugging).

use serde::Serialize;
use windlass_sim::fault::{Injection, Scenario, Scheduled};
use windlass_sim::world::World;

use crate::matrix::{Outcome, outcome};
use crate::rehearsal::{Error, Rehearsal, Request, rehearse};
use crate::report::badness;

/// What is left of a scenario.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Shrunk {
    /// The smallest scenario that was found.
    pub scenario: Scenario,
    /// How it breaks the update.
    pub why: String,
    /// How many faults and actions there were.
    pub from: u32,
    /// How many there are.
    pub to: u32,
    /// How many runs it took.
    pub runs: u32,
}

/// Part of a scenario.
#[derive(Clone)]
enum Part {
    Fault(Injection),
    Action(Scheduled),
}

/// Shrinks the scenario of a request; nothing if it does not break the update.
pub fn shrink(start: &World, request: &Request) -> Result<Option<Shrunk>, Error> {
    let run = |faults: Scenario| rehearse(start, &Request { faults, ..request.clone() });
    let name = request.faults.name.clone();
    let put_together = |parts: &[Part]| {
        let mut scenario = Scenario { infrastructure: request.faults.infrastructure.clone(), ..Scenario::default() };
        scenario.name.clone_from(&name);
        for part in parts {
            match part {
                Part::Fault(fault) => scenario.faults.push(fault.clone()),
                Part::Action(action) => scenario.actions.push(action.clone()),
            }
        }
        scenario
    };
    let sound = run(put_together(&[]))?;
    let broken = run(request.faults.clone())?;
    let Outcome::Broken { why } = outcome(&broken, &sound, &[]) else { return Ok(None) };
    let sort = sort(&broken);
    let faults = request.faults.faults.iter().cloned().map(Part::Fault);
    let all: Vec<Part> = faults.chain(request.faults.actions.iter().cloned().map(Part::Action)).collect();
    let mut runs = 2;
    let left = smallest(all.clone(), |parts| {
        runs += 1;
        let tried = run(put_together(parts))?;
        Ok::<bool, Error>(self::sort(&tried) == sort && matches!(outcome(&tried, &sound, &[]), Outcome::Broken { .. }))
    })?;
    let count = |parts: &[Part]| u32::try_from(parts.len()).unwrap_or(u32::MAX);
    Ok(Some(Shrunk { from: count(&all), to: count(&left), scenario: put_together(&left), why, runs }))
}

/// In which way a run went wrong: how it ended, and the first rule that it broke.
fn sort(run: &Rehearsal) -> (u8, Option<String>) {
    (badness(&run.verdict), run.violations.first().map(|reported| reported.violation.id.clone()))
}

/// Takes parts away, large ones first, for as long as what is left is still so.
fn smallest<T: Clone, E>(mut all: Vec<T>, mut is_so: impl FnMut(&[T]) -> Result<bool, E>) -> Result<Vec<T>, E> {
    let mut size = all.len();
    while size > 0 {
        let mut from = 0;
        let mut has_shrunk = false;
        while from < all.len() {
            let until = (from + size).min(all.len());
            let rest: Vec<T> = all[..from].iter().chain(&all[until..]).cloned().collect();
            if is_so(&rest)? {
                (all, has_shrunk) = (rest, true);
            } else {
                from = until;
            }
        }
        // What could not go before may go now.
        if !(has_shrunk && size == 1) {
            size /= 2;
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_what_it_takes_and_nothing_else() {
        let check = |all: u32, needed: &[u32]| {
            let is_so = |parts: &[u32]| Ok::<bool, ()>(needed.iter().all(|need| parts.contains(need)));
            assert_eq!(smallest((0..all).collect(), is_so).unwrap(), needed, "{all}");
        };
        check(1, &[0]);
        check(10, &[3]);
        check(10, &[0, 9]);
        check(33, &[4, 5, 31]);
        check(8, &[]);
        check(0, &[]);
    }
}
