//! What is asked of a World, as a person would ask it.

use std::borrow::Cow;
use std::time::Duration;

use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams, ValidationDirective};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use windlass_api::condition::ConditionType;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::extension::ExtensionConfig;
use windlass_api::kind::is_true;
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::name::NamespacedName;
use windlass_api::version::{KubernetesVersion, VersionPrefix};
use windlass_api::{annotation, label};
use windlass_controller::classic::parts;
use windlass_plan::resolve::hold::HoldBy;
use windlass_sim::world::World;

use super::wish::{Wish, distribution};
use super::{Error, Request};
use crate::drive::{Drive, Manifest};
use crate::settle;

/// For how long it is waited until Cluster API knows whom to ask.
const KNOWN_SECONDS_MAX: u32 = 60;

/// What is asked.
pub(crate) enum Ask<'a> {
    /// Something of a cluster that is there.
    Change(&'a Wish),
    /// A cluster shall be made.
    Create(&'a Manifest),
}

impl Ask<'_> {
    /// The sort of cluster that it is asked of.
    pub(crate) fn drive(&self, world: &World, request: &Request) -> Drive {
        match self {
            Self::Change(_) => Drive::of(world, &request.cluster, request.hold_by),
            Self::Create(manifest) => manifest.drive(request.hold_by),
        }
    }
}

/// What the API answered.
pub(crate) enum Answer {
    /// Yes.
    Accepted,
    /// No, for this reason.
    Refused { why: String },
}

/// Asks it of a cluster.
pub(crate) async fn ask(world: &World, cluster: &NamespacedName, drive: Drive, ask: &Ask<'_>) -> Result<Answer, Error> {
    whoever_is_asked_is_known(world, drive).await;
    let (namespace, name) = (cluster.namespace.as_str(), cluster.name.as_str());
    let clusters: Api<DynamicObject> = Api::namespaced_with(world.client(), namespace, &resource(drive));
    // A field that there is not would be dropped, and the rehearsal be one of nothing.
    let strictly = PatchParams { field_validation: Some(ValidationDirective::Strict), ..PatchParams::default() };
    let asked = match ask {
        Ask::Change(Wish::Release { to, on_the_way_to }) => {
            let named = match in_full(world, drive, to).await {
                Ok(named) => named,
                Err(why) => return Ok(Answer::Refused { why }),
            };
            let mut patch = release(drive, &named);
            if drive == Drive::Machines {
                patch["metadata"]["annotations"][annotation::ON_THE_WAY_TO.name] = json!(on_the_way_to);
            }
            clusters.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.map(drop)
        }
        Ask::Change(Wish::Patch(patch)) => {
            let patch = fields(drive, patch);
            clusters.patch(name, &strictly, &Patch::Merge(patch)).await.map(drop)
        }
        Ask::Change(Wish::Delete) => clusters.delete(name, &DeleteParams::background()).await.map(drop),
        Ask::Change(Wish::Nothing) => Ok(()),
        Ask::Create(Manifest::Machines(object)) => {
            let clusters: Api<TanzuKubernetesCluster> = Api::namespaced(world.client(), namespace);
            clusters.create(&PostParams::default(), object).await.map(drop)
        }
        Ask::Create(Manifest::Topology(object)) => {
            let clusters: Api<Cluster> = Api::namespaced(world.client(), namespace);
            clusters.create(&PostParams::default(), object).await.map(drop)
        }
        Ask::Create(Manifest::Label(objects)) => create_all(world, namespace, objects).await,
    };
    match asked {
        Ok(()) => Ok(Answer::Accepted),
        Err(kube::Error::Api(refusal)) if matches!(refusal.code, 400 | 403 | 422) => {
            Ok(Answer::Refused { why: in_short(&refusal.message) })
        }
        Err(source) => Err(Error::Ask { cluster: cluster.clone(), source: Box::new(source) }),
    }
}

/// The release that is meant by the beginning of one. A label has to name it in full; all else is for admission to say.
async fn in_full<'a>(world: &World, drive: Drive, to: &'a str) -> Result<Cow<'a, str>, String> {
    let asked: Option<VersionPrefix> = to.parse().ok().filter(|_| drive == Drive::Label);
    let Some(asked) = asked.filter(|asked| asked.as_str().parse::<KubernetesVersion>().is_err()) else {
        return Ok(to.into());
    };
    let named = parts::named(&world.client(), &asked).await;
    named.map(|named| named.bare().to_string().into()).map_err(|why| why.to_string())
}

/// Several objects, one after the other, as `kubectl apply` brings a file.
async fn create_all(world: &World, namespace: &str, objects: &[DynamicObject]) -> Result<(), kube::Error> {
    for object in objects {
        let types = object.types.clone().unwrap_or_default();
        let (group, version) = types.api_version.split_once('/').unwrap_or(("", &types.api_version));
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &types.kind));
        let api: Api<DynamicObject> = Api::namespaced_with(world.client(), namespace, &kind);
        api.create(&PostParams::default(), object).await?;
    }
    Ok(())
}

/// Who holds clusters by hooks has told Cluster API so long before: a rehearsal that has just begun waits until that is so.
async fn whoever_is_asked_is_known(world: &World, drive: Drive) {
    let is_known = || {
        let extensions = settle::everywhere::<ExtensionConfig>(world);
        let conditions = extensions.iter().filter_map(|extension| Some(&extension.status.as_ref()?.conditions));
        conditions.into_iter().any(|conditions| is_true(conditions, ConditionType::Discovered.as_str()))
    };
    for _ in 0..KNOWN_SECONDS_MAX {
        if drive != Drive::Topology(HoldBy::Hooks) || is_known() {
            return;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

fn resource(drive: Drive) -> ApiResource {
    let (api_version, kind) = drive.kind();
    let (group, version) = api_version.split_once('/').unwrap_or_default();
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

/// Another release, as people ask for it.
pub(crate) fn release(drive: Drive, to: &str) -> Value {
    match drive {
        Drive::Machines => json!({"spec": {"distribution": distribution(to)}}),
        Drive::Topology(_) => {
            let mut patch = json!({});
            put_release(&mut patch, to);
            patch
        }
        Drive::Label => {
            // A label has no `v` in it.
            let to = to.strip_prefix('v').unwrap_or(to);
            json!({"metadata": {"labels": {label::RELEASE_VERSION.name: to}}})
        }
    }
}

/// A Cluster of a class is asked by its label, where a release is named in full as labels have it, and else by its version.
fn put_release(patch: &mut Value, to: &str) {
    if to.contains("---") {
        patch["metadata"]["labels"][label::RELEASE.name] = json!(to);
    } else {
        patch["spec"]["topology"]["version"] = json!(to);
    }
}

/// Other fields, and perhaps another release with them, where this sort of cluster has them.
fn fields(drive: Drive, patch: &Value) -> Value {
    let mut patch = patch.clone();
    if let (Drive::Topology(_), Some(spec)) = (drive, patch["spec"].as_object_mut()) {
        let to = spec.remove("distribution").and_then(|asked| asked["version"].as_str().map(str::to_owned));
        if let Some(to) = to {
            put_release(&mut patch, &to);
        }
    }
    patch
}

/// What the API says of a field that there is not, without the object that it says it of.
fn in_short(message: &str) -> String {
    message.split_once("strict decoding error: ").map_or(message, |(_, field)| field).to_owned()
}
