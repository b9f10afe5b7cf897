//! The core of Cluster API for `MachineDeployment`s: from one `MachineSet` to the next.

mod proportion;
mod revision;
mod rollout;
mod status;

use std::sync::Arc;

use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::{Map, Value, json};
use windlass_api::kind::ContractReference;
use windlass_api::kind::cluster_api::{Cluster, MachineDeployment, MachineSet};
use windlass_api::{annotation, label};
use windlass_runtime::key::Key;
use windlass_runtime::runner::Outcome;

use super::context::{Error, Turn, belonging, deleting, path};
use super::ownership::{is_held, is_owned_by, owned_by, with_finalizer, with_owner};
use super::part::templates;
use super::{defaults, pause, write};
use proportion::Share;
pub(super) use revision::{has_moved_on, is_current};
use rollout::{Counts, Limits, Strategy};
pub(super) use status::selector_text;

/// What holds up the deletion of a `MachineDeployment`.
const FINALIZER: &str = "cluster.x-k8s.io/machinedeployment";

pub(super) async fn reconcile(turn: &Turn, deployment: &MachineDeployment) -> Result<Outcome, Error> {
    let meta = &deployment.metadata;
    let key = Key { namespace: meta.namespace.clone(), name: deployment.spec.cluster_name.clone() };
    let Some(cluster) = turn.caches.clusters.get(&key) else { return Ok(Outcome::done()) };
    if let Some(outcome) = pause::held(turn, deployment, Some(&cluster)).await? {
        return Ok(outcome);
    }
    if deleting(meta) {
        return remove(turn, deployment).await;
    }
    if deleting(&cluster.metadata) {
        return Ok(Outcome::done());
    }
    let sets = sets(turn, deployment);
    let adopted = own_fields(turn, deployment, &cluster, &sets).await?;
    let deployment = adopted.as_ref().unwrap_or(deployment);
    let moved = Pool { turn, deployment, sets: sets.clone() }.reconcile().await?;
    let status = status::of(turn, deployment, &sets);
    let seen = deployment.status.as_ref().and_then(|status| status.observed_generation) == status.observed_generation;
    // What sets make of their new sizes will be heard of, and is counted then.
    if deployment.status.as_ref() != Some(&status) && !(moved && seen) {
        write::status(turn, deployment, &status).await?;
    }
    Ok(revision::next_look(turn, deployment))
}

/// What a deployment goes with: its sets go first.
async fn remove(turn: &Turn, deployment: &MachineDeployment) -> Result<Outcome, Error> {
    if !is_held(&deployment.metadata, FINALIZER) {
        return Ok(Outcome::done());
    }
    let sets = sets(turn, deployment);
    if sets.is_empty() {
        write::release(turn, deployment, FINALIZER).await?;
        return Ok(Outcome::done());
    }
    if let Some(status) = status::going(turn, deployment, &sets) {
        write::status(turn, deployment, &status).await?;
    }
    for set in sets.iter().filter(|set| !deleting(&set.metadata)) {
        write::delete(turn, &**set).await?;
    }
    Ok(Outcome::done())
}

/// Has the deployment and its templates go with their Cluster, fills in what people left out, and says which of its states it is
/// in; in one write.
async fn own_fields(
    turn: &Turn,
    deployment: &MachineDeployment,
    cluster: &Cluster,
    sets: &[Arc<MachineSet>],
) -> Result<Option<MachineDeployment>, Error> {
    let spec = &deployment.spec.template.spec;
    if let Some(config) = &spec.bootstrap.config_ref {
        adopt_template(turn, cluster, config).await?;
    }
    adopt_template(turn, cluster, &spec.infrastructure_ref).await?;

    let mut metadata = Map::new();
    if let Some(owners) = with_owner(&deployment.metadata, owned_by(cluster)) {
        metadata.insert("ownerReferences".into(), json!(owners));
    }
    if let Some(finalizers) = with_finalizer(&deployment.metadata, FINALIZER) {
        metadata.insert("finalizers".into(), json!(finalizers));
    }
    let revision = revision::next(turn, deployment, sets).to_string();
    let (key, _) = annotation::POOL_REVISION.entry(&revision);
    let known = deployment.metadata.annotations.as_ref().and_then(|annotations| annotations.get(&key));
    // A pool that does not roll stays in the state that it is in.
    if known != Some(&revision) && (deployment.spec.paused != Some(true) || !sets.is_empty()) {
        metadata.insert("annotations".into(), json!({ key: revision }));
    }
    let labels = defaults::labels(&deployment.metadata, &deployment.spec.cluster_name);
    if !labels.is_empty() {
        metadata.insert("labels".into(), Value::Object(labels));
    }
    let parts = [("metadata", metadata), ("spec", left_out(deployment))].into_iter();
    let parts = parts.filter(|(_, fields)| !fields.is_empty());
    let change: Map<String, Value> = parts.map(|(part, fields)| (part.to_owned(), Value::Object(fields))).collect();
    if change.is_empty() {
        return Ok(None);
    }
    write::patch(turn, deployment, Value::Object(change)).await.map(Some)
}

/// What people left out of the spec.
fn left_out(deployment: &MachineDeployment) -> Map<String, Value> {
    let spec = &deployment.spec;
    let by_name = (label::DEPLOYMENT_NAME.name, deployment.metadata.name.as_deref());
    let mut left_out = defaults::selection(by_name, &spec.cluster_name, &spec.selector, &spec.template);
    if let Some(rollout) = defaults::rollout(spec.rollout.as_ref()) {
        left_out.insert("rollout".into(), rollout);
    }
    if spec.replicas.is_none() {
        left_out.insert("replicas".into(), json!(1));
    }
    left_out
}

/// Has a template go with the Cluster.
pub(super) async fn adopt_template(turn: &Turn, cluster: &Cluster, reference: &ContractReference) -> Result<(), Error> {
    let Some((cache, kind)) = templates(turn, reference) else { return Ok(()) };
    let name = reference.name.as_str();
    let key = Key { namespace: cluster.metadata.namespace.clone(), name: name.to_owned() };
    let Some(template) = cache.get(&key) else { return Ok(()) };
    let Some(owners) = with_owner(&template.metadata, owned_by(cluster)) else { return Ok(()) };
    let namespace = template.metadata.namespace.as_deref().unwrap_or_default();
    let api: Api<DynamicObject> = Api::namespaced_with(turn.client.clone(), namespace, &kind);
    let version = &template.metadata.resource_version;
    let change = json!({"metadata": {"ownerReferences": owners, "resourceVersion": version}});
    let written = api.patch(name, &PatchParams::default(), &Patch::Merge(&change)).await;
    let written = written.map_err(|source| Error::Api {
        verb: "change",
        object: format!("{} {}", kind.kind, path(&template.metadata)),
        source: Box::new(source),
    })?;
    turn.wrote(cache, &written);
    Ok(())
}

/// The sets of the deployment, oldest first.
fn sets(turn: &Turn, deployment: &MachineDeployment) -> Vec<Arc<MachineSet>> {
    let all = belonging(&turn.caches.machine_sets, &deployment.metadata, &deployment.spec.cluster_name);
    let mut ours: Vec<_> = all.into_iter().filter(|set| is_owned_by(&set.metadata, deployment)).collect();
    ours.sort_by_key(|set| (set.metadata.creation_timestamp.as_ref().map(|at| at.0), set.metadata.name.clone()));
    ours
}

/// A deployment and its sets.
struct Pool<'a> {
    turn: &'a Turn,
    deployment: &'a MachineDeployment,
    sets: Vec<Arc<MachineSet>>,
}

impl Pool<'_> {
    /// Takes the next steps from the old sets to the new one. Whether there was anything to do.
    async fn reconcile(self) -> Result<bool, Error> {
        let new = revision::new_set(self.turn, self.deployment, &self.sets);
        let new_name = new.and_then(|set| set.metadata.name.clone());
        let is_new = |set: &MachineSet| new_name.is_some() && set.metadata.name == new_name;
        if self.deployment.spec.paused == Some(true) {
            let sizes = self.sizes_while_paused(is_new);
            return self.bring_in_line(sizes, is_new).await;
        }
        let limits = limits(self.deployment);
        let observed = new.map(|set| counts(set)).unwrap_or_default();
        let old: Vec<Counts> = self.sets.iter().filter(|set| !is_new(set)).map(|set| counts(set)).collect();
        let wanted = rollout::plan(limits, observed, &old);
        if new.is_none() {
            revision::create(self.turn, self.deployment, &self.sets, wanted.new).await?;
            self.bring_in_line(wanted.old, is_new).await?;
            return Ok(true);
        }
        let mut left = wanted.old.into_iter();
        let size = |set: &Arc<MachineSet>| if is_new(set) { Some(wanted.new) } else { left.next() };
        let sizes = self.sets.iter().map(size).map(Option::unwrap_or_default).collect();
        self.bring_in_line(sizes, is_new).await
    }

    /// The sizes of the sets when nothing rolls, which follow the pool's own.
    fn sizes_while_paused(&self, is_new: impl Fn(&MachineSet) -> bool) -> Vec<u32> {
        let limits = limits(self.deployment);
        let now = self.deployment.status.as_ref().map(|status| status.replicas).unwrap_or_default();
        let number = |set: &MachineSet, key: &str| -> Option<u32> {
            set.metadata.annotations.as_ref().and_then(|annotations| annotations.get(key)?.parse().ok())
        };
        let share = |set: &Arc<MachineSet>| Share {
            wanted: counts(set).wanted,
            available: counts(set).available,
            most_before: number(set, annotation::POOL_MAX_REPLICAS.name).unwrap_or(now),
            replicas_before: number(set, annotation::POOL_DESIRED_REPLICAS.name).unwrap_or(now),
            is_new: is_new(set),
        };
        let shares: Vec<Share> = self.sets.iter().map(share).collect();
        proportion::sizes(limits, &shares)
    }

    /// Gives each set its size and what it takes over from the deployment as it is, each in one write. Sets that have become
    /// empty go when the rollout is over. Whether there was anything to do.
    async fn bring_in_line(&self, sizes: Vec<u32>, is_new: impl Fn(&MachineSet) -> bool) -> Result<bool, Error> {
        let over = status::is_complete(self.turn, self.deployment, &self.sets);
        let mut moved = false;
        for (set, size) in self.sets.iter().zip(sizes).filter(|(set, _)| !deleting(&set.metadata)) {
            let gone = over && !is_new(set) && size == 0 && counts_are_current(set) && counts(set) == Counts::default();
            if gone {
                write::delete(self.turn, &**set).await?;
            } else if let Some(change) = revision::change(self.turn, self.deployment, &self.sets, set, size) {
                write::patch(self.turn, &**set, change).await?;
                moved = true;
            }
        }
        Ok(moved)
    }
}

/// What the rollout of a deployment keeps to.
fn limits(deployment: &MachineDeployment) -> Limits {
    let replicas = deployment.spec.replicas.unwrap_or(1);
    let strategy = deployment.spec.rollout.as_ref().and_then(|rollout| rollout.strategy.as_ref());
    let numbers = strategy.and_then(|strategy| strategy.rolling_update.clone()).unwrap_or_default();
    Limits {
        replicas,
        surge_max: numbers.max_surge.and_then(|surge| surge.of_rounded_up(replicas)).unwrap_or(1),
        unavailable_max: numbers.max_unavailable.and_then(|missing| missing.of_rounded_down(replicas)).unwrap_or(0),
        strategy: match strategy.map(|strategy| strategy.type_.as_str()) {
            Some("OnDelete") => Strategy::OnDelete,
            _ => Strategy::RollingUpdate,
        },
    }
    .sound()
}

fn counts(set: &MachineSet) -> Counts {
    let status = set.status.clone().unwrap_or_default();
    Counts { wanted: set.spec.replicas.unwrap_or(1), present: status.replicas, available: status.available_replicas }
}

/// Whether the counts of a set are about its latest change.
fn counts_are_current(set: &MachineSet) -> bool {
    set.status.as_ref().is_some_and(|status| status.observed_generation == set.metadata.generation)
}

/// What a map of texts has to be changed by to say all that is wanted, and nothing else where nothing else may be there.
fn difference(
    known: &std::collections::BTreeMap<String, String>,
    wanted: &std::collections::BTreeMap<String, String>,
    others_stay: bool,
) -> Map<String, Value> {
    let differs = wanted.iter().filter(|(key, value)| known.get(*key) != Some(value));
    let mut change: Map<String, Value> = differs.map(|(key, value)| (key.clone(), json!(value))).collect();
    if !others_stay {
        change.extend(known.keys().filter(|key| !wanted.contains_key(*key)).map(|key| (key.clone(), Value::Null)));
    }
    change
}

/// The labels that lead from a set and its machines to their deployment.
fn marks(deployment: &MachineDeployment, hash: &str) -> [(String, String); 3] {
    [
        (label::CLUSTER_NAME.name.to_owned(), deployment.spec.cluster_name.clone()),
        (label::DEPLOYMENT_NAME.name.to_owned(), deployment.metadata.name.clone().unwrap_or_default()),
        (label::TEMPLATE_HASH.name.to_owned(), hash.to_owned()),
    ]
}
