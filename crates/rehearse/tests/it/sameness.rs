//! The same start and seed give the same rehearsal, byte for byte; and no socket is opened for it.

use std::time::Duration;

use windlass_rehearse::assembly::{Assembly, Settings};
use windlass_rehearse::rehearsal::{Request, Verdict, Wish, rehearse};
use windlass_runtime::chance::Seed;
use windlass_runtime::virtual_time::run_virtual;
use windlass_sim::world;

use crate::start::{self, SEED, later};

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let run = || serde_json::to_string(&rehearse(&start::three_and_one().world, &start::update()).unwrap()).unwrap();
    assert_eq!(run(), run());
}

#[test]
fn another_seed_gives_other_times_and_the_same_machines() {
    let start = start::three_and_one();
    let [one, other] = [1, 2].map(|seed| {
        let request = Request { seed: Seed(seed), ..start::update() };
        rehearse(&start.world, &request).unwrap()
    });
    assert_eq!(one.verdict, other.verdict);
    assert_ne!(one.took, other.took);
    let names = |rehearsal: &windlass_rehearse::rehearsal::Rehearsal| {
        rehearsal.machines.iter().map(|machine| (machine.change, machine.name.clone())).collect::<Vec<_>>()
    };
    assert_eq!(names(&one).len(), 8, "four machines come and four go\n{one}");
    // The machines of a pool have names that are drawn.
    let control_plane = |all: Vec<_>| all.into_iter().filter(|(_, name): &(_, String)| name.contains("control-plane"));
    assert_eq!(control_plane(names(&one)).collect::<Vec<_>>(), control_plane(names(&other)).collect::<Vec<_>>());
}

#[test]
fn a_release_that_there_is_not_is_refused_with_the_reason() {
    let request = Request { ask: Wish::release("v1.99"), ..start::update() };
    let rehearsal = rehearse(&start::one_and_one().world, &request).unwrap();
    let Verdict::Refused { why } = &rehearsal.verdict else { panic!("{rehearsal}") };
    assert!(why.contains("v1.99"), "{why}");
    assert!(rehearsal.machines.is_empty());
}

/// What this process has open that could reach another: sockets, and what drivers of them wait with.
fn open_sockets() -> Vec<String> {
    let links =
        std::fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    let names = links.map(|link| link.to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("socket:") || name.contains("eventpoll")).collect()
}

#[test]
fn a_rehearsal_opens_no_socket() {
    let start = start::one_and_one();
    let before = open_sockets();
    let during = run_virtual(SEED, later(), |time| async {
        let settings = world::Settings { clock: time.clock, ..start.world.settings().clone() };
        let world = start.world.fork(settings);
        let assembly = Assembly::new(world.clone(), Settings::rehearsal(&world));
        let mut seen = Vec::new();
        let look = async {
            for _ in 0..60 {
                tokio::time::sleep(Duration::from_secs(60)).await;
                seen.push(open_sockets());
            }
        };
        assembly.run(look).await;
        seen
    });
    assert!(during.unwrap().iter().all(|seen| *seen == before));
    rehearse(&start.world, &start::update()).unwrap();
    assert_eq!(open_sockets(), before);
}
