//! The controllers, and the simulators of machines and of Cluster API, as clients of a real API server.
//!
//! These tests need `KUBEBUILDER_ASSETS`, a folder with kube-apiserver and etcd, and kube-controller-manager for its garbage
//! collector. Without it each says on standard error that it was not run.

mod server;

use std::io::Write;
use std::time::Duration;

use futures::FutureExt;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use windlass_api::kind::cluster_api::Machine;
use windlass_api::kind::cluster_update::{ClusterUpdate, StepOutcome, UpdateState};
use windlass_api::kind::tanzu::{Phase, TanzuKubernetesCluster};
use windlass_rehearse::assembly::{Assembly, Settings};
use windlass_rehearse::crash::Crashes;
use windlass_runtime::chance::Seed;
use windlass_runtime::clock::Clock;
use windlass_runtime::virtual_time::run_virtual;
use windlass_sim::durations::{Durations, Spread};
use windlass_sim::fault::{Moment, Scenario};
use windlass_sim::world::{self, World};

use server::{Server, assets};

const SEED: Seed = Seed(1);
const OLD: &str = "v1.15.5+vmware.1-guest.1";
const NEW: &str = "v1.16.7+vmware.1-guest.1";

/// Says which tier runs; the folder, if it does.
fn tier(test: &str) -> Option<std::path::PathBuf> {
    let found = assets();
    let words = match &found {
        Some(folder) => format!("{test}: run on the kube-apiserver in {}", folder.display()),
        None => format!("{test}: not run: KUBEBUILDER_ASSETS is not set"),
    };
    // Not by `eprintln`, which is shown for failed tests only.
    writeln!(std::io::stderr(), "{words}").unwrap();
    found
}

fn manifest() -> TanzuKubernetesCluster {
    let machines = json!({"count": 1, "class": "best-effort-xlarge", "storageClass": "gc-storage-profile"});
    serde_json::from_value(json!({
        "apiVersion": "run.tanzu.vmware.com/v1alpha1", "kind": "TanzuKubernetesCluster",
        "metadata": {"name": "my-tkc", "namespace": "default"},
        "spec": {
            "topology": {"controlPlane": machines, "workers": machines},
            "distribution": {"version": OLD, "fullVersion": OLD},
            "settings": {"network": {
                "cni": {"name": "calico"},
                "services": {"cidrBlocks": ["198.51.100.0/12"]}, "pods": {"cidrBlocks": ["192.0.2.0/16"]},
                "serviceDomain": "cluster.local",
            }},
        },
    }))
    .unwrap()
}

/// What an update came to: its steps as stage, verb and role, the machines at its end, and its state.
#[derive(Debug, PartialEq)]
struct Came {
    steps: Vec<[String; 3]>,
    machines: usize,
    /// How many machines there ever were.
    made: usize,
    state: Option<UpdateState>,
    version: String,
}

/// Creates a cluster, updates it, and says what came of it. Looks as often as that.
async fn script(client: Client, look: Duration) -> Came {
    let tkcs: Api<TanzuKubernetesCluster> = Api::default_namespaced(client.clone());
    let machines: Api<Machine> = Api::default_namespaced(client.clone());
    let updates: Api<ClusterUpdate> = Api::default_namespaced(client);
    tkcs.create(&PostParams::default(), &manifest()).await.unwrap();
    let is_at = |found: &TanzuKubernetesCluster, version: &str| {
        let status = found.status.clone().unwrap_or_default();
        status.phase == Some(Phase::Running) && status.version.as_deref() == Some(version)
    };
    let mut seen = std::collections::BTreeSet::new();
    let mut until = async |version: &str| {
        for _ in 0..4_000 {
            // A server that is started again does not answer for a while.
            if let Ok(all) = machines.list(&ListParams::default()).await {
                seen.extend(all.items.iter().filter_map(ResourceExt::uid));
            }
            match tkcs.get("my-tkc").await {
                Ok(found) if is_at(&found, version) => return,
                _ => tokio::time::sleep(look).await,
            }
        }
        let found = tkcs.get("my-tkc").await.unwrap();
        panic!("never at {version}: {:#?}", found.status);
    };
    until(OLD).await;
    let to = json!({"spec": {"distribution": {"version": NEW, "fullVersion": NEW}}});
    tkcs.patch("my-tkc", &PatchParams::default(), &Patch::Merge(to)).await.unwrap();
    until(NEW).await;
    let update = updates.get("my-tkc-1").await.unwrap().status.unwrap_or_default();
    let done = update.steps.iter().filter(|step| step.outcome == Some(StepOutcome::Done));
    let steps = done.map(|step| [step.stage.clone(), step.verb.clone(), step.id.clone()]).collect();
    let left = machines.list(&ListParams::default()).await.unwrap().items;
    let version = tkcs.get("my-tkc").await.unwrap().status.and_then(|status| status.version).unwrap_or_default();
    Came { steps, machines: left.len(), made: seen.len(), state: update.state, version }
}

/// The same in a World of its own and in virtual time: what a rehearsal would say.
fn rehearsed() -> Came {
    let founded = "2026-01-01T00:00:00Z".parse().unwrap();
    run_virtual(SEED, founded, |time| async move {
        let settings = world::Settings {
            clock: time.clock,
            seed: time.seed,
            durations: Durations::default(),
            faults: Scenario::default(),
        };
        let world = World::new(settings).await.unwrap();
        let assembly = Assembly::new(world.clone(), Settings::rehearsal(&world));
        let (came, stop) = tokio::sync::oneshot::channel();
        let running = async {
            let looked = script(world.client(), Duration::from_secs(5)).await;
            came.send(looked).unwrap();
        };
        assembly.run(running).await;
        stop.await.unwrap()
    })
    .unwrap()
}

/// The same with a real API server, and whoever makes one of these writes killed at it.
async fn on(client: Client, kills: Vec<(u64, Moment)>) -> (Came, usize) {
    let mut furnished = World::furnish(&client).await;
    for _ in 0..100 {
        if furnished.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        furnished = World::furnish(&client).await;
    }
    furnished.unwrap();
    let durations = Durations::all(Spread { p50: 200, p90: 400 });
    let settings = world::Settings { clock: Clock::wall(), seed: SEED, durations, faults: Scenario::default() };
    let world = World::new(settings).await.unwrap();
    let crashes = Crashes::at(kills);
    let settings = Settings { crashes: crashes.clone(), ..Settings::rehearsal(&world) };
    let assembly = Assembly::new(world, settings).on(client.clone());
    let (came, stop) = tokio::sync::oneshot::channel();
    let running = async {
        let looked = script(client, Duration::from_millis(250)).await;
        came.send(looked).unwrap();
    };
    assembly.run_replicas(&[None, None], running.boxed()).await;
    (stop.await.unwrap(), crashes.left())
}

fn real<F: Future>(body: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(body)
}

/// What an update came to, whatever became of the notes about its steps: those of a look whose record was not written are lost.
fn end(came: Came) -> (usize, usize, Option<UpdateState>, String) {
    (came.machines, came.made, came.state, came.version)
}

#[test]
fn an_upgrade_on_a_real_api_server_is_the_one_that_was_rehearsed() {
    let Some(assets) = tier("upgrade") else { return };
    let expected = rehearsed();
    assert_eq!((expected.state, expected.machines), (Some(UpdateState::Succeeded), 2), "{expected:?}");
    let came = real(async {
        let server = Server::start(assets).await;
        on(server.client().await, Vec::new()).await.0
    });
    assert_eq!(came, expected);
}

#[test]
fn an_upgrade_on_a_real_api_server_survives_kills_of_the_leader() {
    let Some(assets) = tier("kills of the leader") else { return };
    let expected = rehearsed();
    let (came, left) = real(async {
        let server = Server::start(assets).await;
        let kills = vec![(12, Moment::After), (24, Moment::Before), (30, Moment::After), (38, Moment::After)];
        on(server.client().await, kills).await
    });
    assert_eq!(left, 0, "everybody was killed who was to be");
    assert_eq!(end(came), end(expected));
}

#[test]
fn an_upgrade_survives_the_end_of_the_api_server_and_of_etcd() {
    let Some(assets) = tier("restart of the API server and of etcd") else { return };
    let expected = rehearsed();
    let came = real(async {
        let mut server = Server::start(assets).await;
        let updates: Api<ClusterUpdate> = Api::default_namespaced(server.client().await);
        let running = on(server.client().await, Vec::new());
        let restarts = async {
            while updates.get("my-tkc-1").await.is_err() {
                tokio::time::sleep(Duration::from_millis(250)).await;
            }
            server.kill_apiserver();
            server.start_apiserver();
            server.ready().await;
            server.kill_etcd();
            server.start_etcd();
            server.ready().await;
        };
        let ((came, _), ()) = tokio::join!(running, restarts);
        came
    });
    assert_eq!(end(came), end(expected));
}
