//! What Cluster API is answered over the wire.

use serde_json::{Value, json};
use windlass_api::hook::{API_VERSION, HookName};
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::extension::ExtensionConfig;
use windlass_controller::hooks::{BODY_MAX, Hooks, address, register};

use crate::world::in_world;

const RELEASE: &str = "v1.25.7---vmware.2-tkg.1";

fn question(labels: &Value) -> Vec<u8> {
    let metadata = json!({"name": "wl", "namespace": "default", "labels": labels});
    let cluster: Cluster = serde_json::from_value(json!({"metadata": metadata, "spec": {}})).unwrap();
    let body = json!({"apiVersion": API_VERSION, "kind": "BeforeClusterUpgradeRequest", "cluster": cluster});
    serde_json::to_vec(&body).unwrap()
}

#[test]
fn a_question_is_answered_or_refused_with_the_reason() {
    in_world(|world| async move {
        let hooks = Hooks::new(world.client());
        let path = HookName::BeforeClusterUpgrade.path("before-cluster-upgrade");
        for (path, body, code, words) in [
            (path.as_str(), question(&json!({})), 200, "Success"),
            (&path, question(&json!({"run.tanzu.vmware.com/tkr": RELEASE})), 200, "there is no ClusterBootstrap yet"),
            (&path, b"{".to_vec(), 400, "the question cannot be read"),
            (&path, vec![b' '; BODY_MAX + 1], 413, "too long"),
            ("/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclusterupgrade/other", b"{}".to_vec(), 404, "no question"),
        ] {
            let reply = hooks.reply(path, &body).await;
            let text = String::from_utf8(reply.body).unwrap();
            assert_eq!(reply.code, code, "{text}");
            assert!(text.contains(words), "{text}");
        }
        let found = hooks.reply(&windlass_api::hook::discovery_path(), b"{\"apiVersion\":\"\",\"kind\":\"\"}").await;
        let found: Value = serde_json::from_slice(&found.body).unwrap();
        assert_eq!(found["handlers"].as_array().unwrap().len(), HookName::all().count());
        assert!(found["handlers"].as_array().unwrap().iter().all(|handler| handler["failurePolicy"] == "Fail"));
    });
}

#[test]
fn cluster_api_is_told_once_where_to_ask() {
    in_world(|world| async move {
        register(&world.client()).await.unwrap();
        let all: kube::Api<ExtensionConfig> = kube::Api::all(world.client());
        let config = all.get("windlass").await.unwrap();
        register(&world.client()).await.unwrap();
        let again = all.get("windlass").await.unwrap();
        assert_eq!(again.metadata.resource_version, config.metadata.resource_version);
        let service = config.spec.client_config.service.unwrap();
        assert_eq!(format!("https://{}.{}.svc:443", service.name, service.namespace), address());
    });
}
