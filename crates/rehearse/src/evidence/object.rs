//! Fields of objects, as far as they are there.

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_apiserver::selector::LabelSelector;

/// A text in an object; nothing where it is not.
pub(super) fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// A text in an object, where it is one and says something.
pub(super) fn some_text(object: &Value, pointer: &str) -> Option<String> {
    Some(text(object, pointer)).filter(|text| !text.is_empty()).map(str::to_owned)
}

/// The elements of a list in an object.
pub(super) fn list<'v>(object: &'v Value, pointer: &str) -> impl Iterator<Item = &'v Value> + use<'v> {
    object.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// Whether a field is `true`.
pub(super) fn is_true(object: &Value, pointer: &str) -> bool {
    object.pointer(pointer).and_then(Value::as_bool).unwrap_or_default()
}

pub(super) fn name_of(object: &Value) -> &str {
    text(object, "/metadata/name")
}

pub(super) fn namespace_of(object: &Value) -> &str {
    text(object, "/metadata/namespace")
}

/// `web/web-0`, and `node-1` where there is no namespace.
pub(super) fn full_name(object: &Value) -> String {
    match namespace_of(object) {
        "" => name_of(object).to_owned(),
        namespace => format!("{namespace}/{}", name_of(object)),
    }
}

/// `Pod web/web-0`.
pub(super) fn shown(object: &Value) -> String {
    format!("{} {}", text(object, "/kind"), full_name(object))
}

pub(super) fn label<'v>(object: &'v Value, key: &str) -> Option<&'v str> {
    object["metadata"]["labels"][key].as_str()
}

pub(super) fn annotation<'v>(object: &'v Value, key: &str) -> Option<&'v str> {
    object["metadata"]["annotations"][key].as_str()
}

/// The labels of an object.
pub(super) fn labels(object: &Value) -> BTreeMap<String, String> {
    let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
    labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// Whether a selector in an object is for something with these labels. One that is not there is for nothing.
pub(super) fn selects(selector: Option<&Value>, labels: &BTreeMap<String, String>) -> bool {
    LabelSelector::from_object(selector).is_ok_and(|selector| selector.matches(labels))
}

/// The condition of this type.
pub(super) fn condition<'v>(object: &'v Value, type_: &str) -> Option<&'v Value> {
    list(object, "/status/conditions").find(|condition| condition["type"] == type_)
}

/// What a condition says, in words.
pub(super) fn said(condition: &Value) -> String {
    let (reason, message) = (text(condition, "/reason"), text(condition, "/message"));
    match (reason, message) {
        ("", "") => "it does not say why".to_owned(),
        (reason, "") => reason.to_owned(),
        ("", message) => message.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
    }
}

/// The owner that makes an object again, as `Kind/name`.
pub(super) fn controller(object: &Value) -> Option<String> {
    let owner = list(object, "/metadata/ownerReferences").find(|owner| is_true(owner, "/controller"))?;
    Some(format!("{}/{}", text(owner, "/kind"), text(owner, "/name")))
}
