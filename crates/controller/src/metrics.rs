//! Numbers for Prometheus.
//!
//! What is said of clusters and updates is read from their objects when somebody asks, so that a restart loses nothing of it.
//! Only what the controllers did since they started is counted in memory. Labels are names, versions and words that we choose
//! from; no text that others wrote is one, and nothing that is secret.

mod text;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::api::ListParams;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use windlass_api::condition::{ConditionStatus, ConditionType};
use windlass_api::kind::cluster_update::{ClusterUpdate, ClusterUpdateStatus, UpdateState};
use windlass_api::kind::tanzu::{AddonPhase, Phase, TanzuKubernetesCluster, TanzuKubernetesClusterStatus};
use windlass_runtime::runner::Load;

use crate::said::said;
use text::{Histogram, Page, Sort};

/// Upper bounds of how long stages take, in milliseconds: a minute to four hours.
const STAGE_MILLIS: &[u64] = &[60_000, 300_000, 900_000, 1_800_000, 3_600_000, 7_200_000, 14_400_000];
/// Upper bounds of how long a look at a cluster takes, and how long it is due before, in milliseconds. One that takes five
/// minutes is given up.
const LOOK_MILLIS: &[u64] = &[10, 100, 1_000, 5_000, 30_000, 60_000, 300_000];

/// What the controllers did since they started.
#[derive(Debug)]
pub struct Metrics(Mutex<Counters>);

#[derive(Debug)]
struct Counters {
    looks: Histogram,
    errors: BTreeMap<&'static str, u64>,
    /// How many clusters are to be looked at now, and how many are being looked at.
    ready: usize,
    running: usize,
    waits: Histogram,
    retries: u64,
    requests: BTreeMap<(Asked, &'static str), u64>,
}

/// Whose API is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Asked {
    /// That of the management cluster.
    Management,
    /// That of a workload cluster.
    Workload,
}

impl Asked {
    fn as_str(self) -> &'static str {
        match self {
            Self::Management => "management",
            Self::Workload => "workload",
        }
    }
}

/// The numbers could not be had.
#[derive(Debug, thiserror::Error)]
#[error("list {what} for the metrics: {}", said(source))]
pub struct ScrapeError {
    what: &'static str,
    #[source]
    source: Box<kube::Error>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self(Mutex::new(Counters {
            looks: Histogram::new(LOOK_MILLIS),
            errors: BTreeMap::new(),
            ready: 0,
            running: 0,
            waits: Histogram::new(LOOK_MILLIS),
            retries: 0,
            requests: BTreeMap::new(),
        }))
    }
}

impl Metrics {
    /// Counts a look at a cluster, and the sort of its failure if it failed.
    pub(crate) fn looked(&self, took: SignedDuration, failure: Option<&'static str>) {
        let mut counters = self.counters();
        counters.looks.observe(u64::try_from(took.as_millis()).unwrap_or(0));
        if let Some(category) = failure {
            *counters.errors.entry(category).or_default() += 1;
        }
    }

    /// Counts a request that is sent, by its method; one that watches is a `watch`.
    pub fn asked(&self, api: Asked, verb: &'static str) {
        *self.counters().requests.entry((api, verb)).or_default() += 1;
    }

    /// All numbers, as Prometheus reads them.
    pub async fn scrape(&self, client: &Client) -> Result<String, ScrapeError> {
        let clusters: Vec<TanzuKubernetesCluster> = all(client, "TanzuKubernetesClusters").await?;
        let updates: Vec<ClusterUpdate> = all(client, "ClusterUpdates").await?;
        let mut page = Page::default();
        of_clusters(&mut page, &clusters);
        of_updates(&mut page, &updates);
        self.of_controllers(&mut page);
        Ok(page.text())
    }

    fn of_controllers(&self, page: &mut Page) {
        let counters = self.counters();
        page.family("windlass_reconcile_seconds", Sort::Histogram, "How long looks at clusters took.");
        page.histogram("windlass_reconcile_seconds", &[], &counters.looks);
        page.family("windlass_reconcile_errors_total", Sort::Counter, "Looks at clusters that failed, by what failed.");
        for (category, count) in &counters.errors {
            page.sample("windlass_reconcile_errors_total", &[("category", category)], *count);
        }
        let mut number = |name: &str, sort, help: &str, value: u64| {
            page.family(name, sort, help);
            page.sample(name, &[], value);
        };
        let retries = "Looks at clusters that were tried again because the one before failed.";
        number("windlass_reconcile_retries_total", Sort::Counter, retries, counters.retries);
        let ready = "Clusters that are to be looked at now, and wait for their turn.";
        number("windlass_queue_depth", Sort::Gauge, ready, counters.ready.try_into().unwrap_or(u64::MAX));
        let running = "Clusters that are being looked at.";
        number("windlass_queue_running", Sort::Gauge, running, counters.running.try_into().unwrap_or(u64::MAX));
        page.family(
            "windlass_queue_wait_seconds",
            Sort::Histogram,
            "How long looks at clusters were due before they began.",
        );
        page.histogram("windlass_queue_wait_seconds", &[], &counters.waits);
        page.family("windlass_requests_total", Sort::Counter, "Requests that were sent, by whose API was asked.");
        for ((api, verb), count) in &counters.requests {
            page.sample("windlass_requests_total", &[("api", api.as_str()), ("verb", verb)], *count);
        }
    }

    // Whoever panicked cannot have left the numbers half changed in a way that matters.
    fn counters(&self) -> MutexGuard<'_, Counters> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Load for Metrics {
    fn busy(&self, ready: usize, running: usize) {
        let mut counters = self.counters();
        (counters.ready, counters.running) = (ready, running);
    }

    fn waited(&self, time: Duration) {
        self.counters().waits.observe(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    }

    fn retried(&self) {
        self.counters().retries += 1;
    }
}

async fn all<K>(client: &Client, what: &'static str) -> Result<Vec<K>, ScrapeError>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let listed = Api::<K>::all(client.clone()).list(&ListParams::default()).await;
    listed.map(|listed| listed.items).map_err(|source| ScrapeError { what, source: Box::new(source) })
}

/// Where an object is, as labels.
fn place<'a>(object: &'a impl Resource, cluster: &'a str) -> [(&'static str, &'a str); 2] {
    [("namespace", object.meta().namespace.as_deref().unwrap_or_default()), ("cluster", cluster)]
}

fn name(cluster: &TanzuKubernetesCluster) -> &str {
    cluster.metadata.name.as_deref().unwrap_or_default()
}

fn of_clusters(page: &mut Page, clusters: &[TanzuKubernetesCluster]) {
    let nothing = TanzuKubernetesClusterStatus::default();
    let each = || clusters.iter().map(|it| (it, it.status.as_ref().unwrap_or(&nothing)));

    page.family(
        "windlass_cluster_info",
        Sort::Gauge,
        "Each cluster, its phase and the release that all its machines have.",
    );
    for (cluster, status) in each() {
        let phase = status.phase.map_or("", Phase::as_str);
        let more = [("phase", phase), ("version", status.version.as_deref().unwrap_or_default())];
        page.sample("windlass_cluster_info", &[place(cluster, name(cluster)), more].concat(), 1);
    }
    let facts = [
        ("windlass_cluster_ready", ConditionType::Ready, "Whether the cluster is as it was asked to be."),
        ("windlass_cluster_stalled", ConditionType::Stalled, "Whether waiting will not help the cluster."),
        ("windlass_cluster_secrets_intact", ConditionType::SecretsIntact, "Whether its certificates are there."),
    ];
    for (metric, condition, help) in facts {
        page.family(metric, Sort::Gauge, help);
        for (cluster, status) in each() {
            // What is not known is not a number.
            let known = condition.among(&status.conditions).filter(|it| it.status != ConditionStatus::Unknown.as_str());
            if known.is_some() {
                let holds = condition.holds(&status.conditions);
                page.sample(metric, &place(cluster, name(cluster)), u64::from(holds));
            }
        }
    }
    page.family("windlass_machines_desired", Sort::Gauge, "How many machines the cluster was asked to have.");
    for (cluster, _) in each() {
        let topology = &cluster.spec.topology;
        for (role, machines) in [("control-plane", &topology.control_plane), ("worker", &topology.workers)] {
            let labels = [&place(cluster, name(cluster))[..], &[("role", role)]].concat();
            page.sample("windlass_machines_desired", &labels, u64::from(machines.count));
        }
    }
    page.family("windlass_addon_state", Sort::Gauge, "Each add-on of each cluster, and whether it is in.");
    for (cluster, status) in each() {
        for (addon, state) in &status.addons {
            let more = [("addon", addon.as_str()), ("state", addon_state(state.status))];
            page.sample("windlass_addon_state", &[place(cluster, name(cluster)), more].concat(), 1);
        }
    }
}

fn addon_state(state: AddonPhase) -> &'static str {
    match state {
        AddonPhase::Pending => "pending",
        AddonPhase::Applied => "applied",
        AddonPhase::Error => "error",
        AddonPhase::Unmanaged => "unmanaged",
    }
}

fn of_updates(page: &mut Page, updates: &[ClusterUpdate]) {
    let nothing = ClusterUpdateStatus::default();
    // Of each cluster the latest, so that the number of series follows that of clusters and not their age.
    let mut latest: BTreeMap<(&str, &str), &ClusterUpdate> = BTreeMap::new();
    for update in updates {
        let key = (update.metadata.namespace.as_deref().unwrap_or_default(), update.spec.cluster.as_str());
        let known = latest.entry(key).or_insert(update);
        if known.spec.ordinal < update.spec.ordinal {
            *known = update;
        }
    }
    let each = || latest.values().map(|update| (*update, update.status.as_ref().unwrap_or(&nothing)));
    let place =
        |update: &ClusterUpdate| place(update, &update.spec.cluster).map(|(key, value)| (key, value.to_owned()));
    let labelled = |page: &mut Page, metric: &str, update: &ClusterUpdate, more: &[(&str, &str)], value: u64| {
        let place = place(update);
        let place: Vec<_> = place.iter().map(|(key, value)| (*key, value.as_str())).collect();
        page.sample(metric, &[&place[..], more].concat(), value);
    };

    page.family("windlass_update_info", Sort::Gauge, "The latest update of each cluster, and how it goes.");
    for (update, status) in each() {
        let (from, to) = (&update.spec.from.distribution, &update.spec.to.distribution);
        let stage = status.stage.as_deref().unwrap_or_default();
        let more = [("from", from.as_str()), ("to", to.as_str()), ("stage", stage), ("state", state(status))];
        labelled(page, "windlass_update_info", update, &more, 1);
    }
    page.family("windlass_update_stalled", Sort::Gauge, "Whether waiting will not help the latest update.");
    for (update, status) in each() {
        let stalled = ConditionType::Stalled.holds(&status.conditions);
        labelled(page, "windlass_update_stalled", update, &[], u64::from(stalled));
    }
    page.family("windlass_update_attempts", Sort::Gauge, "Attempts of the latest update to replace the control plane.");
    for (update, status) in each() {
        for (outcome, count) in attempts(status) {
            labelled(page, "windlass_update_attempts", update, &[("outcome", outcome)], count);
        }
    }
    page.family("windlass_updates", Sort::Gauge, "Updates on record, by how they go or went.");
    let mut states: BTreeMap<&str, u64> = BTreeMap::new();
    for update in updates {
        *states.entry(state(update.status.as_ref().unwrap_or(&nothing))).or_default() += 1;
    }
    for (state, count) in states {
        page.sample("windlass_updates", &[("state", state)], count);
    }
    of_stages(page, updates);
}

/// How long stages took, of all updates on record.
fn of_stages(page: &mut Page, updates: &[ClusterUpdate]) {
    let mut stages: BTreeMap<&str, Histogram> = BTreeMap::new();
    let ended = updates.iter().filter_map(|update| update.status.as_ref()).flat_map(|status| &status.stages);
    for stage in ended {
        let time = |text: &Option<String>| text.as_deref().and_then(|text| text.parse::<Timestamp>().ok());
        if let Some((started, finished)) = time(&stage.started_at).zip(time(&stage.finished_at)) {
            let millis = u64::try_from(finished.duration_since(started).as_millis()).unwrap_or(0);
            stages.entry(&stage.stage).or_insert_with(|| Histogram::new(STAGE_MILLIS)).observe(millis);
        }
    }
    page.family("windlass_update_stage_seconds", Sort::Histogram, "How long the stages of updates took.");
    for (stage, histogram) in stages {
        page.histogram("windlass_update_stage_seconds", &[("stage", stage)], &histogram);
    }
}

fn state(status: &ClusterUpdateStatus) -> &'static str {
    match status.state {
        None | Some(UpdateState::Running) => "running",
        Some(UpdateState::Succeeded) => "succeeded",
        Some(UpdateState::Failed) => "failed",
        Some(UpdateState::Aborted) => "aborted",
    }
}

fn attempts(status: &ClusterUpdateStatus) -> [(&'static str, u64); 3] {
    let count = |wanted: fn(Option<i32>) -> bool| {
        let attempts = status.attempts.iter().filter(|attempt| wanted(attempt.exit_code));
        u64::try_from(attempts.count()).unwrap_or(u64::MAX)
    };
    [
        ("failed", count(|code| code.is_some_and(|code| code != 0))),
        ("running", count(|code| code.is_none())),
        ("succeeded", count(|code| code == Some(0))),
    ]
}
