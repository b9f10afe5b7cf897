//! Giving an attempt up.
//!
//! Before the first member is removed, all that an attempt has made is one machine more: deleting it, and writing the old
//! version into kubeadm's configuration again, leaves what was before. Afterwards there is only forward.
//!
//! ```text
//! leave      the replacement goes: its lead, its member of etcd, the machine, and what a machine was to be made from
//! restore    kubeadm's configuration names the old version again, and no node that is gone
//! unmark     the id goes; the base of a name stays, as after an update
//! ```
//!
//! What only adds to the workload cluster (the configuration of kubelets of the new minor, rights of joining nodes) stays: it
//! does no harm, and the next attempt needs it again.

use std::fmt;

use serde::Serialize;
use windlass_api::name::{MachineName, UpdateId};

use super::decision::{foreign_or_missing, hands_off, patiently, unmark};
use super::row::{Row, rows};
use super::{Failure, Next, Part, PartState, Preparation, RollInput, RollStep, Wait, etcd, prepare, replace};
use crate::gate;
use crate::inventory::{EtcdMember, Machine};

/// Why an attempt cannot be given up any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Irrevocable {
    /// A machine has been replaced.
    Replaced {
        /// By which.
        by: MachineName,
    },
    /// The member of a machine that is still there has left etcd.
    MemberLeft {
        /// Whose.
        machine: MachineName,
    },
    /// Nobody can tell.
    Unknown {
        /// Why not.
        why: String,
    },
}

impl fmt::Display for Irrevocable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replaced { by } => write!(f, "the machine {by} has taken another's place"),
            Self::MemberLeft { machine } => write!(f, "the member of the machine {machine} has left etcd"),
            Self::Unknown { why } => write!(f, "it is not known whether a member has left etcd: {why}"),
        }
    }
}

/// Why an attempt cannot be given up any more; `None` while it can.
pub fn irrevocable(machines: &[Machine], etcd: Result<&[EtcdMember], &str>, id: UpdateId) -> Option<Irrevocable> {
    // Nothing is replaced where it is not clear what replaces what.
    let rows = rows(machines, id).ok()?;
    let replaced = rows.iter().find(|row| row.original.is_none());
    if let Some(by) = replaced.and_then(|row| row.replacement) {
        return Some(Irrevocable::Replaced { by: by.name.clone() });
    }
    let original = rows.iter().find_map(|row| row.replacement.and(row.original))?;
    match etcd {
        Err(why) => Some(Irrevocable::Unknown { why: why.to_owned() }),
        Ok(members) => match etcd::member_of(original, members) {
            Some(_) => None,
            None => Some(Irrevocable::MemberLeft { machine: original.name.clone() }),
        },
    }
}

/// What to do next to give an attempt up. Of the attempt, the version is the one that is to be again what the machines have; of
/// what was observed, `unprepared` is about that version, and `parts` has everything that there is under the names of
/// replacements. Asking again after [`Next::Done`] is answered by `Done`.
pub fn next(input: &RollInput) -> Next {
    match proposed(input) {
        Next::Do(step) => gate::roll_step(input, &step).map_or(Next::Do(step), Next::Blocked),
        other => other,
    }
}

fn proposed(input: &RollInput) -> Next {
    let observed = &input.observed;
    if let Some(next) = hands_off(input) {
        return next;
    }
    if let Some(failure) = foreign_or_missing(input) {
        return Next::Failed(failure);
    }
    let etcd = observed.etcd.as_deref().map_err(String::as_str);
    match irrevocable(&observed.machines, etcd, input.attempt.id) {
        None => {}
        Some(Irrevocable::Unknown { why }) => return patiently(input, Wait::AtRest { missing: why }),
        Some(why) => return Next::Failed(Failure::Irrevocable { why }),
    }
    let rows = match rows(&observed.machines, input.attempt.id) {
        Ok(rows) => rows,
        Err(failure) => return Next::Failed(failure),
    };
    leave(input, &rows)
        .or_else(|| parts(input, &rows))
        .or_else(|| unstarted(input))
        .or_else(|| restore(input))
        .or_else(|| unmark(input))
        .unwrap_or(Next::Done)
}

/// The machine that has come goes, while the one that it was to replace votes.
fn leave(input: &RollInput, rows: &[Row<'_>]) -> Option<Next> {
    let (original, replacement) = rows.iter().find_map(|row| Some((row.original?, row.replacement?)))?;
    Some(replace::foreign(input, replacement).unwrap_or_else(|| replace::discard(input, original, replacement)))
}

/// What a machine was to be made from goes. What has the name and is of nobody's attempt stays.
fn parts(input: &RollInput, rows: &[Row<'_>]) -> Option<Next> {
    rows.iter().find_map(|row| {
        let parts = input.observed.parts.get(&row.name)?;
        let states = [(Part::Infrastructure, &parts.infrastructure), (Part::Configuration, &parts.configuration)];
        states.into_iter().find_map(|(part, state)| match state {
            PartState::Absent | PartState::Foreign { .. } => None,
            PartState::Present => Some(Next::Do(RollStep::DeletePart { machine: row.name.clone(), part })),
            PartState::Leaving => Some(patiently(input, Wait::PartGone { machine: row.name.clone(), part })),
        })
    })
}

/// A member that never started counts in the quorum until it is removed.
fn unstarted(input: &RollInput) -> Option<Next> {
    let members = match &input.observed.etcd {
        Ok(members) => members,
        Err(why) => return Some(patiently(input, Wait::AtRest { missing: why.clone() })),
    };
    let step = RollStep::RemoveMember { id: etcd::unstarted(members)?.id };
    Some(match gate::roll_step(input, &step) {
        None => Next::Do(step),
        Some(refusal) => patiently(input, Wait::AtRest { missing: refusal.to_string() }),
    })
}

/// Whoever joins next is to be as the others are.
fn restore(input: &RollInput) -> Option<Next> {
    if input.observed.unprepared.contains(&Preparation::KubeadmConfig) {
        return Some(Next::Do(RollStep::RestoreKubeadmConfig));
    }
    prepare::endpoints(input)
}
