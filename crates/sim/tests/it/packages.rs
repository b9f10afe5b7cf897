//! Packages in the management cluster, as kapp-controller looks after them.

mod repository;

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_api::kind::packaging::{App, Package, PackageInstall, PackageInstallStatus};
use windlass_sim::world::World;

use crate::world::{in_world, living, settings};

const NAMESPACE: &str = "default";

/// A place where packages of one name can be installed.
struct Shop {
    client: Client,
}

impl Shop {
    async fn open(client: Client) -> Self {
        let account = json!({"metadata": {"name": "packager"}});
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), NAMESPACE);
        accounts.create(&PostParams::default(), &serde_json::from_value(account).unwrap()).await.unwrap();
        Self { client }
    }

    fn api<K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// A version of the package: a `ConfigMap` that says which, and whom it greets.
    async fn offer(&self, version: &str) -> Package {
        self.offer_with(version, CONTENT).await
    }

    async fn offer_with(&self, version: &str, content: &str) -> Package {
        let package = json!({
            "apiVersion": "data.packaging.carvel.dev/v1alpha1", "kind": "Package",
            "metadata": {"name": format!("greeter.example.com.{version}")},
            "spec": {"refName": "greeter.example.com", "version": version, "template": {"spec": {
                "fetch": [{"inline": {"paths": {"config.yaml": content.replace("VERSION", version)}}}],
                "template": [{"ytt": {}}],
                "deploy": [{"kapp": {}}],
            }}},
        });
        let package: Package = serde_json::from_value(package).unwrap();
        self.api().create(&PostParams::default(), &package).await.unwrap()
    }

    async fn install(&self, constraints: &str) {
        self.install_with(json!({"packageRef": {
            "refName": "greeter.example.com", "versionSelection": {"constraints": constraints},
        }}))
        .await;
    }

    async fn install_with(&self, mut spec: Value) {
        spec["serviceAccountName"] = "packager".into();
        let install = json!({
            "apiVersion": "packaging.carvel.dev/v1alpha1", "kind": "PackageInstall",
            "metadata": {"name": "greeter"}, "spec": spec,
        });
        let install: PackageInstall = serde_json::from_value(install).unwrap();
        self.api().create(&PostParams::default(), &install).await.unwrap();
    }

    async fn change(&self, patch: Value) {
        let api = self.api::<PackageInstall>();
        api.patch("greeter", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    }

    async fn give_values(&self, text: &str) {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "values"}, "stringData": {"values.yaml": text},
        });
        let api = self.api::<Secret>();
        api.patch("values", &PatchParams::apply("people").force(), &Patch::Apply(&secret)).await.unwrap();
    }

    async fn find<K>(&self, name: &str) -> Option<K>
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + DeserializeOwned,
    {
        self.api::<K>().get_opt(name).await.unwrap()
    }

    async fn status(&self) -> PackageInstallStatus {
        self.find::<PackageInstall>("greeter").await.unwrap().status.unwrap_or_default()
    }

    /// How it is in a word, of which version, and what people are told.
    async fn told(&self) -> (String, String, String) {
        let status = self.status().await;
        let conditions: Vec<&str> = status.conditions.iter().map(|condition| condition.type_.as_str()).collect();
        (conditions.join(","), status.version.unwrap_or_default(), status.friendly_description.unwrap_or_default())
    }

    /// What the greeter says.
    async fn greeting(&self) -> Option<String> {
        let map = self.find::<ConfigMap>("greeting").await?;
        let data = map.data.unwrap();
        Some(format!("{} {}", data["version"], data["who"]))
    }
}

const CONTENT: &str = "\
#@data/values
---
who: world
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: greeting
data:
  version: \"VERSION\"
  who: #@ data.values.who
";

async fn seconds(count: u64) {
    tokio::time::sleep(Duration::from_secs(count)).await;
}

fn three(state: &str, version: &str, description: &str) -> (String, String, String) {
    (state.to_owned(), version.to_owned(), description.to_owned())
}

#[test]
fn a_package_becomes_objects_and_its_app_says_how_it_is() {
    in_world(|world| async move {
        let shop = Shop::open(world.client()).await;
        shop.offer("1.0.0").await;
        shop.offer("2.0.0").await;
        shop.install("<2.0.0").await;
        seconds(1).await;
        assert_eq!(shop.told().await, three("Reconciling", "1.0.0", "Reconciling"));
        assert_eq!(shop.greeting().await, None, "it takes a while");
        seconds(10).await;
        assert_eq!(shop.told().await, three("ReconcileSucceeded", "1.0.0", "Reconcile succeeded"));
        assert_eq!(shop.greeting().await.as_deref(), Some("1.0.0 world"));

        let install: PackageInstall = shop.find("greeter").await.unwrap();
        let status = shop.status().await;
        assert_eq!(status.observed_generation, install.metadata.generation);
        assert_eq!(status.last_attempted_version.as_deref(), Some("1.0.0"));
        let app: App = shop.find("greeter").await.unwrap();
        assert_eq!(app.owner_references()[0].uid, install.uid().unwrap());
        let app = app.status.unwrap();
        assert_eq!((app.consecutive_reconcile_successes, app.consecutive_reconcile_failures), (1, 0));
        assert!(shop.find::<ConfigMap>("greeter.app").await.is_some(), "kapp's record");
    });
}

#[test]
fn a_newer_version_is_installed_by_itself_and_an_older_one_only_if_it_is_allowed() {
    in_world(|world| async move {
        let shop = Shop::open(world.client()).await;
        shop.offer("1.0.0").await;
        shop.install(">=1.0.0").await;
        seconds(10).await;
        let newer = shop.offer("1.1.0").await;
        seconds(10).await;
        assert_eq!(shop.told().await, three("ReconcileSucceeded", "1.1.0", "Reconcile succeeded"));
        assert_eq!(shop.greeting().await.as_deref(), Some("1.1.0 world"));

        shop.api::<Package>().delete(&newer.name_any(), &DeleteParams::default()).await.unwrap();
        seconds(10).await;
        let failed = "Reconcile failed: Error (see .status.usefulErrorMessage for details)";
        assert_eq!(shop.told().await, three("ReconcileFailed", "1.0.0", failed));
        let message = shop.status().await.useful_error_message.unwrap();
        let wanted = "Stopped installing matched version '1.0.0' since last attempted version '1.1.0' is higher.";
        assert_eq!(message.lines().next(), Some(wanted));
        assert_eq!(shop.greeting().await.as_deref(), Some("1.1.0 world"), "what runs is left alone");

        shop.change(json!({"metadata": {"annotations": {"packaging.carvel.dev/downgradable": ""}}})).await;
        seconds(10).await;
        assert_eq!(shop.told().await, three("ReconcileSucceeded", "1.0.0", "Reconcile succeeded"));
        assert_eq!(shop.greeting().await.as_deref(), Some("1.0.0 world"));
    });
}

#[test]
fn where_no_version_is_wanted_it_is_told_which_there_were() {
    in_world(|world| async move {
        let shop = Shop::open(world.client()).await;
        shop.offer("1.0.0-rc.1").await;
        shop.install(">=1.0.0").await;
        seconds(1).await;
        let message = shop.status().await.useful_error_message.unwrap();
        assert_eq!(
            message,
            "Expected to find at least one version, but did not \
             (details: all=1 -> after-prereleases-filter=0 -> after-constraints-filter=0)"
        );
        shop.offer("1.0.0").await;
        seconds(10).await;
        assert_eq!(shop.told().await.0, "ReconcileSucceeded");
    });
}

#[test]
fn values_are_waited_for_with_more_and_more_patience_and_heard_of_at_once() {
    in_world(|world| async move {
        let shop = Shop::open(world.client()).await;
        shop.offer("1.0.0").await;
        let values = json!([{"secretRef": {"name": "values"}}]);
        shop.install_with(json!({"packageRef": {"refName": "greeter.example.com"}, "values": values})).await;
        seconds(600).await;
        let app: App = shop.find("greeter").await.unwrap();
        let failures = app.status.clone().unwrap().consecutive_reconcile_failures;
        // 2 + 4 + … + 256 seconds, and some seconds of fetching before each.
        assert_eq!(failures, 9, "{:?}", app.status);
        assert_eq!(shop.told().await.0, "ReconcileFailed");
        let message = shop.status().await.useful_error_message.unwrap();
        assert_eq!(message, "Templating dir: secrets \"values\" not found");

        shop.give_values("who: moon\n").await;
        seconds(10).await;
        assert_eq!(shop.greeting().await.as_deref(), Some("1.0.0 moon"));
        assert_eq!(shop.status().await.useful_error_message, None);
        shop.give_values("who: sun\n").await;
        seconds(10).await;
        assert_eq!(shop.greeting().await.as_deref(), Some("1.0.0 sun"));
        shop.give_values("whom: sun\n").await;
        seconds(10).await;
        let message = shop.status().await.useful_error_message.unwrap();
        assert_eq!(message, "ytt: Error: One or more data values were invalid: found: whom, expected: one of who");
    });
}

#[test]
fn what_is_paused_is_left_as_it_is() {
    in_world(|world| async move {
        let shop = Shop::open(world.client()).await;
        shop.offer("1.0.0").await;
        shop.install(">=1.0.0").await;
        seconds(10).await;
        for field in ["paused", "canceled"] {
            shop.change(json!({"spec": {field: true}})).await;
            seconds(10).await;
            shop.offer(if field == "paused" { "1.1.0" } else { "1.2.0" }).await;
            seconds(700).await;
            assert_eq!(shop.told().await.2, "Canceled/paused", "{field}");
            assert_eq!(
                shop.greeting().await.as_deref(),
                Some(if field == "paused" { "1.0.0 world" } else { "1.1.0 world" })
            );
            shop.change(json!({"spec": {field: null}})).await;
            seconds(10).await;
            assert_eq!(shop.told().await.2, "Reconcile succeeded", "{field}");
        }
        assert_eq!(shop.greeting().await.as_deref(), Some("1.2.0 world"));
    });
}

#[test]
fn what_is_deleted_takes_its_objects_along_unless_it_says_otherwise() {
    for noop in [false, true] {
        in_world(|world| async move {
            let shop = Shop::open(world.client()).await;
            shop.offer("1.0.0").await;
            shop.install("1.0.0").await;
            seconds(10).await;
            shop.change(json!({"spec": {"noopDelete": noop}})).await;
            shop.api::<PackageInstall>().delete("greeter", &DeleteParams::default()).await.unwrap();
            seconds(10).await;
            assert!(shop.find::<PackageInstall>("greeter").await.is_none());
            assert!(shop.find::<App>("greeter").await.is_none());
            assert_eq!(shop.greeting().await.is_some(), noop);
            assert_eq!(shop.find::<ConfigMap>("greeter.app").await.is_some(), noop);
        });
    }
}

#[test]
fn objects_that_leave_the_package_leave_the_cluster_and_what_was_changed_comes_back() {
    in_world(|world| async move {
        let shop = Shop::open(world.client()).await;
        let other = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\ndata: {a: b}\n";
        shop.offer_with("1.0.0", &format!("{CONTENT}{other}")).await;
        shop.install(">=1.0.0").await;
        seconds(10).await;
        let maps = shop.api::<ConfigMap>();
        let patch = json!({"data": {"who": "somebody"}});
        maps.patch("greeting", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
        seconds(500).await;
        assert_eq!(shop.greeting().await.as_deref(), Some("1.0.0 somebody"), "nobody looks");
        seconds(120).await;
        assert_eq!(shop.greeting().await.as_deref(), Some("1.0.0 world"), "every ten minutes somebody does");
        assert!(shop.find::<ConfigMap>("other").await.is_some());
        shop.offer("1.1.0").await;
        seconds(10).await;
        assert!(shop.find::<ConfigMap>("other").await.is_none());
    });
}

#[test]
fn pods_that_never_run_are_a_failure_after_a_quarter_of_an_hour() {
    const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, annotations: {kapp.k14s.io/disable-wait: \"\"}}
spec:
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: greeter}
spec:
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}
";
    in_world(|world| async move {
        let shop = Shop::open(world.client()).await;
        shop.offer_with("1.0.0", DEPLOYMENT).await;
        shop.install("1.0.0").await;
        seconds(880).await;
        assert_eq!(shop.told().await.0, "Reconciling", "the management cluster has no nodes");
        seconds(30).await;
        let app: App = shop.find("greeter").await.unwrap();
        assert_eq!(app.status.unwrap().consecutive_reconcile_failures, 1, "and is tried again");
        let message = shop.status().await.useful_error_message.unwrap();
        assert_eq!(
            message,
            "kapp: Error: Timed out waiting after 900s for resources:\n\
             - deployment/greeter (apps/v1) namespace: default: Waiting for generation 1 to be observed"
        );
    });
}

#[test]
fn an_app_does_not_take_what_is_another_ones() {
    in_world(|world| async move {
        let shop = Shop::open(world.client()).await;
        let greeting = json!({"metadata": {"name": "greeting", "labels": {"kapp.k14s.io/app": "1"}}});
        let greeting: ConfigMap = serde_json::from_value(greeting).unwrap();
        shop.api::<ConfigMap>().create(&PostParams::default(), &greeting).await.unwrap();
        shop.offer("1.0.0").await;
        shop.install("1.0.0").await;
        seconds(10).await;
        let message = shop.status().await.useful_error_message.unwrap();
        assert!(message.contains("already associated with a different app '1'"), "{message}");
    });
}

#[test]
fn a_world_that_is_left_in_the_middle_goes_on_in_a_fork() {
    in_world(|world| async move {
        let shop = Shop::open(world.client()).await;
        shop.offer("1.0.0").await;
        shop.give_values("who: moon\n").await;
        let values = json!([{"secretRef": {"name": "values"}}]);
        shop.install_with(json!({"packageRef": {"refName": "greeter.example.com"}, "values": values})).await;
        seconds(1).await;
        assert_eq!(shop.told().await.0, "Reconciling");
        let fork = world.fork(settings(world.settings().clock.clone()));
        living(&fork, async {
            let shop = Shop { client: fork.client() };
            seconds(10).await;
            assert_eq!(shop.greeting().await.as_deref(), Some("1.0.0 moon"));
        })
        .await;
        shop.give_values("who: sun\n").await;
        let fork: World = world.fork(settings(world.settings().clock.clone()));
        living(&fork, async {
            let shop = Shop { client: fork.client() };
            seconds(10).await;
            assert_eq!(shop.greeting().await.as_deref(), Some("1.0.0 sun"), "what nobody had heard of yet");
        })
        .await;
    });
}
