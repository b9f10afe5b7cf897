//! One cluster with its updates and machines, as they change.

use std::collections::BTreeMap;
use std::fmt::Debug;

use futures::StreamExt as _;
use futures::stream::{BoxStream, select_all};
use jiff::Timestamp;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, ResourceExt as _};
use serde::de::DeserializeOwned;
use windlass_api::kind::cluster_api::Machine;
use windlass_api::kind::cluster_update::{ClusterUpdate, UpdateState};
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::name::ClusterName;
use windlass_api::{annotation, label};

use crate::client::Management;
use crate::report::Report;

/// A watch on a cluster. What is seen of it is kept, so that a change of one part shows the whole.
pub struct Watch {
    news: BoxStream<'static, News>,
    seen: Seen,
}

/// What is known of a cluster now.
#[derive(Default)]
pub struct Seen {
    /// The cluster itself; nothing once it is gone, and before it was first read.
    pub cluster: Option<TanzuKubernetesCluster>,
    /// It was read, and is not there.
    pub gone: bool,
    updates: BTreeMap<String, ClusterUpdate>,
    machines: BTreeMap<String, Machine>,
}

enum News {
    Cluster(Result<Option<TanzuKubernetesCluster>, watcher::Error>),
    Update(Result<watcher::Event<ClusterUpdate>, watcher::Error>),
    Machine(Result<watcher::Event<Machine>, watcher::Error>),
}

impl Watch {
    /// Begins to watch. What fails is tried again, with longer and longer pauses.
    pub fn new(management: &Management, name: &ClusterName) -> Self {
        let of_cluster = watcher::Config::default().labels(&format!("{}={name}", label::CLUSTER_NAME.name));
        let cluster = watcher::watch_object(management.api::<TanzuKubernetesCluster>(), name.as_str());
        let cluster = cluster.default_backoff().map(News::Cluster).boxed();
        let updates = parts(management.api(), &of_cluster).map(News::Update).boxed();
        let machines = parts(management.api(), &of_cluster).map(News::Machine).boxed();
        Self { news: select_all([cluster, updates, machines]).boxed(), seen: Seen::default() }
    }

    /// What is known after the next change; nothing when there will be no more. An error is one of the watch, which goes on.
    pub async fn next(&mut self) -> Option<Result<&Seen, watcher::Error>> {
        loop {
            let heard = match self.news.next().await? {
                News::Cluster(cluster) => cluster.map(|cluster| {
                    self.seen.gone = cluster.is_none();
                    self.seen.cluster = cluster;
                }),
                News::Update(update) => update.map(|event| take(&mut self.seen.updates, event)),
                News::Machine(machine) => machine.map(|event| take(&mut self.seen.machines, event)),
            };
            match heard {
                Err(error) => return Some(Err(error)),
                // Parts of a cluster that was not read yet say nothing.
                Ok(()) if self.seen.cluster.is_none() && !self.seen.gone => {}
                Ok(()) => return Some(Ok(&self.seen)),
            }
        }
    }
}

impl Seen {
    /// How the cluster is doing.
    pub fn report(&self, now: Timestamp) -> Option<Report> {
        let cluster = self.cluster.as_ref()?;
        let machines: Vec<Machine> = self.machines.values().cloned().collect();
        // A watch is answered once, so the server's time is that of its beginning; what changed since tells more.
        let now = self.newest().map_or(now, |newest| newest.max(now));
        Some(Report::of(cluster, self.update(), &machines, now))
    }

    /// The last time that something is said to have happened.
    fn newest(&self) -> Option<Timestamp> {
        let created =
            self.machines.values().filter_map(|machine| machine.creation_timestamp().map(|created| created.0));
        let statuses = self.machines.values().filter_map(|machine| machine.status.as_ref());
        let conditions = statuses.flat_map(|status| &status.conditions);
        let changed = conditions.filter_map(|condition| condition.last_transition_time.parse().ok());
        created.chain(changed).max()
    }

    /// The update that led to what the cluster is still asked to be, if it was given up.
    pub fn given_up(&self) -> Option<&ClusterUpdate> {
        let asked = self.cluster.as_ref()?.spec.distribution.full_version.as_ref()?;
        let is_given_up = |update: &&ClusterUpdate| {
            let state = update.status.as_ref().and_then(|status| status.state);
            state == Some(UpdateState::Aborted) && update.annotations().contains_key(annotation::ABORT.name)
        };
        self.update().filter(is_given_up).filter(|update| update.spec.to.distribution == *asked)
    }

    /// The update that runs, or ran last.
    pub fn update(&self) -> Option<&ClusterUpdate> {
        let status = self.cluster.as_ref()?.status.as_ref()?;
        self.updates.get(status.update.as_ref()?)
    }
}

fn parts<K>(api: Api<K>, of_cluster: &watcher::Config) -> BoxStream<'static, Result<watcher::Event<K>, watcher::Error>>
where
    K: kube::Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    watcher::watcher(api, of_cluster.clone()).default_backoff().boxed()
}

fn take<K: kube::Resource>(known: &mut BTreeMap<String, K>, event: watcher::Event<K>) {
    match event {
        // A list begins: what is not in it is gone.
        watcher::Event::Init => known.clear(),
        watcher::Event::InitApply(object) | watcher::Event::Apply(object) => {
            known.insert(object.name_any(), object);
        }
        watcher::Event::Delete(object) => {
            known.remove(&object.name_any());
        }
        watcher::Event::InitDone => {}
    }
}
