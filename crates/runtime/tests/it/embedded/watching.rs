//! kube's `watcher` and `reflector`: lists, streamed lists, resumed and expired watches.

use futures::StreamExt;
use futures::TryStreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::core::PartialObjectMeta;
use kube::runtime::reflector::{self, ObjectRef};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Resource, ResourceExt};
use serde_json::json;

use super::{Cluster, Seen, cluster, config_map, named};
use crate::world::sleep;

async fn create(world: &Cluster, name: &str) -> ConfigMap {
    world.api::<ConfigMap>().create(&PostParams::default(), &config_map(name, &[])).await.unwrap()
}

async fn touch(world: &Cluster, name: &str) {
    let patch = json!({"data": {"at": world.clock.now().to_string()}});
    world.api::<ConfigMap>().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

async fn delete(world: &Cluster, name: &str) {
    world.api::<ConfigMap>().delete(name, &DeleteParams::default()).await.unwrap();
}

/// Something happens to another kind, and what happened so far is forgotten.
async fn forget_history(world: &Cluster) {
    let secret = Secret { metadata: named(&format!("s-{}", world.server.store().revision())), ..Secret::default() };
    world.api::<Secret>().create(&PostParams::default(), &secret).await.unwrap();
    world.server.store().compact(world.server.store().revision());
}

fn check_list_then_changes(config: watcher::Config) {
    cluster(|world| async move {
        create(&world, "a").await;
        create(&world, "b").await;
        let seen = Seen::watch(world.api::<ConfigMap>(), config);
        sleep(1).await;
        assert_eq!(seen.take(), ["init", "listed a", "listed b", "done"]);
        create(&world, "c").await;
        touch(&world, "a").await;
        delete(&world, "b").await;
        sleep(1).await;
        assert_eq!(seen.take(), ["applied c", "applied a", "deleted b"]);
    });
}

#[test]
fn a_watcher_lists_and_then_sees_every_change() {
    check_list_then_changes(watcher::Config::default());
    check_list_then_changes(watcher::Config::default().page_size(1));
    check_list_then_changes(watcher::Config::default().any_semantic());
}

#[test]
fn a_watcher_that_streams_its_list_sees_the_same() {
    check_list_then_changes(watcher::Config::default().streaming_lists());
}

#[test]
fn an_api_watch_delivers_typed_events() {
    cluster(|world| async move {
        let maps = world.api::<ConfigMap>();
        let params = WatchParams::default().timeout(10).disable_bookmarks();
        let mut events = maps.watch(&params, "0").await.unwrap().boxed();
        create(&world, "a").await;
        delete(&world, "a").await;
        let mut seen = Vec::new();
        while let Some(event) = events.try_next().await.unwrap() {
            seen.push(match event {
                WatchEvent::Added(map) => format!("added {}", map.name_any()),
                WatchEvent::Deleted(map) => format!("deleted {}", map.name_any()),
                other => panic!("{other:?}"),
            });
        }
        assert_eq!(seen, ["added a", "deleted a"]);
    });
}

#[test]
fn a_watch_is_resumed_every_290_seconds_and_misses_nothing() {
    cluster(|world| async move {
        create(&world, "a").await;
        let seen = Seen::watch(world.api::<ConfigMap>(), watcher::Config::default());
        for _ in 0..20 {
            sleep(97).await;
            touch(&world, "a").await;
        }
        sleep(1).await;
        let seen = seen.take();
        assert_eq!(seen.iter().filter(|line| *line == "applied a").count(), 20, "{seen:?}");
        assert!(!seen.iter().any(|line| line.starts_with("error")), "{seen:?}");
        // 1941 seconds are six times 290, and the first.
        assert_eq!((world.lists("configmaps"), world.watches("configmaps")), (1, 7));
    });
}

#[test]
fn bookmarks_keep_a_quiet_watch_alive_while_history_is_forgotten() {
    cluster(|world| async move {
        create(&world, "a").await;
        let seen = Seen::watch(world.api::<ConfigMap>(), watcher::Config::default());
        sleep(1).await;
        for _ in 0..60 {
            forget_history(&world).await;
            sleep(60).await;
        }
        touch(&world, "a").await;
        sleep(1).await;
        assert_eq!(seen.take(), ["init", "listed a", "done", "applied a"]);
        assert_eq!(world.lists("configmaps"), 1);
    });
}

#[test]
fn an_expired_watch_leads_to_exactly_one_relist() {
    let config = watcher::Config::default;
    for config in [config(), config().disable_bookmarks(), config().streaming_lists()] {
        cluster(|world| async move {
            create(&world, "a").await;
            create(&world, "b").await;
            let seen = Seen::watch(world.api::<ConfigMap>(), config);
            // After the last bookmark, and before the watch ends at 290.
            sleep(289).await;
            seen.take();
            forget_history(&world).await;
            sleep(600).await;
            assert_eq!(seen.take(), ["error 410", "init", "listed a", "listed b", "done"]);
            delete(&world, "a").await;
            sleep(1).await;
            assert_eq!(seen.take(), ["deleted a"]);
        });
    }
}

#[test]
fn what_was_deleted_while_nobody_watched_is_missing_from_the_relist() {
    cluster(|world| async move {
        create(&world, "a").await;
        create(&world, "b").await;
        let (store, writer) = reflector::store();
        let events = watcher(world.api::<ConfigMap>(), watcher::Config::default().disable_bookmarks());
        let reflected = events.default_backoff().reflect(writer);
        tokio::spawn(reflected.for_each(|_| async {}));
        store.wait_until_ready().await.unwrap();
        assert_eq!(store.len(), 2);
        // The watch lasts until 290; what follows happens while it waits for nothing.
        sleep(1).await;
        delete(&world, "b").await;
        create(&world, "c").await;
        forget_history(&world).await;
        sleep(600).await;
        let mut names: Vec<String> = store.state().iter().map(|map| map.name_any()).collect();
        names.sort();
        assert_eq!(names, ["a", "c"]);
        let found = store.get(&ObjectRef::new("c").within("default"));
        assert_eq!(found.map(|map| map.name_any()), Some("c".to_owned()));
    });
}

#[test]
fn a_selecting_watcher_sees_who_enters_and_who_leaves() {
    cluster(|world| async move {
        let seen = Seen::watch(world.api::<ConfigMap>(), watcher::Config::default().labels("colour=red"));
        let named_b = Seen::watch(world.api::<ConfigMap>(), watcher::Config::default().fields("metadata.name=b"));
        sleep(1).await;
        create(&world, "a").await;
        create(&world, "b").await;
        for colour in ["red", "red", "blue", "red"] {
            let patch = json!({"metadata": {"labels": {"colour": colour}}});
            world.api::<ConfigMap>().patch("a", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
        }
        delete(&world, "a").await;
        delete(&world, "b").await;
        sleep(1).await;
        assert_eq!(seen.take(), ["init", "done", "applied a", "deleted a", "applied a", "deleted a"]);
        assert_eq!(named_b.take(), ["init", "done", "applied b", "deleted b"]);
    });
}

#[test]
fn a_watcher_of_metadata_sees_metadata() {
    cluster(|world| async move {
        create(&world, "a").await;
        let maps: Api<PartialObjectMeta<ConfigMap>> = Api::default_namespaced(world.client());
        let mut events = watcher(maps, watcher::Config::default()).boxed();
        let listed = loop {
            if let watcher::Event::InitApply(object) = events.try_next().await.unwrap().unwrap() {
                break object;
            }
        };
        assert_eq!(listed.types.unwrap().kind, "PartialObjectMetadata");
        assert_eq!(listed.metadata.name.as_deref(), Some("a"));
    });
}

#[test]
fn garbage_collection_is_seen_by_a_watcher_in_the_order_of_the_deletes() {
    cluster(|world| async move {
        let parent = create(&world, "parent").await;
        let mut owner = parent.controller_owner_ref(&()).unwrap();
        owner.block_owner_deletion = Some(true);
        for name in ["child-1", "child-2"] {
            let mut child = config_map(name, &[]);
            child.metadata.owner_references = Some(vec![owner.clone()]);
            world.api::<ConfigMap>().create(&PostParams::default(), &child).await.unwrap();
        }
        let maps: Api<ConfigMap> = world.api();
        let seen = Seen::watch(maps.clone(), watcher::Config::default());
        sleep(1).await;
        seen.take();
        maps.delete("parent", &DeleteParams::foreground()).await.unwrap();
        sleep(1).await;
        let expected = ["applied parent", "deleted child-1", "deleted child-2", "deleted parent"];
        assert_eq!(seen.take(), expected, "the parent waits for its children");
    });
}
