//! `ConfigMaps`, Secrets, Namespaces and `ServiceAccounts`.

use serde_json::Value;

use super::{Errors, METADATA, SPEC, begin, formed};
use crate::field::FieldError;
use crate::meta::{complain, format, standard_finalizer, too_long};
use crate::path::Path;
use crate::value::{Fields, same};

/// The most that the data of a ConfigMap or a Secret may add up to.
const DATA_MAX_BYTES: usize = 1024 * 1024;

const IMMUTABLE: &str = "field is immutable when `immutable` is set";

/// What is wrong with a ConfigMap.
pub fn config_map(new: &Value, old: Option<&Value>) -> Errors {
    let mut errors = begin(new);
    if let Some(old) = old {
        stays_immutable(new, old, &["data", "binaryData"], &mut errors);
    }
    let mut bytes = 0;
    for (key, value) in new.entries("data") {
        let data = Path::new("data");
        let path = data.key(key);
        formed(key, &path, format::is_config_map_key, &mut errors);
        if new.at("binaryData").get(key).is_some() {
            errors.push(FieldError::invalid(path, key, "duplicate of key present in binaryData"));
        }
        bytes += value.as_str().unwrap_or_default().len();
    }
    for (key, value) in new.entries("binaryData") {
        formed(key, &Path::new("binaryData").key(key), format::is_config_map_key, &mut errors);
        bytes += decoded_len(value);
    }
    if bytes > DATA_MAX_BYTES {
        errors.push(too_long(&Path::new("[]"), DATA_MAX_BYTES));
    }
    errors
}

/// What is wrong with a Secret. `stringData` has been merged into `data` before.
pub fn secret(new: &Value, old: Option<&Value>) -> Errors {
    let mut errors = begin(new);
    let data = Path::new("data");
    if let Some(old) = old {
        if new.text("type") != old.text("type") {
            errors.push(FieldError::invalid(Path::new("type"), new.text("type"), "field is immutable"));
        }
        stays_immutable(new, old, &["data"], &mut errors);
    }
    let mut bytes = 0;
    for (key, value) in new.entries("data") {
        formed(key, &data.key(key), format::is_config_map_key, &mut errors);
        bytes += decoded_len(value);
    }
    if bytes > DATA_MAX_BYTES {
        errors.push(too_long(&data, DATA_MAX_BYTES));
    }
    secret_type(new, &data, &mut errors);
    errors
}

/// What a Secret must have because of its type.
fn secret_type(secret: &Value, data: &Path<'_>, errors: &mut Errors) {
    let has = |key: &str| secret.at("data").has(key);
    let mut need = |key: &str| errors.push(FieldError::required(data.key(key), ""));
    match secret.text("type") {
        "kubernetes.io/service-account-token" => {
            let account = "kubernetes.io/service-account.name";
            if secret.at("metadata").at("annotations").text(account).is_empty() {
                errors.push(FieldError::required(METADATA.field("annotations").key(account), ""));
            }
        }
        "kubernetes.io/dockercfg" => docker_config(secret, ".dockercfg", data, errors),
        "kubernetes.io/dockerconfigjson" => docker_config(secret, ".dockerconfigjson", data, errors),
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            need("username");
            need("password");
        }
        "kubernetes.io/ssh-auth" if secret.at("data").text("ssh-privatekey").is_empty() => need("ssh-privatekey"),
        "kubernetes.io/tls" => {
            for key in ["tls.crt", "tls.key"] {
                if !has(key) {
                    need(key);
                }
            }
        }
        _ => {}
    }
}

/// Credentials for a registry are JSON. The words for JSON that cannot be read are not those of the Go library.
fn docker_config(secret: &Value, key: &str, data: &Path<'_>, errors: &mut Errors) {
    use base64::Engine as _;

    let Some(text) = secret.at("data").at(key).as_str() else {
        errors.push(FieldError::required(data.key(key), ""));
        return;
    };
    let bytes = base64::engine::general_purpose::STANDARD.decode(text).unwrap_or_default();
    let complaint = match serde_json::from_slice::<serde_json::Map<String, Value>>(&bytes) {
        Ok(_) => return,
        Err(_) if bytes.is_empty() => "unexpected end of JSON input".to_owned(),
        Err(_) if bytes == b"null" => return,
        Err(error) if error.is_eof() => "unexpected end of JSON input".to_owned(),
        Err(_) => crate::json_syntax::explain(&bytes),
    };
    errors.push(FieldError::invalid(data.key(key), "<secret contents redacted>", complaint));
}

/// What is wrong with a Namespace.
pub fn namespace(new: &Value, _old: Option<&Value>) -> Errors {
    let mut errors = begin(new);
    let path = SPEC.field("finalizers");
    for name in new.at("spec").texts("finalizers") {
        complain(&mut errors, &path, name, format::is_qualified_name(name));
        standard_finalizer(name, &path, &mut errors);
    }
    errors
}

/// What is wrong with a Namespace that is given to its `finalize` subresource.
pub fn namespace_finalize(new: &Value, _old: Option<&Value>) -> Errors {
    let mut errors = begin(new);
    let path = SPEC.field("finalizers");
    for (i, name) in new.at("spec").texts("finalizers").enumerate() {
        let path = path.index(i);
        complain(&mut errors, &path, name, format::is_qualified_name(name));
        standard_finalizer(name, &path, &mut errors);
    }
    errors
}

/// Once `immutable` is set, it stays set and the data stays as it is.
fn stays_immutable(new: &Value, old: &Value, fields: &[&str], errors: &mut Errors) {
    if !old.flag("immutable") {
        return;
    }
    if !new.flag("immutable") {
        errors.push(FieldError::forbidden("immutable", IMMUTABLE));
    }
    for field in fields {
        if !same(new.at(field), old.at(field)) {
            errors.push(FieldError::forbidden(*field, IMMUTABLE));
        }
    }
}

/// How many bytes a value has that is written in base64.
fn decoded_len(value: &Value) -> usize {
    let text = value.as_str().unwrap_or_default();
    (text.len() / 4 * 3).saturating_sub(text.bytes().rev().take_while(|b| *b == b'=').count())
}
