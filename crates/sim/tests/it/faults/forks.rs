//! A scenario is the same each time, in a fork too.

use windlass_runtime::chance::Seed;
use windlass_runtime::virtual_time::run_virtual;
use windlass_sim::actor::Caller;
use windlass_sim::durations::Durations;
use windlass_sim::fault::{Fault, Requests, Scenario, When};
use windlass_sim::world::{Settings, World};

use super::{create, in_world_with};
use crate::management::stage::{OLD, stage_with};
use crate::world::base;

fn every_third() -> Scenario {
    let fault = Fault::Refusal { on: Requests::to("create", "configmaps"), code: 503, retry_after_seconds: None };
    Scenario::default().and(fault, When::nth(3))
}

#[test]
fn a_fork_goes_on_counting_and_another_scenario_begins_anew() {
    run_virtual(Seed(7), base(), |time| async move {
        let settings =
            Settings { clock: time.clock, seed: time.seed, durations: Durations::default(), faults: every_third() };
        let world = World::new(settings.clone()).await.unwrap();
        let third_fails = |world: World, from: usize| async move {
            let client = world.client_of(Caller::User);
            let mut failed = Vec::new();
            for number in from..from + 3 {
                if create(&client, &format!("m-{number}")).await.is_err() {
                    failed.push(number);
                }
            }
            failed
        };
        create(&world.client_of(Caller::User), "m-1").await.unwrap();
        create(&world.client_of(Caller::User), "m-2").await.unwrap();
        let fork = world.fork(settings.clone());
        assert_eq!(third_fails(fork, 3).await, [3], "two were counted before the fork");
        assert_eq!(third_fails(world.clone(), 3).await, [3], "and the fork has counted for itself");
        let other = Scenario { name: "another".into(), ..every_third() };
        let fork = world.fork(Settings { faults: other, ..settings.clone() });
        assert_eq!(third_fails(fork, 6).await, [8]);
        let fork = world.fork(Settings { faults: Scenario::default(), ..settings });
        assert!(fork.faults().is_empty() && third_fails(fork, 6).await.is_empty());
    })
    .unwrap();
}

/// The timeline of a cluster that is made in a swarm.
fn timeline(seed: u64) -> String {
    stage_with(Scenario::swarm(Seed(seed)), |stage| async move {
        stage.cluster("c").await;
        stage.control_plane_machine("c", 0).await;
        stage.pass(600).await;
        stage.pool("c", 2, OLD).await;
        stage.pass(3_000).await;
        stage.world.recorder().timeline().text()
    })
}

#[test]
fn the_same_swarm_gives_the_same_timeline() {
    let mut different = std::collections::BTreeSet::new();
    for seed in 1..=4 {
        let first = timeline(seed);
        assert_eq!(first, timeline(seed), "seed {seed}");
        different.insert(first);
    }
    assert!(different.len() > 1, "swarms differ");
}

#[test]
fn a_chance_is_drawn_from_the_seed() {
    let fault = || Fault::Refusal { on: Requests::to("create", "configmaps"), code: 503, retry_after_seconds: None };
    let failed = |seed| {
        in_world_with(seed, Scenario::default().and(fault(), When::chance(0.5)), |world| async move {
            let client = world.client_of(Caller::User);
            let mut failed = Vec::new();
            for number in 0..40 {
                failed.push(create(&client, &format!("m-{number}")).await.is_err());
            }
            failed
        })
    };
    let first = failed(7);
    assert!((10..=30).contains(&first.iter().filter(|failed| **failed).count()), "{first:?}");
    assert_eq!(failed(7), first);
    assert_ne!(failed(8), first);
}
