//! What machines take over from their set as they are, and what their set says of them.

use serde_json::{Map, Value, json};
use windlass_api::kind::cluster_api::{Machine, MachineDeployment, MachineSet, MachineStatus};
use windlass_api::kind::condition;

use super::View;
use crate::management::conditions::{self, Fact};
use crate::management::context::{Error, Turn, deleting};
use crate::management::machine_deployment::is_current;
use crate::management::{time_outs, write};

/// Hands on what does not make another machine, and says which machines are not what they should be any more. That a machine is
/// what it should be, it says itself when it is new. One that goes is told how long it may take, and no more.
pub(super) async fn machines(view: &View<'_>) -> Result<(), Error> {
    let reasons =
        view.deployment.as_ref().map(|deployment| reasons(view.turn, deployment, view.set)).unwrap_or_default();
    for machine in &view.machines {
        if deleting(&machine.metadata) {
            hand_on_time_outs(view, machine).await?;
            continue;
        }
        let changed = hand_on(view, machine).await?;
        let machine = changed.as_ref().unwrap_or(machine);
        if let Some(status) = up_to_date(view.turn, machine, &reasons) {
            write::status(view.turn, machine, &status).await?;
        }
    }
    Ok(())
}

async fn hand_on_time_outs(view: &View<'_>, machine: &Machine) -> Result<(), Error> {
    let wanted = view.set.spec.template.spec.deletion.as_ref();
    let Some(change) = time_outs::change(machine.spec.deletion.as_ref(), wanted) else { return Ok(()) };
    write::patch(view.turn, machine, json!({"spec": {"deletion": change}})).await.map(drop)
}

/// The labels, annotations and time-outs of the set's template.
async fn hand_on(view: &View<'_>, machine: &Machine) -> Result<Option<Machine>, Error> {
    let template = &view.set.spec.template;
    let wanted = template.metadata.clone().unwrap_or_default();
    let mut metadata = Map::new();
    let known = machine.metadata.labels.clone().unwrap_or_default();
    for (part, known, wanted) in [
        ("labels", known, wanted.labels),
        ("annotations", machine.metadata.annotations.clone().unwrap_or_default(), wanted.annotations),
    ] {
        let differs = wanted.iter().filter(|(key, value)| known.get(*key) != Some(value));
        let change: Map<String, Value> = differs.map(|(key, value)| (key.clone(), json!(value))).collect();
        if !change.is_empty() {
            metadata.insert(part.to_owned(), Value::Object(change));
        }
    }
    let (known, wanted) = (&machine.spec, &template.spec);
    let mut spec = Map::new();
    if let Some(change) = time_outs::change(known.deletion.as_ref(), wanted.deletion.as_ref()) {
        spec.insert("deletion".into(), change);
    }
    if known.min_ready_seconds != wanted.min_ready_seconds {
        spec.insert("minReadySeconds".into(), json!(wanted.min_ready_seconds));
    }
    if known.readiness_gates != wanted.readiness_gates {
        spec.insert("readinessGates".into(), json!(wanted.readiness_gates));
    }
    let parts = [("metadata", metadata), ("spec", spec)].into_iter().filter(|(_, fields)| !fields.is_empty());
    let change: Map<String, Value> = parts.map(|(part, fields)| (part.to_owned(), Value::Object(fields))).collect();
    if change.is_empty() {
        return Ok(None);
    }
    write::patch(view.turn, machine, Value::Object(change)).await.map(Some)
}

/// Why the machines of a set are not what they should be, one line each.
fn reasons(turn: &Turn, deployment: &MachineDeployment, set: &MachineSet) -> Vec<String> {
    if is_current(turn, deployment, set) {
        return Vec::new();
    }
    let (known, wanted) = (&set.spec.template.spec, &deployment.spec.template.spec);
    let mut reasons = Vec::new();
    let mut differs = |what: &str, known: Option<&str>, wanted: Option<&str>| {
        if known != wanted {
            reasons.push(format!("* {what} {}, {} required", known.unwrap_or_default(), wanted.unwrap_or_default()));
        }
    };
    differs("Version", known.version.as_deref(), wanted.version.as_deref());
    differs("Failure domain", known.failure_domain.as_deref(), wanted.failure_domain.as_deref());
    if let (Some(known), Some(wanted)) = (&known.bootstrap.config_ref, &wanted.bootstrap.config_ref) {
        differs(&wanted.kind, Some(&known.name), Some(&wanted.name));
    }
    let (known, wanted) = (&known.infrastructure_ref, &wanted.infrastructure_ref);
    differs(&wanted.kind, Some(&known.name), Some(&wanted.name));
    if reasons.is_empty() {
        reasons.push("* MachineDeployment spec.rolloutAfter expired".to_owned());
    }
    reasons
}

/// The status of a machine that does not yet say whether it is what it should be; `None` if it does.
fn up_to_date(turn: &Turn, machine: &Machine, reasons: &[String]) -> Option<MachineStatus> {
    let status = machine.status.as_ref()?;
    let known = condition(&status.conditions, "UpToDate")?;
    let message = reasons.join("\n");
    if (known.status == "True") == reasons.is_empty() && known.message == message {
        return None;
    }
    let fact = if reasons.is_empty() {
        Fact::yes("UpToDate", "UpToDate")
    } else {
        Fact::no("UpToDate", "NotUpToDate", message)
    };
    let mut status = status.clone();
    conditions::set(&mut status.conditions, fact, machine.metadata.generation, &turn.now());
    Some(status)
}
