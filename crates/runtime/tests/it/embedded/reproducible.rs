//! Same seed, same log, byte for byte: what the server committed, and what the runner did.

use std::process::Command;
use std::sync::Arc;

use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use windlass_runtime::chance::Seed;
use windlass_runtime::runner::Order;
use windlass_runtime::trace::TraceLog;

use super::fleet::{self, ChangeLog, Fleet, Run, fleet};
use super::{Cluster, cluster_of};
use crate::world::sleep;

/// What a run leaves behind.
struct Left {
    /// The change log of the store, then the trace of the runner.
    log: Vec<String>,
    /// The keys whose reconciles began, in that order.
    starts: Vec<String>,
    /// Everything but events, without ids, versions and times.
    state: Vec<String>,
    /// How many objects came to be.
    objects: usize,
}

/// Fleets that grow, shrink and go while the controller runs. There are `fleets` of them.
fn run(seed: Seed, permuted: bool, fleets: u32) -> Left {
    cluster_of(seed, |world| async move {
        let (changes, trace) = (ChangeLog::of(&world.server), Arc::new(TraceLog::default()));
        fleet::define(&world.client()).await;
        for n in 0..fleets {
            fleet::create(&world.client(), &fleet(&format!("f-{n}"), n % 4 + 1)).await;
        }
        let order = if permuted { Order::Permuted(seed.stream("order")) } else { Order::Fifo };
        let run = Run { client: world.client(), clock: &world.clock, seed, order, trace: &trace };
        let script = disturb(&world, fleets);
        let done = Box::pin(async {
            script.await;
            fleet::settled(world.client()).await;
        });
        run.until(done).await;
        sleep(1).await;
        let log = [changes.lines(), trace.lines()].concat();
        let objects = world.server.store().count("configmaps") + world.server.store().count("fleets.test.windlass.dev");
        Left { log, starts: fleet::starts(&trace), state: fleet::state(&world.server), objects }
    })
}

/// What people do to fleets: ask for more, ask for less, delete members and whole fleets.
async fn disturb(world: &Cluster, fleets: u32) {
    let (api, members) = (world.api::<Fleet>(), world.api::<k8s_openapi::api::core::v1::ConfigMap>());
    sleep(30).await;
    for n in (0..fleets).step_by(5) {
        let patch = Patch::Merge(json!({"spec": {"count": (n + 3) % 6, "port": "away"}}));
        api.patch(&format!("f-{n}"), &PatchParams::default(), &patch).await.unwrap();
    }
    for n in (1..fleets).step_by(5) {
        members.delete(&format!("f-{n}-0"), &DeleteParams::default()).await.ok();
    }
    for n in (2..fleets).step_by(7) {
        api.delete(&format!("f-{n}"), &DeleteParams::default()).await.unwrap();
    }
    world.server.store().compact(world.server.store().revision() - 5);
    sleep(400).await;
}

fn check_twice(seed: Seed, permuted: bool, fleets: u32, at_least: usize) {
    let (first, second) = (run(seed, permuted, fleets), run(seed, permuted, fleets));
    assert!(first.objects >= at_least, "{} objects are not many", first.objects);
    assert_same(&first.log, &second.log);
}

fn assert_same(first: &[String], second: &[String]) {
    let differing = first.iter().zip(second).position(|(first, second)| first != second);
    let around = differing.map(|line| (&first[line.saturating_sub(1)..=line], &second[line]));
    assert!(first == second, "{} and {} lines, first difference {around:?}", first.len(), second.len());
}

#[test]
fn fifty_objects_leave_the_same_log_twice() {
    check_twice(Seed(7), false, 20, 50);
}

#[test]
fn fifty_objects_leave_the_same_log_twice_with_the_queue_permuted() {
    check_twice(Seed(7), true, 20, 50);
}

#[test]
fn three_hundred_objects_leave_the_same_log_twice_with_the_queue_permuted() {
    check_twice(Seed(3), true, 100, 300);
}

#[test]
fn seeds_differ_in_the_order_of_things_and_not_in_where_they_end() {
    let fifo = run(Seed(1), false, 20);
    let permuted: Vec<Left> = (1..=3).map(|seed| run(Seed(seed), true, 20)).collect();
    for (n, left) in permuted.iter().enumerate() {
        assert_same(&fifo.state, &left.state);
        assert!(permuted[..n].iter().all(|other| other.starts != left.starts && other.log != left.log));
    }
    assert_ne!(permuted[0].starts, fifo.starts);
}

/// Set in the second process: the arguments of the run whose log it is to print.
const RUN: &str = "WINDLASS_TEST_PRINT_RUN";

#[test]
fn another_process_leaves_the_same_log() {
    const NAME: &str = "embedded::reproducible::another_process_leaves_the_same_log";
    if let Ok(wanted) = std::env::var(RUN) {
        let mut wanted = wanted.split(' ');
        let mut next = || wanted.next().unwrap();
        let (seed, permuted, fleets) = (next().parse().unwrap(), next() == "permuted", next().parse().unwrap());
        for line in run(seed, permuted, fleets).log {
            println!("log: {line}");
        }
        return;
    }
    for (seed, order, fleets) in [(Seed(7), "fifo", 20), (Seed(3), "permuted", 100)] {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", NAME, "--nocapture"]).env(RUN, format!("{seed} {order} {fleets}"));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let printed = String::from_utf8(output.stdout).unwrap();
        let theirs: Vec<String> =
            printed.lines().filter_map(|line| line.split_once("log: ").map(|(_, line)| line.to_owned())).collect();
        assert_same(&run(seed, order == "permuted", fleets).log, &theirs);
    }
}
