//! What the runner promises.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use windlass_runtime::key::Key;
use windlass_runtime::runner::{Ctx, Load, Options, Outcome, Runner};

use crate::world::{Tally, name, nothing, run_for, sleep, value, world};

#[derive(Debug, thiserror::Error)]
#[error("cannot reconcile")]
struct Broken(#[source] std::fmt::Error);

#[test]
fn one_key_never_reconciles_twice_at_once_and_slots_bound_the_rest() {
    world(|world| async move {
        let names = ["a", "b", "c", "d", "e"];
        world.stub.put_all(names);
        let (running, most) = (Tally::default(), Arc::new(Mutex::new((0, 0))));
        let runner = Runner::new("test", world.watch(), Options { slots: 3, ..world.options() });
        let stub = world.stub.clone();
        let changes = async {
            for round in 0..20 {
                sleep(1).await;
                for name in names {
                    stub.put(name, json!({"data": {"round": round.to_string()}}));
                }
            }
        };
        let seen = Arc::clone(&most);
        let run = run_for(runner, 60, move |object, _| {
            let (running, seen) = (running.clone(), Arc::clone(&seen));
            async move {
                let of_key = running.add(&name(&object));
                {
                    let mut most = seen.lock().unwrap();
                    *most = (most.0.max(of_key), most.1.max(running.total()));
                }
                sleep(3).await;
                running.subtract(&name(&object));
                Ok::<_, Infallible>(Outcome::done())
            }
        });
        let (summary, ()) = tokio::join!(run, changes);
        assert_eq!(*most.lock().unwrap(), (1, 3));
        assert!(summary.reconciles > 15, "{summary:?}");
    });
}

#[test]
fn a_change_during_a_reconcile_is_seen_by_one_more() {
    world(|world| async move {
        world.stub.put("a", json!({"data": {"n": "0"}}));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (stub, log) = (world.stub.clone(), Arc::clone(&seen));
        let changes = async move {
            for n in 1..=3 {
                sleep(1).await;
                stub.put("a", json!({"data": {"n": n.to_string()}}));
            }
        };
        let run = run_for(world.runner(), 60, move |object, _| {
            log.lock().unwrap().push(value(&object, "n"));
            async {
                sleep(10).await;
                Ok::<_, Infallible>(Outcome::done())
            }
        });
        tokio::join!(run, changes);
        assert_eq!(*seen.lock().unwrap(), ["0", "3"]);
    });
}

#[test]
fn a_requeue_fires_at_the_virtual_minute() {
    world(|world| async move {
        world.stub.put("a", json!({}));
        let minute = |_, _: Ctx<()>| async { Ok::<_, Infallible>(Outcome::requeue_after(Duration::from_secs(60))) };
        run_for(world.runner(), 150, minute).await;
        assert_eq!(
            world.lines(),
            [
                "00:00:00Z listed configmaps: 1 @1",
                "00:00:00Z started default/a",
                "00:00:00Z finished default/a, again in 60s",
                "00:01:00Z started default/a",
                "00:01:00Z finished default/a, again in 60s",
                "00:02:00Z started default/a",
                "00:02:00Z finished default/a, again in 60s",
                "00:02:30Z stopping, 0 running",
            ]
        );
    });
}

#[test]
fn errors_back_off_and_success_resets() {
    world(|world| async move {
        world.stub.put("a", json!({}));
        let tries = Tally::default();
        let runner = world.runner();
        let summary = run_for(runner, 3600, move |_, _| {
            // The fifth succeeds and comes back; then it fails again.
            let fails = tries.add("a") != 5;
            async move {
                if fails { Err(Broken(std::fmt::Error)) } else { Ok(Outcome::requeue_after(Duration::from_secs(60))) }
            }
        })
        .await;
        let delays: Vec<Duration> = world.lines_with("retry in").iter().map(|line| retry_in(line)).collect();
        assert!(delays[..4].is_sorted() && delays[3] >= Duration::from_millis(800), "{delays:?}");
        assert!(delays[4] <= Duration::from_millis(200), "success resets: {delays:?}");
        assert!(delays.iter().all(|delay| *delay <= Duration::from_secs(120)), "capped: {delays:?}");
        assert!((30..100).contains(&summary.errors), "about one in 60 to 120 s: {summary:?}");
        let said = world.lines_with("retry in").remove(0);
        assert!(said.ends_with(": cannot reconcile: an error occurred when formatting an argument"), "{said}");
    });
}

/// The delay in a line of the log, which is printed in seconds or milliseconds.
fn retry_in(line: &str) -> Duration {
    let text = line.split("retry in ").nth(1).unwrap().split(':').next().unwrap();
    let seconds: f64 = match text.strip_suffix("ms") {
        Some(millis) => millis.parse::<f64>().unwrap() / 1e3,
        None => text.strip_suffix('s').unwrap().parse().unwrap(),
    };
    Duration::from_secs_f64(seconds)
}

#[test]
fn a_failing_key_that_writes_its_own_status_does_not_spin() {
    world(|world| async move {
        world.stub.put("a", json!({}));
        let (tries, stub) = (Tally::default(), world.stub.clone());
        let summary = run_for(world.runner(), 60, move |_, _| {
            let attempt = tries.add("a");
            // It gives up far above what is allowed: in a loop that takes no time, the minute would never end.
            let fails = attempt < 1000;
            if fails {
                stub.put("a", json!({"data": {"attempts": attempt.to_string()}}));
            }
            async move { if fails { Err(Broken(std::fmt::Error)) } else { Ok(Outcome::done()) } }
        })
        .await;
        assert!(summary.reconciles <= 65, "{summary:?}");
    });
}

#[test]
fn a_panic_is_contained_and_its_key_tried_again() {
    world(|world| async move {
        world.stub.put_all(["a", "b", "c"]);
        let (tries, done) = (Tally::default(), Tally::default());
        let ended = done.clone();
        let summary = run_for(world.runner(), 60, move |object, _| {
            let (name, done) = (name(&object), done.clone());
            // Once before there is a future, once inside it.
            let attempt = if name == "b" { tries.add("b") } else { 3 };
            assert!(attempt != 1, "the first time");
            async move {
                assert!(attempt != 2, "the second time");
                done.add(&name);
                Ok::<_, Infallible>(Outcome::done())
            }
        })
        .await;
        assert_eq!((ended.of("a"), ended.of("b"), ended.of("c")), (1, 1, 1));
        assert_eq!((summary.panics, summary.reconciles), (2, 5));
        let panics = world.lines_with("panic:");
        assert!(panics[0].ends_with("panic: the first time") && panics[1].ends_with("the second time"), "{panics:?}");
    });
}

#[test]
fn a_reconcile_that_hangs_gives_back_its_slot() {
    world(|world| async move {
        world.stub.put_all(["a", "b"]);
        let told = Arc::new(Told::default());
        let load: Option<Arc<dyn Load>> = Some(told.clone());
        let options = Options { slots: 1, deadline: Duration::from_secs(30), load, ..world.options() };
        let runner = Runner::new("test", world.watch(), options);
        let summary = run_for(runner, 45, |object, _| async move {
            if name(&object) == "a" {
                std::future::pending::<()>().await;
            }
            Ok::<_, Infallible>(Outcome::done())
        })
        .await;
        assert_eq!(summary.overdue, 2, "the second is dropped while stopping");
        assert_eq!(world.lines_with("finished default/b"), ["00:00:30Z finished default/b"]);
        let told = told.0.lock().unwrap().join(", ");
        let first = "2 ready, waited 0ns, 1 ready 1 running, retried, 1 ready, waited 30s, 1 running, none";
        assert!(told.starts_with(first) && told.ends_with("retried, none"), "{told}");
    });
}

/// How busy a runner said that it was.
#[derive(Default)]
struct Told(Mutex<Vec<String>>);

impl Load for Told {
    fn busy(&self, ready: usize, running: usize) {
        let counted = |count: usize, what: &str| (count > 0).then(|| format!("{count} {what}"));
        let told: Vec<String> = [counted(ready, "ready"), counted(running, "running")].into_iter().flatten().collect();
        self.0.lock().unwrap().push(if told.is_empty() { "none".to_owned() } else { told.join(" ") });
    }

    fn waited(&self, time: Duration) {
        self.0.lock().unwrap().push(format!("waited {time:?}"));
    }

    fn retried(&self) {
        self.0.lock().unwrap().push("retried".to_owned());
    }
}

#[test]
fn nothing_is_reconciled_before_every_watch_has_its_list() {
    world(|world| async move {
        world.stub.put("a", json!({}));
        let slow = crate::stub::Stub::default();
        slow.put("late", json!({}));
        slow.slow_lists(Duration::from_secs(30));
        let late = windlass_runtime::watch::Watch::<ConfigMap>::all(slow.client());
        let cache = late.cache();
        let runner = world.runner().watches(late, |_| Vec::new());
        run_for(runner, 60, move |_, _| {
            assert_eq!(cache.list().len(), 1);
            async { Ok::<_, Infallible>(Outcome::done()) }
        })
        .await;
        assert_eq!(world.lines_with("started"), ["00:00:30Z started default/a"]);
    });
}

#[test]
fn owners_are_woken_by_what_they_own_also_when_it_leaves_them() {
    world(|world| async move {
        let owner = |name: &str, controller: bool| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": "u", "controller": controller});
        world.stub.put_all(["a", "b", "c"]);
        let children = crate::stub::Stub::default();
        let runner = world.runner().owns(windlass_runtime::watch::Watch::<ConfigMap>::all(children.client()));
        let changes = async {
            sleep(1).await;
            children.put("child", json!({"metadata": {"ownerReferences": [owner("a", true), owner("c", false)]}}));
            sleep(1).await;
            children.put("child", json!({"metadata": {"ownerReferences": [owner("b", true)]}}));
            sleep(1).await;
            children.delete("child");
        };
        tokio::join!(run_for(runner, 10, nothing), changes);
        let started = world.lines_with("started");
        assert_eq!(
            started[3..],
            [
                "00:00:01Z started default/a",
                "00:00:02Z started default/a",
                "00:00:02Z started default/b",
                "00:00:03Z started default/b"
            ]
        );
    });
}

#[test]
fn what_has_changed_can_decide_who_is_woken() {
    world(|world| async move {
        world.stub.put_all(["a"]);
        let others = crate::stub::Stub::default();
        let watch = windlass_runtime::watch::Watch::<ConfigMap>::all(others.client());
        let runner = world.runner().watches_changes(watch, |change| {
            let data = |object: Option<&ConfigMap>| object.and_then(|object| object.data.clone());
            let is_news = data(change.before) != data(change.after);
            is_news.then(|| Key::namespaced("default", "a")).into_iter().collect()
        });
        let changes = async {
            for data in ["1", "1", "2"] {
                sleep(1).await;
                others.put("other", json!({"data": {"n": data}}));
            }
            sleep(1).await;
            others.delete("other");
        };
        tokio::join!(run_for(runner, 10, nothing), changes);
        let started = world.lines_with("started");
        let expected = ["00:00:01Z started default/a", "00:00:03Z started default/a", "00:00:04Z started default/a"];
        assert_eq!(started[1..], expected);
    });
}

#[test]
fn keys_come_from_outside_too_and_what_is_gone_is_not_reconciled() {
    world(|world| async move {
        world.stub.put("a", json!({}));
        let keys = ["a", "never-was"].map(|name| Key::namespaced("default", name));
        let runner = world.runner().triggers(futures::stream::iter(keys));
        let stub = world.stub.clone();
        let changes = async move {
            sleep(1).await;
            stub.delete("a");
        };
        let reconciled = Tally::default();
        let count = reconciled.clone();
        let run = run_for(runner, 10, move |object, _| {
            count.add(&name(&object));
            async { Ok::<_, Infallible>(Outcome::requeue_after(Duration::from_secs(5))) }
        });
        tokio::join!(run, changes);
        assert_eq!((reconciled.of("a"), reconciled.total()), (1, 1), "its requeue went with it");
        assert_eq!(world.lines_with("triggered").len(), 2);
    });
}

#[test]
fn stopping_takes_nothing_new_and_lets_the_running_end() {
    world(|world| async move {
        world.stub.put_all(["a", "b"]);
        let runner = Runner::new("test", world.watch(), Options { slots: 1, ..world.options() });
        let slow = |_, _: Ctx<()>| async {
            sleep(30).await;
            Ok::<_, Infallible>(Outcome::done())
        };
        run_for(runner, 10, slow).await;
        assert_eq!(
            world.lines()[1..],
            ["00:00:00Z started default/a", "00:00:10Z stopping, 1 running", "00:00:30Z finished default/a",]
        );
    });
}

#[test]
fn a_runner_can_be_spawned_onto_any_thread() {
    world(|world| async move {
        world.stub.put("a", json!({}));
        let summary = tokio::spawn(run_for(world.runner(), 10, nothing)).await.unwrap();
        assert_eq!(summary.reconciles, 1);
    });
}
