//! The marks that an update leaves on machines: its id while it runs, and for good the base of their names.

use kube::ResourceExt;
use serde_json::{Value, json};
use windlass_api::annotation::{MACHINE_NAME_BASE, MACHINE_UPDATE_ID};
use windlass_api::kind::cluster_api::Machine;
use windlass_api::name::{MachineName, UpdateId};

use super::attempt::Attempt;
use super::row::Place;
use super::{Error, write};

/// Whether a machine carries the id.
pub fn carries(machine: &Machine, id: UpdateId) -> bool {
    machine.annotations().get(MACHINE_UPDATE_ID.name).is_some_and(|text| *text == id.to_string())
}

/// Refuses a machine that another update has not let go of: were it passed over, the run would end well with nothing done.
pub fn refuse_other(machine: &Machine, id: UpdateId) -> Result<(), Error> {
    match machine.annotations().get(MACHINE_UPDATE_ID.name) {
        Some(theirs) if *theirs != id.to_string() => {
            Err(Error::OtherUpdate { machine: machine.name_any(), theirs: theirs.clone() })
        }
        _ => Ok(()),
    }
}

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

/// Marks every machine that is to be replaced.
pub async fn set(attempt: &Attempt<'_>, places: &[Place]) -> Result<(), Error> {
    let id = attempt.arguments.upgrade_id;
    let api = attempt.machines();
    for place in places {
        let doing = format!("mark the machine {} with the id {id}", place.original.name_any());
        let marked = write::revise(&api, place.original.clone(), &doing, |machine| to_set(machine, &place.base, id));
        // It may have been marked by another update since it was listed.
        refuse_other(&marked.await?, id)?;
    }
    Ok(())
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

/// The update has ended: its id goes, the base of the name stays.
pub async fn remove(attempt: &Attempt<'_>, machines: Vec<Machine>) -> Result<(), Error> {
    let id = attempt.arguments.upgrade_id;
    let api = attempt.machines();
    for machine in machines {
        let doing = format!("take the id {id} from the machine {}", machine.name_any());
        write::revise(&api, machine, &doing, |machine| {
            carries(machine, id).then(|| json!({ "metadata": { "annotations": { MACHINE_UPDATE_ID.name: null } } }))
        })
        .await?;
    }
    Ok(())
}
