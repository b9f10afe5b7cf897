//! `PersistentVolumes`, their claims, `StorageClasses` and `VolumeAttachments`.

use serde_json::Value;

use super::pod::resources::{amount, quantity};
use super::pod::schedule::node_selector;
use super::{Errors, SPEC, begin, formed, immutable, required, shown};
use crate::field::FieldError;
use crate::meta::{format, selector};
use crate::path::Path;
use crate::value::{Fields, same};

const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];

/// The kinds of volumes, in the order in which they are looked at.
const SOURCES: [&str; 22] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];

/// What is wrong with a `PersistentVolumeClaim`.
pub fn persistent_volume_claim(new: &Value, old: Option<&Value>) -> Errors {
    let mut errors = begin(new);
    claim_spec(new.at("spec"), &SPEC, &mut errors);
    if let Some(old) = old {
        claim_update(new, old, &mut errors);
    }
    errors
}

/// What is wrong with the spec of a claim.
pub fn claim_spec(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    if spec.list("accessModes").is_empty() {
        errors.push(FieldError::required(path.field("accessModes"), "at least 1 access mode is required"));
    }
    selector::validate(spec.at("selector"), &path.field("selector"), errors);
    access_modes(spec, path, errors);
    let resources = path.field("resources");
    let storage = resources.key("storage");
    let request = spec.at("resources").at("requests").at("storage");
    match amount(request) {
        None => errors.push(FieldError::required(storage, "")),
        Some(size) if size.is_negative() || size.is_zero() => {
            errors.push(FieldError::invalid(storage, size.canonical(), "must be greater than zero"));
        }
        Some(_) => quantity("storage", request, &storage, errors),
    }
    class_and_mode(spec, path, errors);
    for field in ["dataSource", "dataSourceRef"] {
        data_source(spec.at(field), &path.field(field), errors);
    }
    if !spec.text("volumeAttributesClassName").is_empty() {
        let path = path.field("volumeAttributesClassName");
        formed(spec.text("volumeAttributesClassName"), &path, format::is_dns_subdomain, errors);
    }
}

fn class_and_mode(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let class = spec.text("storageClassName");
    if !class.is_empty() {
        formed(class, &path.field("storageClassName"), format::is_dns_subdomain, errors);
    }
    if let Some(mode) = spec.at("volumeMode").as_str().filter(|mode| !VOLUME_MODES.contains(mode)) {
        errors.push(FieldError::not_supported(path.field("volumeMode"), mode, &VOLUME_MODES));
    }
}

fn data_source(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    if source.is_null() {
        return;
    }
    required(source, "name", path, errors);
    required(source, "kind", path, errors);
    let (group, kind) = (source.text("apiGroup"), source.text("kind"));
    if group.is_empty() && kind != "PersistentVolumeClaim" {
        let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        errors.push(FieldError::invalid(path, kind, detail));
    }
    if !group.is_empty() {
        formed(group, &path.field("apiGroup"), format::is_dns_subdomain, errors);
    }
}

fn access_modes(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.field("accessModes");
    let (mut alone, mut others) = (false, false);
    for mode in spec.texts("accessModes") {
        if !ACCESS_MODES.contains(&mode) {
            errors.push(FieldError::not_supported(path, mode, &ACCESS_MODES));
        } else if mode == "ReadWriteOncePod" {
            alone = true;
        } else {
            others = true;
        }
    }
    if alone && others {
        errors.push(FieldError::forbidden(path, "may not use ReadWriteOncePod with other access modes"));
    }
}

/// A claim can be bound, and grow once it is bound; nothing else.
fn claim_update(new: &Value, old: &Value, errors: &mut Errors) {
    let (is, was) = (new.at("spec"), old.at("spec"));
    let bound = new.at("status").text("phase") == "Bound";
    let mut allowed = was.clone();
    let Some(fields) = allowed.as_object_mut() else { return };
    if was.text("volumeName").is_empty() {
        fields.insert("volumeName".into(), is.at("volumeName").clone());
    }
    if !was.has("storageClassName") {
        fields.insert("storageClassName".into(), is.at("storageClassName").clone());
    }
    if bound {
        fields.insert("volumeAttributesClassName".into(), is.at("volumeAttributesClassName").clone());
        let requests = fields.get_mut("resources").and_then(|resources| resources.get_mut("requests"));
        if let Some(requests) = requests.and_then(Value::as_object_mut) {
            requests.insert("storage".into(), is.at("resources").at("requests").at("storage").clone());
        }
    }
    if !same(is, &allowed) {
        let detail = format!(
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n-{allowed}\n+{is}\n"
        );
        errors.push(FieldError::forbidden(SPEC, detail));
    }
    let size = |object: &Value| amount(object.at("spec").at("resources").at("requests").at("storage"));
    let capacity = amount(old.at("status").at("capacity").at("storage"));
    if size(new) < size(old) && size(new) <= capacity {
        let path = "spec.resources.requests.storage";
        errors.push(FieldError::forbidden(path, "field can not be less than status.capacity"));
    }
    immutable(is.at("volumeMode"), was.at("volumeMode"), &Path::new("volumeMode"), errors);
}

/// What is wrong with a `PersistentVolume`.
pub fn persistent_volume(new: &Value, old: Option<&Value>) -> Errors {
    let mut errors = begin(new);
    let spec = new.at("spec");
    if spec.list("accessModes").is_empty() {
        errors.push(FieldError::required(SPEC.field("accessModes"), ""));
    }
    access_modes(spec, &SPEC, &mut errors);
    capacity(spec, &mut errors);
    let policies = ["Delete", "Recycle", "Retain"];
    let policy = spec.text("persistentVolumeReclaimPolicy");
    if !policy.is_empty() && !policies.contains(&policy) {
        let path = SPEC.field("persistentVolumeReclaimPolicy");
        errors.push(FieldError::not_supported(path, policy, &policies));
    }
    let affinity = spec.at("nodeAffinity");
    if !affinity.is_null() {
        let path = SPEC.field("nodeAffinity");
        if affinity.has("required") {
            node_selector(affinity.at("required"), &path.field("required"), &mut errors);
        } else {
            errors.push(FieldError::required(path.field("required"), "must specify required node constraints"));
        }
    }
    volume_source(spec, &mut errors);
    class_and_mode(spec, &SPEC, &mut errors);
    if let Some(old) = old.map(|old| old.at("spec")) {
        if SOURCES.iter().any(|source| !same(spec.at(source), old.at(source))) {
            let shown = |spec: &Value| {
                SOURCES.iter().find(|source| spec.has(source)).map_or(Value::Null, |s| spec.at(s).clone())
            };
            let detail =
                format!("spec.persistentvolumesource is immutable after creation\n-{}\n+{}\n", shown(old), shown(spec));
            errors.push(FieldError::forbidden(SPEC.field("persistentvolumesource"), detail));
        }
        immutable(spec.at("volumeMode"), old.at("volumeMode"), &Path::new("volumeMode"), &mut errors);
        if old.has("nodeAffinity") {
            immutable(affinity, old.at("nodeAffinity"), &Path::new("nodeAffinity"), &mut errors);
        }
    }
    errors
}

fn capacity(spec: &Value, errors: &mut Errors) {
    let path = SPEC.field("capacity");
    let capacity = spec.map("capacity");
    if capacity.is_none_or(serde_json::Map::is_empty) {
        errors.push(FieldError::required(path, ""));
    }
    if capacity.is_none_or(|capacity| !capacity.contains_key("storage") || capacity.len() > 1) {
        errors.push(FieldError::not_supported(path, spec.at("capacity").clone(), &["storage"]));
    }
    for (resource, value) in spec.entries("capacity") {
        let path = path.key(resource);
        let Some(size) = amount(value) else { continue };
        if size.units() < 0 {
            errors.push(FieldError::invalid(path, size.units(), "must be a valid resource quantity"));
        }
        if size.is_negative() || size.is_zero() {
            errors.push(FieldError::invalid(path, size.canonical(), "must be greater than zero"));
        }
    }
}

fn volume_source(spec: &Value, errors: &mut Errors) {
    let mut sources = SOURCES.iter().filter(|source| spec.has(source));
    match sources.next() {
        None => errors.push(FieldError::required(SPEC, "must specify a volume type")),
        Some(&"hostPath") => required(spec.at("hostPath"), "path", &SPEC.field("hostPath"), errors),
        Some(&"nfs") => {
            required(spec.at("nfs"), "server", &SPEC.field("nfs"), errors);
            required(spec.at("nfs"), "path", &SPEC.field("nfs"), errors);
        }
        Some(&"local") => {
            required(spec.at("local"), "path", &SPEC.field("local"), errors);
            if !spec.has("nodeAffinity") {
                let detail = "Local volume requires node affinity";
                errors.push(FieldError::required(SPEC.field("nodeAffinity"), detail));
            }
        }
        Some(&"csi") => {
            required(spec.at("csi"), "driver", &SPEC.field("csi"), errors);
            required(spec.at("csi"), "volumeHandle", &SPEC.field("csi"), errors);
        }
        Some(_) => {}
    }
    for source in sources {
        errors.push(FieldError::forbidden(SPEC.field(source), "may not specify more than 1 volume type"));
    }
}

/// What is wrong with a `StorageClass`.
pub fn storage_class(new: &Value, old: Option<&Value>) -> Errors {
    let mut errors = begin(new);
    let provisioner = new.text("provisioner");
    if provisioner.is_empty() {
        errors.push(FieldError::required("provisioner", ""));
    } else {
        formed(&provisioner.to_lowercase(), &Path::new("provisioner"), format::is_qualified_name, &mut errors);
    }
    parameters(new, &mut errors);
    let policy = new.text("reclaimPolicy");
    if !policy.is_empty() && !matches!(policy, "Delete" | "Retain") {
        errors.push(FieldError::not_supported("reclaimPolicy", policy, &["Delete", "Retain"]));
    }
    match new.at("volumeBindingMode").as_str() {
        None => errors.push(FieldError::required("volumeBindingMode", "")),
        Some("Immediate" | "WaitForFirstConsumer") => {}
        Some(other) => {
            let known = ["Immediate", "WaitForFirstConsumer"];
            errors.push(FieldError::not_supported("volumeBindingMode", other, &known));
        }
    }
    if let Some(old) = old {
        for field in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
            immutable(new.at(field), old.at(field), &Path::new(field), &mut errors);
        }
    }
    errors
}

fn parameters(class: &Value, errors: &mut Errors) {
    const COUNT_MAX: usize = 512;
    const BYTES_MAX: usize = 256 * 1024;
    let path = Path::new("parameters");
    let count = class.entries("parameters").count();
    if count > COUNT_MAX {
        let detail = format!("may not be more than {COUNT_MAX} bytes");
        errors.push(FieldError::new(crate::field::Problem::TooLong, path, Value::Null, detail));
        return;
    }
    let mut bytes = 0;
    for (key, value) in class.entries("parameters") {
        if key.is_empty() {
            errors.push(FieldError::invalid(path, key, "field can not be empty."));
        }
        bytes += key.len() + value.as_str().unwrap_or_default().len();
    }
    if bytes > BYTES_MAX {
        errors.push(crate::meta::too_long(&path, BYTES_MAX));
    }
}

/// What is wrong with a `VolumeAttachment`.
pub fn volume_attachment(new: &Value, old: Option<&Value>) -> Errors {
    let mut errors = begin(new);
    let spec = new.at("spec");
    match spec.text("attacher") {
        "" => errors.push(FieldError::required(SPEC.field("attacher"), "")),
        attacher => {
            if attacher.len() > 63 {
                errors.push(crate::meta::too_long(&SPEC.field("attacher"), 63));
            }
            formed(&attacher.to_lowercase(), &SPEC.field("attacher"), format::is_dns_subdomain, &mut errors);
        }
    }
    let (source, path) = (spec.at("source"), SPEC.field("source"));
    match (source.at("persistentVolumeName").as_str(), source.has("inlineVolumeSpec")) {
        (None, false) => {
            let detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
            errors.push(FieldError::required(path, detail));
        }
        (Some(_), true) => {
            let detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
            errors.push(FieldError::forbidden(path, detail));
        }
        (Some(name), false) => {
            let path = path.field("persistentVolumeName");
            if name.is_empty() {
                errors.push(FieldError::required(path, "must specify non empty persistentVolumeName"));
            } else {
                formed(name, &path, format::is_dns_subdomain, &mut errors);
            }
        }
        (None, true) => {}
    }
    formed(spec.text("nodeName"), &SPEC.field("nodeName"), format::is_dns_subdomain, &mut errors);
    if old.is_some_and(|old| !same(spec, old.at("spec"))) {
        let text = format!(
            "{{\"Attacher\":{},\"Source\":{},\"NodeName\":{}}}",
            spec.at("attacher"),
            shown(source, &["persistentVolumeName", "inlineVolumeSpec"]),
            spec.at("nodeName")
        );
        errors.push(FieldError::invalid(SPEC, spec.clone(), "field is immutable").showing(text));
    }
    errors
}
