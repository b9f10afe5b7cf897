//! The controller of `MachineHealthCheck`s: finds the Machines that something is wrong with, and marks them for whoever owns them
//! to replace. It knows nothing of updates: a machine that is slow to join is marked like one that is broken.
//!
//! A Machine that is marked has `HealthCheckSucceeded` false; `OwnerRemediated` false asks its owner to act. A `MachineSet`
//! deletes it; a `KubeadmControlPlane` replaces it in its own way; nobody acts on one without an owner.

mod target;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use windlass_api::kind::cluster_api::{Amount, Cluster, Machine};
use windlass_api::kind::machine_health::{MachineHealthCheck, MachineHealthCheckStatus, RemediationTrigger};
use windlass_api::kind::{Condition, condition};
use windlass_api::{annotation, label};
use windlass_apiserver::meta::selector;
use windlass_runtime::key::Key;
use windlass_runtime::runner::Outcome;

use super::conditions::{self, Fact};
use super::context::{Error, Turn, belonging, cluster_name, deleting, is_paused};
use super::machine::{self, Sight};
use super::ownership::{owned_by, with_owner};
use super::{pause, write};
use target::{Health, Target};

/// How soon a workload API that did not answer is asked again.
const UNREACHABLE_PAUSE: Duration = Duration::from_secs(30);
/// How soon it is looked again whether machines may be replaced that may not now, if none of them changes before.
const RESTRICTED_PAUSE: Duration = Duration::from_secs(60);

/// Looks at the Machines that a check is for.
pub(super) async fn reconcile(turn: &Turn, check: &MachineHealthCheck) -> Result<Outcome, Error> {
    let key = Key { namespace: check.metadata.namespace.clone(), name: check.spec.cluster_name.clone() };
    let Some(cluster) = turn.caches.clusters.get(&key) else { return Ok(Outcome::done()) };
    if let Some(outcome) = pause::held(turn, check, Some(&cluster)).await? {
        return Ok(outcome);
    }
    if deleting(&check.metadata) {
        return Ok(Outcome::done());
    }
    let adopted = adopt(turn, check, &cluster).await?;
    let check = adopted.as_ref().unwrap_or(check);
    let mut judged = Vec::new();
    for machine in targets(turn, check) {
        let node = match machine.status.as_ref().and_then(|status| status.node_ref.as_ref()) {
            None => None,
            Some(_) => Some(machine::look(turn, &machine, &cluster).await?),
        };
        if node == Some(Sight::Unreachable) {
            return Ok(Outcome::requeue_after(UNREACHABLE_PAUSE));
        }
        let health =
            Target { check, machine: &machine, cluster: &cluster, node: node.as_ref() }.health(turn.clock.now());
        judged.push((machine, health));
    }
    let verdict = Verdict::of(check, &judged);
    for (machine, health) in &judged {
        mark(turn, machine, health, verdict.allows).await?;
    }
    say(turn, check, &judged, &verdict).await?;
    let soonest = judged.iter().filter_map(|(_, health)| health.judged_in()).min();
    let ill = judged.iter().any(|(_, health)| matches!(health, Health::Ill(_)));
    let restricted = (!verdict.allows && ill).then_some(RESTRICTED_PAUSE);
    Ok(soonest.into_iter().chain(restricted).min().map_or_else(Outcome::done, Outcome::requeue_after))
}

/// The label and the owner that everything of a Cluster has, in one write.
async fn adopt(
    turn: &Turn,
    check: &MachineHealthCheck,
    cluster: &Cluster,
) -> Result<Option<MachineHealthCheck>, Error> {
    let mut metadata = Map::new();
    if let Some(owners) = with_owner(&check.metadata, owned_by(cluster)) {
        metadata.insert("ownerReferences".into(), json!(owners));
    }
    if cluster_name(&check.metadata) != Some(check.spec.cluster_name.as_str()) {
        metadata.insert("labels".into(), json!({label::CLUSTER_NAME.name: check.spec.cluster_name}));
    }
    if metadata.is_empty() {
        return Ok(None);
    }
    write::patch(turn, check, json!({"metadata": Value::Object(metadata)})).await.map(Some)
}

/// Whether a check is for a Machine.
pub(super) fn is_for(check: &MachineHealthCheck, machine: &Machine) -> bool {
    machine.spec.cluster_name == check.spec.cluster_name
        && selector::matches(&json!(check.spec.selector), &json!(machine.metadata.labels))
}

/// The Machines that a check looks at, by name. Those that people have excluded are not among them.
fn targets(turn: &Turn, check: &MachineHealthCheck) -> Vec<Arc<Machine>> {
    let mut all = belonging(&turn.caches.machines, &check.metadata, &check.spec.cluster_name);
    all.retain(|machine| {
        let annotations = machine.metadata.annotations.as_ref();
        let skipped = annotations.is_some_and(|annotations| annotation::SKIP_REMEDIATION.is_in(annotations));
        is_for(check, machine) && !skipped && !is_paused(&machine.metadata)
    });
    all
}

/// Whether Machines may be replaced now.
#[derive(Debug, PartialEq, Eq)]
struct Verdict {
    allows: bool,
    /// How many more may be.
    left: u32,
    /// Why not.
    refusal: String,
}

impl Verdict {
    fn of(check: &MachineHealthCheck, judged: &[(Arc<Machine>, Health)]) -> Self {
        let total = u32::try_from(judged.len()).unwrap_or(u32::MAX);
        let healthy = judged.iter().filter(|(_, health)| *health == Health::Well).count();
        let ill = judged.iter().filter(|(_, health)| matches!(health, Health::Ill(_))).count();
        // Those that are not judged yet count against it, too.
        let unhealthy = total.saturating_sub(u32::try_from(healthy).unwrap_or(u32::MAX));
        let trigger = check.spec.remediation.as_ref().and_then(|remediation| remediation.trigger_if.clone());
        Self::on(&trigger.unwrap_or_default(), total, unhealthy, ill)
    }

    fn on(trigger: &RemediationTrigger, total: u32, unhealthy: u32, ill: usize) -> Self {
        let said = "Remediation is not allowed, the number of not started or unhealthy machines";
        let (allows, most, why) = if let Some(range) = &trigger.unhealthy_in_range {
            let (least, most) = bounds(range).unwrap_or((u32::MAX, 0));
            let why =
                format!("does not fall within the range (total: {total}, unhealthy: {ill}, unhealthyInRange: {range})");
            ((least..=most).contains(&unhealthy), most, why)
        } else {
            let limit = trigger.unhealthy_less_than_or_equal_to.clone().unwrap_or(Amount::Share("100%".to_owned()));
            let most = limit.of_rounded_down(total).unwrap_or_default();
            let limit = match limit {
                Amount::Count(count) => count.to_string(),
                Amount::Share(share) => share,
            };
            let why = format!(
                "exceeds unhealthyLessThanOrEqualTo (total: {total}, unhealthy: {ill}, unhealthyLessThanOrEqualTo: {limit})"
            );
            (unhealthy <= most, most, why)
        };
        let refusal = if allows { String::new() } else { format!("{said} {why}") };
        Self { allows, left: if allows { most.saturating_sub(unhealthy) } else { 0 }, refusal }
    }
}

/// The two numbers of `[3-5]`.
fn bounds(range: &str) -> Option<(u32, u32)> {
    let (least, most) = range.strip_prefix('[')?.strip_suffix(']')?.split_once('-')?;
    Some((least.trim().parse().ok()?, most.trim().parse().ok()?))
}

/// Says on a Machine what was found, and asks its owner to replace it where that is allowed.
async fn mark(turn: &Turn, machine: &Machine, health: &Health, allowed: bool) -> Result<(), Error> {
    let before = machine.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let mut after: Vec<Condition> = before.to_vec();
    let mut put = |fact| conditions::set(&mut after, fact, machine.metadata.generation, &turn.now());
    match health {
        Health::Pending(_) => return Ok(()),
        Health::Well if deleting(&machine.metadata) => return Ok(()),
        Health::Well => put(Fact::yes("HealthCheckSucceeded", "HealthCheckSucceeded")),
        Health::Ill(fact) => {
            put(fact.clone());
            // While its owner is at it, the owner has the word.
            let asked = condition(before, "OwnerRemediated").is_some_and(|asked| asked.status == "False");
            if allowed && !asked {
                put(Fact::no("OwnerRemediated", "WaitingForRemediation", "Waiting for remediation"));
            }
        }
    }
    if after != before {
        write::conditions(turn, machine, &after).await?;
    }
    Ok(())
}

async fn say(
    turn: &Turn,
    check: &MachineHealthCheck,
    judged: &[(Arc<Machine>, Health)],
    verdict: &Verdict,
) -> Result<(), Error> {
    let count = |number: usize| u32::try_from(number).ok();
    let mut status = MachineHealthCheckStatus {
        observed_generation: check.metadata.generation,
        expected_machines: count(judged.len()),
        current_healthy: count(judged.iter().filter(|(_, health)| *health == Health::Well).count()),
        remediations_allowed: Some(verdict.left),
        targets: judged.iter().filter_map(|(machine, _)| machine.metadata.name.clone()).collect(),
        conditions: check.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default(),
    };
    status.targets.sort();
    let fact = if verdict.allows {
        Fact::yes("RemediationAllowed", "RemediationAllowed")
    } else {
        Fact::no("RemediationAllowed", "TooManyUnhealthy", verdict.refusal.clone())
    };
    conditions::set(&mut status.conditions, fact, check.metadata.generation, &turn.now());
    if check.status.as_ref() != Some(&status) {
        write::status(turn, check, &status).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(trigger: &str, total: u32, unhealthy: u32, expected: (bool, u32)) {
        let trigger: RemediationTrigger = serde_json::from_str(trigger).unwrap();
        let verdict = Verdict::on(&trigger, total, unhealthy, unhealthy as usize);
        assert_eq!((verdict.allows, verdict.left), expected, "{trigger:?} {unhealthy} of {total}");
        assert_eq!(verdict.refusal.is_empty(), verdict.allows);
    }

    #[test]
    fn machines_are_replaced_as_long_as_not_too_many_are_ill() {
        check("{}", 3, 3, (true, 0));
        check(r#"{"unhealthyLessThanOrEqualTo": "40%"}"#, 10, 4, (true, 0));
        check(r#"{"unhealthyLessThanOrEqualTo": "40%"}"#, 10, 5, (false, 0));
        check(r#"{"unhealthyLessThanOrEqualTo": "40%"}"#, 2, 1, (false, 0));
        check(r#"{"unhealthyLessThanOrEqualTo": 2}"#, 10, 1, (true, 1));
        check(r#"{"unhealthyLessThanOrEqualTo": 0}"#, 10, 0, (true, 0));
        check(r#"{"unhealthyInRange": "[3-5]"}"#, 10, 2, (false, 0));
        check(r#"{"unhealthyInRange": "[3-5]"}"#, 10, 3, (true, 2));
        check(r#"{"unhealthyInRange": "[3-5]"}"#, 10, 6, (false, 0));
        check(r#"{"unhealthyInRange": "3-5"}"#, 10, 4, (false, 0));
    }

    #[test]
    fn a_refusal_says_the_numbers() {
        let trigger =
            RemediationTrigger { unhealthy_less_than_or_equal_to: Some(1.into()), ..RemediationTrigger::default() };
        assert_eq!(
            Verdict::on(&trigger, 3, 2, 1).refusal,
            "Remediation is not allowed, the number of not started or unhealthy machines exceeds \
             unhealthyLessThanOrEqualTo (total: 3, unhealthy: 1, unhealthyLessThanOrEqualTo: 1)"
        );
    }
}
