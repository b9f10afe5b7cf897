//! Same seed, same event log, byte for byte.

use std::convert::Infallible;
use std::time::Duration;

use serde_json::json;
use windlass_runtime::chance::Seed;
use windlass_runtime::runner::{Options, Order, Outcome, Runner};

use crate::world::{Tally, name, run_for, sleep, world_of};

#[derive(Debug, thiserror::Error)]
#[error("not now")]
struct NotNow;

/// A busy time: objects that change, reconciles that overlap, wait, fail and write, watches that expire and end.
fn busy(seed: Seed, permuted: bool, objects: u64, changes: u64) -> Vec<String> {
    world_of(seed, |world| async move {
        world.stub.put_all((0..objects).map(|n| format!("cm-{n}")));
        let order = if permuted { Order::Permuted(seed.stream("order")) } else { Order::Fifo };
        let runner = Runner::new("test", world.watch(), Options { slots: 7, order, ..world.options() });
        let stub = world.stub.clone();
        let script = async {
            let mut chance = seed.stream("script");
            for round in 0..changes {
                tokio::time::sleep(Duration::from_millis(chance.range(1..9000))).await;
                let target = format!("cm-{}", chance.below(objects));
                stub.put(&target, json!({"data": {"round": round.to_string()}}));
                match round % 10 {
                    3 => stub.expire_watches(),
                    6 => stub.drop_watches(),
                    _ => {}
                }
            }
        };
        let (stub, tries) = (world.stub.clone(), Tally::default());
        let run = run_for(runner, changes * 9, move |object, _| {
            let (stub, name) = (stub.clone(), name(&object));
            let attempt = tries.add(&name);
            async move {
                tokio::time::sleep(Duration::from_millis(u64::from(attempt % 3) * 700)).await;
                match attempt % 5 {
                    0 => drop(stub.put(&name, json!({"data": {"attempt": attempt.to_string()}}))),
                    1 => return Err(NotNow),
                    _ => sleep(1).await,
                }
                Ok(Outcome::requeue_after(Duration::from_secs(120)))
            }
        });
        tokio::join!(run, script);
        world.log.lines()
    })
}

#[test]
fn the_same_seed_gives_the_same_log_twice() {
    let first = busy(Seed(7), false, 40, 100);
    assert!(first.len() > 500, "{} lines are not busy", first.len());
    assert_eq!(first, busy(Seed(7), false, 40, 100));
}

#[test]
fn the_same_seed_gives_the_same_log_on_another_thread_and_beside_others() {
    let expected = busy(Seed(7), true, 40, 100);
    let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(|| busy(Seed(7), true, 40, 100))).collect();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), expected);
    }
}

/// The order in which the first reconciles start.
fn first_starts(seed: u64, order: Order) -> Vec<String> {
    world_of(Seed(seed), |world| async move {
        world.stub.put_all((0..20).map(|n| format!("cm-{n:02}")));
        let runner = Runner::new("test", world.watch(), Options { order, ..world.options() });
        run_for(runner, 1, |_, _| async { Ok::<_, Infallible>(Outcome::done()) }).await;
        world.lines_with("started")
    })
}

#[test]
fn a_permuted_order_differs_by_seed_and_is_reproducible() {
    let permuted = |seed: u64| first_starts(seed, Order::Permuted(Seed(seed).stream("order")));
    let fifo = first_starts(1, Order::Fifo);
    assert!(fifo.is_sorted() && fifo.len() == 20);
    assert_eq!(permuted(1), permuted(1));
    assert_ne!(permuted(1), permuted(2));
    let mut sorted = permuted(1);
    sorted.sort();
    assert_eq!(sorted, fifo, "another order of the same");
}

/// Across processes, machines and releases: the log is a file. `WINDLASS_UPDATE=1 cargo test -p windlass-runtime`
/// writes it anew, to be read before it is committed.
#[test]
fn the_log_is_the_same_as_when_it_was_committed() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/event_log.out");
    let mut log = busy(Seed(42), true, 6, 12).join("\n");
    log.push('\n');
    if std::env::var_os("WINDLASS_UPDATE").is_some() {
        std::fs::write(path, &log).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap();
    let differing = committed.lines().zip(log.lines()).enumerate().find(|(_, (old, new))| old != new);
    assert!(committed == log, "first difference: {differing:?}");
}
