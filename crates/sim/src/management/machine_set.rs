//! The core of Cluster API for `MachineSet`s: so many machines that are alike.

mod clone;

use std::collections::BTreeSet;
use std::sync::Arc;

use windlass_api::annotation;
use windlass_api::kind::cluster_api::{Machine, MachineDeployment, MachineSet, MachineSetStatus};
use windlass_api::kind::{condition, is_true};
use windlass_api::label;
use windlass_api::name::{MachineName, NameLimit, UpdateIdError, replacement_name};
use windlass_runtime::key::Key;
use windlass_runtime::runner::Outcome;

use super::context::{Error, Turn, deleting, path, paused};
use super::machine_deployment::template_hash;
use super::ownership::{controller, is_owned_by};
use super::write;

pub(super) async fn reconcile(turn: &Turn, set: &MachineSet) -> Result<Outcome, Error> {
    let meta = &set.metadata;
    let key = Key { namespace: meta.namespace.clone(), name: set.spec.cluster_name.clone() };
    let Some(cluster) = turn.caches.clusters.get(&key) else { return Ok(Outcome::done()) };
    // The machines of a set that goes are collected after it.
    if deleting(meta) || deleting(&cluster.metadata) || paused(meta, &cluster) {
        return Ok(Outcome::done());
    }
    let machines = machines(turn, set);
    let wanted = usize::try_from(set.spec.replicas.unwrap_or(1)).unwrap_or(usize::MAX);
    if machines.len() < wanted {
        let mut names: BTreeSet<String> = machines.iter().filter_map(|machine| machine.metadata.name.clone()).collect();
        for _ in machines.len()..wanted {
            let name = free_name(set, &names)?;
            if !clone::machine(turn, set, &name).await? {
                // A template is not there yet; its watch will tell.
                break;
            }
            names.insert(name);
        }
    }
    for machine in surplus(&machines, wanted) {
        write::delete(turn, &**machine).await?;
    }
    let status = status(turn, set, &machines);
    if set.status.as_ref() != Some(&status) {
        write::status(turn, set, &status).await?;
    }
    Ok(Outcome::done())
}

/// The machines of the set, those on their way out too.
fn machines(turn: &Turn, set: &MachineSet) -> Vec<Arc<Machine>> {
    let all = turn.caches.machines.list_in(set.metadata.namespace.as_deref().unwrap_or_default());
    all.into_iter().filter(|machine| is_owned_by(&machine.metadata, set)).collect()
}

/// The machines that are too many, the most dispensable first, without those that go already.
fn surplus(machines: &[Arc<Machine>], wanted: usize) -> Vec<&Arc<Machine>> {
    let mut candidates: Vec<&Arc<Machine>> = machines.iter().collect();
    candidates.sort_by_key(|machine| (value(machine), machine.metadata.name.clone()));
    let many = machines.len().saturating_sub(wanted);
    candidates.into_iter().take(many).filter(|machine| !deleting(&machine.metadata)).collect()
}

/// How much a machine would be missed. The order is that of Cluster API, whose default among equals is by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Value {
    Deleting,
    Marked,
    Unhealthy,
    Useful,
}

fn value(machine: &Machine) -> Value {
    let marked = machine.metadata.annotations.as_ref().is_some_and(|all| annotation::DELETE_MACHINE.is_in(all));
    let status = machine.status.as_ref();
    let healthy = status.is_some_and(|status| {
        status.node_ref.is_some()
            && condition(&status.conditions, "NodeHealthy").is_none_or(|healthy| healthy.status != "False")
    });
    match () {
        () if deleting(&machine.metadata) => Value::Deleting,
        () if marked => Value::Marked,
        () if !healthy => Value::Unhealthy,
        () => Value::Useful,
    }
}

/// The name with the lowest ordinal that is not taken.
fn free_name(set: &MachineSet, taken: &BTreeSet<String>) -> Result<String, Error> {
    // One more than there are taken is enough: one of them is free.
    for ordinal in 0..=taken.len() {
        let name = numbered(set.metadata.name.as_deref().unwrap_or_default(), &ordinal.to_string())?;
        if !taken.contains(&name) {
            return Ok(name);
        }
    }
    Err(Error::Taken { object: format!("a Machine of MachineSet {}", path(&set.metadata)) })
}

/// `<base>-<number>`, with a hash in place of what does not fit into a label.
pub(super) fn numbered(base: &str, number: &str) -> Result<String, Error> {
    let refuse = |why: String| Error::Text { what: format!("name {base}-{number}"), why };
    let name = MachineName::new(base).map_err(|error| refuse(error.to_string()))?;
    let number = number.parse().map_err(|error: UpdateIdError| refuse(error.to_string()))?;
    Ok(replacement_name(&name, number, NameLimit::LabelValue).to_string())
}

fn status(turn: &Turn, set: &MachineSet, machines: &[Arc<Machine>]) -> MachineSetStatus {
    let count = |type_: &str| {
        let those = machines
            .iter()
            .filter(|machine| machine.status.as_ref().is_some_and(|status| is_true(&status.conditions, type_)));
        u32::try_from(those.count()).unwrap_or(u32::MAX)
    };
    let replicas = u32::try_from(machines.len()).unwrap_or(u32::MAX);
    MachineSetStatus {
        replicas,
        ready_replicas: count("Ready"),
        available_replicas: count("Available"),
        up_to_date_replicas: if is_current(turn, set) { replicas } else { 0 },
        observed_generation: set.metadata.generation,
        conditions: set.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default(),
        ..MachineSetStatus::default()
    }
}

/// Whether the set is as its deployment says now. One without a deployment always is.
fn is_current(turn: &Turn, set: &MachineSet) -> bool {
    let Some(name) = controller::<MachineDeployment>(&set.metadata) else { return true };
    let key = Key { namespace: set.metadata.namespace.clone(), name: name.to_owned() };
    let Some(deployment) = turn.caches.machine_deployments.get(&key) else { return false };
    let hash = set.metadata.labels.as_ref().and_then(|labels| labels.get(label::TEMPLATE_HASH.name));
    hash == Some(&template_hash(&deployment.spec.template))
}
