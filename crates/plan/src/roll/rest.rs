//! A control plane at rest: every machine ready, and etcd made of exactly these machines.
//!
//! Nothing is added to a control plane, and nothing called done, unless this holds: one machine more on a control plane that
//! already lacks one can cost it its quorum.

use super::decision::patiently;
use super::row::Row;
use super::{Failure, Next, RollInput, RollStep, Wait, etcd};
use crate::gate::{self, Blocked};
use crate::inventory::MachineState;

/// What the control plane needs to come to rest.
pub fn next(input: &RollInput, rows: &[Row<'_>]) -> Option<Next> {
    let refusal = unrest(input)?;
    // A member that never started counts in the quorum until it is removed. It is, when nobody is left who could start it: the
    // machine that was joining is gone for good.
    let members = input.observed.etcd.as_deref().unwrap_or_default();
    let sweep = etcd::unstarted(members).map(|member| RollStep::RemoveMember { id: member.id });
    if let Some(step) = sweep.filter(|step| gate::roll_step(input, step).is_none()) {
        return Some(Next::Do(step));
    }
    Some(match patiently(input, Wait::AtRest { missing: refusal.to_string() }) {
        Next::Failed(late) => Next::Failed(lost(rows).unwrap_or(late)),
        waiting => waiting,
    })
}

/// A control plane is at rest if nothing would forbid one more machine to join it, whichever.
fn unrest(input: &RollInput) -> Option<Blocked> {
    let name = &input.observed.machines.first()?.name;
    gate::roll_step(input, &RollStep::CreateMachine { original: name.clone(), name: name.clone() })
}

/// A replacement that is not well and whose original is gone: it may be all that there is, so it is not made anew.
fn lost(rows: &[Row<'_>]) -> Option<Failure> {
    rows.iter().filter(|row| row.original.is_none()).find_map(|row| {
        let machine = row.replacement?;
        let why = format!("the machine of {} that it replaces is gone", row.base);
        let is_ready = matches!(machine.state, MachineState::Ready { .. });
        (!is_ready).then(|| Failure::ReplacementLost { machine: machine.name.clone(), why })
    })
}
