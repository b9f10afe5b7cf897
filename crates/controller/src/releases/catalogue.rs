//! Releases and images: their labels, by which they are found and passed over, and the conditions of releases.
//!
//! All of them are one thing to look at: what is compatible concerns every release, an image every release that it belongs to,
//! and there are never many.

use std::sync::Arc;
use std::time::Duration;

use json_patch::PatchOperation;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use kube::runtime::watcher;
use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::release::{OSImage, TanzuKubernetesRelease};
use windlass_api::{annotation, label};
use windlass_plan::resolve::catalogue::Malformed;
use windlass_plan::resolve::compatibility::{ADDITIONAL_KEY, Compatible, METADATA, METADATA_KEY, Source};
use windlass_plan::resolve::shown::{self, Change};
use windlass_runtime::cache::Cache;
use windlass_runtime::key::Key;
use windlass_runtime::runner::{Ctx, Outcome, Runner};
use windlass_runtime::watch::Watch;

use super::{Error, FIELD_MANAGER, Part, SYSTEM_NAMESPACE, apply, options};
use crate::access::Access;
use crate::said::is_not_found;

/// When the caches have not seen what we wrote: the watches will tell, sooner or later.
const CATCHING_UP: Duration = Duration::from_secs(5);

struct Context {
    access: Access,
    releases: Cache<TanzuKubernetesRelease>,
    images: Cache<OSImage>,
    /// The management cluster itself.
    management: Cache<Cluster>,
    metadata: Cache<ConfigMap>,
    additional: Cache<ConfigMap>,
}

pub(super) async fn run(access: Access, stop: impl Future<Output = ()>) {
    let client = &access.client;
    let labelled = |label: &str| watcher::Config::default().labels(label);
    let releases = Watch::<TanzuKubernetesRelease>::all(client.clone());
    let images = Watch::<OSImage>::all(client.clone());
    let management = Watch::<Cluster>::all(client.clone()).configured(labelled(label::MANAGEMENT_CLUSTER.name));
    let named = watcher::Config::default().fields(&format!("metadata.name={METADATA}"));
    let metadata = Watch::<ConfigMap>::all(client.clone()).within(SYSTEM_NAMESPACE).configured(named);
    let declared = labelled(label::ADDITIONAL_COMPATIBLE_RELEASES.name);
    let additional = Watch::<ConfigMap>::all(client.clone()).configured(declared);
    let context = Context {
        releases: releases.cache(),
        images: images.cache(),
        management: management.cache(),
        metadata: metadata.cache(),
        additional: additional.cache(),
        access: access.clone(),
    };
    let all = || vec![Key::cluster("releases")];
    let runner = Runner::concerning("releases", releases, options(&access), move |_| all())
        .watches(images, move |_| all())
        .watches_changes(management, move |change| {
            let version = |cluster: Option<&Cluster>| cluster.and_then(version_of);
            if version(change.before) == version(change.after) { Vec::new() } else { all() }
        })
        .watches(metadata, move |_| all())
        .watches(additional, move |_| all());
    let summary = runner.run_keys(Arc::new(context), |_, ctx| reconcile(ctx), stop).await;
    tracing::debug!(?summary, "the controller of releases has stopped");
}

async fn reconcile(ctx: Ctx<Context>) -> Result<Outcome, Error> {
    if !ctx.caught_up() {
        return Ok(Outcome::requeue_after(CATCHING_UP));
    }
    let compatible = ctx.compatible();
    if let Err(malformed) = &compatible {
        tracing::warn!(%malformed, "it cannot be read which releases are compatible: each stays what it is");
    }
    let images: Vec<OSImage> = ctx.images.list().iter().map(|image| (**image).clone()).collect();
    let mut failed = None;
    for image in &images {
        failed = write(&ctx, &ctx.images, image, shown::on_image(image)).await.err().or(failed);
    }
    let now = ctx.access.clock.now();
    for release in ctx.releases.list() {
        let change = shown::on_release(&release, &images, compatible.as_ref(), now);
        failed = write(&ctx, &ctx.releases, &*release, change).await.err().or(failed);
    }
    // One that cannot be written keeps nobody from writing the others.
    failed.map_or(Ok(Outcome::done()), Err)
}

impl Context {
    /// The releases that can be used here.
    fn compatible(&self) -> Result<Compatible, Malformed> {
        let management = self.management.list();
        let version = management.iter().find_map(|cluster| version_of(cluster));
        let bytes = |map: &ConfigMap| map.binary_data.as_ref()?.get(METADATA_KEY).cloned();
        let text = |ByteString(bytes): ByteString| String::from_utf8_lossy(&bytes).into_owned();
        let metadata = self.metadata.list().iter().find_map(|map| bytes(map)).map(text);
        let declared: Vec<(String, String)> = self.additional.list().iter().filter_map(|map| declared(map)).collect();
        let declared: Vec<Source<'_>> = declared.iter().map(|(name, text)| Source { name, text }).collect();
        let metadata = metadata.as_deref().map(|text| Source { name: METADATA, text });
        Compatible::read(version.as_deref(), metadata, &declared)
    }
}

/// The version of the tools on the management cluster.
fn version_of(cluster: &Cluster) -> Option<String> {
    cluster.metadata.annotations.as_ref()?.get(annotation::MANAGEMENT_VERSION.name).cloned()
}

/// The name of a `ConfigMap` that declares releases compatible, and what it says.
fn declared(map: &ConfigMap) -> Option<(String, String)> {
    Some((map.metadata.name.clone()?, map.data.as_ref()?.get(ADDITIONAL_KEY)?.clone()))
}

/// Writes what is to be written on an object.
async fn write<K>(ctx: &Ctx<Context>, cache: &Cache<K>, object: &K, change: Change) -> Result<(), Error>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::ClusterResourceScope>,
    K: Clone + Serialize + DeserializeOwned + std::fmt::Debug,
{
    let api: Api<K> = Api::all(ctx.access.client.clone());
    if object.meta().deletion_timestamp.is_some() {
        return Ok(());
    }
    if let Some(labels) = &change.labels
        && let Some(written) = apply(&api, object, Part::Object, json!({"metadata": {"labels": labels}})).await?
    {
        ctx.wrote(cache, &written);
        // What others have put there stays when we leave it out.
        let left = |key: &&String| written.meta().labels.as_ref().is_some_and(|labels| labels.contains_key(*key));
        let left: Vec<&String> = change.gone.iter().filter(left).collect();
        if let Some(written) = remove(&api, &written, &left).await? {
            ctx.wrote(cache, &written);
        }
    }
    if let Some(conditions) = &change.conditions
        && let Some(written) = apply(&api, object, Part::Status, json!({"status": {"conditions": conditions}})).await?
    {
        ctx.wrote(cache, &written);
    }
    Ok(())
}

/// Takes labels away that are still what they were.
async fn remove<K>(api: &Api<K>, object: &K, keys: &[&String]) -> Result<Option<K>, Error>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    if keys.is_empty() {
        return Ok(None);
    }
    let name = object.meta().name.clone().unwrap_or_default();
    let path = |key: &String| format!("/metadata/labels/{}", key.replace('~', "~0").replace('/', "~1"));
    let test = json!({"op": "test", "path": "/metadata/resourceVersion", "value": object.meta().resource_version});
    let removals = keys.iter().map(|key| json!({"op": "remove", "path": path(key)}));
    let operations: Vec<serde_json::Value> = std::iter::once(test).chain(removals).collect();
    let failed = |source| Error {
        attempt: "take labels from",
        object: format!("{}/{name}", K::kind(&())),
        source: Box::new(source),
    };
    let operations: Vec<PatchOperation> =
        serde_json::from_value(operations.into()).map_err(|error| failed(kube::Error::SerdeError(error)))?;
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    match api.patch(&name, &params, &Patch::<()>::Json(json_patch::Patch(operations))).await {
        Ok(written) => Ok(Some(written)),
        Err(error) if is_not_found(&error) => Ok(None),
        Err(error) => Err(failed(error)),
    }
}
