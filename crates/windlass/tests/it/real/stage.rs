//! Where a script runs: in a World of its own and in virtual time, which is what a rehearsal would say; or with a real API server,
//! and everybody as its clients.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use kube::Client;
use windlass_plan::resolve::hold::HoldBy;
use windlass_rehearse::assembly::{Assembly, Settings};
use windlass_rehearse::crash::Crashes;
use windlass_runtime::chance::Seed;
use windlass_runtime::clock::Clock;
use windlass_runtime::virtual_time::run_virtual;
use windlass_sim::durations::{Durations, Spread};
use windlass_sim::fault::Scenario;
use windlass_sim::world::{self, World};

use super::answers::{self, Answers};
use super::packages;
use super::server::Server;
use super::witness::Witness;

const SEED: Seed = Seed(1);

/// Which clusters are looked after, and who is killed.
#[derive(Clone, Default)]
pub struct How {
    /// Those of a class, held like this.
    pub classes: Option<HoldBy>,
    /// Those whose release is a label.
    pub labels: bool,
    pub crashes: Crashes,
}

/// What a script is given.
#[derive(Clone)]
pub struct Stage {
    /// The management API.
    pub client: Client,
    /// The machines and the workload clusters.
    pub world: World,
    /// How often to look.
    pub look: Duration,
    pub crashes: Crashes,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Ran<T> {
    /// What the script says.
    pub came: T,
    /// How many objects of each kind there ever were.
    pub objects: BTreeMap<String, usize>,
    /// What was seen that must not be.
    pub complaints: Vec<String>,
}

/// What somebody does, and sees.
pub trait Script<T>: Fn(Stage) -> LocalBoxFuture<'static, T> {}

impl<T, F: Fn(Stage) -> LocalBoxFuture<'static, T>> Script<T> for F {}

/// Runs a script with everything that was seen meanwhile.
async fn seen<T>(stage: Stage, script: &impl Script<T>) -> Ran<T> {
    let witness = Witness::default();
    let (client, look) = (stage.client.clone(), stage.look);
    let play = async {
        let came = script(stage).await;
        // What is on its way to the watches arrives.
        tokio::time::sleep(look * 4).await;
        came
    };
    let came = tokio::select! {
        biased;
        () = witness.watch(&client) => panic!("a watch has ended"),
        came = play => came,
    };
    Ran { came, objects: witness.made(), complaints: witness.complaints() }
}

/// In a World of its own, without a socket.
pub fn rehearsed<T: 'static>(how: &How, script: &impl Script<T>) -> Ran<T> {
    let founded = "2026-01-01T00:00:00Z".parse().unwrap();
    run_virtual(SEED, founded, |time| async move {
        let settings = world::Settings {
            clock: time.clock,
            seed: time.seed,
            durations: Durations::default(),
            faults: Scenario::default(),
        };
        let world = World::new(settings).await.unwrap();
        let How { classes, labels, crashes } = how.clone();
        let settings = Settings { classes, labels, crashes: crashes.clone(), ..Settings::rehearsal(&world) };
        let assembly = Assembly::new(world.clone(), settings);
        let stage = Stage { client: world.client(), world: world.clone(), look: Duration::from_secs(5), crashes };
        let (came, stop) = tokio::sync::oneshot::channel();
        let running = async {
            let ran = seen(stage, script).await;
            assert!(came.send(ran).is_ok());
        };
        assembly.run(running).await;
        assert!(world.recorder().violations().is_empty(), "{:?}", world.recorder().violations());
        stop.await.unwrap()
    })
    .unwrap()
}

/// On a real API server that is started for it.
pub fn really<T: 'static>(assets: PathBuf, how: &How, script: &impl Script<T>) -> Ran<T> {
    real(async {
        let server = Server::start(assets).await;
        on(&server, how, script).await
    })
}

pub fn real<F: Future>(body: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(body)
}

/// On this server, by two replicas.
pub async fn on<T: 'static>(server: &Server, how: &How, script: &impl Script<T>) -> Ran<T> {
    let client = server.client().await;
    let How { classes, labels, crashes } = how.clone();
    let is_asked = classes.is_some() || labels;
    if is_asked {
        answers::install(server);
    }
    furnish(&client).await;
    let durations = Durations::all(Spread { p50: 200, p90: 400 });
    let settings = world::Settings { clock: Clock::wall(), seed: SEED, durations, faults: Scenario::default() };
    let world = World::new(settings).await.unwrap();
    if classes.is_some() {
        packages::aggregate(server, &client, &world).await;
    }
    let hold = classes.unwrap_or_default().to_string();
    let answers = if is_asked { Some(Answers::start(server, &client, &hold).await) } else { None };
    let settings = Settings { classes, labels, crashes: crashes.clone(), ..Settings::rehearsal(&world) };
    let assembly = Assembly::new(world.clone(), settings).on(client.clone());
    let stage = Stage { client, world, look: Duration::from_millis(250), crashes };
    let (came, stop) = tokio::sync::oneshot::channel();
    let running = async {
        let ran = seen(stage, script).await;
        assert!(came.send(ran).is_ok());
    };
    assembly.run_replicas(&[None, None], running.boxed_local()).await;
    drop(answers);
    stop.await.unwrap()
}

/// Tried again for as long as definitions are not established yet.
pub async fn furnish(client: &Client) {
    let mut furnished = World::furnish(client).await;
    for _ in 0..100 {
        if furnished.is_ok() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        furnished = World::furnish(client).await;
    }
    furnished.unwrap();
}
