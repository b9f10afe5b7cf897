//! Admission in process: who is asked, what they see, what they may change, and how a refusal reads.

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use futures::future::BoxFuture;
use http::{Method, Request};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;
use windlass_apiserver::admission::{FailurePolicy, Handler, Rule, Scope, Webhook};
use windlass_apiserver::auth::User;
use windlass_apiserver::selector::label::LabelSelector;
use windlass_apiserver::{ApiServer, Options};

/// Answers with a function of the request, and remembers what it was asked.
struct Says<F> {
    answer: F,
    asked: Asked,
}

/// The requests that a webhook was asked about.
#[derive(Clone, Default)]
struct Asked(Arc<Mutex<Vec<Value>>>);

impl Asked {
    fn take(&self) -> Vec<Value> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    fn count(&self) -> usize {
        self.take().len()
    }

    /// The only request.
    fn one(&self) -> Value {
        let mut asked = self.take();
        assert_eq!(asked.len(), 1, "{asked:#?}");
        asked.remove(0)
    }
}

impl<F: Fn(&Value) -> Result<Value, String> + Send + Sync> Handler for Says<F> {
    fn review(&self, review: Value) -> BoxFuture<'_, Result<Value, String>> {
        let request = &review["request"];
        self.asked.0.lock().unwrap().push(request.clone());
        let answer = (self.answer)(request).map(|mut response| {
            if response.is_object() && response.get("uid").is_none() {
                response["uid"] = request["uid"].clone();
            }
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
        });
        Box::pin(async { answer })
    }
}

/// A webhook for everything, which answers so.
fn webhook(answer: impl Fn(&Value) -> Result<Value, String> + Send + Sync + 'static) -> (Webhook, Asked) {
    let asked = Asked::default();
    let all = || vec!["*".to_owned()];
    let rule = Rule {
        operations: all(),
        groups: all(),
        versions: all(),
        resources: vec!["*/*".to_owned()],
        scope: Scope::All,
    };
    let webhook = Webhook {
        name: "hook.test.dev".into(),
        rules: vec![rule],
        namespace_selector: LabelSelector::everything(),
        object_selector: LabelSelector::everything(),
        failure: FailurePolicy::Fail,
        reinvoke: false,
        side_effects: false,
        handler: Arc::new(Says { answer, asked: asked.clone() }),
    };
    (webhook, asked)
}

fn allows() -> (Webhook, Asked) {
    webhook(|_| Ok(json!({"allowed": true})))
}

fn patches(patch: Value) -> (Webhook, Asked) {
    webhook(move |_| Ok(patched(&patch)))
}

fn patched(patch: &Value) -> Value {
    let patch = base64::engine::general_purpose::STANDARD.encode(patch.to_string());
    json!({"allowed": true, "patchType": "JSONPatch", "patch": patch})
}

fn selector(text: &str) -> LabelSelector {
    LabelSelector::parse(text).unwrap()
}

struct Answered {
    code: u16,
    body: Value,
    warnings: Vec<String>,
}

fn server() -> ApiServer {
    ApiServer::new(Options::default())
}

async fn send(server: &ApiServer, method: Method, path: &str, body: &Value) -> Answered {
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    send_request(server, request.body(if body.is_null() { String::new() } else { body.to_string() }).unwrap()).await
}

async fn send_request(server: &ApiServer, request: Request<String>) -> Answered {
    let Ok(response) = server.clone().oneshot(request).await;
    let code = response.status().as_u16();
    let warnings = response.headers().get_all("warning").iter().map(|text| text.to_str().unwrap().to_owned()).collect();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    Answered { code, body: serde_json::from_slice(&body).unwrap_or_default(), warnings }
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

async fn create(server: &ApiServer, object: &Value) -> Answered {
    send(server, Method::POST, MAPS, object).await
}

async fn merge(server: &ApiServer, path: &str, patch: &Value) -> Answered {
    let request = Request::patch(path).header("content-type", "application/merge-patch+json");
    send_request(server, request.body(patch.to_string()).unwrap()).await
}

fn message(answered: &Answered) -> &str {
    answered.body["message"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn a_mutating_webhook_changes_what_is_stored_and_a_validating_one_sees_it() {
    let server = server();
    let (changes, _) = patches(json!([{"op": "add", "path": "/data/added", "value": "1"}]));
    let (judges, judged) = allows();
    server.admission().add_mutating(changes);
    server.admission().add_validating(judges);
    let created = create(&server, &map("a", &json!({"x": "1"}))).await;
    assert_eq!((created.code, &created.body["data"]), (201, &json!({"x": "1", "added": "1"})));
    let judged = judged.one();
    assert_eq!(judged["object"]["data"], json!({"x": "1", "added": "1"}));
    assert!(judged["object"]["metadata"]["uid"].is_string(), "it sees the object as it is stored");
    let read = send(&server, Method::GET, &format!("{MAPS}/a"), &Value::Null).await;
    assert_eq!(read.body, created.body);
    // Who sent the object does not own what a webhook added.
    let fields = &read.body["metadata"]["managedFields"][0]["fieldsV1"]["f:data"];
    assert_eq!(fields, &json!({".": {}, "f:x": {}}));
}

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

async fn check_denial(status: Value, code: u16, reason: &str, said: &str) {
    let server = server();
    let (hook, _) = webhook(move |_| Ok(json!({"allowed": false, "status": status})));
    server.admission().add_validating(hook);
    let denied = create(&server, &map("a", &json!({}))).await;
    assert_eq!(denied.code, code);
    assert_eq!(denied.body["reason"].as_str().unwrap_or_default(), reason);
    assert_eq!(message(&denied), format!("admission webhook \"hook.test.dev\" denied the request{said}"));
    assert_eq!(denied.body["status"], "Failure");
    assert_eq!(send(&server, Method::GET, &format!("{MAPS}/a"), &Value::Null).await.code, 404);
}

#[tokio::test]
async fn a_refusal_is_in_the_words_of_the_webhook() {
    check_denial(json!({"message": "no cats", "reason": "Forbidden", "code": 403}), 403, "Forbidden", ": no cats")
        .await;
    check_denial(json!({"reason": "NoCats"}), 400, "NoCats", ": NoCats").await;
    check_denial(json!({}), 400, "", " without explanation").await;
    check_denial(Value::Null, 400, "", " without explanation").await;
    check_denial(json!({"code": 200, "message": "well"}), 400, "", ": well").await;
}

#[tokio::test]
async fn a_refusal_keeps_its_details() {
    let server = server();
    let details =
        json!({"name": "a", "kind": "Cat", "group": "test", "causes": [{"reason": "R", "message": "m", "field": "f"}]});
    let status = json!({"code": 422, "reason": "Invalid", "message": "no", "details": details});
    let (hook, _) = webhook(move |_| Ok(json!({"allowed": false, "status": status})));
    server.admission().add_mutating(hook);
    let denied = create(&server, &map("a", &json!({}))).await;
    assert_eq!((denied.code, &denied.body["details"]), (422, &details));
}

#[tokio::test]
async fn a_refused_delete_and_a_refused_update_change_nothing() {
    let server = server();
    create(&server, &map("a", &json!({"x": "1"}))).await;
    let (hook, _) = webhook(|_| Ok(json!({"allowed": false, "status": {"code": 403, "message": "no"}})));
    server.admission().add_validating(hook);
    let path = format!("{MAPS}/a");
    let before = server.store().revision();
    assert_eq!(send(&server, Method::DELETE, &path, &Value::Null).await.code, 403);
    assert_eq!(merge(&server, &path, &json!({"data": {"x": "2"}})).await.code, 403);
    assert_eq!(send(&server, Method::DELETE, MAPS, &Value::Null).await.code, 403);
    assert_eq!(server.store().revision(), before);
}

#[tokio::test]
async fn warnings_reach_the_client_once_also_with_a_refusal() {
    for allowed in [true, false] {
        let server = server();
        let warns = |text: &'static str, allowed: bool| {
            webhook(move |_| Ok(json!({"allowed": allowed, "warnings": [text, "both say \"this\""]}))).0
        };
        server.admission().add_mutating(warns("first", true));
        server.admission().add_validating(warns("second", allowed));
        server.admission().add_validating(warns("third", true));
        let answered = create(&server, &map("a", &json!({}))).await;
        assert_eq!(answered.code, if allowed { 201 } else { 400 });
        let both = "299 - \"both say \\\"this\\\"\"";
        assert_eq!(answered.warnings, ["299 - \"first\"", both, "299 - \"second\"", "299 - \"third\""]);
    }
}

#[tokio::test]
async fn a_dry_run_asks_everybody_and_writes_nothing() {
    let server = server();
    let (changes, _) = patches(json!([{"op": "add", "path": "/data/added", "value": "1"}]));
    let (judges, judged) = allows();
    server.admission().add_mutating(changes);
    server.admission().add_validating(judges);
    let before = server.store().revision();
    let imagined = send(&server, Method::POST, &format!("{MAPS}?dryRun=All"), &map("a", &json!({"x": "1"}))).await;
    assert_eq!((imagined.code, &imagined.body["data"]), (201, &json!({"added": "1", "x": "1"})));
    assert_eq!(judged.one()["dryRun"], true);
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

async fn check_no_answer(answer: fn(&Value) -> Result<Value, String>, mutating: bool, why: &str) {
    for (failure, code) in [(FailurePolicy::Fail, 500), (FailurePolicy::Ignore, 201)] {
        let server = server();
        let (mut hook, _) = webhook(answer);
        hook.failure = failure;
        if mutating {
            server.admission().add_mutating(hook);
        } else {
            server.admission().add_validating(hook);
        }
        let answered = create(&server, &map("a", &json!({}))).await;
        assert_eq!(answered.code, code, "{why}: {}", answered.body);
        if code == 500 {
            let expected = format!("Internal error occurred: failed calling webhook \"hook.test.dev\": {why}");
            assert!(message(&answered).starts_with(&expected), "{}", message(&answered));
            assert_eq!(answered.body["reason"], "InternalError");
        }
    }
}

#[tokio::test]
async fn the_failure_policy_decides_when_there_is_no_answer() {
    check_no_answer(|_| Err("connection refused".into()), true, "failed to call webhook: connection refused").await;
    check_no_answer(|_| Err("connection refused".into()), false, "failed to call webhook: connection refused").await;
    let invalid = |why: &str| format!("received invalid webhook response: {why}");
    check_no_answer(|_| Ok(Value::Null), true, &invalid("webhook response was absent")).await;
    check_no_answer(|_| Ok(json!({"uid": "7", "allowed": true})), true, &invalid("expected response.uid=\"")).await;
    let patch = |_: &Value| Ok(json!({"allowed": true, "patch": "W10="}));
    check_no_answer(patch, true, &invalid("webhook returned response.patch but not response.patchType")).await;
    check_no_answer(patch, false, &invalid("validating webhook may not return response.patch")).await;
    let type_ = |_: &Value| Ok(json!({"allowed": true, "patchType": "JSONPatch"}));
    check_no_answer(type_, true, &invalid("webhook returned response.patchType but not response.patch")).await;
    check_no_answer(type_, false, &invalid("validating webhook may not return response.patchType")).await;
    let other = |_: &Value| Ok(json!({"allowed": true, "patchType": "Merge", "patch": "W3t9XQ=="}));
    check_no_answer(other, true, "unsupported patch type \"Merge\"").await;
    let broken = |_: &Value| Ok(json!({"allowed": true, "patchType": "JSONPatch", "patch": "e30="}));
    check_no_answer(broken, true, "received undecodable patch in webhook response: ").await;
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

#[tokio::test]
async fn garbage_is_collected_in_the_name_of_the_collector() {
    let server = server();
    let owner = create(&server, &map("owner", &json!({}))).await;
    let mut owned = map("owned", &json!({}));
    let uid = &owner.body["metadata"]["uid"];
    owned["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}]);
    create(&server, &owned).await;
    let (hook, asked) = allows();
    server.admission().add_validating(hook);
    send(&server, Method::DELETE, &format!("{MAPS}/owner"), &Value::Null).await;
    let asked = asked.take();
    let who: Vec<_> = asked.iter().map(|request| (&request["name"], &request["userInfo"]["username"])).collect();
    let collector = json!("system:serviceaccount:kube-system:generic-garbage-collector");
    assert_eq!(who, [(&json!("owner"), &json!("system:admin")), (&json!("owned"), &collector)]);
}
