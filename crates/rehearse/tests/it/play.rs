//! What tests share that watch an update while it goes on.

use std::time::Duration;

use http::Request;
use jiff::Timestamp;
use k8s_openapi::api::events::v1::Event;
use kube::api::ListParams;
use kube::{Api, Client};
use tower::util::MapRequest;
use windlass_api::kind::cluster_update::ClusterUpdateStatus;
use windlass_api::kind::tanzu::TanzuKubernetesClusterStatus;
use windlass_apiserver::auth::User;
use windlass_plan::render::Defaults;
use windlass_plan::resolve::hold::HoldBy;
use windlass_rehearse::assembly::{Assembly, Settings};
use windlass_rehearse::settle;
use windlass_runtime::virtual_time::run_virtual;
use windlass_sim::fault::Scenario;
use windlass_sim::world::{self, World};

use crate::start::{SEED, cluster_name};

/// Runs Windlass on a fork of a World from this moment on, until the script is done; what is left of it, and when that was.
pub fn played<F: Future<Output = ()>>(
    start: &World,
    from: Timestamp,
    (faults, defaults): (Scenario, Defaults),
    script: impl FnOnce(World) -> F,
) -> (World, Timestamp) {
    played_with(start, from, (faults, defaults, None), script)
}

/// The same, with clusters of a class looked after, and held in this way.
pub fn played_with<F: Future<Output = ()>>(
    start: &World,
    from: Timestamp,
    (faults, defaults, classes): (Scenario, Defaults, Option<HoldBy>),
    script: impl FnOnce(World) -> F,
) -> (World, Timestamp) {
    run_virtual(SEED, from, |time| async move {
        let settings = world::Settings { clock: time.clock, faults, ..start.settings().clone() };
        let world = start.fork(settings);
        let assembly = Assembly::new(world.clone(), Settings { defaults, classes, ..Settings::rehearsal(&world) });
        assembly.run(script(world.clone())).await;
        let end = now(&world);
        (world, end)
    })
    .unwrap()
}

/// A client of somebody else than the administrator.
pub fn somebody(world: &World, name: &'static str) -> Client {
    let as_somebody = move |mut request: Request<kube::client::Body>| {
        request.extensions_mut().insert(User::authenticated(name, Vec::new()));
        request
    };
    Client::new(MapRequest::new(world.management().clone(), as_somebody), "default")
}

pub fn now(world: &World) -> Timestamp {
    world.settings().clock.now()
}

pub fn status(world: &World) -> TanzuKubernetesClusterStatus {
    settle::cluster(world, &cluster_name()).unwrap().status.unwrap_or_default()
}

pub fn update(world: &World) -> ClusterUpdateStatus {
    settle::update(world, &cluster_name()).and_then(|update| update.status).unwrap_or_default()
}

/// Looks every five seconds, for half a day at most.
pub async fn until(world: &World, what: &str, is_so: impl Fn(&World) -> bool) {
    for _ in 0..(12 * 60 * 12) {
        if is_so(world) {
            return;
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    panic!("never {what}: {:#?}\n{:#?}", status(world), update(world));
}

/// The Events about the cluster, as type and reason.
pub async fn told(world: &World) -> Vec<(String, String)> {
    let events: Api<Event> = Api::default_namespaced(world.client());
    let listed = events.list(&ListParams::default()).await.unwrap();
    listed.items.into_iter().map(|event| (event.type_.unwrap_or_default(), event.reason.unwrap_or_default())).collect()
}
