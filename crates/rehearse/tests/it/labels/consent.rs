//! Where updates have to be approved, that of a classic cluster waits for it too: nothing is written before, and who agreed is on
//! record.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::cluster_update::{ClusterUpdate, UpdateState};
use windlass_api::kind::control_plane::KubeadmControlPlane;
use windlass_api::{annotation, label};
use windlass_apiserver::reviews::Rights;
use windlass_plan::gate::Blocked;

use super::{applied, patch, played_on, start, until_told, upgraded};
use crate::play::somebody;

/// What the namespace of the cluster wants.
async fn want(client: &Client, policy: &str) {
    let api: Api<Namespace> = Api::all(client.clone());
    let label = json!({"metadata": {"labels": {label::APPROVAL.name: policy}}});
    api.patch("default", &PatchParams::default(), &Patch::Merge(label)).await.unwrap();
}

fn released(release: &str) -> Value {
    json!({"metadata": {"labels": {label::RELEASE_VERSION.name: release}}})
}

fn annotated(key: &str, value: &str) -> Value {
    json!({"metadata": {"annotations": {key: value}}})
}

async fn ask(client: &Client, release: &str) {
    patch::<Cluster>(client, "shop", released(release)).await.unwrap();
}

async fn approve(client: &Client, digest: &str) -> Result<kube::api::DynamicObject, String> {
    patch::<Cluster>(client, "shop", annotated(annotation::APPROVED.name, digest)).await
}

/// Until it is said what has to be approved; its digest.
async fn pending(client: &Client) -> String {
    let told = until_told(client, "pending", |told| told.reason == "ApprovalNeeded").await;
    Blocked::asked_to_agree_to(&told.message).unwrap().to_owned()
}

async fn control_plane(client: &Client) -> KubeadmControlPlane {
    Api::<KubeadmControlPlane>::default_namespaced(client.clone()).get("shop-control-plane").await.unwrap()
}

async fn updates(client: &Client) -> Vec<ClusterUpdate> {
    let api: Api<ClusterUpdate> = Api::default_namespaced(client.clone());
    api.list(&ListParams::default()).await.unwrap().items
}

/// The last update, when it is done.
async fn succeeded(client: &Client) -> ClusterUpdate {
    let is_done = |told: &windlass_api::kind::Condition| told.status == "True";
    until_told(client, "applied", is_done).await;
    let last = updates(client).await.into_iter().max_by_key(|update| update.spec.ordinal).unwrap();
    assert_eq!(last.status.as_ref().unwrap().state, Some(UpdateState::Succeeded), "{last:#?}");
    last
}

/// Everybody may do everything, but bob may not approve.
struct NotBob;

impl Rights for NotBob {
    fn refuses(&self, user: &str, attributes: &Value) -> Option<String> {
        let asked =
            ["verb", "group", "resource", "namespace", "name"].map(|key| attributes[key].as_str().unwrap_or("-"));
        let clusters = [
            ["approve", "cluster.x-k8s.io", "clusters", "default", "shop"],
            ["approve", "run.tanzu.vmware.com", "tanzukubernetesclusters", "default", "my-tkc"],
        ];
        (user == "bob" && clusters.contains(&asked)).then(|| "bob is not an approver".to_owned())
    }
}

#[test]
fn a_release_is_brought_when_just_that_is_approved_and_who_did_is_on_record() {
    let end = played_on(&start().world, |world| async move {
        let client = &world.client();
        want(client, "required").await;
        ask(client, "36.1.0").await;
        let digest = pending(client).await;
        let before = control_plane(client).await.metadata.resource_version;
        approve(client, "sha256:something-else").await.unwrap();
        tokio::time::sleep(Duration::from_secs(2 * 60 * 60)).await;
        assert_eq!(control_plane(client).await.metadata.resource_version, before, "nothing in two hours");
        assert!(updates(client).await.is_empty());

        let reject = json!({"metadata": {"annotations": {
            annotation::APPROVED.name: null, annotation::REJECTED.name: digest, annotation::DECIDED_BECAUSE.name: "not now",
        }}});
        patch::<Cluster>(client, "shop", reject).await.unwrap();
        let told = until_told(client, "rejected", |told| told.reason == "Rejected").await;
        assert!(told.message.starts_with("system:admin has rejected the update: not now; "), "{told:?}");
        assert!(told.message.contains("kubectl annotate --overwrite cluster shop windlass.dev/approved="), "{told:?}");

        let client = &somebody(&world, "ada");
        approve(client, &digest).await.unwrap();
        let update = succeeded(client).await;
        assert_eq!(update.spec.envelope_digest, digest, "what was approved is what was done");
        assert_eq!(update.spec.approval.unwrap().by, "ada");
        assert_eq!(applied(client).await.message, "36.1.0");
    });
    assert!(end.recorder().violations().is_empty(), "{:?}", end.recorder().violations());
}

#[test]
fn a_release_that_replaces_nothing_waits_too_and_has_a_record_of_who_agreed() {
    played_on(upgraded(), |world| async move {
        let client = &world.client();
        let drain = |found: KubeadmControlPlane| {
            let found = serde_json::to_value(found).unwrap();
            found.pointer("/spec/machineTemplate/spec/deletion").cloned().unwrap_or_default()
        };
        want(client, "required").await;
        ask(client, "36.2.0").await;
        let digest = pending(client).await;
        // Nobody gets around it by saying that it is there already, as if all else were drift.
        let there = annotated(annotation::LAST_DEPLOYED_VERSION.name, "36.2.0");
        let written = patch::<Cluster>(client, "shop", there).await.unwrap();
        assert_eq!(written.annotations()[annotation::LAST_DEPLOYED_VERSION.name], "36.1.0");
        tokio::time::sleep(Duration::from_secs(2 * 60 * 60)).await;
        assert_eq!(drain(control_plane(client).await), Value::Null);
        approve(client, &digest).await.unwrap();
        let update = succeeded(client).await;
        assert_eq!(drain(control_plane(client).await), json!({"nodeDrainTimeoutSeconds": 1800}));
        let (begun, spec) = (updates(client).await.len(), update.spec);
        assert_eq!((begun, spec.approval.unwrap().by.as_str()), (2, "system:admin"));
        assert_eq!((spec.from.distribution.as_str(), spec.to.distribution.as_str()), ("v36.1.0", "v36.2.0"));
    });
}

#[test]
fn the_cluster_itself_is_brought_to_its_release_by_the_approval_and_not_before() {
    played_on(&start().world, |world| async move {
        let client = &world.client();
        let map: ConfigMap = serde_json::from_value(json!({
            "metadata": {"name": "cluster-36-1-0", "labels": {label::RELEASE_VERSION.name: "36.1.0"}},
            "data": {
                "spec": "availabilityGates: [{conditionType: Shop}]",
                "releaseOwned": "- spec.availabilityGates",
            },
        }))
        .unwrap();
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "giantswarm");
        maps.create(&PostParams::default(), &map).await.unwrap();
        want(client, "required").await;
        ask(client, "36.1.0").await;
        let gates = |cluster: &Value| cluster["spec"]["availabilityGates"].clone();
        let digest = pending(client).await;
        let wrong = approve(client, "sha256:something-else").await.unwrap();
        assert_eq!(gates(&json!(wrong)), Value::Null);
        let edited = patch::<Cluster>(client, "shop", json!({"spec": {"paused": false}})).await.unwrap();
        assert_eq!(gates(&json!(edited)), Value::Null, "somebody changes something else meanwhile");
        let approved = approve(client, &digest).await.unwrap();
        assert_eq!(gates(&json!(approved)), json!([{"conditionType": "Shop"}]));
        // Once it has begun, what was approved is kept up, whatever the digest of the rest would be.
        until_told(client, "updating", |told| told.reason == "Updating").await;
        let taken = patch::<Cluster>(client, "shop", json!({"spec": {"availabilityGates": null}})).await.unwrap();
        assert_eq!(gates(&json!(taken)), json!([{"conditionType": "Shop"}]));
        assert_eq!(succeeded(client).await.spec.envelope_digest, digest);
    });
}

#[test]
fn whoever_has_not_the_verb_cannot_decide_nor_have_decided_before() {
    played_on(&start().world, |world| async move {
        world.management().answer_about_rights(Arc::new(NotBob));
        let (client, bob) = (&world.client(), &somebody(&world, "bob"));
        // Before anybody has to approve, what somebody writes there is for nothing.
        approve(bob, "sha256:foreseen").await.unwrap();
        want(client, "required").await;
        ask(bob, "36.1.0").await;
        let annotations = || async {
            Api::<Cluster>::default_namespaced(client.clone()).get("shop").await.unwrap().annotations().clone()
        };
        assert_eq!(annotations().await.get(annotation::APPROVED.name), None);
        let digest = pending(client).await;
        for decision in [annotation::APPROVED.name, annotation::REJECTED.name] {
            let refused = patch::<Cluster>(bob, "shop", annotated(decision, &digest)).await.unwrap_err();
            let why =
                "bob may not decide about updates of shop: the verb approve on clusters.cluster.x-k8s.io is missing";
            assert!(refused.contains(why), "{refused}");
        }
        // Nor by asking in the same write, nor by taking the label away and making up what is written there.
        let both = json!({"metadata": {
            "labels": {label::RELEASE_VERSION.name: "36.2.0"}, "annotations": {annotation::APPROVED.name: digest},
        }});
        assert!(patch::<Cluster>(bob, "shop", both).await.unwrap_err().contains("bob may not decide"));
        let forged = json!({"metadata": {"labels": {label::RELEASE_VERSION.name: null}, "annotations": {
            annotation::APPROVED.name: digest, annotation::DECIDED_BY.name: "ada", annotation::APPROVAL.name: "required",
        }}});
        patch::<Cluster>(bob, "shop", forged).await.unwrap();
        ask(bob, "36.1.0").await;
        let found = annotations().await;
        assert_eq!(found.get(annotation::APPROVED.name), None);
        assert_eq!(found.get(annotation::DECIDED_BY.name), None);
        assert_eq!(found[annotation::ASKED_BY.name], "bob");
        pending(client).await;
        assert!(updates(client).await.is_empty());
        approve(client, &digest).await.unwrap();
        assert_eq!(succeeded(client).await.spec.approval.unwrap().by, "system:admin");
    });
}

#[test]
fn where_a_second_person_has_to_approve_a_label_whoever_asked_is_refused() {
    played_on(&start().world, |world| async move {
        let (ada, bob) = (&somebody(&world, "ada"), &somebody(&world, "bob"));
        want(ada, "second-person").await;
        ask(ada, "36.1.0").await;
        let digest = pending(ada).await;
        let refused = approve(ada, &digest).await.unwrap_err();
        assert!(refused.contains("somebody else has to approve it: windlass approve shop"), "{refused}");
        approve(bob, &digest).await.unwrap();
        assert_eq!(succeeded(ada).await.spec.approval.unwrap().by, "bob");
    });
}
