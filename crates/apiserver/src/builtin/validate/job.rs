//! Jobs and `CronJobs`.

use serde_json::Value;

use super::pod::{Place, Volumes, template};
use super::{Errors, METADATA, SPEC, begin, immutable, non_negative, one_of, schedule};
use crate::field::FieldError;
use crate::meta::{format, selector};
use crate::path::Path;
use crate::value::{Fields, same};

const INDEXED_PARALLELISM_MAX: i64 = 100_000;
/// The name of a job is that of its cron job and eleven characters for the time.
const CRON_JOB_NAME_MAX: usize = 63 - 11;

/// What is wrong with a Job. Its selector and the labels of its template are generated before, unless `manualSelector` says
/// otherwise.
pub fn job(new: &Value, old: Option<&Value>) -> Errors {
    let mut errors = begin(new);
    let spec = new.at("spec");
    job_spec(spec, &SPEC, &mut errors);
    let path = SPEC.field("selector");
    if spec.has("selector") {
        selector::validate(spec.at("selector"), &path, &mut errors);
        let labels = spec.at("template").at("metadata").at("labels");
        if selector::is_valid(spec.at("selector")) && !selector::matches(spec.at("selector"), labels) {
            let detail = "`selector` does not match template `labels`";
            errors.push(FieldError::invalid("spec.template.metadata.labels", labels.clone(), detail));
        }
    } else if spec.flag("manualSelector") {
        errors.push(FieldError::required(path, ""));
    }
    let completions = spec.int("completions").unwrap_or_default();
    if spec.text("completionMode") == "Indexed" && completions > 0 {
        let name = new.at("metadata").text("name");
        let last = format!("{name}-{}", completions - 1);
        if !format::is_dns_label(&last).is_empty() {
            let detail = format!("will not able to create pod with invalid DNS label: {last}");
            errors.push(FieldError::invalid(METADATA.field("name"), name, detail));
        }
    }
    if let Some(old) = old {
        job_update(spec, old, &mut errors);
    }
    errors
}

fn job_spec(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let counts = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    for field in counts {
        non_negative(spec, field, path, errors);
    }
    if spec.has("maxFailedIndexes") && !spec.has("backoffLimitPerIndex") {
        let detail = "when maxFailedIndexes is specified";
        errors.push(FieldError::required(path.field("backoffLimitPerIndex"), detail));
    }
    match spec.at("completionMode").as_str() {
        Some("Indexed") => {
            if !spec.has("completions") {
                errors.push(FieldError::required(path.field("completions"), "when completion mode is Indexed"));
            }
            if let Some(parallelism) = spec.int("parallelism").filter(|count| *count > INDEXED_PARALLELISM_MAX) {
                let detail =
                    format!("must be less than or equal to {INDEXED_PARALLELISM_MAX} when completion mode is Indexed");
                errors.push(FieldError::invalid(path.field("parallelism"), parallelism, detail));
            }
        }
        None | Some("NonIndexed") => {
            for field in ["backoffLimitPerIndex", "maxFailedIndexes"] {
                if let Some(value) = spec.int(field) {
                    errors.push(FieldError::invalid(path.field(field), value, "requires indexed completion mode"));
                }
            }
        }
        Some(other) => {
            let modes = ["NonIndexed", "Indexed"];
            errors.push(FieldError::not_supported(path.field("completionMode"), other, &modes));
        }
    }
    let template_path = path.field("template");
    template(spec.at("template"), &Volumes::new(), &template_path, Place::Template, errors);
    let (policy, path) = (spec.at("template").at("spec").text("restartPolicy"), template_path.field("spec"));
    let path = path.field("restartPolicy");
    match policy {
        "" | "Always" => errors.push(FieldError::required(path, "valid values: \"OnFailure\", \"Never\"")),
        "OnFailure" if spec.has("podFailurePolicy") => {
            let detail = "only \"Never\" is supported when podFailurePolicy is specified";
            errors.push(FieldError::invalid(path, policy, detail));
        }
        "OnFailure" | "Never" => {}
        other => errors.push(FieldError::not_supported(path, other, &["OnFailure", "Never"])),
    }
}

/// A job's work is fixed; only how fast it is done may change.
fn job_update(spec: &Value, old: &Value, errors: &mut Errors) {
    let (was, path) = (old.at("spec"), SPEC.field("completions"));
    if spec.text("completionMode") != "Indexed" {
        immutable(spec.at("completions"), was.at("completions"), &path, errors);
    } else if let Some(completions) = spec.int("completions")
        && Some(completions) != was.int("completions")
        && Some(completions) != spec.int("parallelism")
    {
        let detail = "can only be modified in tandem with spec.parallelism";
        errors.push(FieldError::invalid(path, completions, detail));
    }
    immutable(spec.at("selector"), was.at("selector"), &SPEC.field("selector"), errors);
    let waiting = was.flag("suspend") && !old.at("status").has("startTime");
    if !waiting {
        immutable(spec.at("template"), was.at("template"), &SPEC.field("template"), errors);
    } else if !same(&without_scheduling(spec.at("template")), &without_scheduling(was.at("template"))) {
        let value = spec.at("template").clone();
        errors.push(FieldError::invalid(SPEC.field("template"), value, "field is immutable"));
    }
    for field in ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"] {
        immutable(spec.at(field), was.at(field), &SPEC.field(field), errors);
    }
}

/// A template without what may change before a suspended job starts: where its pods run, and what they ask for.
fn without_scheduling(template: &Value) -> Value {
    let mut template = template.clone();
    if let Some(metadata) = template.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("labels");
        metadata.remove("annotations");
    }
    let Some(spec) = template.get_mut("spec").and_then(Value::as_object_mut) else { return template };
    for field in ["nodeSelector", "tolerations", "schedulingGates", "affinity"] {
        spec.remove(field);
    }
    for list in ["containers", "initContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(container) = container.as_object_mut() {
                container.remove("resources");
            }
        }
    }
    template
}

/// What is wrong with a `CronJob`.
pub fn cron_job(new: &Value, old: Option<&Value>) -> Errors {
    let mut errors = begin(new);
    let spec = new.at("spec");
    let (when, path) = (spec.text("schedule"), SPEC.field("schedule"));
    if when.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else {
        if let Err(why) = schedule::parse(when) {
            errors.push(FieldError::invalid(path, when, why));
        }
        let zone_was_allowed = old.is_some_and(|old| old.at("spec").text("schedule").contains("TZ"));
        if when.contains("TZ") && !zone_was_allowed {
            let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
            errors.push(FieldError::invalid(path, when, detail));
        }
    }
    non_negative(spec, "startingDeadlineSeconds", &SPEC, &mut errors);
    time_zone(spec, &mut errors);
    one_of(spec, "concurrencyPolicy", &SPEC, &["Allow", "Forbid", "Replace"], &mut errors);
    let (template, path) = (spec.at("jobTemplate").at("spec"), SPEC.field("jobTemplate"));
    let path = path.field("spec");
    job_spec(template, &path, &mut errors);
    if template.has("selector") {
        let value = template.at("selector").clone();
        errors.push(FieldError::invalid(path.field("selector"), value, "`selector` will be auto-generated"));
    }
    if template.flag("manualSelector") {
        errors.push(FieldError::not_supported(path.field("manualSelector"), true, &["nil", "false"]));
    }
    non_negative(spec, "successfulJobsHistoryLimit", &SPEC, &mut errors);
    non_negative(spec, "failedJobsHistoryLimit", &SPEC, &mut errors);
    let name = new.at("metadata").text("name");
    if old.is_none() && name.len() > CRON_JOB_NAME_MAX {
        let detail = format!("must be no more than {CRON_JOB_NAME_MAX} characters");
        errors.push(FieldError::invalid(METADATA.field("name"), name, detail));
    }
    errors
}

/// A time zone's name must look like one. Whether it exists depends on the machine, and is not looked up.
fn time_zone(spec: &Value, errors: &mut Errors) {
    let Some(zone) = spec.at("timeZone").as_str() else { return };
    let path = SPEC.field("timeZone");
    let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b'+');
    let sound = |part: &str| {
        (1..=14).contains(&part.len())
            && part.bytes().all(legal)
            && !matches!(part, "." | "..")
            && !part.starts_with('-')
    };
    let detail = if zone.is_empty() {
        "timeZone must be nil or non-empty string".to_owned()
    } else if !zone.split('/').all(sound) {
        format!("unknown time zone {zone}")
    } else if zone.eq_ignore_ascii_case("local") {
        "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones".to_owned()
    } else {
        return;
    };
    errors.push(FieldError::invalid(path, zone, detail));
}
