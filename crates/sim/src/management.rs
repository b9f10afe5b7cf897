//! The simulators of the management side: clients of its API, as they would be on a real one.
//!
//! ```text
//! Cluster ──▶ WCPCluster                       cluster            infrastructure/cluster
//! MachineDeployment ──▶ MachineSet ──▶ Machine machine_deployment machine_set  machine
//! Machine ──▶ KubeadmConfig ──▶ Secret         bootstrap
//!        └──▶ WCPMachine ──▶ Workload::boot    infrastructure/machine
//! Cluster ──▶ KubeadmControlPlane ──▶ Machine   topology           kubeadm_control_plane
//! MachineHealthCheck ──▶ Machine                machine_health_check
//! Job ──▶ Pod ──▶ Programs::run                job
//! ```
//!
//! Each controller is a function of one object and of what the watches have seen. They share one runner, so that each kind is
//! watched once and each event decoded once; a key of the runner says which controller it is for ([`subject`]).

mod bootstrap;
mod cluster;
mod conditions;
mod context;
pub(crate) mod contract;
mod defaults;
mod extension;
mod infrastructure;
mod job;
mod kubeadm_control_plane;
mod machine;
mod machine_deployment;
mod machine_health_check;
mod machine_set;
mod ownership;
mod part;
mod pause;
mod secret;
mod subject;
mod time_outs;
mod topology;
mod wiring;
mod write;

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use windlass_runtime::chance::Seed;
use windlass_runtime::clock::Clock;
use windlass_runtime::key::Key;
use windlass_runtime::runner::{Options, Order, Outcome};

use crate::actor::{Caller, acting};
use crate::door::Doors;
use crate::durations::Durations;
use crate::fault::Faults;
use crate::program::Programs;
use crate::workload::Workloads;
use cluster::Pace;
use context::{Context, Error, Turn};
use job::Processes;
use kubeadm_control_plane::{Components, Wire};
use machine::Nodes;
use subject::Subject;
use topology::Applied;
use wiring::Watches;

pub use infrastructure::provided::Providers;
pub use infrastructure::{Infrastructure, Zone};

/// The simulators of the management side: infrastructure, Cluster API, the kubeadm bootstrap provider, and Jobs.
pub struct Management {
    /// The management API.
    pub client: Client,
    /// What machines are booted into.
    pub workloads: Workloads,
    /// What the pods of Jobs run.
    pub programs: Arc<dyn Programs>,
    /// Where the APIs of workload clusters are.
    pub doors: Arc<dyn Doors>,
    /// What time it is.
    pub clock: Clock,
    /// What decides everything random.
    pub seed: Seed,
    /// How long things take.
    pub durations: Durations,
    /// What goes wrong.
    pub faults: Faults,
    /// The infrastructure beside the one that is known here.
    pub providers: Providers,
}

/// How long after a lost race an object is looked at again, if its watch has not told of the change by then.
const CONFLICT_PAUSE: Duration = Duration::from_millis(100);

impl Management {
    /// Runs all simulators until `stop`. What runs in pods then is killed.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let watches = Watches::new(&self.client, &self.providers);
        let caches = watches.caches();
        let (processes, exits) = Processes::new(Arc::clone(&self.programs));
        let clock = self.faults.clock(Caller::Simulators, &self.clock);
        let mut options = Options::new(self.clock.clone(), self.seed.child("management"));
        if let Some(chance) = self.faults.order(Caller::Simulators) {
            options.order = Order::Permuted(chance);
        }
        let nodes = Nodes::default();
        let node_changes = wiring::nodes(&self.workloads, nodes.clone(), caches.clone());
        let components = Components::default();
        let component_changes = wiring::components(&self.workloads, components.clone(), caches.clone());
        let runner =
            watches.runner(options, &caches).triggers(exits).triggers(node_changes).triggers(component_changes);
        let context = Context {
            client: self.client,
            workloads: self.workloads,
            doors: self.doors,
            clock,
            seed: self.seed.child("management"),
            durations: self.durations,
            faults: self.faults,
            caches,
            nodes,
            applied: Applied::default(),
            pace: Pace::default(),
            components,
            wire: Wire::default(),
            processes,
            programs: self.programs,
            placing: Arc::default(),
        };
        runner.run_keys(Arc::new(context), reconcile, stop).await;
    }
}

/// Brings one object forward, in the name of who looks after its kind.
async fn reconcile(key: Key, turn: Turn) -> Result<Outcome, Error> {
    let (subject, key) = Subject::of(key);
    acting(subject.actor(), bring_forward(subject, key, turn)).await
}

/// Brings one object forward. What is gone is nobody's business, except for the processes that a Job leaves behind.
async fn bring_forward(subject: Subject, key: Key, turn: Turn) -> Result<Outcome, Error> {
    let caches = &turn.caches;
    let result = match subject {
        Subject::Cluster => match caches.clusters.get(&key) {
            Some(cluster) => cluster::reconcile(&turn, &cluster).await,
            None => Ok(Outcome::done()),
        },
        Subject::ClusterInfrastructure => {
            let mut outcome = Ok(Outcome::done());
            for infrastructure in caches.all_provided(&key) {
                outcome = infrastructure::cluster::reconcile(&turn, &infrastructure).await;
            }
            outcome
        }
        Subject::Machine => match caches.machines.get(&key) {
            Some(machine) => machine::reconcile(&turn, &machine).await,
            None => Ok(Outcome::done()),
        },
        Subject::MachineInfrastructure => {
            let mut outcome = Ok(Outcome::done());
            for infrastructure in caches.all_provided(&key) {
                outcome = infrastructure::machine::reconcile(&turn, &infrastructure).await;
            }
            outcome
        }
        Subject::Bootstrap => match caches.bootstraps.get(&key) {
            Some(config) => bootstrap::reconcile(&turn, &config).await,
            None => Ok(Outcome::done()),
        },
        Subject::MachineSet => match caches.machine_sets.get(&key) {
            Some(set) => machine_set::reconcile(&turn, &set).await,
            None => Ok(Outcome::done()),
        },
        Subject::MachineDeployment => match caches.machine_deployments.get(&key) {
            Some(deployment) => machine_deployment::reconcile(&turn, &deployment).await,
            None => Ok(Outcome::done()),
        },
        Subject::KubeadmControlPlane => match caches.control_planes.get(&key) {
            Some(control_plane) => kubeadm_control_plane::reconcile(&turn, &control_plane).await,
            None => Ok(Outcome::done()),
        },
        Subject::Topology => match caches.clusters.get(&key) {
            Some(cluster) => topology::reconcile(&turn, &cluster).await,
            None => Ok(Outcome::done()),
        },
        Subject::ClusterClass => match caches.cluster_classes.get(&key) {
            Some(class) => topology::reconcile_class(&turn, &class).await,
            None => Ok(Outcome::done()),
        },
        Subject::MachineHealthCheck => match caches.health_checks.get(&key) {
            Some(check) => machine_health_check::reconcile(&turn, &check).await,
            None => Ok(Outcome::done()),
        },
        Subject::Extension => match caches.extensions.get(&key) {
            Some(extension) => extension::reconcile(&turn, &extension).await,
            None => Ok(Outcome::done()),
        },
        Subject::Job => job::reconcile(&turn, &key).await,
    };
    match result {
        Err(error) if error.is_conflict() => Ok(Outcome::requeue_after(CONFLICT_PAUSE)),
        result => result,
    }
}
