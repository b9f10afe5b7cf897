//! Facts in the status of an object, since when, and why.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use windlass_api::condition::ConditionStatus;
use windlass_api::kind::Condition;

/// What everybody says who can do nothing before there is an API to join.
pub(super) const WAITING_FOR_CONTROL_PLANE: &str = "Waiting for Cluster control plane to be initialized";

/// Whether something holds, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fact {
    pub type_: &'static str,
    pub status: ConditionStatus,
    pub reason: &'static str,
    pub message: String,
}

impl Fact {
    /// It holds.
    pub(super) fn yes(type_: &'static str, reason: &'static str) -> Self {
        Self { type_, status: ConditionStatus::True, reason, message: String::new() }
    }

    /// It does not hold, for this reason.
    pub(super) fn no(type_: &'static str, reason: &'static str, message: impl Into<String>) -> Self {
        Self { type_, status: ConditionStatus::False, reason, message: message.into() }
    }

    /// Nobody can tell, for this reason.
    pub(super) fn unknown(type_: &'static str, reason: &'static str, message: impl Into<String>) -> Self {
        Self { type_, status: ConditionStatus::Unknown, reason, message: message.into() }
    }

    /// The same fact under another name.
    pub(super) fn named(self, type_: &'static str) -> Self {
        Self { type_, ..self }
    }

    /// Whether it holds.
    pub(super) fn holds(&self) -> bool {
        self.status == ConditionStatus::True
    }
}

/// Puts a fact among the conditions. As long as its status is the same, so is the time since when.
pub(super) fn set(conditions: &mut Vec<Condition>, fact: Fact, generation: Option<i64>, now: &Time) {
    let status = fact.status.to_string();
    let before = conditions.iter().position(|condition| condition.type_ == fact.type_);
    let since = before
        .and_then(|index| conditions.get(index))
        .filter(|condition| condition.status == status)
        .map_or_else(|| now.0.to_string(), |condition| condition.last_transition_time.clone());
    let condition = Condition {
        type_: fact.type_.to_owned(),
        status,
        observed_generation: generation,
        last_transition_time: since,
        reason: fact.reason.to_owned(),
        message: fact.message,
    };
    match before.and_then(|index| conditions.get_mut(index)) {
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
}
