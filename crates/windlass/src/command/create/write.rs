//! Writes a cluster, and what has to be there before it: all of it, or nothing.

use http::Request;
use http::header::CONTENT_TYPE;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use kube::core::GroupVersionKind;
use kube::discovery::{self, Scope};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use windlass_api::kind::cluster_api::Cluster;
use windlass_plan::creation::Manifest;

use super::error::Error;
use crate::client::{self, FIELD_MANAGER, Management};
use crate::error::Failure;
use crate::output;

/// An object that has to be there before the cluster.
pub struct Placed {
    api: Api<DynamicObject>,
    object: DynamicObject,
    /// As people know it.
    what: String,
    /// It is there, and as it should be.
    is_there: bool,
}

/// Has the server make an object, or try to. A field that the kind of it does not have is refused; it would only be warned of.
async fn post<T: DeserializeOwned>(
    management: &Management,
    collection: &str,
    object: &impl Serialize,
    dry_run: bool,
) -> Result<T, kube::Error> {
    let body = serde_json::to_vec(object).map_err(kube::Error::SerdeError)?;
    let dry_run = if dry_run { "&dryRun=All" } else { "" };
    let url = format!("{collection}?fieldManager={FIELD_MANAGER}&fieldValidation=Strict{dry_run}");
    let request = Request::post(url).header(CONTENT_TYPE, "application/json").body(body);
    management.client.request(request.map_err(kube::Error::HttpError)?).await
}

/// Finds out where each object goes, and whether the server would take it. Nothing is written.
pub async fn place(management: &Management, objects: &[Value]) -> Result<Vec<Placed>, Failure> {
    let mut placed: Vec<Placed> = Vec::new();
    for object in objects {
        let one = Placed::of(management, object).await?;
        if !one.is_there {
            let tried: Result<DynamicObject, _> = post(management, one.api.resource_url(), &one.object, true).await;
            // What is refused for lack of another object of the file is not wrong: it is tried when that is there.
            if placed.iter().all(|before| before.is_there) {
                tried.map_err(client::Error::while_trying(&format!("create {}", one.what)))?;
            }
        }
        placed.push(one);
    }
    Ok(placed)
}

impl Placed {
    async fn of(management: &Management, object: &Value) -> Result<Self, Failure> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
        let what = format!("{kind}/{name}");
        let version = text(&object["apiVersion"]);
        let (group, version) = version.split_once('/').unwrap_or(("", version.as_str()));
        let kind = GroupVersionKind::gvk(group, version, &kind);
        let unknown = || Error::UnknownKind { object: what.clone() };
        let (resource, capabilities) =
            discovery::pinned_kind(&management.client, &kind).await.map_err(|error| match error {
                kube::Error::Discovery(_) | kube::Error::Api(_) => Failure::from(unknown()),
                other => client::Error::while_trying(&format!("find out what a {} is", kind.kind))(other).into(),
            })?;
        let api: Api<DynamicObject> = match capabilities.scope {
            Scope::Namespaced => {
                Api::namespaced_with(management.client.clone(), management.namespace.as_str(), &resource)
            }
            Scope::Cluster => Api::all_with(management.client.clone(), &resource),
        };
        let read: Result<DynamicObject, _> = serde_json::from_value(object.clone());
        let object = read.map_err(|error| Error::Document { file: what.clone(), why: error.to_string() })?;
        let mut placed = Self { api, object, what, is_there: false };
        placed.is_there = placed.compare(&name).await?;
        Ok(placed)
    }

    /// Whether it is there. One that is otherwise than the file says is somebody's own.
    async fn compare(&self, name: &str) -> Result<bool, Failure> {
        let attempt = format!("read {}", self.what);
        let Some(live) = self.api.get_opt(name).await.map_err(client::Error::while_trying(&attempt))? else {
            return Ok(false);
        };
        let parameters = PatchParams { dry_run: true, ..PatchParams::apply(FIELD_MANAGER).force() };
        let applied = self.api.patch(name, &parameters, &Patch::Apply(&self.object)).await;
        let applied = applied.map_err(client::Error::while_trying(&format!("compare {}", self.what)))?;
        if content(live) == content(applied) {
            return Ok(true);
        }
        Err(Error::Different { object: self.what.clone() }.into())
    }
}

/// What an object says, without what every write changes.
fn content(mut object: DynamicObject) -> DynamicObject {
    let metadata = &mut object.metadata;
    (metadata.managed_fields, metadata.resource_version, metadata.generation) = (None, None, None);
    object
}

/// Says what would be created before the cluster.
pub fn tell(before: &[Placed]) {
    for placed in before.iter().filter(|placed| !placed.is_there) {
        output::say(&format!("{} would be created", placed.what));
    }
}

/// Has the server try the cluster, or create it: as it was written, with fields that nobody here knows.
async fn create(management: &Management, manifest: &Manifest, dry_run: bool) -> Result<Cluster, kube::Error> {
    post(management, management.api::<Cluster>().resource_url(), &manifest.object, dry_run).await
}

/// What the server would store as the cluster.
pub async fn try_out(management: &Management, manifest: &Manifest) -> Result<Cluster, Failure> {
    let tried = create(management, manifest, true).await;
    Ok(tried.map_err(client::Error::while_trying(&format!("create the cluster {}", manifest.name)))?)
}

/// Writes it all. What the server refuses ends it, and what was created for it goes again.
pub async fn write(management: &Management, manifest: &Manifest, before: Vec<Placed>) -> Result<Cluster, Failure> {
    let mut created = Vec::new();
    for placed in before.into_iter().filter(|placed| !placed.is_there) {
        match post::<DynamicObject>(management, placed.api.resource_url(), &placed.object, false).await {
            Ok(object) => {
                output::say(&format!("{} created", placed.what));
                created.push((placed, object));
            }
            Err(error) => {
                let attempt = format!("create {}", placed.what);
                return Err(undone(created, error, &attempt).await);
            }
        }
    }
    match create(management, manifest, false).await {
        Ok(cluster) => Ok(cluster),
        Err(error) => Err(undone(created, error, &format!("create the cluster {}", manifest.name)).await),
    }
}

/// Takes back what was created, where it is certain that the rest is not there.
async fn undone(created: Vec<(Placed, DynamicObject)>, error: kube::Error, attempt: &str) -> Failure {
    if matches!(error, kube::Error::Api(_)) {
        for (placed, object) in created.into_iter().rev() {
            let preconditions = Preconditions { uid: object.metadata.uid.clone(), resource_version: None };
            let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
            let name = object.metadata.name.unwrap_or_default();
            match placed.api.delete(&name, &parameters).await {
                Ok(_) => output::say(&format!("{} deleted again", placed.what)),
                Err(why) => output::warning(&format!("{} is left behind: {why}", placed.what)),
            }
        }
    }
    client::Error::while_trying(attempt)(error).into()
}
