//! Refusals, warnings, and no answer at all.

use http::Method;
use serde_json::{Value, json};
use windlass_apiserver::admission::FailurePolicy;

use super::{MAPS, create, map, merge, message, send, server, webhook};

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
