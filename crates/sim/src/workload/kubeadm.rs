//! kubeadm: a machine begins a cluster or joins it.
//!
//! A machine of the control plane adds a member to etcd and starts it. Before there were learners the new member counted in the
//! quorum at once, so that a cluster of one stood still until the second had started; this is modelled, as it is real.

mod addons;
mod images;
mod leaves;
mod needs;

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_api::version::{KubernetesVersion, facts};
use windlass_apiserver::store::Key;

use super::record::{Configuration, Machine, Member, Stage};
use super::write::{CONFIG_MAPS, PODS};
use super::{Begins, Workload, node, pod, record};
use crate::durations;

const KUBE_SYSTEM: &str = "kube-system";
const KUBEADM_CONFIG: &str = "kubeadm-config";
/// What the names of the pods that run a control plane begin with.
const STATIC_PODS: [&str; 4] = ["etcd-", "kube-apiserver-", "kube-controller-manager-", "kube-scheduler-"];
/// From adding a member to etcd until it has started.
const MEMBER_START: Duration = Duration::from_secs(2);

/// When the next step of kubeadm is done on a machine.
pub(super) fn next_step_at(workload: &Workload, machine: &Machine) -> Timestamp {
    let durations = &workload.0.durations;
    let range = match machine.begins {
        Begins::Init => durations.kubeadm_init,
        Begins::JoinControlPlane => durations.kubeadm_join_control_plane,
        Begins::Join => durations.kubeadm_join,
    };
    let (since, after) = match machine.stage {
        Stage::Begun => {
            (machine.booted_at, durations::of(range, workload.0.seed, &format!("kubeadm {}", machine.name)))
        }
        Stage::MemberAdded { at } if facts::joins_etcd_as_learner(&machine.kubelet) => (at, MEMBER_START / 2),
        Stage::MemberAdded { at } => (at, MEMBER_START),
        Stage::Learning { at } => (at, MEMBER_START / 2),
        Stage::Done => return Timestamp::MAX,
    };
    since.checked_add(after).unwrap_or(Timestamp::MAX)
}

/// Does the next step, unless it has to wait for the API or for etcd.
pub(super) fn go_on(workload: &Workload, machine: &Machine) {
    match (machine.begins, machine.stage) {
        (Begins::Init, _) => init(workload, machine),
        (Begins::JoinControlPlane, Stage::Begun) => add_member(workload, machine),
        (Begins::JoinControlPlane, Stage::MemberAdded { .. }) if facts::joins_etcd_as_learner(&machine.kubelet) => {
            start_learner(workload, machine);
        }
        (Begins::JoinControlPlane, _) => join_control_plane(workload, machine),
        (Begins::Join, _) if workload.answers() => join(workload, machine),
        (Begins::Join, _) => {}
    }
}

/// What is written last, in every case, is that it is done: whoever is interrupted does it again, and finds what is there.
fn init(workload: &Workload, machine: &Machine) {
    let cluster = machine.configuration.cluster.clone().unwrap_or_default();
    let version = version(&cluster).unwrap_or_else(|| machine.kubelet.clone());
    let lock = workload.lock();
    if let Some(why) = images::missing(machine, &cluster) {
        return give_up(workload, machine, why);
    }
    workload.put(&Member { version: etcd_version(&cluster), ..workload.new_member(&machine.name, true, false) });
    workload.settle();
    drop(lock);
    let mut data = json!({"ClusterConfiguration": yaml(&cluster)});
    if facts::has_cluster_status(&machine.kubelet) {
        data["ClusterStatus"] = yaml(&with_endpoint(Value::Null, machine)).into();
    }
    workload.create(CONFIG_MAPS, &Key::new(KUBE_SYSTEM, KUBEADM_CONFIG), json!({"metadata": {}, "data": data}));
    leaves::write(workload, machine, &cluster, &version);
    addons::write(workload, machine, &cluster, &version);
    node::register(workload, machine, true);
    run_static_pods(workload, machine, &cluster);
    finish(workload, machine);
}

/// etcd takes one new member at a time, and only while all others are well.
fn add_member(workload: &Workload, machine: &Machine) {
    let _lock = workload.lock();
    if !workload.answers() || !workload.etcd().may_add() || gives_up(workload, machine) {
        return;
    }
    let cluster = read_yaml(&kubeadm_config(workload)["data"]["ClusterConfiguration"]);
    if let Some(why) = images::missing(machine, &cluster) {
        return give_up(workload, machine, why);
    }
    workload.put(&workload.new_member(&machine.name, false, facts::joins_etcd_as_learner(&machine.kubelet)));
    workload.put(&Machine { stage: Stage::MemberAdded { at: workload.now() }, ..machine.clone() });
    workload.settle();
}

/// The new member starts, and catches up with the others before it counts: while it does, nobody waits for it.
fn start_learner(workload: &Workload, machine: &Machine) {
    let _lock = workload.lock();
    let Some(member) = own_member(workload, machine) else { return };
    workload.put(&Member { started: true, ..member });
    workload.put(&Machine { stage: Stage::Learning { at: workload.now() }, ..machine.clone() });
    workload.settle();
}

/// The member that kubeadm has added. Where somebody has removed it in the meantime, kubeadm gives up: nobody starts it again.
fn own_member(workload: &Workload, machine: &Machine) -> Option<Member> {
    let member = record::of::<Member>(workload.server().store(), &machine.name);
    if member.is_none() {
        let why = "etcdserver: member not found: it was removed before it had started".to_owned();
        give_up(workload, machine, why);
    }
    member
}

fn join_control_plane(workload: &Workload, machine: &Machine) {
    let lock = workload.lock();
    let Some(member) = own_member(workload, machine) else { return };
    // Only a leader promotes a learner.
    if member.learner && !workload.etcd().has_quorum() {
        return;
    }
    if workload.faults().join_fails(workload.name(), &machine.name, &machine.provider_id) {
        return;
    }
    let config = kubeadm_config(workload);
    let cluster = read_yaml(&config["data"]["ClusterConfiguration"]);
    workload.put(&Member { started: true, learner: false, version: etcd_version(&cluster), ..member });
    workload.settle();
    drop(lock);
    if facts::has_cluster_status(&machine.kubelet) {
        let status = with_endpoint(read_yaml(&config["data"]["ClusterStatus"]), machine);
        let key = Key::new(KUBE_SYSTEM, KUBEADM_CONFIG);
        workload.change(CONFIG_MAPS, &key, |object| object["data"]["ClusterStatus"] = yaml(&status).into());
    }
    node::register(workload, machine, true);
    run_static_pods(workload, machine, &cluster);
    finish(workload, machine);
}

fn join(workload: &Workload, machine: &Machine) {
    let lock = workload.lock();
    let gives_up = gives_up(workload, machine);
    drop(lock);
    if gives_up {
        return;
    }
    node::register(workload, machine, false);
    finish(workload, machine);
}

/// Whether kubeadm ends because something is not there that it asks the API for. Nobody starts it again.
fn gives_up(workload: &Workload, machine: &Machine) -> bool {
    let Some(why) = needs::missing(workload.server().store(), machine) else { return false };
    give_up(workload, machine, why);
    true
}

fn give_up(workload: &Workload, machine: &Machine, why: String) {
    tracing::debug!(machine = %machine.name, why, "kubeadm fails");
    workload.put(&Machine { failure: Some(why), ..machine.clone() });
}

/// The record of kubeadm, as it is in the cluster.
fn kubeadm_config(workload: &Workload) -> Value {
    let found = workload.server().store().get(CONFIG_MAPS, &Key::new(KUBE_SYSTEM, KUBEADM_CONFIG));
    found.map(|entry| entry.to_value("", "")).unwrap_or_default()
}

fn finish(workload: &Workload, machine: &Machine) {
    let _lock = workload.lock();
    // It may have been switched off in the meantime.
    let Some(machine) = record::of::<Machine>(workload.server().store(), &machine.name) else { return };
    // Nobody asks any more what kubeadm was told.
    workload.put(&Machine { stage: Stage::Done, configuration: Configuration::default(), ..machine });
    workload.settle();
}

/// Whether a pod of this name is one of those that run a control plane.
pub(super) fn is_static_pod(key: &Key) -> bool {
    *key.namespace == *KUBE_SYSTEM && STATIC_PODS.iter().any(|component| key.name.starts_with(component))
}

/// What runs a control plane: the kubelet shows its static pods once they run.
fn run_static_pods(workload: &Workload, machine: &Machine, cluster: &Value) {
    let now = workload.now();
    for images::StaticPod { component, image, cpu } in images::static_pods(machine, cluster) {
        let mut object = json!({
            "metadata": {
                "labels": {"component": component, "tier": "control-plane"},
                "annotations": {"kubernetes.io/config.source": "file", "kubernetes.io/config.mirror": component},
            },
            "spec": {
                "nodeName": machine.name, "hostNetwork": true, "priorityClassName": "system-node-critical",
                "containers": [{"name": component, "image": image, "resources": {"requests": {"cpu": cpu}}}],
                "tolerations": [{"operator": "Exists", "effect": "NoExecute"}],
            },
        });
        pod::bind(&mut object, machine.name.as_str(), now);
        pod::run(&mut object, &machine.address, now);
        workload.create(PODS, &Key::new(KUBE_SYSTEM, &format!("{component}-{}", machine.name)), object);
    }
}

/// The version of etcd, if that is what its image is tagged with.
fn etcd_version(cluster: &Value) -> Option<KubernetesVersion> {
    cluster["etcd"]["local"]["imageTag"].as_str()?.parse().ok()
}

fn version(cluster: &Value) -> Option<KubernetesVersion> {
    cluster["kubernetesVersion"].as_str()?.parse().ok()
}

/// The `ClusterStatus` with one more API server in it.
fn with_endpoint(status: Value, machine: &Machine) -> Value {
    let mut status = match status {
        Value::Object(_) => status,
        _ => json!({"apiVersion": "kubeadm.k8s.io/v1beta2", "kind": "ClusterStatus"}),
    };
    if !status["apiEndpoints"].is_object() {
        status["apiEndpoints"] = json!({});
    }
    status["apiEndpoints"][machine.name.as_str()] = json!({"advertiseAddress": machine.address, "bindPort": 6443});
    status
}

fn yaml(value: &Value) -> String {
    // A tree of JSON values has no part that YAML cannot say.
    serde_saphyr::to_string(value).unwrap_or_default()
}

fn read_yaml(text: &Value) -> Value {
    let read = serde_saphyr::from_str(text.as_str().unwrap_or_default());
    read.inspect_err(|error| tracing::warn!(%error, "the kubeadm-config cannot be read")).unwrap_or_default()
}
