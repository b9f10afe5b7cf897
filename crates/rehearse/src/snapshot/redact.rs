//! Takes out of objects what is secret, as they arrive: a stand-in takes the place of each value.
//!
//! A stand-in says what it stands for, and nothing about the value. Where the same field of the same name has several values in
//! a snapshot, they are counted: what was equal is equal, and what differed differs, so that a rehearsal decides as it would have.
//!
//! What is secret by kind: the data of Secrets, credentials in `ConfigMaps`, files and users and commands of machines. What is so
//! anywhere: fields, variables and annotations that are called a password, a token or the like, and texts that are credentials
//! by their looks ([`sign`]).
//!
//! What risks are decided by is kept of that, as far as it is public: in which version an object was written and by whom
//! ([`origin`]), and when the certificates of a Secret end ([`certificate`]).

mod certificate;
mod cloud_config;
mod origin;
mod sign;

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use windlass_api::label;

/// Fields of what machines are told whose elements are secret, all of them: nobody knows what people write there.
const SECRET_LISTS: [&str; 4] = ["sshAuthorizedKeys", "preKubeadmCommands", "postKubeadmCommands", "bootCommands"];

/// Puts stand-ins into the objects of one snapshot. What it has seen is forgotten with it.
#[derive(Default)]
pub(super) struct Redactor {
    /// By what it was: the values, in the order in which they were met.
    seen: BTreeMap<String, Vec<Box<str>>>,
}

impl Redactor {
    /// Takes what is secret out of an object.
    pub(super) fn redact(&mut self, object: &mut Value) {
        origin::shorten(object);
        if let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
            self.named(annotations, "annotation");
        }
        match object["kind"].as_str() {
            // Stand-ins are all there is to look through in its data.
            Some("Secret") => {
                certificate::note(object);
                self.secret(object);
                return object.get_mut("metadata").into_iter().for_each(|metadata| self.walk(metadata));
            }
            Some("ConfigMap") => self.config_map(object),
            _ => {}
        }
        self.walk(object);
    }

    /// What stands for a value. Nothing stands for nothing.
    fn stand_in(&mut self, what: &str, value: &str) -> String {
        if value.is_empty() {
            return String::new();
        }
        let values = self.seen.entry(what.to_owned()).or_default();
        let index = values.iter().position(|seen| **seen == *value).unwrap_or_else(|| {
            values.push(value.into());
            values.len() - 1
        });
        match index {
            0 => format!("stand-in for {what}"),
            index => format!("stand-in {} for {what}", index + 1),
        }
    }

    /// Replaces the values of names that are called something secret.
    fn named(&mut self, fields: &mut Map<String, Value>, what: &str) {
        for (name, value) in fields {
            if let Value::String(text) = value
                && sign::is_secret_name(name, text)
            {
                *text = self.stand_in(&format!("the {what} {name}"), text);
            }
        }
    }

    fn secret(&mut self, secret: &mut Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let [namespace, name] = ["namespace", "name"].map(|field| text(&secret["metadata"][field]));
        for field in ["data", "stringData"] {
            let Some(values) = secret.get_mut(field).and_then(Value::as_object_mut) else { continue };
            for (key, value) in values {
                let written = text(value);
                let plain =
                    if field == "data" { STANDARD.decode(&written).unwrap_or_default() } else { written.into() };
                let what = format!("{key} of Secret {namespace}/{name}");
                let stand_in = self.secret_value(&what, key, &String::from_utf8_lossy(&plain));
                *value = Value::String(if field == "data" { STANDARD.encode(stand_in) } else { stand_in });
            }
        }
    }

    /// Where somebody reads a value as more than bytes, its stand-in can be read so, too.
    fn secret_value(&mut self, what: &str, key: &str, value: &str) -> String {
        if key == "format" && sign::BOOTSTRAP_FORMATS.contains(&value) {
            return value.to_owned();
        }
        if let Some(mut told) = cloud_config::told(value) {
            self.walk(&mut told);
            return cloud_config::render(&told);
        }
        let stand_in = self.stand_in(what, value);
        if stand_in.is_empty() {
            stand_in
        } else if value.starts_with("-----BEGIN ") {
            format!("-----BEGIN STAND-IN-----\n{stand_in}\n-----END STAND-IN-----\n")
        } else if key.rsplit_once('.').is_some_and(|(_, end)| ["yaml", "yml"].contains(&end)) {
            format!("# {stand_in}\n{{}}\n")
        } else {
            stand_in
        }
    }

    fn config_map(&mut self, map: &mut Value) {
        // What is kept of a release is public, and known by its digest.
        if !map["metadata"]["labels"][label::KEPT_RELEASE.name].is_null() {
            return;
        }
        if let Some(data) = map.get_mut("data").and_then(Value::as_object_mut) {
            self.named(data, "entry");
            for value in data.values_mut() {
                if let Value::String(text) = value {
                    self.document(text);
                }
            }
        }
        for (key, value) in map.get_mut("binaryData").and_then(Value::as_object_mut).into_iter().flatten() {
            let text = value.as_str().unwrap_or_default().to_owned();
            *value = STANDARD.encode(self.stand_in(&format!("the entry {key}"), &text)).into();
        }
    }

    /// A text that may be a document of any format: JSON, or lines that say what is what.
    fn document(&mut self, text: &mut String) {
        if let Ok(mut value @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str::<Value>(text) {
            let before = value.clone();
            self.walk(&mut value);
            if value != before {
                *text = value.to_string();
            }
            return;
        }
        if !text.lines().any(|line| sign::secret_line(line).is_some()) {
            return;
        }
        let lines = text.split_inclusive('\n').map(|line| match sign::secret_line(line) {
            Some((name, at)) => {
                let value = &line[at.clone()];
                format!("{}{}{}", &line[..at.start], self.stand_in(&format!("the line {name}"), value), &line[at.end..])
            }
            None => line.to_owned(),
        });
        *text = lines.collect();
    }

    /// What is secret wherever it is.
    fn walk(&mut self, value: &mut Value) {
        match value {
            Value::Object(fields) => self.fields(fields),
            Value::Array(elements) => {
                self.arguments(elements);
                for element in elements {
                    self.walk(element);
                }
            }
            Value::String(text) => {
                if let Some(clean) = sign::scrub(text, |what, secret| self.stand_in(what, secret)) {
                    *text = clean;
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn fields(&mut self, fields: &mut Map<String, Value>) {
        let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
        let (name, path) = (text("name"), text("path"));
        // A variable, of a container or of a cluster; a header.
        if let (Some(name), Some(value)) = (name, fields.get_mut("value")) {
            self.variable(&name, value);
        }
        // A file of a machine.
        if let (Some(path), Some(Value::String(content))) = (path, fields.get_mut("content")) {
            *content = self.stand_in(&format!("the file {path}"), content);
        }
        for (field, value) in fields {
            match value {
                Value::String(text) if sign::SECRET_FIELDS.contains(&field.as_str()) => {
                    *text = self.stand_in(&format!("the field {field}"), text);
                }
                Value::Array(elements) if SECRET_LISTS.contains(&field.as_str()) => {
                    for element in elements {
                        self.all(&format!("an element of {field}"), element);
                    }
                }
                value => self.walk(value),
            }
        }
    }

    fn variable(&mut self, name: &str, value: &mut Value) {
        match value {
            Value::String(text) if sign::is_secret_name(name, text) || sign::is_random(text) => {
                *text = self.stand_in(&format!("the value of {name}"), text);
            }
            Value::Object(_) | Value::Array(_) if sign::is_secret_name(name, "") => {
                self.all(&format!("the value of {name}"), value);
            }
            _ => {}
        }
    }

    /// Every text in a value.
    fn all(&mut self, what: &str, value: &mut Value) {
        match value {
            Value::Object(fields) => fields.values_mut().for_each(|value| self.all(what, value)),
            Value::Array(elements) => elements.iter_mut().for_each(|value| self.all(what, value)),
            Value::String(text) => *text = self.stand_in(what, text),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// The arguments of a program that are named before they come: `--password x`.
    fn arguments(&mut self, elements: &mut [Value]) {
        let mut flag: Option<String> = None;
        for element in elements {
            let Value::String(text) = element else { return };
            let before = flag.replace(text.clone());
            if let Some(name) = before.as_deref().and_then(|flag| flag.strip_prefix("--"))
                && !name.contains('=')
                && !text.starts_with("--")
                && sign::is_secret_name(name, text)
            {
                *text = self.stand_in(&format!("the argument --{name}"), text);
            }
        }
    }
}

#[cfg(test)]
mod tests;
