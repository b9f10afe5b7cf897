//! What Cluster API is answered over the wire.

use k8s_openapi::api::events::v1::Event;
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
        let hooks = Hooks::new(world.client(), world.settings().clock.clone());
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
fn a_cluster_is_not_made_without_its_release_and_what_has_ended_is_told_in_an_event() {
    in_world(|world| async move {
        let hooks = Hooks::new(world.client(), world.settings().clock.clone());
        let ask = async |hook: HookName, release: &str| {
            let body = question(&json!({"run.tanzu.vmware.com/tkr": release}));
            let reply = hooks.reply(&hook.path(hook.handler()), &body).await;
            let answer: Value = serde_json::from_slice(&reply.body).unwrap();
            assert_eq!(answer["status"], "Success", "{answer}");
            answer["message"].as_str().unwrap_or_default().to_owned()
        };
        let before = HookName::BeforeClusterCreate;
        assert_eq!(ask(before, RELEASE).await, "");
        let missing = ask(before, "v1.99.0---vmware.1-tkg.1").await;
        assert!(
            missing.starts_with("the release comes first: there is no TanzuKubernetesRelease v1.99.0"),
            "{missing}"
        );

        let events: kube::Api<Event> = kube::Api::default_namespaced(world.client());
        let told = async || {
            let listed = events.list(&kube::api::ListParams::default()).await.unwrap().items;
            listed.into_iter().map(|event| event.reason.unwrap_or_default()).collect::<Vec<_>>()
        };
        assert_eq!(told().await, Vec::<String>::new(), "what goes on is not told");
        // What waits has not ended.
        assert!(!ask(HookName::AfterControlPlaneUpgrade, RELEASE).await.is_empty());
        assert_eq!(told().await, Vec::<String>::new());
        for _ in 0..2 {
            ask(HookName::AfterClusterUpgrade, RELEASE).await;
        }
        assert_eq!(told().await, ["ClusterUpgraded"], "once, however often it is asked");
        let path = HookName::AfterClusterUpgrade.path("after-cluster-upgrade");
        assert_eq!(hooks.reply(&path, &question(&json!({}))).await.code, 200);
        assert_eq!(told().await, ["ClusterUpgraded"], "clusters of others are theirs to tell of");
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
