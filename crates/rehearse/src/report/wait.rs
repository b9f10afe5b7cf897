//! What was waited for, and for how long.

use jiff::SignedDuration;
use serde::Serialize;
use windlass_api::kind::cluster_update::WaitingFor;

use crate::rehearsal::Rehearsal;

/// Something that was waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Wait {
    /// The stage that waited.
    pub stage: String,
    /// Why, in one word.
    pub reason: String,
    /// For which object, as `Kind/name`.
    pub object: String,
    /// Why, in a sentence, as it was said last.
    pub message: String,
    /// What was behind it; the last is the cause.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub because: Vec<String>,
    /// What a person can do about it; nothing where waiting is all there is to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub way_out: Option<String>,
    /// How long, in all.
    #[schemars(with = "String")]
    pub took: SignedDuration,
    /// It was still waited for at the end.
    pub at_the_end: bool,
}

/// What a run waited for, the longest first.
pub(super) fn waits(run: &Rehearsal) -> Vec<Wait> {
    let end = run.began + run.took;
    let mut waits: Vec<Wait> = Vec::new();
    for (index, waited) in run.waited.iter().enumerate() {
        let until = run.waited.get(index + 1).map_or(end, |next| next.at).max(waited.at);
        for on in &waited.on {
            add(&mut waits, on, waited.at.duration_until(until), index + 1 == run.waited.len());
        }
    }
    waits.sort_by_key(|wait| std::cmp::Reverse(wait.took));
    waits
}

fn add(waits: &mut Vec<Wait>, on: &WaitingFor, took: SignedDuration, at_the_end: bool) {
    let known = waits.iter().position(|wait| wait.reason == on.reason && wait.object == on.object);
    let before = known.map(|index| waits.remove(index).took).unwrap_or_default();
    waits.push(Wait {
        stage: on.stage.clone(),
        reason: on.reason.clone(),
        object: on.object.clone(),
        message: on.message.clone(),
        because: on.because.clone(),
        way_out: on.way_out.clone(),
        took: before + took,
        at_the_end,
    });
}
