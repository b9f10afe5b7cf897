//! What has come, what is awaited, and when waiting will not help.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::creation::{Course, End, Observed, Thing, awaited};

/// A cluster of two machines in some state of its creation: everything up to and including a step is there.
fn at(step: usize) -> Observed {
    let reached = |wanted: usize| step >= wanted;
    let count = |wanted: usize| u32::from(reached(wanted));
    let cluster = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": "wl", "labels": {"run.tanzu.vmware.com/tkr": "v1.24.9---vmware.1-tkg.1"}},
        "spec": {"infrastructureRef": {"apiGroup": "x", "kind": "y", "name": "z"}, "topology": {"classRef": {"name": "small"}, "version": "v1.24.9", "controlPlane": {"replicas": 1},
            "workers": {"machineDeployments": [{"class": "w", "name": "md-0", "replicas": 1}]}}},
        "status": {
            "initialization": {"infrastructureProvisioned": reached(1), "controlPlaneInitialized": reached(2)},
            "controlPlane": {"desiredReplicas": 1, "readyReplicas": count(3), "upToDateReplicas": count(2)},
        },
    });
    let machine = |name: &str, role: &str, node: bool| {
        let status = if node {
            json!({"phase": "Running", "nodeRef": {"name": name}})
        } else {
            json!({"phase": "Provisioning"})
        };
        let machine = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
            "metadata": {"name": name, "labels": {role: ""}}, "spec": {"clusterName": "wl"}, "status": status});
        serde_json::from_value(machine).unwrap()
    };
    let mut machines = vec![machine("cp", "cluster.x-k8s.io/control-plane", reached(2))];
    if reached(3) {
        machines.push(machine("md", "worker", reached(4)));
    }
    let pool = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment",
        "metadata": {"name": "wl-md-0-x", "generation": 1, "labels": {"topology.cluster.x-k8s.io/deployment-name": "md-0"}},
        "spec": {"clusterName": "wl", "replicas": 1},
        "status": {"observedGeneration": 1, "replicas": count(3), "upToDateReplicas": count(3),
            "readyReplicas": count(5), "availableReplicas": count(5)},
    });
    Observed {
        cluster: Some(serde_json::from_value(cluster).unwrap()),
        machines: if reached(1) { machines } else { Vec::new() },
        pools: if reached(2) { vec![serde_json::from_value(pool).unwrap()] } else { Vec::new() },
        kubeconfig: reached(2),
        bootstrap: reached(2).then(|| bootstrap(if reached(6) { "ReconcileSucceeded" } else { "Reconciling" }, "")),
        has_packages: true,
    }
}

fn bootstrap(antrea: &str, message: &str) -> windlass_api::kind::release::ClusterBootstrap {
    let condition = |type_: &str, message: &str| json!({"type": type_, "status": "True", "reason": "X", "message": message, "lastTransitionTime": ""});
    let bootstrap = json!({
        "apiVersion": "run.tanzu.vmware.com/v1alpha3", "kind": "ClusterBootstrap", "metadata": {"name": "wl"},
        "spec": {
            "kapp": {"refName": "kapp-controller.tanzu.vmware.com.0.41.5+vmware.1"},
            "cni": {"refName": "antrea.tanzu.vmware.com.1.7.2+vmware.1"},
        },
        "status": {"resolvedTKR": "v1.24.9---vmware.1-tkg.1", "conditions": [
            condition("Kapp-Controller-ReconcileSucceeded", ""), condition(&format!("Antrea-{antrea}"), message),
        ]},
    });
    serde_json::from_value(bootstrap).unwrap()
}

fn minutes(minutes: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_mins(minutes)
}

/// What is awaited first of all.
#[track_caller]
fn waits(observed: &Observed, wanted: &str) {
    let first = awaited(observed).into_iter().find(|awaited| !awaited.came);
    assert_eq!(first.map(|first| first.to_string()).as_deref(), Some(wanted));
}

#[test]
fn every_wait_says_for_what() {
    waits(&at(0), "initialised: its infrastructure is being made");
    let mut unmade = at(0);
    unmade.cluster.as_mut().unwrap().spec.infrastructure_ref = None;
    waits(&unmade, "initialised: Cluster API has not made its objects from its class yet");
    waits(&at(1), "initialised: its machine cp is Provisioning");
    waits(&at(2), "control plane: 0 of 1 machines ready");
    waits(&Observed { kubeconfig: false, ..at(3) }, "kubeconfig: there is no Secret wl-kubeconfig");
    waits(&at(3), "nodes: 1 of 2; its machine md is Provisioning");
    waits(&at(4), "pool md-0: 0 of 1 machines ready");
    waits(&at(5), "package antrea: 1.7.2+vmware.1 is being brought in");
    waits(&Observed { pools: Vec::new(), ..at(5) }, "pool md-0: it has no machines yet");
    waits(&Observed { bootstrap: None, ..at(5) }, "packages: there is no ClusterBootstrap wl yet");
    let failed = Observed { bootstrap: Some(bootstrap("ReconcileFailed", "kapp: Error: no image")), ..at(5) };
    waits(&failed, "package antrea: 1.7.2+vmware.1 could not be brought in: kapp: Error: no image");
    let mut old = at(6);
    old.bootstrap.as_mut().unwrap().status.as_mut().unwrap().resolved_tkr = None;
    waits(&old, "packages: those of v1.24.9---vmware.1-tkg.1 are not in its ClusterBootstrap yet");
    let mut paused = at(1);
    paused.cluster.as_mut().unwrap().spec.paused = Some(true);
    waits(&paused, "initialised: somebody has paused the Cluster: spec.paused is true");
    let mut unmade = at(1);
    unmade.machines[0].status.as_mut().unwrap().conditions = serde_json::from_value(json!([
        {"type": "InfrastructureReady", "status": "False", "reason": "X", "message": "no class big", "lastTransitionTime": ""},
    ]))
    .unwrap();
    waits(&unmade, "initialised: its machine cp is Provisioning: no class big");
    let mut refused = at(0);
    refused.cluster.as_mut().unwrap().status.as_mut().unwrap().conditions = serde_json::from_value(json!([
        {"type": "TopologyReconciled", "status": "False", "reason": "X", "message": "no such variable", "lastTransitionTime": ""},
    ])).unwrap();
    waits(&refused, "initialised: TopologyReconciled: no such variable");
}

#[test]
fn what_comes_is_told_once_and_in_order() {
    let mut course = Course::begin(SignedDuration::from_mins(30), minutes(0));
    let mut told = Vec::new();
    for (minute, step) in [(1, 0), (2, 1), (3, 3), (4, 3), (5, 6)] {
        let look = course.look(&at(step), minutes(minute));
        assert_eq!(look.moved, minute != 4, "{minute}");
        told.push(look.came.iter().map(|came| came.thing.to_string()).collect::<Vec<_>>().join(", "));
        assert_eq!(look.end, (step == 6).then_some(End::Done));
    }
    let wanted = [
        "",
        "",
        "initialised, control plane, kubeconfig",
        "",
        "nodes, pool md-0, package kapp-controller, package antrea",
    ];
    assert_eq!(told, wanted);
}

#[test]
fn a_cluster_without_packages_is_there_when_its_machines_are() {
    let mut course = Course::begin(SignedDuration::from_mins(30), minutes(0));
    let look = course.look(&Observed { has_packages: false, bootstrap: None, ..at(5) }, minutes(1));
    assert_eq!((look.end, look.count), (Some(End::Done), (5, 5)));
}

/// What looks at these minutes, each with a state, come to with a patience of 30 minutes.
#[track_caller]
fn ends(looks: &[(i64, Observed)], wanted: Option<&str>) {
    let mut course = Course::begin(SignedDuration::from_mins(30), minutes(0));
    let mut last = None;
    for (minute, observed) in looks {
        assert_eq!(last, None, "it has ended before minute {minute}");
        last = course.look(observed, minutes(*minute)).end.map(|end| match end {
            End::Done => "done".to_owned(),
            End::Gone => "gone".to_owned(),
            End::Stalled(stall) => stall.to_string(),
        });
    }
    assert_eq!(last.as_deref(), wanted);
}

#[test]
fn it_is_stalled_when_nothing_changes_and_not_when_it_is_only_slow() {
    ends(&[(0, at(0)), (29, at(0))], None);
    let said =
        "nothing has changed for too long (30m so far); it waits for initialised: its infrastructure is being made";
    ends(&[(0, at(0)), (30, at(0))], Some(said));
    // Slow, but every look shows something new.
    ends(&[(0, at(0)), (29, at(1)), (58, at(2)), (80, at(3))], None);
    ends(&[(0, at(0)), (29, at(1)), (58, at(2)), (87, at(6))], Some("done"));
    let said =
        "nothing has changed for too long (40m so far); it waits for nodes: 1 of 2; its machine md is Provisioning";
    ends(&[(0, at(0)), (20, at(3)), (60, at(3))], Some(said));
}

#[test]
fn what_only_changes_to_and_fro_ends_after_three_times_as_long() {
    let swinging: Vec<(i64, Observed)> =
        (0..=9).map(|look| (look * 10, at(if look % 2 == 0 { 4 } else { 5 }))).collect();
    let said =
        "it changes and does not end (1h30m so far); it waits for package antrea: 1.7.2+vmware.1 is being brought in";
    ends(&swinging, Some(said));
    ends(&swinging[..9], None);
}

#[test]
fn a_cluster_that_is_deleted_is_not_waited_for() {
    ends(&[(0, at(2)), (1, Observed::default())], Some("gone"));
    let mut leaving = at(6);
    let metadata: Value = json!({"name": "wl", "deletionTimestamp": "2026-01-01T00:00:00Z"});
    leaving.cluster.as_mut().unwrap().metadata = serde_json::from_value(metadata).unwrap();
    ends(&[(0, leaving)], Some("gone"));
}

#[test]
fn it_is_due_when_patience_would_end() {
    let mut course = Course::begin(SignedDuration::from_mins(30), minutes(0));
    assert_eq!(course.due(), minutes(30));
    course.look(&at(1), minutes(20));
    assert_eq!(course.due(), minutes(50));
    course.look(&at(2), minutes(80));
    assert_eq!(course.due(), minutes(90), "never later than three times as long in all");
}

#[test]
fn everything_has_a_way_on() {
    let (namespace, cluster) = ("dev".parse().unwrap(), "wl".parse().unwrap());
    let way = |thing: Thing| thing.way_on(&namespace, &cluster);
    assert_eq!(way(Thing::Package("antrea".into())), "kubectl describe clusterbootstrap wl -n dev");
    let pool = "kubectl describe machinedeployments -n dev -l cluster.x-k8s.io/cluster-name=wl,topology.cluster.x-k8s.io/deployment-name=md-0";
    assert_eq!(way(Thing::Pool("md-0".into())), pool);
}
