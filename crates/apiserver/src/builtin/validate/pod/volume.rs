//! The volumes of a pod, and where containers mount them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::container::{field_reference, resource_reference};
use super::{Volumes, resources};
use crate::builtin::validate::{Errors, formed, not_found, required};
use crate::field::FieldError;
use crate::meta::format;
use crate::path::Path;
use crate::quantity::Quantity;
use crate::value::Fields;

/// The kinds of volumes, in the order in which they are looked at.
const SOURCES: [&str; 30] = [
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
];

const MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";

/// What is wrong with the volumes of a pod; returns the ones that are sound, and those that were there before.
pub fn volumes<'a>(spec: &'a Value, added: &Volumes<'a>, path: &Path<'_>, errors: &mut Errors) -> Volumes<'a> {
    let mut sound = added.clone();
    for (i, volume) in spec.list("volumes").iter().enumerate() {
        let path = path.index(i);
        let name = volume.text("name");
        if added.contains_key(name) {
            continue;
        }
        let before = errors.len();
        source(volume, &path, errors);
        if name.is_empty() {
            errors.push(FieldError::required(path.field("name"), ""));
        } else {
            formed(name, &path.field("name"), format::is_dns_label, errors);
        }
        if sound.contains_key(name) {
            errors.push(FieldError::duplicate(path.field("name"), name));
        }
        if errors.len() == before {
            sound.insert(name, volume);
        }
    }
    sound
}

fn source(volume: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut found = false;
    for kind in SOURCES {
        let source = volume.at(kind);
        if source.is_null() {
            continue;
        }
        let path = path.field(kind);
        if found {
            errors.push(FieldError::forbidden(path, "may not specify more than 1 volume type"));
            continue;
        }
        found = true;
        match kind {
            "emptyDir" if resources::amount(source.at("sizeLimit")).is_some_and(Quantity::is_negative) => {
                let detail = "SizeLimit field must be a valid resource quantity";
                errors.push(FieldError::forbidden(path.field("sizeLimit"), detail));
            }
            "hostPath" => host_path(source, &path, errors),
            "secret" => keys(source, "secretName", &path, errors),
            "configMap" => keys(source, "name", &path, errors),
            "persistentVolumeClaim" => required(source, "claimName", &path, errors),
            "nfs" => nfs(source, &path, errors),
            "downwardAPI" => {
                mode(source, "defaultMode", &path, errors);
                for file in source.list("items") {
                    downward_file(file, &path, errors);
                }
            }
            "projected" => projected(source, &path, errors),
            "csi" => required(source, "driver", &path, errors),
            "ephemeral" if !source.has("volumeClaimTemplate") => {
                errors.push(FieldError::required(path.field("volumeClaimTemplate"), ""));
            }
            _ => {}
        }
    }
    if !found {
        errors.push(FieldError::required(path, "must specify a volume type"));
    }
}

fn mode(source: &Value, field: &str, path: &Path<'_>, errors: &mut Errors) {
    if let Some(mode) = source.int(field).filter(|mode| !(0..=0o777).contains(mode)) {
        errors.push(FieldError::invalid(path.field(field), mode, MODE));
    }
}

fn host_path(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let types = ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
    if source.text("path").is_empty() {
        errors.push(FieldError::required(path.field("path"), ""));
        return;
    }
    no_backsteps(source.text("path"), &path.field("path"), errors);
    if let Some(kind) = source.at("type").as_str().filter(|kind| !types.contains(kind)) {
        errors.push(FieldError::not_supported(path.field("type"), kind, &types));
    }
}

fn nfs(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    required(source, "server", path, errors);
    required(source, "path", path, errors);
    let target = source.text("path");
    if !target.is_empty() && !target.starts_with('/') {
        errors.push(FieldError::invalid(path.field("path"), target, "must be an absolute path"));
    }
}

fn keys(source: &Value, name: &str, path: &Path<'_>, errors: &mut Errors) {
    required(source, name, path, errors);
    mode(source, "defaultMode", path, errors);
    key_paths(source, path, errors);
}

fn key_paths(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let items = path.field("items");
    for (i, item) in source.list("items").iter().enumerate() {
        let path = items.index(i);
        required(item, "key", &path, errors);
        required(item, "path", &path, errors);
        local_path(item.text("path"), &path.field("path"), errors);
        mode(item, "mode", &path, errors);
    }
}

fn downward_file(file: &Value, path: &Path<'_>, errors: &mut Errors) {
    const FIELDS: [&str; 5] =
        ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];
    required(file, "path", path, errors);
    local_path(file.text("path"), &path.field("path"), errors);
    if file.has("fieldRef") {
        field_reference(file.at("fieldRef"), &FIELDS, &path.field("fieldRef"), errors);
        if file.has("resourceFieldRef") {
            let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
            errors.push(FieldError::invalid(path, "resource", detail));
        }
    } else if file.has("resourceFieldRef") {
        resource_reference(file.at("resourceFieldRef"), true, &path.field("resourceFieldRef"), errors);
    } else {
        errors.push(FieldError::required(path, "one of fieldRef and resourceFieldRef is required"));
    }
    mode(file, "mode", path, errors);
}

fn projected(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let sources = path.field("sources");
    let mut paths = BTreeSet::new();
    for (i, source) in source.list("sources").iter().enumerate() {
        let at = sources.index(i);
        let mut conflict = |target: &str, shown: &str, errors: &mut Errors| {
            if !target.is_empty() && !paths.insert(target.to_owned()) {
                errors.push(FieldError::invalid(path, shown, "conflicting duplicate paths"));
            }
        };
        for kind in ["secret", "configMap"].into_iter().filter(|kind| source.has(kind)) {
            let (source, at) = (source.at(kind), at.field(kind));
            required(source, "name", &at, errors);
            key_paths(source, &at, errors);
            for item in source.list("items") {
                conflict(item.text("path"), source.text("name"), errors);
            }
        }
        for file in source.at("downwardAPI").list("items") {
            downward_file(file, &at.field("downwardAPI"), errors);
            conflict(file.text("path"), file.text("path"), errors);
        }
        if source.has("serviceAccountToken") {
            let (token, at) = (source.at("serviceAccountToken"), at.field("serviceAccountToken"));
            let seconds = token.int("expirationSeconds").unwrap_or(3600);
            if seconds < 600 {
                let detail = "may not specify a duration less than 10 minutes";
                errors.push(FieldError::invalid(at.field("expirationSeconds"), seconds, detail));
            }
            if seconds > 1 << 32 {
                let detail = "may not specify a duration larger than 2^32 seconds";
                errors.push(FieldError::invalid(at.field("expirationSeconds"), seconds, detail));
            }
            required(token, "path", path, errors);
            local_path(token.text("path"), &path.field("path"), errors);
        }
    }
    mode(source, "defaultMode", path, errors);
}

fn no_backsteps(target: &str, path: &Path<'_>, errors: &mut Errors) {
    if target.split('/').any(|part| part == "..") {
        errors.push(FieldError::invalid(path, target, "must not contain '..'"));
    }
}

fn descending_path(target: &str, path: &Path<'_>, errors: &mut Errors) {
    if target.starts_with('/') {
        errors.push(FieldError::invalid(path, target, "must be a relative path"));
    }
    no_backsteps(target, path, errors);
}

fn local_path(target: &str, path: &Path<'_>, errors: &mut Errors) {
    descending_path(target, path, errors);
    if target.starts_with("..") && !target.starts_with("../") {
        errors.push(FieldError::invalid(path, target, "must not start with '..'"));
    }
}

/// What is wrong with the mounts and block devices of a container.
pub fn mounts(container: &Value, volumes: &Volumes<'_>, path: &Path<'_>, errors: &mut Errors) {
    let (mounts, devices) = (container.list("volumeMounts"), container.list("volumeDevices"));
    let list = path.field("volumeMounts");
    for (i, mount) in mounts.iter().enumerate() {
        let path = list.index(i);
        let (name, target) = (mount.text("name"), mount.text("mountPath"));
        required(mount, "name", &path, errors);
        if !volumes.contains_key(name) {
            errors.push(not_found(&path.field("name"), name));
        }
        required(mount, "mountPath", &path, errors);
        if mounts[..i].iter().any(|other| other.text("mountPath") == target) {
            errors.push(FieldError::invalid(path.field("mountPath"), target, "must be unique"));
        }
        if devices.iter().any(|device| device.text("name") == name) {
            errors.push(FieldError::invalid(path.field("name"), name, "must not already exist in volumeDevices"));
        }
        if devices.iter().any(|device| device.text("devicePath") == target) {
            let detail = "must not already exist as a path in volumeDevices";
            errors.push(FieldError::invalid(path.field("mountPath"), target, detail));
        }
        let (sub_path, expression) = (mount.text("subPath"), mount.text("subPathExpr"));
        descending_path(sub_path, &list.field("subPath"), errors);
        if !expression.is_empty() && !sub_path.is_empty() {
            let detail = "subPathExpr and subPath are mutually exclusive";
            errors.push(FieldError::invalid(path.field("subPathExpr"), expression, detail));
        }
        descending_path(expression, &list.field("subPathExpr"), errors);
        propagation(mount, container, &list.field("mountPropagation"), errors);
    }
    block_devices(mounts, devices, volumes, &path.field("volumeDevices"), errors);
}

fn propagation(mount: &Value, container: &Value, path: &Path<'_>, errors: &mut Errors) {
    let known = ["Bidirectional", "HostToContainer", "None"];
    let Some(mode) = mount.at("mountPropagation").as_str() else { return };
    if !known.contains(&mode) {
        errors.push(FieldError::not_supported(path, mode, &known));
    }
    if mode == "Bidirectional" && !container.at("securityContext").flag("privileged") {
        let detail = "Bidirectional mount propagation is available only to privileged containers";
        errors.push(FieldError::forbidden(path, detail));
    }
}

fn block_devices(mounts: &[Value], devices: &[Value], volumes: &Volumes<'_>, path: &Path<'_>, errors: &mut Errors) {
    for (i, device) in devices.iter().enumerate() {
        let path = path.index(i);
        let (name, target) = (device.text("name"), device.text("devicePath"));
        required(device, "name", &path, errors);
        let mut name_is = |detail: &str| errors.push(FieldError::invalid(path.field("name"), name, detail));
        if !name.is_empty() && devices[..i].iter().any(|other| other.text("name") == name) {
            name_is("must be unique");
        }
        match volumes.get(name) {
            Some(volume) if !volume.has("persistentVolumeClaim") && !volume.has("ephemeral") => {
                name_is("can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode");
            }
            Some(_) => {}
            None => errors.push(not_found(&path.field("name"), name)),
        }
        required(device, "devicePath", &path, errors);
        let mut target_is = |detail: &str| errors.push(FieldError::invalid(path.field("devicePath"), target, detail));
        if devices[..i].iter().any(|other| other.text("devicePath") == target) {
            target_is("must be unique");
        }
        if target.split('/').any(|part| part == "..") {
            target_is("can not contain backsteps ('..')");
        }
        if mounts.iter().any(|mount| mount.text("name") == name) {
            let detail = "must not already exist in volumeMounts";
            errors.push(FieldError::invalid(path.field("name"), name, detail));
        }
        if mounts.iter().any(|mount| mount.text("mountPath") == target) {
            let detail = "must not already exist as a path in volumeMounts";
            errors.push(FieldError::invalid(path.field("devicePath"), target, detail));
        }
    }
}
