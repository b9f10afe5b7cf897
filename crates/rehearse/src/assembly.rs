//! The controllers and a World, joined in one runtime.
//!
//! The World takes the place of the management cluster, of the infrastructure and of all workload clusters. What runs on it is
//! what runs on a real one: the controllers, the admission webhook, and the upgrader in the pods of its Job.

pub(crate) mod access;
mod program;
pub mod replicas;
mod voice;
mod webhook;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use kube::Client;
use tower::Layer;
use windlass_controller::access::{Access, KeyMaker, Workloads};
use windlass_controller::controllers::{self, Kinds};
use windlass_controller::metrics::Metrics;
use windlass_plan::gate::Gates;
use windlass_plan::render::Defaults;
use windlass_plan::resolve::hold::HoldBy;
use windlass_runtime::steady::SteadyLayer;
use windlass_runtime::trace::Trace;
use windlass_sim::actor::{Actor, Caller, acting};
use windlass_sim::door::Doors;
use windlass_sim::fault::{Faulty, Split};
use windlass_sim::program::Programs;
use windlass_sim::world::World;

use crate::crash::{Crashes, Process};
use crate::seam::{Aged, Memory, Old, Seam, Through};
use crate::stand_in::{CountedKeys, NoDoors, StandInKeys};
use crate::traffic::{Place, Traffic};

/// How long it takes until crashed controllers are back: about what a Deployment needs to start a pod again.
const RESTART: Duration = Duration::from_secs(5);

/// How an assembly is put together.
#[derive(Clone)]
pub struct Settings {
    /// The rules that are in force.
    pub gates: Gates,
    /// What this Windlass decides of machines.
    pub defaults: Defaults,
    /// How the machines of clusters of a class are kept back until packages are in. Nothing where such clusters are not looked
    /// after at all: a rehearsal of any other cluster has nothing to do with their controllers, and is not to wait for them.
    pub classes: Option<HoldBy>,
    /// Whether classic clusters are looked after, whose release is a label.
    pub labels: bool,
    /// Where the APIs of workload clusters can be reached.
    pub doors: Arc<dyn Doors>,
    /// Makes certificates and keys of new clusters.
    pub keys: Arc<dyn KeyMaker>,
    /// Who crashes, and when.
    pub crashes: Crashes,
    /// Where the event log of the controllers goes.
    pub trace: Option<Arc<dyn Trace>>,
    /// What is as it would have been once. For tests of the sweep.
    pub old: Vec<Old>,
}

impl Settings {
    /// For rehearsals: all rules, no sockets, stand-ins for keys, and nobody crashes.
    pub fn rehearsal(world: &World) -> Self {
        Self {
            gates: Gates::all(),
            defaults: Defaults::default(),
            classes: None,
            labels: false,
            doors: Arc::new(NoDoors),
            keys: Arc::new(StandInKeys::new(world.settings().seed)),
            crashes: Crashes::none().or_of(&world.settings().faults),
            trace: None,
            old: Vec::new(),
        }
    }
}

/// A World with Windlass on it. Cheap to clone: clones are the same assembly.
#[derive(Clone)]
pub struct Assembly {
    world: World,
    settings: Settings,
    traffic: Traffic,
    /// The part of it that answers to reviews and questions took.
    answers: Traffic,
    metrics: Option<Arc<Metrics>>,
    keys: Arc<CountedKeys>,
    /// The management API, where it is not the World's own.
    management: Option<Client>,
    /// What is remembered where something is as it would have been once.
    memory: Memory,
}

impl Assembly {
    /// Puts Windlass on a World that has none yet: its webhooks are added here, and once.
    pub fn new(world: World, settings: Settings) -> Self {
        settings.crashes.timed_by(&world.settings().clock);
        let keys = Arc::new(CountedKeys::new(Arc::clone(&settings.keys)));
        let (traffic, memory) = (Traffic::default(), Memory::default());
        let answers = Traffic::default();
        let assembly = Self { world, settings, traffic, answers, metrics: None, keys, management: None, memory };
        let faults = assembly.world.faults().clone();
        let Settings { classes, labels, .. } = assembly.settings;
        webhook::add(assembly.world.management(), (classes, labels), &assembly.answering(), &faults);
        assembly
    }

    /// The same, with its looks at clusters counted there.
    #[must_use]
    pub fn counted_by(self, metrics: Arc<Metrics>) -> Self {
        Self { metrics: Some(metrics), ..self }
    }

    /// The same with another management API: controllers, upgraders and the simulators of machines and of Cluster API are its
    /// clients. Workload clusters are the World's own. Its admission is for whoever has that API to see to.
    #[must_use]
    pub fn on(self, management: Client) -> Self {
        Self { management: Some(management), ..self }
    }

    /// The World.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// What the controllers, the upgrader and the simulators asked so far.
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// The part of it that answers to reviews of admission and to questions of Cluster API took.
    pub fn answers(&self) -> &Traffic {
        &self.answers
    }

    /// How many certificates and keys were made so far.
    pub fn keys_made(&self) -> u64 {
        self.keys.made()
    }

    /// The writes of Windlass so far.
    pub fn crashes(&self) -> &Crashes {
        &self.settings.crashes
    }

    /// Runs everything until `stop`.
    pub async fn run(&self, stop: impl Future<Output = ()>) {
        let stop = stop.shared();
        let programs = program::Upgraders::new(self.clone());
        let client = self.client(&Crashes::none().process(Caller::Simulators));
        let world = self.run_world(client, Arc::new(programs), stop.clone());
        tokio::join!(world, acting(Actor::Windlass, self.run_controllers(stop)));
    }

    /// Runs everything but the controllers until `stop`: they are processes of their own, and clients of the management API. Whoever
    /// looks after the World's admission and its upgraders is in this one.
    pub async fn run_without_controllers(&self, stop: impl Future<Output = ()>) {
        let programs = program::Upgraders::new(self.clone());
        let client = self.client(&Crashes::none().process(Caller::Simulators));
        Box::pin(self.run_world(client, Arc::new(programs), stop)).await;
    }

    /// The World's part of it.
    async fn run_world(&self, client: Client, programs: Arc<dyn Programs>, stop: impl Future<Output = ()>) {
        let doors = Arc::clone(&self.settings.doors);
        if self.management.is_some() {
            Box::pin(self.world.run_on(client, programs, doors, stop)).await;
        } else {
            self.world.run_through(client, programs, doors, stop).await;
        }
    }

    /// What a process of controllers is given that never crashes.
    pub(crate) fn controllers(&self) -> Access {
        self.access(&Crashes::none().process(Caller::Controllers))
    }

    /// Runs the controllers, as the scenario has it.
    async fn run_controllers(&self, stop: impl Future<Output = ()> + Clone) {
        match self.world.faults().split() {
            None => self.keep_running(stop).await,
            Some(split) => self.run_split(&split, stop).await,
        }
    }

    /// Controllers that stand still while others take over, and then go on with what they were at until they notice (F13).
    async fn run_split(&self, split: &Split, stop: impl Future<Output = ()> + Clone) {
        let say = |text: &str| self.world.faults().say_split(split, text);
        let process = self.settings.crashes.process(Caller::Controllers);
        let mut old = pin!(self.run_process(&process, stop.clone()));
        tokio::select! {
            biased;
            () = &mut old => return,
            () = tokio::time::sleep(split.stops_after) => say("the controllers stand still"),
        }
        // From here on nobody polls them: their requests are under way, and they hear of nothing.
        tokio::time::sleep(split.takeover.min(split.lasts)).await;
        let mut new = pin!(self.keep_running(stop));
        let alone = split.lasts.saturating_sub(split.takeover);
        tokio::select! {
            biased;
            () = &mut new => return,
            () = tokio::time::sleep(alone) => say("the controllers go on that stood still, beside those that took over"),
        }
        tokio::select! {
            biased;
            () = &mut new => return,
            () = async { tokio::select! {
                () = &mut old => {}
                () = tokio::time::sleep(split.notices_after) => {}
            } } => say("the controllers that stood still have noticed, and end"),
        }
        new.await;
    }

    /// Runs the controllers, and starts them again when they have crashed.
    async fn keep_running(&self, stop: impl Future<Output = ()> + Clone) {
        loop {
            let process = self.settings.crashes.process(Caller::Controllers);
            // A crash is seen first: what has crashed makes no further step.
            tokio::select! {
                biased;
                cause = process.died() => self.say_crash(Caller::Controllers, &cause),
                () = self.run_process(&process, stop.clone()) => return,
            }
            let mut stopped = pin!(stop.clone());
            tokio::select! {
                biased;
                () = &mut stopped => return,
                () = tokio::time::sleep(RESTART) => {}
            }
        }
    }

    /// All controllers of one process.
    async fn run_process(&self, process: &Process, stop: impl Future<Output = ()> + Clone) {
        let Settings { classes, labels, .. } = self.settings;
        controllers::run(self.access(process), Kinds { classes, labels }, stop).await;
    }

    /// Says in the timeline that a process has crashed.
    fn say_crash(&self, caller: Caller, cause: &str) {
        let now = self.world.settings().clock.now();
        self.world.recorder().mark(now, "management", "", caller.as_str(), cause);
    }

    /// What controllers are given on a World.
    fn access(&self, process: &Process) -> Access {
        let world = self.world.settings();
        Access {
            client: self.client(process),
            workloads: Arc::new(self.workloads(process)),
            keys: self.keys(),
            clock: self.world.faults().clock(process.caller(), &world.clock),
            seed: world.seed.child("controllers"),
            gates: self.settings.gates.clone(),
            defaults: self.settings.defaults.clone(),
            trace: self.settings.trace.clone(),
            metrics: self.metrics.clone(),
        }
    }

    /// A client of the management API for a process.
    fn client(&self, process: &Process) -> Client {
        if let Some(client) = &self.management {
            let through = Seam::new(Through(client.clone()), Place::Management, process.clone(), self.traffic.clone());
            return Client::new(SteadyLayer.layer(through), "default");
        }
        let server = self.world.management().clone();
        let through = Seam::new(server, Place::Management, process.clone(), self.traffic.clone());
        let (faults, caller) = (self.world.faults(), process.caller());
        let client = if faults.is_empty() {
            Client::new(SteadyLayer.layer(through), "default")
        } else {
            let upset = Faulty::new(through, faults.clone(), caller, Place::Management, "management");
            Client::new(SteadyLayer.layer(upset), "default")
        };
        self.aged(client, caller, Place::Management)
    }

    /// A client of the management API for whoever answers reviews and questions.
    fn answering(&self) -> Client {
        let process = Crashes::none().process(Caller::Controllers);
        let through = Through(self.client(&process));
        Client::new(Seam::new(through, Place::Management, process, self.answers.clone()), "default")
    }

    /// A client of Windlass as it would have been once, where that is asked for.
    fn aged(&self, client: Client, caller: Caller, place: Place) -> Client {
        let old = if caller == Caller::Simulators { &[] } else { self.settings.old.as_slice() };
        Aged::client(client, old, (caller, place), &self.keys(), &self.memory)
    }

    fn keys(&self) -> Arc<dyn KeyMaker> {
        Arc::clone(&self.keys) as Arc<dyn KeyMaker>
    }

    /// The way to workload clusters for a process.
    fn workloads(&self, process: &Process) -> access::InProcess {
        let ages = self.clone();
        let workloads = access::InProcess::new(self.world.workloads().clone(), process.clone(), self.traffic.clone());
        workloads.aged_by(self.settings.old.clone(), self.memory.clone(), move |client, caller| {
            ages.aged(client, caller, Place::Workload)
        })
    }
}

/// The way to the workload clusters of a World for somebody who is no part of it.
pub(crate) fn workloads(world: &World) -> impl Workloads {
    let process = Crashes::none().process(Caller::Controllers);
    access::InProcess::new(world.workloads().clone(), process, Traffic::default())
}
