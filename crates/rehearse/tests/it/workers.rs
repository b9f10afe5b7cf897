//! Workers that do not get anywhere: what is said about them, when it is given up, and how it goes on.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
};
use kube::{Api, Client};
use serde_json::{Value, json};
use windlass_api::kind::cluster_api::Machine;
use windlass_api::kind::cluster_update::{UpdateState, WaitingFor};
use windlass_api::kind::tanzu::{Phase, TanzuKubernetesCluster};
use windlass_api::kind::{Condition, condition, is_true};
use windlass_plan::render::Defaults;
use windlass_sim::fault::{Fault, MachineFault, Scenario, Span, When, Whom};
use windlass_sim::world::World;

use crate::play::{now, played, status, told, until, update};
use crate::start::{self, TO, cluster_name, later};

/// What the update waits for, for this reason.
fn waits(world: &World, reason: &str) -> Option<WaitingFor> {
    update(world).waiting_for.into_iter().find(|waiting| waiting.reason == reason)
}

fn ready(world: &World) -> Condition {
    condition(&status(world).conditions, "Ready").unwrap().clone()
}

async fn upgrade(world: &World) {
    let api: Api<TanzuKubernetesCluster> = Api::default_namespaced(world.client());
    let wish = json!({"spec": {"distribution": {"version": "v1.16.7", "fullVersion": null}}});
    api.patch("my-tkc", &PatchParams::default(), &Patch::Merge(wish)).await.unwrap();
}

async fn put(client: &Client, object: Value) {
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    let kind = ApiResource::from_gvk(&GroupVersionKind::try_from(object.types.as_ref().unwrap()).unwrap());
    let api: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &kind);
    api.create(&PostParams::default(), &object).await.unwrap();
}

/// One pod that may not go: its budget wants one at least, and there is one.
pub async fn put_a_pod_that_stays(world: &World) {
    let client = world.workload(&cluster_name()).unwrap().client();
    let labels = json!({"app": "web"});
    let container = json!({"name": "web", "image": "nginx:1"});
    let pod = json!({"metadata": {"labels": labels}, "spec": {"containers": [container]}});
    let selector = json!({"matchLabels": labels});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 1, "selector": selector, "template": pod},
    });
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
        "spec": {"minAvailable": 1, "selector": selector},
    });
    put(&client, deployment).await;
    put(&client, budget).await;
}

async fn lift_the_budget(world: &World) {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("policy", "v1", "PodDisruptionBudget"));
    let client = world.workload(&cluster_name()).unwrap().client();
    let budgets: Api<DynamicObject> = Api::default_namespaced_with(client, &kind);
    budgets.delete("web", &DeleteParams::default()).await.unwrap();
}

/// Since when a machine is on the way out.
async fn leaves_since(world: &World) -> Timestamp {
    let machines: Api<Machine> = Api::default_namespaced(world.client());
    let listed = machines.list(&ListParams::default()).await.unwrap();
    listed.items.iter().find_map(|machine| machine.metadata.deletion_timestamp.as_ref()).unwrap().0
}

fn minutes(minutes: i64) -> SignedDuration {
    SignedDuration::from_mins(minutes)
}

/// The cluster is as it was asked to be, by the update that had failed.
fn assert_reached(world: &World) {
    let (cluster, update) = (status(world), update(world));
    assert_eq!((cluster.version.as_deref(), cluster.update.as_deref()), (Some(TO), Some("my-tkc-1")));
    assert_eq!((update.state, update.failure, update.progress), (Some(UpdateState::Succeeded), None, vec![]));
    assert!(is_true(&cluster.conditions, "Ready") && !is_true(&cluster.conditions, "Stalled"));
}

#[test]
fn a_budget_that_blocks_a_drain_is_told_within_a_minute_fails_the_update_and_is_forgotten_when_it_is_lifted() {
    let start = &start::one_and_one().world;
    let (halfway, then) = played(start, later(), (Scenario::default(), Defaults::default()), |world| async move {
        put_a_pod_that_stays(&world).await;
        upgrade(&world).await;
        until(&world, "told", |world| ready(world).reason == "DrainBlocked").await;
        let (since, at) = (leaves_since(&world).await, now(&world));
        assert!(at.duration_since(since) <= SignedDuration::from_secs(60), "{since} {at}");
        let message = ready(&world).message;
        assert!(message.contains("Pod default/web-") && message.contains("disruption budget web"), "{message}");
        let way_out = waits(&world, "DrainBlocked").unwrap().way_out.unwrap();
        assert!(way_out.contains("kubectl -n default edit poddisruptionbudget web"), "{way_out}");
        assert!(!is_true(&status(&world).conditions, "Stalled"), "a budget may open by itself");
        assert!(told(&world).await.contains(&("Warning".into(), "DrainBlocked".into())));

        tokio::time::sleep(Duration::from_secs(6 * 60)).await;
        assert!(is_true(&status(&world).conditions, "Stalled"));
        until(&world, "stalled", |world| waits(world, "PoolStalled").is_some()).await;
        assert_eq!(ready(&world).reason, "DrainBlocked", "what can be done something about comes first");
    });
    let moved_at: Timestamp = update(&halfway).progress[0].moved_at.parse().unwrap();
    let stalled_after = then.duration_since(moved_at);
    assert!((minutes(30)..minutes(36)).contains(&stalled_after), "{stalled_after}");

    // Whoever goes on from here has only what is written down.
    let (end, _) = played(&halfway, then, (Scenario::default(), Defaults::default()), |world| async move {
        until(&world, "given up", |world| status(world).phase == Some(Phase::UpdateFailed)).await;
        let after = now(&world).duration_since(moved_at);
        assert!((minutes(60)..minutes(66)).contains(&after), "{after}");
        let failure = update(&world).failure.unwrap();
        assert!(failure.contains("disruption budget web") && failure.contains("has not moved since"), "{failure}");

        lift_the_budget(&world).await;
        until(&world, "running", |world| status(world).phase == Some(Phase::Running)).await;
        let told = told(&world).await;
        for reason in ["UpdateFailed", "UpdateResumed", "UpdateSucceeded"] {
            assert!(told.iter().any(|(_, told)| told == reason), "{reason} is not in {told:?}");
        }
    });
    assert_reached(&end);
}

#[test]
fn a_worker_that_never_boots_is_told_and_one_that_boots_after_all_ends_the_update() {
    let never = Fault::Machine { of: Whom::named("*-workers-*"), how: MachineFault::NeverBoots };
    let faults = Scenario::default().and(never, When::between(Span::seconds(1), Span::minutes(120)));
    let (end, _) = played(&start::one_and_one().world, later(), (faults, Defaults::default()), |world| async move {
        upgrade(&world).await;
        until(&world, "told", |world| ready(world).reason == "MachineFailed").await;
        let message = ready(&world).message;
        assert!(message.contains("it is no node"), "{message}");
        assert!(is_true(&status(&world).conditions, "Stalled"));
        let moved_at: Timestamp = update(&world).progress[0].moved_at.parse().unwrap();
        let way_out = waits(&world, "MachineFailed").unwrap().way_out.unwrap();
        assert!(way_out.contains("kubectl delete machine my-tkc-workers-"), "{way_out}");

        until(&world, "given up", |world| status(world).phase == Some(Phase::UpdateFailed)).await;
        let after = now(&world).duration_since(moved_at);
        assert!((minutes(60)..minutes(66)).contains(&after), "{after}");
        assert_eq!(status(&world).version.as_deref(), Some(start::FROM), "the old worker is still there");
        until(&world, "running", |world| status(world).phase == Some(Phase::Running)).await;
    });
    assert_reached(&end);
}
