//! Every state that can be reached, breadth first, so that the first walk to a breach is one of the shortest.

use std::collections::BTreeMap;
use std::fmt::Write;

use windlass_plan::gate::Gates;

use super::environment::{self, Limits};
use super::era::Era;
use super::memory::Memory;
use super::moves::{By, What};
use super::ours::{self, Planner};
use super::roll::Roller;
use super::rule::{Breach, Event, Exemption, Id, judge_event, judge_state};
use super::state::{Job, State};

/// A search.
pub struct Search<'e> {
    pub era: &'e Era,
    pub gates: Gates,
    pub limits: Limits,
    pub exemptions: &'e [Exemption],
    /// Whether one broken rule is enough to know.
    pub stops_at_a_breach: bool,
}

/// What was found.
pub struct Found {
    pub states: Vec<State>,
    /// How each state was first reached.
    from: Vec<Option<(u32, By, What)>>,
    /// Where a kind environment and our own steps lead from each state.
    kind: Vec<Vec<u32>>,
    pub transitions: u64,
    /// How many different questions the planner and the roll were asked.
    pub asked: usize,
    /// How walks end, how many, and the first of them; or one that does not.
    pub ends: Result<BTreeMap<String, (usize, u32)>, String>,
    /// The rules that were broken, by what, with the shortest walk to each.
    pub breaches: BTreeMap<(Id, String), (Breach, String)>,
}

/// How many states a search may have before it is called endless.
const STATES_MAX: usize = 6_000_000;

impl Search<'_> {
    /// All states that can be reached from this one without a rule being broken.
    pub fn run(&self, start: State) -> Found {
        let planner = Planner::new(self.era, self.gates.clone());
        let roller = Roller::new(self.era, self.gates.clone());
        let mut index: Memory<State, u32> = Memory::default();
        let mut found = Found::beginning_with(start.canonical());
        index.insert(start.canonical(), 0);
        let mut at = 0;
        while at < found.states.len() {
            let here = u32::try_from(at).unwrap();
            let moves = self.moves(&planner, &roller, &found.states[at]);
            found.transitions += u64::try_from(moves.len()).unwrap();
            let (mut kind, mut patient) = (Vec::new(), Vec::new());
            for moved in &moves {
                let Some(next) = self.visit(&mut found, &mut index, here, moved) else {
                    if self.stops_at_a_breach {
                        return found;
                    }
                    // What comes after a rule was broken is of no interest.
                    continue;
                };
                match (moved.by, moved.what) {
                    _ if next == here => {}
                    (By::Planner | By::Roll | By::Kind, _) => kind.push(next),
                    (By::Adverse, What::GivesUp | What::TimeIsUp(_)) => patient.push(next),
                    _ => {}
                }
            }
            // Only where nothing else can happen does time alone go on.
            found.kind.push(if kind.is_empty() { patient } else { kind });
            assert!(found.states.len() < STATES_MAX, "there is no end to it");
            at += 1;
        }
        found.asked = planner.asked() + roller.asked();
        found
    }

    /// The number of the state that this leads to; `None` if a rule was broken on the way.
    fn visit(&self, found: &mut Found, index: &mut Memory<State, u32>, here: u32, moved: &Moved) -> Option<u32> {
        let Moved { by, what, decided_on, before, after } = moved;
        let event = Event { era: self.era, before, decided_on, what: *what, after, exemptions: self.exemptions };
        if let Some(breach) = judge_event(&event) {
            found.breached(breach, here, moved);
            return None;
        }
        let canonical = after.canonical();
        if let Some(known) = index.get(&canonical) {
            return Some(*known);
        }
        if let Some(breach) = judge_state(&event) {
            found.breached(breach, here, moved);
            return None;
        }
        let number = u32::try_from(found.states.len()).unwrap();
        index.insert(canonical, number);
        found.states.push(canonical);
        found.from.push(Some((here, *by, *what)));
        Some(number)
    }

    fn moves(&self, planner: &Planner<'_>, roller: &Roller<'_>, state: &State) -> Vec<Moved> {
        let view = planner.view(state, None);
        assert_eq!(view.findings, Vec::<String>::new(), "the second opinion agrees with the plan for {state:?}");
        let mut moved = Vec::new();
        let around = environment::moves(self.era, state, &self.limits);
        let steps: Vec<What> = view.record.into_iter().chain(view.steps.iter().copied()).collect();
        for what in &steps {
            if let Some(after) = ours::execute(state, state, *what) {
                moved.push(Moved { by: By::Planner, what: *what, decided_on: *state, before: *state, after });
            }
        }
        // A step that was planned while a machine could not be read.
        let taken = |slot: &usize| state.machines().any(|(seat, _)| seat.slot == *slot);
        for slot in (0..state.slots.len()).filter(|_| self.limits.gaps).filter(taken) {
            for what in planner.view(state, Some(slot)).steps.iter().filter(|what| !steps.contains(what)) {
                if let Some(after) = ours::execute(state, state, *what) {
                    moved.push(Moved { by: By::Planner, what: *what, decided_on: *state, before: *state, after });
                }
            }
        }
        // A step that was planned before one thing happened.
        for what in &steps {
            let others = steps.iter().filter(|other| *other != what);
            let done = others.filter_map(|other| ours::execute(state, state, *other));
            for meanwhile in around.iter().map(|(_, _, after)| *after).chain(done) {
                if let Some(after) = ours::execute(state, &meanwhile, *what) {
                    moved.push(Moved {
                        by: By::StalePlanner,
                        what: *what,
                        decided_on: *state,
                        before: meanwhile,
                        after,
                    });
                }
            }
        }
        let others = roller.moves(state, &self.limits).into_iter().chain(around);
        moved.extend(others.map(|(by, what, after)| Moved { by, what, decided_on: *state, before: *state, after }));
        moved
    }

    /// Whether every walk ends well, or in a reason that is reported: a walk that turns in circles or one that ends in silence
    /// is told.
    pub fn liveness(&self, found: &Found) -> Result<BTreeMap<String, (usize, u32)>, String> {
        if let Some(circle) = found.circle() {
            let states: Vec<String> = circle.iter().map(|at| format!("{:?}", found.states[*at])).collect();
            let walk = found.walk(u32::try_from(circle[0]).unwrap());
            return Err(format!("this goes round in circles:\n{walk}\n{}", states.join("\n")));
        }
        let planner = Planner::new(self.era, self.gates.clone());
        let mut ends: BTreeMap<String, (usize, u32)> = BTreeMap::new();
        for (at, state) in found.states.iter().enumerate().filter(|(at, _)| found.kind[*at].is_empty()) {
            let view = planner.view(state, None);
            let mut reasons = view.reasons.clone();
            reasons.sort_unstable();
            reasons.dedup();
            let end = match (view.at_rest, reasons.as_slice()) {
                (true, _) => "at the target".to_owned(),
                (false, []) => {
                    let walk = found.walk(u32::try_from(at).unwrap());
                    return Err(format!("this ends in silence:\n{walk}\n{state:?}"));
                }
                (false, reasons) => reasons.join(", "),
            };
            let busy = matches!(state.job, Job::Active { .. }) && !state.paused;
            if busy {
                let walk = found.walk(u32::try_from(at).unwrap());
                return Err(format!("a Job does nothing for ever:\n{walk}\n{state:?}"));
            }
            let first = u32::try_from(at).unwrap();
            ends.entry(end).or_insert((0, first)).0 += 1;
        }
        Ok(ends)
    }
}

struct Moved {
    by: By,
    what: What,
    decided_on: State,
    before: State,
    after: State,
}

impl Found {
    fn beginning_with(start: State) -> Self {
        Self {
            states: vec![start],
            from: vec![None],
            kind: Vec::new(),
            transitions: 0,
            asked: 0,
            ends: Ok(BTreeMap::new()),
            breaches: BTreeMap::new(),
        }
    }

    fn breached(&mut self, breach: Breach, here: u32, moved: &Moved) {
        let Moved { by, what, after, .. } = moved;
        let word = format!("{what:?}").split([' ', '(']).next().unwrap_or_default().to_owned();
        let key = (breach.rule, word);
        if !self.breaches.contains_key(&key) {
            let walk = format!("{}  {by:?} {what:?}\n{after:?}", self.walk(here));
            self.breaches.insert(key, (breach, walk));
        }
    }

    /// How a state was reached.
    pub fn walk(&self, to: u32) -> String {
        let mut moves = Vec::new();
        let mut at = to;
        while let Some((from, by, what)) = self.from[at as usize] {
            moves.push((by, what));
            at = from;
        }
        let mut text = String::new();
        for (by, what) in moves.iter().rev() {
            writeln!(text, "  {by:?} {what:?}").unwrap();
        }
        text
    }

    /// States that lead back to the first of them, if there are any.
    fn circle(&self) -> Option<Vec<usize>> {
        const NEW: u8 = 0;
        const OPEN: u8 = 1;
        const DONE: u8 = 2;
        let mut mark = vec![NEW; self.states.len()];
        for root in 0..self.states.len() {
            if mark[root] != NEW {
                continue;
            }
            let mut path = vec![(root, 0)];
            mark[root] = OPEN;
            while let Some((at, child)) = path.last_mut() {
                let Some(next) = self.kind[*at].get(*child).map(|next| *next as usize) else {
                    mark[*at] = DONE;
                    path.pop();
                    continue;
                };
                *child += 1;
                match mark[next] {
                    NEW => {
                        mark[next] = OPEN;
                        path.push((next, 0));
                    }
                    OPEN => return Some(path.iter().map(|(at, _)| *at).skip_while(|at| *at != next).collect()),
                    _ => {}
                }
            }
        }
        None
    }
}
