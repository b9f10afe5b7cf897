//! Writes that say what they were decided on.

use std::fmt::Debug;

use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_plan::step::Revision;

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

/// What became of a deletion.
pub enum Deleted<K> {
    /// It is gone.
    Gone,
    /// It is on the way out, and now like this.
    Leaving(Box<K>),
    /// It was in another state than expected, and stays.
    Changed,
}

/// Deletes an object in the very state that this was decided on. Whoever is gone needs no deleting; of another object that has
/// the name by now, or another state, nothing is known, and it stays.
pub async fn delete<K>(api: &Api<K>, name: &str, expect: &Revision) -> Result<Deleted<K>, Error>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let preconditions =
        Preconditions { uid: Some(expect.uid.to_string()), resource_version: Some(expect.resource_version.clone()) };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    match api.delete(name, &params).await {
        Ok(answer) => Ok(match answer.left().filter(|object| object.meta().deletion_timestamp.is_some()) {
            Some(object) => Deleted::Leaving(Box::new(object)),
            None => Deleted::Gone,
        }),
        Err(error) if is_not_found(&error) => Ok(Deleted::Gone),
        Err(error) if is_conflict(&error) => Ok(Deleted::Changed),
        Err(error) => Err(Error::api(format!("delete the {} {name}", K::kind(&())))(error)),
    }
}
