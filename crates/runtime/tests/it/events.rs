//! Events: named by what they are about, raised into series, stamped by our clock.

use k8s_openapi::api::core::v1::ObjectReference;
use serde_json::Value;
use windlass_runtime::events::{Kind, Notice, Recorder};

use crate::world::{World, sleep, world};

fn recorder(world: &World) -> Recorder {
    Recorder::new(world.stub.client(), world.clock.clone(), "windlass.dev/test", "replica-0")
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

#[test]
fn an_event_carries_our_time_and_our_name() {
    world(|world| async move {
        sleep(90).await;
        recorder(&world).publish(&object("web", "1"), &notice("Behind", "waits")).await.unwrap();
        let events = world.stub.events();
        let (path, event) = events.first_key_value().unwrap();
        assert!(path.starts_with("/apis/events.k8s.io/v1/namespaces/apps/events/web."), "{path}");
        let expected = [
            ("eventTime", "2026-01-01T00:01:30.000000Z"),
            ("type", "Warning"),
            ("reason", "Behind"),
            ("action", "Roll"),
            ("note", "waits"),
            ("reportingController", "windlass.dev/test"),
            ("reportingInstance", "replica-0"),
        ];
        for (field, value) in expected {
            assert_eq!(event[field], value);
        }
        assert_eq!(event["regarding"]["uid"], "1");
        assert_eq!(event["series"], Value::Null);
    });
}

#[test]
fn what_is_said_again_becomes_a_series_also_after_a_restart() {
    world(|world| async move {
        for (count, note) in [(1, "first"), (2, "second"), (3, "third")] {
            // A new recorder each time remembers nothing.
            recorder(&world).publish(&object("web", "1"), &notice("Behind", note)).await.unwrap();
            let events = world.stub.events();
            assert_eq!(events.len(), 1);
            let event = events.into_values().next().unwrap();
            assert_eq!(event["note"], "first", "Kubernetes does not let a note change");
            assert_eq!(event["series"]["count"].as_i64().unwrap_or(1), count);
            sleep(60).await;
        }
        let event = world.stub.events().into_values().next().unwrap();
        assert_eq!(event["series"]["lastObservedTime"], "2026-01-01T00:02:00.000000Z");
        assert_eq!(event["eventTime"], "2026-01-01T00:00:00.000000Z");
    });
}

#[test]
fn two_that_say_the_same_at_once_count_as_two() {
    world(|world| async move {
        let (recorder, about, said) = (recorder(&world), object("web", "1"), notice("Behind", "waits"));
        recorder.publish(&about, &said).await.unwrap();
        let (first, second) = tokio::join!(recorder.publish(&about, &said), recorder.publish(&about, &said));
        first.unwrap();
        second.unwrap();
        let event = world.stub.events().into_values().next().unwrap();
        assert_eq!(event["series"]["count"], 3);
    });
}

#[test]
fn another_object_or_reason_or_controller_is_another_event() {
    world(|world| async move {
        let recorder = recorder(&world);
        let other = Recorder::new(world.stub.client(), world.clock.clone(), "windlass.dev/other", "replica-0");
        recorder.publish(&object("web", "1"), &notice("Behind", "")).await.unwrap();
        recorder.publish(&object("web", "2"), &notice("Behind", "")).await.unwrap();
        recorder.publish(&object("web", "1"), &notice("Ahead", "")).await.unwrap();
        recorder.publish(&object("web", "1"), &Notice { kind: Kind::Normal, ..notice("Behind", "") }).await.unwrap();
        other.publish(&object("web", "1"), &notice("Behind", "")).await.unwrap();
        assert_eq!(world.stub.events().len(), 5);
    });
}

#[test]
fn names_stay_within_what_dns_allows() {
    world(|world| async move {
        let long = format!("{}-.{}", "a".repeat(234), "b".repeat(17));
        recorder(&world).publish(&object(&long, "1"), &notice("Behind", "")).await.unwrap();
        let path = world.stub.events().into_keys().next().unwrap();
        let name = path.rsplit('/').next().unwrap();
        assert!(name.len() <= 253 && name.starts_with("aaa") && !name.contains("-."), "{name}");
    });
}

#[test]
fn a_cluster_scoped_object_has_its_events_in_default_and_refusals_are_returned() {
    world(|world| async move {
        let node = ObjectReference { namespace: None, kind: Some("Node".into()), ..object("node-1", "1") };
        recorder(&world).publish(&node, &notice("Behind", "")).await.unwrap();
        assert!(world.stub.events().into_keys().next().unwrap().contains("/namespaces/default/"));

        world.stub.refuse_events();
        let error = recorder(&world).publish(&node, &notice("Behind", "")).await.unwrap_err();
        assert!(error.to_string().starts_with("publish the event node-1."), "{error}");
    });
}
