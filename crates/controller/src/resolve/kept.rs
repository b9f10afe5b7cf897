//! The releases that are kept for a cluster: copies of what images said, in `ConfigMap`s that go with the cluster.
//!
//! Only their metadata is watched. What is in one is read when no image says it any more, and then once: it is named by its
//! digest, and what has that digest never changes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ListParams;
use kube::{Api, Client, Resource};
use serde::Deserialize;
use windlass_api::kind::cluster_update::{ClusterUpdate, UpdateState};
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::kind::virtual_machine::VirtualMachineImage;
use windlass_api::name::ObjectName;
use windlass_api::version::KubernetesVersion;
use windlass_api::{annotation, label};
use windlass_plan::inventory::{ImageState, KeptRelease, Releases as Observed};
use windlass_plan::release::{Release, kept_image};
use windlass_plan::target::Target;
use windlass_runtime::key::Key;

use super::{Unresolved, images_in_use};
use crate::observe::management::{latest_update, revision};
use crate::reconcile::belongs_to;
use crate::reconcile::context::Context;
use crate::said::with_causes;

/// A `ConfigMap` that keeps a release, without what is in it: that is as much as an image has to say.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Kept {
    #[serde(default)]
    metadata: ObjectMeta,
}

impl Resource for Kept {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "ConfigMap".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "configmaps".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl Kept {
    /// The digest of what it should hold.
    fn digest(&self) -> Option<&str> {
        self.metadata.annotations.as_ref()?.get(annotation::RELEASE_DIGEST.name).map(String::as_str)
    }

    /// The version of the release that it keeps.
    fn version(&self) -> Option<KubernetesVersion> {
        // One that says nothing that can be read is of no use, and is not taken for any.
        label::KEPT_RELEASE.get(self.metadata.labels.as_ref()?).ok().flatten()
    }
}

/// What has been read, by digest. Whoever loses it reads again.
#[derive(Default)]
pub(super) struct Copies(Mutex<BTreeMap<String, Release>>);

impl Copies {
    fn has(&self, digest: &str) -> bool {
        self.lock().contains_key(digest)
    }

    fn get(&self, digest: &str) -> Option<Release> {
        self.lock().get(digest).cloned()
    }

    // Whoever panicked cannot have left the map half changed.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Release>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is kept for a cluster: the latest first.
fn of_cluster(ctx: &Context, cluster: &TanzuKubernetesCluster) -> Vec<Arc<Kept>> {
    let namespace = cluster.metadata.namespace.as_deref().unwrap_or_default();
    let mut kept = ctx.caches.kept.list_in(namespace);
    kept.retain(|kept| belongs_to(&kept.metadata, cluster) && kept.metadata.deletion_timestamp.is_none());
    kept.sort_by_key(|kept| std::cmp::Reverse(kept.metadata.creation_timestamp.as_ref().map(|time| time.0)));
    kept
}

/// Reads what is kept for a cluster and said by no image any more. What is in one and cannot be used is told, and missed only by
/// whoever needs it.
pub(crate) async fn learn(ctx: &Context, cluster: &TanzuKubernetesCluster) -> Result<(), kube::Error> {
    for kept in of_cluster(ctx, cluster) {
        let (Some(digest), Some(version)) = (kept.digest(), kept.version()) else { continue };
        if ctx.releases.copies.has(digest) || is_said(ctx, cluster, &version, digest) {
            continue;
        }
        let name = kept.metadata.name.as_deref().unwrap_or_default();
        let namespace = kept.metadata.namespace.as_deref().unwrap_or_default();
        let api: Api<ConfigMap> = Api::namespaced(ctx.access.client.clone(), namespace);
        // One that has gone meanwhile is not there for anybody.
        let Some(live) = api.get_opt(name).await? else { continue };
        match Release::from_kept(&live.data.unwrap_or_default(), digest) {
            Ok(release) => {
                ctx.releases.copies.lock().insert(digest.to_owned(), release);
            }
            Err(error) => tracing::warn!(name, error = with_causes(&error), "a release that was kept cannot be used"),
        }
    }
    Ok(())
}

/// Whether an image still says that.
fn is_said(ctx: &Context, cluster: &TanzuKubernetesCluster, version: &KubernetesVersion, digest: &str) -> bool {
    let live = ctx.releases.digest(version, &images_in_use(ctx, &Key::of(cluster)));
    live.is_ok_and(|said| said.as_deref() == Some(digest))
}

/// The release as a cluster is to have it: with this digest, whatever its image says by now; or, where any will do, as the image
/// says it, and as it was kept where there is none that can be gone by.
pub(super) fn or_kept(
    ctx: &Context,
    cluster: &TanzuKubernetesCluster,
    version: &KubernetesVersion,
    digest: Option<&str>,
    live: Result<Release, Unresolved>,
) -> Result<Release, Unresolved> {
    match (digest, &live) {
        (Some(digest), Ok(release)) if release.original_digest() == Some(digest) => return live,
        (None, Ok(_)) => return live,
        _ => {}
    }
    let in_use = in_use(ctx, cluster);
    let is_it = |kept: &Kept| match digest {
        Some(digest) => kept.digest() == Some(digest),
        None => kept.version().as_ref() == Some(version),
    };
    let mut kept = of_cluster(ctx, cluster);
    kept.retain(|kept| is_it(kept));
    // Of several the one that the cluster has.
    kept.sort_by_key(|kept| kept.digest() != in_use.as_deref());
    let copy = kept.iter().find_map(|kept| ctx.releases.copies.get(kept.digest()?));
    copy.map_or(live, Ok)
}

/// The digest of the release that a cluster has, as far as that is on record: its last update says so, or what it was created
/// with.
fn in_use(ctx: &Context, cluster: &TanzuKubernetesCluster) -> Option<String> {
    let Some(latest) = latest_update(ctx, cluster) else {
        let live = ctx.caches.clusters.get(&Key::of(cluster))?;
        return live.metadata.annotations.as_ref()?.get(annotation::RELEASE_DIGEST.name).cloned();
    };
    let ClusterUpdate { spec, status, .. } = &*latest;
    match status.as_ref().and_then(|status| status.state) {
        Some(UpdateState::Succeeded) => spec.to.release.clone(),
        Some(UpdateState::Running | UpdateState::Failed | UpdateState::Aborted) | None => spec.from.release.clone(),
    }
}

/// What is kept for a cluster, and what has become of the image of the release that it is to have.
pub(crate) fn observe(ctx: &Context, cluster: &TanzuKubernetesCluster, target: &Target) -> Observed {
    let kept = |kept: Arc<Kept>| {
        let name = ObjectName::new(kept.metadata.name.as_deref()?).ok()?;
        Some(KeptRelease { name, digest: kept.digest()?.to_owned(), revision: revision(&kept.metadata).ok()? })
    };
    Observed {
        in_use: in_use(ctx, cluster),
        kept: of_cluster(ctx, cluster).into_iter().filter_map(kept).collect(),
        image: image(ctx, cluster, target),
    }
}

fn image(ctx: &Context, cluster: &TanzuKubernetesCluster, target: &Target) -> ImageState {
    let release = &target.release;
    let mut in_use = images_in_use(ctx, &Key::of(cluster));
    // Also before the first machine is made from it.
    in_use.extend(release.image().map(ToString::to_string));
    match ctx.releases.digest(&release.distribution, &in_use) {
        Ok(said) if said.as_deref() == release.original_digest() => ImageState::There,
        Ok(_) => ImageState::Replaced,
        Err(Unresolved::Ambiguous { images, .. }) => ImageState::Ambiguous { why: images },
        Err(Unresolved::MalformedRelease { why }) => ImageState::Malformed { why },
        // An image that says nothing that can be read is of no version.
        Err(Unresolved::NoRelease { .. }) => match ctx.releases.unreadable(release.image()) {
            Some(why) => ImageState::Malformed { why },
            None => ImageState::Gone,
        },
        Err(Unresolved::NoVersion | Unresolved::MalformedVersion(_) | Unresolved::MalformedCluster(_)) => {
            ImageState::There
        }
    }
}

/// The image of a version as it is kept for a cluster, for whoever has no caches.
pub(crate) async fn of_version(
    client: &Client,
    cluster: &TanzuKubernetesCluster,
    version: &KubernetesVersion,
) -> Result<Option<VirtualMachineImage>, kube::Error> {
    let namespace = cluster.metadata.namespace.as_deref().unwrap_or_default();
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    let (key, value) = label::KEPT_RELEASE.entry(version);
    let selected = ListParams::default().labels(&format!("{}={name},{key}={value}", label::CLUSTER_NAME));
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let mut found = api.list(&selected).await?.items;
    found.retain(|kept| belongs_to(&kept.metadata, cluster));
    found.sort_by_key(|kept| std::cmp::Reverse(kept.metadata.creation_timestamp.as_ref().map(|time| time.0)));
    let read = |kept: &ConfigMap| {
        let digest = kept.metadata.annotations.as_ref()?.get(annotation::RELEASE_DIGEST.name)?;
        kept_image(kept.data.as_ref()?, digest).ok()
    };
    Ok(found.iter().find_map(read))
}
