//! What people do while something is going on.

use k8s_openapi::api::core::v1::{Node, Secret};
use kube::Api;
use kube::api::ListParams;
use serde_json::json;
use windlass_api::kind::cluster_api::{Cluster, Machine, MachineDeployment};
use windlass_api::name::NamespacedName;
use windlass_sim::fault::{Action, Scenario, Span};

use super::{in_world_with, is_available, said};
use crate::management::stage::{OLD, Stage, stage_with};
use crate::workload::grown;
use crate::world::minutes;

const CORE: &str = "cluster.x-k8s.io/v1beta2";

fn delete(api_version: &str, kind: &str, name: &str) -> Action {
    Action::Delete { cluster: None, api_version: api_version.into(), kind: kind.into(), name: name.into() }
}

fn patch(api_version: &str, kind: &str, name: &str, patch: serde_json::Value) -> Action {
    Action::Patch { cluster: None, api_version: api_version.into(), kind: kind.into(), name: name.into(), patch }
}

/// A cluster with a pool, until long after people have done what they do at minute twenty.
fn after<F: Future<Output = ()>>(action: Action, body: impl FnOnce(Stage) -> F) {
    stage_with(Scenario::default().then(Span::minutes(20), action), |stage| async move {
        stage.cluster("c").await;
        stage.control_plane_machine("c", 0).await;
        stage.until("c-control-plane-0", is_available).await;
        stage.pool("c", 2, OLD).await;
        stage.pass(19 * 60 - u64::try_from(stage.elapsed_seconds()).unwrap()).await;
        assert_eq!(stage.machines_of_pool().await.len(), 2);
        stage.pass(15 * 60).await;
        body(stage).await;
    });
}

#[test]
fn people_add_and_remove_members_of_etcd() {
    let cluster: NamespacedName = "default/my-tkc".parse().unwrap();
    let (name, removed) = ("stranger".parse().unwrap(), cluster.clone());
    let scenario = Scenario::default()
        .then(Span::minutes(10), Action::AddMember { cluster, name })
        .then(Span::minutes(20), Action::RemoveMember { cluster: removed, name: "cp-0".into() });
    in_world_with(7, scenario, |world| async move {
        let workload = grown(&world, 3, 0).await;
        let names = || workload.members().unwrap().into_iter().map(|member| member.name).collect::<Vec<_>>();
        minutes(11 - 7).await;
        assert_eq!(names(), ["cp-0", "cp-1", "cp-2", ""], "one that has not started has no name");
        said(&world, "a user adds a member of etcd on stranger: stranger");
        minutes(10).await;
        said(&world, "a user removes the member of etcd on cp-0: cp-0");
        assert_eq!(names(), ["cp-1", "cp-2", ""], "two of three are enough");
    });
}

#[test]
fn people_scale_while_machines_are_made() {
    after(
        patch(CORE, "MachineDeployment", "default/c-workers", json!({"spec": {"replicas": 3}})),
        |stage| async move {
            assert_eq!(stage.machines_of_pool().await.len(), 3);
            said(&stage.world, "a user changes MachineDeployment default/c-workers: MachineDeployment/c-workers");
        },
    );
}

#[test]
fn people_delete_a_machine_that_others_look_after() {
    after(delete(CORE, "Machine", "default/c-workers-*"), |stage| async move {
        assert_eq!(stage.machines_of_pool().await.len(), 2, "there is another one");
        said(&stage.world, "a user deletes Machine default/c-workers-*: Machine/c-workers-");
    });
}

#[test]
fn people_delete_a_whole_cluster_in_the_middle_of_something() {
    after(delete(CORE, "Cluster", "default/c"), |stage| async move {
        assert!(stage.list::<Machine>().await.is_empty() && stage.list::<MachineDeployment>().await.is_empty());
        assert!(stage.list::<Cluster>().await.is_empty());
    });
}

#[test]
fn people_delete_certificates_and_take_away_owners() {
    after(delete("v1", "Secret", "default/c-ca"), |stage| async move {
        let secrets: Api<Secret> = Api::default_namespaced(stage.client());
        assert!(secrets.get_opt("c-ca").await.unwrap().is_none());
        said(&stage.world, "a user deletes Secret default/c-ca: Secret/c-ca");
    });
    let orphaned = patch("v1", "Secret", "default/c-sa", json!({"metadata": {"ownerReferences": null}}));
    after(orphaned, |stage| async move {
        let secret: Secret = stage.get("c-sa").await;
        assert!(secret.metadata.owner_references.unwrap_or_default().is_empty());
    });
}

#[test]
fn people_delete_a_node_in_a_workload_cluster() {
    let action = Action::Delete {
        cluster: Some("default/c".parse().unwrap()),
        api_version: "v1".into(),
        kind: "Node".into(),
        name: "c-workers-*".into(),
    };
    after(action, |stage| async move {
        let nodes: Api<Node> = Api::all(stage.workload("c").client());
        assert_eq!(nodes.list(&ListParams::default()).await.unwrap().items.len(), 2, "one of three is gone");
        said(&stage.world, "a user deletes Node c-workers-*: Node/c-workers-");
    });
}

#[test]
fn what_people_may_not_do_is_refused_and_said() {
    after(delete(CORE, "Machine", "default/nobody"), |stage| async move {
        said(
            &stage.world,
            "a user deletes Machine default/nobody, which is refused: there is no Machine default/nobody",
        );
    });
    let pause = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "left-behind", "namespace": "default"},
    });
    after(Action::Create { cluster: None, object: pause }, |stage| async move {
        said(&stage.world, "a user creates ConfigMap left-behind: ConfigMap/left-behind");
    });
}
