//! The five conditions of packages, of which one is true at a time, and what people are told.

use std::time::Duration;

use jiff::Timestamp;
use windlass_api::kind::packaging::{PackageCondition, is_true};

use super::later;

pub(super) const RECONCILING: &str = "Reconciling";
pub(super) const RECONCILE_SUCCEEDED: &str = "ReconcileSucceeded";
pub(super) const RECONCILE_FAILED: &str = "ReconcileFailed";
pub(super) const DELETING: &str = "Deleting";
pub(super) const DELETE_FAILED: &str = "DeleteFailed";

/// What people are told of what nobody touches.
pub(super) const HELD: &str = "Canceled/paused";
/// Where a long complaint is.
pub(super) const SEE_MESSAGE: &str = "Error (see .status.usefulErrorMessage for details)";
/// How often packages are applied anew, unless somebody says otherwise.
pub(super) const SYNC_PERIOD: Duration = Duration::from_secs(600);
/// And at most.
const SYNC_PERIOD_MIN: Duration = Duration::from_secs(30);
/// How long the first line of a complaint may be.
const LINE_MAX: usize = 80;

/// How something is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    Reconciling,
    Succeeded,
    /// And why, in a sentence.
    Failed(String),
    Deleting,
    /// And why, in a sentence.
    DeleteFailed(String),
}

impl State {
    /// As conditions.
    pub(super) fn conditions(&self) -> Vec<PackageCondition> {
        let (type_, message) = match self {
            Self::Reconciling => (RECONCILING, None),
            Self::Succeeded => (RECONCILE_SUCCEEDED, None),
            Self::Failed(why) => (RECONCILE_FAILED, Some(why.clone())),
            Self::Deleting => (DELETING, None),
            Self::DeleteFailed(why) => (DELETE_FAILED, Some(why.clone())),
        };
        vec![PackageCondition { type_: type_.to_owned(), status: "True".to_owned(), reason: None, message }]
    }

    /// For people, in a line.
    pub(super) fn description(&self) -> String {
        match self {
            Self::Reconciling => "Reconciling".to_owned(),
            Self::Succeeded => "Reconcile succeeded".to_owned(),
            Self::Failed(why) => line(&format!("Reconcile failed: {why}")),
            Self::Deleting => "Deleting".to_owned(),
            Self::DeleteFailed(why) => line(&format!("Delete failed: {why}")),
        }
    }

    /// The one that conditions tell; `None` where they tell nothing.
    pub(super) fn of(conditions: &[PackageCondition]) -> Option<Self> {
        let message = |type_: &str| {
            let found = conditions.iter().find(|condition| condition.type_ == type_);
            found.and_then(|condition| condition.message.clone()).unwrap_or_default()
        };
        let is = |type_: &str| is_true(conditions, type_);
        match () {
            () if is(RECONCILING) => Some(Self::Reconciling),
            () if is(RECONCILE_SUCCEEDED) => Some(Self::Succeeded),
            () if is(RECONCILE_FAILED) => Some(Self::Failed(message(RECONCILE_FAILED))),
            () if is(DELETING) => Some(Self::Deleting),
            () if is(DELETE_FAILED) => Some(Self::DeleteFailed(message(DELETE_FAILED))),
            () => None,
        }
    }
}

/// The first line of a text, cut where it is too long.
fn line(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default();
    match first.char_indices().nth(LINE_MAX) {
        Some((end, _)) => format!("{}...", &first[..end]),
        None if text.lines().nth(1).is_some() => format!("{first}..."),
        None => first.to_owned(),
    }
}

/// How often something is done anew.
pub(super) fn sync_period(text: Option<&str>) -> Duration {
    text.and_then(duration).map_or(SYNC_PERIOD, |period| period.max(SYNC_PERIOD_MIN))
}

/// When something is tried again that has failed so often in a row: after 2, 4, 8 … seconds, but no later than it would be done
/// anew if it had gone well.
pub(super) fn retry_at(since: Timestamp, failures: u32, sync_period: Duration) -> Timestamp {
    let delay = if failures < 30 { Duration::from_secs(1 << failures) } else { sync_period };
    later(since, delay.min(sync_period))
}

/// A duration as Go spells it: `10m0s`, `1h30m`.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let mut seconds = 0_u64;
    let mut number = String::new();
    for character in text.chars() {
        let unit = match character {
            '0'..='9' => {
                number.push(character);
                continue;
            }
            'h' => 3_600,
            'm' => 60,
            's' => 1,
            _ => return None,
        };
        let count: u64 = std::mem::take(&mut number).parse().ok()?;
        seconds = seconds.checked_add(count.checked_mul(unit)?)?;
    }
    (number.is_empty() && !text.is_empty()).then(|| Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_spells_them() {
        for (text, seconds) in [("10m0s", 600), ("1h30m", 5_400), ("45s", 45)] {
            assert_eq!(duration(text), Some(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "10", "m", "1d", "-1s", "18446744073709551615h"] {
            assert_eq!(duration(text), None, "{text}");
        }
        assert_eq!(sync_period(Some("5s")), Duration::from_secs(30), "there is a least");
        assert_eq!(sync_period(None), SYNC_PERIOD);
    }

    #[test]
    fn failures_are_tried_again_later_each_time_up_to_the_sync_period() {
        for (failures, seconds) in [(1, 2), (3, 8), (9, 512), (10, 600), (29, 600), (30, 600), (u32::MAX, 600)] {
            let wanted = later(Timestamp::UNIX_EPOCH, Duration::from_secs(seconds));
            assert_eq!(retry_at(Timestamp::UNIX_EPOCH, failures, SYNC_PERIOD), wanted, "{failures}");
        }
    }

    #[test]
    fn one_condition_is_there_at_a_time_and_leads_back() {
        let why = || "it broke".to_owned();
        for state in
            [State::Reconciling, State::Succeeded, State::Failed(why()), State::Deleting, State::DeleteFailed(why())]
        {
            assert_eq!(state.conditions().len(), 1);
            assert_eq!(State::of(&state.conditions()), Some(state));
        }
        assert_eq!(State::of(&[]), None);
    }

    #[test]
    fn people_see_the_first_line_of_a_complaint() {
        assert_eq!(State::Failed("a\nb".to_owned()).description(), "Reconcile failed: a...");
        let long = State::Failed("ä".repeat(90)).description();
        assert_eq!(long.chars().count(), 83);
        assert!(long.ends_with("..."));
    }
}
