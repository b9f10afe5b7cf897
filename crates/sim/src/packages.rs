//! Packages: what kapp-controller does, in the management cluster and in every workload cluster that it is installed in.
//!
//! ```text
//! PackageRepository ──▶ Package                  repository
//! PackageInstall ──▶ App                         install     selection, constraint
//! App ──▶ files ──▶ objects ──▶ a cluster        app         registry, ytt, deploy
//! AntreaConfig, … ──▶ Secret                     values      (the management cluster only)
//! ```
//!
//! One task per API server. It hears of the few kinds that concern it from the store, and writes through the API as
//! kapp-controller does; a cluster without these kinds costs one subscription to definitions that never change. All there is to
//! know is in objects: how far an App is, how often it failed and when that was is in its status, as kapp-controller has it.
//! What kapp-controller keeps in memory, which values an App was rendered with, is a record.

mod app;
mod constraint;
mod deploy;
pub(crate) mod follow;
mod install;
mod progress;
mod registry;
mod removal;
mod repository;
mod selection;
mod status;
mod target;
mod values;
mod view;
mod write;
mod ytt;

use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use serde::de::DeserializeOwned;
use serde_json::Value;
use windlass_api::version::KubernetesVersion;
use windlass_apiserver::ApiServer;
use windlass_apiserver::store::{Entry, Key, Range};
use windlass_runtime::chance::Seed;
use windlass_runtime::clock::Clock;

use crate::workload::{Workload, Workloads};
use view::{Subject, View};

const INSTALLS: &str = "packageinstalls.packaging.carvel.dev";
const PACKAGES: &str = "packages.data.packaging.carvel.dev";
const REPOSITORIES: &str = "packagerepositories.packaging.carvel.dev";
const APPS: &str = "apps.kappctrl.k14s.io";
const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";
const DEPLOYMENTS: &str = "deployments.apps";
const NAMESPACES: &str = "namespaces";
const SECRETS: &str = "secrets";
const SERVICE_ACCOUNTS: &str = "serviceaccounts";

/// Whose packages every namespace sees, unless it says otherwise.
const GLOBAL_NAMESPACE: &str = "tkg-system";
/// What runs in the management cluster.
const KAPP_CONTROLLER: &str = "0.53.2";
/// The Deployment of kapp-controller, wherever it is.
const KAPP_CONTROLLER_DEPLOYMENT: &str = "kapp-controller";
/// Which version of kapp-controller a Deployment runs.
const KAPP_CONTROLLER_VERSION: &str = "kapp-controller.carvel.dev/version";
/// How long an API may take for all that one look asks of it.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often it is looked whether an API that does not answer does so again.
const OUTAGE_LOOK: Duration = Duration::from_secs(10);
/// How soon an API that does not answer is asked again, at first and at last.
const RETRY: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(60)];

/// Where packages are looked after.
pub(crate) enum Place {
    /// In the management cluster; from there packages may be installed in these clusters.
    Management(Workloads),
    /// In a workload cluster.
    Workload(Workload),
}

/// A kapp-controller, and the cluster that it is for.
pub(crate) struct Kapp {
    /// The API of the cluster.
    pub(crate) client: Client,
    /// What answers there.
    pub(crate) server: ApiServer,
    /// Which cluster it is.
    pub(crate) place: Place,
    /// What time it is.
    pub(crate) clock: Clock,
    /// What decides everything random.
    pub(crate) seed: Seed,
}

/// Something that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("{verb} {object}")]
struct Error {
    /// What was attempted.
    verb: &'static str,
    /// With what, as `Kind namespace/name`.
    object: String,
    /// What the client says.
    #[source]
    source: Box<kube::Error>,
}

/// When something is to be looked at again, if nothing changes before.
type Next = Option<Timestamp>;

impl Kapp {
    /// Looks after packages. Does not end.
    pub(crate) async fn run(self) {
        loop {
            self.defined().await;
            // In a box of its own: most clusters have no packages, and there may be thousands of them.
            Box::pin(self.live(View::read(&self))).await;
            // Whatever was missed: others come first.
            tokio::task::yield_now().await;
        }
    }

    /// Waits until the cluster knows what a `PackageInstall` is.
    async fn defined(&self) {
        let store = self.server.store();
        loop {
            let changes = store.subscribe(&DEFINITIONS.into(), store.revision());
            if [INSTALLS, APPS].iter().all(|resource| self.server.registry().stored(resource).is_some()) {
                return;
            }
            if let Ok(mut changes) = changes {
                drop(futures::StreamExt::next(&mut changes).await);
            }
        }
    }

    /// Does what there is to do, until something has been missed.
    async fn live(&self, mut view: View) {
        loop {
            view.follow(self);
            if view.missed {
                return;
            }
            let now = self.clock.now();
            if let Some(subject) = view.next_subject(now).filter(|_| self.is_up()) {
                let next = self.look(&subject).await;
                view.looked(&subject, next, self.clock.now());
                continue;
            }
            let due = if self.is_up() { view.next_at() } else { self.outage_look_at(now) };
            match due.map(|due| due.duration_since(now).unsigned_abs()) {
                Some(wait) => drop(tokio::time::timeout(wait, view.changed(self)).await),
                None => view.changed(self).await,
            }
        }
    }

    /// Brings one object forward.
    async fn look(&self, subject: &Subject) -> Result<Next, Error> {
        let look = async {
            match subject {
                Subject::Repository(key) => repository::reconcile(self, key).await,
                Subject::Values(kind, key) => values::reconcile(self, *kind, key).await,
                Subject::Install(key) => install::reconcile(self, key).await,
                Subject::App(key) => app::reconcile(self, key).await,
            }
        };
        match tokio::time::timeout(PATIENCE, look).await {
            Ok(next) => next,
            // It goes on from where its objects say that it is.
            Err(_) => Ok(Some(self.clock.now())),
        }
    }

    /// Whether somebody looks after packages: in a workload cluster that takes a pod which runs.
    fn is_up(&self) -> bool {
        match &self.place {
            Place::Management(_) => true,
            Place::Workload(workload) => workload.answers() && self.deployment().is_some_and(|own| is_available(&own)),
        }
    }

    /// When to see whether an API that does not answer does so again. Of a pod that starts one hears.
    fn outage_look_at(&self, now: Timestamp) -> Next {
        match &self.place {
            Place::Workload(workload) if !workload.answers() => Some(later(now, OUTAGE_LOOK)),
            Place::Workload(_) | Place::Management(_) => None,
        }
    }

    /// The Deployment of kapp-controller.
    fn deployment(&self) -> Option<Value> {
        let named = |entry: &Entry| &*entry.key.name == KAPP_CONTROLLER_DEPLOYMENT;
        let found = self.server.store().list(DEPLOYMENTS, EVERYWHERE, named).entries;
        found.iter().find_map(|entry| read(entry))
    }

    /// Which kapp-controller this is.
    fn version(&self) -> Option<KubernetesVersion> {
        match &self.place {
            Place::Management(_) => constraint::version(KAPP_CONTROLLER),
            Place::Workload(_) => {
                let deployment = self.deployment()?;
                constraint::version(deployment["metadata"]["annotations"][KAPP_CONTROLLER_VERSION].as_str()?)
            }
        }
    }

    fn get<T: DeserializeOwned>(&self, resource: &str, key: &Key) -> Option<T> {
        read(&*self.server.store().get(resource, key)?)
    }

    fn list<T: DeserializeOwned>(&self, resource: &str, namespace: Option<&str>) -> Vec<T> {
        let range = Range { namespace, ..EVERYWHERE };
        self.server.store().list(resource, range, |_| true).entries.iter().filter_map(|entry| read(entry)).collect()
    }

    /// Now, as objects spell it.
    fn stamp(&self) -> String {
        windlass_apiserver::time::format(self.clock.now())
    }

    /// How long it takes to fetch and render what this is about.
    fn takes(&self, what: &str) -> Duration {
        Duration::from_millis(self.seed.child("packages").stream(what).range(2_000..6_001))
    }
}

/// All objects of a kind.
const EVERYWHERE: Range<'static> = Range { namespace: None, after: None, limit: 0 };

fn is_available(deployment: &Value) -> bool {
    deployment["status"]["availableReplicas"].as_u64().is_some_and(|available| available > 0)
}

/// An object whose fields have types that its kind does not have is as good as none.
fn read<T: DeserializeOwned>(entry: &Entry) -> Option<T> {
    serde_json::from_slice(&entry.json)
        .inspect_err(|error| tracing::debug!(key = %entry.key, %error, "an object cannot be read"))
        .ok()
}

/// A moment as objects spell it.
fn moment(text: Option<&str>) -> Option<Timestamp> {
    text?.parse().ok()
}

/// A moment, and so much later.
fn later(at: Timestamp, by: Duration) -> Timestamp {
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}
