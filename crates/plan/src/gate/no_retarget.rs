//! No update changes its target on the way.
//!
//! What was agreed on is an envelope, and its digest is on record. A release whose content was changed, or a cluster that is asked
//! to be something else, is for the next update: this one would leave machines of three kinds behind.

use super::Blocked;
use crate::envelope::Envelope;
use crate::inventory::{UpdateRecord, UpdateRecordState};

/// Refuses to go on with an update that would lead elsewhere than when it began.
pub fn no_retarget(envelope: &Envelope, record: &UpdateRecord) -> Option<Blocked> {
    let runs = record.state == UpdateRecordState::Running;
    (runs && envelope.digest() != record.envelope_digest).then(|| Blocked::Retargeted { update: record.name.clone() })
}
