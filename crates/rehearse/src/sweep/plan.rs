//! One trial: what is done to a run, and what must come of it.

use windlass_runtime::chance::Seed;
use windlass_sim::fault::{Action, Fault, Moment, Scenario, Span, When};

use crate::seam::Old;

/// What is done to a run, and what must come of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    /// What goes wrong, besides what the subject has anyway.
    pub(super) scenario: Scenario,
    /// The writes at which somebody crashes.
    pub(super) crashes: Vec<(u64, Moment)>,
    /// What somebody does, and at which write.
    pub(super) edit: Option<Edit>,
    /// Another seed than the reference has.
    pub(super) seed: Option<Seed>,
    /// What must come of it.
    pub(super) expect: Expect,
    /// Invariants that do not hold because of what people do, whatever Windlass does.
    pub(super) tolerated: &'static [&'static str],
    /// What is as it would have been once, to see that the sweep finds it.
    pub(super) old: Vec<Old>,
}

/// What somebody does.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Edit {
    /// When.
    pub(super) at: At,
    /// What.
    pub(super) action: Action,
}

/// When somebody does something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    /// As soon as the wish is there, before anybody has seen it.
    Once,
    /// While the write of this number waits.
    Write(u64),
    /// When what was wished for is there, and nothing moves any more.
    End,
}

/// What must come of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expect {
    /// The same end, object by object, and the same objects on the way.
    Same,
    /// An end of the same shape: machines, nodes and add-ons as they are wished for, whatever their names.
    Alike,
    /// That, or an end that says why it is another: not all that breaks can be mended.
    Explained,
    /// The shape of what is wished for now: where the edit was refused that of the reference, and where it was accepted that of
    /// a run in which it comes when nobody is at work.
    Wished(At),
}

impl Plan {
    /// Nothing is done.
    pub(super) fn new(expect: Expect) -> Self {
        let (scenario, crashes, old) = (Scenario::default(), Vec::new(), Vec::new());
        Self { scenario, crashes, edit: None, seed: None, expect, tolerated: &[], old }
    }

    /// Somebody crashes.
    pub(super) fn crash(points: Vec<(u64, Moment)>) -> Self {
        Self { crashes: points, ..Self::new(Expect::Same) }
    }

    /// Something goes wrong.
    pub(super) fn fault(expect: Expect, fault: Fault, when: When) -> Self {
        Self { scenario: Scenario::default().and(fault, when), ..Self::new(expect) }
    }

    /// Somebody does something while a write waits.
    pub(super) fn edit(expect: Expect, number: u64, action: Action) -> Self {
        Self { edit: Some(Edit { at: At::Write(number), action }), ..Self::new(expect) }
    }

    /// And takes it back, or does something else, later.
    pub(super) fn then(mut self, at: Span, action: Action) -> Self {
        self.scenario = self.scenario.then(at, action);
        self
    }

    /// The same with invariants that people make fail.
    pub(super) fn tolerating(self, tolerated: &'static [&'static str]) -> Self {
        Self { tolerated, ..self }
    }
}
