//! Writes that say what they were decided on.

use std::fmt::Debug;

use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Error;

/// Who writes, as the objects' managed fields have it.
const FIELD_MANAGER: &str = "windlass";

/// How often a decision is made anew because the object had changed meanwhile. Statuses change a few times while a machine
/// comes up or goes; more than this is somebody who writes all the time.
const DECISIONS_MAX: usize = 8;

/// For creating.
pub fn post() -> PostParams {
    PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() }
}

/// For patching.
pub fn patch() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}

/// Whether an API refused because of the state that an object is in.
pub fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}

/// Whether an API says that there is no such object.
pub fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// Changes an object in the very state that the change was decided on. If it was in another, the decision is made anew on that.
/// `change` gives a merge patch, or nothing where nothing is to be changed.
pub async fn revise<K>(
    api: &Api<K>,
    mut object: K,
    attempt: &str,
    change: impl Fn(&K) -> Option<Value>,
) -> Result<K, Error>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let name = object.name_any();
    let mut decisions = 0;
    loop {
        let Some(mut wanted) = change(&object) else { return Ok(object) };
        wanted["metadata"]["resourceVersion"] = json!(object.resource_version());
        decisions += 1;
        match api.patch(&name, &patch(), &Patch::Merge(&wanted)).await {
            Ok(written) => return Ok(written),
            Err(error) if is_conflict(&error) && decisions < DECISIONS_MAX => {
                object = api.get(&name).await.map_err(Error::api(attempt))?;
            }
            Err(error) => return Err(Error::api(attempt)(error)),
        }
    }
}

/// Deletes an object, in the state in which `decide` has seen it. Whoever is gone, or on the way, needs no deleting; of another
/// object that has the name by now, nothing is known, and it stays.
pub async fn delete<K>(api: &Api<K>, object: &K, attempt: &str) -> Result<(), Error>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let name = object.name_any();
    let mut decisions = 0;
    loop {
        let found = api.get_opt(&name).await.map_err(Error::api(attempt))?;
        let Some(found) = found.filter(|found| found.uid() == object.uid()) else { return Ok(()) };
        if found.meta().deletion_timestamp.is_some() {
            return Ok(());
        }
        let preconditions = Preconditions { uid: found.uid(), resource_version: found.resource_version() };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        decisions += 1;
        match api.delete(&name, &params).await {
            Ok(_) => return Ok(()),
            Err(error) if is_not_found(&error) => return Ok(()),
            Err(error) if is_conflict(&error) && decisions < DECISIONS_MAX => {}
            Err(error) => return Err(Error::api(attempt)(error)),
        }
    }
}
