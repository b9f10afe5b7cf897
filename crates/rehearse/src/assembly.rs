//! The controllers and a World, joined in one runtime.
//!
//! The World takes the place of the management cluster, of the infrastructure and of all workload clusters. What runs on it is
//! what runs on a real one: the controllers, the admission webhook, and the upgrader in the pods of its Job.

mod access;
mod program;
mod webhook;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use kube::Client;
use windlass_controller::access::{Access, KeyMaker, Workloads};
use windlass_controller::reconcile;
use windlass_plan::gate::Gates;
use windlass_runtime::trace::Trace;
use windlass_sim::door::Doors;
use windlass_sim::world::World;

use crate::crash::{Crashes, Process};
use crate::seam::Seam;
use crate::stand_in::{NoDoors, StandInKeys};
use crate::traffic::{Actor, Place, Traffic};

/// How long it takes until crashed controllers are back: about what a Deployment needs to start a pod again.
const RESTART: Duration = Duration::from_secs(5);

/// How an assembly is put together.
#[derive(Clone)]
pub struct Settings {
    /// The rules that are in force.
    pub gates: Gates,
    /// Where the APIs of workload clusters can be reached.
    pub doors: Arc<dyn Doors>,
    /// Makes certificates and keys of new clusters.
    pub keys: Arc<dyn KeyMaker>,
    /// Who crashes, and when.
    pub crashes: Crashes,
    /// Where the event log of the controllers goes.
    pub trace: Option<Arc<dyn Trace>>,
}

impl Settings {
    /// For rehearsals: all rules, no sockets, stand-ins for keys, and nobody crashes.
    pub fn rehearsal(world: &World) -> Self {
        Self {
            gates: Gates::all(),
            doors: Arc::new(NoDoors),
            keys: Arc::new(StandInKeys::new(world.settings().seed)),
            crashes: Crashes::none(),
            trace: None,
        }
    }
}

/// A World with Windlass on it. Cheap to clone: clones are the same assembly.
#[derive(Clone)]
pub struct Assembly {
    world: World,
    settings: Settings,
    traffic: Traffic,
}

impl Assembly {
    /// Puts Windlass on a World that has none yet: its webhook is added here, and once.
    pub fn new(world: World, settings: Settings) -> Self {
        let assembly = Self { world, settings, traffic: Traffic::default() };
        let process = Crashes::none().process(Actor::Controllers);
        webhook::add(assembly.world.management(), assembly.client(&process));
        assembly
    }

    /// The World.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// What the controllers, the upgrader and the simulators asked so far.
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// The writes of Windlass so far.
    pub fn crashes(&self) -> &Crashes {
        &self.settings.crashes
    }

    /// Runs everything until `stop`.
    pub async fn run(&self, stop: impl Future<Output = ()>) {
        let stop = stop.shared();
        let programs = program::Upgraders::new(self.clone());
        let client = self.client(&Crashes::none().process(Actor::Simulators));
        let doors = Arc::clone(&self.settings.doors);
        let world = self.world.run_through(client, Arc::new(programs), doors, stop.clone());
        tokio::join!(world, self.run_controllers(stop));
    }

    /// What a process of controllers is given that never crashes.
    pub(crate) fn controllers(&self) -> Access {
        self.access(&Crashes::none().process(Actor::Controllers))
    }

    /// Runs the controllers, and starts them again when they have crashed.
    async fn run_controllers(&self, stop: impl Future<Output = ()> + Clone) {
        loop {
            let process = self.settings.crashes.process(Actor::Controllers);
            // A crash is seen first: what has crashed makes no further step.
            tokio::select! {
                biased;
                () = process.died() => {}
                () = reconcile::run(self.access(&process), stop.clone()) => return,
            }
            let mut stopped = pin!(stop.clone());
            tokio::select! {
                biased;
                () = &mut stopped => return,
                () = tokio::time::sleep(RESTART) => {}
            }
        }
    }

    /// What controllers are given on a World.
    fn access(&self, process: &Process) -> Access {
        let world = self.world.settings();
        Access {
            client: self.client(process),
            workloads: Arc::new(self.workloads(process)),
            keys: Arc::clone(&self.settings.keys),
            clock: world.clock.clone(),
            seed: world.seed.child("controllers"),
            gates: self.settings.gates.clone(),
            trace: self.settings.trace.clone(),
        }
    }

    /// A client of the management API for a process.
    fn client(&self, process: &Process) -> Client {
        let server = self.world.management().clone();
        Client::new(Seam::new(server, Place::Management, process.clone(), self.traffic.clone()), "default")
    }

    /// The way to workload clusters for a process.
    fn workloads(&self, process: &Process) -> access::InProcess {
        access::InProcess::new(self.world.workloads().clone(), process.clone(), self.traffic.clone())
    }
}

/// The way to the workload clusters of a World for somebody who is no part of it.
pub(crate) fn workloads(world: &World) -> impl Workloads {
    let process = Crashes::none().process(Actor::Controllers);
    access::InProcess::new(world.workloads().clone(), process, Traffic::default())
}
