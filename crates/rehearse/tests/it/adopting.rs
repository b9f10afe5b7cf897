//! Clusters that were there before Windlass, or before this process of it: they are looked after from now on, and no machine of
//! theirs is touched.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use windlass_api::kind::cluster_api::Machine;
use windlass_api::kind::cluster_update::ClusterUpdate;
use windlass_api::kind::tanzu::{Phase, TanzuKubernetesCluster};
use windlass_api::label;
use windlass_plan::resolve::hold::HoldBy;
use windlass_rehearse::assembly::{Assembly, Settings};
use windlass_rehearse::crash::Write;
use windlass_runtime::virtual_time::run_virtual;
use windlass_sim::actor::Caller;
use windlass_sim::world::{self, World};

use crate::start::{self, FROM, SEED, later};

/// What machines are made of: whoever writes one of these rolls something, or may.
const MACHINES: [&str; 9] = [
    "machines",
    "machinesets",
    "machinedeployments",
    "wcpmachines",
    "wcpmachinetemplates",
    "kubeadmconfigs",
    "kubeadmconfigtemplates",
    "kubeadmcontrolplanes",
    "jobs",
];

/// Takes away all that Windlass itself has written about its cluster: another tool has made it.
async fn forget(world: &World) {
    let client = world.client();
    let records: Api<ClusterUpdate> = Api::default_namespaced(client.clone());
    records.delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
    let kept: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let of_releases = ListParams::default().labels(label::KEPT_RELEASE.name);
    kept.delete_collection(&DeleteParams::default(), &of_releases).await.unwrap();
    let tkcs: Api<TanzuKubernetesCluster> = Api::default_namespaced(client);
    let (name, params) = ("my-tkc", PatchParams::default());
    let bare = json!({"metadata": {"finalizers": null, "annotations": null, "labels": null}});
    tkcs.patch(name, &params, &Patch::Merge(bare)).await.unwrap();
    tkcs.patch_status(name, &params, &Patch::Merge(json!({"status": null}))).await.unwrap();
}

async fn machines(world: &World) -> Vec<(String, Option<String>, Option<i64>)> {
    let api: Api<Machine> = Api::default_namespaced(world.client());
    let listed = api.list(&ListParams::default()).await.unwrap().items;
    listed.iter().map(|machine| (machine.name_any(), machine.uid(), machine.metadata.generation)).collect()
}

/// Runs new controllers for a day on a cluster that is as somebody has left it: what they wrote.
fn adopted<F: Future<Output = ()>>(leave: impl FnOnce(World) -> F) -> Vec<Write> {
    let start = &start::one_and_one().world;
    run_virtual(SEED, later(), |time| async move {
        let world = start.fork(world::Settings { clock: time.clock, ..start.settings().clone() });
        leave(world.clone()).await;
        let before = machines(&world).await;
        let settings = Settings { classes: Some(HoldBy::Pause), ..Settings::rehearsal(&world) };
        let assembly = Assembly::new(world.clone(), settings);
        Box::pin(assembly.run(tokio::time::sleep(Duration::from_secs(24 * 3600)))).await;
        assert_eq!(
            machines(&world).await,
            before,
            "they are the same machines, and nobody changed what they should be"
        );
        let tkcs: Api<TanzuKubernetesCluster> = Api::default_namespaced(world.client());
        let status = tkcs.get("my-tkc").await.unwrap().status.unwrap_or_default();
        assert_eq!((status.phase, status.version.as_deref()), (Some(Phase::Running), Some(FROM)), "it is looked after");
        let violations = world.recorder().violations();
        assert!(violations.is_empty(), "{violations:?}");
        assembly.crashes().writes()
    })
    .unwrap()
}

fn check(writes: &[Write]) {
    assert!(writes.iter().all(|write| write.caller == Caller::Controllers), "no upgrader ran: {writes:#?}");
    for write in writes {
        let resource = write.what.split_whitespace().nth(1).unwrap_or_default();
        let resource = resource.split('/').next().unwrap_or_default();
        assert!(!MACHINES.contains(&resource), "{write:?}");
    }
}

#[test]
fn whoever_starts_again_writes_nothing_about_a_cluster_at_rest() {
    let writes = adopted(async |_| {});
    check(&writes);
    // What it says of itself is written when it is something else, and it is not.
    assert!(writes.len() <= 2, "{writes:#?}");
}

#[test]
fn a_cluster_that_others_have_made_is_adopted_without_a_write_to_its_machines() {
    let writes = adopted(async |world: World| forget(&world).await);
    assert!(!writes.is_empty(), "it is looked after: its finalizer and its status are written");
    check(&writes);
}
