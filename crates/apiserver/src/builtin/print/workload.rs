//! Workloads: how many of their pods are there.

use jiff::Timestamp;
use serde_json::Value;

use super::{NONE, UNSET, age, condition, containers, count, is_terminating, list, name, selector, since, text};
use crate::builtin::Column;

/// The columns of [`deployment`].
pub(in crate::builtin) const DEPLOYMENT_COLUMNS: &[Column] = &[
    Column::NAME,
    Column::string("Ready"),
    Column::string("Up-to-date"),
    Column::string("Available"),
    Column::AGE,
    Column::wide("Containers"),
    Column::wide("Images"),
    Column::wide("Selector"),
];

/// `Deployment`.
pub(in crate::builtin) fn deployment(object: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let [names, images] = containers(&spec["template"]);
    vec![
        name(object),
        format!("{}/{}", count(&status["readyReplicas"]), count(&spec["replicas"])).into(),
        count(&status["updatedReplicas"]).into(),
        count(&status["availableReplicas"]).into(),
        age(object, now),
        names,
        images,
        selector::requirements(&spec["selector"]).unwrap_or_else(|| "<invalid>".to_owned()).into(),
    ]
}

/// The columns of [`replica_set`].
pub(in crate::builtin) const REPLICA_SET_COLUMNS: &[Column] = &[
    Column::NAME,
    Column::integer("Desired"),
    Column::integer("Current"),
    Column::integer("Ready"),
    Column::AGE,
    Column::wide("Containers"),
    Column::wide("Images"),
    Column::wide("Selector"),
];

/// `ReplicaSet`.
pub(in crate::builtin) fn replica_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let [names, images] = containers(&spec["template"]);
    vec![
        name(object),
        count(&spec["replicas"]).into(),
        count(&status["replicas"]).into(),
        count(&status["readyReplicas"]).into(),
        age(object, now),
        names,
        images,
        selector::selector(&spec["selector"]).into(),
    ]
}

/// `ReplicationController`.
pub(in crate::builtin) fn replication_controller(object: &Value, now: Timestamp) -> Vec<Value> {
    let mut row = replica_set(object, now);
    if let Some(cell) = row.last_mut() {
        *cell = selector::labels(&object["spec"]["selector"]).into();
    }
    row
}

/// The columns of [`daemon_set`].
pub(in crate::builtin) const DAEMON_SET_COLUMNS: &[Column] = &[
    Column::NAME,
    Column::integer("Desired"),
    Column::integer("Current"),
    Column::integer("Ready"),
    Column::integer("Up-to-date"),
    Column::integer("Available"),
    Column::string("Node Selector"),
    Column::AGE,
    Column::wide("Containers"),
    Column::wide("Images"),
    Column::wide("Selector"),
];

/// `DaemonSet`.
pub(in crate::builtin) fn daemon_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let [names, images] = containers(&spec["template"]);
    vec![
        name(object),
        count(&status["desiredNumberScheduled"]).into(),
        count(&status["currentNumberScheduled"]).into(),
        count(&status["numberReady"]).into(),
        count(&status["updatedNumberScheduled"]).into(),
        count(&status["numberAvailable"]).into(),
        selector::labels(&spec["template"]["spec"]["nodeSelector"]).into(),
        age(object, now),
        names,
        images,
        selector::selector(&spec["selector"]).into(),
    ]
}

/// The columns of [`stateful_set`].
pub(in crate::builtin) const STATEFUL_SET_COLUMNS: &[Column] =
    &[Column::NAME, Column::string("Ready"), Column::AGE, Column::wide("Containers"), Column::wide("Images")];

/// `StatefulSet`.
pub(in crate::builtin) fn stateful_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let [names, images] = containers(&spec["template"]);
    let ready = format!("{}/{}", count(&status["readyReplicas"]), count(&spec["replicas"]));
    vec![name(object), ready.into(), age(object, now), names, images]
}

/// The columns of [`controller_revision`].
pub(in crate::builtin) const REVISION_COLUMNS: &[Column] =
    &[Column::NAME, Column::string("Controller"), Column::string("Revision"), Column::AGE];

/// `ControllerRevision`.
pub(in crate::builtin) fn controller_revision(object: &Value, now: Timestamp) -> Vec<Value> {
    let owners = list(&object["metadata"]["ownerReferences"]);
    let controller = owners.iter().find(|owner| owner["controller"] == true).map_or_else(
        || NONE.to_owned(),
        |owner| {
            let kind = text(&owner["kind"]).to_lowercase();
            let group = text(&owner["apiVersion"]).rsplit_once('/').map_or("", |(group, _)| group);
            let dot = if group.is_empty() { "" } else { "." };
            format!("{kind}{dot}{group}/{}", text(&owner["name"]))
        },
    );
    vec![name(object), controller.into(), count(&object["revision"]).into(), age(object, now)]
}

/// The columns of [`job`].
pub(in crate::builtin) const JOB_COLUMNS: &[Column] = &[
    Column::NAME,
    Column::string("Status"),
    Column::string("Completions"),
    Column::string("Duration"),
    Column::AGE,
    Column::wide("Containers"),
    Column::wide("Images"),
    Column::wide("Selector"),
];

/// `Job`.
pub(in crate::builtin) fn job(object: &Value, now: Timestamp) -> Vec<Value> {
    let spec = &object["spec"];
    let [names, images] = containers(&spec["template"]);
    vec![
        name(object),
        job_status(object).into(),
        completions(object).into(),
        job_duration(&object["status"], now).into(),
        age(object, now),
        names,
        images,
        selector::selector(&spec["selector"]).into(),
    ]
}

fn job_status(object: &Value) -> &'static str {
    let has = |kind| condition(&object["status"], kind);
    match () {
        () if has("Complete") => "Complete",
        () if has("Failed") => "Failed",
        () if is_terminating(object) => "Terminating",
        () if has("Suspended") => "Suspended",
        () if has("FailureTarget") => "FailureTarget",
        () if has("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    }
}

fn completions(object: &Value) -> String {
    let (spec, succeeded) = (&object["spec"], count(&object["status"]["succeeded"]));
    match (spec["completions"].as_i64(), count(&spec["parallelism"])) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        (None, parallel) if parallel > 1 => format!("{succeeded}/1 of {parallel}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

fn job_duration(status: &Value, now: Timestamp) -> String {
    let Ok(start) = text(&status["startTime"]).parse::<Timestamp>() else { return String::new() };
    let end = text(&status["completionTime"]).parse().unwrap_or(now);
    crate::age::human(end.duration_since(start))
}

/// The columns of [`cron_job`].
pub(in crate::builtin) const CRON_JOB_COLUMNS: &[Column] = &[
    Column::NAME,
    Column::string("Schedule"),
    Column::string("Timezone"),
    Column::boolean("Suspend"),
    Column::integer("Active"),
    Column::string("Last Schedule"),
    Column::AGE,
    Column::wide("Containers"),
    Column::wide("Images"),
    Column::wide("Selector"),
];

/// `CronJob`.
pub(in crate::builtin) fn cron_job(object: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let job = &spec["jobTemplate"]["spec"];
    let [names, images] = containers(&job["template"]);
    let suspended = match spec["suspend"].as_bool() {
        Some(true) => "True",
        Some(false) => "False",
        None => UNSET,
    };
    let last = match &status["lastScheduleTime"] {
        Value::Null => NONE.to_owned(),
        time => since(time, now),
    };
    vec![
        name(object),
        text(&spec["schedule"]).into(),
        spec["timeZone"].as_str().unwrap_or(NONE).into(),
        suspended.into(),
        list(&status["active"]).len().into(),
        last.into(),
        age(object, now),
        names,
        images,
        selector::selector(&job["selector"]).into(),
    ]
}

/// The columns of [`scale`].
pub const SCALE_COLUMNS: &[Column] = &[
    Column { name: "Name", type_: "string", format: "", priority: 0 },
    Column::integer("Desired"),
    Column::integer("Available"),
    Column::AGE,
];

/// The `Scale` of any kind that can be scaled.
pub fn scale(object: &Value, now: Timestamp) -> Vec<Value> {
    let (wanted, there) = (&object["spec"]["replicas"], &object["status"]["replicas"]);
    vec![name(object), count(wanted).into(), count(there).into(), age(object, now)]
}
