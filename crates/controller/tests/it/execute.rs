//! Steps are made exactly, and making them twice changes nothing.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{DynamicObject, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use windlass_api::kind::wcp::WCPCluster;
use windlass_api::name::{ClusterSecret, NamespacedName};
use windlass_controller::access::WorkloadCluster;
use windlass_controller::execute::{Executed, Executor, Kinds};
use windlass_plan::step::{Action, Place, Revision, Stage, Step};
use windlass_sim::world::World;

use crate::world::{Nothing, api, create, in_world, read, versions, workload};

async fn execute(world: &World, workload: Option<&WorkloadCluster>, steps: &[Step]) -> Executed {
    let cluster: NamespacedName = "default/my-tkc".parse().unwrap();
    let executor = Executor {
        cluster: &cluster,
        management: &world.client(),
        workload,
        keys: &Nothing,
        kinds: &Kinds::new(),
        clock: &world.settings().clock,
        wrote: &|_: &DynamicObject| {},
    };
    executor.steps(steps).await
}

fn step(stage: Stage, role: &str, place: Place, action: Action) -> Step {
    Step { stage, role: role.into(), place, action, why: "because".into() }
}

fn control_plane(action: Action) -> Step {
    step(Stage::ControlPlane, "cluster/WCPCluster", Place::Management, action)
}

fn addon(name: &str, action: Action) -> Step {
    step(Stage::Packages, &format!("addon/{name}/{}", action.kind()), Place::Workload, action)
}

fn config_map(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data})
}

/// An object as an update makes it, for an owner.
fn made_by(update: &str, owner: &str) -> Value {
    json!({
        "apiVersion": "infrastructure.cluster.vmware.com/v1alpha2", "kind": "WCPCluster",
        "metadata": {
            "name": "my-tkc", "namespace": "default", "labels": {"windlass.dev/update-id": update},
            "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner}],
        },
        "spec": {},
    })
}

fn ca() -> Action {
    let metadata = json!({"name": "my-tkc-ca", "namespace": "default"});
    Action::CreateSecret { secret: ClusterSecret::CertificateAuthority, metadata }
}

fn complaints(executed: &Executed) -> Vec<String> {
    executed.failures.iter().map(|failure| failure.error.to_string()).collect()
}

async fn owner(client: &Client) -> ConfigMap {
    create(client, &read::<ConfigMap>(config_map("owner", &json!({})))).await
}

#[test]
fn making_the_same_steps_twice_changes_nothing() {
    in_world(|world| async move {
        let (client, workload) = (world.client(), workload(&world));
        let owner = owner(&client).await.metadata.uid.unwrap();
        let steps = [
            control_plane(Action::Create { object: made_by("1", &owner) }),
            control_plane(ca()),
            addon("a", Action::Apply { object: config_map("a", &json!({"k": "v"})), expect: None }),
        ];
        let mut seen = Vec::new();
        for _ in 0..2 {
            let executed = execute(&world, Some(&workload), &steps).await;
            assert_eq!((executed.made, executed.outdated, complaints(&executed)), (3, false, vec![]));
            seen.push((
                versions::<WCPCluster>(&client).await,
                versions::<Secret>(&client).await,
                versions::<ConfigMap>(&workload.client).await,
            ));
        }
        assert_eq!(seen[0], seen[1]);
        assert!(seen[0].0.contains_key("my-tkc") && seen[0].1.contains_key("my-tkc-ca") && seen[0].2.contains_key("a"));
    });
}

#[test]
fn what_is_not_ours_is_not_taken_over() {
    in_world(|world| async move {
        let client = world.client();
        let owner = owner(&client).await.metadata.uid.unwrap();
        let other: ConfigMap = create(&client, &read::<ConfigMap>(config_map("other", &json!({})))).await;
        let other = other.metadata.uid.unwrap();
        create(&client, &read::<WCPCluster>(made_by("1", &owner))).await;
        let before = versions::<WCPCluster>(&client).await;
        for (object, complaint) in [
            (made_by("2", &owner), "create WCPCluster/my-tkc: there is one already, made by the update 1"),
            (
                made_by("1", &other),
                "create WCPCluster/my-tkc: there is one already, which does not belong to ConfigMap owner",
            ),
        ] {
            let executed = execute(&world, None, &[control_plane(Action::Create { object })]).await;
            assert_eq!(complaints(&executed), [complaint]);
        }
        assert_eq!(versions::<WCPCluster>(&client).await, before);
    });
}

#[test]
fn a_write_that_expects_another_state_is_not_made() {
    in_world(|world| async move {
        let client = world.client();
        let live = owner(&client).await;
        let uid = live.metadata.uid.clone().unwrap();
        let at = |uid: &str, resource_version: &str| Revision {
            uid: uid.parse().unwrap(),
            resource_version: resource_version.into(),
        };
        let now = live.metadata.resource_version.clone().unwrap();
        let apply = |expect| {
            control_plane(Action::Apply { object: config_map("owner", &json!({"k": "v"})), expect: Some(expect) })
        };
        let delete = |expect| {
            control_plane(Action::Delete {
                api_version: "v1".into(),
                kind: "ConfigMap".into(),
                namespace: Some("default".into()),
                name: "owner".into(),
                expect,
            })
        };
        let other = "00000000-0000-4000-8000-000000000000";
        for step in [apply(at(&uid, "1")), apply(at(other, &now)), delete(at(&uid, "1")), delete(at(other, &now))] {
            let executed = execute(&world, None, std::slice::from_ref(&step)).await;
            assert_eq!((executed.made, executed.outdated, complaints(&executed)), (0, true, vec![]), "{step:?}");
        }
        assert_eq!(versions::<ConfigMap>(&client).await["owner"], now);

        let executed = execute(&world, None, &[apply(at(&uid, &now))]).await;
        assert_eq!((executed.made, executed.outdated), (1, false));
        let now = versions::<ConfigMap>(&client).await["owner"].clone();
        for _ in 0..2 {
            let executed = execute(&world, None, &[delete(at(&uid, &now))]).await;
            assert_eq!((executed.made, executed.outdated), (1, false), "gone is as good as deleted");
        }
        assert!(!versions::<ConfigMap>(&client).await.contains_key("owner"));
    });
}

#[test]
fn a_certificate_that_is_there_is_never_overwritten() {
    in_world(|world| async move {
        let client = world.client();
        let theirs = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "my-tkc-ca", "namespace": "default"},
            "data": {"tls.crt": "dGhlaXJz"},
        });
        create(&client, &read::<Secret>(theirs)).await;
        let executed = execute(&world, None, &[control_plane(ca())]).await;
        assert_eq!((executed.made, complaints(&executed)), (1, vec![]));
        let live: Secret = api(&client).get("my-tkc-ca").await.unwrap();
        assert_eq!(live.data.unwrap()["tls.crt"].0, b"theirs");
    });
}

#[test]
fn one_add_on_never_stops_another_but_its_own_rest() {
    in_world(|world| async move {
        let workload = workload(&world);
        let apply = |name: &str, data: &Value| Action::Apply { object: config_map(name, data), expect: None };
        let malformed = json!({"k": ["no text"]});
        let steps = [
            addon("a", apply("a-1", &malformed)),
            addon("a", apply("a-2", &json!({}))),
            addon("b", apply("b-1", &json!({}))),
            control_plane(Action::Create { object: json!({"apiVersion": "v1", "kind": "ConfigMap"}) }),
            control_plane(ca()),
        ];
        let executed = execute(&world, Some(&workload), &steps).await;
        assert_eq!(executed.made, 1);
        let roles: Vec<&str> = executed.failures.iter().map(|failure| failure.role.as_str()).collect();
        assert_eq!(roles, ["addon/a/ConfigMap", "cluster/WCPCluster"]);
        assert!(executed.failure_of_addon("a").is_some() && executed.failure_of_addon("b").is_none());
        let made = versions::<ConfigMap>(&workload.client).await;
        assert!(made.contains_key("b-1") && !made.contains_key("a-2"), "{made:?}");
        assert!(!versions::<Secret>(&world.client()).await.contains_key("my-tkc-ca"));
    });
}

#[test]
fn a_kind_that_is_not_known_beforehand_is_looked_up() {
    in_world(|world| async move {
        let workload = workload(&world);
        let object = json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "a"},
            "spec": {"maxUnavailable": 1, "selector": {}},
        });
        let unknown = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "b"}});
        let steps = [
            addon("a", Action::Apply { object, expect: None }),
            addon("b", Action::Apply { object: unknown, expect: None }),
        ];
        let executed = execute(&world, Some(&workload), &steps).await;
        assert_eq!((executed.made, executed.failures.len()), (1, 1));
        assert!(complaints(&executed)[0].starts_with("look up the kind Thing of example.com/v1: "));
        let budgets: Api<PodDisruptionBudget> = api(&workload.client);
        assert!(budgets.get("a").await.is_ok(), "a manifest without a namespace is for `default`");
    });
}

#[test]
fn what_is_being_deleted_is_not_taken_over() {
    in_world(|world| async move {
        let client = world.client();
        let owner = owner(&client).await.metadata.uid.unwrap();
        let mut held: WCPCluster = read(made_by("1", &owner));
        held.metadata.finalizers = Some(vec!["example.com/hold".into()]);
        let clusters: Api<WCPCluster> = api(&client);
        clusters.create(&PostParams::default(), &held).await.unwrap();
        clusters.delete("my-tkc", &kube::api::DeleteParams::default()).await.unwrap();
        let executed = execute(&world, None, &[control_plane(Action::Create { object: made_by("1", &owner) })]).await;
        assert_eq!(complaints(&executed), ["create WCPCluster/my-tkc: there is one already, which is being deleted"]);
    });
}
