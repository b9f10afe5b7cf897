//! Volumes: a claim gets one, and a node has those of its pods attached to it, until some time after the last of them is gone.
//!
//! A claim is bound at once, whatever its class says about waiting for a pod.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};
use windlass_api::name::NodeName;
use windlass_apiserver::store::{Entry, Key, Range, Resource};
use windlass_apiserver::time;

use super::Workload;
use super::seen::suffix;
use super::view::View;
use super::write::{CLAIMS, PODS};

pub(super) const VOLUMES: &str = "persistentvolumes";
pub(super) const ATTACHMENTS: &str = "volumeattachments.storage.k8s.io";

const DRIVER: &str = "csi.vsphere.vmware.com";
const ATTACHER: &str = "external-attacher/csi-vsphere-vmware-com";
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";

/// How long it takes to detach a disk.
const DETACH: SignedDuration = SignedDuration::from_secs(5);
/// How long it is waited for a kubelet that is silent to let go of a disk: kube-controller-manager's constant.
const UNMOUNT_MAX: SignedDuration = SignedDuration::from_secs(6 * 60);

/// What there is of volumes, and whether something has changed.
#[derive(Debug, Default)]
pub(super) struct Volumes {
    /// By claim: its volume, once it is bound.
    claims: BTreeMap<Key, Claim>,
    /// By volume: the claim that it was made for.
    made_for: BTreeMap<Box<str>, Key>,
    attachments: BTreeMap<Box<str>, Attachment>,
    /// Pods with claims, on nodes.
    pods: BTreeMap<Key, Placed>,
    dirty: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Claim {
    spec: ClaimSpec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ClaimSpec {
    volume_name: Box<str>,
    /// An empty one wants a volume that somebody else has made.
    storage_class_name: Option<Box<str>>,
}

#[derive(Debug)]
struct Attachment {
    volume: Box<str>,
    node: Box<str>,
    /// Since when it goes.
    goes: Option<Timestamp>,
    /// The disk could not be detached, and is not tried again.
    stuck: bool,
}

#[derive(Debug)]
struct Placed {
    node: Box<str>,
    claims: Vec<Key>,
}

impl Volumes {
    /// Something is there, or has changed.
    pub(super) fn put(&mut self, resource: &str, entry: &Entry) {
        match resource {
            CLAIMS => {
                let claim = serde_json::from_slice(&entry.json).unwrap_or_default();
                self.claims.insert(entry.key.clone(), claim);
            }
            VOLUMES => {
                let volume = entry.look();
                let claim = &volume["spec"]["claimRef"];
                let text = |field: &str| claim[field].as_str().unwrap_or_default();
                if !volume["metadata"]["annotations"][PROVISIONED_BY].is_null() {
                    self.made_for.insert(entry.key.name.clone(), Key::new(text("namespace"), text("name")));
                }
            }
            ATTACHMENTS => {
                let attachment = entry.look();
                let text = |value: &Value| value.as_str().unwrap_or_default().into();
                let goes = attachment["metadata"]["deletionTimestamp"].as_str().and_then(|at| at.parse().ok());
                let spec = &attachment["spec"];
                let attachment = Attachment {
                    volume: text(&spec["source"]["persistentVolumeName"]),
                    node: text(&spec["nodeName"]),
                    goes,
                    stuck: !attachment["status"]["detachError"].is_null(),
                };
                self.attachments.insert(entry.key.name.clone(), attachment);
            }
            _ => return,
        }
        self.dirty = true;
    }

    /// A pod with these claims is on a node, or has ended.
    pub(super) fn put_pod(&mut self, key: &Key, node: Option<&str>, claims: Vec<Key>) {
        let before = self.pods.remove(key);
        if let Some(node) = node.filter(|_| !claims.is_empty()) {
            self.pods.insert(key.clone(), Placed { node: node.into(), claims });
            self.dirty = true;
        }
        self.dirty |= before.is_some();
    }

    /// Something is gone.
    pub(super) fn take(&mut self, resource: &str, key: &Key) {
        self.dirty |= match resource {
            CLAIMS => self.claims.remove(key).is_some(),
            VOLUMES => self.made_for.remove(&key.name).is_some(),
            ATTACHMENTS => self.attachments.remove(&key.name).is_some(),
            PODS => self.pods.remove(key).is_some(),
            _ => false,
        };
    }

    /// When the next disk is detached.
    pub(super) fn next_at(&self, is_on: impl Fn(&str) -> bool) -> Option<Timestamp> {
        self.attachments.values().filter_map(|attachment| ends_at(attachment, &is_on)).min()
    }
}

fn ends_at(attachment: &Attachment, is_on: impl Fn(&str) -> bool) -> Option<Timestamp> {
    let takes = if is_on(&attachment.node) { DETACH } else { UNMOUNT_MAX };
    attachment.goes.filter(|_| !attachment.stuck).map(|goes| goes.checked_add(takes).unwrap_or(Timestamp::MAX))
}

/// Does what there is to do now.
pub(super) fn sync(workload: &Workload, view: &mut View) {
    let now = workload.now();
    let over = view.volumes.next_at(|node| view.is_on(node)).is_some_and(|at| at <= now);
    if !std::mem::take(&mut view.volumes.dirty) && !over {
        return;
    }
    let volumes = &view.volumes;
    for (key, claim) in &volumes.claims {
        if claim.spec.volume_name.is_empty() && claim.spec.storage_class_name.as_deref() != Some("") {
            provision(workload, key);
        }
    }
    for (name, claim) in &volumes.made_for {
        let attached = || volumes.attachments.values().any(|attachment| attachment.volume == *name);
        if !volumes.claims.contains_key(claim) && !attached() {
            remove(workload, VOLUMES, name);
        }
    }
    let wanted = wanted(volumes);
    let there: BTreeSet<(&str, &str)> =
        volumes.attachments.values().map(|attachment| (&*attachment.node, &*attachment.volume)).collect();
    for (node, volume) in wanted.difference(&there) {
        attach(workload, node, volume);
    }
    for (name, attachment) in &volumes.attachments {
        let is_wanted = wanted.contains(&(&*attachment.node, &*attachment.volume));
        match ends_at(attachment, |node| view.is_on(node)) {
            None if is_wanted || attachment.stuck => {}
            None => workload.change(ATTACHMENTS, &Key::new("", name), |object| {
                object["metadata"]["deletionTimestamp"] = time::format(now).into();
                object["metadata"]["deletionGracePeriodSeconds"] = 0.into();
            }),
            Some(at) if at <= now && stays(workload, &attachment.node) => {
                let why = json!({"time": time::format(now), "message": "the disk could not be detached"});
                workload.change(ATTACHMENTS, &Key::new("", name), |object| object["status"]["detachError"] = why);
            }
            Some(at) if at <= now => remove(workload, ATTACHMENTS, name),
            Some(_) => {}
        }
    }
}

/// Whether a scenario has it that the volumes of a node are not detached.
fn stays(workload: &Workload, node: &str) -> bool {
    !workload.faults().is_empty()
        && NodeName::new(node).is_ok_and(|node| workload.faults().volume_stays(workload.name(), &node))
}

/// What could not be detached from these nodes is tried again.
pub(super) fn retry(workload: &Workload, nodes: impl Fn(&str) -> bool) {
    let all = Range { namespace: None, after: None, limit: 0 };
    for entry in workload.server().store().list(ATTACHMENTS, all, |_| true).entries {
        let attachment = entry.look();
        let is_stuck = !attachment["status"]["detachError"].is_null();
        if is_stuck && nodes(attachment["spec"]["nodeName"].as_str().unwrap_or_default()) {
            workload.change(ATTACHMENTS, &entry.key, |object| {
                drop(object["status"].as_object_mut().map(|status| status.remove("detachError")));
            });
        }
    }
}

/// What is to be attached where.
fn wanted(volumes: &Volumes) -> BTreeSet<(&str, &str)> {
    let pods = volumes.pods.values();
    let claimed = pods.flat_map(|pod| pod.claims.iter().map(|claim| (&*pod.node, claim)));
    let bound = claimed.filter_map(|(node, claim)| Some((node, &*volumes.claims.get(claim)?.spec.volume_name)));
    bound.filter(|(_, volume)| !volume.is_empty()).collect()
}

/// Makes a volume for a claim, and binds both to each other.
fn provision(workload: &Workload, key: &Key) {
    let store = workload.server().store();
    let Some(entry) = store.get(CLAIMS, key).filter(|entry| !entry.deleting) else { return };
    let claim = entry.look();
    let name = format!("pvc-{}", entry.uid);
    let (modes, capacity) = (&claim["spec"]["accessModes"], &claim["spec"]["resources"]["requests"]);
    let volume = json!({
        "metadata": {"annotations": {PROVISIONED_BY: DRIVER}},
        "spec": {
            "accessModes": modes, "capacity": capacity, "persistentVolumeReclaimPolicy": "Delete", "volumeMode": "Filesystem",
            "storageClassName": claim["spec"]["storageClassName"].as_str().unwrap_or_default(),
            "claimRef": {
                "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": &*key.namespace, "name": &*key.name,
                "uid": &*entry.uid,
            },
            "csi": {"driver": DRIVER, "volumeHandle": &*entry.uid},
        },
        "status": {"phase": "Bound"},
    });
    workload.create(VOLUMES, &Key::new("", &name), volume);
    workload.change(CLAIMS, key, |object| {
        object["spec"]["volumeName"] = name.into();
        object["status"] = json!({"phase": "Bound", "accessModes": modes, "capacity": capacity});
    });
}

fn attach(workload: &Workload, node: &str, volume: &str) {
    let hash = workload.0.seed.child("attachment").stream(&format!("{node} {volume}")).u64();
    let attachment = json!({
        "metadata": {"finalizers": [ATTACHER]},
        "spec": {"attacher": DRIVER, "nodeName": node, "source": {"persistentVolumeName": volume}},
        "status": {"attached": true},
    });
    workload.create(ATTACHMENTS, &Key::new("", &format!("csi-{}", suffix(hash, 12))), attachment);
}

fn remove(workload: &Workload, resource: &str, name: &str) {
    let (store, key) = (workload.server().store(), Key::new("", name));
    let Some(entry) = store.get(resource, &key) else { return };
    let last = entry.to_value("", "");
    drop(store.remove(&Resource::from(resource), &key, entry.revision, last, workload.now()));
}
