//! Rows of machines: those that take each other's place from one update to the next share the base of their names.

use std::collections::BTreeMap;

use kube::ResourceExt;
use windlass_api::kind::cluster_api::Machine;
use windlass_api::name::{MachineName, NameLimit, UpdateId, replacement_name};

use super::{Error, mark};

/// A machine that this update has to replace, and what replaces it.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    /// The machine that goes.
    pub original: Machine,
    /// The base of both names.
    pub base: MachineName,
    /// The name of the machine that comes, and of its infrastructure and configuration.
    pub name: MachineName,
    /// The machine that comes, if an earlier run has created it.
    pub replacement: Option<Machine>,
}

/// The machines that this update has not replaced yet: first the one that an earlier run was in the middle of, then by name.
pub fn to_replace(machines: &[Machine], id: UpdateId) -> Result<Vec<Place>, Error> {
    let by_name: BTreeMap<String, &Machine> = machines.iter().map(|machine| (machine.name_any(), machine)).collect();
    let mut places: BTreeMap<MachineName, Place> = BTreeMap::new();
    for (own_name, machine) in &by_name {
        let base = mark::base(machine)?;
        let name = replacement_name(&base, id, NameLimit::LabelValue);
        if name.as_str() == own_name {
            continue;
        }
        let replacement = by_name.get(name.as_str()).map(|found| (*found).clone());
        let place = Place { original: (*machine).clone(), base, name: name.clone(), replacement };
        if let Some(other) = places.insert(name, place) {
            let base = other.base.to_string();
            return Err(Error::SharedBase { first: other.original.name_any(), second: own_name.clone(), base });
        }
    }
    let mut places: Vec<Place> = places.into_values().collect();
    places.sort_by_key(|place| (place.replacement.is_none(), place.original.name_any()));
    Ok(places)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_api::annotation::MACHINE_NAME_BASE;

    fn machine(name: &str, base: Option<&str>) -> Machine {
        let mut machine = Machine::new(name, windlass_api::kind::cluster_api::MachineSpec::default());
        if let Some(base) = base {
            machine.annotations_mut().insert(MACHINE_NAME_BASE.name.to_owned(), base.to_owned());
        }
        machine
    }

    fn check(machines: &[(&str, Option<&str>)], expected: &[(&str, &str, bool)]) {
        let machines: Vec<Machine> = machines.iter().map(|(name, base)| machine(name, *base)).collect();
        let places = to_replace(&machines, "7".parse().unwrap()).unwrap();
        let found: Vec<(String, &str, bool)> = places
            .iter()
            .map(|place| (place.original.name_any(), place.name.as_str(), place.replacement.is_some()))
            .collect();
        let expected: Vec<(String, &str, bool)> =
            expected.iter().map(|(original, name, begun)| ((*original).to_owned(), *name, *begun)).collect();
        assert_eq!(found, expected, "{machines:?}");
    }

    #[test]
    fn each_machine_is_replaced_once_in_the_order_of_names() {
        check(&[("cp-2-6", Some("cp-2")), ("cp-1", None)], &[("cp-1", "cp-1-7", false), ("cp-2-6", "cp-2-7", false)]);
        check(&[("cp-1-7", Some("cp-1")), ("cp-2-7", Some("cp-2"))], &[]);
    }

    #[test]
    fn what_was_begun_is_ended_first() {
        check(
            &[("a-6", Some("a")), ("b-6", Some("b")), ("b-7", Some("b"))],
            &[("b-6", "b-7", true), ("a-6", "a-7", false)],
        );
    }

    #[test]
    fn two_machines_never_share_a_replacement() {
        let machines = [machine("a-5", Some("a")), machine("a-6", Some("a"))];
        let refusal = to_replace(&machines, "7".parse().unwrap()).unwrap_err().report();
        assert!(refusal.starts_with("the machines a-5 and a-6 both have the name base a"), "{refusal}");
    }
}
