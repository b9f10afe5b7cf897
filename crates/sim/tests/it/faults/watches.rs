//! Watches that go wrong, and replicas that stand still.

use std::time::Duration;

use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, WatchEvent, WatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use windlass_sim::actor::Caller;
use windlass_sim::fault::{Fault, Requests, Scenario, Span, WatchEnd, When};
use windlass_sim::world::World;

use super::{create, in_world_with, once, said, seconds};

fn watches() -> Requests {
    Requests::to("watch", "configmaps").by(Caller::Controllers)
}

/// A watch of the controllers from now on, in words.
async fn watch(world: &World) -> impl Stream<Item = String> + Unpin {
    let api: Api<ConfigMap> = Api::namespaced(world.client_of(Caller::Controllers), "default");
    let from = Api::<ConfigMap>::namespaced(world.client(), "default").list(&ListParams::default()).await.unwrap();
    let params = WatchParams::default().timeout(290);
    let events = api.watch(&params, &from.metadata.resource_version.unwrap()).await.unwrap();
    let n = |map: &ConfigMap| map.data.as_ref().and_then(|data| data.get("n")).cloned().unwrap_or_default();
    let words = move |event: Result<WatchEvent<ConfigMap>, kube::Error>| match event {
        Ok(WatchEvent::Added(map)) => format!("added {}{}", map.name_any(), n(&map)),
        Ok(WatchEvent::Modified(map)) => format!("modified {}{}", map.name_any(), n(&map)),
        Ok(WatchEvent::Deleted(map)) => format!("deleted {}{}", map.name_any(), n(&map)),
        Ok(WatchEvent::Bookmark(_)) => "bookmark".to_owned(),
        Ok(WatchEvent::Error(status)) => status.code.to_string(),
        Err(error) => error.to_string(),
    };
    Box::pin(events.map(words))
}

/// What comes within so many seconds, and whether it ended.
async fn heard(events: &mut (impl Stream<Item = String> + Unpin), within: u64) -> (Vec<String>, bool) {
    let mut heard = Vec::new();
    let end = tokio::time::Instant::now() + Duration::from_secs(within);
    loop {
        match tokio::time::timeout_at(end, events.next()).await {
            Ok(Some(event)) => heard.push(event),
            Ok(None) => return (heard, true),
            Err(_) => return (heard, false),
        }
    }
}

async fn change(world: &World, name: &str, n: u32) {
    let api: Api<ConfigMap> = Api::namespaced(world.client(), "default");
    let patch = Patch::Merge(json!({"data": {"n": n.to_string()}}));
    api.patch(name, &PatchParams::default(), &patch).await.unwrap();
}

fn check_end(how: WatchEnd, first: &[&str], ends_within: bool) {
    let fault = Fault::WatchEnds { on: watches(), how, after: Span::seconds(10) };
    in_world_with(7, once(fault), |world| async move {
        let mut events = watch(&world).await;
        create(&world.client(), "a").await.unwrap();
        assert_eq!(heard(&mut events, 5).await, (vec!["added a".to_owned()], false));
        seconds(10).await;
        create(&world.client(), "b").await.unwrap();
        let (after, ended) = heard(&mut events, 60).await;
        assert_eq!((after.iter().map(String::as_str).collect::<Vec<_>>(), ended), (first.to_vec(), ends_within));
        let mut again = watch(&world).await;
        create(&world.client(), "c").await.unwrap();
        assert_eq!(heard(&mut again, 5).await.0, ["added c"], "it bit once");
        said(&world, "F08: watch configmaps default of the controllers");
    });
}

#[test]
fn a_watch_is_dropped_expires_or_stalls() {
    check_end(WatchEnd::Dropped, &[], true);
    check_end(WatchEnd::Expired, &["410"], true);
    check_end(WatchEnd::Stalled, &[], false);
}

#[test]
fn a_stalled_watch_ends_in_the_end() {
    let fault = Fault::WatchEnds { on: watches(), how: WatchEnd::Stalled, after: Span::seconds(1) };
    in_world_with(7, once(fault), |world| async move {
        let mut events = watch(&world).await;
        assert_eq!(heard(&mut events, 302).await, (Vec::new(), true));
    });
}

#[test]
fn bookmarks_can_be_lost() {
    let count = |scenario| {
        in_world_with(7, scenario, |world| async move {
            let mut events = watch(&world).await;
            let elsewhere = async {
                for number in 0..4 {
                    seconds(40).await;
                    let api: Api<ConfigMap> = Api::namespaced(world.client(), "kube-system");
                    let map = super::config_map(&format!("m-{number}"));
                    api.create(&kube::api::PostParams::default(), &map).await.unwrap();
                }
            };
            let ((heard, _), ()) = tokio::join!(heard(&mut events, 200), elsewhere);
            heard.iter().filter(|event| *event == "bookmark").count()
        })
    };
    assert!(count(Scenario::default()) >= 2);
    assert_eq!(count(Scenario::of(Fault::BookmarksLost { on: watches() })), 0);
}

#[test]
fn what_comes_in_between_may_never_be_seen() {
    let fault = Fault::Coalescing { on: watches(), within: Span::seconds(5) };
    in_world_with(7, Scenario::of(fault), |world| async move {
        let mut events = watch(&world).await;
        let api: Api<ConfigMap> = Api::namespaced(world.client(), "default");
        for name in ["a", "brief"] {
            create(&world.client(), name).await.unwrap();
        }
        change(&world, "a", 1).await;
        change(&world, "a", 2).await;
        api.delete("brief", &DeleteParams::default()).await.unwrap();
        assert_eq!(heard(&mut events, 10).await.0, ["added a2"], "and of the other one nobody ever hears");
        change(&world, "a", 3).await;
        api.delete("a", &DeleteParams::default()).await.unwrap();
        create(&world.client(), "a").await.unwrap();
        assert_eq!(heard(&mut events, 10).await.0, ["modified a"], "another object of the same name");
        said(&world, "F09: watch configmaps default of the controllers leaves out what comes in between");
    });
}

#[test]
fn a_cache_lags_behind_its_own_writes() {
    let fault = Fault::Lag { on: watches(), by: Span::seconds(20) };
    let for_a_minute = Scenario::default().and(fault, When::between(Span::default(), Span::minutes(1)));
    in_world_with(7, for_a_minute, |world| async move {
        let mut events = watch(&world).await;
        create(&world.client_of(Caller::Controllers), "a").await.unwrap();
        change(&world, "a", 1).await;
        assert_eq!(heard(&mut events, 19).await.0, [""; 0]);
        assert_eq!(heard(&mut events, 2).await.0, ["added a", "modified a1"]);
        seconds(60).await;
        change(&world, "a", 2).await;
        assert_eq!(heard(&mut events, 1).await.0, ["modified a2"], "the fault is over");
        said(&world, "F11: watch configmaps default of the controllers tells late: 20s");
    });
}

async fn listed(world: &World, caller: Caller) -> Vec<String> {
    let api: Api<ConfigMap> = Api::namespaced(world.client_of(caller), "default");
    let list = api.list(&ListParams::default()).await.unwrap();
    list.items.iter().map(ResourceExt::name_any).filter(|name| name.len() == 1).collect()
}

fn replica(asked_after: u64) -> Scenario {
    let fault = Fault::StaleReplica { caller: Caller::Controllers, asked_after: Span::seconds(asked_after) };
    Scenario::default().and(fault, When::between(Span::seconds(60), Span::seconds(180)))
}

#[test]
fn a_stale_replica_is_read_while_writes_go_to_the_others() {
    in_world_with(7, replica(0), |world| async move {
        create(&world.client(), "a").await.unwrap();
        let mut before = watch(&world).await;
        seconds(61).await;
        assert!(heard(&mut before, 1).await.1, "whoever is connected elsewhere has to watch again");
        let client = world.client_of(Caller::Controllers);
        create(&client, "b").await.unwrap();
        assert_eq!(listed(&world, Caller::Controllers).await, ["a"], "its own write is not there");
        assert_eq!(listed(&world, Caller::Upgrader).await, ["a", "b"], "others are not concerned");
        assert_eq!(super::code(create(&client, "b").await), 409);
        seconds(120).await;
        assert_eq!(listed(&world, Caller::Controllers).await, ["a", "b"]);
        said(&world, "F10: the controllers read from a replica that stands still");
    });
}

#[test]
fn a_list_may_be_older_than_what_was_seen_before() {
    in_world_with(7, replica(30), |world| async move {
        create(&world.client(), "a").await.unwrap();
        seconds(70).await;
        create(&world.client(), "b").await.unwrap();
        let mut events = watch(&world).await;
        assert_eq!(listed(&world, Caller::Controllers).await, ["a", "b"], "the replica is not asked yet");
        assert_eq!(heard(&mut events, 30).await, (vec!["410".to_owned()], true), "who watched has to list again");
        assert_eq!(listed(&world, Caller::Controllers).await, ["a"], "back in time");
        seconds(90).await;
        assert_eq!(listed(&world, Caller::Controllers).await, ["a", "b"]);
        said(&world, "F12: the controllers read from a replica that stands still");
    });
}
