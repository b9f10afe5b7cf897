//! The World, put together.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::Client;
use windlass_api::kind::packaging::PackageInstall;
use windlass_api::name::NamespacedName;
use windlass_apiserver::store::{Backend, Keeper, Recovered};
use windlass_apiserver::{ApiServer, Options};
use windlass_runtime::chance::Seed;
use windlass_runtime::clock::Clock;

use crate::actor::Caller;
use crate::admission;
use crate::catalogue::{self, definition};
use crate::door::Doors;
use crate::durations::Durations;
use crate::fault::{self, Disk, Faults, Faulty, Place, Scenario};
use crate::log::{Logged, PodLog};
use crate::management::{Management, Providers};
use crate::packages::follow::Follower;
use crate::packages::{self, Kapp};
use crate::program::Programs;
use crate::timeline::Recorder;
use crate::truth::MANAGEMENT;
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
    /// What goes wrong in it. Nothing costs nothing.
    pub faults: Scenario,
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
    /// A package or a pod of the management cluster is written wrongly.
    #[error("make a {kind} of the catalogue")]
    Object {
        /// Of which kind.
        kind: String,
        /// What is wrong.
        #[source]
        source: Box<serde_json::Error>,
    },
    /// An image of the catalogue does not say what it is in a way that its add-ons could be made for.
    #[error("read what the machine image {image} of the catalogue says about itself")]
    Image {
        /// Which.
        image: String,
        /// What is wrong.
        #[source]
        source: Box<serde_json::Error>,
    },
}

/// How many draws of identities the catalogue has for itself. It takes two for the uid of each object, of which there are some
/// hundred and fifty: with room for three times as many, what is added to it changes no uid, and so no name, of what comes after.
const DRAWS_OF_THE_CATALOGUE: u64 = 1_000;

/// What was kept of the stores of a World: by `management`, or the workload cluster as `namespace/name`.
pub type KeptStores = BTreeMap<Arc<str>, Recovered>;

/// A simulated system. Cheap to clone: clones are the same World.
#[derive(Clone)]
pub struct World(Arc<Inner>);

struct Inner {
    settings: Settings,
    management: ApiServer,
    workloads: Workloads,
    recorder: Recorder,
    faults: Faults,
    disk: Option<Disk>,
}

impl World {
    /// A World with the definitions of all kinds, the namespaces `default`, `tkg-system` and `vmware-system-tkg`, and the
    /// catalogue: images, classes and storage classes, and the releases that are objects of their own, with their packages.
    pub async fn new(settings: Settings) -> Result<Self, Error> {
        Self::recorded_by(settings, Recorder::new()).await
    }

    /// The same, with changes told to this recorder.
    pub async fn recorded_by(settings: Settings, recorder: Recorder) -> Result<Self, Error> {
        let world = Self::furnished(settings, recorder, None).await?;
        world.arm();
        Ok(world)
    }

    /// The same, with what makes its management cluster one of those that people know: the management packages, which are
    /// installed when the World runs, and the pods that run there. Windlass and Cluster API need none of it.
    pub async fn with_management_packages(settings: Settings, recorder: Recorder) -> Result<Self, Error> {
        let world = Self::furnished(settings, recorder, None).await?;
        catalogue::management::furnish(&world.client()).await?;
        world.arm();
        Ok(world)
    }

    /// Puts the management packages of a version into a cluster that has kapp-controller: its own API offers them from then on. What
    /// asks for them is the answer, a `PackageInstall`; whoever creates or changes it brings them in.
    pub async fn offer_management_packages(&self, cluster: &Client, version: &str) -> Result<PackageInstall, Error> {
        catalogue::management::offer(cluster, version).await?;
        catalogue::management::asked_for(version)
    }

    /// The same, of which all that happens is kept.
    pub async fn kept(settings: Settings, recorder: Recorder, keeper: Arc<dyn Keeper>) -> Result<Self, Error> {
        let world = Self::furnished(settings, recorder, Some(keeper)).await?;
        catalogue::management::furnish(&world.client()).await?;
        world.arm();
        Ok(world)
    }

    /// A World that goes on where a kept one ended, with what was kept of each of its stores. Nothing runs in it yet, and webhooks
    /// other than those of Cluster API are for whoever made it to add. Its clock must not be behind.
    pub fn resumed(settings: Settings, recorder: Recorder, keeper: Arc<dyn Keeper>, kept: KeptStores) -> Self {
        recorder.know(&kept);
        let mut kept = kept;
        let faults = Faults::new(&settings.faults, &settings.clock, settings.seed, &recorder);
        let backend = Some(keeper.backend(MANAGEMENT));
        let options = Options { backend, ..options(&settings, &recorder) };
        let management = ApiServer::recovered(options, kept.remove(MANAGEMENT).unwrap_or_default());
        management.identities().skip_to(DRAWS_OF_THE_CATALOGUE);
        PodLog::serve(&management);
        admission::add(&management);
        let workloads = Workloads::new(settings.clone(), recorder.clone(), faults.clone(), Some(keeper));
        workloads.resume(kept);
        Self(Arc::new(Inner { settings, management, workloads, recorder, faults, disk: None }))
    }

    /// From now on its disk may fail.
    fn arm(&self) {
        if let Some(disk) = self.disk() {
            disk.arm();
        }
    }

    async fn furnished(settings: Settings, recorder: Recorder, keeper: Option<Arc<dyn Keeper>>) -> Result<Self, Error> {
        let faults = Faults::new(&settings.faults, &settings.clock, settings.seed, &recorder);
        // A World that is kept has a real disk.
        let disk = Disk::of(&faults).filter(|_| keeper.is_none());
        let simulated = disk.clone().map(|disk| Arc::new(disk) as Arc<dyn Backend>);
        let backend = keeper.as_ref().map(|keeper| keeper.backend(MANAGEMENT)).or(simulated);
        let management = ApiServer::new(Options { backend, ..options(&settings, &recorder) });
        PodLog::serve(&management);
        admission::add(&management);
        let workloads = Workloads::new(settings.clone(), recorder.clone(), faults.clone(), keeper);
        let world = Self(Arc::new(Inner { settings, management, workloads, recorder, faults, disk }));
        catalogue::furnish(&world.client()).await?;
        world.management().identities().skip_to(DRAWS_OF_THE_CATALOGUE);
        Ok(world)
    }

    /// Puts into another API server what every World has, for simulators and controllers that are clients of that one. What is
    /// there already is left as it is, so that it can be tried again while definitions are being established. Packages are left
    /// out: their names are none that a definition could have, and are served by a server of their own on a real cluster. That
    /// may be the management API of a World.
    pub async fn furnish(client: &Client) -> Result<(), Error> {
        catalogue::furnish_real(client).await
    }

    /// A World of its own with the same objects, at the same revisions. Nothing runs in it yet, and webhooks other than those of
    /// Cluster API are for whoever made it to add. Its recorder remembers what this one has seen, and goes its own way.
    #[must_use]
    pub fn fork(&self, settings: Settings) -> Self {
        self.fork_recorded_by(settings, self.0.recorder.fork())
    }

    /// A fork whose changes are told to this recorder.
    #[must_use]
    pub fn fork_recorded_by(&self, settings: Settings, recorder: Recorder) -> Self {
        let management = self.0.management.fork(options(&settings, &recorder));
        admission::add(&management);
        let faults = self.0.faults.fork(&settings.faults, &settings.clock, settings.seed, &recorder);
        let workloads = self.0.workloads.fork(settings.clone(), recorder.clone(), faults.clone());
        Self(Arc::new(Inner { settings, management, workloads, recorder, faults, disk: None }))
    }

    /// The infrastructure beside the one that every World has: whose definitions there are.
    pub fn providers(&self) -> Providers {
        Providers::of(&self.0.management.registry())
    }

    /// Has the World know another infrastructure: templates of machines of this kind, the machines, and what clusters need once. Machines
    /// of it boot from disks of their version.
    pub async fn offer_infrastructure(
        &self,
        group: &str,
        version: &str,
        template: &str,
        cluster: Option<&str>,
    ) -> Result<(), Error> {
        catalogue::furnish_infrastructure(
            &self.client(),
            &definition::infrastructure(group, version, template, cluster),
        )
        .await
    }

    /// The management API.
    pub fn management(&self) -> &ApiServer {
        &self.0.management
    }

    /// A client of the management API, without a socket. Nothing that it asks goes wrong.
    pub fn client(&self) -> Client {
        Client::new(self.0.management.clone(), "default")
    }

    /// A client of the management API as this caller has it: what goes wrong for it goes wrong here.
    pub fn client_of(&self, caller: Caller) -> Client {
        if self.0.faults.is_empty() {
            return self.client();
        }
        let server = self.0.management.clone();
        Client::new(Faulty::new(server, self.0.faults.clone(), caller, Place::Management, "management"), "default")
    }

    /// What goes wrong in it.
    pub fn faults(&self) -> &Faults {
        &self.0.faults
    }

    /// The disk under its management API, if what goes wrong has to do with disks. A fork has none.
    pub fn disk(&self) -> Option<&Disk> {
        self.0.disk.as_ref()
    }

    /// The management API as it is now, and stays.
    pub(crate) fn replica(&self) -> ApiServer {
        let Settings { clock, seed, .. } = &self.0.settings;
        let options = Options { now: clock.now_fn(), seed: seed.child("replica").0, ..Options::default() };
        self.0.management.fork(options)
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

    /// Does what its scenario has a time for, as [`World::run`] does beside everything else. Does not end.
    pub async fn run_scenario(&self) {
        fault::run(self).await;
    }

    /// Runs all simulators until `stop`.
    pub async fn run(&self, programs: Arc<dyn Programs>, doors: Arc<dyn Doors>, stop: impl Future<Output = ()>) {
        self.run_through(self.client_of(Caller::Simulators), programs, doors, stop).await;
    }

    /// The same with another management API than the World's own: the simulators of the management side are clients of that one.
    pub async fn run_on(
        &self,
        client: Client,
        programs: Arc<dyn Programs>,
        doors: Arc<dyn Doors>,
        stop: impl Future<Output = ()>,
    ) {
        let clock = self.0.settings.clock.clone();
        let follower = Follower { client: client.clone(), server: self.0.management.clone(), clock };
        tokio::select! {
            biased;
            () = self.run_through(client, programs, doors, stop) => {}
            () = Box::pin(follower.run()) => {}
        }
    }

    /// The same with simulators of the management side that use this client: somebody may want to see what they ask.
    pub async fn run_through(
        &self,
        client: Client,
        programs: Arc<dyn Programs>,
        doors: Arc<dyn Doors>,
        stop: impl Future<Output = ()>,
    ) {
        let Settings { clock, seed, durations, .. } = self.0.settings.clone();
        let (workloads, faults) = (self.0.workloads.clone(), self.0.faults.clone());
        let programs = Arc::new(Logged::new(programs, self.0.management.store().clone(), clock.clone()));
        let packages = Kapp {
            client: client.clone(),
            server: self.0.management.clone(),
            place: packages::Place::Management(workloads.clone()),
            clock: clock.clone(),
            seed: seed.child("management"),
        };
        let providers = self.providers();
        let management = Management { client, workloads, programs, doors, clock, seed, durations, faults, providers };
        tokio::select! {
            biased;
            () = Box::pin(management.run(stop)) => {}
            () = self.0.workloads.run() => {}
            () = Box::pin(self.run_scenario()) => {}
            () = Box::pin(packages.run()) => {}
        }
    }
}

/// What the management API server of a World is made with.
fn options(settings: &Settings, recorder: &Recorder) -> Options {
    Options {
        now: settings.clock.now_fn(),
        seed: settings.seed.child("management").0,
        observer: Some(recorder.observer(MANAGEMENT)),
        ..Options::default()
    }
}
