//! Pools of workers: how they roll, grow and shrink, and what is in their way.

use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use windlass_api::kind::bootstrap::KubeadmConfig;
use windlass_api::kind::cluster_api::{Machine, MachineDeployment, MachineSet};
use windlass_api::kind::condition;

use super::stage::{NEW, OLD, Stage, pool_spec, stage};
use super::trace::{Run, check_role, recorded};
use super::{is_available, is_rolled_out};

/// A cluster with a control plane that stands for itself, and a pool that is as it should be.
async fn with_pool(stage: &Stage, replicas: u32) {
    stage.cluster("c").await;
    stage.control_plane_machine("c", 0).await;
    stage.until::<Machine>("c-control-plane-0", is_available).await;
    stage.pool("c", replicas, OLD).await;
    stage.until::<MachineDeployment>("c-workers", is_rolled_out).await;
}

async fn change(stage: &Stage, spec: Value) -> MachineDeployment {
    let api: Api<MachineDeployment> = Api::default_namespaced(stage.client());
    api.patch("c-workers", &PatchParams::default(), &Patch::Merge(json!({ "spec": spec }))).await.unwrap()
}

fn strategy(surge: &Value, unavailable: &Value) -> Value {
    json!({"rollout": {"strategy": {
        "type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable},
    }}})
}

async fn switch(stage: &Stage) {
    stage.templates("c", NEW).await;
    stage.switch_pool("c", NEW).await;
}

/// Rolls the pool, and tells of its machines.
async fn roll(stage: &Stage) -> Run {
    let over = async {
        switch(stage).await;
        stage.until::<MachineDeployment>("c-workers", is_rolled_out).await;
    };
    Run::until(stage, over).await
}

async fn sets(stage: &Stage) -> Vec<MachineSet> {
    Api::<MachineSet>::default_namespaced(stage.client()).list(&ListParams::default()).await.unwrap().items
}

async fn pool_machines(stage: &Stage) -> Vec<Machine> {
    let pool = ListParams::default().labels("cluster.x-k8s.io/deployment-name=c-workers");
    Api::<Machine>::default_namespaced(stage.client()).list(&pool).await.unwrap().items
}

fn said<'a>(deployment: &'a MachineDeployment, type_: &str) -> (&'a str, &'a str, &'a str) {
    let status = deployment.status.as_ref().unwrap();
    let condition = condition(&status.conditions, type_).unwrap();
    (condition.status.as_str(), condition.reason.as_str(), condition.message.as_str())
}

#[test]
fn workers_are_replaced_in_the_order_that_was_recorded_from_cluster_api() {
    for (name, replicas, surge, unavailable) in [
        ("surge 1, unavailable 0, 3+4", 4, 1, 0),
        ("surge 2, unavailable 0, 3+5", 5, 2, 0),
        ("surge 0, unavailable 1, 3+5", 5, 0, 1),
    ] {
        stage(|stage| async move {
            with_pool(&stage, replicas).await;
            change(&stage, strategy(&json!(surge), &json!(unavailable))).await;
            let run = roll(&stage).await;
            check_role(&run, &recorded(name), "worker", surge);
        });
    }
}

#[test]
fn shares_of_a_pool_are_rounded_up_for_a_surge_and_down_for_what_may_be_missing() {
    stage(|stage| async move {
        with_pool(&stage, 5).await;
        // A third of five is one and two thirds: two more, and one fewer.
        change(&stage, strategy(&json!("34%"), &json!("34%"))).await;
        let run = roll(&stage).await;
        assert_eq!(run.peak["worker"], 7);
        let steps = run.of("worker");
        let first = |what: &str| steps.iter().position(|step| step.starts_with(what));
        assert!(first("delete") < first("running"), "one goes at once: {steps:?}");
        let before_running = steps.iter().take_while(|step| !step.starts_with("running"));
        assert_eq!(before_running.filter(|step| step.starts_with("delete")).count(), 1, "and no more: {steps:?}");
    });
}

#[test]
fn a_pool_that_is_asked_to_wait_for_deletions_replaces_what_somebody_deletes() {
    stage(|stage| async move {
        with_pool(&stage, 3).await;
        change(&stage, json!({"rollout": {"strategy": {"type": "OnDelete", "rollingUpdate": null}}})).await;
        switch(&stage).await;
        stage.pass(1800).await;
        let machines = pool_machines(&stage).await;
        assert!(machines.iter().all(|machine| machine.spec.version.as_deref() == Some("v1.16.7+vmware.1")));
        let deployment: MachineDeployment = stage.get("c-workers").await;
        assert_eq!(
            said(&deployment, "RollingOut"),
            (
                "True",
                "RollingOut",
                "Rolling out 3 not up-to-date replicas\n* Version v1.16.7+vmware.1, v1.16.8+vmware.1 required\n\
                 * KubeadmConfigTemplate c-workers-v1167, c-workers-v1168 required\n\
                 * WCPMachineTemplate c-workers-v1167, c-workers-v1168 required",
            )
        );

        stage.delete::<Machine>(&machines[0].name_any()).await;
        stage.pass(1800).await;
        let mut versions: Vec<String> =
            pool_machines(&stage).await.into_iter().filter_map(|machine| machine.spec.version).collect();
        versions.sort();
        assert_eq!(versions, ["v1.16.7+vmware.1", "v1.16.7+vmware.1", "v1.16.8+vmware.1"]);
    });
}

#[test]
fn a_paused_pool_does_not_roll_and_still_grows() {
    stage(|stage| async move {
        with_pool(&stage, 2).await;
        change(&stage, json!({"paused": true})).await;
        switch(&stage).await;
        change(&stage, json!({"replicas": 3})).await;
        stage.pass(1800).await;
        let versions: Vec<String> =
            pool_machines(&stage).await.into_iter().filter_map(|machine| machine.spec.version).collect();
        assert_eq!(versions, ["v1.16.7+vmware.1"; 3]);
        assert_eq!(sets(&stage).await.len(), 1, "no set is made for what nobody rolls out");

        change(&stage, json!({"paused": false})).await;
        stage.until::<MachineDeployment>("c-workers", is_rolled_out).await;
    });
}

#[test]
fn machines_that_are_older_than_asked_for_are_replaced_by_others_like_them() {
    stage(|stage| async move {
        with_pool(&stage, 2).await;
        let before: Vec<String> = stage.machines_of_pool().await;
        let due = stage.now() + jiff::SignedDuration::from_mins(30);
        change(&stage, json!({"rollout": {"after": due.to_string()}})).await;
        stage.pass(1700).await;
        assert_eq!(stage.machines_of_pool().await, before, "not yet");
        stage.pass(200).await;
        let rolls = |deployment: &MachineDeployment| said(deployment, "RollingOut").0 == "True";
        let rolling: MachineDeployment = stage.until("c-workers", rolls).await;
        assert!(said(&rolling, "RollingOut").2.ends_with("* MachineDeployment spec.rolloutAfter expired"));
        stage.until::<MachineDeployment>("c-workers", is_rolled_out).await;
        let after: Vec<String> = stage.machines_of_pool().await;
        assert!(after.iter().all(|name| !before.contains(name)), "{before:?} {after:?}");
        stage.pass(3600).await;
        assert_eq!(stage.machines_of_pool().await, after, "once is enough");
        let revision = |set: &MachineSet| set.annotations()["machinedeployment.clusters.x-k8s.io/revision"].clone();
        assert_eq!(sets(&stage).await.iter().map(revision).collect::<Vec<_>>(), ["2"]);
    });
}

#[test]
fn what_does_not_touch_a_machine_is_handed_on_and_rolls_nothing() {
    stage(|stage| async move {
        with_pool(&stage, 2).await;
        let before: Vec<String> = stage.machines_of_pool().await;
        change(
            &stage,
            json!({
                "deletion": {"order": "Oldest"},
                "template": {
                    "metadata": {"labels": {"tier": "front"}, "annotations": {"note": "kept"}},
                    "spec": {"minReadySeconds": 5, "deletion": {"nodeDrainTimeoutSeconds": 30}},
                },
            }),
        )
        .await;
        stage.pass(600).await;
        assert_eq!(stage.machines_of_pool().await, before);
        let [set] = sets(&stage).await.try_into().unwrap();
        assert_eq!(set.spec.deletion.unwrap().order.as_deref(), Some("Oldest"));
        for machine in pool_machines(&stage).await {
            assert_eq!((machine.labels()["tier"].as_str(), machine.annotations()["note"].as_str()), ("front", "kept"));
            assert_eq!(machine.spec.min_ready_seconds, Some(5));
            assert_eq!(machine.spec.deletion.unwrap().node_drain_timeout_seconds, Some(30));
        }
    });
}

#[test]
fn a_pool_takes_its_machines_along_and_goes_last() {
    stage(|stage| async move {
        with_pool(&stage, 2).await;
        stage.delete::<MachineDeployment>("c-workers").await;
        let going: MachineDeployment =
            stage.until("c-workers", |deployment: &MachineDeployment| said(deployment, "Deleting").0 == "True").await;
        assert!(going.metadata.deletion_timestamp.is_some());
        assert_eq!(stage.machines_of_pool().await.len(), 2, "its machines are still there");
        stage.pass(600).await;
        assert_eq!(stage.machines_of_pool().await, Vec::<String>::new());
        assert_eq!(stage.list::<MachineSet>().await, Vec::<String>::new());
        assert_eq!(stage.list::<MachineDeployment>().await, Vec::<String>::new());
    });
}

#[test]
fn a_pool_without_its_templates_says_what_is_missing() {
    stage(|stage| async move {
        with_pool(&stage, 1).await;
        stage.switch_pool("c", NEW).await;
        stage.pass(600).await;
        let deployment: MachineDeployment = stage.get("c-workers").await;
        let (status, _, message) = said(&deployment, "ScalingUp");
        assert_eq!(
            (status, message),
            ("False", "Scaling up would be blocked because KubeadmConfigTemplate and WCPMachineTemplate do not exist")
        );
        assert_eq!(stage.machines_of_pool().await.len(), 1);
        stage.templates("c", NEW).await;
        stage.until::<MachineDeployment>("c-workers", is_rolled_out).await;
    });
}

#[test]
fn what_people_leave_out_of_pools_and_sets_is_filled_in() {
    stage(|stage| async move {
        stage.cluster("c").await;
        stage.control_plane_machine("c", 0).await;
        stage.until::<Machine>("c-control-plane-0", is_available).await;
        stage.templates("c", OLD).await;
        for (kind, name) in [("MachineDeployment", "plain"), ("MachineSet", "alone")] {
            stage
                .create(json!({
                    "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name},
                    "spec": {"clusterName": "c", "template": {"spec": pool_spec("c", OLD)}},
                }))
                .await;
        }
        let pool: MachineDeployment = stage.until("plain", is_rolled_out).await;
        let (cluster, of_pool) = ("cluster.x-k8s.io/cluster-name", "cluster.x-k8s.io/deployment-name");
        assert_eq!(pool.labels()[cluster], "c");
        let wanted = json!({cluster: "c", of_pool: "plain"});
        assert_eq!(json!(pool.spec.selector.match_labels), wanted);
        assert_eq!(json!(pool.spec.template.metadata.unwrap().labels), wanted);
        assert_eq!(pool.spec.replicas, Some(1));
        assert_eq!(
            json!(pool.spec.rollout.unwrap().strategy),
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}})
        );
        let scale = Api::<MachineDeployment>::default_namespaced(stage.client()).get_scale("plain").await.unwrap();
        assert_eq!(scale.status.unwrap().selector.unwrap(), format!("{cluster}=c,{of_pool}=plain"));
        assert_eq!(pool.metadata.generation, Some(2), "one write fills in all of it");

        let is_there = |set: &MachineSet| set.status.as_ref().is_some_and(|status| status.available_replicas == 1);
        let set: MachineSet = stage.until("alone", is_there).await;
        assert_eq!(set.labels()[cluster], "c");
        let wanted = json!({cluster: "c", "cluster.x-k8s.io/set-name": "alone"});
        assert_eq!(json!(set.spec.selector.match_labels), wanted);
        let selector = set.status.unwrap().selector.unwrap();
        assert_eq!(selector, format!("{cluster}=c,cluster.x-k8s.io/set-name=alone"));
    });
}

#[test]
fn workers_that_wait_for_a_control_plane_say_so() {
    stage(|stage| async move {
        stage.cluster("c").await;
        stage.pool("c", 1, OLD).await;
        stage.pass(120).await;
        let [name] = stage.machines_of_pool().await.try_into().unwrap();
        let waits = "Waiting for Cluster control plane to be initialized";
        let machine: Machine = stage.get(&name).await;
        let conditions = machine.status.unwrap().conditions;
        let bootstrap = condition(&conditions, "BootstrapConfigReady").unwrap();
        assert_eq!((bootstrap.status.as_str(), bootstrap.message.as_str()), ("False", waits));
        let ready = condition(&conditions, "Ready").unwrap();
        assert_eq!(ready.message.lines().next(), Some(format!("* BootstrapConfigReady: {waits}").as_str()));
        let config: KubeadmConfig = stage.get(&name).await;
        let conditions = config.status.unwrap().conditions;
        let secret = condition(&conditions, "DataSecretAvailable").unwrap();
        assert_eq!((secret.status.as_str(), secret.message.as_str()), ("False", waits));

        stage.control_plane_machine("c", 0).await;
        stage.until::<MachineDeployment>("c-workers", is_rolled_out).await;
    });
}
