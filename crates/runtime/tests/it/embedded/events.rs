//! Events: named by what they are about, raised into series, stamped by our clock, and read through both groups.

use k8s_openapi::api::core::v1::{ConfigMap, Event as CoreEvent, Namespace, ObjectReference};
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, ResourceExt};
use windlass_runtime::events::{Kind, Notice, PublishError, Recorder};

use super::{Cluster, cluster, config_map, named, refusal};
use crate::world::sleep;

/// Runs a test with a namespace `apps`.
fn apps<F: Future<Output = ()>>(body: impl FnOnce(Cluster) -> F) {
    cluster(|world| async move {
        let namespaces: Api<Namespace> = Api::all(world.client());
        let apps = Namespace { metadata: named("apps"), ..Namespace::default() };
        namespaces.create(&PostParams::default(), &apps).await.unwrap();
        body(world).await;
    });
}

fn recorder(world: &Cluster) -> Recorder {
    Recorder::new(world.client(), world.clock.clone(), "windlass.dev/test", "replica-0")
}

fn object(name: &str, uid: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".into()),
        kind: Some("ConfigMap".into()),
        namespace: Some("apps".into()),
        name: Some(name.into()),
        uid: Some(uid.into()),
        ..ObjectReference::default()
    }
}

fn notice(reason: &str, note: &str) -> Notice {
    let (reason, note) = (reason.to_owned(), note.to_owned());
    Notice { kind: Kind::Warning, reason, action: "Roll".into(), note, related: None }
}

async fn events(world: &Cluster) -> Vec<Event> {
    Api::all(world.client()).list(&ListParams::default()).await.unwrap().items
}

/// The only Event that there is.
async fn event(world: &Cluster) -> Event {
    let mut events = events(world).await;
    assert_eq!(events.len(), 1);
    events.remove(0)
}

#[test]
fn an_event_carries_our_time_and_our_name() {
    apps(|world| async move {
        sleep(90).await;
        recorder(&world).publish(&object("web", "1"), &notice("Behind", "waits")).await.unwrap();
        let event = event(&world).await;
        assert!(event.name_any().starts_with("web."), "{}", event.name_any());
        assert_eq!(event.namespace().as_deref(), Some("apps"));
        assert_eq!(event.event_time.unwrap().0.to_string(), "2026-01-01T00:01:30Z");
        let said = [event.type_, event.reason, event.action, event.note];
        assert_eq!(said.map(Option::unwrap), ["Warning", "Behind", "Roll", "waits"]);
        let by = [event.reporting_controller, event.reporting_instance];
        assert_eq!(by.map(Option::unwrap), ["windlass.dev/test", "replica-0"]);
        assert_eq!(event.regarding, Some(object("web", "1")));
        assert_eq!(event.series, None);
    });
}

#[test]
fn an_event_is_read_through_both_groups_and_found_by_what_it_is_about() {
    apps(|world| async move {
        recorder(&world).publish(&object("web", "1"), &notice("Behind", "waits")).await.unwrap();
        recorder(&world).publish(&object("db", "2"), &notice("Behind", "waits")).await.unwrap();
        let core: Api<CoreEvent> = Api::namespaced(world.client(), "apps");
        // As `kubectl describe` asks.
        let about =
            ListParams::default().fields("involvedObject.name=web,involvedObject.uid=1,involvedObject.kind=ConfigMap");
        let found = core.list(&about).await.unwrap().items;
        assert_eq!(found.len(), 1);
        let found = &found[0];
        assert_eq!((found.message.as_deref(), found.reason.as_deref()), (Some("waits"), Some("Behind")));
        assert_eq!(found.involved_object, object("web", "1"));
        assert_eq!(found.reporting_component.as_deref(), Some("windlass.dev/test"));

        let ours: Api<Event> = Api::namespaced(world.client(), "apps");
        let same = ours.get(&found.name_any()).await.unwrap();
        assert_eq!((same.uid(), same.resource_version()), (found.uid(), found.resource_version()), "one object");
        let about = ListParams::default().fields("regarding.name=web");
        assert_eq!(ours.list(&about).await.unwrap().items, [same]);
    });
}

#[test]
fn what_is_said_again_becomes_a_series_also_after_a_restart() {
    apps(|world| async move {
        for (count, note) in [(1, "first"), (2, "second"), (3, "third")] {
            // A new recorder each time remembers nothing.
            recorder(&world).publish(&object("web", "1"), &notice("Behind", note)).await.unwrap();
            let event = event(&world).await;
            assert_eq!(event.note.as_deref(), Some("first"), "Kubernetes does not let a note change");
            assert_eq!(event.series.map_or(1, |series| series.count), count);
            sleep(60).await;
        }
        let event = event(&world).await;
        assert_eq!(event.series.unwrap().last_observed_time.0.to_string(), "2026-01-01T00:02:00Z");
        assert_eq!(event.event_time.unwrap().0.to_string(), "2026-01-01T00:00:00Z");
    });
}

#[test]
fn two_that_say_the_same_at_once_count_as_two() {
    apps(|world| async move {
        let (recorder, about, said) = (recorder(&world), object("web", "1"), notice("Behind", "waits"));
        recorder.publish(&about, &said).await.unwrap();
        let (first, second) = tokio::join!(recorder.publish(&about, &said), recorder.publish(&about, &said));
        first.unwrap();
        second.unwrap();
        assert_eq!(event(&world).await.series.unwrap().count, 3);
        assert_eq!(world.requests(&["PATCH"]), 3, "one of them lost the race, and tried again");
    });
}

#[test]
fn another_object_or_reason_or_controller_is_another_event() {
    apps(|world| async move {
        let recorder = recorder(&world);
        let other = Recorder::new(world.client(), world.clock.clone(), "windlass.dev/other", "replica-0");
        recorder.publish(&object("web", "1"), &notice("Behind", "")).await.unwrap();
        recorder.publish(&object("web", "2"), &notice("Behind", "")).await.unwrap();
        recorder.publish(&object("web", "1"), &notice("Ahead", "")).await.unwrap();
        recorder.publish(&object("web", "1"), &Notice { kind: Kind::Normal, ..notice("Behind", "") }).await.unwrap();
        other.publish(&object("web", "1"), &notice("Behind", "")).await.unwrap();
        assert_eq!(events(&world).await.len(), 5);
    });
}

#[test]
fn names_and_notes_of_any_length_are_taken() {
    apps(|world| async move {
        let long = format!("{}-.{}", "a".repeat(234), "b".repeat(17));
        recorder(&world).publish(&object(&long, "1"), &notice("Behind", &"ä".repeat(1000))).await.unwrap();
        let event = event(&world).await;
        assert!(event.name_any().starts_with("aaa") && !event.name_any().contains("-."), "{}", event.name_any());
        assert!(event.note.unwrap().ends_with('…'));
    });
}

#[test]
fn a_cluster_scoped_object_has_its_events_in_default() {
    apps(|world| async move {
        let node = ObjectReference { namespace: None, kind: Some("Node".into()), ..object("node-1", "1") };
        recorder(&world).publish(&node, &notice("Behind", "")).await.unwrap();
        assert_eq!(event(&world).await.namespace().as_deref(), Some("default"));
    });
}

#[test]
fn refusals_are_returned() {
    apps(|world| async move {
        // Something keeps the namespace from going, so that it only takes nothing new.
        let mut keeper = config_map("keeper", &[]);
        keeper.metadata.finalizers = Some(vec!["test.windlass.dev/keep".into()]);
        let maps: Api<ConfigMap> = Api::namespaced(world.client(), "apps");
        maps.create(&PostParams::default(), &keeper).await.unwrap();
        let namespaces: Api<Namespace> = Api::all(world.client());
        namespaces.delete("apps", &DeleteParams::default()).await.unwrap();
        let nowhere = ObjectReference { namespace: Some("nowhere".into()), ..object("web", "1") };
        for (about, code) in [(object("web", "1"), 403), (nowhere, 404)] {
            let error = recorder(&world).publish(&about, &notice("Behind", "")).await.unwrap_err();
            assert!(error.to_string().starts_with("publish the event web."), "{error}");
            let PublishError::Api { source, .. } = error else { panic!("{error}") };
            assert_eq!(refusal::<()>(Err(*source)).code, code);
        }
    });
}
