//! The volumes of pods, and persistent ones.

use serde_json::{Map, Value};

use super::{pod, resources, storage};
use crate::builtin::fill::{Fields, child, child_or_new, each, fill, fill_zero, text, unset};

/// `0644`: who may read the files that a volume is made of.
const FILE_MODE: i64 = 0o644;

/// A volume of a pod.
pub(super) fn volume(volume: &mut Fields) {
    if volume.iter().all(|(name, source)| name == "name" || source.is_null()) {
        volume.insert("emptyDir".into(), Value::Object(Map::new()));
    }
    source(volume);
    for name in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(files) = child(volume, name) {
            fill(files, "defaultMode", FILE_MODE);
        }
    }
    if let Some(source) = child(volume, "downwardAPI") {
        each(source, "items", downward_file);
    }
    if let Some(projected) = child(volume, "projected") {
        each(projected, "sources", |source| {
            if let Some(source) = child(source, "downwardAPI") {
                each(source, "items", downward_file);
            }
            if let Some(token) = child(source, "serviceAccountToken") {
                fill(token, "expirationSeconds", 3600);
            }
        });
    }
    if let Some(directory) = child(volume, "emptyDir") {
        resources::amount(directory, "sizeLimit");
    }
    if let Some(image) = child(volume, "image")
        && unset(image, "pullPolicy")
    {
        let policy = pod::pull_policy(text(image, "reference"));
        image.insert("pullPolicy".into(), policy.into());
    }
    if let Some(template) = child(volume, "ephemeral").and_then(|source| child(source, "volumeClaimTemplate")) {
        child_or_new(template, "metadata");
        if let Some(spec) = child_or_new(template, "spec") {
            storage::claim_spec(spec);
        }
    }
}

fn downward_file(file: &mut Fields) {
    if let Some(field) = child(file, "fieldRef") {
        fill_zero(field, "apiVersion", "v1");
    }
    if let Some(resource) = child(file, "resourceFieldRef") {
        pod::divisor(resource);
    }
}

/// The sources that pods and persistent volumes share.
pub(super) fn source(owner: &mut Fields) {
    if let Some(path) = child(owner, "hostPath") {
        fill(path, "type", "");
    }
    if let Some(iscsi) = child(owner, "iscsi") {
        fill_zero(iscsi, "iscsiInterface", "default");
    }
    if let Some(rbd) = child(owner, "rbd") {
        fill_zero(rbd, "pool", "rbd");
        fill_zero(rbd, "user", "admin");
        fill_zero(rbd, "keyring", "/etc/ceph/keyring");
    }
    if let Some(disk) = child(owner, "azureDisk") {
        fill(disk, "cachingMode", "ReadWrite");
        fill(disk, "fsType", "ext4");
        fill(disk, "readOnly", false);
        fill(disk, "kind", "Shared");
    }
    if let Some(scale_io) = child(owner, "scaleIO") {
        fill_zero(scale_io, "storageMode", "ThinProvisioned");
        fill_zero(scale_io, "fsType", "xfs");
    }
}
