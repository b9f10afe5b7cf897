//! One object as it is kept: bytes, and the few facts that selectors and garbage collection ask for all the time.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use serde::Deserialize;
use serde::de::DeserializeSeed as _;
use serde_json::Value;
use serde_json::value::RawValue;

use super::field::At;

/// Which object: the name, and the namespace (empty for kinds without one).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Key {
    /// The namespace, or nothing.
    pub namespace: Box<str>,
    /// The name.
    pub name: Box<str>,
}

impl Key {
    /// The key of an object.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl Ord for Key {
    /// The order of `namespace/name` as one string, which is the order in which Kubernetes lists: `a-b/x` comes before `a/x`.
    fn cmp(&self, other: &Self) -> Ordering {
        if self.namespace == other.namespace {
            return self.name.cmp(&other.name);
        }
        let joined = |key: &'_ Self| key.namespace.len();
        let shared = joined(self).min(joined(other));
        let (a, b) = (self.namespace.as_bytes(), other.namespace.as_bytes());
        a[..shared].cmp(&b[..shared]).then_with(|| {
            let separator = b'/';
            a.get(shared).unwrap_or(&separator).cmp(b.get(shared).unwrap_or(&separator))
        })
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() { f.write_str(&self.name) } else { write!(f, "{}/{}", self.namespace, self.name) }
    }
}

/// An owner that an object names. Whether it exists is another question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The owner's uid: the only thing that identifies it.
    pub uid: Box<str>,
    /// The owner waits for this object when it is deleted in the foreground.
    pub blocks: bool,
}

/// An object at one revision. Immutable, shared by the table, the log and every reader.
#[derive(Debug)]
pub struct Entry {
    /// Which object.
    pub key: Key,
    /// The revision of this state, which is its resourceVersion.
    pub revision: u64,
    /// The object as JSON *without* `apiVersion` and `kind`: those depend on who asks, and are put in front on the way out.
    pub json: Bytes,
    /// The uid.
    pub uid: Box<str>,
    /// The labels, sorted by key.
    pub labels: Box<[(Box<str>, Box<str>)]>,
    /// The owners.
    pub owners: Box<[Owner]>,
    /// The object has a deletionTimestamp.
    pub deleting: bool,
    /// The tree that the bytes were written from, while the object is young: what was written last is read and written next.
    tree: Mutex<Option<Arc<Value>>>,
}

impl Entry {
    /// Turns an object into an entry, writing the revision into its metadata.
    pub(crate) fn new(key: Key, revision: u64, mut object: Value) -> Self {
        let types = ["apiVersion", "kind"].map(|field| object.as_object_mut().and_then(|fields| fields.remove(field)));
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            metadata.insert("resourceVersion".into(), Value::String(revision.to_string()));
        }
        let json = compact(&object);
        let entry = Self::of(key, revision, json, &object["metadata"]);
        let [api_version, kind] = types.map(Option::unwrap_or_default);
        name_types(&mut object, api_version, kind);
        Self { tree: Mutex::new(Some(Arc::new(object))), ..entry }
    }

    /// An entry of an object that is another server's, with the version that it has there.
    pub(crate) fn of_another(key: Key, revision: u64, object: &Value) -> Self {
        let mut fields = object.as_object().cloned().unwrap_or_default();
        fields.retain(|field, _| field != "apiVersion" && field != "kind");
        Self::of(key, revision, compact(&Value::Object(fields)), &object["metadata"])
    }

    /// An entry of the bytes of one before.
    pub(crate) fn stored(key: Key, revision: u64, json: Bytes) -> Self {
        #[derive(Deserialize)]
        struct Parts {
            #[serde(default)]
            metadata: Value,
        }
        // The bytes were written by `Entry::new`, from a tree.
        let metadata = serde_json::from_slice::<Parts>(&json).map(|parts| parts.metadata).unwrap_or_default();
        Self::of(key, revision, json, &metadata)
    }

    fn of(key: Key, revision: u64, json: Bytes, metadata: &Value) -> Self {
        let uid = metadata["uid"].as_str().unwrap_or_default().into();
        let labels = match &metadata["labels"] {
            Value::Object(labels) => {
                labels.iter().map(|(k, v)| (k.as_str().into(), v.as_str().unwrap_or_default().into())).collect()
            }
            _ => Box::default(),
        };
        let owners = match &metadata["ownerReferences"] {
            Value::Array(owners) => owners.iter().map(Owner::from_value).collect(),
            _ => Box::default(),
        };
        let deleting = !metadata["deletionTimestamp"].is_null();
        Self { key, revision, json, uid, labels, owners, deleting, tree: Mutex::new(None) }
    }

    fn kept(&self) -> Option<Arc<Value>> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    #[cfg(test)]
    pub(super) fn is_young(&self) -> bool {
        self.kept().is_some()
    }

    /// The object is no longer young: from now on it is kept as bytes only, which are a fraction of the tree.
    pub(super) fn age(&self) {
        let tree = self.tree.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(tree);
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.binary_search_by(|(k, _)| (**k).cmp(key)).ok().map(|i| &*self.labels[i].1)
    }

    /// The same object, said to be of another revision: a watcher whose selection it left is told when.
    #[must_use]
    pub fn at_revision(&self, revision: u64) -> Self {
        Self::new(self.key.clone(), revision, self.to_value("", ""))
    }

    /// The object as a tree, with its `apiVersion` and `kind`.
    pub fn to_value(&self, api_version: &str, kind: &str) -> Value {
        let mut value = match self.kept() {
            Some(tree) => Value::clone(&tree),
            // The bytes were written by `Entry::new`, from a tree.
            None => serde_json::from_slice(&self.json).unwrap_or_default(),
        };
        name_types(&mut value, api_version.into(), kind.into());
        value
    }

    /// The same to look at. A young object that was written as this is not copied.
    pub fn tree(&self, api_version: &str, kind: &str) -> Arc<Value> {
        match self.kept() {
            Some(tree) if tree["apiVersion"] == api_version && tree["kind"] == kind => tree,
            _ => Arc::new(self.to_value(api_version, kind)),
        }
    }

    /// The same for whoever does not ask what it is: `apiVersion` and `kind` may be anything.
    pub fn look(&self) -> Arc<Value> {
        self.kept().unwrap_or_else(|| Arc::new(self.to_value("", "")))
    }

    /// The value of a field; dots separate the names on the way there.
    pub fn field(&self, path: &str) -> Value {
        if let Some(tree) = self.kept() {
            return path.split('.').fold(&*tree, |value, name| &value[name]).clone();
        }
        At(path).deserialize(&mut serde_json::Deserializer::from_slice(&self.json)).unwrap_or_default()
    }

    /// The metadata as JSON.
    pub fn metadata_json(&self) -> &str {
        #[derive(Deserialize)]
        struct Parts<'a> {
            #[serde(borrow)]
            metadata: Option<&'a RawValue>,
        }
        let parts = serde_json::from_slice::<Parts<'_>>(&self.json).ok();
        parts.and_then(|parts| parts.metadata).map_or("null", RawValue::get)
    }

    /// Appends the object as JSON; `head` is `"apiVersion":…,"kind":…,`, or nothing.
    pub fn write_json(&self, head: &[u8], out: &mut Vec<u8>) {
        out.push(b'{');
        out.extend_from_slice(head);
        out.extend_from_slice(&self.json[1..]);
    }
}

/// Says what an object is.
pub(super) fn name_types(object: &mut Value, api_version: Value, kind: Value) {
    if let Value::Object(fields) = object {
        fields.insert("apiVersion".into(), api_version);
        fields.insert("kind".into(), kind);
    }
}

/// An object as JSON, in exactly as many bytes as that takes: a buffer that has grown is up to twice as large, and this is
/// kept for as long as the object.
fn compact(object: &Value) -> Bytes {
    /// Most objects are smaller.
    const EXPECTED_BYTES: usize = 4096;
    let mut buffer = Vec::with_capacity(EXPECTED_BYTES);
    // Serialising a tree of JSON values into memory has no way to fail.
    match serde_json::to_writer(&mut buffer, object) {
        Ok(()) => Bytes::copy_from_slice(&buffer),
        Err(_) => Bytes::new(),
    }
}

/// An entry in the order of its key, which is thereby kept once.
#[derive(Debug, Clone)]
pub(super) struct ByKey(pub(super) Arc<Entry>);

impl Borrow<Key> for ByKey {
    fn borrow(&self) -> &Key {
        &self.0.key
    }
}

impl Ord for ByKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.key.cmp(&other.0.key)
    }
}

impl PartialOrd for ByKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ByKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.key == other.0.key
    }
}

impl Eq for ByKey {}

impl Owner {
    fn from_value(reference: &Value) -> Self {
        Self {
            uid: reference["uid"].as_str().unwrap_or_default().into(),
            blocks: reference["blockOwnerDeletion"].as_bool().unwrap_or_default(),
        }
    }
}
