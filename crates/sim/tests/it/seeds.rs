//! The same seed makes the same run, to the byte; another one makes another.
//!
//! `WINDLASS_SEEDS=1000 cargo test --release -p windlass-sim --test it seeds` goes through a thousand. Without that it is fifty.

use windlass_runtime::chance::Seed;
use windlass_runtime::virtual_time::run_virtual;
use windlass_sim::world::World;

use crate::plain::{self, Size};
use crate::world::{base, living, settings};

#[allow(clippy::disallowed_methods, reason = "how many seeds there are is said from outside")]
fn count() -> u64 {
    std::env::var("WINDLASS_SEEDS").ok().map_or(50, |count| count.parse().unwrap())
}

/// All that happened in a World where a cluster is made and rolled, with its seed.
fn timeline(seed: u64) -> String {
    let sizes = [Size { control_plane: 1, workers: 1 }, Size { control_plane: 1, workers: 2 }];
    let size = sizes[usize::try_from(seed % 2).unwrap()];
    run_virtual(Seed(seed), base(), |time| async move {
        let settings = windlass_sim::world::Settings { seed: Seed(seed), ..settings(time.clock) };
        let world = World::new(settings).await.unwrap();
        let client = world.client();
        let body = async {
            plain::create(&client, "c", size).await;
            plain::settled(&client, 1, size, plain::FROM).await;
            plain::raise_control_plane(&client, "c").await;
            plain::control_planes_settled(&client, 1, size, plain::TO).await;
            plain::raise_workers(&client, "c").await;
            plain::settled(&client, 1, size, plain::TO).await;
            world.recorder().timeline().text()
        };
        living(&world, body).await
    })
    .unwrap()
}

#[test]
fn the_same_seed_makes_the_same_timeline_and_another_makes_another() {
    let mut before: Option<String> = None;
    for seed in 0..count() {
        let first = timeline(seed);
        assert!(first == timeline(seed), "seed {seed} made two timelines");
        assert!(first.lines().count() > 20, "{first}");
        assert!(before.as_ref() != Some(&first), "seeds {} and {seed} made the same timeline", seed - 1);
        before = Some(first);
    }
}
