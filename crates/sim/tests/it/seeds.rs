//! The same seed makes the same run, to the byte; another one makes another. No rule is violated in any of them.
//!
//! `WINDLASS_SEEDS=1000 cargo test --release -p windlass-sim --test it seeds` goes through a thousand. Without that it is fifty.

use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;
use windlass_api::kind::cluster_api::Cluster;
use windlass_runtime::chance::Seed;
use windlass_runtime::virtual_time::run_virtual;
use windlass_sim::timeline::Timeline;
use windlass_sim::world::World;

use crate::plain::{self, Size};
use crate::world::{base, living, settings};

/// A class, and a cluster of it.
const OF_A_CLASS: &str = include_str!("../../../../deploy/examples/cluster-class.yaml");

#[allow(clippy::disallowed_methods, reason = "how many seeds there are is said from outside")]
fn count() -> u64 {
    std::env::var("WINDLASS_SEEDS").ok().map_or(50, |count| count.parse().unwrap())
}

/// All that happened in a World with this seed where somebody did something, and no rule was violated.
fn run<F: Future<Output = ()>>(seed: u64, body: impl FnOnce(Client) -> F) -> Timeline {
    run_virtual(Seed(seed), base(), |time| async move {
        let settings = windlass_sim::world::Settings { seed: Seed(seed), ..settings(time.clock) };
        let world = World::new(settings).await.unwrap();
        living(&world, body(world.client())).await;
        assert_eq!(world.recorder().violations(), [], "seed {seed}");
        world.recorder().timeline()
    })
    .unwrap()
}

/// A cluster is made of a control plane and a pool, and both are rolled.
async fn roll(client: Client, size: Size) {
    plain::create(&client, "c", size).await;
    plain::settled(&client, 1, size, plain::FROM).await;
    plain::raise_control_plane(&client, "c").await;
    plain::control_planes_settled(&client, 1, size, plain::TO).await;
    plain::raise_workers(&client, "c").await;
    plain::settled(&client, 1, size, plain::TO).await;
}

/// A cluster is made from a class, and rolled by the version of its topology.
async fn roll_topology(client: Client, size: Size) {
    for text in OF_A_CLASS.split("\n---\n") {
        let replicas = format!("controlPlane: {{replicas: {}}}", size.control_plane);
        let text = text.replace("controlPlane: {replicas: 1}", &replicas);
        plain::put(&client, &text.replace("replicas: 2", &format!("replicas: {}", size.workers))).await;
    }
    plain::settled(&client, 1, size, plain::FROM).await;
    let image = format!("ubuntu-2404-k8sd-{}-vmware.1-tkg.1", plain::TO);
    let topology =
        json!({"version": format!("{}+vmware.1", plain::TO), "variables": [{"name": "image", "value": image}]});
    let api: Api<Cluster> = Api::default_namespaced(client.clone());
    let patch = Patch::Merge(json!({"spec": {"topology": topology}}));
    api.patch("classy", &PatchParams::default(), &patch).await.unwrap();
    plain::settled(&client, 1, size, plain::TO).await;
}

#[test]
fn the_same_seed_makes_the_same_timeline_and_another_makes_another() {
    let mut before: Option<String> = None;
    for seed in 0..count() {
        let sizes = [Size { control_plane: 1, workers: 1 }, Size { control_plane: 1, workers: 2 }];
        let size = sizes[usize::try_from(seed % 2).unwrap()];
        let timeline = || run(seed, |client| roll(client, size)).text();
        let first = timeline();
        assert!(first == timeline(), "seed {seed} made two timelines");
        assert!(first.lines().count() > 20, "{first}");
        assert!(before.as_ref() != Some(&first), "seeds {} and {seed} made the same timeline", seed - 1);
        before = Some(first);
    }
}

/// Few: they are larger, and made and rolled in two ways each.
const LARGER: std::ops::Range<u64> = 100..103;

/// The picture shows the five machines that are there in the end.
#[track_caller]
fn check_picture(seed: u64, timeline: &Timeline) {
    let svg = timeline.svg();
    let machines = svg.matches(&format!("at {}+vmware.1: ready</title>", plain::TO)).count();
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"), "seed {seed}");
    assert_eq!(machines, 5, "seed {seed}");
}

#[test]
fn a_cluster_of_three_and_two_is_made_and_rolled_without_a_violation() {
    let size = Size { control_plane: 3, workers: 2 };
    for seed in LARGER {
        check_picture(seed, &run(seed, |client| roll(client, size)));
    }
}

#[test]
fn a_cluster_of_a_class_is_made_and_rolled_by_its_topology_without_a_violation() {
    let size = Size { control_plane: 3, workers: 2 };
    for seed in LARGER {
        check_picture(seed, &run(seed, |client| roll_topology(client, size)));
    }
}
