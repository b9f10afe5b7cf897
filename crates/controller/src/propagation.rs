//! The controller that copies classes of clusters to the namespaces that need them: observe, decide, write, tell.
//!
//! What a class is and who names one is watched. Templates are not: they hardly ever change, and are looked at again by the clock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, DynamicObject, ListParams};
use kube::{Client, Resource, ResourceExt};
use serde_json::{Value, json};
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::topology::ClusterClass;
use windlass_api::label;
use windlass_plan::propagation::{Blocked, Observed, Reference, Target, propagate, references};
use windlass_plan::step::Place;
use windlass_runtime::cache::Cache;
use windlass_runtime::events::{Kind, Notice, Recorder};
use windlass_runtime::key::Key;
use windlass_runtime::runner::{Ctx, Options, Outcome, Runner};
use windlass_runtime::watch::{Change, Watch};

use crate::access::Access;
use crate::bootstrap::execute::Executor;
use crate::execute::{Kinds, WriteError};
use crate::releases::SYSTEM_NAMESPACE;
use crate::said::{is_not_found, said};

/// Who Events say they are from.
const CONTROLLER: &str = "windlass.dev/propagation";
/// After a write of our own: the next step may build on it.
const AFTER_WRITES: Duration = Duration::from_secs(1);
/// When nothing is to be done. This undoes what somebody changed in a copy, and hears of templates that change.
const DRIFT: Duration = Duration::from_secs(10 * 60);

/// Why a look failed.
#[derive(Debug, thiserror::Error)]
enum Error {
    /// Something could not be read.
    #[error("read {object}: {}", said(source))]
    Read {
        /// What.
        object: String,
        /// What the API said.
        #[source]
        source: Box<kube::Error>,
    },
    /// A kind is not known.
    #[error(transparent)]
    Kind(WriteError),
    /// Steps failed.
    #[error("{why}")]
    Step {
        /// What it was for.
        why: String,
        /// What failed.
        #[source]
        source: WriteError,
    },
}

struct Context {
    client: Client,
    clusters: Cache<Cluster>,
    classes: Cache<ClusterClass>,
    kinds: Kinds,
    recorder: Recorder,
}

/// Copies classes until `stop`.
pub async fn run(access: Access, stop: impl Future<Output = ()>) {
    let mut options = Options::new(access.clock.clone(), access.seed);
    options.trace.clone_from(&access.trace);
    let client = &access.client;
    let namespaces = Watch::<Namespace>::all(client.clone());
    let clusters = Watch::<Cluster>::all(client.clone());
    let classes = Watch::<ClusterClass>::all(client.clone());
    let context = Context {
        client: client.clone(),
        clusters: clusters.cache(),
        classes: classes.cache(),
        kinds: Kinds::new(),
        recorder: Recorder::new(client.clone(), access.clock.clone(), CONTROLLER, "windlass"),
    };
    let everywhere = namespaces.cache();
    let runner = Runner::new("propagation", namespaces, options)
        .watches_changes(clusters, of_cluster)
        .watches_changes(classes, move |change| of_class(&everywhere, change));
    let summary = runner.run(Arc::new(context), reconcile, stop).await;
    tracing::debug!(?summary, "the controller of copies has stopped");
}

/// The namespace of a Cluster that names another class than before.
fn of_cluster(change: &Change<'_, Cluster>) -> Vec<Key> {
    let class = |cluster: &Cluster| cluster.spec.topology.as_ref().map(|topology| topology.class_ref.clone());
    if let (Some(before), Some(after)) = (change.before, change.after)
        && class(before) == class(after)
    {
        return Vec::new();
    }
    let namespace = change.after.or(change.before).and_then(|cluster| cluster.metadata.namespace.as_deref());
    namespace.map(Key::cluster).into_iter().collect()
}

/// The namespace of a class that is another than before; of a source, all of them.
fn of_class(everywhere: &Cache<Namespace>, change: &Change<'_, ClusterClass>) -> Vec<Key> {
    let means = |class: &ClusterClass| {
        let ObjectMeta { uid, generation, labels, annotations, deletion_timestamp, .. } = class.metadata.clone();
        (uid, generation, labels, annotations, deletion_timestamp)
    };
    if let (Some(before), Some(after)) = (change.before, change.after)
        && means(before) == means(after)
    {
        return Vec::new();
    }
    match change.after.or(change.before).and_then(|class| class.metadata.namespace.as_deref()) {
        Some(SYSTEM_NAMESPACE) => everywhere.list().iter().map(|namespace| Key::of(&**namespace)).collect(),
        namespace => namespace.map(Key::cluster).into_iter().collect(),
    }
}

async fn reconcile(namespace: Arc<Namespace>, ctx: Ctx<Context>) -> Result<Outcome, Error> {
    let target = ctx.target(&namespace);
    if target.namespace == SYSTEM_NAMESPACE || namespace.metadata.deletion_timestamp.is_some() || !ctx.concerns(&target)
    {
        return Ok(Outcome::done());
    }
    let decided = propagate(&observe(&ctx, target).await?);
    for blocked in &decided.blocked {
        warn(&ctx, &namespace, blocked).await;
    }
    let executor = Executor { management: &ctx.client, workload: None, kinds: &ctx.kinds };
    if let Some((why, source)) = executor.steps(&decided.steps).await.into_iter().next() {
        return Err(Error::Step { why, source });
    }
    Ok(Outcome::requeue_after(if decided.steps.is_empty() { DRIFT } else { AFTER_WRITES }))
}

impl Context {
    fn target(&self, namespace: &Namespace) -> Target {
        let name = namespace.name_any();
        let mut named: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for cluster in self.clusters.list_in(&name) {
            let Some(class) = cluster.spec.topology.as_ref().map(|topology| &topology.class_ref) else { continue };
            if class.namespace.as_ref().is_none_or(|elsewhere| *elsewhere == name) {
                named.entry(class.name.clone()).or_default().push(cluster.name_any());
            }
        }
        Target { labelled: label::HAS_CLASSES.is_in(namespace.labels()), namespace: name, named }
    }

    /// Whether there is anything to decide: most namespaces need no class and have no copy.
    fn concerns(&self, target: &Target) -> bool {
        let sources = self.classes.list_in(SYSTEM_NAMESPACE);
        let is_needed = sources.iter().any(|class| target.needs(&class.name_any()));
        let has_copies = || {
            let here = self.classes.list_in(&target.namespace);
            here.iter().any(|class| label::COPIED_FROM.is_in(class.labels()))
        };
        is_needed || has_copies()
    }
}

/// Reads what there is to decide on. Classes as they are stored: of a typed one, fields would be lost.
async fn observe(ctx: &Ctx<Context>, target: Target) -> Result<Observed, Error> {
    let mut sources = classes(ctx, SYSTEM_NAMESPACE).await?;
    let mut here = classes(ctx, &target.namespace).await?;
    let templates: BTreeSet<Reference> = sources.iter().chain(&here).flat_map(references).collect();
    let kinds: BTreeSet<(String, String)> =
        templates.iter().map(|template| (template.api_version.clone(), template.kind.clone())).collect();
    for template in &templates {
        sources.extend(object(ctx, SYSTEM_NAMESPACE, template).await?);
    }
    for (api_version, kind) in &kinds {
        let names = templates.iter().filter(|template| template.kind == *kind);
        let names: BTreeSet<&str> = names.map(|template| template.name.as_str()).collect();
        let of_kind = list(ctx, &target.namespace, api_version, kind).await?;
        here.extend(of_kind.into_iter().filter(|object| {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            names.contains(name) || !object["metadata"]["labels"][label::COPIED_FROM.name].is_null()
        }));
    }
    Ok(Observed { source: SYSTEM_NAMESPACE.to_owned(), target, sources, here })
}

async fn classes(ctx: &Ctx<Context>, namespace: &str) -> Result<Vec<Value>, Error> {
    list(ctx, namespace, &ClusterClass::api_version(&()), &ClusterClass::kind(&())).await
}

/// The objects of a kind; none where there is no such kind.
async fn list(ctx: &Ctx<Context>, namespace: &str, api_version: &str, kind: &str) -> Result<Vec<Value>, Error> {
    let Some(api) = api(ctx, namespace, api_version, kind).await? else { return Ok(Vec::new()) };
    let listed = api.list(&ListParams::default()).await;
    let listed =
        listed.map_err(|source| Error::Read { object: format!("{kind}s of {namespace}"), source: Box::new(source) })?;
    Ok(listed.items.iter().map(|found| whole(found, api_version, kind)).collect())
}

async fn object(ctx: &Ctx<Context>, namespace: &str, template: &Reference) -> Result<Option<Value>, Error> {
    let Reference { api_version, kind, name } = template;
    let Some(api) = api(ctx, namespace, api_version, kind).await? else { return Ok(None) };
    let unread = |source| Error::Read { object: format!("{kind} {namespace}/{name}"), source: Box::new(source) };
    let found = match api.get_opt(name).await {
        Err(error) if is_not_found(&error) => None,
        found => found.map_err(unread)?,
    };
    Ok(found.map(|found| whole(&found, api_version, kind)))
}

async fn api(
    ctx: &Ctx<Context>,
    namespace: &str,
    api_version: &str,
    kind: &str,
) -> Result<Option<Api<DynamicObject>>, Error> {
    match ctx.kinds.api(&ctx.client, Place::Management, api_version, kind, Some(namespace)).await {
        Ok(api) => Ok(Some(api)),
        Err(error) if error.is_no_such_kind() => Ok(None),
        Err(error) => Err(Error::Kind(error)),
    }
}

/// An object with its kind, which lists do not repeat.
fn whole(found: &DynamicObject, api_version: &str, kind: &str) -> Value {
    let spec = found.data.get("spec");
    json!({"apiVersion": api_version, "kind": kind, "metadata": found.metadata, "spec": spec})
}

/// Tells people what is not copied. It is only for them: nothing depends on it.
async fn warn(ctx: &Ctx<Context>, namespace: &Namespace, blocked: &Blocked) {
    let notice = Notice {
        kind: Kind::Warning,
        reason: blocked.reason().to_owned(),
        action: "Propagation".to_owned(),
        note: format!("{blocked}; {}", blocked.way_out()),
        related: None,
    };
    if let Err(error) = ctx.recorder.publish(&namespace.object_ref(&()), &notice).await {
        tracing::warn!(%error, "an event could not be published");
    }
}
