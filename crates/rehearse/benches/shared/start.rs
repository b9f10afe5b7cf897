//! Where benches begin: a World with one cluster in it.

use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_rehearse::rehearsal::{self, Ended, Request};
use windlass_runtime::chance::Seed;
use windlass_runtime::virtual_time::run_virtual;
use windlass_sim::durations::Durations;
use windlass_sim::fault::Scenario;
use windlass_sim::world::{Settings, World};

pub const SEED: Seed = Seed(1);

/// A change of the cluster to a release, at a time.
pub fn request(to: &str, at: &str) -> Request {
    Request::new("default/my-tkc".parse().unwrap(), to, SEED, at.parse().unwrap())
}

/// Makes a cluster of so many machines.
pub fn create(control_plane: u32, workers: u32) -> Ended {
    let request = request("v1.15.5", "2026-01-01T00:00:00Z");
    let world = run_virtual(SEED, request.at, |time| async move {
        let (clock, seed) = (time.clock, time.seed);
        World::new(Settings { clock, seed, durations: Durations::default(), faults: Scenario::default() })
            .await
            .unwrap()
    });
    let machines = |count| serde_json::json!({"count": count, "class": "best-effort-xlarge", "storageClass": "gc-storage-profile"});
    let spec = serde_json::json!({
        "topology": {"controlPlane": machines(control_plane), "workers": machines(workers)},
        "distribution": {"version": "v1.15.5"},
    });
    let cluster = TanzuKubernetesCluster::new("my-tkc", serde_json::from_value(spec).unwrap());
    rehearsal::create(&world.unwrap(), &request, &cluster).unwrap()
}
