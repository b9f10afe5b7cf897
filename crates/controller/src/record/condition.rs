//! The two conditions of a cluster, as kstatus reads them: `Ready`, and `Stalled` when waiting will not help.

use jiff::Timestamp;
use windlass_api::condition::{ConditionStatus, ConditionType};
use windlass_api::kind::tanzu::TanzuKubernetesClusterStatus;
use windlass_api::kind::{Condition, condition};
use windlass_plan::report::Report;

/// The reason of a cluster that waits for nothing.
pub(super) const AS_ASKED: &str = "AsAsked";
/// The reason of a cluster that is not stalled.
const MOVING: &str = "Moving";

/// What keeps a cluster from being as it was asked to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Waiting {
    /// Why, in one word.
    pub reason: String,
    /// Why, in a sentence.
    pub message: String,
    /// Waiting will not help.
    pub stalled: bool,
}

/// Both conditions, not dated yet.
pub(super) fn conditions(waiting: Option<&Waiting>, generation: Option<i64>) -> Vec<Condition> {
    let of = |type_: ConditionType, holds: bool, reason: &str, message: &str| Condition {
        type_: type_.as_str().to_owned(),
        status: (if holds { ConditionStatus::True } else { ConditionStatus::False }).as_str().to_owned(),
        observed_generation: generation,
        last_transition_time: String::new(),
        reason: reason.to_owned(),
        message: message.to_owned(),
    };
    let stalled = waiting.filter(|waiting| waiting.stalled);
    vec![
        match waiting {
            None => of(ConditionType::Ready, true, AS_ASKED, ""),
            Some(waiting) => of(ConditionType::Ready, false, &waiting.reason, &waiting.message),
        },
        match stalled {
            None => of(ConditionType::Stalled, false, MOVING, ""),
            Some(stalled) => of(ConditionType::Stalled, true, &stalled.reason, &stalled.message),
        },
    ]
}

/// The condition of a cluster that would be updated for nobody but Windlass. A cluster that would not has none.
pub(super) fn pending(report: &Report, generation: Option<i64>) -> Option<Condition> {
    let blocked = report.pending.as_ref()?;
    Some(Condition {
        type_: ConditionType::UpdatePending.as_str().to_owned(),
        status: ConditionStatus::True.as_str().to_owned(),
        observed_generation: generation,
        last_transition_time: String::new(),
        reason: blocked.reason().to_owned(),
        message: format!("{blocked}; {}", blocked.way_out()),
    })
}

/// Gives each condition the time at which its status last changed.
pub(super) fn dated(
    before: &TanzuKubernetesClusterStatus,
    mut status: TanzuKubernetesClusterStatus,
    now: Timestamp,
) -> TanzuKubernetesClusterStatus {
    for new in &mut status.conditions {
        let old = condition(&before.conditions, &new.type_).filter(|old| old.status == new.status);
        new.last_transition_time = old.map_or_else(|| moment(now), |old| old.last_transition_time.clone());
    }
    status
}

/// A time as objects carry it: RFC 3339, to the second.
pub(super) fn moment(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
