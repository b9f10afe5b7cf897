//! Whoever wants to be asked before Cluster API goes on: when they are, what their answers hold, and what silence does.

use std::collections::BTreeMap;
use std::sync::Mutex;

use kube::Api;
use kube::api::{ListParams, PostParams};
use serde_json::json;
use windlass_api::hook::{API_VERSION, Answer, HookName, Question};
use windlass_api::kind::cluster_api::{Cluster, Machine, UpgradeStep};
use windlass_api::kind::extension::{ExtensionConfig, ExtensionHandler, Hook};
use windlass_api::kind::is_true;
use windlass_sim::program::Reply;

use super::stage::{Stage, stage};
use super::topology::{class, cluster, made, patches, pool, said, settled, upgrade};

/// An extension that answers as it is told, and remembers what it was asked.
#[derive(Default)]
pub struct Extension {
    held: Mutex<BTreeMap<HookName, &'static str>>,
    silent: Mutex<bool>,
    asked: Mutex<Vec<(HookName, Question)>>,
}

impl Extension {
    fn hold(&self, hook: HookName) {
        self.held.lock().unwrap().insert(hook, "not yet");
    }

    fn let_go(&self) {
        self.held.lock().unwrap().clear();
    }

    fn silent(&self, silent: bool) {
        *self.silent.lock().unwrap() = silent;
    }

    /// What was asked, in order; what was asked again at once is told once.
    fn asked(&self) -> Vec<&'static str> {
        let mut names: Vec<&str> = self.asked.lock().unwrap().iter().map(|(hook, _)| hook.as_str()).collect();
        names.dedup();
        names
    }

    fn last(&self, hook: HookName) -> Question {
        self.asked.lock().unwrap().iter().rfind(|(asked, _)| *asked == hook).unwrap().1.clone()
    }

    pub fn reply(&self, url: &str, body: &[u8]) -> Result<Reply, String> {
        if *self.silent.lock().unwrap() {
            return Err("connection refused".to_owned());
        }
        let path = url.strip_prefix("https://windlass.example").unwrap().split('?').next().unwrap();
        let question: Question = serde_json::from_slice(body).unwrap();
        let answer = match HookName::of_path(path) {
            None => Answer { handlers: HookName::all().map(handler).collect(), ..Answer::default() },
            Some(hook) => {
                assert_eq!(question.kind, format!("{hook}Request"));
                assert_eq!(question.settings["policy"], "strict");
                self.asked.lock().unwrap().push((hook, question));
                match self.held.lock().unwrap().get(&hook) {
                    Some(why) => Answer::wait(hook, (*why).to_owned(), 10),
                    None => Answer::go_on(hook),
                }
            }
        };
        Ok(Reply { code: 200, body: serde_json::to_vec(&answer).unwrap() })
    }
}

fn handler(hook: HookName) -> ExtensionHandler {
    let request_hook = Hook { api_version: API_VERSION.to_owned(), hook: hook.as_str().to_owned() };
    ExtensionHandler { name: hook.handler().to_owned(), request_hook, ..ExtensionHandler::default() }
}

async fn registered(stage: &Stage) {
    let config: ExtensionConfig = serde_json::from_value(json!({
        "apiVersion": "runtime.cluster.x-k8s.io/v1beta2", "kind": "ExtensionConfig", "metadata": {"name": "windlass"},
        "spec": {"clientConfig": {"url": "https://windlass.example"}, "settings": {"policy": "strict"}},
    }))
    .unwrap();
    Api::all(stage.client()).create(&PostParams::default(), &config).await.unwrap();
    stage.pass(30).await;
}

async fn versions(stage: &Stage) -> Vec<String> {
    let machines = Api::<Machine>::default_namespaced(stage.client()).list(&ListParams::default()).await.unwrap();
    let mut versions: Vec<String> = machines.items.into_iter().filter_map(|machine| machine.spec.version).collect();
    versions.sort();
    versions
}

#[test]
fn an_upgrade_asks_each_question_in_its_turn_and_about_the_right_versions() {
    stage(|stage| async move {
        registered(&stage).await;
        let config: ExtensionConfig = Api::all(stage.client()).get("windlass").await.unwrap();
        let status = config.status.unwrap();
        assert!(is_true(&status.conditions, "Discovered"));
        assert_eq!(status.handlers[0].name, "before-cluster-create.windlass");
        made(&stage, 1, json!([pool("a", 1)])).await;
        upgrade(&stage).await;
        settled(&stage).await;
        stage.delete::<Cluster>("c").await;
        stage.pass(3600).await;
        let extension = stage.extension();
        let wanted = [
            "BeforeClusterCreate",
            "AfterControlPlaneInitialized",
            "BeforeClusterUpgrade",
            "BeforeControlPlaneUpgrade",
            "AfterControlPlaneUpgrade",
            "BeforeWorkersUpgrade",
            "AfterWorkersUpgrade",
            "AfterClusterUpgrade",
            "BeforeClusterDelete",
        ];
        assert_eq!(extension.asked(), wanted);
        let (old, new) = (Some("v1.16.7+vmware.1"), Some("v1.17.4+vmware.1"));
        let begins = extension.last(HookName::BeforeClusterUpgrade);
        assert_eq!((begins.from_kubernetes_version.as_deref(), begins.to_kubernetes_version.as_deref()), (old, new));
        assert_eq!(begins.control_plane_upgrades, [UpgradeStep { version: new.unwrap().to_owned() }]);
        assert_eq!(begins.workers_upgrades, begins.control_plane_upgrades);
        assert!(begins.cluster.unwrap().status.is_none());
        assert_eq!(extension.last(HookName::AfterControlPlaneUpgrade).kubernetes_version.as_deref(), new);
        assert!(Api::<Cluster>::default_namespaced(stage.client()).get_opt("c").await.unwrap().is_none());
    });
}

#[test]
fn each_answer_holds_what_comes_after_it_and_the_condition_says_who_holds() {
    use HookName::{AfterControlPlaneUpgrade, BeforeClusterCreate, BeforeClusterDelete, BeforeClusterUpgrade};
    stage(|stage| async move {
        registered(&stage).await;
        let extension = stage.extension();
        extension.hold(BeforeClusterCreate);
        class(&stage, patches()).await;
        cluster(&stage, 1, json!([pool("a", 1)])).await;
        stage.pass(300).await;
        let held: Cluster = stage.get("c").await;
        let message = "Following hooks are blocking Cluster topology creation: BeforeClusterCreate: not yet";
        assert_eq!(said(&held), ("False", "ClusterCreating", message));
        assert!(versions(&stage).await.is_empty());
        extension.let_go();
        settled(&stage).await;

        extension.hold(BeforeClusterUpgrade);
        upgrade(&stage).await;
        stage.pass(600).await;
        let held: Cluster = stage.get("c").await;
        assert!(said(&held).2.contains("Following hooks are blocking upgrade: BeforeClusterUpgrade: not yet"));
        assert_eq!(versions(&stage).await, ["v1.16.7+vmware.1"; 2], "no machine was made");
        extension.let_go();
        extension.hold(AfterControlPlaneUpgrade);
        stage.pass(3600).await;
        let held: Cluster = stage.get("c").await;
        assert!(said(&held).2.contains("AfterControlPlaneUpgrade: not yet"), "{}", said(&held).2);
        assert_eq!(versions(&stage).await, ["v1.16.7+vmware.1", "v1.17.4+vmware.1"], "the worker waits");
        extension.let_go();
        settled(&stage).await;
        assert_eq!(versions(&stage).await, ["v1.17.4+vmware.1"; 2]);

        extension.hold(BeforeClusterDelete);
        stage.delete::<Cluster>("c").await;
        stage.pass(600).await;
        let held: Cluster = stage.get("c").await;
        let message = "Cluster is deleting. Following hooks are blocking delete: BeforeClusterDelete: not yet";
        assert_eq!(said(&held), ("False", "Deleting", message));
        assert_eq!(versions(&stage).await.len(), 2);
        extension.let_go();
        stage.pass(3600).await;
        assert!(Api::<Cluster>::default_namespaced(stage.client()).get_opt("c").await.unwrap().is_none());
    });
}

#[test]
fn whoever_does_not_answer_holds_everything_until_they_do() {
    stage(|stage| async move {
        registered(&stage).await;
        made(&stage, 1, json!([pool("a", 1)])).await;
        stage.extension().silent(true);
        upgrade(&stage).await;
        stage.pass(600).await;
        let held: Cluster = stage.get("c").await;
        let (status, reason, message) = said(&held);
        assert_eq!((status, reason), ("False", "ReconcileFailed"));
        assert!(
            message.starts_with("failed to call extension handler \"before-cluster-upgrade.windlass\""),
            "{message}"
        );
        assert!(message.ends_with("connection refused"), "{message}");
        assert_eq!(versions(&stage).await, ["v1.16.7+vmware.1"; 2]);
        stage.extension().silent(false);
        settled(&stage).await;
        assert_eq!(versions(&stage).await, ["v1.17.4+vmware.1"; 2]);
    });
}
