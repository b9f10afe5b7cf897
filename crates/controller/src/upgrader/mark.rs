//! The marks that an update leaves on machines: its id while it runs, and for good the base of their names.

use kube::ResourceExt;
use serde_json::{Value, json};
use windlass_api::annotation::{MACHINE_NAME_BASE, MACHINE_UPDATE_ID};
use windlass_api::kind::cluster_api::Machine;
use windlass_api::name::{MachineName, UpdateId};

use super::attempt::Attempt;
use super::{Error, write};

/// The base of a machine's name: its own name, if it is the first in its row.
pub fn base(machine: &Machine) -> Result<MachineName, Error> {
    let annotated = MACHINE_NAME_BASE
        .get(machine.annotations())
        .map_err(|source| Error::Annotation { machine: machine.name_any(), source })?;
    match annotated {
        Some(base) => Ok(base),
        None => Ok(MachineName::new(&machine.name_any())?),
    }
}

/// Marks a machine that is to be replaced. Returns it as it is then: it may carry the mark of another update that came first.
pub async fn set(attempt: &Attempt<'_>, machine: Machine, base: &MachineName) -> Result<Machine, Error> {
    let id = attempt.arguments.upgrade_id;
    let doing = format!("mark the machine {} with the id {id}", machine.name_any());
    write::revise(&attempt.machines(), machine, &doing, |machine| to_set(machine, base, id)).await
}

fn to_set(machine: &Machine, base: &MachineName, id: UpdateId) -> Option<Value> {
    let annotations = machine.annotations();
    if MACHINE_UPDATE_ID.is_in(annotations) {
        return None;
    }
    let mut wanted = json!({ MACHINE_UPDATE_ID.name: MACHINE_UPDATE_ID.text(&id) });
    if !MACHINE_NAME_BASE.is_in(annotations) {
        wanted[MACHINE_NAME_BASE.name] = json!(MACHINE_NAME_BASE.text(base));
    }
    Some(json!({ "metadata": { "annotations": wanted } }))
}

/// The update has ended: its id goes, the base of the name stays. Returns the machine as it is then.
pub async fn remove(attempt: &Attempt<'_>, machine: Machine) -> Result<Machine, Error> {
    let id = attempt.arguments.upgrade_id;
    let doing = format!("take the id {id} from the machine {}", machine.name_any());
    write::revise(&attempt.machines(), machine, &doing, |machine| {
        let carries = machine.annotations().get(MACHINE_UPDATE_ID.name) == Some(&id.to_string());
        carries.then(|| json!({ "metadata": { "annotations": { MACHINE_UPDATE_ID.name: null } } }))
    })
    .await
}
