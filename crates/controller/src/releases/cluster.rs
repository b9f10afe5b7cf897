//! Clusters of a class: which releases they could be updated to, and a copy of the one that they have.
//!
//! Admission keeps the copy in the write that changes the release. It is kept here where admission was not asked.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kube::Api;
use kube::runtime::watcher;
use serde_json::json;
use windlass_api::condition::ConditionType;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::release::{OSImage, TanzuKubernetesRelease};
use windlass_api::kind::topology::ClusterClass;
use windlass_api::name::ReleaseName;
use windlass_api::{annotation, label};
use windlass_plan::resolve::admit::class_of;
use windlass_plan::resolve::catalogue::Catalogue;
use windlass_plan::resolve::cluster::Asked;
use windlass_plan::resolve::copy;
use windlass_plan::resolve::updates::{Updates, updates};
use windlass_runtime::cache::Cache;
use windlass_runtime::key::Key;
use windlass_runtime::runner::{Ctx, Outcome, Runner};
use windlass_runtime::watch::Watch;

use super::{Error, Part, apply, options};
use crate::access::Access;

/// When the caches have not seen what we wrote: the watches will tell, sooner or later.
const CATCHING_UP: Duration = Duration::from_secs(5);

/// Revisions, and how many there are: a list that only lacks something may be of the same revision.
type State = [(u64, usize); 2];

struct Context {
    access: Access,
    clusters: Cache<Cluster>,
    classes: Cache<ClusterClass>,
    releases: Cache<TanzuKubernetesRelease>,
    images: Cache<OSImage>,
    /// What was read last, and in which state: every cluster asks for it when a release changes.
    read: Mutex<Option<(State, Arc<Catalogue>)>>,
}

pub(super) async fn run(access: Access, stop: impl Future<Output = ()>) {
    let client = &access.client;
    let of_a_release = watcher::Config::default().labels(label::RELEASE.name);
    let clusters = Watch::<Cluster>::all(client.clone()).configured(of_a_release);
    let classes = Watch::<ClusterClass>::all(client.clone());
    let releases = Watch::<TanzuKubernetesRelease>::all(client.clone());
    let images = Watch::<OSImage>::all(client.clone());
    let known = clusters.cache();
    let context = Context {
        clusters: clusters.cache(),
        classes: classes.cache(),
        releases: releases.cache(),
        images: images.cache(),
        access: access.clone(),
        read: Mutex::default(),
    };
    let all = move || known.list().iter().map(|cluster| Key::of(&**cluster)).collect::<Vec<Key>>();
    let (by_release, by_image, by_class) = (all.clone(), all.clone(), all);
    let runner = Runner::new("cluster-releases", clusters, options(&access))
        .watches(classes, move |_| by_class())
        .watches(releases, move |_| by_release())
        .watches(images, move |_| by_image());
    let summary = runner.run(Arc::new(context), reconcile, stop).await;
    tracing::debug!(?summary, "the controller of the releases of clusters has stopped");
}

async fn reconcile(cluster: Arc<Cluster>, ctx: Ctx<Context>) -> Result<Outcome, Error> {
    if !ctx.caught_up() {
        return Ok(Outcome::requeue_after(CATCHING_UP));
    }
    if cluster.metadata.deletion_timestamp.is_some() {
        return Ok(Outcome::done());
    }
    keep(&ctx, &cluster).await?;
    tell(&ctx, &cluster).await?;
    Ok(Outcome::done())
}

/// Keeps a copy of the release that a cluster has, if it has none of it.
async fn keep(ctx: &Ctx<Context>, cluster: &Cluster) -> Result<(), Error> {
    let Some(name) = release_of(cluster).and_then(|text| text.parse::<ReleaseName>().ok()) else { return Ok(()) };
    let text = cluster.metadata.annotations.as_ref().and_then(|all| all.get(annotation::RELEASE_COPY.name));
    if copy::is_of(text, &name) {
        return Ok(());
    }
    let Some(release) = ctx.releases.get(&Key::cluster(name.as_str())) else { return Ok(()) };
    let fields = json!({"metadata": {"annotations": {annotation::RELEASE_COPY.name: copy::write(&release)}}});
    if let Some(written) = apply(&ctx.api(cluster), cluster, Part::Object, fields).await? {
        ctx.wrote(&ctx.clusters, &written);
    }
    Ok(())
}

/// Tells which releases a cluster could be updated to. One that is not resolved by us is told nothing.
async fn tell(ctx: &Ctx<Context>, cluster: &Cluster) -> Result<(), Error> {
    let Some(updates) = ctx.updates(cluster) else { return Ok(()) };
    let before = cluster.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let condition = updates.condition().dated(before, ctx.access.clock.now());
    if ConditionType::UpdatesAvailable.among(before) == Some(&condition) {
        return Ok(());
    }
    let fields = json!({"status": {"conditions": [condition]}});
    if let Some(written) = apply(&ctx.api(cluster), cluster, Part::Status, fields).await? {
        ctx.wrote(&ctx.clusters, &written);
    }
    Ok(())
}

impl Context {
    fn api(&self, cluster: &Cluster) -> Api<Cluster> {
        Api::namespaced(self.access.client.clone(), cluster.metadata.namespace.as_deref().unwrap_or_default())
    }

    fn updates(&self, cluster: &Cluster) -> Option<Updates> {
        let (namespace, name) = class_of(cluster)?;
        let class = self.classes.get(&Key::namespaced(namespace, name))?;
        let asked = match Asked::read(cluster, &class) {
            Ok(asked) => asked?,
            Err(malformed) => return Some(Updates::Unknown { why: malformed.to_string() }),
        };
        let current = release_of(cluster)?;
        Some(updates(current, &asked.whole(&asked.version), &self.catalogue()))
    }

    fn catalogue(&self) -> Arc<Catalogue> {
        let (releases, images) = (self.releases.list(), self.images.list());
        let state = [(self.releases.revision(), releases.len()), (self.images.revision(), images.len())];
        // Whoever panicked cannot have left it half changed.
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, catalogue)) = read.as_ref().filter(|(of, _)| *of == state) {
            return Arc::clone(catalogue);
        }
        let releases: Vec<TanzuKubernetesRelease> = releases.iter().map(|release| (**release).clone()).collect();
        let images: Vec<OSImage> = images.iter().map(|image| (**image).clone()).collect();
        let catalogue = Arc::new(Catalogue::read(&releases, &images));
        *read = Some((state, Arc::clone(&catalogue)));
        catalogue
    }
}

/// The release that a cluster was resolved to.
fn release_of(cluster: &Cluster) -> Option<&str> {
    cluster.metadata.labels.as_ref()?.get(label::RELEASE.name).map(String::as_str)
}
