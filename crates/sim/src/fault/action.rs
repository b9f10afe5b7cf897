//! What people do while something is going on: change, delete and add objects, also those that they should leave alone.

use std::fmt;

use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
};
use kube::{Api, Client, ResourceExt};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_api::name::{NamespacedName, NodeName};

use super::pattern::Pattern;
use super::span::Span;

/// Something that people do, and when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Scheduled {
    /// So long after the start.
    pub at: Span,
    /// What they do.
    pub action: Action,
}

/// Something that people do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Action {
    /// They change an object by a merge patch: a version, a number of machines, an annotation, an owner.
    Patch {
        /// In this workload cluster, as `namespace/name`; in the management cluster without one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cluster: Option<NamespacedName>,
        /// The group and version of the kind.
        api_version: String,
        /// The kind.
        kind: String,
        /// Which: the first that matches, by name. `namespace/name`, or the name alone of what is in no namespace.
        name: Pattern,
        /// The change.
        patch: Value,
    },
    /// They delete an object.
    Delete {
        /// In this workload cluster, as `namespace/name`; in the management cluster without one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cluster: Option<NamespacedName>,
        /// The group and version of the kind.
        api_version: String,
        /// The kind.
        kind: String,
        /// Which: the first that matches, by name.
        name: Pattern,
    },
    /// They add an object.
    Create {
        /// In this workload cluster, as `namespace/name`; in the management cluster without one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cluster: Option<NamespacedName>,
        /// The object.
        object: Value,
    },
    /// They add a member to etcd, which nobody starts.
    AddMember {
        /// In this workload cluster, as `namespace/name`.
        cluster: NamespacedName,
        /// The node that it would run on.
        name: NodeName,
    },
    /// They remove a member from etcd.
    RemoveMember {
        /// In this workload cluster, as `namespace/name`.
        cluster: NamespacedName,
        /// Which: the first whose node matches.
        name: Pattern,
    },
}

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
pub enum ActionError {
    /// There is nothing of that name.
    #[error("there is no {kind} {name}")]
    Nothing {
        /// The kind.
        kind: String,
        /// The name that was looked for.
        name: Pattern,
    },
    /// It is not an object.
    #[error("what is to be created is no object")]
    NoObject(#[source] serde_json::Error),
    /// It has no kind.
    #[error("{0:?} is no version of a group")]
    NoKind(String),
    /// It is done to etcd itself.
    #[error("members of etcd are no objects of this API")]
    NotByThisApi,
    /// The API refused, or was not reached.
    #[error("{}", in_words(.0))]
    Api(#[from] Box<kube::Error>),
}

/// What an API says, without all that it says of itself.
fn in_words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

impl Action {
    /// The workload cluster that it is done in.
    pub fn cluster(&self) -> Option<&NamespacedName> {
        match self {
            Self::Patch { cluster, .. } | Self::Delete { cluster, .. } | Self::Create { cluster, .. } => {
                cluster.as_ref()
            }
            Self::AddMember { cluster, .. } | Self::RemoveMember { cluster, .. } => Some(cluster),
        }
    }

    /// Does it with this client. The object that it was done to, as `Kind/name`.
    pub async fn perform(&self, client: Client) -> Result<String, ActionError> {
        match self {
            Self::Patch { api_version, kind, name, patch, .. } => {
                let (api, found) = find(client, api_version, kind, name).await?;
                api.patch(&found, &PatchParams::default(), &Patch::Merge(patch)).await.map_err(Box::new)?;
                Ok(format!("{kind}/{found}"))
            }
            Self::Delete { api_version, kind, name, .. } => {
                let (api, found) = find(client, api_version, kind, name).await?;
                api.delete(&found, &DeleteParams::background()).await.map_err(Box::new)?;
                Ok(format!("{kind}/{found}"))
            }
            Self::Create { object, .. } => {
                let object: DynamicObject = serde_json::from_value(object.clone()).map_err(ActionError::NoObject)?;
                let types = object.types.clone().unwrap_or_default();
                let api = match object.namespace() {
                    Some(namespace) => {
                        Api::namespaced_with(client, &namespace, &resource(&types.api_version, &types.kind)?)
                    }
                    None => Api::all_with(client, &resource(&types.api_version, &types.kind)?),
                };
                let created = api.create(&PostParams::default(), &object).await.map_err(Box::new)?;
                Ok(format!("{}/{}", types.kind, created.name_any()))
            }
            Self::AddMember { .. } | Self::RemoveMember { .. } => Err(ActionError::NotByThisApi),
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Patch { kind, name, .. } => write!(f, "changes {kind} {name}"),
            Self::Delete { kind, name, .. } => write!(f, "deletes {kind} {name}"),
            Self::Create { object, .. } => {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                write!(f, "creates {} {}", text(&object["kind"]), text(&object["metadata"]["name"]))
            }
            Self::AddMember { name, .. } => write!(f, "adds a member of etcd on {name}"),
            Self::RemoveMember { name, .. } => write!(f, "removes the member of etcd on {name}"),
        }
    }
}

fn resource(api_version: &str, kind: &str) -> Result<ApiResource, ActionError> {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    if version.is_empty() || kind.is_empty() {
        return Err(ActionError::NoKind(api_version.to_owned()));
    }
    Ok(ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind)))
}

/// The first object that matches, by name, and the API that it is in.
async fn find(
    client: Client,
    api_version: &str,
    kind: &str,
    name: &Pattern,
) -> Result<(Api<DynamicObject>, String), ActionError> {
    let resource = resource(api_version, kind)?;
    let all: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let list = all.list(&ListParams::default()).await.map_err(Box::new)?;
    let full = |object: &DynamicObject| match object.namespace() {
        Some(namespace) => format!("{namespace}/{}", object.name_any()),
        None => object.name_any(),
    };
    let mut matching: Vec<&DynamicObject> = list.items.iter().filter(|object| name.matches(&full(object))).collect();
    matching.sort_by_key(|object| full(object));
    let Some(found) = matching.first() else {
        return Err(ActionError::Nothing { kind: kind.to_owned(), name: name.clone() });
    };
    let api = match found.namespace() {
        Some(namespace) => Api::namespaced_with(client, &namespace, &resource),
        None => all,
    };
    Ok((api, found.name_any()))
}
