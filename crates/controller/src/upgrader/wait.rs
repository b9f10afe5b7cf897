//! Waiting: for events where there are any, and always with an end. What was waited for is not told by the events: whoever waits
//! looks again afterwards.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::pin::pin;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use kube::api::{WatchEvent, WatchParams};
use kube::runtime::watcher::{self, Event};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};
use windlass_api::annotation::PAUSED;
use windlass_api::kind::cluster_api::{Cluster, Machine};
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_plan::roll::Wait;

use super::attempt::Attempt;
use super::observe::{Machines, Sight};
use super::{Error, health, replacement};
use crate::observe::management;

/// How long to leave an API alone that did not answer. A control plane of one machine does not answer while its second member
/// of etcd starts.
pub const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(2);

/// How often etcd is asked: it tells nobody when its members change.
pub const ETCD_INTERVAL: Duration = Duration::from_secs(10);

/// How long to rely on events. An API that has stopped to send any looks like one that has nothing to tell.
const LOOK_AGAIN: Duration = Duration::from_secs(5 * 60);

/// Waits until something may have happened, and no longer than there is patience.
pub async fn for_change(attempt: &Attempt<'_>, sight: &Sight<'_>, wait: &Wait, patience: Duration) {
    let end = Instant::now() + patience.min(LOOK_AGAIN);
    let ask_etcd = || sleep_until(end.min(Instant::now() + ETCD_INTERVAL));
    match wait {
        Wait::Etcd { .. } => ask_etcd().await,
        Wait::AtRest { .. } => match sight.machines().filter(|machines| !all_stand(machines)) {
            Some(machines) => machines_change(attempt, machines, end).await,
            None => ask_etcd().await,
        },
        Wait::Healthy { .. } => match (sight.joined(), sight.machines()) {
            (Some(joined), _) => health::until_well(attempt, &joined, end).await,
            (None, Some(machines)) => machines_change(attempt, machines, end).await,
            (None, None) => {}
        },
        Wait::Gone { .. } => {
            if let Some(machines) = sight.machines() {
                machines_change(attempt, machines, end).await;
            }
        }
        Wait::Released { .. } => released(attempt, end).await,
        Wait::PartGone { machine, part } => replacement::gone(attempt, machine, *part, end).await,
    }
}

/// Watches the cluster, and what it was made for, until neither is held.
async fn released(attempt: &Attempt<'_>, end: Instant) {
    let name = attempt.cluster.name.as_str();
    let is_free = |found: &BTreeMap<String, Cluster>| {
        let held = |cluster: &Cluster| {
            cluster.metadata.deletion_timestamp.is_none() && management::paused(cluster, None).is_some()
        };
        !found.get(name).is_some_and(held)
    };
    until(attempt.management(), named(name), end, is_free).await;
    let Some(name) = attempt.wish.as_deref() else { return };
    let is_free = |found: &BTreeMap<String, TanzuKubernetesCluster>| {
        !found.get(name).is_some_and(|wish| PAUSED.is_in(wish.annotations()))
    };
    until(attempt.management(), named(name), end, is_free).await;
}

/// What matters about a machine to whoever waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    OnTheWay,
    Ready,
    Leaving,
}

fn standing(machine: &Machine) -> Standing {
    match machine.metadata.deletion_timestamp {
        Some(_) => Standing::Leaving,
        None if health::joined(machine).is_some() => Standing::Ready,
        None => Standing::OnTheWay,
    }
}

fn all_stand(machines: &Machines) -> bool {
    machines.live.values().all(|machine| standing(machine) == Standing::Ready)
}

/// Watches the machines from the state on in which they were listed, until one comes, goes, becomes ready, or stops to be so.
async fn machines_change(attempt: &Attempt<'_>, machines: &Machines, end: Instant) {
    let which = WatchParams::default().labels(&attempt.selector());
    let before: BTreeMap<String, Standing> =
        machines.live.values().map(|machine| (machine.name_any(), standing(machine))).collect();
    let watching = async {
        let mut events = pin!(attempt.machines().watch(&which, &machines.as_of).await?);
        while let Some(event) = events.try_next().await? {
            let is_change = match event {
                WatchEvent::Added(machine) | WatchEvent::Modified(machine) => {
                    before.get(&machine.name_any()) != Some(&standing(&machine))
                }
                WatchEvent::Deleted(_) => true,
                WatchEvent::Bookmark(_) => false,
                WatchEvent::Error(status) => return Err(kube::Error::Api(status)),
            };
            if is_change {
                break;
            }
        }
        Ok::<(), kube::Error>(())
    };
    if let Ok(Err(error)) = timeout_at(end, watching).await {
        tracing::debug!(%error, "the machines cannot be watched");
        sleep(PAUSE_AFTER_FAILURE).await;
    }
}

/// Watches objects until they are as wanted, or until the end. An API that does not answer is asked again.
pub async fn until<K>(
    api: Api<K>,
    which: watcher::Config,
    end: Instant,
    is_wanted: impl Fn(&BTreeMap<String, K>) -> bool,
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let watching = async {
        let mut events = pin!(watcher::watcher(api, which));
        let mut objects = BTreeMap::new();
        let mut complete = false;
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Init) => {
                    objects.clear();
                    complete = false;
                }
                Ok(Event::InitDone) => complete = true,
                Ok(Event::InitApply(object) | Event::Apply(object)) => {
                    objects.insert(object.name_any(), object);
                }
                Ok(Event::Delete(object)) => {
                    objects.remove(&object.name_any());
                }
                Err(error) => {
                    tracing::debug!(%error, "the objects cannot be watched");
                    sleep(PAUSE_AFTER_FAILURE).await;
                    continue;
                }
            }
            if complete && is_wanted(&objects) {
                return;
            }
        }
    };
    // Whoever waits looks again, so it does not matter here why this has ended.
    timeout_at(end, watching).await.unwrap_or_default();
}

/// The one object of that name.
pub fn named(name: &str) -> watcher::Config {
    watcher::Config::default().fields(&format!("metadata.name={name}"))
}

/// How long to put up with an API that does not answer.
#[derive(Debug, Clone)]
pub struct Patience {
    end: Instant,
}

impl Patience {
    /// From now on, for so long.
    pub fn of(whole: Duration) -> Self {
        Self { end: Instant::now() + whole }
    }

    /// Does something to an API that may not answer for a while. It is done again from its beginning, which must be a read.
    pub async fn retry<T, F>(&self, mut attempt: impl FnMut() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        loop {
            match attempt().await {
                Err(error) if error.is_transient() && Instant::now() + PAUSE_AFTER_FAILURE <= self.end => {
                    tracing::debug!(error = %error.report(), "asking again");
                    sleep(PAUSE_AFTER_FAILURE).await;
                }
                outcome => return outcome,
            }
        }
    }
}
