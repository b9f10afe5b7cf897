//! How Machines go: hooks, pods, volumes, time-outs, and the pause that stops all of it.

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use windlass_api::kind::cluster_api::{Machine, MachineDeployment};
use windlass_api::kind::wcp::WCPMachine;
use windlass_api::kind::{Condition, condition};
use windlass_api::name::NodeName;

use super::stage::{OLD, Stage, stage};
use super::{is_available, is_rolled_out};

/// A cluster with a control plane of one and a pool of so many; the names of the pool's machines.
pub async fn grown(stage: &Stage, workers: u32) -> Vec<String> {
    stage.cluster("c").await;
    stage.control_plane_machine("c", 0).await;
    stage.until::<Machine>("c-control-plane-0", is_available).await;
    stage.pool("c", workers, OLD).await;
    stage.until::<MachineDeployment>("c-workers", is_rolled_out).await;
    stage.machines_of_pool().await
}

/// Puts an object into a workload cluster.
pub async fn put(client: &Client, object: Value) {
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    let kind = ApiResource::from_gvk(&GroupVersionKind::try_from(object.types.as_ref().unwrap()).unwrap());
    let api: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &kind);
    api.create(&PostParams::default(), &object).await.unwrap();
}

/// A pod on a node, which takes so long to end.
pub fn pod(name: &str, node: &str, ends_after: u32) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "nodeName": node, "terminationGracePeriodSeconds": 120,
            "containers": [{
                "name": "c", "image": "nginx:1", "lifecycle": {"preStop": {"exec": {"command": ["sleep", ends_after.to_string()]}}},
            }],
        },
    })
}

pub fn budget(app: &str, least: u32) -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": app},
        "spec": {"minAvailable": least, "selector": {"matchLabels": {"app": app}}},
    })
}

async fn pods(client: &Client) -> Vec<String> {
    let all = Api::<Pod>::default_namespaced(client.clone()).list(&ListParams::default()).await.unwrap();
    all.items.iter().map(ResourceExt::name_any).collect()
}

/// Why a Machine goes no further, and the words for it.
pub async fn deleting(stage: &Stage, machine: &str) -> (String, String) {
    let machine: Machine = stage.get(machine).await;
    let found = condition(&machine.status.as_ref().unwrap().conditions, "Deleting").unwrap().clone();
    (found.reason, found.message)
}

/// Whether the machine of that name is another one by now, or none.
async fn is_gone(stage: &Stage, machine: &Machine) -> bool {
    let found = Api::<Machine>::default_namespaced(stage.client()).get_opt(&machine.name_any()).await.unwrap();
    found.is_none_or(|found| found.uid() != machine.uid())
}

/// Says how long machines of the pool may take to go.
async fn give_time(stage: &Stage, limits: Value) {
    let api: Api<MachineDeployment> = Api::default_namespaced(stage.client());
    let patch = Patch::Merge(json!({"spec": {"template": {"spec": {"deletion": limits}}}}));
    api.patch("c-workers", &PatchParams::default(), &patch).await.unwrap();
}

async fn patch_machine(stage: &Stage, name: &str, patch: Value) {
    let api: Api<Machine> = Api::default_namespaced(stage.client());
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

#[test]
fn a_machine_that_goes_waits_for_the_budgets_of_its_pods() {
    stage(|stage| async move {
        let [name] = grown(&stage, 1).await.try_into().unwrap();
        let client = stage.workload("c").client();
        put(&client, pod("web", &name, 0)).await;
        put(&client, budget("web", 1)).await;
        stage.pass(60).await;
        let before: Machine = stage.get(&name).await;
        stage.delete::<Machine>(&name).await;
        stage.pass(300).await;

        let (reason, message) = deleting(&stage, &name).await;
        assert_eq!(reason, "DrainingNode");
        let said = "* Pod default/web: cannot evict pod as it would violate the pod's disruption budget. The disruption \
                    budget web needs 1 healthy pods and has 1 currently";
        assert_eq!(message.lines().nth(1), Some(said), "{message}");
        let node = Api::<Node>::all(client.clone()).get(&name).await.unwrap();
        assert_eq!(node.spec.unwrap().unschedulable, Some(true), "nothing new comes to it");
        assert_eq!(pods(&client).await, ["web"]);
        let ready = stage.get::<Machine>(&name).await.status.unwrap().conditions;
        let ready = condition(&ready, "Ready").unwrap().message.clone();
        assert_eq!(ready, "* Deleting: Machine deletion in progress, stage: DrainingNode");
        let requests = stage.requests();
        stage.pass(15).await;
        assert_eq!(stage.requests(), requests, "it is looked every 20 seconds, and said when it changes");

        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("policy", "v1", "PodDisruptionBudget"));
        let budgets: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &kind);
        let free = Patch::Merge(json!({"spec": {"minAvailable": 0}}));
        budgets.patch("web", &PatchParams::default(), &free).await.unwrap();
        stage.pass(90).await;
        assert!(is_gone(&stage, &before).await);
        assert_eq!(pods(&client).await, Vec::<String>::new());
    });
}

#[test]
fn pods_leave_in_the_order_of_the_rules_and_some_stay() {
    stage(|stage| async move {
        let [name] = grown(&stage, 1).await.try_into().unwrap();
        let client = stage.workload("c").client();
        for (app, ends_after) in [("first", 25), ("second", 0), ("waits", 0), ("stays", 0)] {
            put(&client, pod(app, &name, ends_after)).await;
        }
        for (app, behavior, order) in [("first", "Drain", -5), ("stays", "Skip", 0), ("waits", "WaitCompleted", 5)] {
            let mut drain = json!({"behavior": behavior});
            if behavior != "Skip" {
                drain["order"] = order.into();
            }
            stage
                .create(json!({
                    "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDrainRule", "metadata": {"name": app},
                    "spec": {"drain": drain, "pods": [{"selector": {"matchLabels": {"app": app}}}]},
                }))
                .await;
        }
        stage.pass(60).await;
        stage.delete::<Machine>(&name).await;
        stage.pass(5).await;
        let (_, message) = deleting(&stage, &name).await;
        let after = "After above Pods have been removed from the Node,";
        assert_eq!(
            message.lines().skip(1).collect::<Vec<_>>(),
            [
                "* Pod default/first: deletionTimestamp set, but still not removed from the Node",
                &format!("{after} the following Pods will be evicted: default/second"),
                &format!("{after} waiting for the following Pods to complete without eviction: default/waits"),
            ]
        );
        stage.pass(60).await;
        let (_, message) = deleting(&stage, &name).await;
        assert_eq!(message.lines().nth(1), Some("* Pod default/waits: waiting for completion"), "{message}");
        assert_eq!(pods(&client).await, ["stays", "waits"]);

        // Its kubelet says that it has ended.
        let done = Patch::Merge(json!({"status": {"phase": "Succeeded"}}));
        let api: Api<Pod> = Api::default_namespaced(client.clone());
        api.patch_status("waits", &PatchParams::default(), &done).await.unwrap();
        stage.pass(25).await;
        assert_eq!(deleting(&stage, &name).await.0, "WaitingForInfrastructureDeletion");
        assert_eq!(pods(&client).await, ["stays", "waits"], "nobody has evicted them");
    });
}

#[test]
fn a_drain_that_takes_too_long_is_given_up() {
    stage(|stage| async move {
        let [name] = grown(&stage, 1).await.try_into().unwrap();
        let client = stage.workload("c").client();
        put(&client, pod("web", &name, 0)).await;
        put(&client, budget("web", 1)).await;
        give_time(&stage, json!({"nodeDrainTimeoutSeconds": 60})).await;
        stage.pass(60).await;
        stage.delete::<Machine>(&name).await;
        stage.pass(55).await;
        assert_eq!(deleting(&stage, &name).await.0, "DrainingNode");
        stage.pass(10).await;
        assert_eq!(
            deleting(&stage, &name).await,
            ("WaitingForInfrastructureDeletion".to_owned(), "Waiting for WCPMachine to be deleted".to_owned())
        );
        assert_eq!(pods(&client).await, ["web"], "nobody was forced out");
    });
}

#[test]
fn a_drain_that_has_begun_is_given_up_when_the_pool_is_given_a_time_out() {
    stage(|stage| async move {
        let [name] = grown(&stage, 1).await.try_into().unwrap();
        let client = stage.workload("c").client();
        put(&client, pod("web", &name, 0)).await;
        put(&client, budget("web", 1)).await;
        stage.pass(60).await;
        stage.delete::<Machine>(&name).await;
        stage.pass(300).await;
        give_time(&stage, json!({"nodeDrainTimeoutSeconds": 3600, "nodeDeletionTimeoutSeconds": 20})).await;
        stage.pass(30).await;
        let given = stage.get::<Machine>(&name).await.spec.deletion.unwrap();
        assert_eq!((given.node_drain_timeout_seconds, given.node_deletion_timeout_seconds), (Some(3600), Some(20)));
        assert_eq!(deleting(&stage, &name).await.0, "DrainingNode");

        give_time(&stage, json!(null)).await;
        stage.pass(30).await;
        assert_eq!(stage.get::<Machine>(&name).await.spec.deletion, None, "it may take as long as it likes again");
        assert_eq!(deleting(&stage, &name).await.0, "DrainingNode");

        give_time(&stage, json!({"nodeDrainTimeoutSeconds": 60})).await;
        stage.pass(1).await;
        assert_eq!(deleting(&stage, &name).await.0, "WaitingForInfrastructureDeletion");
    });
}

#[test]
fn hooks_hold_a_machine_before_its_pods_leave_and_before_it_is_switched_off() {
    stage(|stage| async move {
        let [name] = grown(&stage, 1).await.try_into().unwrap();
        let client = stage.workload("c").client();
        put(&client, pod("web", &name, 0)).await;
        let drain = "pre-drain.delete.hook.machine.cluster.x-k8s.io";
        let terminate = "pre-terminate.delete.hook.machine.cluster.x-k8s.io";
        let hooks = json!({format!("{drain}/b"): "", format!("{drain}/a"): "", format!("{terminate}/c"): ""});
        patch_machine(&stage, &name, json!({"metadata": {"annotations": hooks}})).await;
        stage.pass(60).await;
        stage.delete::<Machine>(&name).await;
        stage.pass(300).await;
        let held = format!("Waiting for pre-drain hooks to succeed (hooks: {drain}/a,{drain}/b)");
        assert_eq!(deleting(&stage, &name).await, ("WaitingForPreDrainHook".to_owned(), held));
        assert_eq!(pods(&client).await, ["web"]);

        let gone = json!({format!("{drain}/b"): null, format!("{drain}/a"): null});
        patch_machine(&stage, &name, json!({"metadata": {"annotations": gone}})).await;
        stage.pass(60).await;
        let held = format!("Waiting for pre-terminate hooks to succeed (hooks: {terminate}/c)");
        assert_eq!(deleting(&stage, &name).await, ("WaitingForPreTerminateHook".to_owned(), held));
        assert_eq!(pods(&client).await, Vec::<String>::new());
        put(&client, pod("late", &name, 0)).await;
        stage.pass(60).await;
        assert_eq!(pods(&client).await, ["late"], "once it is drained it is not drained again");
        let infrastructure: WCPMachine = stage.get(&name).await;
        assert!(infrastructure.metadata.deletion_timestamp.is_none());
        let since = stage.get::<Machine>(&name).await.status.unwrap().deletion.unwrap();
        assert!(since.wait_for_pre_drain_hook_start_time < since.node_drain_start_time, "{since:?}");
        assert!(since.node_drain_start_time < since.wait_for_pre_terminate_hook_start_time, "{since:?}");

        patch_machine(&stage, &name, json!({"metadata": {"annotations": {format!("{terminate}/c"): null}}})).await;
        stage.pass(1).await;
        assert_eq!(deleting(&stage, &name).await.0, "WaitingForInfrastructureDeletion");
    });
}

#[test]
fn a_machine_waits_until_its_volumes_are_detached() {
    stage(|stage| async move {
        let [name] = grown(&stage, 1).await.try_into().unwrap();
        let client = stage.workload("c").client();
        put(
            &client,
            json!({
                "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            }),
        )
        .await;
        let mut db = pod("db", &name, 17);
        db["spec"]["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
        put(&client, db).await;
        stage.pass(60).await;
        let attachments: Api<VolumeAttachment> = Api::all(client.clone());
        let attached = attachments.list(&ListParams::default()).await.unwrap().items;
        assert_eq!(attached.iter().map(|it| it.spec.node_name.as_str()).collect::<Vec<_>>(), [name.as_str()]);

        stage.delete::<Machine>(&name).await;
        stage.pass(21).await;
        let (reason, message) = deleting(&stage, &name).await;
        assert_eq!(reason, "WaitingForVolumeDetach", "{message}");
        assert_eq!(message.lines().nth(1), Some("* PersistentVolumeClaims: default/data"), "{message}");
        stage.pass(20).await;
        assert_eq!(deleting(&stage, &name).await.0, "WaitingForInfrastructureDeletion");
        assert_eq!(attachments.list(&ListParams::default()).await.unwrap().items, []);
    });
}

#[test]
fn the_pods_of_a_machine_that_is_off_are_not_waited_for() {
    stage(|stage| async move {
        let [name] = grown(&stage, 1).await.try_into().unwrap();
        let client = stage.workload("c").client();
        put(&client, pod("web", &name, 60)).await;
        stage.pass(60).await;
        stage.workload("c").power_off(&NodeName::new(&name).unwrap());
        stage.pass(60).await;
        let machine: Machine = stage.get(&name).await;
        let conditions = &machine.status.as_ref().unwrap().conditions;
        let healthy = condition(conditions, "NodeHealthy").unwrap();
        assert_eq!((healthy.status.as_str(), healthy.reason.as_str()), ("Unknown", "NodeHealthUnknown"));
        assert!(!is_available(&machine));

        stage.delete::<Machine>(&name).await;
        stage.pass(15).await;
        assert_eq!(deleting(&stage, &name).await.0, "DrainingNode");
        assert_eq!(pods(&client).await, ["web"], "nobody can tell whether it has ended");
        stage.pass(10).await;
        let (reason, message) = deleting(&stage, &name).await;
        assert_eq!(reason, "WaitingForInfrastructureDeletion", "{message}");
        stage.pass(60).await;
        assert!(is_gone(&stage, &machine).await);
        assert_eq!(pods(&client).await, Vec::<String>::new(), "with its node");
    });
}

#[test]
fn without_an_api_a_machine_goes_only_when_it_may_stop_waiting() {
    stage(|stage| async move {
        let [first, second] = grown(&stage, 2).await.try_into().unwrap();
        let [first, second] = [stage.get::<Machine>(&first).await, stage.get::<Machine>(&second).await];
        stage.workload("c").power_off(&NodeName::new("c-control-plane-0").unwrap());
        stage.delete::<Machine>(&first.name_any()).await;
        stage.delete::<Machine>(&second.name_any()).await;
        stage.pass(600).await;
        let message = "Error draining Node, please check controller logs for errors".to_owned();
        for machine in [&first, &second] {
            assert_eq!(deleting(&stage, &machine.name_any()).await, ("DrainingNode".to_owned(), message.clone()));
        }
        give_time(&stage, json!({"nodeDrainTimeoutSeconds": 30, "nodeVolumeDetachTimeoutSeconds": 30})).await;
        stage.pass(600).await;
        assert!(is_gone(&stage, &first).await && is_gone(&stage, &second).await, "their nodes are left behind");
        let nodes = stage.workload("c").server().store().count("nodes");
        assert_eq!(nodes, 3);
    });
}

#[test]
fn everything_in_a_paused_cluster_says_so_and_for_which_generation() {
    stage(|stage| async move {
        let [name] = grown(&stage, 1).await.try_into().unwrap();
        let before: Machine = stage.get(&name).await;
        assert_eq!(paused(&stage).await, [("False", 10)], "all of them have said that they are not");
        stage.pause("c", true).await;
        stage.pass(1).await;
        assert_eq!(paused(&stage).await, [("True", 10)]);
        stage.delete::<Machine>(&name).await;
        stage.pass(600).await;
        assert!(!is_gone(&stage, &before).await);
        let machine: Machine = stage.get(&name).await;
        assert_eq!(machine.status.unwrap().phase.as_deref(), Some("Running"), "nobody has touched it");

        stage.pause("c", false).await;
        stage.pass(120).await;
        assert!(is_gone(&stage, &before).await);
        stage.until::<MachineDeployment>("c-workers", is_rolled_out).await;
        assert_eq!(paused(&stage).await, [("False", 10)]);
    });
}

/// How many objects of Cluster API say what about their pause, for the generation that they have.
async fn paused(stage: &Stage) -> Vec<(&'static str, usize)> {
    let mut said: Vec<(&'static str, usize)> = Vec::new();
    for (group, version, kind) in [
        ("cluster.x-k8s.io", "v1beta2", "Cluster"),
        ("cluster.x-k8s.io", "v1beta2", "Machine"),
        ("cluster.x-k8s.io", "v1beta2", "MachineSet"),
        ("cluster.x-k8s.io", "v1beta2", "MachineDeployment"),
        ("bootstrap.cluster.x-k8s.io", "v1beta2", "KubeadmConfig"),
        ("infrastructure.cluster.vmware.com", "v1alpha2", "WCPCluster"),
        ("infrastructure.cluster.vmware.com", "v1alpha2", "WCPMachine"),
    ] {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let api: Api<DynamicObject> = Api::default_namespaced_with(stage.client(), &kind);
        for object in api.list(&ListParams::default()).await.unwrap().items {
            let conditions = object.data["status"]["conditions"].clone();
            let conditions: Vec<Condition> = serde_json::from_value(conditions).unwrap_or_default();
            let found =
                condition(&conditions, "Paused").unwrap_or_else(|| panic!("{} {}", kind.kind, object.name_any()));
            // What lets go of an object says so for the generation that it has seen; what has not may not have seen the last.
            let holds = found.status == "True";
            assert!(!holds || found.observed_generation == object.metadata.generation, "{} {found:?}", kind.kind);
            let word = if holds { "True" } else { "False" };
            match said.iter_mut().find(|(known, _)| *known == word) {
                Some((_, count)) => *count += 1,
                None => said.push((word, 1)),
            }
        }
    }
    said
}
