//! What Prometheus reads.

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use windlass_api::kind::cluster_update::ClusterUpdate;
use windlass_controller::metrics::Asked;

use crate::cluster::controlled;
use crate::world::{api, create, in_world, read, tkc};

/// An update of `my-tkc`, with this for its status.
async fn updated(client: &kube::Client, ordinal: u64, status: Value) {
    let machines = json!({"count": 1, "class": "small", "storageClass": "fast"});
    let end = |version: &str| {
        let (control_plane, workers) = (machines.clone(), machines.clone());
        json!({"distribution": version, "kubernetes": version, "controlPlane": control_plane, "workers": workers})
    };
    let name = format!("my-tkc-{ordinal}");
    let update: ClusterUpdate = read(json!({
        "apiVersion": "windlass.dev/v1alpha1", "kind": "ClusterUpdate",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "cluster": "my-tkc", "ordinal": ordinal, "id": "7", "from": end("v1.16.7"), "to": end("v1.17.4"),
            "envelopeDigest": "sha256:0",
        },
    }));
    create(client, &update).await;
    let patch = Patch::Merge(json!({"status": status}));
    api::<ClusterUpdate>(client).patch_status(&name, &PatchParams::default(), &patch).await.unwrap();
}

const SCRAPE: &str = include_str!("metrics.prom");

#[test]
fn a_scrape_says_how_clusters_and_their_updates_go() {
    in_world(|world| async move {
        let client = world.client();
        create(&client, &tkc(None, Some("v1.99.0+vmware.1-guest.1"))).await;
        let stage = |seconds: u32| {
            let finished = format!("2026-01-01T00:{:02}:{:02}Z", seconds / 60, seconds % 60);
            json!([{"stage": "packages", "startedAt": "2026-01-01T00:00:00Z", "finishedAt": finished}])
        };
        updated(&client, 1, json!({"state": "Succeeded", "stages": stage(30)})).await;
        let failed = json!({"number": 1, "pod": "a", "exitCode": 1, "message": "what it said"});
        let running = json!({"number": 2, "pod": "b"});
        let status = json!({
            "state": "Running", "stage": "controlPlane", "stages": stage(90), "attempts": [failed, running],
        });
        updated(&client, 2, status).await;
        let metrics = controlled(&world, 5).await;
        for (api, verb) in [
            (Asked::Management, "watch"),
            (Asked::Management, "get"),
            (Asked::Workload, "patch"),
            (Asked::Management, "get"),
        ] {
            metrics.asked(api, verb);
        }
        let scraped = metrics.scrape(&client).await.unwrap();
        assert_eq!(scraped, SCRAPE, "{scraped}");
        assert!(!scraped.contains("what it said"), "what others say is no label");
    });
}
