//! The controllers, and the simulators of machines and of Cluster API, as clients of a real API server.
//!
//! These tests need `KUBEBUILDER_ASSETS`, a folder with kube-apiserver and etcd, and kube-controller-manager for its garbage
//! collector. Without it each says on standard error that it was not run.

mod answers;
mod classes;
mod kills;
mod labels;
mod packages;
mod server;
mod stage;
mod webhooks;
mod witness;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use windlass_api::kind::cluster_api::Machine;
use windlass_api::kind::cluster_update::{ClusterUpdate, ClusterUpdateStatus, StepOutcome, UpdateState};
use windlass_api::kind::tanzu::{Phase, TanzuKubernetesCluster};
use windlass_rehearse::crash::Crashes;
use windlass_sim::fault::Moment;

use server::{Server, assets};
use stage::{How, Ran, Stage, on, real, really, rehearsed};

const OLD: &str = "v1.15.5+vmware.1-guest.1";
const NEW: &str = "v1.16.7+vmware.1-guest.1";

/// Says which tier runs; the folder, if it does.
fn tier(test: &str) -> Option<PathBuf> {
    let found = assets();
    say(&match &found {
        Some(folder) => format!("{test}: run on the kube-apiserver in {}", folder.display()),
        None => format!("{test}: not run: KUBEBUILDER_ASSETS is not set"),
    });
    found
}

/// Not by `eprintln`, which is shown for failed tests only.
fn say(words: &str) {
    writeln!(std::io::stderr(), "{words}").unwrap();
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

/// What an update came to.
#[derive(Debug, Clone, PartialEq)]
struct Came {
    /// Its steps as stage, verb and role.
    steps: Vec<[String; 3]>,
    /// The machines at its end.
    machines: usize,
    state: Option<UpdateState>,
    version: String,
    /// How many writes the controllers had made when it was asked for.
    before: u64,
}

/// The steps that were done.
fn steps(update: &ClusterUpdateStatus) -> Vec<[String; 3]> {
    let done = update.steps.iter().filter(|step| step.outcome == Some(StepOutcome::Done));
    done.map(|step| [step.stage.clone(), step.verb.clone(), step.id.clone()]).collect()
}

/// How many writes the controllers made.
fn writes(crashes: &Crashes) -> u64 {
    let by = crashes.writes().iter().filter(|write| write.caller == windlass_sim::actor::Caller::Controllers).count();
    u64::try_from(by).unwrap()
}

/// Creates a cluster, updates it, and says what came of it.
fn script(stage: Stage) -> LocalBoxFuture<'static, Came> {
    play(stage).boxed_local()
}

async fn play(stage: Stage) -> Came {
    let Stage { client, look, crashes, .. } = stage;
    let tkcs: Api<TanzuKubernetesCluster> = Api::default_namespaced(client.clone());
    let machines: Api<Machine> = Api::default_namespaced(client.clone());
    let updates: Api<ClusterUpdate> = Api::default_namespaced(client);
    tkcs.create(&PostParams::default(), &manifest()).await.unwrap();
    let is_at = |found: &TanzuKubernetesCluster, version: &str| {
        let status = found.status.clone().unwrap_or_default();
        status.phase == Some(Phase::Running) && status.version.as_deref() == Some(version)
    };
    let until = async |version: &str| {
        for _ in 0..4_000 {
            match tkcs.get("my-tkc").await {
                Ok(found) if is_at(&found, version) => return,
                // A server that is started again does not answer for a while.
                _ => tokio::time::sleep(look).await,
            }
        }
        let found = tkcs.get("my-tkc").await.unwrap();
        panic!("never at {version}: {:#?}", found.status);
    };
    until(OLD).await;
    let before = writes(&crashes);
    let to = json!({"spec": {"distribution": {"version": NEW, "fullVersion": NEW}}});
    tkcs.patch("my-tkc", &PatchParams::default(), &Patch::Merge(to)).await.unwrap();
    until(NEW).await;
    let update = updates.get("my-tkc-1").await.unwrap().status.unwrap_or_default();
    let left = machines.list(&ListParams::default()).await.unwrap().items;
    let version = tkcs.get("my-tkc").await.unwrap().status.and_then(|status| status.version).unwrap_or_default();
    Came { steps: steps(&update), machines: left.len(), state: update.state, version, before }
}

/// What an update came to, whatever became of the notes about its steps: those of a look whose record was not written are lost.
fn end(ran: Ran<Came>) -> (usize, Option<UpdateState>, String, BTreeMap<String, usize>, Vec<String>) {
    let Ran { came, objects, complaints } = ran;
    (came.machines, came.state, came.version, objects, complaints)
}

#[test]
fn an_upgrade_on_a_real_api_server_is_the_one_that_was_rehearsed() {
    let Some(assets) = tier("upgrade") else { return };
    let expected = rehearsed(&How::default(), &script);
    assert_eq!((expected.came.state, expected.came.machines), (Some(UpdateState::Succeeded), 2), "{expected:?}");
    assert_eq!(expected.objects["Machine"], 4, "{expected:?}");
    let ran = really(assets, &How::default(), &script);
    assert_eq!(ran.came.steps, expected.came.steps);
    assert_eq!(end(ran), end(expected));
}

#[test]
fn an_upgrade_on_a_real_api_server_survives_kills_of_the_leader() {
    let Some(assets) = tier("kills at chosen writes") else { return };
    let expected = rehearsed(&How::default(), &script);
    let kills = vec![(12, Moment::After), (24, Moment::Before), (30, Moment::After), (38, Moment::After)];
    let how = How { crashes: Crashes::at(kills), ..How::default() };
    let ran = really(assets, &how, &script);
    assert_eq!(how.crashes.left(), 0, "everybody was killed who was to be");
    assert_eq!(end(ran), end(expected));
}

#[test]
fn an_upgrade_survives_the_end_of_the_api_server_and_of_etcd() {
    let Some(assets) = tier("restart of the API server and of etcd") else { return };
    let expected = rehearsed(&How::default(), &script);
    let ran = real(async {
        let server = Server::start(assets).await;
        let updates: Api<ClusterUpdate> = Api::default_namespaced(server.client().await);
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
        let how = How::default();
        tokio::join!(on(&server, &how, &script), restarts).0
    });
    assert_eq!(end(ran), end(expected));
}
