//! Infrastructure profiles: those that are given, and those that are installed.

use std::fs;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::ListParams;
use windlass_api::label;
use windlass_plan::profile::{KEY, NAMESPACE, Profile, Profiles, SHIPPED};

use super::Error;
use crate::client::{self, Management};
use crate::manifests::Added;

/// A profile by the name of one that comes with Windlass, or by its file. One that would count for nothing is refused.
pub fn given(name: &str) -> Result<Added, Error> {
    let shipped = SHIPPED.iter().find(|(shipped, _)| *shipped == name);
    let text = match shipped {
        Some((_, text)) => (*text).to_owned(),
        None => fs::read_to_string(name).map_err(|source| Error::NoProfile { path: name.to_owned(), source })?,
    };
    let profile = Profile::read(name, &text).map_err(Error::Profile)?;
    // Beside the built-in one, and as it will be read.
    match Profiles::read([(name, Some(text.as_str()))]).malformed().first() {
        Some(why) => Err(Error::Profile(why.clone())),
        None => Ok(Added { profile, text }),
    }
}

/// Which there are without a file.
pub fn hint() -> String {
    let [(first, _), (second, _)] = SHIPPED;
    format!("the name of a file that is there, or one of those that come with Windlass: {first}, {second}")
}

/// Those that are installed and can be read.
pub async fn installed(management: &Management) -> Result<Vec<Added>, Error> {
    let api: Api<ConfigMap> = Api::namespaced(management.client.clone(), NAMESPACE);
    let described = ListParams::default().labels(label::INFRASTRUCTURE_PROFILE.name);
    let listed = api.list(&described).await;
    let listed = listed.map_err(client::Error::while_trying("list the infrastructure profiles"))?;
    let texts = listed.items.into_iter().filter_map(|map| map.data?.remove(KEY));
    Ok(texts.filter_map(|text| Some(Added { profile: Profile::read("", &text).ok()?, text })).collect())
}
