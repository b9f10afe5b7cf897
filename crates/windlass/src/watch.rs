//! One cluster with its updates and machines, as they change.

use std::collections::BTreeMap;
use std::fmt::Debug;

use futures::StreamExt as _;
use futures::stream::{BoxStream, select_all};
use jiff::Timestamp;
use kube::core::NamespaceResourceScope;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use windlass_api::kind::cluster_api::Machine;
use windlass_api::kind::cluster_update::{ClusterUpdate, UpdateState};
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::name::ClusterName;
use windlass_api::{annotation, label};

use crate::client::Management;
use crate::report::Report;
use crate::standing::Updated;

/// A watch on a cluster. What is seen of it is kept, so that a change of one part shows the whole.
pub struct Watch<K = TanzuKubernetesCluster> {
    news: BoxStream<'static, News<K>>,
    seen: Seen<K>,
    /// An error was the last that was missing: what is seen is yet to be told.
    untold: bool,
}

/// What is known of a cluster now.
pub struct Seen<K = TanzuKubernetesCluster> {
    /// The cluster itself; nothing once it is gone, and before it was first read.
    pub cluster: Option<K>,
    /// It was read, and is not there.
    pub gone: bool,
    updates: Parts<ClusterUpdate>,
    machines: Parts<Machine>,
}

/// The parts of one kind, by name.
struct Parts<K> {
    known: BTreeMap<String, K>,
    /// Those of a list that is being read: it counts when it is whole.
    listing: BTreeMap<String, K>,
    /// A list was read, or could not be.
    asked: bool,
}

enum News<K> {
    Cluster(Result<Option<K>, watcher::Error>),
    Update(Result<watcher::Event<ClusterUpdate>, watcher::Error>),
    Machine(Result<watcher::Event<Machine>, watcher::Error>),
}

impl<K: Updated> Watch<K> {
    /// Begins to watch. What fails is tried again, with longer and longer pauses.
    pub fn new(management: &Management, name: &ClusterName) -> Self {
        let of_cluster = watcher::Config::default().labels(&format!("{}={name}", label::CLUSTER_NAME.name));
        let seen = Seen { cluster: None, gone: false, updates: Parts::default(), machines: Parts::default() };
        let cluster = watcher::watch_object(management.api::<K>(), name.as_str());
        let cluster = cluster.default_backoff().map(News::Cluster).boxed();
        let updates = parts(management.api(), &of_cluster).map(News::Update).boxed();
        let machines = parts(management.api(), &of_cluster).map(News::Machine).boxed();
        Self { news: select_all([cluster, updates, machines]).boxed(), seen, untold: false }
    }

    /// What is known after the next change; nothing when there will be no more. An error is one of the watch, which goes on.
    pub async fn next(&mut self) -> Option<Result<&Seen<K>, watcher::Error>> {
        if std::mem::take(&mut self.untold) {
            return Some(Ok(&self.seen));
        }
        loop {
            let was_whole = self.seen.is_whole();
            let heard = match self.news.next().await? {
                News::Cluster(cluster) => cluster.map(|cluster| {
                    self.seen.gone = cluster.is_none();
                    self.seen.cluster = cluster;
                    true
                }),
                News::Update(update) => self.seen.updates.take(update),
                News::Machine(machine) => self.seen.machines.take(machine),
            };
            match heard {
                Err(error) => {
                    self.untold = self.seen.is_whole() && !was_whole;
                    return Some(Err(error));
                }
                Ok(true) if self.seen.is_whole() => return Some(Ok(&self.seen)),
                Ok(_) => {}
            }
        }
    }
}

impl<K: Updated> Seen<K> {
    /// Whether everything was asked for once: parts without their cluster say nothing, nor does a cluster without its parts.
    fn is_whole(&self) -> bool {
        self.gone || (self.cluster.is_some() && self.updates.asked && self.machines.asked)
    }

    /// How the cluster is doing.
    pub fn report(&self, now: Timestamp) -> Option<Report> {
        let cluster = self.cluster.as_ref()?;
        let machines: Vec<Machine> = self.machines.known.values().cloned().collect();
        // A watch is answered once, so the server's time is that of its beginning; what changed since tells more.
        let now = self.newest().map_or(now, |newest| newest.max(now));
        Some(Report::of(cluster, self.update(), &machines, now))
    }

    /// The last time that something is said to have happened.
    fn newest(&self) -> Option<Timestamp> {
        let created =
            self.machines.known.values().filter_map(|machine| machine.creation_timestamp().map(|created| created.0));
        let statuses = self.machines.known.values().filter_map(|machine| machine.status.as_ref());
        let conditions = statuses.flat_map(|status| &status.conditions);
        let changed = conditions.filter_map(|condition| condition.last_transition_time.parse().ok());
        created.chain(changed).max()
    }

    /// The update that runs, or ran last.
    pub fn update(&self) -> Option<&ClusterUpdate> {
        self.cluster.as_ref()?.latest(self.updates.known.values())
    }
}

impl Seen {
    /// The update that led to what the cluster is still asked to be, if it was given up.
    pub fn given_up(&self) -> Option<&ClusterUpdate> {
        let asked = self.cluster.as_ref()?.spec.distribution.full_version.as_ref()?;
        let is_given_up = |update: &&ClusterUpdate| {
            let state = update.status.as_ref().and_then(|status| status.state);
            state == Some(UpdateState::Aborted) && update.annotations().contains_key(annotation::ABORT.name)
        };
        self.update().filter(is_given_up).filter(|update| update.spec.to.distribution == *asked)
    }
}

fn parts<K>(api: Api<K>, of_cluster: &watcher::Config) -> BoxStream<'static, Result<watcher::Event<K>, watcher::Error>>
where
    K: kube::Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    watcher::watcher(api, of_cluster.clone()).default_backoff().boxed()
}

impl<K> Default for Parts<K> {
    fn default() -> Self {
        Self { known: BTreeMap::new(), listing: BTreeMap::new(), asked: false }
    }
}

impl<K: kube::Resource> Parts<K> {
    /// Takes what is new; whether something is.
    fn take(&mut self, event: Result<watcher::Event<K>, watcher::Error>) -> Result<bool, watcher::Error> {
        // Whoever may not see the parts sees the rest.
        let event = event.inspect_err(|_| self.asked = true)?;
        match event {
            watcher::Event::Init => self.listing.clear(),
            watcher::Event::InitApply(object) => drop(self.listing.insert(object.name_any(), object)),
            watcher::Event::InitDone => {
                // What is not in the list is gone.
                self.known = std::mem::take(&mut self.listing);
                self.asked = true;
                return Ok(true);
            }
            watcher::Event::Apply(object) => {
                self.known.insert(object.name_any(), object);
                return Ok(true);
            }
            watcher::Event::Delete(object) => return Ok(self.known.remove(&object.name_any()).is_some()),
        }
        Ok(false)
    }
}

/// Something for each change of some objects.
pub fn changes<K>(api: Api<K>, of: watcher::Config) -> BoxStream<'static, ()>
where
    K: Resource<Scope = NamespaceResourceScope> + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    // An error of a watch is no news: what cannot be read is said by the next look.
    watcher::watcher(api, of).default_backoff().filter_map(|event| async move { event.ok().map(drop) }).boxed()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    #[test]
    fn a_list_counts_when_it_is_whole() {
        let object = |name: &str| {
            let mut object = ConfigMap::default();
            object.metadata.name = Some(name.to_owned());
            object
        };
        let mut parts = Parts::default();
        let mut check = |event, news: bool, names: &[&str]| {
            assert_eq!(parts.take(Ok(event)).unwrap(), news);
            assert_eq!(parts.known.keys().collect::<Vec<_>>(), names);
        };
        check(watcher::Event::Init, false, &[]);
        check(watcher::Event::InitApply(object("a")), false, &[]);
        check(watcher::Event::InitApply(object("b")), false, &[]);
        check(watcher::Event::InitDone, true, &["a", "b"]);
        check(watcher::Event::Apply(object("c")), true, &["a", "b", "c"]);
        check(watcher::Event::Delete(object("a")), true, &["b", "c"]);
        check(watcher::Event::Init, false, &["b", "c"]);
        check(watcher::Event::InitApply(object("c")), false, &["b", "c"]);
        check(watcher::Event::InitDone, true, &["c"]);
        assert!(parts.asked);
        let mut forbidden = Parts::<ConfigMap>::default();
        assert!(forbidden.take(Err(watcher::Error::NoResourceVersion)).is_err() && forbidden.asked);
    }
}
