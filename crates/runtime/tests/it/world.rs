//! A stub, a client of it, and a runner over its config maps, in virtual time.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use windlass_runtime::chance::Seed;
use windlass_runtime::clock::Clock;
use windlass_runtime::runner::{Ctx, Options, Outcome, Runner, Summary};
use windlass_runtime::trace::TraceLog;
use windlass_runtime::virtual_time::run_virtual;
use windlass_runtime::watch::Watch;

use crate::stub::Stub;

pub struct World {
    pub stub: Stub,
    pub clock: Clock,
    pub seed: Seed,
    pub log: Arc<TraceLog>,
}

/// Runs a test in virtual time.
pub fn world<F: Future<Output = T>, T>(body: impl FnOnce(World) -> F) -> T {
    world_of(Seed(1), body)
}

pub fn world_of<F: Future<Output = T>, T>(seed: Seed, body: impl FnOnce(World) -> F) -> T {
    let base = "2026-01-01T00:00:00Z".parse().unwrap();
    run_virtual(seed, base, |time| {
        body(World { stub: Stub::default(), clock: time.clock, seed: time.seed, log: Arc::default() })
    })
    .unwrap()
}

impl World {
    pub fn options(&self) -> Options {
        let trace = Some(Arc::clone(&self.log) as _);
        Options { trace, ..Options::new(self.clock.clone(), self.seed) }
    }

    pub fn watch(&self) -> Watch<ConfigMap> {
        Watch::all(self.stub.client())
    }

    pub fn runner(&self) -> Runner<ConfigMap> {
        Runner::new("test", self.watch(), self.options())
    }

    /// The log without what begins with the date, since tests stay within one.
    pub fn lines(&self) -> Vec<String> {
        let lines = self.log.lines().into_iter();
        lines.map(|line| line.trim_start_matches("2026-01-01T").replace(" test ", " ")).collect()
    }

    /// Those lines of the log that contain this text.
    pub fn lines_with(&self, text: &str) -> Vec<String> {
        self.lines().into_iter().filter(|line| line.contains(text)).collect()
    }
}

/// Runs with a reconciler for these seconds of virtual time.
pub async fn run_for<R, F, E>(runner: Runner<ConfigMap>, seconds: u64, reconcile: R) -> Summary
where
    R: Fn(Arc<ConfigMap>, Ctx<()>) -> F + Send + Sync + 'static,
    F: Future<Output = Result<Outcome, E>> + Send + 'static,
    E: std::error::Error + 'static,
{
    runner.run(Arc::new(()), reconcile, sleep(seconds)).await
}

/// A reconciler that does nothing.
pub async fn nothing(_: Arc<ConfigMap>, _: Ctx<()>) -> Result<Outcome, Infallible> {
    Ok(Outcome::done())
}

pub async fn sleep(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

pub fn name(object: &ConfigMap) -> String {
    object.metadata.name.clone().unwrap()
}

pub fn value(object: &ConfigMap, key: &str) -> String {
    object.data.as_ref().and_then(|data| data.get(key)).cloned().unwrap_or_default()
}

/// A count by name, shared with reconcilers.
#[derive(Clone, Default)]
pub struct Tally(Arc<Mutex<BTreeMap<String, u32>>>);

impl Tally {
    /// Counts one more and returns how many there are.
    pub fn add(&self, name: &str) -> u32 {
        let mut counts = self.0.lock().unwrap();
        let count = counts.entry(name.into()).or_default();
        *count += 1;
        *count
    }

    pub fn subtract(&self, name: &str) {
        *self.0.lock().unwrap().get_mut(name).unwrap() -= 1;
    }

    pub fn of(&self, name: &str) -> u32 {
        self.0.lock().unwrap().get(name).copied().unwrap_or_default()
    }

    pub fn total(&self) -> u32 {
        self.0.lock().unwrap().values().sum()
    }
}
