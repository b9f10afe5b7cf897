//! Writes objects of any kind, and deletes them; says what that changed.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use kube::core::{ApiResource, GroupVersionKind};
use kube::discovery::{ApiCapabilities, Scope};
use kube::{Api, Client, discovery};
use serde_json::Value;
use windlass_controller::webhooks::PART_OF;

use super::Error;
use crate::client;

/// Whose fields these are: what runs later writes other ones.
const FIELD_MANAGER: &str = "windlass-install";

/// What became of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    Created,
    Configured,
    Unchanged,
    Deleted,
    /// It was not there.
    Absent,
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Created => "created",
            Self::Configured => "configured",
            Self::Unchanged => "unchanged",
            Self::Deleted => "deleted",
            Self::Absent => "not found",
        })
    }
}

/// Writes to one cluster.
pub struct Writer {
    client: Client,
    dry_run: bool,
    kinds: BTreeMap<(String, String), Option<(ApiResource, ApiCapabilities)>>,
}

impl Writer {
    pub fn new(client: Client, dry_run: bool) -> Self {
        Self { client, dry_run, kinds: BTreeMap::new() }
    }

    /// Whether a definition of that name is there that was not installed as a part of Windlass.
    pub async fn refuse_if_foreign(&self, definition: &Value) -> Result<(), Error> {
        let name = text(&definition["metadata"]["name"]);
        let api: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let found =
            api.get_opt(&name).await.map_err(client::Error::while_trying(&format!("read the definition {name}")))?;
        let Some(found) = found else { return Ok(()) };
        let ours = found.metadata.labels.as_ref().and_then(|labels| labels.get(PART_OF.0));
        if ours.map(String::as_str) == Some(PART_OF.1) { Ok(()) } else { Err(Error::Foreign { name }) }
    }

    /// Applies an object. Fields that others have taken over are theirs: then it is said who, and nothing is written.
    pub async fn apply(&mut self, object: &Value) -> Result<Written, Error> {
        let name = named(object);
        let Some(api) = self.api(object).await? else {
            let [kind, api_version] = ["kind", "apiVersion"].map(|field| text(&object[field]));
            return Err(Error::NoSuchKind { object: name, kind, api_version });
        };
        let object_name = text(&object["metadata"]["name"]);
        let before = api.get_opt(&object_name).await;
        let before = before.map_err(client::Error::while_trying(&format!("read {name}")))?;
        // In a dry run, the namespace that an object goes into may not be there yet, and is not made.
        let params = PatchParams { dry_run: self.dry_run, ..PatchParams::apply(FIELD_MANAGER) };
        let after = match api.patch(&object_name, &params, &Patch::Apply(object)).await {
            Ok(after) => after,
            Err(kube::Error::Api(status)) if self.dry_run && is_missing_namespace(&status) => {
                return Ok(Written::Created);
            }
            Err(error) => return Err(client::Error::while_trying(&format!("write {name}"))(error).into()),
        };
        Ok(match before {
            None => Written::Created,
            Some(before) if before.metadata.resource_version == after.metadata.resource_version => Written::Unchanged,
            Some(_) => Written::Configured,
        })
    }

    /// Deletes an object, if it is the one that was installed.
    pub async fn delete(&mut self, object: &Value) -> Result<Written, Error> {
        Ok(self.delete_if_known(object).await?.unwrap_or(Written::Absent))
    }

    /// The same; nothing where the server does not know its kind.
    pub async fn delete_if_known(&mut self, object: &Value) -> Result<Option<Written>, Error> {
        let (name, object_name) = (named(object), text(&object["metadata"]["name"]));
        let Some(api) = self.api(object).await? else { return Ok(None) };
        let found = api.get_opt(&object_name).await;
        let found = found.map_err(client::Error::while_trying(&format!("read {name}")))?;
        let Some(found) = found else { return Ok(Some(Written::Absent)) };
        let preconditions = Some(Preconditions { uid: found.metadata.uid, resource_version: None });
        let params = DeleteParams { dry_run: self.dry_run, preconditions, ..DeleteParams::background() };
        match api.delete(&object_name, &params).await {
            Ok(_) => Ok(Some(Written::Deleted)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(Some(Written::Absent)),
            Err(error) => Err(client::Error::while_trying(&format!("delete {name}"))(error).into()),
        }
    }

    async fn api(&mut self, object: &Value) -> Result<Option<Api<DynamicObject>>, Error> {
        let key = (text(&object["apiVersion"]), text(&object["kind"]));
        if !self.kinds.contains_key(&key) {
            let found = self.kind(&key).await?;
            self.kinds.insert(key.clone(), found);
        }
        let known = self.kinds.get(&key).and_then(Option::as_ref);
        Ok(known.map(|(resource, capabilities)| match capabilities.scope {
            Scope::Cluster => Api::all_with(self.client.clone(), resource),
            Scope::Namespaced => {
                Api::namespaced_with(self.client.clone(), &text(&object["metadata"]["namespace"]), resource)
            }
        }))
    }

    async fn kind(
        &self,
        (api_version, kind): &(String, String),
    ) -> Result<Option<(ApiResource, ApiCapabilities)>, Error> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let kind = GroupVersionKind::gvk(group, version, kind);
        match discovery::pinned_kind(&self.client, &kind).await {
            Ok(found) => Ok(Some(found)),
            Err(kube::Error::Discovery(_)) => Ok(None),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(client::Error::while_trying(&format!("find out about {api_version}"))(error).into()),
        }
    }
}

fn is_missing_namespace(status: &kube::core::Status) -> bool {
    status.code == 404 && status.details.as_ref().is_some_and(|details| details.kind == "namespaces")
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// As errors say it: `Deployment/windlass-controllers`.
fn named(object: &Value) -> String {
    format!("{}/{}", text(&object["kind"]), text(&object["metadata"]["name"]))
}
