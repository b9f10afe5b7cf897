//! A node as its kubelet registers it.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_api::label;
use windlass_api::version::facts;
use windlass_apiserver::store::Key;
use windlass_apiserver::time;

use super::record::Machine;
use super::seen::Truth;
use super::write::NODES;
use super::{Workload, lifecycle};

/// How many pods a kubelet runs, unless it is told otherwise.
const PODS_MAX: &str = "110";

/// The node, which is not ready yet.
pub(super) fn register(workload: &Workload, machine: &Machine, control_plane: bool) {
    let Machine { name, kubelet, configuration, capacity, .. } = machine;
    let mut labels = json!({
        "beta.kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "kubernetes.io/hostname": name,
    });
    // In reality the cloud provider says so a moment later.
    if let Some(zone) = &machine.zone {
        labels[label::ZONE.name] = zone.as_str().into();
    }
    if !workload.faults().labels_late(workload.name(), name, &configuration.node_labels) {
        for (key, value) in &configuration.node_labels {
            labels[key] = value.as_str().into();
        }
    }
    let mut taints = configuration.taints.clone().unwrap_or_default();
    if control_plane {
        let role = role(machine);
        if !workload.faults().role_late(workload.name(), name, &role) {
            for (key, value) in &role {
                labels[key] = value.as_str().into();
            }
        }
        if configuration.taints.is_none() {
            taints = kubeadm_taints(machine);
        }
    }
    let amounts = json!({"cpu": capacity.cpus.to_string(), "memory": capacity.memory, "pods": PODS_MAX});
    let images: Vec<Value> = machine.images.iter().map(|image| json!({"names": [image]})).collect();
    let wrong = workload.faults().provider_id(workload.name(), name);
    let provider_id = wrong.as_ref().unwrap_or(&machine.provider_id);
    let now = workload.now();
    let mut node = json!({
        "metadata": {"labels": labels},
        "spec": {"providerID": provider_id, "taints": taints},
        "status": {
            "addresses": [
                {"type": "Hostname", "address": name},
                {"type": "InternalIP", "address": machine.address},
            ],
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": conditions(&time::format(now)),
            "images": images,
            "nodeInfo": {
                "architecture": "amd64", "bootID": "", "containerRuntimeVersion": "containerd://1.3.4",
                "kernelVersion": "4.19.112", "kubeProxyVersion": kubelet, "kubeletVersion": kubelet, "machineID": "",
                "operatingSystem": "linux", "osImage": "VMware Photon OS/Linux", "systemUUID": machine.provider_id,
            },
        },
    });
    lifecycle::taint(&mut node, Truth::False, now);
    workload.create(NODES, &Key::new("", name.as_str()), node);
}

/// The labels that kubeadm gives to a node of the control plane.
fn role(machine: &Machine) -> BTreeMap<String, String> {
    let labels = [
        (label::NODE_MASTER.name, facts::has_master_label(&machine.kubelet)),
        (label::NODE_CONTROL_PLANE.name, facts::has_control_plane_label(&machine.kubelet)),
    ];
    let labels = labels.into_iter().filter(|(_, is_set)| *is_set);
    labels.map(|(key, _)| (key.to_owned(), String::new())).collect()
}

/// What keeps pods from a control plane.
fn kubeadm_taints(machine: &Machine) -> Vec<Value> {
    let taints = [
        (label::NODE_MASTER.name, facts::has_master_taint(&machine.kubelet)),
        (label::NODE_CONTROL_PLANE.name, facts::has_control_plane_taint(&machine.kubelet)),
    ];
    let taints = taints.into_iter().filter(|(_, is_set)| *is_set);
    taints.map(|(key, _)| json!({"key": key, "effect": "NoSchedule"})).collect()
}

fn conditions(now: &str) -> Vec<Value> {
    let condition = |type_: &str, reason: &str, message: &str| {
        json!({
            "type": type_, "status": "False", "lastHeartbeatTime": now, "lastTransitionTime": now, "reason": reason,
            "message": message,
        })
    };
    let well = lifecycle::PRESSURES.map(|(type_, reason, message)| condition(type_, reason, message));
    let ready = condition("Ready", "KubeletNotReady", "the network of pods is not ready yet");
    well.into_iter().chain([ready]).collect()
}
