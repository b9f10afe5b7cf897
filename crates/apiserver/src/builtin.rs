//! The kinds that every Kubernetes cluster has: one row each, with what they do beyond their schema.
//!
//! The rows stand in one file per API group. What they do stands apart: `default` fills in, `prepare` overrules, `print`
//! makes the cells of `kubectl get`. [`OPENAPI`] has the facts of Kubernetes v1.36 about their fields (names, types, list
//! types, merge keys), one definition on a line, with all descriptions left out.

mod admission;
mod apiextensions;
mod apps;
mod authentication;
mod authorization;
mod batch;
mod coordination;
mod core;
mod default;
mod discovery;
pub mod events;
pub mod eviction;
mod fill;
mod networking;
mod policy;
mod prepare;
mod print;
mod rbac;
mod scheduling;
mod storage;
pub mod validate;
pub mod warnings;

use serde_json::Value;

pub use print::workload::{SCALE_COLUMNS, scale as scale_row};

/// The schemas of all built-in kinds and of what they refer to, by definition name, as in OpenAPI v3's
/// `components.schemas`.
///
/// A `default` there is what Go writes for a field that it never leaves out (`{}`, `""`, `0`), or a true default such as
/// a port's protocol. A server's objects have all of them; [`Builtin::default`] fills in those that matter.
pub const OPENAPI: &str = include_str!("builtin/openapi.json");
/// The fields of the built-in kinds that tell a zero from nothing (pointers, in Go): `{"io.k8s.api.apps.v1.DeploymentSpec":
/// ["replicas", …], …}`. The published documents do not say it; it was read off the types of the reference version.
pub const POINTERS: &str = include_str!("builtin/pointers.json");

/// One served version of a built-in resource.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "a row of facts, not a state")]
pub struct Builtin {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The version: `v1`.
    pub version: &'static str,
    /// `Deployment`.
    pub kind: &'static str,
    /// `deployments`.
    pub plural: &'static str,
    /// `deployment`.
    pub singular: &'static str,
    /// `deploy`.
    pub short_names: &'static [&'static str],
    /// `all`.
    pub categories: &'static [&'static str],
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// The key of its schema in `builtin/openapi.json`.
    pub definition: &'static str,
    /// The verbs that the resource offers.
    pub verbs: Verbs,
    /// Objects have a `status` that is written apart.
    pub status: bool,
    /// A create may bring its status all the same: a kubelet registers its node with it.
    pub status_on_create: bool,
    /// Objects can be scaled through `spec.replicas`.
    pub scale: bool,
    /// Whether an update without a resourceVersion is taken as "whatever it is now".
    pub unconditional_update: bool,
    /// Whether an update of an object that is not there makes it.
    pub create_on_update: bool,
    /// Whether `metadata.generation` counts changes of the desired state.
    pub generation: bool,
    /// The field selectors beyond `metadata.name` and `metadata.namespace`, as paths into the object.
    pub selectable_fields: &'static [&'static str],
    /// Fills in what a user may leave out and a schema's `default` cannot say.
    pub default: fn(&mut Value),
    /// Changes what a user may not decide; the second argument is the object as stored (an update), or `None` (a create).
    pub prepare: fn(&mut Value, Option<&Value>),
    /// The columns of `kubectl get`.
    pub columns: &'static [Column],
    /// One object's cells, one for each column.
    pub row: fn(&Value, jiff::Timestamp) -> Vec<Value>,
}

/// The verbs that a resource offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verbs {
    /// All of them.
    All,
    /// All but deletecollection: namespaces go one at a time.
    AllButDeleteCollection,
    /// Create only, answered and not stored: access and token reviews.
    CreateOnly,
}

/// A column of `kubectl get`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The heading.
    pub name: &'static str,
    /// `string`, `integer`, `date`, ….
    pub type_: &'static str,
    /// `name` for the name, else empty.
    pub format: &'static str,
    /// 0: always shown; 1: shown by `-o wide`.
    pub priority: i32,
}

impl Column {
    /// A column of text that is always shown.
    const fn string(name: &'static str) -> Self {
        Self { name, type_: "string", format: "", priority: 0 }
    }

    /// A column of whole numbers that is always shown.
    const fn integer(name: &'static str) -> Self {
        Self { name, type_: "integer", format: "", priority: 0 }
    }

    /// A column of yes or no that is always shown.
    const fn boolean(name: &'static str) -> Self {
        Self { name, type_: "boolean", format: "", priority: 0 }
    }

    /// A column of text that is shown by `-o wide`.
    const fn wide(name: &'static str) -> Self {
        Self { name, type_: "string", format: "", priority: 1 }
    }

    /// The object's name.
    const NAME: Self = Self { name: "Name", type_: "string", format: "name", priority: 0 };

    /// How long the object has been there.
    const AGE: Self = Self::string("Age");
}

/// What most rows have in common. Every row says its own kind, plural, singular and definition.
const BASE: Builtin = Builtin {
    group: "",
    version: "v1",
    kind: "",
    plural: "",
    singular: "",
    short_names: &[],
    categories: &[],
    namespaced: true,
    definition: "",
    verbs: Verbs::All,
    status: false,
    status_on_create: false,
    scale: false,
    unconditional_update: true,
    create_on_update: false,
    generation: false,
    selectable_fields: &[],
    default: nothing_to_fill_in,
    prepare: nothing_to_prepare,
    columns: print::meta::CREATED_AT_COLUMNS,
    row: print::meta::created_at,
};

/// The built-in kinds.
static ALL: [Builtin; 46] = [
    core::NAMESPACE,
    core::CONFIG_MAP,
    core::SECRET,
    core::NODE,
    core::POD,
    core::POD_TEMPLATE,
    core::REPLICATION_CONTROLLER,
    core::SERVICE,
    core::SERVICE_ACCOUNT,
    core::EVENT,
    core::ENDPOINTS,
    core::PERSISTENT_VOLUME,
    core::PERSISTENT_VOLUME_CLAIM,
    core::RESOURCE_QUOTA,
    core::LIMIT_RANGE,
    apps::DEPLOYMENT,
    apps::REPLICA_SET,
    apps::DAEMON_SET,
    apps::STATEFUL_SET,
    apps::CONTROLLER_REVISION,
    batch::JOB,
    batch::CRON_JOB,
    policy::POD_DISRUPTION_BUDGET,
    storage::STORAGE_CLASS,
    storage::VOLUME_ATTACHMENT,
    storage::CSI_DRIVER,
    storage::CSI_NODE,
    coordination::LEASE,
    rbac::ROLE,
    rbac::ROLE_BINDING,
    rbac::CLUSTER_ROLE,
    rbac::CLUSTER_ROLE_BINDING,
    scheduling::PRIORITY_CLASS,
    networking::NETWORK_POLICY,
    networking::INGRESS,
    discovery::ENDPOINT_SLICE,
    events::EVENT,
    admission::VALIDATING_WEBHOOK_CONFIGURATION,
    admission::MUTATING_WEBHOOK_CONFIGURATION,
    apiextensions::CUSTOM_RESOURCE_DEFINITION,
    authentication::TOKEN_REVIEW,
    authentication::SELF_SUBJECT_REVIEW,
    authorization::SELF_SUBJECT_ACCESS_REVIEW,
    authorization::SUBJECT_ACCESS_REVIEW,
    authorization::LOCAL_SUBJECT_ACCESS_REVIEW,
    authorization::SELF_SUBJECT_RULES_REVIEW,
];

impl Builtin {
    /// Whether an update changes what is desired, rather than what is observed or said about it.
    pub fn is_new_generation(&self, new: &Value, old: &Value) -> bool {
        let aside = |name: &str| matches!(name, "apiVersion" | "kind" | "metadata" | "status");
        let differs = |a: &Value, b: &Value| {
            a.as_object().into_iter().flatten().any(|(name, value)| !aside(name) && b.get(name) != Some(value))
        };
        // Two kinds are told something through their metadata.
        let told_through = match self.kind {
            "Deployment" => "annotations",
            "EndpointSlice" => "labels",
            _ => "",
        };
        self.generation
            && (differs(new, old)
                || differs(old, new)
                || new["metadata"][told_through] != old["metadata"][told_through])
    }

    /// The text that a field selector compares: the value there, or what Kubernetes takes an absent one for. `at` reads the
    /// value at a path.
    pub fn selectable_text(field: &str, at: impl Fn(&str) -> Value) -> String {
        // Two names are not those of the fields that they stand for.
        let path = match field {
            "status.successful" => "status.succeeded",
            "source" => "source.component",
            path => path,
        };
        match (at(path), field) {
            (Value::String(text), _) if !text.is_empty() => text,
            (Value::Bool(flag), _) => flag.to_string(),
            (Value::Number(number), _) => number.to_string(),
            (_, "spec.unschedulable" | "spec.hostNetwork") => "false".to_owned(),
            (_, "status.successful") => "0".to_owned(),
            (_, "source") => at("reportingComponent").as_str().unwrap_or_default().to_owned(),
            _ => String::new(),
        }
    }
}

/// The built-in kinds, each served version of each once.
pub fn all() -> &'static [Builtin] {
    &ALL
}

/// Whether there is nothing: no value, or a list or map without elements.
fn empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// The `default` of kinds where a user may leave out nothing that matters.
pub fn nothing_to_fill_in(_: &mut Value) {}

/// The `prepare` of kinds whose users decide everything.
pub fn nothing_to_prepare(_: &mut Value, _: Option<&Value>) {}

#[cfg(test)]
mod tests;
