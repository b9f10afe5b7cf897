//! The conditions of clusters and updates, as kstatus reads them: `Ready`, `Stalled` when waiting will not help, and facts that
//! others can wait for.

use jiff::Timestamp;
use windlass_api::condition::{ConditionStatus, ConditionType};
use windlass_api::kind::{Condition, condition};
use windlass_plan::inventory::ImageState;
use windlass_plan::release::Release;
use windlass_plan::report::{Report, Secrets};

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

/// A condition, not dated yet.
pub(super) fn of(
    type_: ConditionType,
    status: ConditionStatus,
    generation: Option<i64>,
    (reason, message): (&str, &str),
) -> Condition {
    Condition {
        type_: type_.as_str().to_owned(),
        status: status.as_str().to_owned(),
        observed_generation: generation,
        last_transition_time: String::new(),
        reason: reason.to_owned(),
        message: message.to_owned(),
    }
}

/// `Ready` and `Stalled`, not dated yet.
pub(super) fn conditions(waiting: Option<&Waiting>, generation: Option<i64>) -> Vec<Condition> {
    let stalled = waiting.filter(|waiting| waiting.stalled);
    vec![
        match waiting {
            None => of(ConditionType::Ready, ConditionStatus::True, generation, (AS_ASKED, "")),
            Some(waiting) => {
                of(ConditionType::Ready, ConditionStatus::False, generation, (&waiting.reason, &waiting.message))
            }
        },
        self::stalled(stalled.map(|stalled| (stalled.reason.as_str(), stalled.message.as_str())), generation),
    ]
}

/// `Stalled`, not dated yet: why waiting will not help, if it will not.
pub(super) fn stalled(why: Option<(&str, &str)>, generation: Option<i64>) -> Condition {
    match why {
        None => of(ConditionType::Stalled, ConditionStatus::False, generation, (MOVING, "")),
        Some(why) => of(ConditionType::Stalled, ConditionStatus::True, generation, why),
    }
}

/// `SecretsIntact`, not dated yet; nothing while they are still being made.
pub(super) fn secrets(secrets: &Secrets, generation: Option<i64>) -> Option<Condition> {
    let about = |status, why: (&str, &str)| Some(of(ConditionType::SecretsIntact, status, generation, why));
    match secrets {
        Secrets::NotYet => None,
        Secrets::Intact => about(ConditionStatus::True, ("AllThere", "")),
        Secrets::Missing(blocked) => {
            let message = format!("{blocked}: {}", blocked.way_out());
            about(ConditionStatus::False, (blocked.reason(), &message))
        }
        Secrets::Unknown { why } => about(ConditionStatus::Unknown, ("NotSeen", why)),
    }
}

/// `UpdatePending`, not dated yet: of a cluster that would be updated for nobody but Windlass, or whose update was
/// given up. Any other has none.
pub(super) fn pending(report: &Report, generation: Option<i64>) -> Option<Condition> {
    let blocked = report.pending.as_ref()?;
    let message = format!("{blocked}; {}", blocked.way_out());
    Some(of(ConditionType::UpdatePending, ConditionStatus::True, generation, (blocked.reason(), &message)))
}

/// `ReleaseAvailable`, not dated yet: of a cluster whose image is not what it was. One with its image has none.
pub(super) fn release(image: &ImageState, release: &Release, generation: Option<i64>) -> Option<Condition> {
    let (reason, message) = image.reason().zip(image.told(release))?;
    Some(of(ConditionType::ReleaseAvailable, ConditionStatus::False, generation, (reason, &message)))
}

/// Gives each condition the time at which its status last changed.
pub(super) fn dated(before: &[Condition], mut conditions: Vec<Condition>, now: Timestamp) -> Vec<Condition> {
    for new in &mut conditions {
        let old = condition(before, &new.type_).filter(|old| old.status == new.status);
        new.last_transition_time = old.map_or_else(|| moment(now), |old| old.last_transition_time.clone());
    }
    conditions
}

/// A time as objects carry it: RFC 3339, to the second.
pub(crate) fn moment(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
