//! Rows of machines: those that take each other's place from one update to the next share the base of their names.

use std::collections::BTreeMap;

use windlass_api::name::{MachineName, NameLimit, NodeName, UpdateId, replacement_name};

use super::Failure;
use crate::inventory::{Machine, MachineState};

/// A machine that this update has to replace, what replaces it, or both.
#[derive(Debug, Clone, PartialEq)]
pub struct Row<'a> {
    /// The base of both names.
    pub base: MachineName,
    /// The name of the machine that comes, and of its infrastructure and configuration.
    pub name: MachineName,
    /// The machine that goes, while it is there.
    pub original: Option<&'a Machine>,
    /// The machine that comes, once it is there.
    pub replacement: Option<&'a Machine>,
}

/// The rows of a control plane, by the names of what they will be made of.
pub fn rows(machines: &[Machine], id: UpdateId) -> Result<Vec<Row<'_>>, Failure> {
    let mut rows: BTreeMap<MachineName, Row<'_>> = BTreeMap::new();
    for machine in machines {
        let base = machine.row().clone();
        let name = replacement_name(&base, id, NameLimit::LabelValue);
        let is_replacement = name == machine.name;
        let row =
            rows.entry(name.clone()).or_insert(Row { base: base.clone(), name, original: None, replacement: None });
        let place = if is_replacement { &mut row.replacement } else { &mut row.original };
        if let Some(first) = place.replace(machine) {
            return Err(Failure::SharedBase { first: first.name.clone(), second: machine.name.clone(), base });
        }
    }
    Ok(rows.into_values().collect())
}

/// The replacement whose original is still there. Its health decides over the original, so it is looked at closely.
pub fn in_flight(machines: &[Machine], id: UpdateId) -> Option<&Machine> {
    let rows = rows(machines, id).ok()?;
    rows.into_iter().find_map(|row| row.original.and(row.replacement))
}

/// The names under which replacements are still to come, or were to.
pub fn replacement_names(machines: &[Machine], id: UpdateId) -> Vec<MachineName> {
    let rows = rows(machines, id).unwrap_or_default();
    rows.into_iter().filter(|row| row.replacement.is_none()).map(|row| row.name).collect()
}

/// The node that a machine is, or was.
pub fn node(machine: &Machine) -> Option<&NodeName> {
    match &machine.state {
        MachineState::Ready { node } | MachineState::Unhealthy { node, .. } => Some(node),
        MachineState::Deleting { node } => node.as_ref(),
        MachineState::Joining { .. } => None,
    }
}
