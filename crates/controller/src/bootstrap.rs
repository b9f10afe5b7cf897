//! The packages of clusters that have a release as a label: observe, settle, bring, write, tell.
//!
//! A Cluster whose release changes is held (by admission, in the same write). Here its packages are brought to the new release, in
//! order, and the hold ends when every core package is at its version and well. Nothing else ends it.
//!
//! An upgrade that is given up goes before all else (`abort.rs`); one that has to be approved begins when it is (`approval.rs`).
//!
//! What happens in a workload cluster is not watched: while it is waited for, it is asked every ten seconds.

mod abort;
pub mod admission;
mod approval;
pub(crate) mod execute;
mod machines;
mod observe;
mod quiet;

use std::sync::Arc;
use std::time::Duration;

use kube::runtime::watcher;
use kube::{Api, Resource, ResourceExt};
use serde_json::json;
use windlass_api::annotation;
use windlass_api::kind::Condition;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::packaging::PackageInstall;
use windlass_api::kind::release::ClusterBootstrap;
use windlass_api::label;
use windlass_plan::bootstrap::course::Course;
use windlass_plan::bootstrap::quiet::moving;
use windlass_plan::bootstrap::{
    Blocked, Bringing, Leaving, Object, Settled, Settling, Step, Subject, SubjectError, bring, leave, leaving, settle,
    waiting,
};
use windlass_plan::step::Revision;
use windlass_runtime::cache::Cache;
use windlass_runtime::events::{Kind, Notice, Recorder};
use windlass_runtime::key::Key;
use windlass_runtime::runner::{Ctx, Options, Outcome, Runner};
use windlass_runtime::watch::Watch;

use crate::access::Access;
use crate::execute::{Kinds, WriteError};
use crate::reconcile::context::Memory;
use crate::reconcile::pace::{Pace, Seen};
use crate::record::RecordError;
use crate::said::{is_conflict, said};

/// Who Events say they are from.
const CONTROLLER: &str = "windlass.dev/bootstrap";
/// After a write of our own: the next step builds on it.
const AFTER_WRITES: Duration = Duration::from_secs(1);
/// While something is waited for.
const AWAITED: Duration = Duration::from_secs(10);
/// While something is waited for that only an Event can tell of: each look is one.
const NOWHERE_TO_TELL: Duration = Duration::from_secs(60);
/// While somebody has to decide. The decision is on the Cluster, which is watched; what it would be about may change.
const UNDECIDED: Duration = Duration::from_secs(60);
/// When nothing is waited for. This undoes what somebody changed in the workload cluster, and hears of new values.
const DRIFT: Duration = Duration::from_secs(5 * 60);
/// How often it is asked what is to be copied: values may refer to values.
const LOOKS_MAX: usize = 8;

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
    /// What was found out could not be written down.
    #[error("write the status of ClusterBootstrap {name}: {}", said(source))]
    Status {
        /// Which.
        name: String,
        /// What the API said.
        #[source]
        source: Box<kube::Error>,
    },
    /// A Cluster says what nobody can act on.
    #[error(transparent)]
    Cluster(#[from] SubjectError),
    /// A kind is not known.
    #[error(transparent)]
    Kind(WriteError),
    /// An upgrade that somebody approved could not be put on record.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Steps failed.
    #[error("{count} writes failed, the first at: {why}")]
    Steps {
        /// How many.
        count: usize,
        /// What the first was for.
        why: String,
        /// Why it failed.
        #[source]
        source: WriteError,
    },
}

/// What the controller has at hand in every look.
struct Context {
    access: Access,
    bootstraps: Cache<ClusterBootstrap>,
    installs: Cache<PackageInstall>,
    kinds: Kinds,
    memory: Memory,
    pace: Pace,
    recorder: Recorder,
}

/// Looks after the packages of clusters, and after the machines that outlive them, until `stop`.
pub async fn run(access: Access, stop: impl Future<Output = ()> + Clone) {
    tokio::join!(packages(access.clone(), stop.clone()), machines::run(access, stop));
}

async fn packages(access: Access, stop: impl Future<Output = ()>) {
    let mut options = Options::new(access.clock.clone(), access.seed);
    options.trace.clone_from(&access.trace);
    let client = &access.client;
    let labelled = watcher::Config::default().labels(label::RELEASE.name);
    let clusters = Watch::<Cluster>::all(client.clone()).configured(labelled);
    let bootstraps = Watch::all(client.clone());
    let installs = Watch::all(client.clone());
    let context = Context {
        bootstraps: bootstraps.cache(),
        installs: installs.cache(),
        kinds: Kinds::new(),
        memory: Memory::default(),
        pace: Pace::default(),
        recorder: Recorder::new(client.clone(), access.clock.clone(), CONTROLLER, "windlass"),
        access,
    };
    let runner = Runner::new("bootstrap", clusters, options)
        .watches(bootstraps, |bootstrap: &ClusterBootstrap| vec![Key::of(bootstrap)])
        .watches(installs, of_install);
    let summary = runner.run(Arc::new(context), reconcile, stop).await;
    tracing::debug!(?summary, "the controller of packages has stopped");
}

/// The cluster that a `PackageInstall` of the management cluster is for.
fn of_install(install: &PackageInstall) -> Vec<Key> {
    let annotations = install.annotations();
    let namespace = annotations.get(annotation::PACKAGE_CLUSTER_NAMESPACE.name).cloned();
    let name = annotations.get(annotation::PACKAGE_CLUSTER_NAME.name).cloned();
    let key = namespace.zip(name).map(|(namespace, name)| Key::namespaced(namespace, name));
    key.into_iter().collect()
}

/// What the caches say about a cluster, but for what only we write.
fn seen(ctx: &Ctx<Context>, cluster: &Cluster) -> Seen {
    let meta = &cluster.metadata;
    let reached = cluster.status.as_ref().and_then(|status| status.initialization.as_ref());
    let own = format!(
        "{:?} {:?} {:?} {:?} {:?} {:?} {reached:?}",
        meta.uid, meta.generation, meta.labels, meta.annotations, meta.finalizers, meta.deletion_timestamp
    );
    let mut seen = vec![("Cluster", own)];
    seen.extend(ctx.bootstraps.get(ctx.key()).map(|bootstrap| {
        let meta = &bootstrap.metadata;
        (
            "ClusterBootstrap",
            format!("{:?} {:?} {:?} {:?}", meta.uid, meta.generation, meta.annotations, meta.finalizers),
        )
    }));
    let installs = ctx.installs.list_in(ctx.key().namespace.as_deref().unwrap_or_default());
    if windlass_plan::bootstrap::approval::is_required(cluster) {
        // The end of what is on record.
        let bootstrap = ctx.bootstraps.get(ctx.key());
        let course = Course { cluster, bootstrap: bootstrap.as_deref() };
        seen.push(("end", format!("{:?}", course.reached())));
    }
    let ours = installs.iter().filter(|install| of_install(install).contains(ctx.key()));
    seen.extend(ours.map(|install| ("PackageInstall", format!("{:?}", install.metadata.resource_version))));
    seen
}

async fn reconcile(cluster: Arc<Cluster>, ctx: Ctx<Context>) -> Result<Outcome, Error> {
    // An object with this annotation is nobody's; one with `spec.paused` may be ours to bring packages into.
    let Some(subject) = Subject::of(&cluster)?.filter(|_| !annotation::PAUSED.is_in(cluster.annotations())) else {
        return Ok(Outcome::done());
    };
    let seen = seen(&ctx, &cluster);
    if let Some(wait) = ctx.pace.wait(ctx.key(), &seen) {
        return Ok(Outcome::requeue_after(wait));
    }
    ctx.pace.hurry(ctx.key());
    let again = if cluster.meta().deletion_timestamp.is_some() {
        gone(&ctx, &cluster, &subject).await?
    } else {
        let again = look(&ctx, &cluster, &subject).await?;
        approval::follow(&ctx, &cluster).await?;
        again
    };
    match again {
        Again::Soon => Ok(Outcome::requeue_after(AFTER_WRITES)),
        Again::After(period) => {
            ctx.pace.looked(ctx.key(), seen, period);
            Ok(Outcome::requeue_after(period))
        }
        Again::Never => Ok(Outcome::done()),
    }
}

/// When to look again.
enum Again {
    /// We wrote something that the next step builds on.
    Soon,
    /// After this time, unless something changes before.
    After(Duration),
    /// When something changes.
    Never,
}

/// One look at a cluster, and what comes of it.
async fn look(ctx: &Ctx<Context>, cluster: &Cluster, subject: &Subject) -> Result<Again, Error> {
    if let Some(order) = &subject.given_up {
        return abort::look(ctx, cluster, subject, order).await;
    }
    let basis = observe::basis(ctx, cluster, subject).await?;
    match approval::gate(ctx, cluster, subject, &basis).await? {
        approval::Gate::Open => {}
        approval::Gate::Recorded => return Ok(Again::Soon),
        approval::Gate::Waits(blocked) => return wait(ctx, cluster, subject, &basis, &blocked).await,
    }
    let mut copies = observe::none_copied();
    let mut settled = Settled::Nothing;
    for _ in 0..LOOKS_MAX {
        settled = settle(&Settling {
            cluster: subject,
            release: basis.release.as_ref(),
            templates: &basis.templates,
            bootstrap: basis.bootstrap.as_ref(),
            copies: &copies,
        });
        let Settled::Look(orders) = &settled else { break };
        copies.extend(observe::copies(ctx, subject, orders).await?);
    }
    match (settled, &basis.bootstrap) {
        (Settled::Nothing, _) | (Settled::Done, None) => Ok(Again::After(DRIFT)),
        (Settled::Look(orders), _) => {
            tracing::warn!(cluster = %ctx.key(), ?orders, "values refer to values that refer to values, and so on");
            Ok(Again::After(DRIFT))
        }
        (Settled::Wait(blocked), _) => wait(ctx, cluster, subject, &basis, &blocked).await,
        (Settled::Write(steps), bootstrap) => {
            // What the packages are to be follows from what the cluster is asked to be.
            let basis = (subject.object(), subject.revision.clone());
            let written = write(ctx, subject, None, Some(basis), &steps).await;
            if let (Err(error), Some(bootstrap)) = (&written, bootstrap) {
                refused(ctx, subject, bootstrap, error).await?;
            }
            written.map(|()| Again::Soon)
        }
        (Settled::Done, Some(bootstrap)) => bring_packages(ctx, cluster, subject, &basis, bootstrap).await,
    }
}

/// Tells what is waited for before anything is written.
async fn wait(
    ctx: &Ctx<Context>,
    cluster: &Cluster,
    subject: &Subject,
    basis: &observe::Basis,
    blocked: &Blocked,
) -> Result<Again, Error> {
    let Some(bootstrap) = &basis.bootstrap else {
        warn(ctx, cluster, blocked).await;
        return Ok(Again::After(NOWHERE_TO_TELL));
    };
    let conditions = waiting(subject, bootstrap, blocked, ctx.access.clock.now());
    match tell(ctx, bootstrap, conditions).await? {
        Told::Outdated => return Ok(Again::Soon),
        Told::Yes => warn(ctx, cluster, blocked).await,
        Told::Before => {}
    }
    Ok(Again::After(if blocked.is_decision() { UNDECIDED } else { AWAITED }))
}

async fn bring_packages(
    ctx: &Ctx<Context>,
    cluster: &Cluster,
    subject: &Subject,
    basis: &observe::Basis,
    bootstrap: &ClusterBootstrap,
) -> Result<Again, Error> {
    let (seen, workload) = observe::packages(ctx, subject, bootstrap).await?;
    let listed = basis.release.as_ref().and_then(|release| release.spec.bootstrap_packages.as_deref());
    let watched = quiet::watched(ctx, cluster, subject).await?;
    let now = ctx.access.clock.now();
    let brought = bring(&Bringing { moving: moving(&watched), ..seen.bringing(subject, bootstrap, listed, now) });
    // What was found out is on record before anything follows from it.
    let told = tell(ctx, bootstrap, brought.status.conditions.clone()).await?;
    if told == Told::Outdated {
        return Ok(Again::Soon);
    }
    if let Some(blocked) = brought.blocked.as_ref().filter(|_| told == Told::Yes && brought.stalled) {
        warn(ctx, cluster, blocked).await;
    }
    if !brought.steps.is_empty() {
        // What was told just now was told of what is true.
        let basis = subject.bootstrap(bootstrap).filter(|_| told == Told::Before);
        write(ctx, subject, workload.as_ref(), basis, &brought.steps).await?;
        return Ok(Again::Soon);
    }
    Ok(Again::After(if brought.awaits_workload { AWAITED } else { DRIFT }))
}

/// The end of a cluster.
async fn gone(ctx: &Ctx<Context>, cluster: &Cluster, subject: &Subject) -> Result<Again, Error> {
    let Some(since) = cluster.metadata.deletion_timestamp.as_ref().map(|time| time.0) else { return Ok(Again::Never) };
    let bootstrap = observe::bootstrap(ctx, subject).await?;
    let kubeconfig = observe::kubeconfig(ctx, subject).await?;
    let (seen, workload) = observe::workload(ctx, subject, &[]).await;
    let left = leave(&Leaving {
        cluster: subject,
        since,
        bootstrap: bootstrap.as_ref(),
        kubeconfig: kubeconfig.as_ref(),
        workload: &seen,
        now: ctx.access.clock.now(),
    });
    if let (Some(blocked), Some(bootstrap)) = (&left.waits_for, &bootstrap) {
        match tell(ctx, bootstrap, leaving(bootstrap, blocked, ctx.access.clock.now())).await? {
            Told::Outdated => return Ok(Again::Soon),
            Told::Yes => warn(ctx, cluster, blocked).await,
            Told::Before => {}
        }
    }
    let wrote = !left.steps.is_empty();
    if let Some(what) = left.given_up.as_ref().filter(|_| wrote) {
        let note = format!("the cluster goes without it, and what its packages have made elsewhere may stay: {what}");
        publish(ctx, cluster, "PackagesLeftBehind", note).await;
    }
    write(ctx, subject, workload.as_ref(), None, &left.steps).await?;
    if left.waits_for.is_some() {
        return Ok(Again::After(AWAITED));
    }
    if !wrote {
        ctx.memory.forget(ctx.key());
    }
    Ok(if wrote { Again::Soon } else { Again::Never })
}

/// Makes the steps, if what they were decided on is still so. What did not find the world as planned is planned again; what failed
/// is an error.
async fn write(
    ctx: &Ctx<Context>,
    subject: &Subject,
    workload: Option<&kube::Client>,
    basis: Option<(Object, Revision)>,
    steps: &[Step],
) -> Result<(), Error> {
    let executor = execute::Executor { management: &ctx.access.client, workload, kinds: &ctx.kinds };
    if let Some((object, revision)) = &basis {
        let is_current = executor.is_current(object, revision).await;
        let unconfirmed = |source| Error::Steps { count: 1, why: format!("{object} is as it was seen"), source };
        if !is_current.map_err(unconfirmed)? {
            return Ok(());
        }
    }
    let mut failures = executor.steps(steps).await;
    if failures.is_empty() {
        return Ok(());
    }
    tracing::warn!(cluster = %subject.namespaced_name(), count = failures.len(), "packages could not be written");
    let count = failures.len();
    let (why, source) = failures.swap_remove(0);
    Err(Error::Steps { count, why, source })
}

/// Whether it was written down what was found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    /// It was on record before.
    Before,
    Yes,
    /// It was found out about what is not so any more.
    Outdated,
}

/// Writes the conditions down, if they are others. Which release they are for is written elsewhere: of what was found out for one
/// nothing is said under the name of the next.
async fn tell(ctx: &Ctx<Context>, bootstrap: &ClusterBootstrap, conditions: Vec<Condition>) -> Result<Told, Error> {
    let before = bootstrap.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    if before == conditions {
        return Ok(Told::Before);
    }
    let api: Api<ClusterBootstrap> =
        Api::namespaced(ctx.access.client.clone(), bootstrap.metadata.namespace.as_deref().unwrap_or_default());
    let name = bootstrap.name_any();
    let metadata = json!({"uid": bootstrap.metadata.uid, "resourceVersion": bootstrap.metadata.resource_version});
    let patch = json!({"metadata": metadata, "status": {"conditions": conditions}});
    let params = kube::api::PatchParams::default();
    match api.patch_status(&name, &params, &kube::api::Patch::Merge(&patch)).await {
        Ok(_) => Ok(Told::Yes),
        Err(error) if is_conflict(&error) => Ok(Told::Outdated),
        Err(source) => Err(Error::Status { name, source: Box::new(source) }),
    }
}

/// Says on the `ClusterBootstrap` that what it is to say could not be written: machines wait for that, and people look there.
async fn refused(
    ctx: &Ctx<Context>,
    subject: &Subject,
    bootstrap: &ClusterBootstrap,
    error: &Error,
) -> Result<(), Error> {
    let Error::Steps { why, source, .. } = error else { return Ok(()) };
    let blocked = Blocked::NotWritten { what: why.clone(), why: source.to_string() };
    let conditions = waiting(subject, bootstrap, &blocked, ctx.access.clock.now());
    tell(ctx, bootstrap, conditions).await.map(drop)
}

/// Tells people what it is waited for.
async fn warn(ctx: &Ctx<Context>, cluster: &Cluster, blocked: &Blocked) {
    publish(ctx, cluster, blocked.reason(), blocked.told()).await;
}

/// A warning in an Event. It is only for people: nothing depends on it.
async fn publish(ctx: &Ctx<Context>, cluster: &Cluster, reason: &str, note: String) {
    let notice =
        Notice { kind: Kind::Warning, reason: reason.to_owned(), action: "Packages".to_owned(), note, related: None };
    if let Err(error) = ctx.recorder.publish(&cluster.object_ref(&()), &notice).await {
        tracing::warn!(%error, "an event could not be published");
    }
}
