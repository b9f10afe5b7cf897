//! Watches that fail, and objects that cannot be read.

use serde_json::json;

use crate::world::{World, nothing, run_for, sleep, world};

/// Runs for a minute while the script runs, and returns the log.
async fn while_running(world: &World, script: impl Future<Output = ()>) -> Vec<String> {
    tokio::join!(run_for(world.runner(), 60, nothing), script);
    world.lines()
}

fn has(lines: &[String], text: &str) -> bool {
    lines.iter().any(|line| line.contains(text))
}

#[test]
fn an_expired_watch_lists_again_and_misses_nothing() {
    world(|world| async move {
        world.stub.put_all(["kept", "changed", "gone"]);
        let lines = while_running(&world, async {
            sleep(10).await;
            world.stub.silently(|stub| {
                stub.put("changed", json!({"data": {"n": "1"}}));
                stub.put("new", json!({}));
                stub.delete("gone");
            });
            world.stub.expire_watches();
        })
        .await;
        assert_eq!(world.stub.lists(), 2);
        assert!(has(&lines, "00:00:10Z watch failed configmaps"), "{lines:#?}");
        let started: Vec<&String> = lines.iter().filter(|line| line.contains("started")).skip(3).collect();
        let names: Vec<&str> = started.iter().map(|line| line.rsplit('/').next().unwrap()).collect();
        assert_eq!(names, ["changed", "new", "gone"], "what is as it was is left alone");
    });
}

#[test]
fn an_expired_watch_that_is_told_by_the_http_status_lists_again_too() {
    world(|world| async move {
        world.stub.put("a", json!({}));
        world.stub.refuse_watches(1);
        let lines = while_running(&world, async {
            sleep(10).await;
            world.stub.put("b", json!({}));
        })
        .await;
        assert_eq!(world.stub.lists(), 2);
        assert!(has(&lines, "00:00:10Z started default/b"), "{lines:#?}");
    });
}

#[test]
fn a_watch_that_ends_goes_on_where_it_was() {
    world(|world| async move {
        world.stub.put("a", json!({}));
        let lines = while_running(&world, async {
            sleep(10).await;
            world.stub.silently(|stub| drop(stub.put("b", json!({}))));
            world.stub.drop_watches();
        })
        .await;
        assert_eq!(world.stub.lists(), 1);
        assert!(has(&lines, "00:00:10Z started default/b"), "{lines:#?}");
        assert!(!has(&lines, "watch failed"), "{lines:#?}");
    });
}

#[test]
fn a_server_that_ends_each_watch_at_once_is_asked_once_a_second_and_nothing_is_missed() {
    world(|world| async move {
        world.stub.put("a", json!({}));
        let lines = while_running(&world, async {
            sleep(10).await;
            world.stub.end_watches_at_once();
            world.stub.silently(|stub| drop(stub.put("b", json!({}))));
        })
        .await;
        assert_eq!((world.stub.lists(), world.stub.watched()), (1, 51), "one of ten seconds, and fifty of a second");
        assert!(has(&lines, "00:00:10Z started default/b"), "{lines:#?}");
    });
}

#[test]
fn a_list_that_fails_is_tried_again_later_each_time() {
    world(|world| async move {
        world.stub.put("a", json!({}));
        world.stub.fail_lists(4);
        let summary = run_for(world.runner(), 60, nothing).await;
        assert_eq!(summary.watch_errors, 4);
        let failed = world.lines_with("watch failed");
        assert!(failed[0].starts_with("00:00:00Z") && failed[0].contains("the list fails"), "{failed:#?}");
        let started = world.lines_with("started").remove(0);
        assert!(
            "00:00:05" < started.as_str() && started.as_str() < "00:00:13",
            "0.8 + 1.6 + 3.2 + 6.4 s at most: {started}"
        );
    });
}

#[test]
fn a_malformed_object_does_not_stop_the_others() {
    world(|world| async move {
        world.stub.put("a", json!({}));
        world.stub.put("bad", json!({"data": ["not", "a", "map"]}));
        world.stub.put("z", json!({}));
        let watch = world.watch();
        let cache = watch.cache();
        let runner = windlass_runtime::runner::Runner::new("test", watch, world.options());
        let script = async {
            sleep(10).await;
            world.stub.put("a", json!({"data": 7}));
            world.stub.put("z", json!({"data": {"n": "1"}}));
            sleep(10).await;
            assert_eq!(cache.list().len(), 2, "what could be read before is kept");
            assert_eq!(cache.unreadable().into_keys().map(|key| key.name).collect::<Vec<_>>(), ["a", "bad"]);
            world.stub.put("bad", json!({}));
            world.stub.delete("a");
        };
        let (summary, ()) = tokio::join!(run_for(runner, 60, nothing), script);
        assert_eq!((summary.unreadable, summary.watch_errors), (2, 0));
        assert!(cache.unreadable().is_empty());
        let lines = world.lines();
        for expected in ["00:00:00Z started default/z", "00:00:10Z started default/z", "00:00:20Z started default/bad"]
        {
            assert!(has(&lines, expected), "{expected} in {lines:#?}");
        }
    });
}
