//! Releases in their three spellings: what is read, and what is refused in which words.

pub mod config_maps;
mod image;
pub mod objects;

use serde_json::Value;
use windlass_plan::release::{Release, ReleaseError};

/// The documents of a file.
pub fn documents(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).unwrap()
}

/// An error with its causes.
pub fn chain(error: &dyn std::error::Error) -> String {
    let cause = error.source().map(|cause| format!(": {}", chain(cause))).unwrap_or_default();
    format!("{error}{cause}")
}

/// That it is refused, in these words.
fn check_refused(read: Result<Release, ReleaseError>, refusal: &str) {
    let error = read.map(|release| release.name()).unwrap_err();
    let text = chain(&error);
    assert_eq!(text, refusal);
    assert!(text.contains(&error.object()) && text.contains(error.key()), "{text}");
}

/// Sets the value at a pointer of the document; `null` removes it.
fn with(documents: &mut [Value], number: usize, pointer: &str, value: Value) {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let parent = documents[number].pointer_mut(parent).unwrap();
    match (parent, value) {
        (Value::Object(fields), Value::Null) => drop(fields.remove(key).unwrap()),
        (Value::Object(fields), value) => drop(fields.insert(key.to_owned(), value)),
        (Value::Array(elements), Value::Null) => drop(elements.remove(key.parse().unwrap())),
        (Value::Array(elements), value) => elements[key.parse::<usize>().unwrap()] = value,
        (other, _) => panic!("{other} has no fields"),
    }
}
