//! What a client relies on, one fact at a time: kube's, and those of whoever reads frames.

use http::Request;
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::watcher;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::fleet::{self, Fleet, fleet};
use super::{Cluster, Seen, cluster, config_map, named, raw};
use crate::world::sleep;

fn get(uri: &str) -> Request<String> {
    Request::get(uri).body(String::new()).unwrap()
}

/// The frames of a watch until it ends, as they are cut on the wire.
async fn frames(world: &Cluster, query: &str) -> (u16, Vec<String>) {
    let uri = format!("/api/v1/namespaces/default/configmaps?watch=true&{query}");
    let answer = raw(&world.server, get(&uri)).await;
    let (code, mut body) = (answer.status().as_u16(), answer.into_body());
    let mut frames = Vec::new();
    while let Some(frame) = body.frame().await {
        frames.push(String::from_utf8(frame.unwrap().into_data().unwrap().to_vec()).unwrap());
    }
    (code, frames)
}

async fn create(world: &Cluster, name: &str) -> ConfigMap {
    world.api::<ConfigMap>().create(&PostParams::default(), &config_map(name, &[("k", "two\nlines")])).await.unwrap()
}

/// Fact 1.
#[test]
fn an_expired_version_is_an_event_of_a_stream_that_began_well() {
    cluster(|world| async move {
        let first = create(&world, "a").await;
        create(&world, "b").await;
        world.server.store().compact(world.server.store().revision());
        let (code, frames) = frames(&world, &format!("resourceVersion={}", first.resource_version().unwrap())).await;
        assert_eq!((code, frames.len()), (200, 1));
        let frame: Value = serde_json::from_str(&frames[0]).unwrap();
        assert_eq!(frame["type"], "ERROR");
        assert_eq!(
            (frame["object"]["code"].as_u64(), frame["object"]["reason"].as_str()),
            (Some(410), Some("Expired"))
        );
    });
}

/// Fact 2.
#[test]
fn a_watch_ends_when_its_time_is_over() {
    cluster(|world| async move {
        for (query, seconds) in [("timeoutSeconds=290", 290), ("timeoutSeconds=1", 1), ("timeoutSeconds=0", 45 * 60)] {
            let start = Instant::now();
            frames(&world, query).await;
            assert_eq!(start.elapsed().as_secs(), seconds, "{query}");
        }
        // A client that switches its own clock off is served until the server has enough.
        let seen = Seen::watch(world.api::<ConfigMap>(), watcher::Config::default().timeout(0));
        sleep(3600).await;
        assert_eq!((seen.take(), world.watches("configmaps")), (vec!["init".to_owned(), "done".to_owned()], 2));
    });
}

/// Fact 3.
#[test]
fn bookmarks_carry_the_version_of_the_whole_server() {
    cluster(|world| async move {
        create(&world, "a").await;
        let server = world.clone();
        let busy = tokio::spawn(async move {
            loop {
                sleep(20).await;
                let name = format!("s-{}", server.server.store().revision());
                let secret = k8s_openapi::api::core::v1::Secret { metadata: named(&name), ..Default::default() };
                server.api().create(&PostParams::default(), &secret).await.unwrap();
            }
        });
        let from = world.server.store().revision();
        let query = format!("allowWatchBookmarks=true&timeoutSeconds=290&resourceVersion={from}");
        let (_, frames) = frames(&world, &query).await;
        busy.abort();
        let frames: Vec<Value> = frames.iter().map(|frame| serde_json::from_str(frame).unwrap()).collect();
        let kinds: Vec<&str> = frames.iter().map(|frame| frame["type"].as_str().unwrap()).collect();
        // Each minute, and two seconds before the end.
        assert_eq!(kinds, ["BOOKMARK"; 5]);
        let version = frames[4]["object"]["metadata"]["resourceVersion"].as_str().unwrap();
        assert_eq!(version.parse::<u64>().unwrap(), from + 14, "288 seconds of a write every 20");
    });
}

/// Fact 4.
#[test]
fn every_list_has_a_version_also_an_empty_one_and_a_page() {
    cluster(|world| async move {
        let maps = world.api::<ConfigMap>();
        let version = async |params| maps.list(&params).await.unwrap().metadata.resource_version;
        let now = || Some(world.server.store().revision().to_string());
        assert_eq!(version(ListParams::default()).await, now());
        for n in 0..1100 {
            create(&world, &format!("m-{n}")).await;
        }
        assert_eq!(version(ListParams::default().labels("a=b")).await, now());
        assert_eq!(version(ListParams::default().limit(1)).await, now());
        let seen = Seen::watch(maps.clone(), watcher::Config::default());
        sleep(1).await;
        assert_eq!(seen.take().len(), 1102);
        assert_eq!(world.requests(&["limit=500"]), 3, "the pages of kube's watcher");
    });
}

/// Fact 5; who enters and leaves a selection is told in `watching`.
#[test]
fn a_deletion_has_a_version_of_its_own() {
    cluster(|world| async move {
        let created = create(&world, "a").await;
        let from = created.resource_version().unwrap();
        world.api::<ConfigMap>().delete("a", &DeleteParams::default()).await.unwrap();
        let (_, frames) = frames(&world, &format!("timeoutSeconds=1&resourceVersion={from}")).await;
        let frame: Value = serde_json::from_str(&frames[0]).unwrap();
        assert_eq!((frames.len(), frame["type"].as_str()), (1, Some("DELETED")));
        let deleted = frame["object"]["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap();
        assert_eq!(deleted, from.parse::<u64>().unwrap() + 1);
        assert_eq!(frame["object"]["data"]["k"], "two\nlines", "the last state");
    });
}

/// Fact 6.
#[test]
fn a_write_that_changes_nothing_is_no_write() {
    cluster(|world| async move {
        fleet::define(&world.client()).await;
        fleet::create(&world.client(), &fleet("a", 1)).await;
        let fleets = world.api::<Fleet>();
        let status = Patch::Merge(json!({"status": {"made": 1, "observedGeneration": 1}}));
        let reported = fleets.patch_status("a", &PatchParams::default(), &status).await.unwrap();
        let seen = Seen::watch(fleets.clone(), watcher::Config::default());
        sleep(1).await;
        seen.take();

        let revision = world.server.store().revision();
        sleep(100).await;
        fleets.patch_status("a", &PatchParams::default(), &status).await.unwrap();
        let nothing = Patch::Merge(json!({"metadata": {"labels": {}}}));
        fleets.patch("a", &PatchParams::default(), &nothing).await.unwrap();
        fleets.replace("a", &PostParams::default(), &reported).await.unwrap();
        fleets.replace_status("a", &PostParams::default(), &reported).await.unwrap();
        sleep(1).await;
        assert_eq!((world.server.store().revision(), seen.take()), (revision, vec![]));
    });
}

/// Fact 7; the rest of it is in `custom`.
#[test]
fn the_generation_counts_changes_of_the_spec_only() {
    cluster(|world| async move {
        fleet::define(&world.client()).await;
        fleet::create(&world.client(), &fleet("a", 1)).await;
        let fleets = world.api::<Fleet>();
        let steps = [
            (json!({"metadata": {"labels": {"a": "b"}}}), 1),
            (json!({"spec": {"count": 2}}), 2),
            (json!({"status": {"made": 2, "observedGeneration": 2}}), 2),
            (json!({"metadata": {"annotations": {"a": "b"}}, "spec": {"port": "away"}}), 3),
        ];
        for (patch, generation) in steps {
            let patched = fleets.patch("a", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
            assert_eq!(patched.metadata.generation, Some(generation), "{patch}");
        }
    });
}

/// Fact 8.
#[test]
fn a_frame_is_one_line() {
    cluster(|world| async move {
        create(&world, "a").await;
        let (_, frames) = frames(
            &world,
            "timeoutSeconds=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
        )
        .await;
        assert_eq!(frames.len(), 2);
        for frame in frames {
            assert!(frame.ends_with("}\n") && frame.matches('\n').count() == 1, "{frame}");
            serde_json::from_str::<Value>(&frame).unwrap();
        }
    });
}
