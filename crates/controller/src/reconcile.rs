//! The path of a change, from an object to writes and back to a status: resolve, observe, plan, check, execute, record.
//!
//! One file per step; the client is used at the ends only. Nothing is kept in memory that a restart would miss.

pub(crate) mod context;
pub(crate) mod deletion;
pub(crate) mod pace;
pub mod preview;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Patch, PatchParams};
use kube::runtime::watcher;
use kube::{Api, Resource};
use serde_json::json;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::cluster_update::{ClusterUpdate, UpdateState};
use windlass_api::kind::tanzu::{AddonPhase, TanzuKubernetesCluster};
use windlass_api::label;
use windlass_api::name::NamespacedName;
use windlass_plan::check::{Severity, check};
use windlass_plan::gate::Blocked;
use windlass_plan::inventory::Inventory;
use windlass_plan::planner::{Planned, PlanningInput, Record, plan};
use windlass_plan::report::{Assessment, StageState};
use windlass_plan::step::Step;
use windlass_plan::target::Target;
use windlass_runtime::events::Recorder;
use windlass_runtime::key::Key;
use windlass_runtime::runner::{Ctx, Load, Options, Outcome, Runner};
use windlass_runtime::watch::{Change, Watch};

use crate::access::{Access, WorkloadCluster};
use crate::execute::{Executed, Executor, WriteError};
use crate::observe::management::latest_update;
use crate::observe::orders::who_aborts;
use crate::observe::{self, Observed};
use crate::record::{self, Begun, Recorded};
use crate::resolve::{self, Releases};
use crate::said::said;
use context::{Caches, Context, Reach};
use pace::Pace;

/// The namespace of the Jobs that replace control planes.
pub const JOB_NAMESPACE: &str = "vmware-system-tkg";

/// Keeps a cluster's object until all that was made for it is gone, also what no owner reference can reach.
pub const FINALIZER: &str = "windlass.dev/cluster";

/// Who Events say they are from.
const CONTROLLER: &str = "windlass.dev/cluster";

/// After a write of our own: what we wrote may not be watched (a Secret, an object in the workload cluster), and the next step
/// builds on it. Long enough that a planner that cannot make up its mind is no hot loop.
const AFTER_WRITES: Duration = Duration::from_secs(1);
/// While something in the workload cluster is waited for. There is no watch of ours there, so it has to be asked.
const WORKLOAD_AWAITED: Duration = Duration::from_secs(10);
/// When nothing is waited for that a watch would not tell of. This undoes what somebody changed in the workload cluster.
const DRIFT: Duration = Duration::from_secs(5 * 60);
/// While a worker is on its way out. Its Machine is not watched, and within a minute it is to be told what keeps it; whoever drains
/// it tries again as often.
const WORKER_LEAVES: Duration = Duration::from_secs(20);
/// When the caches have not seen what we wrote: the watches will tell, sooner or later.
const CATCHING_UP: Duration = Duration::from_secs(5);

/// Why a reconcile failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The object could not be changed.
    #[error("{attempt} TanzuKubernetesCluster/{name}: {}", said(source))]
    Cluster {
        /// What was attempted.
        attempt: &'static str,
        /// Which.
        name: String,
        /// What the API said.
        #[source]
        source: Box<kube::Error>,
    },
    /// Something could not be deleted.
    #[error("delete {object}: {}", said(source))]
    Delete {
        /// What.
        object: String,
        /// What the API said.
        #[source]
        source: Box<kube::Error>,
    },
    /// What is left of a cluster could not be found out.
    #[error("list the Machines of {cluster}: {}", said(source))]
    Remains {
        /// Which cluster.
        cluster: Key,
        /// What the API said.
        #[source]
        source: Box<kube::Error>,
    },
    /// The copy of a release could not be read.
    #[error("read the releases that are kept for {cluster}: {}", said(source))]
    Kept {
        /// Which cluster.
        cluster: Key,
        /// What the API said.
        #[source]
        source: Box<kube::Error>,
    },
    /// Steps failed. The status says which, too.
    #[error("{count} of {planned} steps failed, the first at {role}")]
    Steps {
        /// How many.
        count: usize,
        /// Of how many.
        planned: usize,
        /// The first of them.
        role: String,
        /// Why that one failed.
        #[source]
        source: WriteError,
    },
    /// What was found out could not be written down.
    #[error(transparent)]
    Record(#[from] record::RecordError),
}

impl Error {
    /// What sort of thing failed, in a word: there are few of them, so that they can be counted.
    fn category(&self) -> &'static str {
        match self {
            Self::Cluster { .. } => "cluster",
            Self::Delete { .. } | Self::Remains { .. } => "deletion",
            Self::Kept { .. } => "release",
            Self::Steps { source, .. } => source.category(),
            Self::Record(_) => "record",
        }
    }
}

/// Runs the controllers until `stop`.
pub async fn run(access: Access, stop: impl Future<Output = ()>) {
    let (runner, context) = assemble(access);
    let summary = runner.run(Arc::new(context), reconcile, stop).await;
    tracing::debug!(?summary, "the controller has stopped");
}

/// The watches of the controller, and what it has at hand.
fn assemble(access: Access) -> (Runner<TanzuKubernetesCluster>, Context) {
    let mut options = Options::new(access.clock.clone(), access.seed);
    options.trace.clone_from(&access.trace);
    options.load = access.metrics.clone().map(|metrics| metrics as Arc<dyn Load>);
    let client = &access.client;
    let selected = |label: &str| watcher::Config::default().labels(label);

    let tkcs = Watch::<TanzuKubernetesCluster>::all(client.clone());
    let clusters = Watch::all(client.clone());
    let machines = Watch::all(client.clone()).configured(selected(label::CONTROL_PLANE.name));
    let deployments = Watch::all(client.clone());
    let machine_templates = Watch::all(client.clone());
    let config_templates = Watch::all(client.clone());
    let jobs = Watch::all(client.clone()).within(JOB_NAMESPACE).configured(selected(label::CLUSTER_NAMESPACE.name));
    let updates = Watch::all(client.clone());
    let images = Watch::all(client.clone());
    let kept = Watch::all(client.clone()).configured(selected(label::KEPT_RELEASE.name));
    let caches = Caches {
        tkcs: tkcs.cache(),
        clusters: clusters.cache(),
        machines: machines.cache(),
        deployments: deployments.cache(),
        machine_templates: machine_templates.cache(),
        config_templates: config_templates.cache(),
        jobs: jobs.cache(),
        updates: updates.cache(),
        images: images.cache(),
        kept: kept.cache(),
    };
    let known = caches.tkcs.clone();
    let runner = Runner::new("cluster", tkcs, options)
        .watches_changes(clusters, by_cluster)
        .watches(machines, by_cluster_name)
        .watches(deployments, by_cluster_name)
        .watches(machine_templates, by_cluster_name)
        .watches(config_templates, by_cluster_name)
        .watches(jobs, by_cluster_of_job)
        .watches(updates, by_cluster_name)
        .watches(kept, by_cluster_name)
        .watches(images, move |image| resolve::clusters_of(image, &known));
    let context = Context {
        releases: Releases::new(caches.images.clone()),
        recorder: Recorder::new(access.client.clone(), access.clock.clone(), CONTROLLER, "windlass"),
        reach: Reach::new(access),
        pace: Pace::default(),
        caches,
    };
    (runner, context)
}

/// A Cluster concerns its own cluster, unless all that is new is how it sums up its machines.
fn by_cluster(change: &Change<'_, Cluster>) -> Vec<Key> {
    match change {
        Change { before: Some(before), after: Some(after) }
            if context::of_cluster(before) == context::of_cluster(after) =>
        {
            Vec::new()
        }
        Change { before, after } => before.iter().chain(after).flat_map(|cluster| by_cluster_name(*cluster)).collect(),
    }
}

/// Most objects of a cluster carry its name, and are in its namespace.
pub(crate) fn by_cluster_name<K: Resource>(object: &K) -> Vec<Key> {
    let meta = object.meta();
    let name = meta.labels.as_ref().and_then(|labels| labels.get(label::CLUSTER_NAME.name));
    name.map(|name| Key { namespace: meta.namespace.clone(), name: name.clone() }).into_iter().collect()
}

/// A Job is in another namespace, and says which one its cluster is in.
fn by_cluster_of_job(job: &Job) -> Vec<Key> {
    let label = |key: &str| job.metadata.labels.as_ref().and_then(|labels| labels.get(key)).cloned();
    let key = label(label::CLUSTER_NAMESPACE.name).zip(label(label::CLUSTER_NAME.name));
    key.map(|(namespace, name)| Key::namespaced(namespace, name)).into_iter().collect()
}

/// Whether an object is owned by this very cluster, and not by an earlier one of the same name.
pub(crate) fn belongs_to(meta: &ObjectMeta, cluster: &TanzuKubernetesCluster) -> bool {
    let uid = cluster.metadata.uid.as_deref().unwrap_or_default();
    meta.owner_references.iter().flatten().any(|owner| owner.uid == uid)
}

async fn reconcile(cluster: Arc<TanzuKubernetesCluster>, ctx: Ctx<Context>) -> Result<Outcome, Error> {
    let began = ctx.access.clock.now();
    let outcome = advance(&cluster, &ctx).await;
    if let Err(error) = &outcome {
        tracing::Span::current().record("sort", error.category());
    }
    if let Some(metrics) = &ctx.access.metrics {
        let took = ctx.access.clock.now().duration_since(began);
        metrics.looked(took, outcome.as_ref().err().map(Error::category));
    }
    outcome
}

async fn advance(cluster: &TanzuKubernetesCluster, ctx: &Ctx<Context>) -> Result<Outcome, Error> {
    // Decisions are made on what the caches say; on old news they would be wrong. A watch that has been silent for so long is
    // in trouble, and the runner's log says so.
    if !ctx.caught_up() {
        return Ok(Outcome::requeue_after(CATCHING_UP));
    }
    if cluster.metadata.deletion_timestamp.is_some() {
        return deletion::advance(ctx, cluster).await;
    }
    if !has_finalizer(cluster) {
        set_finalizers(ctx, cluster, "hold", finalizers(cluster).chain([FINALIZER.to_owned()]).collect()).await?;
        return Ok(Outcome::requeue_after(Duration::ZERO));
    }
    let seen = ctx.caches.seen(cluster);
    if let Some(wait) = ctx.pace.wait(ctx.key(), &seen) {
        return Ok(Outcome::requeue_after(wait));
    }
    // A look that fails is not one to rest on.
    ctx.pace.hurry(ctx.key());
    let again = look(cluster, ctx).await?;
    if let Again::Unless { period } = again {
        ctx.pace.looked(ctx.key(), seen, period);
    }
    Ok(again.into())
}

/// When to look at a cluster again.
enum Again {
    /// We wrote something that the next step builds on.
    Soon,
    /// After this time, unless something changes before.
    Unless {
        /// The time.
        period: Duration,
    },
}

impl From<Again> for Outcome {
    fn from(again: Again) -> Self {
        Self::requeue_after(match again {
            Again::Soon => AFTER_WRITES,
            Again::Unless { period } => period,
        })
    }
}

/// One look at a cluster, and what comes of it.
async fn look(cluster: &TanzuKubernetesCluster, ctx: &Ctx<Context>) -> Result<Again, Error> {
    let latest = latest_update(ctx, cluster);
    let learnt = resolve::kept::learn(ctx, cluster).await;
    learnt.map_err(|source| Error::Kept { cluster: ctx.key().clone(), source: Box::new(source) })?;
    let target = match resolve::target(ctx, cluster, latest.as_deref()) {
        Ok(target) => decided(ctx, target, latest.as_deref()),
        Err(unresolved) => {
            record::unresolved(ctx, cluster, latest.as_deref(), &unresolved).await?;
            return Ok(Again::Unless { period: DRIFT });
        }
    };
    if let Some(answered) = latest.as_deref().filter(|update| is_answered(ctx, cluster, update)) {
        record::answered(ctx, answered).await?;
        return Ok(Again::Soon);
    }
    let Observed { inventory, workload } = observe::inventory(ctx, cluster, &target).await;
    let input = PlanningInput { target, inventory, now: ctx.access.clock.now(), gates: ctx.access.gates.clone() };
    let planned = plan(&input);
    let findings = check(&input, &planned);
    let sound = findings.iter().all(|finding| finding.severity != Severity::Fatal);
    let steps = if sound { planned.steps.as_slice() } else { &[] };
    let (steps, held) = until_errors_are_told(cluster, steps);
    say(&planned, steps.len());
    let executed = execute(ctx, &input, workload.as_ref(), steps).await;
    // The release of an update is kept before the update is on record: otherwise there would be nothing to go on with.
    if let (true, Some(begin @ Record::Begin { .. })) = (sound && executed.failures.is_empty(), &planned.record) {
        return Ok(match record::begin(ctx, cluster, begin).await? {
            Begun::Yes => Again::Soon,
            // The change that came in between is on its way here.
            Begun::Outdated => Again::Unless { period: CATCHING_UP },
        });
    }
    let attempts = observe::attempts::latest(ctx, latest.as_deref(), input.inventory.control_plane.job.as_ref()).await;
    let recorded =
        Recorded { input: &input, planned: &planned, findings: &findings, executed: &executed, attempts: &attempts };
    record::outcome(ctx, cluster, latest.as_deref(), &recorded).await?;
    let again = if held { Again::Soon } else { when_to_look_again(&input.inventory, &planned, &executed) };
    failed(executed, steps.len()).map_or(Ok(again), Err)
}

/// Says what was decided, in the line that the runner writes about this look.
fn say(planned: &Planned, steps: usize) {
    let span = tracing::Span::current();
    if span.is_disabled() {
        return;
    }
    span.record("steps", steps);
    // The first that is not done is where it stands.
    if let Some(stage) = planned.report.stages.iter().find(|stage| stage.state != StageState::Done) {
        span.record("stage", stage.stage.as_str());
        if let Some(blocked) = stage.blocked.first() {
            span.record("waits_for", blocked.reason());
        }
    }
}

/// The steps that may be done now, and whether there are more. An add-on that could not be applied is well by now, or there would
/// be no Job to create; but people still read of its error, and a Job must not stand beside that: the status comes first.
fn until_errors_are_told<'a>(cluster: &TanzuKubernetesCluster, steps: &'a [Step]) -> (&'a [Step], bool) {
    let mut addons = cluster.status.iter().flat_map(|status| status.addons.values());
    if !addons.any(|addon| addon.status == AddonPhase::Error) {
        return (steps, false);
    }
    match steps.iter().position(Step::begins_control_plane) {
        Some(job) => (&steps[..job], true),
        None => (steps, false),
    }
}

/// Whether an update was given up, and its cluster is asked for something else by now: the order is over. If it stood, the same
/// could never be asked for again.
fn is_answered(ctx: &Context, cluster: &TanzuKubernetesCluster, update: &ClusterUpdate) -> bool {
    let state = update.status.as_ref().and_then(|status| status.state);
    state == Some(UpdateState::Aborted) && who_aborts(update).is_some() && !resolve::asks_for(ctx, cluster, update)
}

/// The target with what this Windlass decides. An update that is under way has its own from the one that began it.
fn decided(ctx: &Context, target: Target, latest: Option<&ClusterUpdate>) -> Target {
    let state = latest.map(|update| update.status.as_ref().and_then(|status| status.state));
    match state {
        None | Some(Some(UpdateState::Succeeded | UpdateState::Aborted)) => {
            target.with_defaults(ctx.access.defaults.clone())
        }
        Some(_) => target,
    }
}

async fn execute(
    ctx: &Ctx<Context>,
    input: &PlanningInput,
    workload: Option<&WorkloadCluster>,
    steps: &[Step],
) -> Executed {
    let id = &input.target.cluster;
    let executor = Executor {
        cluster: &NamespacedName { namespace: id.namespace.clone(), name: id.name.clone().into() },
        management: &ctx.access.client,
        workload,
        keys: &*ctx.access.keys,
        kinds: &ctx.kinds,
        clock: &ctx.access.clock,
        wrote: &|object| context::wrote(ctx, object),
    };
    executor.steps(steps).await
}

/// The error of a reconcile in which steps failed.
fn failed(executed: Executed, planned: usize) -> Option<Error> {
    let count = executed.failures.len();
    let first = executed.failures.into_iter().next()?;
    Some(Error::Steps { count, planned, role: first.role, source: first.error })
}

fn when_to_look_again(inventory: &Inventory, planned: &Planned, executed: &Executed) -> Again {
    if executed.made > 0 || executed.outdated || planned.record.is_some() {
        return Again::Soon;
    }
    let mut blocked = planned.report.stages.iter().flat_map(|stage| &stage.blocked);
    let settled = matches!(planned.report.assessment, Assessment::Running | Assessment::UpdateFailed);
    let mut workers = inventory.pools.values().flat_map(|pool| &pool.machines);
    let period = if settled {
        DRIFT
    } else if blocked.any(awaits_workload) {
        WORKLOAD_AWAITED
    } else if workers.any(|worker| worker.leaving.is_some()) {
        WORKER_LEAVES
    } else {
        DRIFT
    };
    Again::Unless { period }
}

/// Whether only the workload cluster can tell that it is over. Of everything else a watch tells.
fn awaits_workload(blocked: &Blocked) -> bool {
    match blocked {
        Blocked::WorkloadUnreachable { .. }
        | Blocked::PackageNotReady { .. }
        | Blocked::EtcdUnhealthy { .. }
        | Blocked::EtcdStepRefused { .. }
        | Blocked::EtcdQuorumAtRisk { .. }
        | Blocked::EtcdChanging { .. }
        | Blocked::EtcdLeaderLeaves { .. }
        | Blocked::EtcdCannotLead { .. }
        | Blocked::EtcdMemberStays { .. }
        | Blocked::EtcdMemberUnknown { .. }
        | Blocked::EtcdMemberMissing { .. }
        | Blocked::EtcdMembershipUnknown { .. }
        | Blocked::EtcdLastVoter { .. }
        | Blocked::EtcdAlarm { .. }
        | Blocked::TooOld { .. }
        | Blocked::ProxyUnbound { .. }
        | Blocked::ProxyAhead { .. }
        | Blocked::Gap { .. } => true,
        Blocked::NoWorkloadApi
        | Blocked::ControlPlaneUpdateRunning { .. }
        | Blocked::ControlPlaneUpdateFailed { .. }
        | Blocked::ControlPlaneUpdateIncomplete { .. }
        | Blocked::ControlPlaneTooLarge { .. }
        | Blocked::ControlPlaneLost
        | Blocked::VersionRefused { .. }
        | Blocked::FieldRefused { .. }
        | Blocked::TemplateTaken { .. }
        | Blocked::JoinsOtherMinor { .. }
        | Blocked::NoWholeNode { .. }
        | Blocked::SuccessorNotReady { .. }
        | Blocked::ForeignAttempt { .. }
        | Blocked::AttemptOfAnotherVersion { .. }
        | Blocked::Retargeted { .. }
        | Blocked::Aborting { .. }
        | Blocked::AbortFailed { .. }
        | Blocked::AbortTooLate { .. }
        | Blocked::Aborted { .. }
        | Blocked::ControlPlaneMachineNotReady { .. }
        | Blocked::ControlPlaneBehind { .. }
        | Blocked::CertificateMissing { .. }
        | Blocked::Paused { .. }
        | Blocked::InfrastructureNotReady
        | Blocked::ClusterAbsent
        | Blocked::ControlPlaneRolling { .. }
        | Blocked::ControlPlaneUnwell { .. }
        | Blocked::ControlPlaneUnowned { .. }
        | Blocked::EtcdElsewhere { .. }
        | Blocked::TopologyPending { .. }
        | Blocked::PoolAbsent { .. }
        | Blocked::PoolRolling { .. }
        | Blocked::DrainBlocked { .. }
        | Blocked::MachineFailed { .. }
        | Blocked::PoolStalled { .. }
        | Blocked::ApprovalNeeded { .. }
        | Blocked::Rejected { .. }
        | Blocked::ConsentNeeded { .. } => false,
    }
}

fn finalizers(cluster: &TanzuKubernetesCluster) -> impl Iterator<Item = String> {
    cluster.metadata.finalizers.clone().unwrap_or_default().into_iter()
}

fn has_finalizer(cluster: &TanzuKubernetesCluster) -> bool {
    finalizers(cluster).any(|finalizer| finalizer == FINALIZER)
}

/// Sets the finalizers, if nobody has changed the object since it was seen.
async fn set_finalizers(
    ctx: &Ctx<Context>,
    cluster: &TanzuKubernetesCluster,
    attempt: &'static str,
    finalizers: Vec<String>,
) -> Result<(), Error> {
    let name = cluster.metadata.name.clone().unwrap_or_default();
    let namespace = cluster.metadata.namespace.as_deref().unwrap_or_default();
    let api: Api<TanzuKubernetesCluster> = Api::namespaced(ctx.access.client.clone(), namespace);
    let metadata = json!({"resourceVersion": cluster.metadata.resource_version, "finalizers": finalizers});
    let patch = Patch::Merge(json!({"metadata": metadata}));
    let answer = api.patch(&name, &PatchParams::default(), &patch).await;
    let answer = answer.map_err(|source| Error::Cluster { attempt, name, source: Box::new(source) })?;
    ctx.wrote(&ctx.caches.tkcs, &answer);
    Ok(())
}
