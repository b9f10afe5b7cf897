//! P3: a release is kept for a cluster before anything is made of it, and for as long as it is needed.

use serde_json::json;
use windlass_api::annotation;

use super::{Finding, Severity, fatal, written};
use crate::planner::{Planned, PlanningInput, Record};
use crate::step::{Place, Revision, Step};

/// Whether a step keeps a release: all that it says, in an object that nobody can change.
pub(super) fn keeps(input: &PlanningInput, step: &Step) -> bool {
    let Some(original) = input.target.original() else { return false };
    let Some(object) = written(step).filter(|_| step.place == Place::Management) else { return false };
    object["kind"] == "ConfigMap"
        && object["immutable"] == true
        && object["data"] == json!(original.data())
        && object["metadata"]["annotations"][annotation::RELEASE_DIGEST.name] == original.digest()
}

/// P3: nothing is made of a release that is not kept, and no update to it begins.
pub(super) fn kept_before_anything(input: &PlanningInput, planned: &Planned) -> Vec<Finding> {
    let Some(wanted) = input.target.original_digest() else { return Vec::new() };
    let is_kept = input.inventory.releases.kept.iter().any(|kept| kept.digest == wanted);
    if is_kept || planned.steps.first().is_some_and(|step| keeps(input, step)) {
        return Vec::new();
    }
    let message = || format!("the release {wanted} is not kept");
    let mut findings: Vec<Finding> = planned.steps.iter().map(|step| fatal("P3", step, message())).collect();
    if let Some(Record::Begin { name, .. }) = &planned.record {
        let object = format!("ClusterUpdate/{name}");
        findings.push(Finding { id: "P3".to_owned(), severity: Severity::Fatal, object, message: message() });
    }
    findings
}

/// Whether an object keeps a release that was seen so and that nobody needs: it is not that of the target, nor the one that the
/// cluster has, and no update is on its way.
pub(super) fn is_of_the_past(input: &PlanningInput, name: &str, expect: &Revision) -> bool {
    let releases = &input.inventory.releases;
    let under_way = input.inventory.update.as_ref().is_some_and(|update| !update.state.is_over());
    let is_needed =
        |digest: &str| input.target.original_digest() == Some(digest) || releases.in_use.as_deref() == Some(digest);
    let mut seen = releases.kept.iter().filter(|kept| kept.name.as_str() == name && kept.revision == *expect);
    !under_way && seen.any(|kept| !is_needed(&kept.digest))
}
