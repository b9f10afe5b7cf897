//! What webhooks may change, and what they may not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::BoxFuture;
use http::{Method, Request};
use serde_json::{Value, json};
use windlass_apiserver::ApiServer;
use windlass_apiserver::admission::{FailurePolicy, Handler, Webhook};

use super::{MAPS, allows, create, map, merge, message, patched, patches, send, send_request, server, webhook};

#[tokio::test]
async fn a_mutating_webhook_changes_what_is_stored_and_a_validating_one_sees_it() {
    let server = server();
    let (changes, _) = patches(json!([{"op": "add", "path": "/data/added", "value": "1"}]));
    let (judges, asked) = allows();
    server.admission().add_mutating(changes);
    server.admission().add_validating(judges);
    let created = create(&server, &map("a", &json!({"x": "1"}))).await;
    assert_eq!((created.code, &created.body["data"]), (201, &json!({"x": "1", "added": "1"})));
    let asked = asked.one();
    assert_eq!(asked["object"]["data"], json!({"x": "1", "added": "1"}));
    assert!(asked["object"]["metadata"]["uid"].is_string(), "it sees the object as it is stored");
    let read = send(&server, Method::GET, &format!("{MAPS}/a"), &Value::Null).await;
    assert_eq!(read.body, created.body);
    // Who sent the object does not own what a webhook added.
    let fields = &read.body["metadata"]["managedFields"][0]["fieldsV1"]["f:data"];
    assert_eq!(fields, &json!({".": {}, "f:x": {}}));
}

#[tokio::test]
async fn a_webhook_sees_what_those_before_it_left_with_defaults() {
    let server = server();
    let port = json!([{"op": "add", "path": "/spec/ports/-", "value": {"port": 81, "name": "more"}}]);
    let (first, _) = patches(port);
    let (second, asked) = allows();
    server.admission().add_mutating(first);
    server.admission().add_mutating(second);
    let service = json!({"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80, "name": "one"}]}});
    let created = send(&server, Method::POST, "/api/v1/namespaces/default/services", &service).await;
    assert_eq!(created.code, 201, "{}", created.body);
    assert_eq!(asked.one()["object"]["spec"]["ports"][1]["protocol"], "TCP");
}

#[tokio::test]
async fn whoever_wants_to_sees_the_object_again_once_when_a_later_one_changed_it() {
    let server = server();
    // Counts the keys; changes something each time.
    let counts = |request: &Value| {
        let keys = request["object"]["data"].as_object().map_or(0, serde_json::Map::len);
        Ok(patched(&json!([{"op": "add", "path": format!("/data/seen-{keys}"), "value": ""}])))
    };
    let (mut again, asked_again) = webhook(counts);
    again.reinvoke = true;
    let (once, asked_once) = allows();
    let (changes, _) = patches(json!([{"op": "add", "path": "/data/late", "value": "1"}]));
    let (mut last, asked_last) = allows();
    last.reinvoke = true;
    for hook in [again, once, changes, last] {
        server.admission().add_mutating(hook);
    }
    let created = create(&server, &map("a", &json!({"own": ""}))).await;
    let keys: Vec<&String> = created.body["data"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["late", "own", "seen-1", "seen-3"]);
    // The last one saw all that came before, and what the first did then is not shown to anybody.
    assert_eq!((asked_again.count(), asked_once.count(), asked_last.count()), (2, 1, 1));
}

#[tokio::test]
async fn nobody_is_asked_again_when_nothing_changed() {
    let server = server();
    let (mut first, asked) = allows();
    first.reinvoke = true;
    // A patch that changes nothing is no change.
    let (second, _) = patches(json!([{"op": "add", "path": "/data/x", "value": "1"}]));
    server.admission().add_mutating(first);
    server.admission().add_mutating(second);
    assert_eq!(create(&server, &map("a", &json!({"x": "1"}))).await.code, 201);
    assert_eq!(asked.count(), 1);
}

#[tokio::test]
async fn a_patch_that_does_not_fit_is_an_internal_error_whatever_the_failure_policy() {
    for patch in [
        json!([{"op": "remove", "path": "/data/none"}]),
        json!([{"op": "replace", "path": "/data", "value": 5}]),
        json!([{"op": "replace", "path": "/metadata/labels", "value": {"a": ["b"]}}]),
    ] {
        let server = server();
        let (mut hook, _) = patches(patch.clone());
        hook.failure = FailurePolicy::Ignore;
        server.admission().add_mutating(hook);
        let refused = create(&server, &map("a", &json!({}))).await;
        assert_eq!((refused.code, refused.body["reason"].as_str()), (500, Some("InternalError")), "{patch}");
    }
}

#[tokio::test]
async fn an_object_that_goes_cannot_be_changed() {
    let server = server();
    create(&server, &map("a", &json!({}))).await;
    let (hook, _) = patches(json!([{"op": "add", "path": "/data/x", "value": "1"}]));
    server.admission().add_mutating(hook);
    let refused = send(&server, Method::DELETE, &format!("{MAPS}/a"), &Value::Null).await;
    assert_eq!(refused.code, 500);
    let why = "attempted to modify the object, which is not supported for this operation";
    assert_eq!(message(&refused), format!("Internal error occurred: admission webhook \"hook.test.dev\" {why}"));
}

#[tokio::test]
async fn what_a_client_may_not_change_a_webhook_may_not_either() {
    let replace = |path: &str, value: Value| json!([{"op": "replace", "path": path, "value": value}]);
    let immutable = |field: &str| format!("{field}: Invalid value");
    for (patch, said) in [
        (replace("/metadata/uid", json!("7")), immutable("metadata.uid")),
        (replace("/metadata/name", json!("b")), immutable("metadata.name")),
        (
            json!([{"op": "add", "path": "/data/y", "value": "1"}]),
            "field is immutable when `immutable` is set".to_owned(),
        ),
    ] {
        let server = server();
        let mut object = map("a", &json!({"x": "1"}));
        object["immutable"] = true.into();
        create(&server, &object).await;
        let (hook, _) = patches(patch.clone());
        server.admission().add_mutating(hook);
        let refused = merge(&server, &format!("{MAPS}/a"), &json!({"metadata": {"labels": {"a": "b"}}})).await;
        assert_eq!(refused.code, 422, "{patch} {}", refused.body);
        assert!(message(&refused).contains(&said), "{patch} {}", message(&refused));
    }
}

#[tokio::test]
async fn what_the_server_decides_a_webhook_does_not() {
    let server = server();
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let (hook, _) = webhook(|request| {
        let mut patch = vec![json!({"op": "add", "path": "/metadata/generation", "value": 99})];
        patch.push(json!({"op": "add", "path": "/status", "value": {"replicas": 99}}));
        patch.push(json!({"op": "add", "path": "/metadata/creationTimestamp", "value": "2000-01-01T00:00:00Z"}));
        if request["subResource"] == "status" {
            patch.push(json!({"op": "add", "path": "/spec/replicas", "value": 99}));
        }
        Ok(patched(&patch.into()))
    });
    server.admission().add_mutating(hook);
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}});
    let deployment =
        json!({"metadata": {"name": "a"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}});
    let created = send(&server, Method::POST, deployments, &deployment).await;
    assert_eq!(created.code, 201, "{}", created.body);
    assert_eq!(created.body["metadata"]["generation"], 1);
    assert_eq!(created.body["status"], json!({}));
    assert_ne!(created.body["metadata"]["creationTimestamp"], "2000-01-01T00:00:00Z");
    let reported = merge(&server, &format!("{deployments}/a/status"), &json!({"status": {"replicas": 1}})).await;
    assert_eq!((&reported.body["spec"]["replicas"], &reported.body["status"]["replicas"]), (&json!(1), &json!(99)));
}

#[tokio::test]
async fn a_webhook_may_not_move_an_object_to_another_namespace() {
    let server = server();
    let (hook, _) = patches(json!([{"op": "replace", "path": "/metadata/namespace", "value": "kube-system"}]));
    server.admission().add_mutating(hook);
    let refused = create(&server, &map("a", &json!({}))).await;
    assert_eq!(refused.code, 400);
    let why = "the namespace of the provided object does not match the namespace sent on the request";
    assert_eq!(message(&refused), why);
}

#[tokio::test]
async fn an_applied_object_is_admitted_too_and_what_a_webhook_added_is_nobodys() {
    let server = server();
    let (hook, asked) = patches(json!([{"op": "add", "path": "/data/added", "value": "1"}]));
    server.admission().add_mutating(hook);
    let apply = async |x: &str| {
        let request =
            Request::patch(format!("{MAPS}/a?fieldManager=me")).header("content-type", "application/apply-patch+yaml");
        send_request(&server, request.body(map("a", &json!({"x": x})).to_string()).unwrap()).await
    };
    let (created, operation) = (apply("1").await, asked.one()["operation"].clone());
    assert_eq!((created.code, operation), (201, json!("CREATE")));
    assert_eq!(created.body["metadata"]["managedFields"][0]["fieldsV1"], json!({"f:data": {"f:x": {}}}));
    let (changed, operation) = (apply("2").await, asked.one()["operation"].clone());
    assert_eq!((changed.code, operation), (200, json!("UPDATE")));
    assert_eq!(changed.body["data"], json!({"x": "2", "added": "1"}));
    // The same again is no write, though the webhook says the same again.
    let revision = server.store().revision();
    assert_eq!(apply("2").await.code, 200);
    assert_eq!(server.store().revision(), revision);
}

#[tokio::test]
async fn custom_objects_lose_what_a_webhook_added_and_their_schema_does_not_know() {
    let server = server();
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "size": {"type": "integer", "default": 3}}}}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.test.dev"},
        "spec": {
            "group": "test.dev", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(send(&server, Method::POST, definitions, &definition).await.code, 201);
    let (hook, _) = patches(json!([{"op": "add", "path": "/spec", "value": {"unknown": 1}}]));
    server.admission().add_mutating(hook);
    let widget = json!({"apiVersion": "test.dev/v1", "kind": "Widget", "metadata": {"name": "a"}});
    let created = send(&server, Method::POST, "/apis/test.dev/v1/namespaces/default/widgets", &widget).await;
    assert_eq!((created.code, &created.body["spec"]), (201, &json!({"size": 3})));
}

/// Changes an object while somebody else's change of it is reviewed, once.
struct Interferes {
    server: ApiServer,
    is_done: AtomicBool,
}

impl Handler for Interferes {
    fn review(&self, review: Value) -> BoxFuture<'_, Result<Value, String>> {
        Box::pin(async move {
            if !self.is_done.swap(true, Ordering::Relaxed) {
                merge(&self.server, &format!("{MAPS}/a"), &json!({"data": {"theirs": "2"}})).await;
            }
            let response = json!({"uid": review["request"]["uid"], "allowed": true});
            Ok(json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}))
        })
    }
}

#[tokio::test]
async fn a_patch_that_is_overtaken_is_made_again_and_one_of_a_version_is_refused() {
    for (pins, code) in [(false, 200), (true, 409)] {
        let server = server();
        let made = create(&server, &map("a", &json!({"x": "1"}))).await;
        let handler = Arc::new(Interferes { server: server.clone(), is_done: AtomicBool::new(false) });
        let (hook, _) = allows();
        server.admission().add_mutating(Webhook { handler, ..hook });
        let version = &made.body["metadata"]["resourceVersion"];
        let metadata = if pins { json!({"resourceVersion": version}) } else { json!({}) };
        let patch = json!({"metadata": metadata, "data": {"ours": "3"}});
        let patched = merge(&server, &format!("{MAPS}/a"), &patch).await;
        assert_eq!(patched.code, code, "{}", patched.body);
        let ours = if pins { Value::Null } else { json!("3") };
        let found = send(&server, Method::GET, &format!("{MAPS}/a"), &Value::Null).await.body;
        assert_eq!((&found["data"]["theirs"], &found["data"]["ours"]), (&json!("2"), &ours));
    }
}
