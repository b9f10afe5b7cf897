//! Pods: what their containers add up to.

use jiff::Timestamp;
use serde_json::Value;

use super::{NONE, age, condition, containers, count, flag, is_terminating, list, name, selector, text, text_or};
use crate::builtin::Column;

/// The columns of [`pod`].
pub(in crate::builtin) const COLUMNS: &[Column] = &[
    Column::NAME,
    Column::string("Ready"),
    Column::string("Status"),
    Column::string("Restarts"),
    Column::AGE,
    Column::wide("IP"),
    Column::wide("Node"),
    Column::wide("Nominated Node"),
    Column::wide("Readiness Gates"),
];

/// `Pod`.
pub(in crate::builtin) fn pod(object: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let summary = Summary::of(object);
    let restarts = match summary.restarted {
        Some(last) if summary.restarts != 0 => {
            format!("{} ({} ago)", summary.restarts, crate::age::human(now.duration_since(last)))
        }
        _ => summary.restarts.to_string(),
    };
    vec![
        name(object),
        format!("{}/{}", summary.ready, summary.total).into(),
        summary.reason.into(),
        restarts.into(),
        age(object, now),
        text_or(&status["podIPs"][0]["ip"], text_or(&status["podIP"], NONE)).into(),
        text_or(&spec["nodeName"], NONE).into(),
        text_or(&status["nominatedNodeName"], NONE).into(),
        readiness_gates(spec, status).into(),
    ]
}

fn readiness_gates(spec: &Value, status: &Value) -> String {
    let gates = list(&spec["readinessGates"]);
    if gates.is_empty() {
        return NONE.to_owned();
    }
    let open = gates.iter().filter(|gate| condition(status, text(&gate["conditionType"]))).count();
    format!("{open}/{}", gates.len())
}

/// What the containers of a pod add up to.
struct Summary {
    reason: String,
    ready: usize,
    total: usize,
    restarts: i64,
    restarted: Option<Timestamp>,
}

/// Restarts: how many, and when the last one ended what ran before.
#[derive(Default)]
struct Restarts {
    number: i64,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, container: &Value) {
        self.number = self.number.saturating_add(count(&container["restartCount"]));
        let ended = text(&container["lastState"]["terminated"]["finishedAt"]).parse().ok();
        self.last = self.last.max(ended);
    }
}

impl Summary {
    fn of(object: &Value) -> Self {
        let (spec, status) = (&object["spec"], &object["status"]);
        let init = list(&spec["initContainers"]);
        let sidecars = init.iter().filter(|container| is_sidecar(container)).count();
        let mut summary = Self {
            reason: first_reason(status),
            ready: 0,
            total: list(&spec["containers"]).len() + sidecars,
            restarts: 0,
            restarted: None,
        };
        let (mut all, mut of_sidecars) = (Restarts::default(), Restarts::default());
        let initializing = summary.initializing(init, status, &mut all, &mut of_sidecars);
        if !initializing || condition(status, "Initialized") {
            all = of_sidecars;
            summary.running(status, &mut all);
        }
        if is_terminating(object) {
            if status["reason"] == "NodeLost" {
                summary.reason = "Unknown".into();
            } else if !matches!(text(&status["phase"]), "Succeeded" | "Failed") {
                summary.reason = "Terminating".into();
            }
        }
        summary.restarts = all.number;
        summary.restarted = all.last;
        summary
    }

    /// Goes through the init containers up to the first that is not done. True when there is one.
    fn initializing(&mut self, init: &[Value], status: &Value, all: &mut Restarts, of_sidecars: &mut Restarts) -> bool {
        for (index, container) in list(&status["initContainerStatuses"]).iter().enumerate() {
            let sidecar = init.iter().any(|known| known["name"] == container["name"] && is_sidecar(known));
            all.add(container);
            if sidecar {
                of_sidecars.add(container);
            }
            let terminated = &container["state"]["terminated"];
            let waiting = text(&container["state"]["waiting"]["reason"]);
            if terminated.is_object() && count(&terminated["exitCode"]) == 0 {
                continue;
            }
            if sidecar && flag(&container["started"]) {
                self.ready += usize::from(flag(&container["ready"]));
                continue;
            }
            self.reason = if terminated.is_object() {
                format!("Init:{}", end_of(terminated))
            } else if !waiting.is_empty() && waiting != "PodInitializing" {
                format!("Init:{waiting}")
            } else {
                format!("Init:{index}/{}", init.len())
            };
            return true;
        }
        false
    }

    /// Goes through the containers proper, the last first: the first one with something to say has the last word.
    fn running(&mut self, status: &Value, all: &mut Restarts) {
        let (mut running, mut failed) = (false, None);
        for container in list(&status["containerStatuses"]).iter().rev() {
            all.add(container);
            let state = &container["state"];
            let waiting = text(&state["waiting"]["reason"]);
            if !waiting.is_empty() {
                self.reason = waiting.into();
            } else if state["terminated"].is_object() {
                self.reason = end_of(&state["terminated"]);
                if count(&state["terminated"]["exitCode"]) != 0 {
                    failed = Some(self.reason.clone());
                }
            } else if flag(&container["ready"]) && state["running"].is_object() {
                running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" {
            if running && condition(status, "Ready") {
                self.reason = "Running".into();
            } else if let Some(failed) = failed {
                self.reason = failed;
            } else if running {
                self.reason = "NotReady".into();
            }
        }
    }
}

fn first_reason(status: &Value) -> String {
    let gated = list(&status["conditions"])
        .iter()
        .any(|condition| condition["type"] == "PodScheduled" && condition["reason"] == "SchedulingGated");
    if gated { "SchedulingGated" } else { text_or(&status["reason"], text(&status["phase"])) }.to_owned()
}

/// An init container that keeps running beside the others.
fn is_sidecar(container: &Value) -> bool {
    container["restartPolicy"] == "Always"
}

/// How a container ended.
fn end_of(terminated: &Value) -> String {
    let (reason, signal) = (text(&terminated["reason"]), count(&terminated["signal"]));
    if !reason.is_empty() {
        reason.to_owned()
    } else if signal != 0 {
        format!("Signal:{signal}")
    } else {
        format!("ExitCode:{}", count(&terminated["exitCode"]))
    }
}

/// The columns of [`pod_template`].
pub(in crate::builtin) const TEMPLATE_COLUMNS: &[Column] =
    &[Column::NAME, Column::string("Containers"), Column::string("Images"), Column::string("Pod Labels")];

/// `PodTemplate`.
pub(in crate::builtin) fn pod_template(object: &Value, _: Timestamp) -> Vec<Value> {
    let [names, images] = containers(&object["template"]);
    vec![name(object), names, images, selector::labels(&object["template"]["metadata"]["labels"]).into()]
}

/// The columns of [`disruption_budget`].
pub(in crate::builtin) const BUDGET_COLUMNS: &[Column] = &[
    Column::NAME,
    Column::string("Min Available"),
    Column::string("Max Unavailable"),
    Column::integer("Allowed Disruptions"),
    Column::AGE,
];

/// `PodDisruptionBudget`.
pub(in crate::builtin) fn disruption_budget(object: &Value, now: Timestamp) -> Vec<Value> {
    let bound = |value: &Value| match value {
        Value::Null => "N/A".to_owned(),
        Value::String(share) => share.clone(),
        number => number.to_string(),
    };
    vec![
        name(object),
        bound(&object["spec"]["minAvailable"]).into(),
        bound(&object["spec"]["maxUnavailable"]).into(),
        count(&object["status"]["disruptionsAllowed"]).into(),
        age(object, now),
    ]
}
