//! Whether an attempt can still be given up.
//!
//! Before the first member is removed, all that an attempt has made is one machine more: deleting it, and writing the old
//! version into kubeadm's configuration again, leaves what was before. Afterwards there is only forward.

use std::fmt;

use serde::Serialize;
use windlass_api::name::MachineName;

use super::row::rows;
use super::{RollInput, etcd};

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

/// Why the attempt cannot be given up any more; `None` while it can.
pub fn irrevocable(input: &RollInput) -> Option<Irrevocable> {
    let machines = &input.observed.machines;
    // Nothing is replaced where it is not clear what replaces what.
    let rows = rows(machines, input.attempt.id).ok()?;
    let replaced = rows.iter().find(|row| row.original.is_none());
    if let Some(by) = replaced.and_then(|row| row.replacement) {
        return Some(Irrevocable::Replaced { by: by.name.clone() });
    }
    let original = rows.iter().find_map(|row| row.replacement.and(row.original))?;
    match &input.observed.etcd {
        Err(why) => Some(Irrevocable::Unknown { why: why.clone() }),
        Ok(members) => match etcd::member_of(original, members) {
            Some(_) => None,
            None => Some(Irrevocable::MemberLeft { machine: original.name.clone() }),
        },
    }
}
