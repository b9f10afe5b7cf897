//! The controller of releases that are objects of their own: shows on them whether they can be used, and on clusters which of
//! them they could be updated to.
//!
//! All of it follows from objects that are watched, so nothing is looked at again by the clock, and nothing is written where
//! nothing differs.

mod catalogue;
mod cluster;

use kube::api::{Patch, PatchParams};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use serde_json::Value;
use windlass_runtime::runner::Options;

use crate::access::Access;
use crate::said::said;

/// Whose fields these are. Apart from those of the other controllers: who applies a part of an object gives up what they leave
/// out of it.
pub const FIELD_MANAGER: &str = "windlass-releases";

/// Where the metadata is by which releases are compatible, and the packages that belong to them.
pub const SYSTEM_NAMESPACE: &str = "tkg-system";

/// Something could not be written.
#[derive(Debug, thiserror::Error)]
#[error("{attempt} {object}: {}", said(source))]
pub(crate) struct Error {
    attempt: &'static str,
    object: String,
    #[source]
    source: Box<kube::Error>,
}

/// Runs the controllers until `stop`.
pub async fn run(access: Access, stop: impl Future<Output = ()> + Clone) {
    tokio::join!(catalogue::run(access.clone(), stop.clone()), cluster::run(access, stop));
}

fn options(access: &Access) -> Options {
    let mut options = Options::new(access.clock.clone(), access.seed);
    options.trace.clone_from(&access.trace);
    options
}

/// Which part of an object is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Object,
    Status,
}

/// Applies fields of an object that is there. One that is another by now, or gone, is looked at again when that is seen.
async fn apply<K>(api: &Api<K>, object: &K, part: Part, fields: Value) -> Result<Option<K>, Error>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let name = object.meta().name.clone().unwrap_or_default();
    let mut patch = fields;
    patch["apiVersion"] = K::api_version(&()).into();
    patch["kind"] = K::kind(&()).into();
    patch["metadata"]["name"] = name.as_str().into();
    patch["metadata"]["uid"] = object.meta().uid.clone().into();
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let (attempt, written) = match part {
        Part::Object => ("label", api.patch(&name, &params, &Patch::Apply(&patch)).await),
        Part::Status => ("write the status of", api.patch_status(&name, &params, &Patch::Apply(&patch)).await),
    };
    match written {
        Ok(written) => Ok(Some(written)),
        Err(error) if crate::said::is_conflict(&error) || crate::said::is_other_object(&error) => Ok(None),
        Err(error) if crate::said::is_not_found(&error) => Ok(None),
        Err(source) => Err(Error { attempt, object: format!("{}/{name}", K::kind(&())), source: Box::new(source) }),
    }
}
