//! Workloads that end.

use serde_json::Value;

use super::{conditions, pod, spec_of};
use crate::builtin::fill::{Fields, child, child_or_new, each, fill, fill_zero, unset};

/// Job.
pub(in crate::builtin) fn job(object: &mut Value) {
    let Some(spec) = spec_of(object) else { return };
    job_spec(spec);
    // These are for jobs alone, not for a CronJob's template of one.
    if unset(spec, "parallelism") {
        fill(spec, "completions", 1);
    }
    fill(spec, "parallelism", 1);
    let limit = if unset(spec, "backoffLimitPerIndex") { 6 } else { i64::from(i32::MAX) };
    fill(spec, "backoffLimit", limit);
    fill(spec, "completionMode", "NonIndexed");
    fill(spec, "suspend", false);
    let replace = if unset(spec, "podFailurePolicy") { "TerminatingOrFailed" } else { "Failed" };
    fill(spec, "podReplacementPolicy", replace);
    fill(spec, "manualSelector", false);
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        conditions(status, &["lastProbeTime", "lastTransitionTime"]);
    }
}

fn job_spec(spec: &mut Fields) {
    pod::template(spec);
    if let Some(policy) = child(spec, "podFailurePolicy") {
        each(policy, "rules", |rule| {
            each(rule, "onPodConditions", |pattern| fill_zero(pattern, "status", "True"));
        });
    }
}

/// `CronJob`.
pub(in crate::builtin) fn cron_job(object: &mut Value) {
    let Some(spec) = spec_of(object) else { return };
    fill_zero(spec, "concurrencyPolicy", "Allow");
    fill(spec, "suspend", false);
    fill(spec, "successfulJobsHistoryLimit", 3);
    fill(spec, "failedJobsHistoryLimit", 1);
    if let Some(template) = child_or_new(spec, "jobTemplate") {
        child_or_new(template, "metadata");
        if let Some(spec) = child_or_new(template, "spec") {
            job_spec(spec);
        }
    }
}

/// `PodDisruptionBudget`.
pub(in crate::builtin) fn disruption_budget(object: &mut Value) {
    spec_of(object);
    let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) else { return };
    for count in ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] {
        fill(status, count, 0);
    }
}
