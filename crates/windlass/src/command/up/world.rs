//! The World of `up`, with Windlass on it, on a thread and a clock of its own.

use std::io;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::thread;

use tokio::sync::oneshot;
use windlass_apiserver::ApiServer;
use windlass_controller::metrics::Metrics;
use windlass_plan::gate::Gates;
use windlass_plan::render::Defaults;
use windlass_plan::resolve::hold::HoldBy;
use windlass_rehearse::assembly::{self, Assembly};
use windlass_rehearse::crash::Crashes;
use windlass_runtime::chance::Seed;
use windlass_runtime::virtual_time::{Virtual, run_paced};
use windlass_sim::durations::Durations;
use windlass_sim::fault::Scenario;
use windlass_sim::timeline::Recorder;
use windlass_sim::world::{self, KeptStores, World};

use super::doors::Listening;
use super::kept::{Kept, Past};
use super::keys::Authorities;
use super::wall_now;

/// What the Windlass on it is like.
pub struct Ours {
    /// What it decides by itself.
    pub defaults: Defaults,
    /// How it keeps machines back until packages are in.
    pub hold_by: HoldBy,
    /// Where it counts.
    pub metrics: Arc<Metrics>,
}

/// A World that runs. Dropping it stops it.
pub struct Running {
    ready: oneshot::Receiver<Result<ApiServer, world::Error>>,
    ended: oneshot::Receiver<()>,
    /// What decides everything random in it.
    pub seed: Seed,
    _stop: oneshot::Sender<()>,
}

impl Running {
    /// Starts it. Its time goes so many `times` as fast as ours; the times of the scenario are its own, from now on.
    pub fn start(
        times: NonZeroU32,
        faults: Scenario,
        recorder: Recorder,
        ours: Ours,
        (doors, keys): (Listening, Authorities),
        past: Option<Past>,
    ) -> io::Result<Self> {
        let (became_ready, ready) = oneshot::channel();
        let (alive, ended) = oneshot::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let begins = wall_now();
        // Two runs should not give two objects the same uid, so the seed is the time of the start. One that goes on knows which
        // uids it gave, and what time it was: for those in it no time has passed since.
        let seed =
            past.as_ref().map_or(Seed(u64::try_from(begins.as_microsecond()).unwrap_or_default()), |past| past.seed);
        let now = past.as_ref().map_or(begins, |past| past.now);
        let stores = past.map(|past| past.stores);
        let body = move || {
            // Dropped when the thread ends, in whichever way: that is what it says.
            let _alive = alive;
            run_paced(seed, now, times, |time| {
                live(time, faults, (recorder, ours), (doors, keys), stores, (became_ready, stopped))
            })
        };
        thread::Builder::new().name("windlass-world".into()).spawn(body)?;
        Ok(Self { ready, ended, seed, _stop: stop })
    }

    /// Its management API, once it is furnished; `None` if it broke down before.
    pub async fn management(&mut self) -> Option<Result<ApiServer, world::Error>> {
        (&mut self.ready).await.ok()
    }

    /// Resolves if it ends by itself, which it never should.
    pub async fn ended(&mut self) {
        // The sender never sends.
        drop((&mut self.ended).await);
    }
}

async fn live(
    time: Virtual,
    faults: Scenario,
    (recorder, ours): (Recorder, Ours),
    (doors, keys): (Listening, Authorities),
    stores: Option<KeptStores>,
    (ready, stopped): (oneshot::Sender<Result<ApiServer, world::Error>>, oneshot::Receiver<()>),
) {
    let crashes = Crashes::none().or_of(&faults);
    let settings = world::Settings { clock: time.clock, seed: time.seed, durations: Durations::default(), faults };
    let keeper = keys.keeper().map(Kept::keeper);
    let world = match (keeper, stores) {
        (Some(keeper), Some(stores)) => Ok(World::resumed(settings, recorder, keeper, stores)),
        (Some(keeper), None) => World::kept(settings, recorder, keeper).await,
        (None, _) => World::with_management_packages(settings, recorder).await,
    };
    let world = match world {
        Ok(world) => world,
        Err(error) => {
            // Whoever waited is gone, or is told.
            drop(ready.send(Err(error)));
            return;
        }
    };
    let settings = assembly::Settings {
        gates: Gates::all(),
        defaults: ours.defaults,
        classes: Some(ours.hold_by),
        labels: true,
        doors: Arc::new(doors),
        keys: Arc::new(keys),
        crashes,
        trace: None,
        old: Vec::new(),
    };
    let assembly = Assembly::new(world, settings).counted_by(ours.metrics);
    drop(ready.send(Ok(assembly.world().management().clone())));
    assembly
        .run(async {
            // It never sends: it is dropped to stop.
            drop(stopped.await);
        })
        .await;
}
