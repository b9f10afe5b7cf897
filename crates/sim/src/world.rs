//! The World, put together.

use std::sync::Arc;

use kube::Client;
use windlass_api::name::NamespacedName;
use windlass_apiserver::{ApiServer, Options};
use windlass_runtime::chance::Seed;
use windlass_runtime::clock::Clock;

use crate::catalogue;
use crate::door::Doors;
use crate::durations::Durations;
use crate::management::Management;
use crate::program::Programs;
use crate::timeline::Recorder;
use crate::workload::{Workload, Workloads};

/// What a World is made with.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The time in it.
    pub clock: Clock,
    /// What decides everything random in it.
    pub seed: Seed,
    /// How long things take in it.
    pub durations: Durations,
}

/// Why a World could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The management API refused something that every World has.
    #[error("put {object} into the management cluster")]
    Furnish {
        /// What.
        object: String,
        /// What the API said.
        #[source]
        source: Box<kube::Error>,
    },
    /// What every World has is written wrongly.
    #[error("read the catalogue")]
    Catalogue(#[source] Box<serde_saphyr::Error>),
}

/// How many draws of identities the catalogue has for itself. It takes two for the uid of each object, of which there are some
/// fifty: with room for ten times as many, what is added to it changes no uid, and so no name, of what comes after.
const DRAWS_OF_THE_CATALOGUE: u64 = 1_000;

/// A simulated system. Cheap to clone: clones are the same World.
#[derive(Clone)]
pub struct World(Arc<Inner>);

struct Inner {
    settings: Settings,
    management: ApiServer,
    workloads: Workloads,
    recorder: Recorder,
}

impl World {
    /// A World with the definitions of all kinds, the namespaces `default` and `vmware-system-tkg`, and the catalogue: images,
    /// classes and storage classes.
    pub async fn new(settings: Settings) -> Result<Self, Error> {
        Self::recorded_by(settings, Recorder::new()).await
    }

    /// The same, with changes told to this recorder.
    pub async fn recorded_by(settings: Settings, recorder: Recorder) -> Result<Self, Error> {
        let management = ApiServer::new(options(&settings, &recorder));
        let workloads = Workloads::new(settings.clone(), recorder.clone());
        let world = Self(Arc::new(Inner { settings, management, workloads, recorder }));
        catalogue::furnish(&world.client()).await?;
        world.management().identities().skip_to(DRAWS_OF_THE_CATALOGUE);
        Ok(world)
    }

    /// A World of its own with the same objects, at the same revisions. Nothing runs in it yet, and its webhooks are for
    /// whoever made it to add. Its recorder remembers what this one has seen, and goes its own way.
    #[must_use]
    pub fn fork(&self, settings: Settings) -> Self {
        self.fork_recorded_by(settings, self.0.recorder.fork())
    }

    /// A fork whose changes are told to this recorder.
    #[must_use]
    pub fn fork_recorded_by(&self, settings: Settings, recorder: Recorder) -> Self {
        let management = self.0.management.fork(options(&settings, &recorder));
        let workloads = self.0.workloads.fork(settings.clone(), recorder.clone());
        Self(Arc::new(Inner { settings, management, workloads, recorder }))
    }

    /// The management API.
    pub fn management(&self) -> &ApiServer {
        &self.0.management
    }

    /// A client of the management API, without a socket.
    pub fn client(&self) -> Client {
        Client::new(self.0.management.clone(), "default")
    }

    /// The workload clusters.
    pub fn workloads(&self) -> &Workloads {
        &self.0.workloads
    }

    /// The workload cluster of that name.
    pub fn workload(&self, cluster: &NamespacedName) -> Option<Workload> {
        self.0.workloads.get(cluster)
    }

    /// What has happened so far, and which invariants were violated.
    pub fn recorder(&self) -> &Recorder {
        &self.0.recorder
    }

    /// What it was made with.
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// Runs all simulators until `stop`.
    pub async fn run(&self, programs: Arc<dyn Programs>, doors: Arc<dyn Doors>, stop: impl Future<Output = ()>) {
        self.run_through(self.client(), programs, doors, stop).await;
    }

    /// The same with simulators of the management side that use this client: somebody may want to see what they ask.
    pub async fn run_through(
        &self,
        client: Client,
        programs: Arc<dyn Programs>,
        doors: Arc<dyn Doors>,
        stop: impl Future<Output = ()>,
    ) {
        let Settings { clock, seed, durations } = self.0.settings.clone();
        let workloads = self.0.workloads.clone();
        let management = Management { client, workloads, programs, doors, clock, seed, durations };
        tokio::select! {
            biased;
            () = management.run(stop) => {}
            () = self.0.workloads.run() => {}
        }
    }
}

/// What the management API server of a World is made with.
fn options(settings: &Settings, recorder: &Recorder) -> Options {
    Options {
        now: settings.clock.now_fn(),
        seed: settings.seed.child("management").0,
        observer: Some(recorder.observer("management")),
        ..Options::default()
    }
}
