//! The writes that make of a topology what it should be.
//!
//! Objects are applied, so that fields of others stay theirs and what a topology no longer says is taken back. As in Cluster API
//! an object is not applied again as long as neither it nor the wish has changed; what was applied is remembered, and may be
//! forgotten: then the same is applied once more, and changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use serde_json::{Map, Value, json};
use windlass_api::hook::HookName;
use windlass_api::kind::ContractReference;
use windlass_api::kind::cluster_api::{Cluster, MachineDeployment, MachineTemplate};
use windlass_api::kind::control_plane::KubeadmControlPlane;
use windlass_api::kind::wcp::WCPCluster;
use windlass_api::{annotation, label};
use windlass_runtime::chance::Seed;

use super::desired::{self, Derived, Desired};
use super::view::View;
use super::{Decided, Stop};
use crate::management::context::{Error, Turn, belonging, cluster_name, deleting, path};
use crate::management::write::{self, Watched};

/// Who applies.
const MANAGER: &str = "capi-topology";

/// What was applied to which object, and how it was then.
#[derive(Clone, Default)]
pub(in crate::management) struct Applied(Arc<Mutex<BTreeMap<String, [u64; 2]>>>);

impl Applied {
    fn knows(&self, object: &str, wish: u64, state: u64) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(object) == Some(&[wish, state])
    }

    fn remember(&self, object: String, wish: u64, state: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(object, [wish, state]);
    }
}

fn digest(text: &str) -> u64 {
    Seed(0).child(text).0
}

/// All that applying could change of an object, but for its status.
fn state(meta: &ObjectMeta) -> u64 {
    digest(&format!("{:?} {:?} {:?} {:?}", meta.uid, meta.generation, meta.labels, meta.annotations))
}

/// Brings all parts in line that may be, and answers with the Cluster if it was changed.
pub(super) async fn all(view: &View<'_>, decided: &Decided) -> Result<Option<Cluster>, Stop> {
    let decision = &decided.decision;
    let desired = desired::of(view, decision)?;
    // That an upgrade begins is written down first: a try that comes no further begins it again.
    let begun = if decision.begins.is_some() { refer(view, &desired, decided).await? } else { None };
    apply::<WCPCluster>(view.turn, view.infrastructure.as_deref(), &desired.infrastructure).await?;
    if let Some(control_plane) = &desired.control_plane {
        make(view.turn, &control_plane.machines).await?;
        apply::<KubeadmControlPlane>(view.turn, view.control_plane.as_deref(), &control_plane.object).await?;
    }
    let changed = if decision.begins.is_some() { begun } else { refer(view, &desired, decided).await? };
    for (pool, topology) in desired.pools.iter().map(|pool| (pool, pool_name(&pool.object))) {
        make(view.turn, &pool.bootstrap).await?;
        make(view.turn, &pool.infrastructure).await?;
        let seen = view.deployment(topology).map(|seen| &**seen);
        apply::<MachineDeployment>(view.turn, seen, &pool.object).await?;
    }
    remove_pools(view).await?;
    remove_templates(view, &desired).await?;
    Ok(changed)
}

fn pool_name(deployment: &Value) -> &str {
    deployment["metadata"]["labels"][label::TOPOLOGY_POOL.name].as_str().unwrap_or_default()
}

/// Applies a wish to an object, unless that is known to change nothing.
async fn apply<K: Watched>(turn: &Turn, seen: Option<&K>, wish: &Value) -> Result<(), Error> {
    let text = |pointer: &str| wish.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
    let title = format!("{} {namespace}/{name}", text("/kind"));
    let digested = digest(&wish.to_string());
    if seen.is_some_and(|seen| turn.applied.knows(&title, digested, state(seen.meta()))) {
        return Ok(());
    }
    let api: Api<K> = Api::namespaced(turn.client.clone(), namespace);
    let params = PatchParams::apply(MANAGER).force();
    let written = api.patch(name, &params, &Patch::Apply(wish)).await;
    let written =
        written.map_err(|source| Error::Api { verb: "apply", object: title.clone(), source: Box::new(source) })?;
    turn.wrote(K::cache(&turn.caches), &written);
    turn.applied.remember(title, digested, state(written.meta()));
    Ok(())
}

/// Makes a template that is not there yet. One that is was made by a try that came no further.
async fn make(turn: &Turn, template: &Derived) -> Result<(), Error> {
    if template.exists {
        return Ok(());
    }
    let object: DynamicObject = serde_json::from_value(template.object.clone()).map_err(|error| Error::Text {
        what: format!("write {} {}", template.kind(), template.name()),
        why: error.to_string(),
    })?;
    let title = format!("{} {}", template.kind(), path(&object.metadata));
    let api = templates(turn, &object);
    match api.create(&PostParams::default(), &object).await {
        Ok(written) => {
            if let Some(cache) = super::blueprint::cache(&turn.caches, template.kind()) {
                turn.wrote(cache, &written);
            }
            Ok(())
        }
        Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => Ok(()),
        Err(source) => Err(Error::Api { verb: "create", object: title, source: Box::new(source) }),
    }
}

/// The API of a template's kind.
fn templates(turn: &Turn, object: &DynamicObject) -> Api<DynamicObject> {
    let types = object.types.clone().unwrap_or_default();
    let (group, version) = types.api_version.rsplit_once('/').unwrap_or(("", &types.api_version));
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &types.kind));
    Api::namespaced_with(turn.client.clone(), object.metadata.namespace.as_deref().unwrap_or_default(), &kind)
}

/// Says in the Cluster what it is made of, and what its upgrade is at; in one write.
async fn refer(view: &View<'_>, desired: &Desired, decided: &Decided) -> Result<Option<Cluster>, Error> {
    let mut change = Map::new();
    let mut spec = Map::new();
    if view.cluster.spec.infrastructure_ref.is_none() {
        spec.insert("infrastructureRef".into(), json!(reference(&desired.infrastructure)));
    }
    let made = desired.control_plane.as_ref().filter(|_| view.cluster.spec.control_plane_ref.is_none());
    if let Some(made) = made {
        spec.insert("controlPlaneRef".into(), json!(reference(&made.object)));
    }
    if !spec.is_empty() {
        change.insert("spec".into(), Value::Object(spec));
    }
    let annotations = upgrade_annotations(view, decided);
    let mut metadata = Map::new();
    if !annotations.is_empty() {
        metadata.insert("annotations".into(), Value::Object(annotations));
    }
    let known = view.cluster.metadata.labels.as_ref();
    let missing = [
        (label::CLUSTER_NAME.name, view.cluster.metadata.name.clone().unwrap_or_default()),
        (label::TOPOLOGY_OWNED.name, String::new()),
    ];
    let missing: Map<String, Value> = missing
        .into_iter()
        .filter(|(key, _)| known.is_none_or(|known| !known.contains_key(*key)))
        .map(|(key, value)| (key.to_owned(), json!(value)))
        .collect();
    if !missing.is_empty() {
        metadata.insert("labels".into(), Value::Object(missing));
    }
    if !metadata.is_empty() {
        change.insert("metadata".into(), Value::Object(metadata));
    }
    if change.is_empty() {
        return Ok(None);
    }
    write::patch(view.turn, view.cluster, Value::Object(change)).await.map(Some)
}

fn reference(object: &Value) -> ContractReference {
    let text = |of: &Value| of.as_str().unwrap_or_default().to_owned();
    let api_version = text(&object["apiVersion"]);
    ContractReference {
        api_group: api_version.rsplit_once('/').map(|(group, _)| group.to_owned()).unwrap_or_default(),
        kind: text(&object["kind"]),
        name: text(&object["metadata"]["name"]),
    }
}

/// What the annotations that accompany an upgrade have to be changed by: a question is over when it was answered.
fn upgrade_annotations(view: &View<'_>, decided: &Decided) -> Map<String, Value> {
    let Decided { state, decision } = decided;
    let known: BTreeSet<&str> = view.pending_hooks().into_iter().collect();
    let mut hooks = known.clone();
    let mut change = Map::new();
    let mut ends = |hook: HookName| state.is_open(hook) && hooks.remove(hook.as_str());
    let over = decision.begins.is_none() && !decision.control_plane_upgrading;
    if decision.begins.is_some() || over {
        ends(HookName::AfterControlPlaneUpgrade);
        ends(HookName::BeforeWorkersUpgrade);
        ends(HookName::AfterWorkersUpgrade);
    }
    if let Some(version) = &decision.begins {
        hooks.extend([HookName::AfterClusterUpgrade.as_str(), HookName::AfterControlPlaneUpgrade.as_str()]);
        if decision.workers_plan.contains(version) {
            hooks.extend([HookName::BeforeWorkersUpgrade.as_str(), HookName::AfterWorkersUpgrade.as_str()]);
        }
        change.insert(annotation::UPGRADE_STEP.name.to_owned(), json!(version));
    } else if over
        && !decision.is_upgrading()
        && hooks.iter().all(|hook| *hook == HookName::AfterClusterUpgrade.as_str())
    {
        if state.is_open(HookName::AfterClusterUpgrade) {
            hooks.clear();
        }
        if state.stepping {
            change.insert(annotation::UPGRADE_STEP.name.to_owned(), Value::Null);
        }
    }
    if hooks != known {
        let text: Vec<&str> = hooks.into_iter().collect();
        let value = if text.is_empty() { Value::Null } else { json!(text.join(",")) };
        change.insert(annotation::PENDING_HOOKS.name.to_owned(), value);
    }
    change
}

/// Pools that the topology no longer has go.
async fn remove_pools(view: &View<'_>) -> Result<(), Error> {
    let wanted: BTreeSet<&str> =
        view.topology.workers.machine_deployments.iter().map(|pool| pool.name.as_str()).collect();
    for deployment in view.deployments.iter().filter(|deployment| !deleting(&deployment.metadata)) {
        let labels = deployment.metadata.labels.as_ref();
        let pool = labels.and_then(|labels| labels.get(label::TOPOLOGY_POOL.name));
        if pool.is_none_or(|pool| !wanted.contains(pool.as_str())) {
            write::delete(view.turn, &**deployment).await?;
        }
    }
    Ok(())
}

/// Templates of pools that nobody refers to any more go. Those of control planes stay until their Cluster goes, as in Cluster
/// API.
async fn remove_templates(view: &View<'_>, desired: &Desired) -> Result<(), Error> {
    let caches = &view.turn.caches;
    let name = view.cluster.metadata.name.as_deref().unwrap_or_default();
    let ours = |meta: &ObjectMeta| {
        let marked = meta.labels.as_ref().is_some_and(|labels| label::TOPOLOGY_POOL.is_in(labels));
        marked && cluster_name(meta) == Some(name)
    };
    let templates: Vec<Arc<DynamicObject>> = [&caches.bootstrap_templates, &caches.infrastructure_templates]
        .into_iter()
        .flat_map(|cache| belonging(cache, &view.cluster.metadata, name))
        .filter(|template| ours(&template.metadata) && !deleting(&template.metadata))
        .collect();
    if templates.is_empty() {
        return Ok(());
    }
    let mut used: BTreeSet<String> = BTreeSet::new();
    let mut note = |template: &MachineTemplate| {
        used.insert(template.spec.infrastructure_ref.name.clone());
        used.extend(template.spec.bootstrap.config_ref.as_ref().map(|config| config.name.clone()));
    };
    view.deployments.iter().for_each(|deployment| note(&deployment.spec.template));
    let sets = belonging(&caches.machine_sets, &view.cluster.metadata, name);
    sets.iter().filter(|set| ours(&set.metadata)).for_each(|set| note(&set.spec.template));
    used.extend(
        desired
            .pools
            .iter()
            .flat_map(|pool| [&pool.bootstrap, &pool.infrastructure])
            .map(|part| part.name().to_owned()),
    );
    for template in templates {
        let name = template.metadata.name.clone().unwrap_or_default();
        if used.contains(&name) {
            continue;
        }
        match self::templates(view.turn, &template).delete(&name, &DeleteParams::default()).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.reason == "NotFound" => {}
            Err(source) => {
                let kind = template.types.as_ref().map(|types| types.kind.clone()).unwrap_or_default();
                let object = format!("{kind} {}", path(&template.metadata));
                return Err(Error::Api { verb: "delete", object, source: Box::new(source) });
            }
        }
    }
    Ok(())
}
