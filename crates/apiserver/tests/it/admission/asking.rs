//! Who is asked, about what, and what they are told.

use http::{Method, Request};
use serde_json::{Value, json};
use windlass_apiserver::admission::FailurePolicy;
use windlass_apiserver::auth::User;

use super::{MAPS, allows, create, map, merge, message, patches, selector, send, send_request, server, webhook};

#[tokio::test]
async fn a_review_says_what_is_asked_and_by_whom() {
    let server = server();
    let (hook, asked) = allows();
    server.admission().add_mutating(hook);
    let mut request = Request::post(MAPS)
        .header("content-type", "application/json")
        .body(json!({"metadata": {"generateName": "a-"}, "data": {"x": "1"}}).to_string())
        .unwrap();
    let user = User { uid: "7".into(), extra: [("scopes".to_owned(), vec!["all".to_owned()])].into(), ..User::admin() };
    request.extensions_mut().insert(user);
    assert_eq!(send_request(&server, request).await.code, 201);
    let mut asked = asked.one();
    let uid = asked["uid"].take();
    assert_eq!(uid.as_str().map(str::len), Some(36), "a uid of its own");
    let object = asked["object"].take();
    assert_eq!((&object["data"]["x"], &object["apiVersion"]), (&json!("1"), &json!("v1")));
    assert!(object["metadata"].get("name").is_none() && object["metadata"].get("uid").is_none(), "{object}");
    let kind = json!({"group": "", "version": "v1", "kind": "ConfigMap"});
    let resource = json!({"group": "", "version": "v1", "resource": "configmaps"});
    let user = json!({
        "username": "system:admin", "uid": "7", "groups": ["system:masters", "system:authenticated"],
        "extra": {"scopes": ["all"]},
    });
    let expected = json!({
        "uid": null, "kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource,
        "namespace": "default", "operation": "CREATE", "userInfo": user,
        "object": null, "oldObject": null, "dryRun": false,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    });
    assert_eq!(asked, expected);
}

#[tokio::test]
async fn every_write_is_asked_about_with_what_was_and_what_will_be() {
    let server = server();
    let (hook, asked) = allows();
    server.admission().add_mutating(hook.clone());
    let steps = [
        (Method::POST, MAPS.to_owned(), map("a", &json!({"x": "1"})), "CREATE", json!([null, "1"])),
        (Method::PUT, format!("{MAPS}/a"), map("a", &json!({"x": "2"})), "UPDATE", json!(["1", "2"])),
        (Method::DELETE, format!("{MAPS}/a"), Value::Null, "DELETE", json!(["2", null])),
    ];
    for (method, path, body, operation, values) in steps {
        assert!(send(&server, method, &path, &body).await.code < 300);
        let asked = asked.one();
        assert_eq!(asked["operation"], operation);
        assert_eq!(json!([asked["oldObject"]["data"]["x"], asked["object"]["data"]["x"]]), values);
        assert_eq!(asked["name"], "a");
    }
    // Reads are nobody's business.
    send(&server, Method::GET, MAPS, &Value::Null).await;
    assert_eq!(asked.count(), 0);
}

#[tokio::test]
async fn an_object_selector_looks_at_the_object_before_and_after_and_at_what_webhooks_made_of_it() {
    let server = server();
    let (mut red, asked) = allows();
    red.object_selector = selector("colour=red");
    let (mut paints, _) = patches(json!([{"op": "add", "path": "/metadata/labels", "value": {"colour": "red"}}]));
    paints.object_selector = selector("paint");
    server.admission().add_mutating(paints);
    server.admission().add_mutating(red);
    let labelled = |labels: Value| json!({"metadata": {"name": "a", "labels": labels}});
    let path = format!("{MAPS}/a");
    create(&server, &labelled(json!({}))).await;
    assert_eq!(asked.count(), 0);
    for (labels, expected) in [
        (json!({"colour": "red"}), 1),
        (json!({"colour": "blue"}), 1),
        (json!({"colour": "green"}), 0),
        (json!({"paint": "please"}), 1),
    ] {
        assert_eq!(send(&server, Method::PUT, &path, &labelled(labels.clone())).await.code, 200);
        assert_eq!(asked.count(), expected, "{labels}");
    }
}

#[tokio::test]
async fn a_namespace_selector_looks_at_the_namespace_and_never_exempts_what_is_outside() {
    let server = server();
    let (mut hook, asked) = allows();
    hook.namespace_selector = selector("team=a");
    server.admission().add_validating(hook);
    let namespace = |name: &str, labels: &Value| json!({"metadata": {"name": name, "labels": labels}});
    let in_namespace = |name: &str| format!("/api/v1/namespaces/{name}/configmaps");
    let namespaces = "/api/v1/namespaces";
    // A namespace is in itself, as it is going to be.
    send(&server, Method::POST, namespaces, &namespace("a", &json!({"team": "a"}))).await;
    assert_eq!(asked.one()["namespace"], "a");
    send(&server, Method::POST, namespaces, &namespace("b", &json!({"team": "b"}))).await;
    assert_eq!(asked.count(), 0);
    send(&server, Method::POST, &in_namespace("a"), &map("x", &json!({}))).await;
    assert_eq!(asked.count(), 1);
    send(&server, Method::POST, &in_namespace("b"), &map("x", &json!({}))).await;
    assert_eq!(asked.count(), 0);
    merge(&server, "/api/v1/namespaces/b", &json!({"metadata": {"labels": {"team": "a"}}})).await;
    assert_eq!(asked.count(), 1);
    let class = json!({"metadata": {"name": "high"}, "value": 1});
    send(&server, Method::POST, "/apis/scheduling.k8s.io/v1/priorityclasses", &class).await;
    assert_eq!(asked.one().get("namespace"), None, "outside of namespaces");
}

#[tokio::test]
async fn a_subresource_is_asked_about_by_its_name() {
    let server = server();
    let (mut hook, asked) = allows();
    hook.rules[0].resources = vec!["pods/status".into()];
    server.admission().add_validating(hook);
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "a", "image": "a"}]}});
    assert_eq!(send(&server, Method::POST, pods, &pod).await.code, 201);
    assert_eq!(asked.count(), 0);
    merge(&server, &format!("{pods}/a/status"), &json!({"status": {"phase": "Running"}})).await;
    let asked = asked.one();
    assert_eq!((asked["subResource"].as_str(), asked["operation"].as_str()), (Some("status"), Some("UPDATE")));
}

#[tokio::test]
async fn nobody_is_asked_about_the_configuration_of_webhooks() {
    let server = server();
    let (hook, asked) = webhook(|_| Ok(json!({"allowed": false})));
    server.admission().add_validating(hook);
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    assert_eq!(send(&server, Method::POST, path, &json!({"metadata": {"name": "a"}})).await.code, 201);
    assert_eq!(asked.count(), 0);
}

#[tokio::test]
async fn a_dry_run_asks_everybody_and_writes_nothing() {
    let server = server();
    let (changes, _) = patches(json!([{"op": "add", "path": "/data/added", "value": "1"}]));
    let (judges, asked) = allows();
    server.admission().add_mutating(changes);
    server.admission().add_validating(judges);
    let before = server.store().revision();
    let imagined = send(&server, Method::POST, &format!("{MAPS}?dryRun=All"), &map("a", &json!({"x": "1"}))).await;
    assert_eq!((imagined.code, &imagined.body["data"]), (201, &json!({"added": "1", "x": "1"})));
    assert_eq!(asked.one()["dryRun"], true);
    assert_eq!(server.store().revision(), before);
}

#[tokio::test]
async fn a_dry_run_is_refused_when_a_webhook_has_side_effects() {
    let server = server();
    let (mut hook, asked) = allows();
    hook.side_effects = true;
    // Also when failures are ignored: it is not one.
    hook.failure = FailurePolicy::Ignore;
    server.admission().add_mutating(hook);
    let refused = send(&server, Method::POST, &format!("{MAPS}?dryRun=All"), &map("a", &json!({}))).await;
    assert_eq!(refused.code, 400);
    assert_eq!(message(&refused), "admission webhook \"hook.test.dev\" does not support dry run");
    assert_eq!(asked.count(), 0);
    assert_eq!(create(&server, &map("a", &json!({}))).await.code, 201);
    assert_eq!(asked.count(), 1);
}

#[tokio::test]
async fn garbage_is_collected_in_the_name_of_the_collector() {
    let server = server();
    let owner = create(&server, &map("owner", &json!({}))).await;
    let mut dependent = map("owned", &json!({}));
    let uid = &owner.body["metadata"]["uid"];
    dependent["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}]);
    create(&server, &dependent).await;
    let (hook, asked) = allows();
    server.admission().add_validating(hook);
    send(&server, Method::DELETE, &format!("{MAPS}/owner"), &Value::Null).await;
    let asked = asked.take();
    let who: Vec<_> = asked.iter().map(|request| (&request["name"], &request["userInfo"]["username"])).collect();
    let collector = json!("system:serviceaccount:kube-system:generic-garbage-collector");
    assert_eq!(who, [(&json!("owner"), &json!("system:admin")), (&json!("owned"), &collector)]);
}
