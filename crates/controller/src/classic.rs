//! The controller of classic clusters: it brings the objects of a Cluster to the release that its label names, and keeps them there.
//!
//! It goes the same way as that of a `TanzuKubernetesCluster`: resolve, observe, plan, check, execute, record. The Cluster itself is
//! brought to its release by [`admission`](crate::admission::classic), in the write that changes the label; its control plane and its
//! pools are their owner's objects, and nothing is written into them but the fields that the release says.

pub(crate) mod observe;
pub mod parts;
pub mod preview;
pub mod review;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ListParams;
use kube::runtime::watcher;
use kube::{Api, Client};
use windlass_api::kind::cluster_api::{Cluster, MachineDeployment};
use windlass_api::kind::cluster_update::ClusterUpdate;
use windlass_api::kind::control_plane::KubeadmControlPlane;
use windlass_api::label;
use windlass_api::name::NamespacedName;
use windlass_api::version::KubernetesVersion;
use windlass_plan::change::{Effect, classify};
use windlass_plan::check::{Finding, Severity, check};
use windlass_plan::inventory::Abort;
use windlass_plan::planner::{Planned, PlanningInput, Record, plan};
use windlass_plan::profile;
use windlass_plan::release::Release;
use windlass_plan::resolve::labelled::abort;
use windlass_plan::resolve::labelled::course::{Course, NO_CONTROL_PLANE, goes_on};
use windlass_plan::resolve::labelled::{NAMESPACE, Published, Unlabelled, asked};
use windlass_plan::step::Step;
use windlass_plan::target::{Target, TargetError};
use windlass_runtime::cache::Cache;
use windlass_runtime::events::Recorder;
use windlass_runtime::key::Key;
use windlass_runtime::runner::{Ctx, Options, Outcome, Runner};
use windlass_runtime::watch::Watch;

use crate::access::{Access, WorkloadCluster};
use crate::execute::{Executed, Executor, WriteError};
use crate::reconcile::by_cluster_name;
use crate::reconcile::context::Reach;
use crate::record::{self, RecordError, Recorded};
use crate::said::said;
use parts::{PartsError, published_in};

/// Who Events say they are from.
const CONTROLLER: &str = "windlass.dev/classic";

/// After a write of our own.
const AFTER_WRITES: Duration = Duration::from_secs(1);
/// While an update waits: not all that it waits for is watched.
const AWAITED: Duration = Duration::from_secs(10);
/// When nothing is waited for. What somebody changes is told by a watch.
const DRIFT: Duration = Duration::from_secs(5 * 60);
/// When the caches have not seen what we wrote.
const CATCHING_UP: Duration = Duration::from_secs(5);

/// Why a cluster is not planned for.
#[derive(Debug, thiserror::Error)]
pub enum Unplanned {
    /// Its release is not to be had.
    #[error(transparent)]
    Release(#[from] Unlabelled),
    /// Its objects are not.
    #[error(transparent)]
    Parts(#[from] PartsError),
    /// They do not fit its release.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// It has no control plane yet.
    #[error("the Cluster has no KubeadmControlPlane yet")]
    NotYet,
    /// Nobody asks for a release.
    #[error("the Cluster has no label {}", label::RELEASE_VERSION)]
    NoLabel,
}

impl Unplanned {
    /// Why, in one word.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Release(unlabelled) => unlabelled.reason(),
            Self::Parts(PartsError::Read { .. }) => "NotObserved",
            Self::Parts(PartsError::NoProfile { .. }) => "NoInfrastructureProfile",
            Self::Parts(_) => "ClusterIncomplete",
            Self::Target(TargetError::Incomplete { .. }) => "ReleaseIncomplete",
            Self::Target(_) => "ClusterMalformed",
            Self::NotYet => NO_CONTROL_PLANE,
            Self::NoLabel => "NoRelease",
        }
    }

    /// What a person can do about it, where they can.
    pub fn way_out(&self) -> Option<String> {
        match self {
            Self::Release(unlabelled) => Some(unlabelled.way_out()),
            Self::Target(TargetError::Incomplete { .. }) => {
                Some(format!("publish the rest of the release in {NAMESPACE}, or label the Cluster with another"))
            }
            Self::Parts(_) | Self::Target(_) | Self::NotYet | Self::NoLabel => None,
        }
    }
}

/// A look that failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The cluster, or its record, could not be read.
    #[error("read {object}: {}", said(source))]
    Read {
        object: String,
        #[source]
        source: Box<kube::Error>,
    },
    /// Its objects could not be.
    #[error(transparent)]
    Parts(PartsError),
    /// Steps failed. The status says which, too.
    #[error("{count} steps failed, the first at {role}")]
    Steps {
        count: usize,
        role: String,
        #[source]
        source: WriteError,
    },
    /// What was found out could not be written down.
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// Which state the releases were read in: a list that only lacks something may be of the same revision.
type State = (u64, usize);

/// What the controller has at hand.
pub(crate) struct Context {
    pub reach: Reach,
    pub recorder: Recorder,
    maps: Cache<ConfigMap>,
    profiles: Cache<ConfigMap>,
    read: Mutex<Option<([State; 2], Arc<Published>)>>,
}

/// Runs the controller until `stop`.
pub async fn run(access: Access, stop: impl Future<Output = ()>) {
    let mut options = Options::new(access.clock.clone(), access.seed);
    options.trace.clone_from(&access.trace);
    let client = &access.client;
    let labelled = watcher::Config::default().labels(label::RELEASE_VERSION.name);
    let clusters = Watch::<Cluster>::all(client.clone()).configured(labelled.clone());
    let maps = Watch::<ConfigMap>::all(client.clone()).within(NAMESPACE).configured(labelled);
    let described = watcher::Config::default().labels(label::INFRASTRUCTURE_PROFILE.name);
    let profiles = Watch::<ConfigMap>::all(client.clone()).within(profile::NAMESPACE).configured(described);
    let control_planes = Watch::<KubeadmControlPlane>::all(client.clone());
    let deployments = Watch::<MachineDeployment>::all(client.clone());
    let updates = Watch::<ClusterUpdate>::all(client.clone());
    let context = Context {
        recorder: Recorder::new(client.clone(), access.clock.clone(), CONTROLLER, "windlass"),
        maps: maps.cache(),
        profiles: profiles.cache(),
        read: Mutex::default(),
        reach: Reach::new(access.clone()),
    };
    let known = clusters.cache();
    let all = move |_: &ConfigMap| known.list().iter().map(|cluster| Key::of(&**cluster)).collect();
    let runner = Runner::new("classic", clusters, options)
        .watches(control_planes, by_cluster_name)
        .watches(deployments, by_cluster_name)
        .watches(updates, by_cluster_name)
        .watches(maps, all.clone())
        .watches(profiles, all);
    let summary = runner.run(Arc::new(context), reconcile, stop).await;
    tracing::debug!(?summary, "the controller of classic clusters has stopped");
}

impl Context {
    fn published(&self) -> Arc<Published> {
        let (maps, profiles) = (self.maps.list(), self.profiles.list());
        let state = [(self.maps.revision(), maps.len()), (self.profiles.revision(), profiles.len())];
        // Whoever panicked cannot have left it half changed.
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, published)) = read.as_ref().filter(|(of, _)| *of == state) {
            return Arc::clone(published);
        }
        let published = Arc::new(published_in(&maps, &profiles));
        for error in published.profiles().malformed() {
            tracing::warn!(%error, "an infrastructure profile cannot be read");
        }
        *read = Some((state, Arc::clone(&published)));
        published
    }
}

/// What was found out in a look, before anything is done.
pub(crate) struct Considered {
    pub input: PlanningInput,
    pub planned: Planned,
    pub findings: Vec<Finding>,
    pub workload: Option<WorkloadCluster>,
}

async fn reconcile(cached: Arc<Cluster>, ctx: Ctx<Context>) -> Result<Outcome, Error> {
    if !ctx.caught_up() {
        return Ok(Outcome::requeue_after(CATCHING_UP));
    }
    // Read anew: the label is what everything hangs on.
    let (namespace, name) = names(&cached);
    let api: Api<Cluster> = Api::namespaced(ctx.reach.access.client.clone(), namespace);
    let found = api.get_opt(name).await;
    let found = found.map_err(|source| Error::Read { object: format!("Cluster/{name}"), source: Box::new(source) })?;
    let Some(cluster) = found.filter(|cluster| cluster.metadata.deletion_timestamp.is_none()) else {
        return Ok(Outcome::done());
    };
    // Somebody else's, whatever its label says: their controller tells them.
    if matches!(asked(&cluster), Ok(None) | Err(Unlabelled::OtherSort { .. })) {
        return Ok(Outcome::done());
    }
    let latest = latest(&ctx.reach.access.client, &cluster).await?;
    let published = ctx.published();
    match consider(&ctx.reach, &cluster, latest.as_ref(), &published).await {
        Ok(considered) => act(&ctx, &cluster, latest.as_ref(), considered).await,
        Err(Unplanned::Parts(error)) if error.is_read() => Err(Error::Parts(error)),
        Err(unplanned) => {
            record::classic::unplanned(&ctx, &cluster, latest.as_ref(), &unplanned).await?;
            Ok(Outcome::requeue_after(DRIFT))
        }
    }
}

fn names(cluster: &Cluster) -> (&str, &str) {
    (cluster.metadata.namespace.as_deref().unwrap_or_default(), cluster.metadata.name.as_deref().unwrap_or_default())
}

/// The latest update of this very cluster.
pub(crate) async fn latest(client: &Client, cluster: &Cluster) -> Result<Option<ClusterUpdate>, Error> {
    let (namespace, name) = names(cluster);
    let updates: Api<ClusterUpdate> = Api::namespaced(client.clone(), namespace);
    let of_cluster = ListParams::default().labels(&format!("{}={name}", label::CLUSTER_NAME));
    let listed = updates.list(&of_cluster).await;
    let unread = |source| Error::Read { object: format!("the updates of {name}"), source: Box::new(source) };
    let listed = listed.map_err(unread)?.items;
    Ok(Course::latest(cluster, &listed).cloned())
}

/// The release that a cluster is to have now: while an update goes on, what that was begun for.
pub(crate) fn wanted(
    cluster: &Cluster,
    latest: Option<&ClusterUpdate>,
    published: &Published,
) -> Result<Release, Unplanned> {
    let version: KubernetesVersion = match latest.filter(|update| goes_on(update)) {
        Some(update) => {
            let text = &update.spec.to.distribution;
            text.parse().map_err(|error| Unlabelled::Label { why: format!("{error}") })?
        }
        None => asked(cluster)?.ok_or(Unplanned::NoLabel)?,
    };
    Ok(published.find(&version)?.clone())
}

/// Finds out what is to be done. Only reads are made.
pub(crate) async fn consider(
    reach: &Reach,
    cluster: &Cluster,
    latest: Option<&ClusterUpdate>,
    published: &Published,
) -> Result<Considered, Unplanned> {
    let mut order = None;
    if let Some(back) = abort::back_to(cluster, observe::deployed(cluster).as_ref(), latest) {
        let parts =
            parts::parts(&reach.access.client, cluster, published.profiles()).await?.ok_or(Unplanned::NotYet)?;
        let target = Target::of_classic(&parts, published.find(&back)?.clone())?;
        let mut observed = observe::inventory(reach, &parts, &target, latest).await;
        let too_late = abort::too_late(&target, &observed.inventory);
        let by = format!("the label {}", label::RELEASE_VERSION);
        let given_up = too_late.is_none();
        order = Some(Abort { by, back: None, upgrading: None, job: None, too_late });
        if given_up {
            observed.inventory.orders.abort = order;
            return Ok(considered(reach, target, observed));
        }
    }
    let release = wanted(cluster, latest, published)?;
    let parts = parts::parts(&reach.access.client, cluster, published.profiles()).await?.ok_or(Unplanned::NotYet)?;
    let target = Target::of_classic(&parts, release)?;
    let mut observed = observe::inventory(reach, &parts, &target, latest).await;
    // It goes on, and says why.
    observed.inventory.orders.abort = order;
    Ok(considered(reach, target, observed))
}

fn considered(reach: &Reach, target: Target, observed: observe::Observed) -> Considered {
    let (now, gates) = (reach.access.clock.now(), reach.access.gates.clone());
    let input = PlanningInput { target, inventory: observed.inventory, now, gates };
    let planned = plan(&input);
    let findings = check(&input, &planned);
    Considered { input, planned, findings, workload: observed.workload }
}

/// Does what is to be done, and writes down what came of it.
async fn act(
    ctx: &Ctx<Context>,
    cluster: &Cluster,
    latest: Option<&ClusterUpdate>,
    considered: Considered,
) -> Result<Outcome, Error> {
    let Considered { input, planned, findings, workload } = considered;
    let sound = findings.iter().all(|finding| finding.severity != Severity::Fatal);
    if sound
        && would_begin(latest, &planned)
        && let Some(other) = record::classic::reviewed_otherwise(cluster, &input, &planned)
    {
        record::classic::held(ctx, cluster, &other).await?;
        return Ok(Outcome::requeue_after(DRIFT));
    }
    if let (true, Some(begin @ Record::Begin { .. })) = (sound, &planned.record) {
        record::classic::begin(ctx, cluster, begin).await?;
        return Ok(Outcome::requeue_after(AFTER_WRITES));
    }
    let steps = if sound { planned.steps.as_slice() } else { &[] };
    if replaces(latest, &input, steps) && !record::classic::replacing(ctx, cluster, &input).await? {
        // Somebody has changed their mind, or something else.
        return Ok(Outcome::requeue_after(AFTER_WRITES));
    }
    let executed = execute(ctx, &input, workload.as_ref(), steps).await;
    let recorded =
        Recorded { input: &input, planned: &planned, findings: &findings, executed: &executed, attempts: &[] };
    record::classic::outcome(ctx, cluster, latest, &recorded).await?;
    let soon = executed.made > 0 || executed.outdated || planned.record.is_some();
    let waits = planned.report.stages.iter().any(|stage| !stage.blocked.is_empty());
    if let Some(first) = executed.failures.into_iter().next() {
        return Err(Error::Steps { count: 1, role: first.role, source: first.error });
    }
    Ok(Outcome::requeue_after(match (soon, waits) {
        (true, _) => AFTER_WRITES,
        (false, true) => AWAITED,
        (false, false) => DRIFT,
    }))
}

/// Whether something is begun: an update, what needs none as it replaces nothing, or what somebody would be asked to approve. What goes on
/// is held to its record.
fn would_begin(latest: Option<&ClusterUpdate>, planned: &Planned) -> bool {
    let has_begun = latest.is_some_and(goes_on);
    let changes = planned.report.stages.iter().any(|stage| !stage.changes.is_empty());
    let acts = planned.record.is_some() || !planned.steps.is_empty();
    !has_begun && changes && (acts || planned.report.pending.is_some())
}

/// Whether Cluster API is told something for which it replaces machines. What has begun can be given up until then.
fn replaces(latest: Option<&ClusterUpdate>, input: &PlanningInput, steps: &[Step]) -> bool {
    latest.is_some_and(goes_on)
        && steps.iter().any(Step::tells_cluster_api)
        && classify(&input.target, &input.inventory).changes.iter().any(|change| change.effect == Effect::Replaces)
}

async fn execute(ctx: &Context, input: &PlanningInput, workload: Option<&WorkloadCluster>, steps: &[Step]) -> Executed {
    let id = &input.target.cluster;
    let executor = Executor {
        cluster: &NamespacedName { namespace: id.namespace.clone(), name: id.name.clone().into() },
        management: &ctx.reach.access.client,
        workload,
        keys: &*ctx.reach.access.keys,
        kinds: &ctx.reach.kinds,
        clock: &ctx.reach.access.clock,
        wrote: &|_| {},
    };
    executor.steps(steps).await
}
