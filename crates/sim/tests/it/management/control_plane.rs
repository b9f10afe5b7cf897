//! Control planes that Cluster API rolls: made, grown, replaced and taken away, one machine at a time.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use windlass_api::kind::cluster_api::{Cluster, Machine};
use windlass_api::kind::control_plane::KubeadmControlPlane;
use windlass_api::kind::wcp::{WCPCluster, WCPMachine, WCPMachineTemplate};
use windlass_api::kind::{condition, is_true};

use super::stage::{NEW, OLD, Stage, fresh, machine_spec, stage};

pub(super) fn version(version: &str) -> String {
    format!("{version}+vmware.1")
}

pub(super) async fn template(stage: &Stage, version: &str) {
    stage
        .create(json!({
            "apiVersion": "infrastructure.cluster.vmware.com/v1alpha2", "kind": "WCPMachineTemplate",
            "metadata": {"name": format!("c-cp-{}", fresh(version))},
            "spec": {"template": {"spec": machine_spec(version)}},
        }))
        .await;
}

/// Machines of the same version, of another class.
async fn larger_template(stage: &Stage) {
    let mut spec = machine_spec(OLD);
    spec["className"] = "best-effort-large".into();
    stage
        .create(json!({
            "apiVersion": "infrastructure.cluster.vmware.com/v1alpha2", "kind": "WCPMachineTemplate",
            "metadata": {"name": "c-cp-larger"}, "spec": {"template": {"spec": spec}},
        }))
        .await;
}

pub(super) fn machine_template(version: &str) -> Value {
    json!({"spec": {"infrastructureRef": {
        "apiGroup": "infrastructure.cluster.vmware.com", "kind": "WCPMachineTemplate",
        "name": format!("c-cp-{}", fresh(version)),
    }}})
}

/// A cluster as people write it: what refers comes before what is referred to, and nothing is labelled.
pub(super) async fn cluster(stage: &Stage, replicas: u32) {
    cluster_with(stage, replicas, json!({})).await;
}

/// The same, with a rollout that people wrote.
async fn cluster_with(stage: &Stage, replicas: u32, rollout: Value) {
    stage
        .create(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "c"},
            "spec": {
                "infrastructureRef": {"apiGroup": "infrastructure.cluster.vmware.com", "kind": "WCPCluster", "name": "c"},
                "controlPlaneRef": {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": "c-cp"},
                "clusterNetwork": {"services": {"cidrBlocks": ["198.51.100.0/12"]}, "pods": {"cidrBlocks": ["192.0.2.0/16"]}},
            },
        }))
        .await;
    stage
        .create(json!({
            "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlane",
            "metadata": {"name": "c-cp"},
            "spec": {
                "replicas": replicas, "version": version(OLD), "machineTemplate": machine_template(OLD),
                "kubeadmConfigSpec": {"clusterConfiguration": {"imageRepository": "vmware"}, "files": [{"path": "/etc/motd"}]},
                "rollout": rollout,
            },
        }))
        .await;
    stage
        .create(json!({
            "apiVersion": "infrastructure.cluster.vmware.com/v1alpha2", "kind": "WCPCluster",
            "metadata": {"name": "c"}, "spec": {},
        }))
        .await;
    template(stage, OLD).await;
}

pub(super) async fn change(stage: &Stage, spec: Value) {
    let api: Api<KubeadmControlPlane> = Api::default_namespaced(stage.client());
    api.patch("c-cp", &PatchParams::default(), &Patch::Merge(json!({"spec": spec}))).await.unwrap();
}

pub(super) async fn machines(stage: &Stage) -> Vec<Machine> {
    Api::<Machine>::default_namespaced(stage.client()).list(&ListParams::default()).await.unwrap().items
}

/// All are there, as they should be, and well.
pub(super) fn is_at_rest(control_plane: &KubeadmControlPlane) -> bool {
    let wanted = control_plane.spec.replicas.unwrap_or(1);
    control_plane.status.as_ref().is_some_and(|status| {
        status.observed_generation == control_plane.metadata.generation
            && [status.replicas, status.available_replicas, status.up_to_date_replicas] == [wanted; 3]
            && is_true(&status.conditions, "Available")
            && is_true(&status.conditions, "EtcdClusterHealthy")
    })
}

/// What a person who watches sees: how many machines there are at each version, whenever that changes.
struct Observed {
    peaks: usize,
    lows: usize,
    members_max: usize,
    order: Vec<String>,
}

/// Watches until the control plane is at rest.
async fn watch(stage: &Stage) -> Observed {
    let mut seen = Observed { peaks: 0, lows: usize::MAX, members_max: 0, order: Vec::new() };
    let mut known: BTreeMap<String, bool> = BTreeMap::new();
    for _ in 0..7_200 {
        let all = machines(stage).await;
        seen.peaks = seen.peaks.max(all.len());
        seen.lows = seen.lows.min(all.iter().filter(|machine| machine.metadata.deletion_timestamp.is_none()).count());
        if let Ok(members) = stage.workload("c").members() {
            seen.members_max = seen.members_max.max(members.len());
            assert!(members.iter().any(|member| member.leader), "nobody leads");
        }
        let now: BTreeMap<String, bool> =
            all.iter().map(|machine| (machine.name_any(), machine.metadata.deletion_timestamp.is_some())).collect();
        for (name, leaves) in &now {
            match known.get(name) {
                None => seen.order.push(format!("+{name}")),
                Some(before) if before != leaves => seen.order.push(format!("-{name}")),
                Some(_) => {}
            }
        }
        known = now;
        if is_at_rest(&stage.get("c-cp").await) {
            return seen;
        }
        stage.pass(1).await;
    }
    let object: KubeadmControlPlane = stage.get("c-cp").await;
    let machines = machines(stage).await;
    let machines: Vec<_> = machines.iter().map(|machine| (machine.name_any(), &machine.status)).collect();
    panic!("it never came to rest: {:#?}\n{machines:#?}", object.status)
}

#[test]
fn a_control_plane_of_three_comes_up_one_machine_after_the_other() {
    stage(|stage| async move {
        cluster(&stage, 3).await;
        let control_plane: KubeadmControlPlane = stage.until("c-cp", is_at_rest).await;
        let status = control_plane.status.unwrap();
        assert_eq!(status.version, Some(version(OLD)));
        assert_eq!(status.versions.len(), 1);
        assert!(status.initialization.unwrap().control_plane_initialized);
        assert!(!is_true(&status.conditions, "RollingOut") && !is_true(&status.conditions, "ScalingUp"));

        let mut all = machines(&stage).await;
        all.sort_by_key(|machine| machine.metadata.creation_timestamp.as_ref().map(|at| at.0));
        let began: Vec<_> = all.iter().map(|machine| machine.metadata.creation_timestamp.clone().unwrap().0).collect();
        assert!(began.windows(2).all(|pair| pair[1].duration_since(pair[0]).as_secs() > 60), "{began:?}");
        let machine = &all[0];
        assert!(machine.name_any().starts_with("c-cp-") && machine.name_any().len() == "c-cp-".len() + 5);
        assert_eq!(machine.labels()["cluster.x-k8s.io/control-plane-name"], "c-cp");
        let conditions = &machine.status.as_ref().unwrap().conditions;
        for type_ in ["APIServerPodHealthy", "EtcdMemberHealthy", "UpToDate"] {
            assert!(is_true(conditions, type_), "{type_}: {conditions:?}");
        }
        assert_eq!(stage.workload("c").members().unwrap().len(), 3);
        assert_eq!(stage.nodes("c").await.len(), 3);

        // The Cluster sums it up a second later.
        stage.pass(2).await;
        let cluster: Cluster = stage.get("c").await;
        let progress = cluster.status.unwrap().control_plane.unwrap();
        assert_eq!((progress.desired_replicas, progress.available_replicas), (Some(3), Some(3)));
        for secret in ["ca", "etcd", "proxy", "sa", "kubeconfig"] {
            let secret: Secret = stage.get(&format!("c-{secret}")).await;
            let owner = &secret.metadata.owner_references.unwrap()[0];
            assert_eq!((owner.kind.as_str(), owner.controller), ("KubeadmControlPlane", Some(true)));
        }
    });
}

#[test]
fn a_new_version_replaces_the_machines_one_by_one_the_oldest_first() {
    stage(|stage| async move {
        cluster(&stage, 3).await;
        stage.until::<KubeadmControlPlane>("c-cp", is_at_rest).await;
        let mut old = machines(&stage).await;
        old.sort_by_key(|machine| machine.metadata.creation_timestamp.as_ref().map(|at| at.0));
        let old: Vec<String> = old.iter().map(ResourceExt::name_any).collect();

        template(&stage, NEW).await;
        change(&stage, json!({"version": version(NEW), "machineTemplate": machine_template(NEW)})).await;
        stage
            .until::<KubeadmControlPlane>("c-cp", |object| {
                object.status.as_ref().is_some_and(|status| is_true(&status.conditions, "RollingOut"))
            })
            .await;
        let seen = watch(&stage).await;

        assert_eq!((seen.peaks, seen.lows, seen.members_max), (4, 3, 4), "{:?}", seen.order);
        let gone: Vec<&str> = seen.order.iter().filter_map(|step| step.strip_prefix('-')).collect();
        assert_eq!(gone, old, "the oldest goes first");
        let all = machines(&stage).await;
        assert!(all.iter().all(|machine| machine.spec.version == Some(version(NEW))));
        assert_eq!(stage.workload("c").members().unwrap().len(), 3);
        assert_eq!(stage.nodes("c").await.len(), 3);
        let maps = Api::<ConfigMap>::namespaced(stage.workload("c").client(), "kube-system");
        let config = maps.get("kubeadm-config").await.unwrap().data.unwrap();
        assert!(config["ClusterConfiguration"].contains(&version(NEW)), "{config:?}");
        // Cluster API is content with a machine whose components run; that its node is ready, too, is our own demand.
        let violations = stage.world.recorder().violations();
        let of_etcd: Vec<_> = violations.iter().filter(|violation| violation.id.starts_with('E')).collect();
        assert!(of_etcd.is_empty(), "{of_etcd:#?}");

        let control_plane: KubeadmControlPlane = stage.get("c-cp").await;
        stage.pass(600).await;
        let later: KubeadmControlPlane = stage.get("c-cp").await;
        assert_eq!(control_plane.metadata.resource_version, later.metadata.resource_version, "it rests");
    });
}

#[test]
fn a_control_plane_goes_with_its_cluster_and_leaves_nothing() {
    stage(|stage| async move {
        cluster(&stage, 3).await;
        stage.until::<KubeadmControlPlane>("c-cp", is_at_rest).await;
        stage.delete::<Cluster>("c").await;
        stage.pass(300).await;
        assert!(stage.list::<Cluster>().await.is_empty());
        assert!(stage.list::<KubeadmControlPlane>().await.is_empty());
        assert!(machines(&stage).await.is_empty());
        assert!(stage.list::<WCPMachine>().await.is_empty() && stage.list::<WCPCluster>().await.is_empty());
        assert!(stage.list::<Secret>().await.is_empty(), "{:?}", stage.list::<Secret>().await);
    });
}

#[test]
fn what_is_not_ready_yet_is_said() {
    stage(|stage| async move {
        cluster(&stage, 3).await;
        let growing: KubeadmControlPlane = stage
            .until("c-cp", |object: &KubeadmControlPlane| {
                object.status.as_ref().is_some_and(|status| status.replicas == 2)
            })
            .await;
        let conditions = growing.status.unwrap().conditions;
        let scaling = condition(&conditions, "ScalingUp").unwrap();
        assert_eq!((scaling.status.as_str(), scaling.reason.as_str()), ("True", "ScalingUp"));
        assert!(scaling.message.contains("from 2 to 3 replicas is blocked"), "{}", scaling.message);
        assert!(scaling.message.contains("does not have a corresponding Node yet"), "{}", scaling.message);
    });
}

/// The names of the machines, the oldest first.
async fn names(stage: &Stage) -> Vec<String> {
    let mut all = machines(stage).await;
    all.sort_by_key(|machine| machine.metadata.creation_timestamp.as_ref().map(|at| at.0));
    all.iter().map(ResourceExt::name_any).collect()
}

fn leader(stage: &Stage) -> String {
    stage.workload("c").members().unwrap().into_iter().find(|member| member.leader).unwrap().name
}

/// What changes when a part of the control plane does: all machines are replaced, or none.
async fn rolls(stage: &Stage, spec: Value) -> bool {
    let before = names(stage).await;
    change(stage, spec).await;
    stage.pass(5).await;
    watch(stage).await;
    let after = names(stage).await;
    let kept = after.iter().filter(|name| before.contains(name)).count();
    assert!(kept == 0 || after == before, "{before:?} became {after:?}");
    kept == 0
}

#[test]
fn whatever_machines_are_made_from_replaces_them_and_what_they_can_take_over_does_not() {
    stage(|stage| async move {
        cluster(&stage, 1).await;
        stage.until::<KubeadmControlPlane>("c-cp", is_at_rest).await;
        larger_template(&stage).await;
        for (spec, expected) in [
            (json!({"kubeadmConfigSpec": {"files": [{"path": "/etc/issue"}]}}), true),
            (json!({"kubeadmConfigSpec": {"clusterConfiguration": {"dns": {"imageTag": "v1.6.5"}}}}), false),
            (json!({"machineTemplate": {"spec": {"infrastructureRef": {"name": "c-cp-larger"}}}}), true),
            (json!({"machineTemplate": {"metadata": {"labels": {"team": "a"}}}}), false),
            (json!({"machineTemplate": {"spec": {"deletion": {"nodeDrainTimeoutSeconds": 60}}}}), false),
            (json!({"rollout": {"after": "2026-01-01T00:00:00Z"}}), false),
            (json!({"rollout": {"after": "2026-01-01T01:00:00Z"}}), false),
        ] {
            assert_eq!(rolls(&stage, spec.clone()).await, expected, "{spec}");
        }
        let machine = &machines(&stage).await[0];
        assert_eq!(machine.labels()["team"], "a");
        assert_eq!(machine.spec.deletion.as_ref().unwrap().node_drain_timeout_seconds, Some(60));
        // Nothing changes at one o'clock but the time.
        let before = names(&stage).await;
        stage.pass(3600).await;
        stage.until::<KubeadmControlPlane>("c-cp", is_at_rest).await;
        assert!(names(&stage).await.iter().all(|name| !before.contains(name)), "rollout.after has passed");
    });
}

#[test]
fn a_control_plane_without_its_template_says_what_is_missing() {
    stage(|stage| async move {
        cluster(&stage, 3).await;
        let name = format!("c-cp-{}", fresh(OLD));
        stage.delete::<WCPMachineTemplate>(&name).await;
        stage.pass(120).await;
        let said = async || {
            let control_plane: KubeadmControlPlane = stage.get("c-cp").await;
            let status = control_plane.status.unwrap();
            condition(&status.conditions, "ScalingUp").unwrap().message.clone()
        };
        let message = "Scaling up from 0 to 3 replicas is blocked because:\n* WCPMachineTemplate does not exist";
        assert_eq!(said().await, message);
        template(&stage, OLD).await;
        stage.until::<KubeadmControlPlane>("c-cp", is_at_rest).await;
        assert_eq!(said().await, "");

        stage.delete::<WCPMachineTemplate>(&name).await;
        change(&stage, json!({"machineTemplate": {"metadata": {"labels": {"a": "b"}}}})).await;
        stage.pass(120).await;
        assert_eq!(said().await, "Scaling up would be blocked because WCPMachineTemplate does not exist");
    });
}

#[test]
fn without_a_surge_a_machine_goes_before_its_replacement_comes() {
    stage(|stage| async move {
        let none = json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0}}});
        cluster_with(&stage, 3, none).await;
        stage.until::<KubeadmControlPlane>("c-cp", is_at_rest).await;
        template(&stage, NEW).await;
        change(&stage, json!({"version": version(NEW), "machineTemplate": machine_template(NEW)})).await;
        stage.pass(5).await;
        let seen = watch(&stage).await;
        assert_eq!((seen.peaks, seen.lows, seen.members_max), (3, 2, 3), "{:?}", seen.order);
        assert_eq!(stage.workload("c").members().unwrap().len(), 3);
    });
}

#[test]
fn fewer_machines_are_asked_for_and_the_oldest_go_with_their_members_one_by_one() {
    stage(|stage| async move {
        cluster(&stage, 3).await;
        stage.until::<KubeadmControlPlane>("c-cp", is_at_rest).await;
        let all = names(&stage).await;
        assert_eq!(leader(&stage), all[0], "the first one leads");
        change(&stage, json!({"replicas": 1})).await;
        stage.pass(5).await;
        assert_eq!(leader(&stage), all[2], "leadership has moved to the newest before the first one goes");
        let seen = watch(&stage).await;
        assert_eq!(names(&stage).await, [all[2].clone()], "{:?}", seen.order);
        let members = stage.workload("c").members().unwrap();
        assert!(members.len() == 1 && members[0].name == all[2], "{members:?}");
    });
}

#[test]
fn a_machine_that_is_marked_goes_first() {
    stage(|stage| async move {
        cluster(&stage, 3).await;
        stage.until::<KubeadmControlPlane>("c-cp", is_at_rest).await;
        let all = names(&stage).await;
        let mark = json!({"metadata": {"annotations": {"cluster.x-k8s.io/delete-machine": ""}}});
        let api: Api<Machine> = Api::default_namespaced(stage.client());
        api.patch(&all[1], &PatchParams::default(), &Patch::Merge(mark)).await.unwrap();
        change(&stage, json!({"replicas": 1})).await;
        stage.pass(5).await;
        let leaving =
            machines(&stage).await.into_iter().filter(|machine| machine.metadata.deletion_timestamp.is_some());
        assert_eq!(leaving.map(|machine| machine.name_any()).collect::<Vec<_>>(), [all[1].clone()]);
        watch(&stage).await;
        assert_eq!(names(&stage).await, [all[2].clone()]);
    });
}

/// What a health check says of a machine that something is wrong with.
async fn condemn(stage: &Stage, name: &str) {
    let machine: Machine = stage.get(name).await;
    let mut conditions = serde_json::to_value(machine.status.unwrap().conditions).unwrap();
    for type_ in ["HealthCheckSucceeded", "OwnerRemediated"] {
        let said = json!({"type": type_, "status": "False", "reason": "WaitingForRemediation", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"});
        conditions.as_array_mut().unwrap().push(said);
    }
    let api: Api<Machine> = Api::default_namespaced(stage.client());
    let patch = Patch::Merge(json!({"status": {"conditions": conditions}}));
    api.patch_status(name, &PatchParams::default(), &patch).await.unwrap();
}

#[test]
fn a_machine_that_something_is_wrong_with_is_replaced_and_its_member_is_counted_out() {
    stage(|stage| async move {
        cluster(&stage, 3).await;
        stage.until::<KubeadmControlPlane>("c-cp", is_at_rest).await;
        let all = names(&stage).await;
        stage.workload("c").power_off(&all[1].parse().unwrap());
        stage.pass(60).await;
        condemn(&stage, &all[1]).await;
        stage.pass(5).await;
        let seen = watch(&stage).await;
        let after = names(&stage).await;
        assert!(after.len() == 3 && !after.contains(&all[1]), "{:?}", seen.order);
        let members = stage.workload("c").members().unwrap();
        assert!(members.len() == 3 && members.iter().all(|member| member.healthy), "{members:?}");
        let control_plane: KubeadmControlPlane = stage.get("c-cp").await;
        assert_eq!(control_plane.status.as_ref().unwrap().last_remediation.as_ref().unwrap().machine, all[1]);
        let replacement: Machine = stage.get(&after[2]).await;
        assert!(replacement.annotations()["controlplane.cluster.x-k8s.io/remediation-for"].contains(&all[1]));
        assert!(!control_plane.annotations().contains_key("controlplane.cluster.x-k8s.io/remediation-in-progress"));
    });
}

#[test]
fn no_machine_is_replaced_whose_loss_would_cost_the_quorum() {
    stage(|stage| async move {
        cluster(&stage, 3).await;
        stage.until::<KubeadmControlPlane>("c-cp", is_at_rest).await;
        let all = names(&stage).await;
        stage.workload("c").power_off(&all[1].parse().unwrap());
        stage.pass(60).await;
        // Two of three answer, and one of them is condemned: of the two that were left one would answer.
        condemn(&stage, &all[2]).await;
        stage.pass(600).await;
        assert_eq!(names(&stage).await, all);
        let machine: Machine = stage.get(&all[2]).await;
        let conditions = machine.status.unwrap().conditions;
        let said = condition(&conditions, "OwnerRemediated").unwrap();
        assert_eq!(said.reason, "CannotBeRemediated");
        assert!(said.message.contains("loosing quorum"), "{}", said.message);
    });
}

#[test]
fn machines_that_stood_for_themselves_are_taken_over_with_their_certificates() {
    stage(|stage| async move {
        stage.cluster_without_certificates("c").await;
        for ordinal in 0..3 {
            stage.control_plane_machine("c", ordinal).await;
            let name = format!("c-control-plane-{ordinal}");
            stage
                .until::<Machine>(&name, |machine| {
                    machine.status.as_ref().is_some_and(|status| status.node_ref.is_some())
                })
                .await;
        }
        let before = names(&stage).await;
        template(&stage, OLD).await;
        stage
            .create(json!({
                "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlane",
                "metadata": {"name": "c-cp"},
                "spec": {
                    "replicas": 3, "version": version(OLD), "machineTemplate": machine_template(OLD),
                    "kubeadmConfigSpec": {
                        "clusterConfiguration": {"imageRepository": "vmware"},
                        "joinConfiguration": {"nodeRegistration": {"kubeletExtraArgs": [{"name": "node-labels", "value": "a=b"}]}},
                        "initConfiguration": {
                            "nodeRegistration": {"kubeletExtraArgs": [{"name": "node-labels", "value": "a=b"}]},
                            "skipPhases": ["addon/kube-proxy"],
                        },
                    },
                },
            }))
            .await;
        let api: Api<Cluster> = Api::default_namespaced(stage.client());
        let reference =
            json!({"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": "c-cp"});
        let patch = Patch::Merge(json!({"spec": {"controlPlaneRef": reference}}));
        api.patch("c", &PatchParams::default(), &patch).await.unwrap();
        stage.pass(5).await;
        for machine in machines(&stage).await {
            let owner = &machine.metadata.owner_references.as_ref().unwrap()[0];
            assert_eq!((owner.kind.as_str(), owner.controller), ("KubeadmControlPlane", Some(true)));
            let holds = machine.annotations().keys().filter(|key| key.ends_with("/kcp-cleanup")).count();
            assert_eq!(holds, 1, "{:?}", machine.annotations());
        }
        assert!(before.iter().all(|name| name.starts_with("c-control-plane-")));
        let authority: Secret = stage.get("c-ca").await;
        assert_eq!(authority.metadata.owner_references.unwrap()[0].kind, "KubeadmControlPlane");
        let data: Secret = stage.get("c-control-plane-0").await;
        assert_eq!(data.metadata.owner_references.unwrap()[0].kind, "KubeadmConfig", "it goes with the machine");
    });
}
