//! Machines that something is wrong with, as their health check says: one is deleted at a time, if the others can do without it.
//!
//! What is being replaced is written on the control plane before the machine goes, and moves to the machine that takes its place:
//! so it is known how often in a row that has failed.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass_api::annotation;
use windlass_api::kind::condition;
use windlass_api::kind::control_plane::{KubeadmControlPlane, LastRemediation};

use super::view::{Replica, View};
use super::{etcd, health};
use crate::management::conditions::{self, Fact};
use crate::management::context::{Error, Turn};
use crate::management::write;

/// A machine that was well for so long has nothing to do with the one that it replaced, unless it is said otherwise.
const HEALTHY_PERIOD: SignedDuration = SignedDuration::from_hours(1);

/// What is written down about a replacement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Replacement {
    /// The machine that is replaced.
    pub machine: String,
    /// When.
    pub timestamp: Timestamp,
    /// How often the ones before it were, in a row.
    pub retry_count: u32,
}

/// What becomes of a machine that something is wrong with.
#[derive(Debug)]
pub(super) enum Verdict<'a> {
    /// It is replaced.
    Replace(&'a Replica, Replacement),
    /// Not now, for this reason; and when to look again, if time alone changes that.
    Later(&'a Replica, &'static str, Option<Duration>),
    /// Not at all, as long as this holds.
    Never(&'a Replica, String),
}

/// What becomes of the first machine that something is wrong with; `None` if all are well.
pub(super) fn decide<'a>(view: &'a View<'_>, now: Timestamp) -> Option<Verdict<'a>> {
    let ill = chosen(view)?;
    if view.pending_version().is_some() {
        return Some(Verdict::Later(ill, "KubeadmControlPlane waiting for a version upgrade to be propagated", None));
    }
    match in_progress(view.object) {
        // Whoever was interrupted after writing that down goes on.
        Some(replacement) if replacement.machine == ill.name() => return Some(Verdict::Replace(ill, replacement)),
        Some(_) => {
            let why = "KubeadmControlPlane can't remediate while replacement machine is not created";
            return Some(Verdict::Later(ill, why, None));
        }
        None => {}
    }
    if let Some(refusal) = unsafe_now(view, ill) {
        return Some(refusal);
    }
    Some(match retries(view.object, ill, now) {
        Retries::Allowed(retry_count) => {
            Verdict::Replace(ill, Replacement { machine: ill.name().to_owned(), timestamp: now, retry_count })
        }
        Retries::TooSoon(pause) => {
            let why = "KubeadmControlPlane can't remediate this machine because the operation already failed in the latest retryPeriodSeconds";
            Verdict::Later(ill, why, Some(pause))
        }
        Retries::Exhausted(limit) => Verdict::Never(
            ill,
            format!(
                "KubeadmControlPlane can't remediate this machine because the operation already failed {limit} times (MaxRetry)"
            ),
        ),
    })
}

/// The machine whose turn it is: one that was asked for, then one that never became a node, then the oldest.
fn chosen<'a>(view: &'a View<'_>) -> Option<&'a Replica> {
    let asked_for = |replica: &Replica| {
        replica.machine.metadata.annotations.as_ref().is_some_and(|all| annotation::REMEDIATE_MACHINE.is_in(all))
    };
    let ill = view.replicas.iter().filter(|replica| is_ill(replica) && !replica.leaves());
    ill.min_by_key(|replica| (!asked_for(replica), replica.node().is_some()))
}

/// Whether something is wrong with a machine, and its owner is to replace it.
pub(super) fn is_ill(replica: &Replica) -> bool {
    let conditions = replica.machine.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let is_false = |type_: &str| condition(conditions, type_).is_some_and(|said| said.status == "False");
    is_false("HealthCheckSucceeded") && is_false("OwnerRemediated")
}

/// Why the machine may not go now. Before the API has answered for the first time there is nothing that could be lost.
fn unsafe_now<'a>(view: &View<'_>, ill: &'a Replica) -> Option<Verdict<'a>> {
    if !view.initialized() {
        return None;
    }
    if view.replicas.len() <= 1 {
        let why = "KubeadmControlPlane can't remediate if current replicas are less or equal to 1";
        return Some(Verdict::Never(ill, why.to_owned()));
    }
    let others = || view.replicas.iter().filter(|other| other.name() != ill.name());
    if others().any(|other| other.node().is_none() && !other.leaves() && !is_ill(other)) {
        let why = "KubeadmControlPlane waiting for control plane Machine provisioning to complete before triggering remediation";
        return Some(Verdict::Later(ill, why, None));
    }
    if others().any(Replica::leaves) {
        let why =
            "KubeadmControlPlane waiting for control plane Machine deletion to complete before triggering remediation";
        return Some(Verdict::Later(ill, why, None));
    }
    let Some(members) = view.sight.members() else {
        let why = "KubeadmControlPlane can't remediate this Machine because the members of etcd are not known";
        return Some(Verdict::Later(ill, why, None));
    };
    let left = || members.iter().filter(|member| Some(member.name.as_str()) != ill.node());
    let well = |name: &str| others().any(|other| other.node() == Some(name) && holds(other, health::ETCD_MEMBER));
    let healthy = left().filter(|member| well(&member.name)).count();
    if healthy < left().count() / 2 + 1 {
        let why = "KubeadmControlPlane can't remediate this Machine because this could result in etcd loosing quorum";
        return Some(Verdict::Never(ill, why.to_owned()));
    }
    if !others().any(|other| other.unhealthy().next().is_none()) {
        let why = "KubeadmControlPlane can't remediate this Machine because there are no other Machines with healthy control plane components";
        return Some(Verdict::Never(ill, why.to_owned()));
    }
    None
}

fn holds(replica: &Replica, type_: &str) -> bool {
    replica.components.iter().any(|fact| fact.type_ == type_ && fact.holds())
}

enum Retries {
    /// This is the so many-th in a row, from 0.
    Allowed(u32),
    TooSoon(Duration),
    Exhausted(u32),
}

/// How often in a row the machine's predecessors were replaced, and whether it may be, too.
fn retries(object: &KubeadmControlPlane, ill: &Replica, now: Timestamp) -> Retries {
    let Some(last) = of_replica(ill) else { return Retries::Allowed(0) };
    let limits = object.spec.remediation.clone().unwrap_or_default();
    let seconds = |seconds: u32| SignedDuration::from_secs(i64::from(seconds));
    let healthy = limits.min_healthy_period_seconds.map_or(HEALTHY_PERIOD, seconds);
    let since = now.duration_since(last.timestamp);
    if since > healthy {
        return Retries::Allowed(0);
    }
    let period = limits.retry_period_seconds.map_or(SignedDuration::ZERO, seconds);
    if since < period {
        return Retries::TooSoon((period - since).unsigned_abs());
    }
    match limits.max_retry {
        Some(limit) if last.retry_count >= limit => Retries::Exhausted(limit),
        Some(_) | None => Retries::Allowed(last.retry_count.saturating_add(1)),
    }
}

/// The replacement that is under way, from which no machine has come yet.
pub(super) fn in_progress(object: &KubeadmControlPlane) -> Option<Replacement> {
    read(object.metadata.annotations.as_ref()?.get(annotation::REMEDIATION_IN_PROGRESS.name)?)
}

/// The replacement that a machine came from.
fn of_replica(replica: &Replica) -> Option<Replacement> {
    read(replica.machine.metadata.annotations.as_ref()?.get(annotation::REMEDIATION_FOR.name)?)
}

fn read(text: &str) -> Option<Replacement> {
    serde_json::from_str(text).ok()
}

/// The machine that takes the place of another is there: nobody waits for it any more. `true` if that was written.
pub(super) async fn settle(turn: &Turn, view: &View<'_>) -> Result<bool, Error> {
    let Some(replacement) = in_progress(view.object) else { return Ok(false) };
    if !view.replicas.iter().any(|replica| of_replica(replica).as_ref() == Some(&replacement)) {
        return Ok(false);
    }
    let change = json!({"metadata": {"annotations": {annotation::REMEDIATION_IN_PROGRESS.name: null}}});
    write::patch(turn, view.object, change).await.map(|_| true)
}

/// The last replacement, for the status.
pub(super) fn last(view: &View<'_>) -> Option<LastRemediation> {
    let all = view.replicas.iter().filter_map(of_replica).chain(in_progress(view.object));
    let last = all.max_by_key(|replacement| replacement.timestamp)?;
    let Replacement { machine, timestamp, retry_count } = last;
    Some(LastRemediation { machine, time: timestamp.to_string(), retry_count })
}

/// Does what was decided. `true` if a machine goes: then nothing else is done in this turn.
pub(super) async fn act(turn: &Turn, view: &View<'_>, verdict: &Verdict<'_>) -> Result<bool, Error> {
    match verdict {
        Verdict::Later(replica, why, _) => {
            say(turn, replica, Fact::no("OwnerRemediated", "RemediationDeferred", *why)).await.map(|()| false)
        }
        Verdict::Never(replica, why) => {
            say(turn, replica, Fact::no("OwnerRemediated", "CannotBeRemediated", why.as_str())).await.map(|()| false)
        }
        Verdict::Replace(replica, replacement) => {
            if view.initialized() {
                etcd::forward_leadership(turn, view, replica)?;
            }
            if in_progress(view.object).is_none() {
                let text = serde_json::to_string(replacement).unwrap_or_default();
                let mark = json!({"metadata": {"annotations": {annotation::REMEDIATION_IN_PROGRESS.name: text}}});
                write::patch(turn, view.object, mark).await?;
            }
            let fact = Fact::no("OwnerRemediated", "RemediationMachineDeleting", "Machine is deleting");
            say(turn, replica, fact).await?;
            write::delete(turn, &*replica.machine).await.map(|()| true)
        }
    }
}

async fn say(turn: &Turn, replica: &Replica, fact: Fact) -> Result<(), Error> {
    let machine = &*replica.machine;
    let mut status = machine.status.clone().unwrap_or_default();
    conditions::set(&mut status.conditions, fact, machine.metadata.generation, &turn.now());
    if machine.status.as_ref() != Some(&status) {
        write::status(turn, machine, &status).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use serde_json::Value;
    use windlass_api::kind::cluster_api::Machine;

    use super::*;

    /// The last machine was replaced at midnight, for the so many-th time in a row.
    #[track_caller]
    fn check(limits: &Value, last: Option<u32>, now: &str, expected: &str) {
        let mut object = KubeadmControlPlane::default();
        object.spec.remediation = serde_json::from_value(limits.clone()).unwrap();
        let timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let mark = last.map(|retry_count| {
            let last = Replacement { machine: "a".to_owned(), timestamp, retry_count };
            (annotation::REMEDIATION_FOR.name.to_owned(), serde_json::to_string(&last).unwrap())
        });
        let mut machine = Machine::default();
        machine.metadata.annotations = Some(mark.into_iter().collect::<BTreeMap<_, _>>());
        let replica = Replica { machine: Arc::new(machine), outdated: Vec::new(), components: Vec::new() };
        let found = match retries(&object, &replica, now.parse().unwrap()) {
            Retries::Allowed(count) => format!("retry {count}"),
            Retries::TooSoon(pause) => format!("in {pause:?}"),
            Retries::Exhausted(limit) => format!("no more than {limit}"),
        };
        assert_eq!(found, expected, "{limits} after {last:?} at {now}");
    }

    #[test]
    fn a_replacement_that_fails_again_is_counted_until_one_was_well_for_a_while() {
        const SOON: &str = "2026-01-01T00:10:00Z";
        check(&json!({}), None, SOON, "retry 0");
        check(&json!({}), Some(7), SOON, "retry 8");
        check(&json!({"maxRetry": 3}), Some(2), SOON, "retry 3");
        check(&json!({"maxRetry": 3}), Some(3), SOON, "no more than 3");
        check(&json!({"maxRetry": 3}), Some(3), "2026-01-01T01:00:01Z", "retry 0");
        check(&json!({"maxRetry": 3, "minHealthyPeriodSeconds": 60}), Some(3), SOON, "retry 0");
        check(&json!({"retryPeriodSeconds": 900}), Some(0), SOON, "in 300s");
    }
}
