//! The core of Cluster API for `MachineSet`s: so many machines that are alike.

mod clone;
pub(super) mod fact;
mod order;
mod preflight;
mod remediation;
mod sync;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value, json};
use windlass_api::kind::ContractReference;
use windlass_api::kind::cluster_api::{
    Cluster, Machine, MachineDeployment, MachineSet, MachineSetStatus, MachineTemplate, VersionCount,
};
use windlass_api::kind::is_true;
use windlass_api::name::{MachineName, NameLimit, UpdateIdError, replacement_name};
use windlass_api::{annotation, label};
use windlass_runtime::key::Key;
use windlass_runtime::runner::Outcome;

use super::conditions::{self, Fact};
use super::context::{Error, Turn, belonging, deleting, path};
use super::machine_deployment::{is_current, selector_text};
use super::ownership::{controller, is_held, is_owned_by, owned_by, owners, with_finalizer};
use super::{defaults, part, pause, write};

/// What holds up the deletion of a `MachineSet`.
pub(super) const FINALIZER: &str = "cluster.x-k8s.io/machineset";
/// The least ordinal that a new machine of a set may have in its name: those below may have been given before.
const FIRST_ORDINAL: &str = "sim.windlass.dev/first-ordinal";

pub(super) async fn reconcile(turn: &Turn, set: &MachineSet) -> Result<Outcome, Error> {
    let meta = &set.metadata;
    let key = Key { namespace: meta.namespace.clone(), name: set.spec.cluster_name.clone() };
    let Some(cluster) = turn.caches.clusters.get(&key) else { return Ok(Outcome::done()) };
    if let Some(outcome) = pause::held(turn, set, Some(&cluster)).await? {
        return Ok(outcome);
    }
    if deleting(meta) {
        return remove(turn, set).await;
    }
    if deleting(&cluster.metadata) {
        return Ok(Outcome::done());
    }
    let machines = machines(turn, set);
    let held = own_fields(turn, set, &cluster, &machines).await?;
    let set = held.as_ref().unwrap_or(set);
    let view = View { turn, cluster: &cluster, set, deployment: deployment(turn, set), machines };
    sync::machines(&view).await?;
    remediation::machines(&view).await?;
    if view.scale().await? {
        // What was made or deleted will be heard of, and is counted then.
        return Ok(Outcome::done());
    }
    let status = view.status();
    if set.status.as_ref() != Some(&status) {
        write::status(turn, set, &status).await?;
    }
    Ok(Outcome::done())
}

/// A set and all that is decided by.
struct View<'a> {
    turn: &'a Turn,
    cluster: &'a Cluster,
    set: &'a MachineSet,
    /// Whose set it is, if it does not stand for itself.
    deployment: Option<Arc<MachineDeployment>>,
    /// Its machines, those on their way out too, as they were seen.
    machines: Vec<Arc<Machine>>,
}

/// The finalizer, the first ordinal that is free, and what people left out; and a set that stands for itself goes with its Cluster.
async fn own_fields(
    turn: &Turn,
    set: &MachineSet,
    cluster: &Cluster,
    machines: &[Arc<Machine>],
) -> Result<Option<MachineSet>, Error> {
    let mut metadata = Map::new();
    if let Some(finalizers) = with_finalizer(&set.metadata, FINALIZER) {
        metadata.insert("finalizers".into(), json!(finalizers));
    }
    if owners(&set.metadata).is_empty() {
        metadata.insert("ownerReferences".into(), json!([owned_by(cluster)]));
    }
    if let Some(ordinal) = ordinal_after(set, machines) {
        metadata.insert("annotations".into(), json!({ FIRST_ORDINAL: ordinal.to_string() }));
    }
    let labels = defaults::labels(&set.metadata, &set.spec.cluster_name);
    if !labels.is_empty() {
        metadata.insert("labels".into(), Value::Object(labels));
    }
    let by_name = (label::SET_NAME.name, set.metadata.name.as_deref());
    let mut spec = defaults::selection(by_name, &set.spec.cluster_name, &set.spec.selector, &set.spec.template);
    if set.spec.replicas.is_none() {
        spec.insert("replicas".into(), json!(1));
    }
    let parts = [("metadata", metadata), ("spec", spec)].into_iter().filter(|(_, fields)| !fields.is_empty());
    let change: Map<String, Value> = parts.map(|(part, fields)| (part.to_owned(), Value::Object(fields))).collect();
    if change.is_empty() {
        return Ok(None);
    }
    write::patch(turn, set, Value::Object(change)).await.map(Some)
}

/// Its machines go first.
async fn remove(turn: &Turn, set: &MachineSet) -> Result<Outcome, Error> {
    if !is_held(&set.metadata, FINALIZER) {
        return Ok(Outcome::done());
    }
    let machines = machines(turn, set);
    if machines.is_empty() {
        write::release(turn, set, FINALIZER).await?;
        return Ok(Outcome::done());
    }
    let mut status = set.status.clone().unwrap_or_default();
    let fact = Fact { message: "Deleting Machines".to_owned(), ..Fact::yes("Deleting", "Deleting") };
    conditions::set(&mut status.conditions, fact, set.metadata.generation, &turn.now());
    if set.status.as_ref() != Some(&status) {
        write::status(turn, set, &status).await?;
    }
    for machine in machines.iter().filter(|machine| !deleting(&machine.metadata)) {
        write::delete(turn, &**machine).await?;
    }
    Ok(Outcome::done())
}

fn deployment(turn: &Turn, set: &MachineSet) -> Option<Arc<MachineDeployment>> {
    let name = controller::<MachineDeployment>(&set.metadata)?;
    turn.caches.machine_deployments.get(&Key { namespace: set.metadata.namespace.clone(), name: name.to_owned() })
}

/// The machines of a set, those on their way out too.
pub(super) fn machines(turn: &Turn, set: &MachineSet) -> Vec<Arc<Machine>> {
    let all = belonging(&turn.caches.machines, &set.metadata, &set.spec.cluster_name);
    all.into_iter().filter(|machine| is_owned_by(&machine.metadata, set)).collect()
}

/// Which templates of a set are not there, as a clause; `None` if all are.
pub(super) fn missing_templates(turn: &Turn, meta: &ObjectMeta, template: &MachineTemplate) -> Option<String> {
    let references = [template.spec.bootstrap.config_ref.as_ref(), Some(&template.spec.infrastructure_ref)];
    let is_missing = |reference: &&ContractReference| part::template(turn, meta, reference).is_none();
    let missing: Vec<&str> =
        references.into_iter().flatten().filter(is_missing).map(|reference| reference.kind.as_str()).collect();
    let verb = if missing.len() > 1 { "do" } else { "does" };
    (!missing.is_empty()).then(|| format!("because {} {verb} not exist", missing.join(" and ")))
}

impl View<'_> {
    /// Whether the set is what its deployment should become. One that stands for itself always is.
    fn is_current(&self) -> bool {
        match (&self.deployment, controller::<MachineDeployment>(&self.set.metadata)) {
            (Some(deployment), _) => is_current(self.turn, deployment, self.set),
            (None, of_deployment) => of_deployment.is_none(),
        }
    }

    /// Makes what is missing, and deletes what is too much. Whether there was anything to do.
    async fn scale(&self) -> Result<bool, Error> {
        let wanted = usize::try_from(self.set.spec.replicas.unwrap_or(1)).unwrap_or(usize::MAX);
        let surplus = order::surplus(self.set, &self.machines, wanted, self.turn.clock.now());
        for machine in &surplus {
            write::delete(self.turn, &***machine).await?;
        }
        if self.machines.len() >= wanted || self.blocked().is_some() {
            return Ok(!surplus.is_empty());
        }
        let mut names: BTreeSet<String> =
            self.machines.iter().filter_map(|machine| machine.metadata.name.clone()).collect();
        for _ in self.machines.len()..wanted {
            let name = free_name(self.set, &names)?;
            if !clone::machine(self.turn, self.set, &name).await? {
                // A template is not there yet; its watch will tell.
                return Ok(false);
            }
            names.insert(name);
        }
        Ok(true)
    }

    /// What is in the way of making machines, as a clause. What concerns the control plane is only asked when there are
    /// machines to be made.
    fn blocked(&self) -> Option<String> {
        let annotations = self.set.metadata.annotations.as_ref();
        if annotations.is_some_and(|annotations| annotation::DISABLE_MACHINE_CREATE.is_in(annotations)) {
            return Some("because creation of Machines is disabled".to_owned());
        }
        if let Some(missing) = missing_templates(self.turn, &self.set.metadata, &self.set.spec.template) {
            return Some(missing);
        }
        let wanted = usize::try_from(self.set.spec.replicas.unwrap_or(1)).unwrap_or(usize::MAX);
        if self.machines.len() >= wanted {
            return None;
        }
        let refusals = preflight::refusals(self);
        (!refusals.is_empty()).then(|| format!("because:\n* {}", refusals.join("\n* ")))
    }

    fn status(&self) -> MachineSetStatus {
        let machines = &self.machines;
        let count = |type_: &str| {
            let those = machines
                .iter()
                .filter(|machine| machine.status.as_ref().is_some_and(|status| is_true(&status.conditions, type_)));
            u32::try_from(those.count()).unwrap_or(u32::MAX)
        };
        let replicas = u32::try_from(machines.len()).unwrap_or(u32::MAX);
        let mut status = MachineSetStatus {
            replicas,
            selector: Some(selector_text(&self.set.spec.selector)),
            ready_replicas: count("Ready"),
            available_replicas: count("Available"),
            up_to_date_replicas: if self.is_current() { replicas } else { 0 },
            versions: versions(machines),
            observed_generation: self.set.metadata.generation,
            conditions: self.set.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default(),
            ..MachineSetStatus::default()
        };
        let wanted = self.set.spec.replicas.unwrap_or(1);
        let facts = [
            fact::machines_ready(machines),
            fact::machines_up_to_date(machines),
            fact::scaling_up(replicas, wanted, self.blocked()),
            fact::scaling_down(replicas, wanted),
            fact::remediating(machines),
            fact::not_deleting(),
        ];
        for fact in facts {
            conditions::set(&mut status.conditions, fact, self.set.metadata.generation, &self.turn.now());
        }
        status
    }
}

/// How many machines have which version.
fn versions(machines: &[Arc<Machine>]) -> Vec<VersionCount> {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for version in machines.iter().filter_map(|machine| machine.spec.version.as_deref()) {
        *counts.entry(version).or_default() += 1;
    }
    counts.into_iter().map(|(version, replicas)| VersionCount { version: version.to_owned(), replicas }).collect()
}

/// The least ordinal that a new machine of a set may have.
fn first_ordinal(set: &MachineSet) -> usize {
    let annotations = set.metadata.annotations.as_ref();
    annotations.and_then(|all| all.get(FIRST_ORDINAL)).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// The first ordinal that a set is to have from now on, if it is another one. A machine that goes and will be replaced takes its
/// name with it: the names of Cluster API are random, and none comes twice. What goes because it is too much is not replaced by
/// anything of this set, as a rule, and costs no write.
fn ordinal_after(set: &MachineSet, machines: &[Arc<Machine>]) -> Option<usize> {
    let wanted = usize::try_from(set.spec.replicas.unwrap_or(1)).unwrap_or(usize::MAX);
    let is_replaced = machines.len() <= wanted && machines.iter().any(|machine| deleting(&machine.metadata));
    let ordinals =
        machines.iter().filter_map(|machine| machine.metadata.name.as_deref()?.rsplit('-').next()?.parse().ok());
    let after = ordinals.max().map(|last: usize| last.saturating_add(1)).filter(|_| is_replaced);
    after.filter(|after| *after > first_ordinal(set))
}

/// The name with the lowest ordinal that is not taken, and was not before.
fn free_name(set: &MachineSet, taken: &BTreeSet<String>) -> Result<String, Error> {
    let first = first_ordinal(set);
    // One more than there are taken is enough: one of them is free.
    for ordinal in first..=first.saturating_add(taken.len()) {
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
