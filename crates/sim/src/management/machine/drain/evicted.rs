//! What came of asking pods to leave, and how Cluster API tells people.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube::core::Status;
use windlass_apiserver::time;

/// How many pods of a sort are named.
const NAMED_MAX: usize = 3;
/// How many sorts of refusals are told.
const REFUSALS_MAX: usize = 5;

const BUDGET: &str = "annot evict pod as it would violate the pod's disruption budget.";

/// The pods that are still on a node, as `namespace/name` in order, by what is waited for.
#[derive(Debug, Default)]
pub(super) struct Evicted {
    /// They have been asked to end, and have not yet.
    pub(super) leaving: Vec<String>,
    /// They may not be evicted now, by why.
    refused: BTreeMap<String, Vec<String>>,
    /// They will be asked when those before them are gone.
    pub(super) later: Vec<String>,
    /// They end by themselves.
    pub(super) finishing: Vec<String>,
    /// They end by themselves, and are waited for when those before them are gone.
    pub(super) finishing_later: Vec<String>,
}

impl Evicted {
    /// Whether there is nothing left to wait for.
    pub(super) fn is_empty(&self) -> bool {
        self.refused.is_empty()
            && [&self.leaving, &self.later, &self.finishing, &self.finishing_later].iter().all(|pods| pods.is_empty())
    }

    /// A pod may not be evicted.
    pub(super) fn refuse(&mut self, status: &Status, pod: String) {
        let causes = status.details.iter().flat_map(|details| &details.causes);
        let ends = causes.clone().any(|cause| cause.reason == "NamespaceTerminating");
        let why = if status.code == 403 && ends {
            "Cannot evict pod from terminating namespace: unable to create eviction (kube-controller-manager should set \
             deletionTimestamp)"
                .to_owned()
        } else if status.code == 429 {
            let causes: Vec<&str> = causes.map(|cause| cause.message.as_str()).collect();
            format!("{} {}", status.message, causes.join(","))
        } else {
            status.message.clone()
        };
        self.refused.entry(why).or_default().push(pod);
    }

    /// What is waited for.
    pub(super) fn message(&self, began: Timestamp) -> String {
        let mut lines = vec![format!("Drain not completed yet (started at {}):", time::format(began))];
        let mut line = |pods: &[String], what: &str| {
            let kind = if pods.len() > 1 { "Pods" } else { "Pod" };
            lines.push(format!("* {kind} {}: {what}", named(pods)));
        };
        if !self.leaving.is_empty() {
            line(&self.leaving, "deletionTimestamp set, but still not removed from the Node");
        }
        for (why, pods) in self.refused.iter().take(REFUSALS_MAX) {
            let why = match why.strip_prefix('C').and_then(|rest| rest.strip_prefix(BUDGET)) {
                Some(rest) => format!("c{BUDGET}{rest}"),
                None => format!("failed to evict Pod, {why}"),
            };
            line(pods, &why);
        }
        if !self.finishing.is_empty() {
            line(&self.finishing, "waiting for completion");
        }
        let untold: usize = self.refused.values().skip(REFUSALS_MAX).map(Vec::len).sum();
        match untold {
            0 => {}
            1 => lines.push("* 1 Pod with other issues".to_owned()),
            many => lines.push(format!("* {many} Pods with other issues")),
        }
        let after = "After above Pods have been removed from the Node,";
        if !self.later.is_empty() {
            lines.push(format!("{after} the following Pods will be evicted: {}", named(&self.later)));
        }
        if !self.finishing_later.is_empty() {
            let pods = named(&self.finishing_later);
            lines.push(format!("{after} waiting for the following Pods to complete without eviction: {pods}"));
        }
        lines.join("\n")
    }
}

fn named(pods: &[String]) -> String {
    let first = pods.iter().take(NAMED_MAX).cloned();
    let rest = pods.len().saturating_sub(NAMED_MAX);
    first.chain((rest > 0).then(|| format!("... ({rest} more)"))).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refusal(code: u16, message: &str, cause: (&str, &str)) -> Status {
        let (reason, text) = cause;
        let causes = json!([{"reason": reason, "message": text}]);
        serde_json::from_value(json!({"code": code, "message": message, "details": {"causes": causes}})).unwrap()
    }

    #[test]
    fn people_read_what_a_drain_waits_for() {
        let leaving = ["a/1", "a/2", "a/3", "a/4", "a/5"].map(str::to_owned).into();
        let mut evicted = Evicted { leaving, ..Evicted::default() };
        let budget = ("DisruptionBudget", "The disruption budget b needs 2 healthy pods and has 2 currently");
        let spent = "Cannot evict pod as it would violate the pod's disruption budget.";
        evicted.refuse(&refusal(429, spent, budget), "b/1".to_owned());
        evicted.refuse(&refusal(500, "two budgets", ("", "")), "c/1".to_owned());
        evicted.refuse(&refusal(403, "forbidden", ("NamespaceTerminating", "")), "d/1".to_owned());
        evicted.finishing.push("e/1".to_owned());
        evicted.later.push("f/1".to_owned());
        evicted.finishing_later.push("g/1".to_owned());
        let expected = "\
Drain not completed yet (started at 2026-01-01T00:00:00Z):
* Pods a/1, a/2, a/3, ... (2 more): deletionTimestamp set, but still not removed from the Node
* Pod b/1: cannot evict pod as it would violate the pod's disruption budget. The disruption budget b needs 2 healthy pods and has 2 currently
* Pod d/1: failed to evict Pod, Cannot evict pod from terminating namespace: unable to create eviction (kube-controller-manager should set deletionTimestamp)
* Pod c/1: failed to evict Pod, two budgets
* Pod e/1: waiting for completion
After above Pods have been removed from the Node, the following Pods will be evicted: f/1
After above Pods have been removed from the Node, waiting for the following Pods to complete without eviction: g/1";
        assert_eq!(evicted.message("2026-01-01T00:00:00Z".parse().unwrap()), expected);
    }

    #[test]
    fn of_many_reasons_the_first_five_are_told() {
        let mut evicted = Evicted::default();
        for reason in 0..7 {
            evicted.refuse(&refusal(500, &format!("reason {reason}"), ("", "")), format!("a/{reason}"));
        }
        let message = evicted.message(Timestamp::UNIX_EPOCH);
        assert!(message.contains("reason 4") && !message.contains("reason 5"), "{message}");
        assert!(message.ends_with("* 2 Pods with other issues"), "{message}");
        assert!(!evicted.is_empty() && Evicted::default().is_empty());
    }
}
