//! A newer Windlass rolls nothing by itself, and where updates have to be approved none begins before.

use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use windlass_api::kind::bootstrap::KubeadmConfigTemplate;
use windlass_api::kind::cluster_api::Machine;
use windlass_api::kind::cluster_update::{ClusterUpdate, UpdateState};
use windlass_api::kind::tanzu::{Phase, TanzuKubernetesCluster};
use windlass_api::kind::{Condition, condition, is_true};
use windlass_api::{annotation, label};
use windlass_plan::gate::Blocked;
use windlass_plan::render::Defaults;
use windlass_sim::fault::Scenario;
use windlass_sim::world::World;

use crate::play::{played, status, told, until, update};
use crate::start::{self, FROM, later};

/// A Windlass that decides something otherwise than the one before it.
fn newer() -> Defaults {
    Defaults { node_registration: [("imagePullPolicy".to_owned(), "Always".to_owned())].into() }
}

fn pending(world: &World) -> Option<Condition> {
    condition(&status(world).conditions, "UpdatePending").cloned()
}

/// The machines that there are, by uid.
async fn machines(world: &World) -> Vec<String> {
    let api: Api<Machine> = Api::default_namespaced(world.client());
    let listed = api.list(&kube::api::ListParams::default()).await.unwrap();
    let mut uids: Vec<String> = listed.items.into_iter().filter_map(|machine| machine.metadata.uid).collect();
    uids.sort();
    uids
}

async fn agree(world: &World, digest: &str) {
    let api: Api<TanzuKubernetesCluster> = Api::default_namespaced(world.client());
    let consent = json!({"metadata": {"annotations": {annotation::APPROVED.name: digest}}});
    api.patch("my-tkc", &PatchParams::default(), &Patch::Merge(consent)).await.unwrap();
}

/// How often the templates of workers say what the newer Windlass says.
async fn told_to_pull(world: &World) -> usize {
    let api: Api<KubeadmConfigTemplate> = Api::default_namespaced(world.client());
    let listed = api.list(&kube::api::ListParams::default()).await.unwrap();
    let says = |template: &&KubeadmConfigTemplate| {
        let join = template.spec.template.spec.join_configuration.as_ref();
        join.is_some_and(|join| join.node_registration.rest.contains_key("imagePullPolicy"))
    };
    listed.items.iter().filter(says).count()
}

#[test]
fn a_newer_windlass_waits_for_consent_and_rolls_then() {
    let start = &start::one_and_one().world;
    let (end, _) = played(start, later(), (Scenario::default(), newer()), |world| async move {
        let before = machines(&world).await;
        tokio::time::sleep(Duration::from_secs(24 * 60 * 60)).await;
        assert_eq!(machines(&world).await, before, "no machine comes or goes in a day");
        let (cluster, pending) = (status(&world), pending(&world).unwrap());
        assert_eq!((cluster.phase, cluster.update.as_deref()), (Some(Phase::Running), None));
        assert!(is_true(&cluster.conditions, "Ready"), "{:#?}", cluster.conditions);
        assert_eq!((pending.status.as_str(), pending.reason.as_str()), ("True", "ConsentNeeded"));
        assert!(pending.message.contains("imagePullPolicy"), "{}", pending.message);
        let said = told(&world).await.into_iter().filter(|(_, reason)| reason == "UpdatePending").count();
        assert_eq!(said, 1, "it is said once");

        agree(&world, "sha256:something-else").await;
        tokio::time::sleep(Duration::from_secs(60 * 60)).await;
        assert_eq!(machines(&world).await, before, "that was about something else");
        let digest = Blocked::asked_to_agree_to(&pending.message).unwrap();
        agree(&world, digest).await;
        until(&world, "updated", |world| update(world).state == Some(UpdateState::Succeeded)).await;
        until(&world, "running", |world| status(world).phase == Some(Phase::Running)).await;
        let after = machines(&world).await;
        let all_are_new = after.iter().all(|uid| !before.contains(uid));
        assert!(all_are_new && after.len() == before.len(), "of control plane and pool: {before:?} {after:?}");
    });
    assert_eq!(status(&end).version.as_deref(), Some(FROM));
    assert_eq!(pending(&end), None);
}

#[test]
fn new_defaults_come_along_with_what_an_owner_asks_for() {
    let start = &start::one_and_one().world;
    let _end = played(start, later(), (Scenario::default(), newer()), |world| async move {
        until(&world, "pending", |world| pending(world).is_some()).await;
        let api: Api<TanzuKubernetesCluster> = Api::default_namespaced(world.client());
        let wish = json!({"spec": {"topology": {"workers": {"class": "best-effort-small"}}}});
        api.patch("my-tkc", &PatchParams::default(), &Patch::Merge(wish)).await.unwrap();
        until(&world, "updated", |world| update(world).state == Some(UpdateState::Succeeded)).await;
        assert_eq!(pending(&world), None);
        assert_eq!(told_to_pull(&world).await, 1);
    });
}

async fn wish(world: &World, wish: serde_json::Value) -> Result<TanzuKubernetesCluster, String> {
    let api: Api<TanzuKubernetesCluster> = Api::default_namespaced(world.client());
    let written = api.patch("my-tkc", &PatchParams::default(), &Patch::Merge(wish)).await;
    written.map_err(|error| error.to_string())
}

/// What the namespace of the cluster wants.
async fn want_approval(world: &World, policy: &str) {
    let api: Api<Namespace> = Api::all(world.client());
    let label = json!({"metadata": {"labels": {label::APPROVAL.name: policy}}});
    api.patch("default", &PatchParams::default(), &Patch::Merge(label)).await.unwrap();
}

#[test]
fn an_update_begins_when_just_that_is_approved_and_who_did_is_on_record() {
    let start = &start::one_and_one().world;
    let (end, _) = played(start, later(), (Scenario::default(), Defaults::default()), |world| async move {
        want_approval(&world, "required").await;
        let before = machines(&world).await;
        wish(&world, json!({"spec": {"distribution": {"version": "v1.16.7", "fullVersion": null}}})).await.unwrap();
        until(&world, "pending", |world| pending(world).is_some()).await;
        tokio::time::sleep(Duration::from_secs(24 * 60 * 60)).await;
        assert_eq!(machines(&world).await, before, "nothing in a day");
        let (cluster, waits) = (status(&world), pending(&world).unwrap());
        assert_eq!((cluster.update.as_deref(), waits.reason.as_str()), (None, "ApprovalNeeded"));
        let first = Blocked::asked_to_agree_to(&waits.message).unwrap().to_owned();

        agree(&world, "sha256:something-else").await;
        // Approved, and asked for something else at the same time: what was approved is not what would be done.
        let larger = json!({"metadata": {"annotations": {annotation::APPROVED.name: first}},
            "spec": {"topology": {"workers": {"class": "best-effort-small", "count": 2}}}});
        wish(&world, larger).await.unwrap();
        tokio::time::sleep(Duration::from_secs(60 * 60)).await;
        assert_eq!(machines(&world).await, before, "these were about something else");

        let second = Blocked::asked_to_agree_to(&pending(&world).unwrap().message).unwrap().to_owned();
        assert_ne!(first, second);
        agree(&world, &second).await;
        until(&world, "updated", |world| update(world).state == Some(UpdateState::Succeeded)).await;
        let api: Api<ClusterUpdate> = Api::default_namespaced(world.client());
        let spec = api.get("my-tkc-1").await.unwrap().spec;
        assert_eq!(spec.envelope_digest, second, "what was approved is what was done");
        assert_eq!(spec.approval.unwrap().by, "system:admin");
    });
    assert_eq!(pending(&end), None);
}

#[test]
fn where_a_second_person_has_to_approve_whoever_asked_is_refused() {
    let start = &start::one_and_one().world;
    let (end, _) = played(start, later(), (Scenario::default(), Defaults::default()), |world| async move {
        want_approval(&world, "second-person").await;
        wish(&world, json!({"spec": {"distribution": {"version": "v1.16.7", "fullVersion": null}}})).await.unwrap();
        until(&world, "pending", |world| pending(world).is_some()).await;
        let digest = Blocked::asked_to_agree_to(&pending(&world).unwrap().message).unwrap().to_owned();
        let approve = json!({"metadata": {"annotations": {annotation::APPROVED.name: digest}}});
        let refused = wish(&world, approve).await.unwrap_err();
        assert!(refused.contains("somebody else has to approve it: windlass approve my-tkc"), "{refused}");
        // Nobody gets around it by writing down who asked, or that nobody has to approve.
        let forged =
            json!({"metadata": {"annotations": {annotation::ASKED_BY.name: "bob", annotation::APPROVAL.name: null}}});
        let written = wish(&world, forged).await.unwrap().metadata.annotations.unwrap();
        assert_eq!(written[annotation::ASKED_BY.name], "system:admin");
        assert_eq!(written[annotation::APPROVAL.name], "second-person");
    });
    assert!(pending(&end).is_some());
}
