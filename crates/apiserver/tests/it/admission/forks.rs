//! A fork while webhooks are thinking.

use futures::future::BoxFuture;
use http::Method;
use serde_json::{Value, json};
use windlass_apiserver::Options;
use windlass_apiserver::admission::Handler;

use super::{MAPS, allows, create, map, send, server};

/// Never answers.
struct Thinks;

impl Handler for Thinks {
    fn review(&self, _: Value) -> BoxFuture<'_, Result<Value, String>> {
        Box::pin(futures::future::pending())
    }
}

#[tokio::test]
async fn a_fork_finishes_what_a_webhook_holds_up_on_the_original() {
    let server = server();
    let owner = create(&server, &map("owner", &json!({}))).await;
    let mut dependent = map("dependent", &json!({}));
    let uid = &owner.body["metadata"]["uid"];
    dependent["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}]);
    dependent["metadata"]["labels"] = json!({"kept": "yes"});
    create(&server, &dependent).await;
    let (mut hook, _) = allows();
    hook.object_selector = super::selector("kept");
    hook.handler = std::sync::Arc::new(Thinks);
    server.admission().add_validating(hook);

    let busy = server.clone();
    tokio::spawn(async move { send(&busy, Method::DELETE, &format!("{MAPS}/owner"), &Value::Null).await });
    tokio::task::yield_now().await;
    assert_eq!(server.store().count("configmaps"), 1, "the owner is gone, the dependent waits for a webhook");
    let fork = server.fork(Options::default());
    // Webhooks stay behind; what was left to do does not.
    assert_eq!(send(&fork, Method::GET, MAPS, &Value::Null).await.code, 200);
    assert_eq!((fork.store().count("configmaps"), server.store().count("configmaps")), (0, 1));
}
