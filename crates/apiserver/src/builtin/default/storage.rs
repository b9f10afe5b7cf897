//! Volumes that outlive pods.

use serde_json::{Value, json};

use super::{conditions, resources, spec_of, volume};
use crate::builtin::fill::{Fields, child, child_or_new, each, fill, fill_null, fill_zero};

/// `PersistentVolume`.
pub(in crate::builtin) fn persistent_volume(object: &mut Value) {
    let Some(spec) = spec_of(object) else { return };
    fill_zero(spec, "persistentVolumeReclaimPolicy", "Retain");
    fill(spec, "volumeMode", "Filesystem");
    resources::amounts(spec, "capacity");
    volume::source(spec);
    phase(object);
}

/// `PersistentVolumeClaim`.
pub(in crate::builtin) fn claim(object: &mut Value) {
    let Some(spec) = spec_of(object) else { return };
    claim_spec(spec);
    phase(object);
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        resources::amounts(status, "capacity");
        resources::amounts(status, "allocatedResources");
        conditions(status, &["lastProbeTime", "lastTransitionTime"]);
    }
}

/// The spec of a claim, or of a template of one.
pub(super) fn claim_spec(spec: &mut Fields) {
    fill(spec, "volumeMode", "Filesystem");
    resources::requirements(spec);
}

/// What is bound to nothing yet is pending.
fn phase(object: &mut Value) {
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        fill_zero(status, "phase", "Pending");
    }
}

/// `StorageClass`.
pub(in crate::builtin) fn storage_class(object: &mut Value) {
    let Some(fields) = object.as_object_mut() else { return };
    fill(fields, "reclaimPolicy", "Delete");
    fill(fields, "volumeBindingMode", "Immediate");
}

/// `VolumeAttachment`.
pub(in crate::builtin) fn volume_attachment(object: &mut Value) {
    let Some(fields) = object.as_object_mut() else { return };
    if let Some(spec) = child_or_new(fields, "spec") {
        child_or_new(spec, "source");
    }
    if let Some(status) = child_or_new(fields, "status") {
        fill(status, "attached", false);
        for error in ["attachError", "detachError"] {
            if let Some(error) = child(status, error) {
                fill_null(error, &["time"]);
            }
        }
    }
}

/// `CSIDriver`.
pub(in crate::builtin) fn csi_driver(object: &mut Value) {
    let Some(spec) = object.as_object_mut().and_then(|fields| child_or_new(fields, "spec")) else { return };
    fill(spec, "attachRequired", true);
    for name in ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"] {
        fill(spec, name, false);
    }
    fill(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    fill_zero(spec, "volumeLifecycleModes", json!(["Persistent"]));
}

/// `CSINode`.
pub(in crate::builtin) fn csi_node(object: &mut Value) {
    let Some(spec) = object.as_object_mut().and_then(|fields| child_or_new(fields, "spec")) else { return };
    fill_null(spec, &["drivers"]);
    each(spec, "drivers", |driver| fill_null(driver, &["topologyKeys"]));
}
