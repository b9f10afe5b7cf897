//! The core of Cluster API for `MachineDeployment`s: from one `MachineSet` to the next.

mod rollout;

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use serde_json::json;
use windlass_api::kind::bootstrap::KubeadmConfigTemplate;
use windlass_api::kind::cluster_api::{
    Cluster, LabelSelector, MachineDeployment, MachineSet, MachineSetSpec, MachineSetStatus, MachineTemplate,
};
use windlass_api::kind::wcp::WCPMachineTemplate;
use windlass_api::label;
use windlass_runtime::cache::Cache;
use windlass_runtime::chance::Seed;
use windlass_runtime::key::Key;
use windlass_runtime::runner::Outcome;

use super::context::{Error, Turn, deleting, path, paused};
use super::machine_set::numbered;
use super::ownership::{controlled_by, is_owned_by, owned_by, with_owner};
use super::write;
use rollout::{Counts, Limits};

pub(super) async fn reconcile(turn: &Turn, deployment: &MachineDeployment) -> Result<Outcome, Error> {
    let meta = &deployment.metadata;
    let key = Key { namespace: meta.namespace.clone(), name: deployment.spec.cluster_name.clone() };
    let Some(cluster) = turn.caches.clusters.get(&key) else { return Ok(Outcome::done()) };
    if deleting(meta) || deleting(&cluster.metadata) || paused(meta, &cluster) {
        return Ok(Outcome::done());
    }
    let adopted = adopt(turn, deployment, &cluster).await?;
    let deployment = adopted.as_ref().unwrap_or(deployment);
    let sets = sets(turn, deployment);
    roll(turn, deployment, &sets).await?;
    let status = status(deployment, &sets);
    if deployment.status.as_ref() != Some(&status) {
        write::status(turn, deployment, &status).await?;
    }
    Ok(Outcome::done())
}

/// Has the deployment and its templates go with their Cluster.
async fn adopt(
    turn: &Turn,
    deployment: &MachineDeployment,
    cluster: &Cluster,
) -> Result<Option<MachineDeployment>, Error> {
    let spec = &deployment.spec.template.spec;
    if let Some(config) = &spec.bootstrap.config_ref {
        let kind = ApiResource::erase::<KubeadmConfigTemplate>(&());
        adopt_template(turn, &turn.caches.bootstrap_templates, &kind, cluster, &config.name).await?;
    }
    let kind = ApiResource::erase::<WCPMachineTemplate>(&());
    let name = &spec.infrastructure_ref.name;
    adopt_template(turn, &turn.caches.infrastructure_templates, &kind, cluster, name).await?;
    match with_owner(&deployment.metadata, owned_by(cluster)) {
        None => Ok(None),
        Some(owners) => {
            write::patch(turn, deployment, json!({"metadata": {"ownerReferences": owners}})).await.map(Some)
        }
    }
}

async fn adopt_template(
    turn: &Turn,
    cache: &Cache<DynamicObject>,
    kind: &ApiResource,
    cluster: &Cluster,
    name: &str,
) -> Result<(), Error> {
    let key = Key { namespace: cluster.metadata.namespace.clone(), name: name.to_owned() };
    let Some(template) = cache.get(&key) else { return Ok(()) };
    let Some(owners) = with_owner(&template.metadata, owned_by(cluster)) else { return Ok(()) };
    let namespace = template.metadata.namespace.as_deref().unwrap_or_default();
    let api: Api<DynamicObject> = Api::namespaced_with(turn.client.clone(), namespace, kind);
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
    let all = turn.caches.machine_sets.list_in(deployment.metadata.namespace.as_deref().unwrap_or_default());
    let mut ours: Vec<_> = all.into_iter().filter(|set| is_owned_by(&set.metadata, deployment)).collect();
    ours.sort_by_key(|set| (set.metadata.creation_timestamp.as_ref().map(|at| at.0), set.metadata.name.clone()));
    ours
}

/// Which state of the template a set is from: a hash in decimal, as it ends a name.
pub(super) fn template_hash(template: &MachineTemplate) -> String {
    // A template has been read, so it can be written.
    let text = serde_json::to_string(&template.spec).unwrap_or_default();
    (Seed(0).child(&text).0 >> 32).to_string()
}

fn hash_of(set: &MachineSet) -> Option<&String> {
    set.metadata.labels.as_ref()?.get(label::TEMPLATE_HASH.name)
}

/// Takes the next steps from the old sets to the new one.
async fn roll(turn: &Turn, deployment: &MachineDeployment, sets: &[Arc<MachineSet>]) -> Result<(), Error> {
    let hash = template_hash(&deployment.spec.template);
    let new = sets.iter().find(|set| hash_of(set) == Some(&hash) && !deleting(&set.metadata));
    let old: Vec<&Arc<MachineSet>> = sets.iter().filter(|set| hash_of(set) != Some(&hash)).collect();
    let observed: Vec<Counts> = old.iter().map(|set| counts(set)).collect();
    let wanted = rollout::plan(limits(deployment), new.map(|set| counts(set)).unwrap_or_default(), &observed);

    match new {
        None => create(turn, deployment, &hash, wanted.new).await?,
        Some(set) => scale(turn, set, wanted.new).await?,
    }
    for (set, replicas) in old.iter().zip(wanted.old) {
        let empty = counts_are_current(set) && counts(set) == Counts::default();
        if empty && replicas == 0 && !deleting(&set.metadata) {
            write::delete(turn, &***set).await?;
        } else {
            scale(turn, set, replicas).await?;
        }
    }
    Ok(())
}

fn limits(deployment: &MachineDeployment) -> Limits {
    let replicas = deployment.spec.replicas.unwrap_or(1);
    let strategy = deployment.spec.rollout.as_ref().and_then(|rollout| rollout.strategy.as_ref());
    let numbers = strategy.and_then(|strategy| strategy.rolling_update.clone()).unwrap_or_default();
    Limits {
        replicas,
        surge_max: numbers.max_surge.and_then(|surge| surge.of_rounded_up(replicas)).unwrap_or(1),
        unavailable_max: numbers.max_unavailable.and_then(|missing| missing.of_rounded_down(replicas)).unwrap_or(0),
        on_delete: strategy.is_some_and(|strategy| strategy.type_ == "OnDelete"),
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

async fn scale(turn: &Turn, set: &MachineSet, replicas: u32) -> Result<(), Error> {
    if set.spec.replicas != Some(replicas) {
        write::patch(turn, set, json!({"spec": {"replicas": replicas}})).await?;
    }
    Ok(())
}

async fn create(turn: &Turn, deployment: &MachineDeployment, hash: &str, replicas: u32) -> Result<(), Error> {
    let (meta, spec) = (&deployment.metadata, &deployment.spec);
    let marks = BTreeMap::from([
        (label::CLUSTER_NAME.name.to_owned(), spec.cluster_name.clone()),
        (label::DEPLOYMENT_NAME.name.to_owned(), meta.name.clone().unwrap_or_default()),
        (label::TEMPLATE_HASH.name.to_owned(), hash.to_owned()),
    ]);
    let mut template = spec.template.clone();
    let mut metadata = template.metadata.unwrap_or_default();
    metadata.labels.extend(marks.clone());
    template.metadata = Some(metadata);
    let mut selector = spec.selector.match_labels.clone();
    selector.insert(label::TEMPLATE_HASH.name.to_owned(), hash.to_owned());
    let set = MachineSet {
        metadata: ObjectMeta {
            name: Some(numbered(meta.name.as_deref().unwrap_or_default(), hash)?),
            namespace: meta.namespace.clone(),
            labels: Some(marks),
            owner_references: Some(vec![controlled_by(deployment)]),
            ..ObjectMeta::default()
        },
        spec: MachineSetSpec {
            cluster_name: spec.cluster_name.clone(),
            replicas: Some(replicas),
            selector: LabelSelector { match_labels: selector },
            template,
        },
        status: None,
    };
    write::create(turn, &set).await.map(drop)
}

fn status(deployment: &MachineDeployment, sets: &[Arc<MachineSet>]) -> MachineSetStatus {
    let hash = template_hash(&deployment.spec.template);
    let mut total = MachineSetStatus {
        observed_generation: deployment.metadata.generation,
        conditions: deployment.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default(),
        ..MachineSetStatus::default()
    };
    for set in sets {
        let status = set.status.clone().unwrap_or_default();
        total.replicas += status.replicas;
        total.ready_replicas += status.ready_replicas;
        total.available_replicas += status.available_replicas;
        if hash_of(set) == Some(&hash) {
            total.up_to_date_replicas += status.replicas;
        }
    }
    total
}
