//! Whether a pod may be evicted, and the arithmetic of disruption budgets.
//!
//! Pure: the caller reads the pod and the budgets of its namespace, writes the budget's new status when there is one, and
//! then deletes the pod.

use http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use crate::meta::selector;
use crate::status::{ApiError, Cause};
use crate::value::Fields;

/// How many evicted pods a budget may list that nobody has seen gone.
const DISRUPTED_PODS_MAX: usize = 2000;
/// How long an evicted pod may take to disappear before it counts as healthy again.
const DELETION_TIMEOUT: SignedDuration = SignedDuration::from_secs(120);

const REFUSAL: &str = "Cannot evict pod as it would violate the pod's disruption budget.";
const CONDITION: &str = "DisruptionAllowed";

/// How a pod may be evicted.
#[derive(Debug, Clone, PartialEq)]
pub enum Eviction {
    /// Delete it.
    Free,
    /// Delete it, provided that it is still the pod that was looked at: it might have become healthy since. A conflict is
    /// answered with [`still_processing`] when the client named no resource version itself and there is a budget.
    Unchanged {
        /// The name of the budget; empty when none applies.
        budget: String,
    },
    /// Write this status to the budget, then delete the pod. A conflict with the budget means to decide again.
    Spend {
        /// The name of the budget.
        budget: String,
        /// Its status with one disruption less to allow.
        status: Value,
    },
}

/// Decides on an eviction. `budgets` are those of the pod's namespace, whether or not they select the pod.
pub fn decide(pod: &Value, budgets: &[Value], now: Timestamp) -> Result<Eviction, ApiError> {
    let dying = pod.at("metadata").has("deletionTimestamp");
    match pod.at("status").text("phase") {
        "Succeeded" | "Failed" => return Ok(Eviction::Free),
        _ if dying => return Ok(Eviction::Free),
        "Pending" => return Ok(Eviction::Unchanged { budget: String::new() }),
        _ => {}
    }
    let mut matching = budgets.iter().filter(|budget| selects(budget, pod));
    let Some(budget) = matching.next() else { return Ok(Eviction::Free) };
    if matching.next().is_some() {
        let message =
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
        return Err(ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "", message));
    }
    let name = budget.at("metadata").text("name");
    if !is_ready(pod) && unhealthy_may_go(budget) {
        return Ok(Eviction::Unchanged { budget: name.to_owned() });
    }
    let status = spend(budget, pod.at("metadata").text("name"), now)?;
    Ok(Eviction::Spend { budget: name.to_owned(), status })
}

/// Whether a budget selects a pod. Both are in the same namespace.
pub fn selects(budget: &Value, pod: &Value) -> bool {
    let wanted = budget.at("spec").at("selector");
    selector::matches(wanted, pod.at("metadata").at("labels")) && selector::is_valid(wanted)
}

/// Whether a pod counts as healthy.
pub fn is_ready(pod: &Value) -> bool {
    let ready = |condition: &Value| condition.text("type") == "Ready" && condition.text("status") == "True";
    pod.at("status").list("conditions").iter().any(ready)
}

/// A pod that is not healthy does not count, so its end disrupts nobody who has enough healthy pods.
fn unhealthy_may_go(budget: &Value) -> bool {
    let status = budget.at("status");
    let (healthy, desired) = (count(status, "currentHealthy"), count(status, "desiredHealthy"));
    budget.at("spec").text("unhealthyPodEvictionPolicy") == "AlwaysAllow" || (healthy >= desired && desired > 0)
}

fn count(status: &Value, field: &str) -> i64 {
    status.int(field).unwrap_or_default()
}

/// 429: the budget's status is not about the budget as it is now.
pub fn still_processing(budget: &str) -> ApiError {
    let message = format!("The disruption budget {budget} is still being processed by the server.");
    ApiError::too_many_requests(REFUSAL, 10).with_causes(vec![cause(message)])
}

fn cause(message: String) -> Cause {
    Cause { reason: "DisruptionBudget".into(), message, field: String::new() }
}

/// The status of a budget after one more disruption, or why there may be none.
fn spend(budget: &Value, pod: &str, now: Timestamp) -> Result<Value, ApiError> {
    let (metadata, status) = (budget.at("metadata"), budget.at("status"));
    let name = metadata.text("name");
    if count(status, "observedGeneration") < metadata.int("generation").unwrap_or_default() {
        return Err(still_processing(name));
    }
    let allowed = count(status, "disruptionsAllowed");
    let forbidden = |why: &str| ApiError::forbidden("poddisruptionbudget", "policy", name, why);
    if allowed < 0 {
        return Err(forbidden("pdb disruptions allowed is negative"));
    }
    if status.entries("disruptedPods").count() > DISRUPTED_PODS_MAX {
        return Err(forbidden("DisruptedPods map too big - too many evictions not confirmed by PDB controller"));
    }
    if allowed == 0 {
        return Err(ApiError::too_many_requests(REFUSAL, 0).with_causes(vec![cause(why_none(name, status))]));
    }
    let mut fields = status.as_object().cloned().unwrap_or_default();
    fields.insert("disruptionsAllowed".into(), (allowed - 1).into());
    if allowed == 1 {
        fields.insert("conditions".into(), conditions(status, 0, count(status, "observedGeneration"), now));
    }
    let mut disrupted = status.map("disruptedPods").cloned().unwrap_or_default();
    disrupted.insert(pod.to_owned(), seconds(now));
    fields.insert("disruptedPods".into(), Value::Object(disrupted));
    Ok(Value::Object(fields))
}

fn why_none(name: &str, status: &Value) -> String {
    let (healthy, desired) = (count(status, "currentHealthy"), count(status, "desiredHealthy"));
    let condition = status.list("conditions").iter().find(|condition| condition.text("type") == CONDITION);
    let condition = condition.filter(|c| c.text("status") == "False" && !c.text("message").is_empty());
    match condition.map(|condition| (condition.text("reason"), condition.text("message"))) {
        Some(("SyncFailed", message)) => {
            format!(
                "The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
            )
        }
        _ if healthy <= desired => {
            format!("The disruption budget {name} needs {desired} healthy pods and has {healthy} currently")
        }
        Some((reason, message)) => {
            format!("The disruption budget {name} does not allow evicting pods currently ({reason}): {message}")
        }
        None => format!("The disruption budget {name} does not allow evicting pods currently"),
    }
}

/// A time as Kubernetes writes it: whole seconds.
fn seconds(time: Timestamp) -> Value {
    let whole = Timestamp::from_second(time.as_second()).unwrap_or(time);
    Value::String(whole.to_string())
}

/// The conditions of a budget that allows so many disruptions. The time changes only when the answer does.
fn conditions(status: &Value, allowed: i64, generation: i64, now: Timestamp) -> Value {
    let (answer, reason) = if allowed > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
    let mut all = status.list("conditions").to_vec();
    let known = all.iter_mut().find(|condition| condition.text("type") == CONDITION);
    let since =
        known.as_ref().filter(|known| known.text("status") == answer).map(|known| known.at("lastTransitionTime"));
    let since = since.filter(|since| since.is_string()).cloned().unwrap_or_else(|| seconds(now));
    let mut condition = json!({
        "type": CONDITION, "status": answer, "lastTransitionTime": since, "reason": reason, "message": "",
    });
    if generation != 0 {
        condition["observedGeneration"] = generation.into();
    }
    match known {
        Some(known) => *known = condition,
        None => all.push(condition),
    }
    Value::Array(all)
}

/// Puts the condition on an evicted pod that says who evicted it.
pub fn mark(pod: &mut Value, now: Timestamp) {
    let known = |condition: &Value| condition.text("type") == "DisruptionTarget";
    let since = pod.at("status").list("conditions").iter().find(|condition| known(condition));
    let since =
        since.filter(|condition| condition.text("status") == "True").map(|c| c.at("lastTransitionTime").clone());
    let condition = json!({
        "type": "DisruptionTarget", "status": "True", "lastProbeTime": null,
        "lastTransitionTime": since.unwrap_or_else(|| seconds(now)),
        "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting",
    });
    let Some(status) = pod.as_object_mut().map(|pod| pod.entry("status").or_insert_with(|| json!({}))) else { return };
    let Some(status) = status.as_object_mut() else { return };
    let Some(conditions) = status.entry("conditions").or_insert_with(|| json!([])).as_array_mut() else { return };
    match conditions.iter_mut().find(|condition| known(condition)) {
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
}

/// The status of a budget, given the pods that it selects. `expected` is how many pods their controllers are to have
/// altogether; it matters to budgets that count from there: percentages, and everything that may be unavailable.
pub fn status(budget: &Value, pods: &[Value], expected: i64, now: Timestamp) -> Value {
    let (spec, old) = (budget.at("spec"), budget.at("status"));
    let present = i64::try_from(pods.len()).unwrap_or(i64::MAX);
    let (expected, desired) = match (spec.at("maxUnavailable"), spec.at("minAvailable")) {
        (Value::Null, Value::Null) => (0, 0),
        (Value::Null, Value::Number(least)) => (present, least.as_i64().unwrap_or_default()),
        (Value::Null, least) => (expected, scaled(least, expected)),
        (most, _) => (expected, (expected - scaled(most, expected)).max(0)),
    };
    let disrupted = still_disrupted(old, pods, now);
    let counts = |pod: &&Value| {
        let metadata = pod.at("metadata");
        !metadata.has("deletionTimestamp") && !disrupted.contains_key(metadata.text("name")) && is_ready(pod)
    };
    let healthy = i64::try_from(pods.iter().filter(counts).count()).unwrap_or(i64::MAX);
    let allowed = if expected > 0 { (healthy - desired).max(0) } else { 0 };
    let generation = budget.at("metadata").int("generation").unwrap_or_default();
    let mut status = json!({
        "disruptionsAllowed": allowed, "currentHealthy": healthy, "desiredHealthy": desired, "expectedPods": expected,
        "conditions": conditions(old, allowed, generation, now),
    });
    if generation != 0 {
        status["observedGeneration"] = generation.into();
    }
    if !disrupted.is_empty() {
        status["disruptedPods"] = Value::Object(disrupted);
    }
    status
}

/// A number, or a percentage of `total` rounded up.
fn scaled(value: &Value, total: i64) -> i64 {
    let percent = value.as_str().and_then(|text| text.strip_suffix('%')).and_then(|digits| digits.parse::<i64>().ok());
    match percent {
        Some(percent) => percent.saturating_mul(total).saturating_add(99) / 100,
        None => value.as_i64().unwrap_or_default(),
    }
}

/// The evicted pods that are not gone yet and are still expected to go.
fn still_disrupted(status: &Value, pods: &[Value], now: Timestamp) -> Map<String, Value> {
    let mut kept = Map::new();
    if status.entries("disruptedPods").next().is_none() {
        return kept;
    }
    for pod in pods.iter().filter(|pod| !pod.at("metadata").has("deletionTimestamp")) {
        let name = pod.at("metadata").text("name");
        let Some(since) = status.at("disruptedPods").at(name).as_str() else { continue };
        let fresh = since.parse::<Timestamp>().is_ok_and(|since| now.duration_since(since) <= DELETION_TIMEOUT);
        if fresh {
            kept.insert(name.to_owned(), since.into());
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn pod(name: &str, phase: &str, ready: bool) -> Value {
        let ready = if ready { "True" } else { "False" };
        json!({
            "metadata": {"name": name, "labels": {"app": "x"}},
            "status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]},
        })
    }

    fn budget(name: &str, status: &Value) -> Value {
        json!({
            "metadata": {"name": name, "generation": 1},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}},
            "status": status,
        })
    }

    fn observed(allowed: i64, healthy: i64, desired: i64) -> Value {
        json!({
            "observedGeneration": 1, "disruptionsAllowed": allowed, "currentHealthy": healthy, "desiredHealthy": desired,
            "expectedPods": 3,
        })
    }

    fn check(pod: &Value, budgets: &[Value]) -> Result<Eviction, ApiError> {
        decide(pod, budgets, at("2026-01-02T03:04:05.6Z"))
    }

    #[test]
    fn pods_that_run_no_more_or_not_yet_need_no_budget() {
        let full = [budget("b", &observed(0, 1, 1))];
        for phase in ["Succeeded", "Failed"] {
            assert_eq!(check(&pod("p", phase, true), &full), Ok(Eviction::Free));
        }
        let mut dying = pod("p", "Running", true);
        dying["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        assert_eq!(check(&dying, &full), Ok(Eviction::Free));
        assert_eq!(check(&pod("p", "Pending", true), &full), Ok(Eviction::Unchanged { budget: String::new() }));
    }

    #[test]
    fn a_pod_without_a_budget_is_free_to_go() {
        let mut other = budget("b", &observed(0, 1, 1));
        other["spec"]["selector"]["matchLabels"]["app"] = "y".into();
        assert_eq!(check(&pod("p", "Running", true), &[other]), Ok(Eviction::Free));
    }

    #[test]
    fn a_pod_with_two_budgets_stays() {
        let two = [budget("a", &observed(1, 2, 1)), budget("b", &observed(1, 2, 1))];
        let refused = check(&pod("p", "Running", true), &two).unwrap_err();
        assert_eq!(
            refused.to_value(),
            json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 500,
                "message": "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            })
        );
    }

    #[test]
    fn a_budget_that_is_spent_refuses_and_says_why() {
        let condition =
            |reason: &str| json!([{"type": CONDITION, "status": "False", "reason": reason, "message": "oh"}]);
        let with = |mut status: Value, reason: &str| {
            status["conditions"] = condition(reason);
            status
        };
        for (status, retry, said) in [
            (observed(0, 1, 1), 0, "The disruption budget b needs 1 healthy pods and has 1 currently"),
            (observed(0, 2, 1), 0, "The disruption budget b does not allow evicting pods currently"),
            (
                with(observed(0, 2, 1), "Other"),
                0,
                "The disruption budget b does not allow evicting pods currently (Other): oh",
            ),
            (
                with(observed(0, 1, 1), "SyncFailed"),
                0,
                "The disruption budget b does not allow evicting pods currently because it failed sync: oh",
            ),
            (json!({}), 10, "The disruption budget b is still being processed by the server."),
        ] {
            let refused = check(&pod("p", "Running", true), &[budget("b", &status)]).unwrap_err();
            assert_eq!(refused.code, StatusCode::TOO_MANY_REQUESTS);
            assert_eq!(refused.message, REFUSAL);
            assert_eq!(refused.details.retry_after_seconds, retry, "{said}");
            assert_eq!(refused.details.causes, [cause(said.to_owned())]);
        }
    }

    #[test]
    fn a_budget_that_makes_no_sense_forbids() {
        let refused = check(&pod("p", "Running", true), &[budget("b", &observed(-1, 2, 1))]).unwrap_err();
        assert_eq!(
            refused.message,
            "poddisruptionbudget.policy \"b\" is forbidden: pdb disruptions allowed is negative"
        );
    }

    #[test]
    fn an_eviction_spends_the_budget() {
        let Ok(Eviction::Spend { budget: name, status }) =
            check(&pod("p", "Running", true), &[budget("b", &observed(2, 3, 1))])
        else {
            panic!("it is allowed")
        };
        assert_eq!(name, "b");
        let mut expected = observed(1, 3, 1);
        expected["disruptedPods"] = json!({"p": "2026-01-02T03:04:05Z"});
        assert_eq!(status, expected);

        let Ok(Eviction::Spend { status, .. }) = check(&pod("q", "Running", true), &[budget("b", &status)]) else {
            panic!("one more is allowed")
        };
        assert_eq!(status["disruptionsAllowed"], 0);
        assert_eq!(status["disruptedPods"], json!({"p": "2026-01-02T03:04:05Z", "q": "2026-01-02T03:04:05Z"}));
        assert_eq!(
            status["conditions"],
            json!([{
                "type": "DisruptionAllowed", "status": "False", "observedGeneration": 1,
                "lastTransitionTime": "2026-01-02T03:04:05Z", "reason": "InsufficientPods", "message": "",
            }])
        );
        assert!(check(&pod("r", "Running", true), &[budget("b", &status)]).is_err());
    }

    #[test]
    fn unhealthy_pods_go_when_the_healthy_suffice_or_when_the_budget_says_so() {
        let sick = pod("p", "Running", false);
        let goes = Ok(Eviction::Unchanged { budget: "b".into() });
        assert_eq!(check(&sick, &[budget("b", &observed(0, 1, 1))]), goes);
        assert!(check(&sick, &[budget("b", &observed(0, 0, 1))]).is_err());
        assert!(check(&sick, &[budget("b", &observed(0, 0, 0))]).is_err());
        let mut lenient = budget("b", &observed(0, 0, 1));
        lenient["spec"]["unhealthyPodEvictionPolicy"] = "AlwaysAllow".into();
        assert_eq!(check(&sick, &[lenient]), goes);
    }

    #[test]
    fn the_status_of_a_budget_counts_pods() {
        let pods = [pod("a", "Running", true), pod("b", "Running", true), pod("c", "Running", false)];
        for (spec, scale, expected) in [
            (json!({"minAvailable": 1}), 9, [1, 2, 1, 3]),
            (json!({"minAvailable": "50%"}), 4, [0, 2, 2, 4]),
            (json!({"minAvailable": "34%"}), 3, [0, 2, 2, 3]),
            (json!({"maxUnavailable": 1}), 3, [0, 2, 2, 3]),
            (json!({"maxUnavailable": "100%"}), 3, [2, 2, 0, 3]),
            (json!({"maxUnavailable": 5}), 3, [2, 2, 0, 3]),
            (json!({"maxUnavailable": 1}), 0, [0, 2, 0, 0]),
            (json!({}), 3, [0, 2, 0, 0]),
        ] {
            let budget = json!({"metadata": {"generation": 2}, "spec": spec});
            let status = status(&budget, &pods, scale, at("2026-01-02T03:04:05Z"));
            let fields = ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"];
            assert_eq!(fields.map(|field| status.int(field).unwrap()), expected, "{spec}");
            assert_eq!(status["observedGeneration"], 2);
        }
    }

    #[test]
    fn an_evicted_pod_does_not_count_until_it_should_have_gone() {
        let budget = json!({
            "metadata": {"generation": 1}, "spec": {"minAvailable": 1},
            "status": {
                "disruptedPods": {"a": "2026-01-02T03:00:00Z", "gone": "2026-01-02T03:00:00Z"},
                "conditions": [{"type": "DisruptionAllowed", "status": "False", "lastTransitionTime": "2025-01-01T00:00:00Z"}],
            },
        });
        let pods = [pod("a", "Running", true), pod("b", "Running", true)];
        let soon = status(&budget, &pods, 0, at("2026-01-02T03:01:00Z"));
        assert_eq!(soon["currentHealthy"], 1);
        assert_eq!(soon["disruptedPods"], json!({"a": "2026-01-02T03:00:00Z"}));
        assert_eq!(soon["conditions"][0]["lastTransitionTime"], "2025-01-01T00:00:00Z");
        let later = status(&budget, &pods, 0, at("2026-01-02T03:02:01Z"));
        assert_eq!((&later["currentHealthy"], later.get("disruptedPods")), (&json!(2), None));
        assert_eq!(later["conditions"][0]["lastTransitionTime"], "2026-01-02T03:02:01Z");
    }

    #[test]
    fn an_evicted_pod_says_so() {
        let mut evicted = pod("a", "Running", true);
        mark(&mut evicted, at("2026-01-02T03:04:05Z"));
        mark(&mut evicted, at("2027-01-02T03:04:05Z"));
        let conditions = evicted["status"]["conditions"].as_array().unwrap();
        assert_eq!(conditions.len(), 2);
        assert_eq!(conditions[1]["lastTransitionTime"], "2026-01-02T03:04:05Z");
        assert_eq!(conditions[1]["reason"], "EvictionByEvictionAPI");
        let mut odd = json!([]);
        mark(&mut odd, at("2026-01-02T03:04:05Z"));
        assert_eq!(odd, json!([]));
    }
}
