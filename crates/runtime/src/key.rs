//! Which object: its namespace and name.

use std::fmt;

use kube::Resource;
use kube::runtime::reflector::{Lookup, ObjectRef};

/// The namespace and name of an object of a kind that the context tells. Unlike kube's `ObjectRef` it has an order,
/// which is the order of caches and of timers that fire together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The namespace; `None` for cluster-scoped kinds.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
}

impl Key {
    /// The key of an object in a namespace.
    pub fn namespaced(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: Some(namespace.into()), name: name.into() }
    }

    /// The key of a cluster-scoped object.
    pub fn cluster(name: impl Into<String>) -> Self {
        Self { namespace: None, name: name.into() }
    }

    /// The key of this object. One that came from a server always has a name.
    pub fn of(object: &impl Resource) -> Self {
        let meta = object.meta();
        Self { namespace: meta.namespace.clone(), name: meta.name.clone().unwrap_or_default() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl<K: Lookup> From<ObjectRef<K>> for Key {
    fn from(object: ObjectRef<K>) -> Self {
        Self { namespace: object.namespace, name: object.name }
    }
}
