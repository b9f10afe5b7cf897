//! What may go wrong for reasons that are known before anything is run.

use serde::Serialize;
use windlass_sim::world::World;

use crate::rehearsal::Request;

/// Something that may go wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Risk {
    /// What it is called, always the same: `PDB-NEVER`.
    pub id: String,
    /// How bad it is.
    pub severity: String,
    /// The object, as `Kind/name`.
    pub object: String,
    /// What may happen.
    pub message: String,
    /// What is known that says so.
    pub because: Vec<String>,
    /// What a person can do about it.
    pub way_out: String,
}

/// What is known of an update before it is run. The one place where risks come into a report.
pub(super) fn risks(_start: &World, _request: &Request) -> Vec<Risk> {
    Vec::new()
}
