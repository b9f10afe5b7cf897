//! Volumes, their classes, and what attaches them.

use jiff::Timestamp;
use serde_json::Value;

use super::{NONE, UNSET, age, flag, is_terminating, joined, list, name, text};
use crate::builtin::Column;
use crate::quantity::Quantity;

/// The columns of [`persistent_volume`].
pub(in crate::builtin) const VOLUME_COLUMNS: &[Column] = &[
    Column::NAME,
    Column::string("Capacity"),
    Column::string("Access Modes"),
    Column::string("Reclaim Policy"),
    Column::string("Status"),
    Column::string("Claim"),
    Column::string("StorageClass"),
    Column::string("VolumeAttributesClass"),
    Column::string("Reason"),
    Column::AGE,
    Column::wide("VolumeMode"),
];

/// `PersistentVolume`.
pub(in crate::builtin) fn persistent_volume(object: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let claim = match &spec["claimRef"] {
        Value::Null => String::new(),
        claim => format!("{}/{}", text(&claim["namespace"]), text(&claim["name"])),
    };
    vec![
        name(object),
        storage(&spec["capacity"]).into(),
        access_modes(&spec["accessModes"]).into(),
        text(&spec["persistentVolumeReclaimPolicy"]).into(),
        phase(object).into(),
        claim.into(),
        class(object).into(),
        spec["volumeAttributesClassName"].as_str().unwrap_or(UNSET).into(),
        text(&status["reason"]).into(),
        age(object, now),
        spec["volumeMode"].as_str().unwrap_or(UNSET).into(),
    ]
}

/// The columns of [`claim`].
pub(in crate::builtin) const CLAIM_COLUMNS: &[Column] = &[
    Column::NAME,
    Column::string("Status"),
    Column::string("Volume"),
    Column::string("Capacity"),
    Column::string("Access Modes"),
    Column::string("StorageClass"),
    Column::string("VolumeAttributesClass"),
    Column::AGE,
    Column::wide("VolumeMode"),
];

/// `PersistentVolumeClaim`. What it got is shown once it has a volume.
pub(in crate::builtin) fn claim(object: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let volume = text(&spec["volumeName"]);
    let (capacity, modes) = if volume.is_empty() {
        (String::new(), String::new())
    } else {
        (storage(&status["capacity"]), access_modes(&status["accessModes"]))
    };
    vec![
        name(object),
        phase(object).into(),
        volume.into(),
        capacity.into(),
        modes.into(),
        class(object).into(),
        spec["volumeAttributesClassName"].as_str().unwrap_or(UNSET).into(),
        age(object, now),
        spec["volumeMode"].as_str().unwrap_or(UNSET).into(),
    ]
}

/// The amount of storage among other amounts.
fn storage(amounts: &Value) -> String {
    let amount = &amounts["storage"];
    let written = amount.as_str().map_or_else(|| amount.as_i64().unwrap_or_default().to_string(), str::to_owned);
    Quantity::parse(&written).map(Quantity::canonical).unwrap_or(written)
}

fn phase(object: &Value) -> &str {
    if is_terminating(object) { "Terminating" } else { text(&object["status"]["phase"]) }
}

/// The storage class; an annotation from before there was a field comes first.
fn class(object: &Value) -> &str {
    let annotation = &object["metadata"]["annotations"]["volume.beta.kubernetes.io/storage-class"];
    annotation.as_str().unwrap_or_else(|| text(&object["spec"]["storageClassName"]))
}

fn access_modes(modes: &Value) -> String {
    let short =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    let given = list(modes);
    joined(short.iter().filter(|(mode, _)| given.iter().any(|given| given == mode)).map(|(_, short)| *short))
}

/// The columns of [`storage_class`].
pub(in crate::builtin) const CLASS_COLUMNS: &[Column] = &[
    Column::NAME,
    Column::string("Provisioner"),
    Column::string("ReclaimPolicy"),
    Column::string("VolumeBindingMode"),
    Column::string("AllowVolumeExpansion"),
    Column::AGE,
];

/// `StorageClass`.
pub(in crate::builtin) fn storage_class(object: &Value, now: Timestamp) -> Vec<Value> {
    let annotations = &object["metadata"]["annotations"];
    let default = ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"]
        .iter()
        .any(|annotation| annotations[annotation] == "true");
    let name = text(&object["metadata"]["name"]);
    vec![
        if default { format!("{name} (default)").into() } else { name.into() },
        text(&object["provisioner"]).into(),
        object["reclaimPolicy"].as_str().unwrap_or("Delete").into(),
        object["volumeBindingMode"].as_str().unwrap_or("Immediate").into(),
        flag(&object["allowVolumeExpansion"]).into(),
        age(object, now),
    ]
}

/// The columns of [`attachment`].
pub(in crate::builtin) const ATTACHMENT_COLUMNS: &[Column] = &[
    Column::NAME,
    Column { name: "Attacher", type_: "string", format: "name", priority: 0 },
    Column::string("PV"),
    Column::string("Node"),
    Column::boolean("Attached"),
    Column::AGE,
];

/// `VolumeAttachment`.
pub(in crate::builtin) fn attachment(object: &Value, now: Timestamp) -> Vec<Value> {
    let spec = &object["spec"];
    vec![
        name(object),
        text(&spec["attacher"]).into(),
        text(&spec["source"]["persistentVolumeName"]).into(),
        text(&spec["nodeName"]).into(),
        flag(&object["status"]["attached"]).into(),
        age(object, now),
    ]
}

/// The columns of [`csi_driver`].
pub(in crate::builtin) const DRIVER_COLUMNS: &[Column] = &[
    Column::NAME,
    Column::boolean("AttachRequired"),
    Column::boolean("PodInfoOnMount"),
    Column::boolean("StorageCapacity"),
    Column::string("TokenRequests"),
    Column::boolean("RequiresRepublish"),
    Column::string("Modes"),
    Column::AGE,
];

/// `CSIDriver`.
pub(in crate::builtin) fn csi_driver(object: &Value, now: Timestamp) -> Vec<Value> {
    let spec = &object["spec"];
    let tokens = match &spec["tokenRequests"] {
        Value::Null => UNSET.to_owned(),
        requests => joined(list(requests).iter().map(|request| text(&request["audience"]))),
    };
    let modes = joined(list(&spec["volumeLifecycleModes"]).iter().map(text));
    vec![
        name(object),
        spec["attachRequired"].as_bool().unwrap_or(true).into(),
        flag(&spec["podInfoOnMount"]).into(),
        flag(&spec["storageCapacity"]).into(),
        tokens.into(),
        flag(&spec["requiresRepublish"]).into(),
        if modes.is_empty() { NONE.into() } else { modes.into() },
        age(object, now),
    ]
}

/// The columns of [`csi_node`].
pub(in crate::builtin) const NODE_COLUMNS: &[Column] = &[Column::NAME, Column::integer("Drivers"), Column::AGE];

/// `CSINode`.
pub(in crate::builtin) fn csi_node(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), list(&object["spec"]["drivers"]).len().into(), age(object, now)]
}
