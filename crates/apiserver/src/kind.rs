//! The kinds that a server serves right now: built-in ones, and those that CustomResourceDefinitions add.

pub mod builtins;
mod custom;

mod scale;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::builtin::{self, Builtin};
use crate::conversion::Conversion;
use crate::crd::{self, CrdColumn};
use crate::field::FieldError;
use crate::jsonpath::JsonPath;
use crate::meta::NameRule;
use crate::schema::{self, Schema};
use crate::store::Resource;

/// One served version of a resource.
#[derive(Debug)]
pub struct Kind {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// `Deployment`.
    pub kind: String,
    /// `DeploymentList`.
    pub list_kind: String,
    /// `deployments`.
    pub plural: String,
    /// `deployment`.
    pub singular: String,
    /// `deploy`.
    pub short_names: Vec<String>,
    /// `all`.
    pub categories: Vec<String>,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Its name in the store, the same for all versions.
    pub resource: Resource,
    /// `apps/v1`.
    pub api_version: String,
    /// What [`crate::store::Entry::write_json`] puts in front of an object.
    pub head: Vec<u8>,
    /// What objects look like.
    pub schema: Arc<Schema>,
    /// Objects have a `status` that is written apart.
    pub status: bool,
    /// Where the numbers of the `scale` subresource are.
    pub scale: Option<Scale>,
    /// The field selectors beyond `metadata.name` and `metadata.namespace`.
    pub selectable_fields: Vec<Selectable>,
    /// Where the kind comes from.
    pub origin: Origin,
}

/// Where a kind comes from.
#[derive(Debug)]
pub enum Origin {
    /// It is always there.
    Builtin(&'static Builtin),
    /// A CustomResourceDefinition describes it.
    Custom(Custom),
}

/// The annotation by which a definition says that names of its objects need only be a segment of a URL's path, as some are that
/// a real cluster serves through an aggregated API server: key and value. A real server passes over it.
pub const ANY_NAME: [&str; 2] = ["apiserver.windlass.dev/names", "path-segments"];

/// What only custom resources have.
#[derive(Debug)]
pub struct Custom {
    /// The schema as written in the CustomResourceDefinition, for publishing.
    pub published: Value,
    /// The columns of `kubectl get`, apart from the name.
    pub columns: Vec<CrdColumn>,
    /// What names look like.
    pub names: NameRule,
    /// This is the version that objects are stored in.
    pub storage: bool,
    /// Stored objects may not fit this version's schema: they are pruned and defaulted when they are read.
    pub reshape: bool,
    /// The definition has other versions, too.
    pub has_others: bool,
    /// How those are made of each other, where a webhook does that.
    pub conversion: Option<Arc<Conversion>>,
    /// What to say to a client that uses this version.
    pub deprecation: Option<String>,
}

/// A field that objects can be selected by.
#[derive(Debug, Clone)]
pub struct Selectable {
    /// As it is asked for: `spec.nodeName`.
    pub name: String,
    /// Where it is; a built-in kind knows itself.
    pub path: Option<JsonPath>,
}

/// Where the numbers of the `scale` subresource are.
#[derive(Debug, Clone)]
pub struct Scale {
    /// The field with the wanted number, such as `spec.replicas`.
    pub spec: Vec<String>,
    /// The field with the observed number.
    pub status: Vec<String>,
    /// The field with the selector as a string, if the kind has one.
    pub selector: Option<Vec<String>>,
}

impl Kind {
    /// Whether a CustomResourceDefinition describes it.
    pub fn is_custom(&self) -> bool {
        matches!(self.origin, Origin::Custom(_))
    }

    /// The built-in row, if it is one.
    pub fn builtin(&self) -> Option<&'static Builtin> {
        match &self.origin {
            Origin::Builtin(builtin) => Some(builtin),
            Origin::Custom(_) => None,
        }
    }

    /// What is wrong with an object that is written as a whole or through a part of it, apart from its metadata; `old` is the
    /// object as stored, if there is one.
    pub fn problems(&self, object: &Value, old: Option<&Value>, subresource: &str) -> Vec<FieldError> {
        match (&self.origin, old, subresource) {
            (Origin::Builtin(_), _, "") => builtin::validate::of(&self.group, &self.kind)(object, old),
            (Origin::Builtin(_), _, "finalize") => builtin::validate::config::namespace_finalize(object, old),
            (Origin::Builtin(_), _, _) => builtin::validate::status::of(&self.group, &self.kind)(object, old),
            (Origin::Custom(_), _, _) => self.custom_problems(object, old, subresource),
        }
    }

    fn custom_problems(&self, object: &Value, old: Option<&Value>, subresource: &str) -> Vec<FieldError> {
        let mut problems = match (old, subresource) {
            (None, _) => schema::validate::validate(object, &self.schema),
            (Some(old), "status") => schema::validate::validate_status(object, old, &self.schema),
            (Some(old), _) => schema::validate::validate_update(object, old, &self.schema),
        };
        if let Some(scale) = &self.scale {
            if subresource != "status" {
                problems.extend(scale.spec_problems(object));
            }
            problems.extend(scale.status_problems(object));
        }
        problems
    }

    /// What the author of an object should know, though it is valid.
    pub fn warnings(&self, object: &Value) -> Vec<String> {
        if &*self.resource == crate::lifecycle::CUSTOM_RESOURCE_DEFINITIONS {
            return crd::warnings(object);
        }
        if !self.is_custom() {
            return crate::builtin::warnings::of(&self.resource, object);
        }
        let finalizers = object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let plain = finalizers.filter(|name| !name.contains('/') && !matches!(*name, "orphan" | "foregroundDeletion"));
        plain
            .map(|name| {
                format!(
                    "metadata.finalizers: {name:?}: prefer a domain-qualified finalizer name to avoid accidental conflicts \
                     with other finalizer writers"
                )
            })
            .collect()
    }

    /// Whether an update changes what is wanted: not metadata, and not the status where that is written apart.
    pub fn is_new_generation(&self, new: &Value, old: &Value) -> bool {
        if let Origin::Builtin(builtin) = &self.origin {
            return builtin.is_new_generation(new, old);
        }
        let counts =
            |name: &str| !(matches!(name, "metadata" | "apiVersion" | "kind") || name == "status" && self.status);
        let differs = |a: &Value, b: &Value| {
            a.as_object().into_iter().flatten().any(|(name, value)| counts(name) && b.get(name) != Some(value))
        };
        differs(new, old) || differs(old, new)
    }

    /// Whether an update without a resourceVersion is taken as "whatever it is now".
    pub fn unconditional_update(&self) -> bool {
        self.builtin().is_some_and(|builtin| builtin.unconditional_update)
    }

    /// What to say to a client that uses this version, if it is on its way out.
    pub fn deprecation(&self) -> Option<String> {
        match &self.origin {
            Origin::Builtin(_) => None,
            Origin::Custom(custom) => custom.deprecation.clone(),
        }
    }

    /// Whether stored objects must be pruned and defaulted when they are read in this version.
    pub fn reshapes(&self) -> bool {
        match &self.origin {
            Origin::Builtin(_) => false,
            Origin::Custom(custom) => custom.reshape || custom.has_others || !custom.storage,
        }
    }
}

/// A resource's name in the store.
pub fn store_name(plural: &str, group: &str) -> Resource {
    if group.is_empty() { plural.into() } else { format!("{plural}.{group}").into() }
}

/// `apps/v1`, or `v1` in the core group.
pub fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// What [`crate::store::Entry::write_json`] puts in front of an object of a kind.
pub fn head(api_version: &str, kind: &str) -> Vec<u8> {
    format!("\"apiVersion\":{},\"kind\":{},", Value::from(api_version), Value::from(kind)).into_bytes()
}

type Versions = BTreeMap<String, BTreeMap<String, Arc<Kind>>>;

/// All kinds that are served, by group, version and plural name. Immutable: a change of the kinds makes a new one.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    groups: BTreeMap<String, Versions>,
    /// The version that objects are stored in, by the resource's name in the store.
    stored: BTreeMap<Resource, Arc<Kind>>,
}

impl Registry {
    /// The kind that is served at a path.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Kind>> {
        self.groups.get(group)?.get(version)?.get(plural)
    }

    /// The kind of objects with this apiVersion and kind.
    pub fn find_kind(&self, group: &str, version: &str, kind: &str) -> Option<&Arc<Kind>> {
        self.groups.get(group)?.get(version)?.values().find(|known| known.kind == kind)
    }

    /// The version in which a resource's objects are stored.
    pub fn stored(&self, resource: &str) -> Option<&Arc<Kind>> {
        self.stored.get(resource)
    }

    /// All resources, each in its stored version, in the order of their names.
    pub fn resources(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.stored.values()
    }

    /// Whether a group has this version.
    pub fn has_version(&self, group: &str, version: &str) -> bool {
        self.groups.get(group).is_some_and(|versions| versions.contains_key(version))
    }

    /// The groups in the order of discovery: the core group, the built-in groups, then the others by name.
    pub fn groups(&self) -> impl Iterator<Item = &str> {
        self.groups.keys().map(String::as_str)
    }

    /// A group's versions, the preferred one first.
    pub fn versions(&self, group: &str) -> Vec<&str> {
        let mut versions: Vec<&str> =
            self.groups.get(group).map(|versions| versions.keys().map(String::as_str).collect()).unwrap_or_default();
        versions.sort_by(|a, b| priority(b).cmp(&priority(a)).then_with(|| a.cmp(b)));
        versions
    }

    /// The kinds of a group and version, in the order of their plural names.
    pub fn kinds(&self, group: &str, version: &str) -> impl Iterator<Item = &Arc<Kind>> {
        self.groups.get(group).and_then(|versions| versions.get(version)).into_iter().flat_map(BTreeMap::values)
    }

    /// Adds a version of a resource. `stored` says that its objects are stored in this version.
    pub fn add(&mut self, kind: Kind, stored: bool) {
        let kind = Arc::new(kind);
        if stored {
            self.stored.insert(kind.resource.clone(), kind.clone());
        }
        let versions = self.groups.entry(kind.group.clone()).or_default();
        versions.entry(kind.version.clone()).or_default().insert(kind.plural.clone(), kind);
    }

    /// Adds the version that objects are stored in, without serving it.
    fn add_unserved(&mut self, kind: Kind) {
        self.stored.insert(kind.resource.clone(), Arc::new(kind));
    }

    /// Removes all versions of a resource.
    pub fn remove(&mut self, group: &str, plural: &str) {
        self.stored.remove(&store_name(plural, group));
        if let Some(versions) = self.groups.get_mut(group) {
            for kinds in versions.values_mut() {
                kinds.remove(plural);
            }
            versions.retain(|_, kinds| !kinds.is_empty());
            if versions.is_empty() {
                self.groups.remove(group);
            }
        }
    }
}

/// Kubernetes' order of versions: `v2` before `v1`, releases before betas before alphas, anything else last.
pub(crate) fn priority(version: &str) -> (u8, u64, u64) {
    let Some(rest) = version.strip_prefix('v') else { return (0, 0, 0) };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let Ok(major) = rest[..digits].parse::<u64>() else { return (0, 0, 0) };
    let (stage, number) = match &rest[digits..] {
        "" => return (3, major, 0),
        pre if pre.starts_with("beta") => (2, &pre[4..]),
        pre if pre.starts_with("alpha") => (1, &pre[5..]),
        _ => return (0, 0, 0),
    };
    number.parse().map_or((0, 0, 0), |number| (stage, major, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_preferred_as_kubernetes_prefers_them() {
        let mut versions =
            ["v1", "foo10", "v11beta2", "v10", "v3beta1", "v12alpha1", "v2", "foo1", "v1alpha1", "v11alpha2"];
        versions.sort_by(|a, b| priority(b).cmp(&priority(a)).then_with(|| a.cmp(b)));
        let expected =
            ["v10", "v2", "v1", "v11beta2", "v3beta1", "v12alpha1", "v11alpha2", "v1alpha1", "foo1", "foo10"];
        assert_eq!(versions, expected);
    }
}
