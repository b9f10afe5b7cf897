//! Faults, each shown biting: what it does to whom, and that the timeline says so.

mod disks;
mod etcd;
mod fleets;
mod forks;
mod machines;
mod networks;
mod nodes;
mod people;
mod pods;
mod requests;
mod table;
mod times;
mod volumes;
mod watches;

use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::PostParams;
use kube::{Api, Client};
use windlass_api::kind::cluster_api::Machine;
use windlass_api::kind::is_true;
use windlass_runtime::chance::Seed;
use windlass_runtime::virtual_time::run_virtual;
use windlass_sim::durations::Durations;
use windlass_sim::fault::{Fault, Scenario, When};
use windlass_sim::timeline::What;
use windlass_sim::world::{Settings, World};

use crate::world::{base, living};

/// Runs a body to its end in a World where everything lives, and something goes wrong.
fn in_world_with<F: Future<Output = T>, T>(seed: u64, faults: Scenario, body: impl FnOnce(World) -> F) -> T {
    run_virtual(Seed(seed), base(), |time| async move {
        let settings = Settings { clock: time.clock, seed: time.seed, durations: Durations::default(), faults };
        let world = World::new(settings).await.unwrap();
        living(&world, body(world.clone())).await
    })
    .unwrap()
}

fn once(fault: Fault) -> Scenario {
    Scenario::default().and(fault, When::times(1))
}

async fn seconds(count: u64) {
    tokio::time::sleep(Duration::from_secs(count)).await;
}

/// What the timeline says of faults.
fn marks(world: &World) -> Vec<String> {
    let events = world.recorder().events().into_iter();
    events.filter(|event| event.what == What::Fault).map(|event| event.text).collect()
}

/// The timeline says that it bit, in these words.
fn said(world: &World, words: &str) {
    let marks = marks(world);
    assert!(marks.iter().any(|mark| mark.contains(words)), "{words:?} is not in {marks:#?}");
}

fn config_map(name: &str) -> ConfigMap {
    serde_json::from_value(serde_json::json!({"metadata": {"name": name}})).unwrap()
}

async fn create(client: &Client, name: &str) -> Result<ConfigMap, kube::Error> {
    Api::default_namespaced(client.clone()).create(&PostParams::default(), &config_map(name)).await
}

async fn exists(world: &World, name: &str) -> bool {
    Api::<ConfigMap>::default_namespaced(world.client()).get_opt(name).await.unwrap().is_some()
}

/// The status of a refusal; 0 where there was no answer at all.
fn code(result: Result<impl Debug, kube::Error>) -> u16 {
    match result.unwrap_err() {
        kube::Error::Api(status) => status.code,
        _ => 0,
    }
}

fn is_available(machine: &Machine) -> bool {
    machine.status.as_ref().is_some_and(|status| is_true(&status.conditions, "Available"))
}
