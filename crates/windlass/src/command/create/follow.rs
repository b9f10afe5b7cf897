//! Waits for a cluster of a class: says what comes, what it waits for, and when waiting will not help.
//!
//! What is decided is decided in [`windlass_plan::creation::Course`]. Time is the server's: an embedded one may live faster than we
//! do. Events only say that it is worth looking; a look reads everything anew.

use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::{BoxStream, select_all};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ListParams, Patch, PatchParams};
use kube::runtime::watcher;
use serde_json::json;
use tokio::time::Instant;
use windlass_api::kind::cluster_api::{Cluster, Machine, MachineDeployment};
use windlass_api::kind::release::ClusterBootstrap;
use windlass_api::label;
use windlass_api::name::ClusterName;
use windlass_plan::creation::{Course, End, Look, Observed, seen};

use super::error::Error;
use crate::client::{FIELD_MANAGER, Management};
use crate::output;
use crate::progress::{HEARTBEAT, Progress};
use crate::watch::changes;

/// How often the server is asked what time it is, when nothing happens.
const TICK: Duration = Duration::from_secs(1);
/// How long a burst of events is let pass.
const BURST: Duration = Duration::from_millis(100);

/// Who waits, for what.
pub struct Follow<'a> {
    pub management: &'a Management,
    pub name: &'a ClusterName,
    /// Whether it gets packages.
    pub has_packages: bool,
    /// How long nothing may change.
    pub patience: Duration,
}

impl Follow<'_> {
    /// Waits until all is there.
    pub async fn run(&self) -> Result<Cluster, Error> {
        let mut progress = Progress::new(self.name.to_string());
        let (name, namespace) = (self.name.clone(), self.management.namespace.clone());
        let ended = tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => Err(Error::Interrupted { name, namespace }),
            ended = self.follow(&mut progress) => ended,
        };
        progress.end();
        ended
    }

    async fn follow(&self, progress: &mut Progress) -> Result<Cluster, Error> {
        let mut clock = Clock::new(self.management);
        let patience = SignedDuration::try_from(self.patience).unwrap_or(SignedDuration::MAX);
        let mut course = Course::begin(patience, clock.now());
        let (mut events, mut said, mut stamped) = (self.events(), Instant::now(), true);
        loop {
            match self.observe().await {
                Ok(observed) => {
                    clock.set(self.management);
                    let look = course.look(&observed, clock.now());
                    if !look.came.is_empty() {
                        said = Instant::now();
                    }
                    show(&look, progress);
                    if let Some(end) = look.end {
                        return self.end(end, observed);
                    }
                    if look.moved && stamped {
                        stamped = self.stamp(clock.now()).await;
                    }
                }
                Err(error) => {
                    let forbidden = matches!(&error, kube::Error::Api(status) if matches!(status.code, 401 | 403));
                    if forbidden || clock.now() >= course.due() {
                        return Err(Error::Unseen { name: self.name.clone(), source: Box::new(error) });
                    }
                    progress.waits(&format!("waiting for the server to answer: {error}"));
                }
            }
            self.news(&mut events, &mut clock, &course, (progress, &mut said)).await;
        }
    }

    /// Waits until there is something to look at.
    async fn news(
        &self,
        events: &mut BoxStream<'static, ()>,
        clock: &mut Clock,
        course: &Course,
        (progress, said): (&Progress, &mut Instant),
    ) {
        loop {
            let event = tokio::select! {
                biased;
                _ = events.next() => true,
                () = tokio::time::sleep(TICK) => false,
            };
            if said.elapsed() >= HEARTBEAT {
                progress.beat();
                *said = Instant::now();
            }
            if event {
                tokio::time::sleep(BURST).await;
                return;
            }
            if self.management.client.apiserver_version().await.is_ok() {
                clock.set(self.management);
            }
            if clock.now() >= course.due() {
                return;
            }
        }
    }

    fn end(&self, end: End, observed: Observed) -> Result<Cluster, Error> {
        let (name, namespace) = (self.name.clone(), self.management.namespace.clone());
        match (end, observed.cluster) {
            (End::Done, Some(cluster)) => Ok(cluster),
            (End::Stalled(stall), _) => Err(Error::Stalled { name, namespace, stall: Box::new(stall) }),
            (End::Gone | End::Done, _) => Err(Error::Gone { name, namespace }),
        }
    }

    /// Reads everything that tells of the cluster.
    async fn observe(&self) -> Result<Observed, kube::Error> {
        let name = self.name.as_str();
        let of_cluster = ListParams::default().labels(&format!("{}={name}", label::CLUSTER_NAME));
        let kubeconfig = self.management.api::<Secret>().get_opt(&format!("{name}-kubeconfig")).await?;
        let bootstrap =
            if self.has_packages { self.management.api::<ClusterBootstrap>().get_opt(name).await? } else { None };
        Ok(Observed {
            machines: self.management.api::<Machine>().list(&of_cluster).await?.items,
            pools: self.management.api::<MachineDeployment>().list(&of_cluster).await?.items,
            kubeconfig: kubeconfig.and_then(|secret| secret.data).is_some_and(|data| data.contains_key("value")),
            bootstrap,
            has_packages: self.has_packages,
            // Read last: what it says has come is there.
            cluster: self.management.api::<Cluster>().get_opt(name).await?,
        })
    }

    /// Something for each change of what tells of the cluster.
    fn events(&self) -> BoxStream<'static, ()> {
        let name = self.name.as_str();
        let named = watcher::Config::default().fields(&format!("metadata.name={name}"));
        let kubeconfig = watcher::Config::default().fields(&format!("metadata.name={name}-kubeconfig"));
        let of_cluster = watcher::Config::default().labels(&format!("{}={name}", label::CLUSTER_NAME));
        let mut events = vec![
            changes(self.management.api::<Cluster>(), named.clone()),
            changes(self.management.api::<Secret>(), kubeconfig),
            changes(self.management.api::<Machine>(), of_cluster.clone()),
            changes(self.management.api::<MachineDeployment>(), of_cluster),
        ];
        if self.has_packages {
            events.push(changes(self.management.api::<ClusterBootstrap>(), named));
        }
        select_all(events).boxed()
    }

    /// Writes down that something has moved; whether that works.
    async fn stamp(&self, now: Timestamp) -> bool {
        let (key, value) = seen(now);
        let patch = Patch::Merge(json!({"metadata": {"annotations": {key: value}}}));
        let parameters = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let written = self.management.api::<Cluster>().patch_metadata(self.name.as_str(), &parameters, &patch).await;
        if let Err(error) = &written {
            output::warning(&format!(
                "it is not written down on {} when something was last seen to move: {error}",
                self.name
            ));
        }
        written.is_ok()
    }
}

fn show(look: &Look, progress: &mut Progress) {
    for awaited in &look.came {
        progress.came(&awaited.to_string());
    }
    if let Some(awaited) = &look.awaited {
        let (came, all) = look.count;
        progress.waits(&format!("{came} of {all} are there; waiting for {awaited}"));
    }
}

/// The server's time. While the server does not answer, it is taken to go on as ours does.
struct Clock {
    server: Timestamp,
    heard: Instant,
}

impl Clock {
    fn new(management: &Management) -> Self {
        Self { server: management.now(), heard: Instant::now() }
    }

    fn set(&mut self, management: &Management) {
        *self = Self::new(management);
    }

    fn now(&self) -> Timestamp {
        let since = SignedDuration::try_from(self.heard.elapsed()).unwrap_or(SignedDuration::ZERO);
        self.server.saturating_add(since).unwrap_or(self.server)
    }
}
