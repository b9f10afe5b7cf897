//! The four writes.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client};
use serde_json::{Value, json};
use windlass_api::label;
use windlass_api::name::{ClusterSecret, NamespacedName};
use windlass_plan::step::Revision;

use super::FIELD_MANAGER;
use crate::access::{KeyError, KeyMaker};
use crate::said::{is_already_exists, is_conflict, is_not_found, is_other_object, said};

/// The type of Secrets that Cluster API takes for its own.
pub(crate) const SECRET_TYPE: &str = "cluster.x-k8s.io/secret";

/// How a write went well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// It is as it should be.
    Made,
    /// The expectation did not hold, and nothing was written.
    Outdated,
}

/// Why a write failed.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// What was planned is no object.
    #[error("what was planned is not an object: {0}")]
    Malformed(#[source] serde_json::Error),
    /// There is no way to the workload cluster.
    #[error("the workload cluster cannot be reached")]
    NoWorkload,
    /// The API has no such kind, or does not tell.
    #[error("look up the kind {kind} of {api_version}: {}", said(source))]
    UnknownKind {
        /// Its version.
        api_version: String,
        /// Its kind.
        kind: String,
        /// What the API said.
        #[source]
        source: Box<kube::Error>,
    },
    /// An object of that name belongs to somebody else.
    #[error("create {object}: there is one already, {why}")]
    Foreign {
        /// Which.
        object: String,
        /// Why it is not ours.
        why: String,
    },
    /// The API refused, or could not be reached.
    #[error("{verb} {object}: {}", said(source))]
    Api {
        /// What was attempted.
        verb: &'static str,
        /// On what.
        object: String,
        /// What the API said.
        #[source]
        source: Box<kube::Error>,
    },
    /// A certificate or key could not be made.
    #[error(transparent)]
    Key(#[from] KeyError),
}

impl WriteError {
    pub(crate) fn api(verb: &'static str, object: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let object = object.into();
        move |source| Self::Api { verb, object, source: Box::new(source) }
    }

    /// Whether the API answered that it has no such kind.
    pub(crate) fn is_no_such_kind(&self) -> bool {
        let Self::UnknownKind { source, .. } = self else { return false };
        matches!(&**source, kube::Error::Discovery(_)) || is_not_found(source)
    }

    /// A word for metrics and conditions.
    pub fn category(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "Malformed",
            Self::NoWorkload => "WorkloadUnreachable",
            Self::UnknownKind { .. } => "UnknownKind",
            Self::Foreign { .. } => "ForeignObject",
            Self::Api { .. } => "WriteFailed",
            Self::Key(_) => "KeyNotMade",
        }
    }
}

pub(crate) fn parse(object: &Value) -> Result<DynamicObject, WriteError> {
    serde_json::from_value(object.clone()).map_err(WriteError::Malformed)
}

/// POST. Where there is one of that name, it is taken over only if it is ours: what a crash or a lost answer left behind.
pub(super) async fn create(
    api: &Api<DynamicObject>,
    object: &DynamicObject,
) -> Result<(Written, DynamicObject), WriteError> {
    let name = object.metadata.name.clone().unwrap_or_default();
    let shown = shown(object);
    match api.create(&PostParams { field_manager: Some(FIELD_MANAGER.into()), ..PostParams::default() }, object).await {
        Ok(created) => return Ok((Written::Made, created)),
        Err(error) if is_already_exists(&error) => {}
        Err(error) => return Err(WriteError::api("create", shown)(error)),
    }
    let live = api.get(&name).await.map_err(WriteError::api("read", shown.clone()))?;
    match foreign(&object.metadata, &live.metadata) {
        None => Ok((Written::Made, live)),
        Some(why) => Err(WriteError::Foreign { object: shown, why }),
    }
}

/// Why a live object is not the one that we would have created. Others may have added owners since; none of ours is missing.
fn foreign(ours: &ObjectMeta, live: &ObjectMeta) -> Option<String> {
    let update = |meta: &ObjectMeta| meta.labels.as_ref().and_then(|labels| labels.get(label::UPDATE_ID.name).cloned());
    if live.deletion_timestamp.is_some() {
        return Some("which is being deleted".into());
    }
    if update(ours) != update(live) {
        let of = update(live).map_or("no update".into(), |id| format!("the update {id}"));
        return Some(format!("made by {of}"));
    }
    let owners = |meta: &ObjectMeta| meta.owner_references.clone().unwrap_or_default();
    let theirs = owners(live);
    let missing = owners(ours).into_iter().find(|owner| !theirs.iter().any(|live| live.uid == owner.uid))?;
    Some(format!("which does not belong to {} {}", missing.kind, missing.name))
}

/// Server-side apply, forced. `None` if the expectation did not hold.
pub(crate) async fn apply(
    api: &Api<DynamicObject>,
    object: &Value,
    expect: Option<&Revision>,
) -> Result<Option<DynamicObject>, WriteError> {
    let mut object = object.clone();
    if let Some(Revision { uid, resource_version }) = expect {
        object["metadata"]["uid"] = json!(uid.as_str());
        object["metadata"]["resourceVersion"] = json!(resource_version);
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    let params = PatchParams::apply(FIELD_MANAGER).force();
    match api.patch(&name, &params, &Patch::Apply(&object)).await {
        Ok(applied) => Ok(Some(applied)),
        // Without an expectation there is nothing that a forced apply could conflict with but a race, which is the same.
        Err(error) if is_conflict(&error) || is_other_object(&error) => Ok(None),
        Err(error) => Err(WriteError::api("apply", format!("{kind}/{name}"))(error)),
    }
}

/// Makes a certificate or key where there is none. One that is there is never overwritten: machines trust it.
pub(super) async fn create_secret(
    client: &Client,
    cluster: &NamespacedName,
    keys: &dyn KeyMaker,
    secret: ClusterSecret,
    metadata: &Value,
) -> Result<Written, WriteError> {
    let metadata: ObjectMeta = serde_json::from_value(metadata.clone()).map_err(WriteError::Malformed)?;
    let name = metadata.name.clone().unwrap_or_default();
    let namespace = metadata.namespace.clone().unwrap_or_else(|| cluster.namespace.to_string());
    let data = keys.make(cluster, secret)?.into_iter().map(|(key, value)| (key, ByteString(value))).collect();
    let object = Secret { metadata, data: Some(data), type_: Some(SECRET_TYPE.into()), ..Secret::default() };
    let api: Api<Secret> = Api::namespaced(client.clone(), &namespace);
    match api.create(&PostParams { field_manager: Some(FIELD_MANAGER.into()), ..PostParams::default() }, &object).await
    {
        Ok(_) => Ok(Written::Made),
        Err(error) if is_already_exists(&error) => Ok(Written::Made),
        Err(error) => Err(WriteError::api("create", format!("Secret/{name}"))(error)),
    }
}

/// Deletes the object in the state that was seen; gone is as good as deleted.
pub(crate) async fn delete(
    api: &Api<DynamicObject>,
    kind: &str,
    name: &str,
    expect: &Revision,
) -> Result<Written, WriteError> {
    let preconditions =
        Preconditions { uid: Some(expect.uid.to_string()), resource_version: Some(expect.resource_version.clone()) };
    match api.delete(name, &DeleteParams::background().preconditions(preconditions)).await {
        Ok(_) => Ok(Written::Made),
        Err(error) if is_not_found(&error) => Ok(Written::Made),
        Err(error) if is_conflict(&error) => Ok(Written::Outdated),
        Err(error) => Err(WriteError::api("delete", format!("{kind}/{name}"))(error)),
    }
}

fn shown(object: &DynamicObject) -> String {
    let kind = object.types.as_ref().map_or("", |types| &types.kind);
    format!("{kind}/{}", object.metadata.name.as_deref().unwrap_or_default())
}
