//! `metadata.managedFields`: who owns which fields.

use std::str::FromStr;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::set::FieldSet;

/// So many managers may have written an object by updates; the oldest of more are merged into one.
const UPDATE_MANAGERS_MAX: usize = 10;

/// The manager that the oldest updates are merged into.
const ANCIENT: &str = "ancient-changes";

/// How a manager came to own its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// By applying a configuration: what the configuration no longer has is removed.
    Apply,
    /// By any other write.
    Update,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// One manager with its fields.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) manager: String,
    pub(super) operation: Operation,
    pub(super) api_version: String,
    pub(super) subresource: String,
    /// RFC 3339 in UTC with whole seconds, so text sorts as time.
    pub(super) time: Option<String>,
    pub(super) fields: FieldSet,
}

impl Entry {
    /// Whether two entries are of the same manager. An applier stays the same when it moves to another version.
    pub(super) fn same_manager(&self, other: &Self) -> bool {
        self.manager == other.manager
            && self.operation == other.operation
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }

    /// What identifies the manager, as one string: ties are decided by it.
    pub(super) fn identity(&self) -> String {
        let mut out = Map::new();
        // The letters keep the order in which Kubernetes writes these.
        out.insert("a".into(), self.manager.as_str().into());
        out.insert("b".into(), self.operation.name().into());
        if self.operation == Operation::Update {
            out.insert("c".into(), self.api_version.as_str().into());
        }
        if !self.subresource.is_empty() {
            out.insert("d".into(), self.subresource.as_str().into());
        }
        Value::Object(out).to_string()
    }

    fn into_value(self) -> Value {
        let mut out = Map::new();
        let mut put = |key: &str, text: String| {
            if !text.is_empty() {
                out.insert(key.to_owned(), Value::String(text));
            }
        };
        put("apiVersion", self.api_version);
        put("fieldsType", "FieldsV1".to_owned());
        put("manager", self.manager);
        put("operation", self.operation.name().to_owned());
        put("subresource", self.subresource);
        put("time", self.time.unwrap_or_default());
        out.insert("fieldsV1".to_owned(), Value::Object(self.fields.into_fields()));
        Value::Object(out)
    }
}

/// All managers of an object.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Managers(pub(super) Vec<Entry>);

/// Who wrote a list of managers, which decides how far it is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writer {
    /// This server.
    Server,
    /// Anybody: everything is checked, and spelled our way.
    Client,
}

impl Managers {
    /// Reads `metadata.managedFields`.
    pub(super) fn read(list: Vec<Value>, writer: Writer) -> Result<Self, String> {
        let mut managers = Self(Vec::with_capacity(list.len()));
        for (i, entry) in list.into_iter().enumerate() {
            let Value::Object(entry) = entry else { return Err(format!("managed fields entry {i} is not an object")) };
            managers.set(read_entry(entry, i, writer)?);
        }
        Ok(managers)
    }

    /// Replaces the entry of this manager, or adds it.
    pub(super) fn set(&mut self, entry: Entry) {
        match self.0.iter_mut().find(|other| other.same_manager(&entry)) {
            Some(other) => *other = entry,
            None => self.0.push(entry),
        }
    }

    /// Takes out the entry of this manager.
    pub(super) fn take(&mut self, like: &Entry) -> Option<Entry> {
        let index = self.0.iter().position(|entry| entry.same_manager(like))?;
        Some(self.0.swap_remove(index))
    }

    /// Keeps the number of managers that wrote by updates within bounds: the oldest of each version become one.
    pub(super) fn cap(&mut self) {
        let is_update = |entry: &Entry| entry.operation == Operation::Update;
        let mut updates = self.0.iter().filter(|entry| is_update(entry)).count();
        if updates <= UPDATE_MANAGERS_MAX {
            return;
        }
        let (mut oldest, kept): (Vec<Entry>, Vec<Entry>) = std::mem::take(&mut self.0).into_iter().partition(is_update);
        self.0 = kept;
        oldest.sort_by_cached_key(|entry| (entry.time.clone(), entry.identity()));
        // The first of a version stays itself until another joins it: only then do they become the bucket.
        let mut first_of_version: Vec<Entry> = Vec::new();
        for entry in oldest {
            if updates <= UPDATE_MANAGERS_MAX {
                self.merge_in(entry);
                continue;
            }
            let same_version = |other: &Entry| other.api_version == entry.api_version;
            match first_of_version.iter_mut().find(|other| same_version(other)) {
                None => first_of_version.push(entry),
                Some(bucket) => {
                    ANCIENT.clone_into(&mut bucket.manager);
                    bucket.subresource.clear();
                    bucket.fields.union(entry.fields);
                    bucket.time = entry.time;
                    updates -= 1;
                }
            }
        }
        for entry in first_of_version {
            self.merge_in(entry);
        }
    }

    /// Adds an entry; a manager that is there already gets its fields, too.
    fn merge_in(&mut self, entry: Entry) {
        match self.take(&entry) {
            None => self.0.push(entry),
            Some(mut other) => {
                other.time = other.time.max(entry.time);
                other.fields.union(entry.fields);
                self.0.push(other);
            }
        }
    }

    /// The value of `metadata.managedFields`, or `None` when nobody owns anything.
    pub(super) fn into_value(mut self) -> Option<Value> {
        if self.0.is_empty() {
            return None;
        }
        self.0.sort_by(|a, b| {
            (a.operation, &a.time, &a.manager, &a.api_version, &a.subresource).cmp(&(
                b.operation,
                &b.time,
                &b.manager,
                &b.api_version,
                &b.subresource,
            ))
        });
        Some(self.0.into_iter().map(Entry::into_value).collect())
    }
}

fn read_entry(mut entry: Map<String, Value>, index: usize, writer: Writer) -> Result<Entry, String> {
    let mut text = |key: &str| match entry.remove(key) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    };
    let operation = match text("operation").as_str() {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err("operation must be `Apply` or `Update`".into()),
    };
    let api_version = text("apiVersion");
    if api_version.is_empty() {
        return Err("apiVersion must not be empty".into());
    }
    match text("fieldsType").as_str() {
        "FieldsV1" => {}
        "" => return Err(format!("missing fieldsType in managed fields entry {index}")),
        other => return Err(format!("invalid fieldsType {other:?} in managed fields entry {index}")),
    }
    let time = text("time");
    let time = match writer {
        Writer::Server => Some(time).filter(|time| !time.is_empty()),
        Writer::Client => Timestamp::from_str(&time).ok().map(time_text),
    };
    let (manager, subresource) = (text("manager"), text("subresource"));
    let fields = match (writer, entry.remove("fieldsV1")) {
        (_, None) => FieldSet::default(),
        (Writer::Server, Some(Value::Object(fields))) => FieldSet::stored(fields),
        (Writer::Server | Writer::Client, Some(fields)) => FieldSet::written(&fields)?,
    };
    Ok(Entry { manager, operation, api_version, subresource, time, fields })
}

/// A time as it stands in an entry.
pub(super) fn time_text(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Whether a client asks to forget all managers: an empty list, or one empty entry.
pub(super) fn is_reset(list: &[Value]) -> bool {
    let is_blank = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => false,
    };
    match list {
        [] => true,
        [Value::Object(entry)] => {
            let known = ["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource"];
            known.iter().filter_map(|key| entry.get(*key)).all(is_blank)
        }
        _ => false,
    }
}
