//! Deployments, `ReplicaSets`, `DaemonSets`, `StatefulSets` and `ControllerRevisions`.

use serde_json::Value;

use super::pod::{Place, Volumes, template};
use super::{
    Errors, SPEC, begin, formed, immutable, int_or_percent, non_negative, not_more_than_100_percent,
    positive_int_or_percent, shown,
};
use crate::field::FieldError;
use crate::meta::{format, selector};
use crate::path::Path;
use crate::value::{Fields, same};

/// What is wrong with a Deployment.
pub fn deployment(new: &Value, old: Option<&Value>) -> Errors {
    let mut errors = begin(new);
    let spec = new.at("spec");
    non_negative(spec, "replicas", &SPEC, &mut errors);
    selected_template(spec, "deployment", &mut errors);
    deployment_strategy(spec, &mut errors);
    non_negative(spec, "minReadySeconds", &SPEC, &mut errors);
    non_negative(spec, "revisionHistoryLimit", &SPEC, &mut errors);
    if let Some(deadline) = spec.int("progressDeadlineSeconds") {
        non_negative(spec, "progressDeadlineSeconds", &SPEC, &mut errors);
        if deadline <= spec.int("minReadySeconds").unwrap_or_default() {
            let path = SPEC.field("progressDeadlineSeconds");
            errors.push(FieldError::invalid(path, deadline, "must be greater than minReadySeconds"));
        }
    }
    selector_stays(spec, old, &mut errors);
    errors
}

/// What is wrong with a `ReplicaSet`.
pub fn replica_set(new: &Value, old: Option<&Value>) -> Errors {
    let mut errors = begin(new);
    let spec = new.at("spec");
    non_negative(spec, "replicas", &SPEC, &mut errors);
    non_negative(spec, "minReadySeconds", &SPEC, &mut errors);
    // Not a slip of ours: these are the words for replica sets too.
    selected_template(spec, "deployment", &mut errors);
    selector_stays(spec, old, &mut errors);
    errors
}

/// What is wrong with a `ReplicationController`.
pub fn replication_controller(new: &Value, _old: Option<&Value>) -> Errors {
    let mut errors = begin(new);
    let spec = new.at("spec");
    non_negative(spec, "minReadySeconds", &SPEC, &mut errors);
    if spec.map("selector").is_none_or(serde_json::Map::is_empty) {
        errors.push(FieldError::required(SPEC.field("selector"), ""));
    }
    if spec.has("replicas") {
        non_negative(spec, "replicas", &SPEC, &mut errors);
    } else {
        errors.push(FieldError::required(SPEC.field("replicas"), ""));
    }
    let path = SPEC.field("template");
    if !spec.has("template") {
        errors.push(FieldError::required(path, ""));
        return errors;
    }
    let labels = spec.at("template").at("metadata").at("labels");
    if !spec.entries("selector").all(|(key, value)| labels.get(key) == Some(value)) {
        unselected(labels, &path, &mut errors);
    }
    template(spec.at("template"), &Volumes::new(), &path, Place::Template, &mut errors);
    always_restarts(spec.at("template"), &path, "ReplicationController", &mut errors);
    errors
}

/// What is wrong with a `DaemonSet`.
pub fn daemon_set(new: &Value, old: Option<&Value>) -> Errors {
    let mut errors = begin(new);
    let spec = new.at("spec");
    let path = SPEC.field("selector");
    if let Some(old) = old {
        immutable(spec.at("selector"), old.at("spec").at("selector"), &path, &mut errors);
    }
    selector::validate(spec.at("selector"), &path, &mut errors);
    let template_path = SPEC.field("template");
    let labels = spec.at("template").at("metadata").at("labels");
    if selector::is_valid(spec.at("selector")) && !selector::matches(spec.at("selector"), labels) {
        unselected(labels, &template_path, &mut errors);
    }
    if spec.has("selector") && selector::is_empty(spec.at("selector")) {
        let detail = "empty selector is invalid for daemonset";
        errors.push(FieldError::invalid(path, spec.at("selector").clone(), detail));
    }
    template(spec.at("template"), &Volumes::new(), &template_path, Place::Template, &mut errors);
    always_restarts(spec.at("template"), &template_path, "DaemonSet", &mut errors);
    non_negative(spec, "minReadySeconds", &SPEC, &mut errors);
    daemon_strategy(spec.at("updateStrategy"), &mut errors);
    non_negative(spec, "revisionHistoryLimit", &SPEC, &mut errors);
    errors
}

/// The selector and the template of a Deployment or `ReplicaSet`.
fn selected_template(spec: &Value, kind: &str, errors: &mut Errors) {
    if !selector_of(spec, kind, "invalid label selector", errors) {
        return;
    }
    let path = SPEC.field("template");
    matching_labels(spec, &path, errors);
    template(spec.at("template"), &Volumes::new(), &path, Place::Template, errors);
    always_restarts(spec.at("template"), &path, "ReplicaSet", errors);
}

/// A selector that must be there, say something and be well-formed. Returns whether it can be evaluated.
fn selector_of(spec: &Value, kind: &str, malformed: &str, errors: &mut Errors) -> bool {
    let (selector, path) = (spec.at("selector"), SPEC.field("selector"));
    if selector.is_null() {
        errors.push(FieldError::required(path, ""));
        return true;
    }
    let before = errors.len();
    selector::validate(selector, &path, errors);
    let valid = errors.len() == before;
    if selector::is_empty(selector) {
        let detail = format!("empty selector is invalid for {kind}");
        errors.push(FieldError::invalid(path, selector.clone(), detail));
    }
    if !valid {
        errors.push(FieldError::invalid(path, selector.clone(), malformed));
    }
    valid
}

/// The pods made from a template are selected by the workload.
fn matching_labels(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let labels = spec.at("template").at("metadata").at("labels");
    // Without a selector nothing is selected, and that is said of the labels too.
    let says_something = spec.at("selector").is_null() || !selector::is_empty(spec.at("selector"));
    if says_something && !selector::matches(spec.at("selector"), labels) {
        unselected(labels, path, errors);
    }
}

fn unselected(labels: &Value, path: &Path<'_>, errors: &mut Errors) {
    let detail = "`selector` does not match template `labels`";
    errors.push(FieldError::invalid(path.field("metadata").field("labels"), labels.clone(), detail));
}

fn always_restarts(template: &Value, path: &Path<'_>, kind: &str, errors: &mut Errors) {
    let (spec, path) = (template.at("spec"), path.field("spec"));
    if spec.text("restartPolicy") != "Always" {
        errors.push(FieldError::not_supported(path.field("restartPolicy"), spec.text("restartPolicy"), &["Always"]));
    }
    if spec.has("activeDeadlineSeconds") {
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        errors.push(FieldError::forbidden(path.field("activeDeadlineSeconds"), detail));
    }
}

fn selector_stays(spec: &Value, old: Option<&Value>, errors: &mut Errors) {
    if let Some(old) = old {
        immutable(spec.at("selector"), old.at("spec").at("selector"), &SPEC.field("selector"), errors);
    }
}

fn deployment_strategy(spec: &Value, errors: &mut Errors) {
    let (strategy, path) = (spec.at("strategy"), SPEC.field("strategy"));
    let rolling = path.field("rollingUpdate");
    let update = strategy.at("rollingUpdate");
    match strategy.text("type") {
        "Recreate" => {
            if !update.is_null() {
                let detail = "may not be specified when strategy `type` is 'Recreate'";
                errors.push(FieldError::forbidden(rolling, detail));
            }
        }
        "RollingUpdate" if update.is_null() => {
            errors.push(FieldError::required(rolling, "this should be defaulted and never be nil"));
        }
        "RollingUpdate" => {
            let (unavailable, surge) = (update.at("maxUnavailable"), update.at("maxSurge"));
            let path = rolling.field("maxUnavailable");
            positive_int_or_percent(unavailable, &path, errors);
            positive_int_or_percent(surge, &rolling.field("maxSurge"), errors);
            if int_or_percent(unavailable) == 0 && int_or_percent(surge) == 0 {
                errors.push(FieldError::invalid(path, unavailable.clone(), "may not be 0 when `maxSurge` is 0"));
            }
            not_more_than_100_percent(unavailable, &path, errors);
        }
        _ => {
            let text = shown(strategy, &["type", "rollingUpdate"]);
            let error = FieldError::not_supported(path, strategy.clone(), &["Recreate", "RollingUpdate"]);
            errors.push(error.showing(text));
        }
    }
}

fn daemon_strategy(strategy: &Value, errors: &mut Errors) {
    let path = SPEC.field("updateStrategy");
    let rolling = path.field("rollingUpdate");
    let update = strategy.at("rollingUpdate");
    match strategy.text("type") {
        "OnDelete" => {}
        "RollingUpdate" if update.is_null() => errors.push(FieldError::required(rolling, "")),
        "RollingUpdate" => {
            let fields = ["maxUnavailable", "maxSurge"];
            for field in fields {
                positive_int_or_percent(update.at(field), &rolling.field(field), errors);
            }
            for field in fields {
                not_more_than_100_percent(update.at(field), &rolling.field(field), errors);
            }
            let [unavailable, surge] = fields.map(|field| int_or_percent(update.at(field)) != 0);
            if unavailable && surge {
                let detail = "may not be set when maxUnavailable is non-zero";
                errors.push(FieldError::invalid(rolling.field("maxSurge"), update.at("maxSurge").clone(), detail));
            } else if !unavailable && !surge {
                errors.push(FieldError::required(rolling.field("maxUnavailable"), "cannot be 0 when maxSurge is 0"));
            }
        }
        _ => {
            let text = shown(strategy, &["type", "rollingUpdate"]);
            let error = FieldError::not_supported(path, strategy.clone(), &["RollingUpdate", "OnDelete"]);
            errors.push(error.showing(text));
        }
    }
}

/// What is wrong with a `StatefulSet`.
pub fn stateful_set(new: &Value, old: Option<&Value>) -> Errors {
    let mut errors = begin(new);
    let spec = new.at("spec");
    let mut templates = Errors::new();
    if let Some(old) = old {
        stateful_spec(old.at("spec"), Some(old), true, &mut templates);
    }
    // A set that was taken before its template was checked as strictly can still be changed.
    stateful_spec(spec, old, templates.is_empty(), &mut errors);
    if let Some(old) = old {
        let changeable = [
            "replicas",
            "template",
            "updateStrategy",
            "minReadySeconds",
            "ordinals",
            "revisionHistoryLimit",
            "persistentVolumeClaimRetentionPolicy",
        ];
        let old = old.at("spec");
        let fields = spec.as_object().into_iter().chain(old.as_object()).flat_map(serde_json::Map::keys);
        let mut fixed = fields.filter(|field| !changeable.contains(&field.as_str()));
        if fixed.any(|field| !same(spec.at(field), old.at(field))) {
            let detail = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
            errors.push(FieldError::forbidden(SPEC, detail));
        }
    }
    errors
}

fn stateful_spec(spec: &Value, old: Option<&Value>, check_template: bool, errors: &mut Errors) {
    match spec.text("podManagementPolicy") {
        "" => errors.push(FieldError::required(SPEC.field("podManagementPolicy"), "")),
        "OrderedReady" | "Parallel" => {}
        other => {
            let detail = "must be 'OrderedReady' or 'Parallel'";
            errors.push(FieldError::invalid(SPEC.field("podManagementPolicy"), other, detail));
        }
    }
    stateful_strategy(spec.at("updateStrategy"), errors);
    retention_policy(spec.at("persistentVolumeClaimRetentionPolicy"), errors);
    if old.is_none() {
        let path = SPEC.field("volumeClaimTemplates");
        for (i, claim) in spec.list("volumeClaimTemplates").iter().enumerate() {
            super::storage::claim_spec(claim.at("spec"), &path.index(i).field("spec"), errors);
        }
    }
    non_negative(spec, "replicas", &SPEC, errors);
    non_negative(spec, "minReadySeconds", &SPEC, errors);
    non_negative(spec.at("ordinals"), "start", &SPEC.field("ordinals"), errors);
    if old.is_none() && !spec.text("serviceName").is_empty() {
        formed(spec.text("serviceName"), &SPEC.field("serviceName"), format::is_dns_label, errors);
    }
    let path = SPEC.field("template");
    if selector_of(spec, "statefulset", "", errors) {
        matching_labels(spec, &path, errors);
        if check_template {
            let claims = spec.list("volumeClaimTemplates");
            let claims = claims.iter().map(|claim| (claim.at("metadata").text("name"), &*CLAIM)).collect();
            template(spec.at("template"), &claims, &path, Place::StatefulSetTemplate, errors);
        }
    }
    always_restarts(spec.at("template"), &path, "StatefulSet", errors);
}

/// The volume that a `StatefulSet` makes of a claim.
static CLAIM: std::sync::LazyLock<Value> =
    std::sync::LazyLock::new(|| serde_json::json!({"persistentVolumeClaim": {"claimName": "made from a template"}}));

fn stateful_strategy(strategy: &Value, errors: &mut Errors) {
    let path = SPEC.field("updateStrategy");
    let rolling = path.field("rollingUpdate");
    let update = strategy.at("rollingUpdate");
    match strategy.text("type") {
        "" => errors.push(FieldError::required(path, "")),
        "OnDelete" => {
            if !update.is_null() {
                let text = shown(update, &["partition", "maxUnavailable"]);
                let detail = "only allowed for updateStrategy 'RollingUpdate'";
                errors.push(FieldError::invalid(rolling, update.clone(), detail).showing(text));
            }
        }
        "RollingUpdate" => {
            non_negative(update, "partition", &rolling, errors);
            let path = rolling.field("maxUnavailable");
            let unavailable = update.at("maxUnavailable");
            if !unavailable.is_null() {
                positive_int_or_percent(unavailable, &path, errors);
                if int_or_percent(unavailable) == 0 {
                    errors.push(FieldError::invalid(path, unavailable.clone(), "cannot be 0"));
                }
                not_more_than_100_percent(unavailable, &path, errors);
            }
        }
        _ => {
            let text = shown(strategy, &["type", "rollingUpdate"]);
            let detail = "must be 'RollingUpdate' or 'OnDelete'";
            errors.push(FieldError::invalid(path, strategy.clone(), detail).showing(text));
        }
    }
}

fn retention_policy(policy: &Value, errors: &mut Errors) {
    if policy.is_null() {
        return;
    }
    let path = SPEC.field("persistentVolumeClaimRetentionPolicy");
    for field in ["whenDeleted", "whenScaled"] {
        let value = policy.text(field);
        if !matches!(value, "Retain" | "Delete") {
            errors.push(FieldError::not_supported(path.field(field), value, &["Retain", "Delete"]));
        }
    }
}

/// What is wrong with a `ControllerRevision`.
pub fn controller_revision(new: &Value, old: Option<&Value>) -> Errors {
    let mut errors = begin(new);
    if let Some(revision) = new.int("revision").filter(|revision| *revision < 0) {
        errors.push(FieldError::invalid("revision", revision, "must be greater than or equal to 0"));
    }
    let data = new.at("data");
    match old {
        Some(old) => immutable(data, old.at("data"), &Path::new("data"), &mut errors),
        None if data.is_null() => errors.push(FieldError::required("data", "data is mandatory")),
        None if !data.is_object() => errors.push(FieldError::required("data", "data must be a valid JSON object")),
        None => {}
    }
    errors
}
