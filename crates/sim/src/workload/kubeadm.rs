//! kubeadm: a machine begins a cluster or joins it.
//!
//! A machine of the control plane adds a member to etcd and starts it. Before there were learners the new member counted in the
//! quorum at once, so that a cluster of one stood still until the second had started; this is modelled, as it is real.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_api::label;
use windlass_api::version::{KubernetesVersion, facts};
use windlass_apiserver::store::Key;
use windlass_apiserver::time;

use super::record::{Configuration, Machine, Member, Stage};
use super::write::{CONFIG_MAPS, NODES, PODS};
use super::{Begins, Workload, pod, record};
use crate::durations;

const KUBE_SYSTEM: &str = "kube-system";
const KUBEADM_CONFIG: &str = "kubeadm-config";
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
        Stage::MemberAdded { at } => (at, MEMBER_START),
        Stage::Done => return Timestamp::MAX,
    };
    since.checked_add(after).unwrap_or(Timestamp::MAX)
}

/// Does the next step, unless it has to wait for the API or for etcd.
pub(super) fn go_on(workload: &Workload, machine: &Machine) {
    match (machine.begins, machine.stage) {
        (Begins::Init, _) => init(workload, machine),
        (Begins::JoinControlPlane, Stage::Begun) => add_member(workload, machine),
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
    workload.put(&Member { version: etcd_version(&cluster), ..workload.new_member(&machine.name, true, false) });
    workload.settle();
    drop(lock);
    let mut data = json!({"ClusterConfiguration": yaml(&cluster)});
    if facts::has_cluster_status(&machine.kubelet) {
        data["ClusterStatus"] = yaml(&with_endpoint(Value::Null, machine)).into();
    }
    workload.create(CONFIG_MAPS, &Key::new(KUBE_SYSTEM, KUBEADM_CONFIG), json!({"metadata": {}, "data": data}));
    let kubelet = json!({"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"});
    let kubelet = json!({"metadata": {}, "data": {"kubelet": yaml(&kubelet)}});
    workload.create(CONFIG_MAPS, &Key::new(KUBE_SYSTEM, &facts::kubelet_config_name(&version)), kubelet);
    register(workload, machine, true);
    run_static_pods(workload, machine, &cluster);
    finish(workload, machine);
}

/// etcd takes one new member at a time, and only while all others are well.
fn add_member(workload: &Workload, machine: &Machine) {
    let _lock = workload.lock();
    if !workload.answers() || !workload.etcd().may_add() {
        return;
    }
    workload.put(&workload.new_member(&machine.name, false, facts::joins_etcd_as_learner(&machine.kubelet)));
    workload.put(&Machine { stage: Stage::MemberAdded { at: workload.now() }, ..machine.clone() });
    workload.settle();
}

fn join_control_plane(workload: &Workload, machine: &Machine) {
    let lock = workload.lock();
    let store = workload.server().store();
    // Somebody may have removed it in the meantime: then kubeadm waits until it is killed.
    let Some(member) = record::of::<Member>(store, &machine.name) else { return };
    let key = Key::new(KUBE_SYSTEM, KUBEADM_CONFIG);
    let config = store.get(CONFIG_MAPS, &key).map(|entry| entry.to_value("", "")).unwrap_or_default();
    let cluster = read_yaml(&config["data"]["ClusterConfiguration"]);
    workload.put(&Member { started: true, learner: false, version: etcd_version(&cluster), ..member });
    workload.settle();
    drop(lock);
    if facts::has_cluster_status(&machine.kubelet) {
        let status = with_endpoint(read_yaml(&config["data"]["ClusterStatus"]), machine);
        workload.change(CONFIG_MAPS, &key, |object| object["data"]["ClusterStatus"] = yaml(&status).into());
    }
    register(workload, machine, true);
    run_static_pods(workload, machine, &cluster);
    finish(workload, machine);
}

fn join(workload: &Workload, machine: &Machine) {
    register(workload, machine, false);
    finish(workload, machine);
}

fn finish(workload: &Workload, machine: &Machine) {
    let _lock = workload.lock();
    // It may have been switched off in the meantime.
    let Some(machine) = record::of::<Machine>(workload.server().store(), &machine.name) else { return };
    // Nobody asks any more what kubeadm was told.
    workload.put(&Machine { stage: Stage::Done, configuration: Configuration::default(), ..machine });
    workload.settle();
}

/// The node, which is not ready yet.
fn register(workload: &Workload, machine: &Machine, control_plane: bool) {
    let Machine { name, kubelet, configuration, .. } = machine;
    let mut labels = json!({
        "beta.kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "kubernetes.io/hostname": name,
    });
    for (key, value) in &configuration.node_labels {
        labels[key] = value.as_str().into();
    }
    let mut taints = configuration.taints.clone().unwrap_or_default();
    if control_plane {
        for (label, is_set) in [
            (label::NODE_MASTER.name, facts::has_master_label(kubelet)),
            (label::NODE_CONTROL_PLANE.name, facts::has_control_plane_label(kubelet)),
        ] {
            if is_set {
                labels[label] = "".into();
            }
        }
        if configuration.taints.is_none() {
            taints = [
                (label::NODE_MASTER.name, facts::has_master_taint(kubelet)),
                (label::NODE_CONTROL_PLANE.name, facts::has_control_plane_taint(kubelet)),
            ]
            .into_iter()
            .filter(|(_, is_set)| *is_set)
            .map(|(key, _)| json!({"key": key, "effect": "NoSchedule"}))
            .collect();
        }
    }
    let mut spec = json!({"providerID": machine.provider_id});
    if !taints.is_empty() {
        spec["taints"] = taints.into();
    }
    let now = time::format(workload.now());
    let node = json!({
        "metadata": {"labels": labels},
        "spec": spec,
        "status": {
            "addresses": [
                {"type": "Hostname", "address": name},
                {"type": "InternalIP", "address": machine.address},
            ],
            "conditions": [{
                "type": "Ready", "status": "False", "lastHeartbeatTime": now, "lastTransitionTime": now,
                "reason": "KubeletNotReady", "message": "the network of pods is not ready yet",
            }],
            "nodeInfo": {
                "architecture": "amd64", "bootID": "", "containerRuntimeVersion": "containerd://1.3.4",
                "kernelVersion": "4.19.112", "kubeProxyVersion": kubelet, "kubeletVersion": kubelet, "machineID": "",
                "operatingSystem": "linux", "osImage": "VMware Photon OS/Linux", "systemUUID": machine.provider_id,
            },
        },
    });
    workload.create(NODES, &Key::new("", name.as_str()), node);
}

/// What runs a control plane: the kubelet shows its static pods once they run.
fn run_static_pods(workload: &Workload, machine: &Machine, cluster: &Value) {
    let repository = cluster["imageRepository"].as_str().unwrap_or("k8s.gcr.io");
    let version = version(cluster).unwrap_or_else(|| machine.kubelet.clone());
    let etcd = &cluster["etcd"]["local"];
    let etcd_repository = etcd["imageRepository"].as_str().unwrap_or(repository);
    let etcd_tag = etcd["imageTag"].as_str().unwrap_or("latest");
    let images = [
        ("etcd", format!("{etcd_repository}/etcd:{etcd_tag}")),
        ("kube-apiserver", format!("{repository}/kube-apiserver:{}", version.tag())),
        ("kube-controller-manager", format!("{repository}/kube-controller-manager:{}", version.tag())),
        ("kube-scheduler", format!("{repository}/kube-scheduler:{}", version.tag())),
    ];
    let now = workload.now();
    for (component, image) in images {
        let mut object = json!({
            "metadata": {
                "labels": {"component": component, "tier": "control-plane"},
                "annotations": {"kubernetes.io/config.source": "file", "kubernetes.io/config.mirror": component},
            },
            "spec": {
                "nodeName": machine.name, "hostNetwork": true, "priorityClassName": "system-node-critical",
                "containers": [{"name": component, "image": image}],
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
