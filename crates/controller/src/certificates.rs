//! The certificate by which webhooks and hooks are believed: made here, kept in one Secret, and exchanged before it ends.
//!
//! Whoever asks us trusts what is in the `caBundle` of a configuration. So an authority is trusted for a day before it signs
//! anything, and for a day after it has signed the last thing: at no moment is there a replica with a certificate that some API
//! server does not trust yet, or no more. All replicas do this; each write says which state of the Secret it was decided on, and
//! whoever comes second reads again.

mod cluster;
mod state;

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DynamicObject, ObjectMeta, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use kube::{Api, Client};
use serde_json::{Value, json};
use windlass_api::kind::extension::ExtensionConfig;

use crate::hooks;
use crate::said::{is_conflict, is_not_found, said};
use crate::webhooks::{self, NAMESPACE, Sort};

pub use cluster::ClusterKeys;
pub use state::{Certificates, MakeError};

/// The Secret.
pub const SECRET: &str = "windlass-serving";

/// More changes than this in a row are no progress.
const CHANGES_MAX: usize = 5;

/// The certificate could not be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something could not be read or written.
    #[error("{attempt} {object}: {}", said(source))]
    Request {
        /// What was attempted.
        attempt: &'static str,
        /// With what.
        object: String,
        /// What the API said.
        #[source]
        source: Box<kube::Error>,
    },
    /// A key or certificate could not be made.
    #[error(transparent)]
    Make(#[from] MakeError),
    /// Others write it all the time, or what is made is not what is wanted.
    #[error("Secret/{SECRET} did not come to rest")]
    Restless,
}

fn request(attempt: &'static str, object: impl Into<String>) -> impl FnOnce(kube::Error) -> Error {
    let object = object.into();
    move |source| Error::Request { attempt, object, source: Box::new(source) }
}

/// Sees to it that there is a certificate that is valid for long enough, and that those who ask trust it.
pub async fn keep(client: &Client, now: Timestamp) -> Result<Certificates, Error> {
    let certificates = settled(client, now).await?;
    trust(client, &certificates.bundle()).await?;
    Ok(certificates)
}

/// The content of the Secret, when nothing of it has to be changed now.
async fn settled(client: &Client, now: Timestamp) -> Result<Certificates, Error> {
    let api: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    for _ in 0..CHANGES_MAX {
        let found = api.get_opt(SECRET).await.map_err(request("read", format!("Secret/{SECRET}")))?;
        let data = found.as_ref().and_then(|secret| secret.data.clone()).unwrap_or_default();
        let known = Certificates::read(&data.into_iter().map(|(key, value)| (key, value.0)).collect());
        let Some(changed) = state::next(known.as_ref(), &service_names(), now)? else {
            // There is nothing to change only in what is there.
            return known.ok_or(Error::Restless);
        };
        write(&api, found, &changed).await?;
    }
    Err(Error::Restless)
}

/// Writes the Secret, unless somebody was faster: then what they wrote is looked at next.
async fn write(api: &Api<Secret>, found: Option<Secret>, changed: &Certificates) -> Result<(), Error> {
    let data: BTreeMap<String, ByteString> =
        changed.data().into_iter().map(|(key, value)| (key, ByteString(value))).collect();
    let written = if let Some(found) = found {
        let secret = Secret { data: Some(data), ..found };
        api.replace(SECRET, &PostParams::default(), &secret).await.map(drop)
    } else {
        let labels = [(webhooks::PART_OF.0.to_owned(), webhooks::PART_OF.1.to_owned())].into();
        let metadata = ObjectMeta { name: Some(SECRET.to_owned()), labels: Some(labels), ..ObjectMeta::default() };
        let secret = Secret { metadata, data: Some(data), ..Secret::default() };
        api.create(&PostParams::default(), &secret).await.map(drop)
    };
    match written {
        Ok(()) => Ok(()),
        Err(error) if is_conflict(&error) || crate::said::is_already_exists(&error) => Ok(()),
        Err(error) => Err(request("write", format!("Secret/{SECRET}"))(error)),
    }
}

/// The names by which those who ask know us.
fn service_names() -> Vec<String> {
    let [hooks, in_namespace] = hooks::SERVICE;
    let names = [(webhooks::SERVICE, NAMESPACE), (hooks, in_namespace)];
    names
        .iter()
        .flat_map(|(name, namespace)| {
            [format!("{name}.{namespace}.svc"), format!("{name}.{namespace}.svc.cluster.local")]
        })
        .collect()
}

/// Puts the bundle into every configuration of ours that is there and has another.
async fn trust(client: &Client, bundle: &str) -> Result<(), Error> {
    let encoded = STANDARD.encode(bundle);
    for sort in [Sort::Mutating, Sort::Validating] {
        let (kind, name) = (sort.kind(), sort.configuration());
        let resource = ApiResource {
            group: "admissionregistration.k8s.io".to_owned(),
            version: "v1".to_owned(),
            api_version: "admissionregistration.k8s.io/v1".to_owned(),
            kind: kind.to_owned(),
            plural: sort.resource().to_owned(),
        };
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        let object = format!("{kind}/{name}");
        let Some(found) = api.get_opt(name).await.map_err(request("read", object.as_str()))? else {
            continue;
        };
        if let Some(patch) = trusting(&found, &encoded) {
            patched(api.patch(name, &PatchParams::default(), &patch).await, object)?;
        }
    }
    let api: Api<ExtensionConfig> = Api::all(client.clone());
    let object = format!("ExtensionConfig/{}", hooks::CONFIG);
    let found = match api.get_opt(hooks::CONFIG).await {
        Ok(Some(found)) => found,
        // Without the Runtime SDK there is nothing that would ask.
        Ok(None) => return Ok(()),
        Err(error) if is_not_found(&error) => return Ok(()),
        Err(error) => return Err(request("read", object)(error)),
    };
    if found.spec.client_config.ca_bundle.as_deref() != Some(encoded.as_str()) {
        let patch = json!({
            "metadata": { "resourceVersion": found.metadata.resource_version },
            "spec": { "clientConfig": { "caBundle": encoded } },
        });
        patched(api.patch(hooks::CONFIG, &PatchParams::default(), &Patch::Merge(&patch)).await, object)?;
    }
    Ok(())
}

/// One that was changed in between is looked at again the next time.
fn patched<K>(answer: Result<K, kube::Error>, object: String) -> Result<(), Error> {
    match answer {
        Ok(_) => Ok(()),
        Err(error) if is_conflict(&error) || is_not_found(&error) => Ok(()),
        Err(error) => Err(request("change", object)(error)),
    }
}

/// What has to be changed in a configuration so that all of its webhooks trust this bundle.
fn trusting(found: &DynamicObject, encoded: &str) -> Option<Patch<Value>> {
    let webhooks = found.data["webhooks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let other = |webhook: &Value| webhook["clientConfig"]["caBundle"] != json!(encoded);
    if !webhooks.iter().any(other) {
        return None;
    }
    let mut webhooks = webhooks.to_vec();
    for webhook in &mut webhooks {
        webhook["clientConfig"]["caBundle"] = json!(encoded);
    }
    let metadata = json!({ "resourceVersion": found.metadata.resource_version });
    Some(Patch::Merge(json!({ "metadata": metadata, "webhooks": webhooks })))
}
