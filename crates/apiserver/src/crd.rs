//! `CustomResourceDefinition`s: what may stand in them, and what they define.

mod defaults;
mod field_path;
mod openapi;
mod shown;
mod structural;
mod validate;
mod version;

use std::cmp::Reverse;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::jsonpath::JsonPath;
use crate::kind::{ANY_NAME, priority};
use crate::meta::NameRule;
use crate::schema::{Schema, compile, format};
use crate::value::Fields;

#[cfg(feature = "cel")]
pub(crate) use shown::rule as shown_rule;
pub use validate::validate;

/// A resource that a definition defines.
#[derive(Debug, Clone)]
pub struct Crd {
    /// `example.com`.
    pub group: String,
    /// `Widget`.
    pub kind: String,
    /// `WidgetList`.
    pub list_kind: String,
    /// `widgets`.
    pub plural: String,
    /// `widget`.
    pub singular: String,
    /// `wd`.
    pub short_names: Vec<String>,
    /// `all`.
    pub categories: Vec<String>,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// What their names look like.
    pub names: NameRule,
    /// Whether the resource is served: its names were accepted once, and stay served even when a change of them is refused.
    pub established: bool,
    /// The versions, in the order of the definition.
    pub versions: Vec<CrdVersion>,
}

/// One version of a custom resource.
#[derive(Debug, Clone)]
pub struct CrdVersion {
    /// `v1alpha1`.
    pub name: String,
    /// Whether it can be asked for.
    pub served: bool,
    /// Whether objects are stored in it.
    pub storage: bool,
    /// What users of the version are warned with, when it is deprecated.
    pub deprecation_warning: Option<String>,
    /// The schema of its objects.
    pub schema: Arc<Schema>,
    /// The schema as written, for publishing.
    pub openapi: Value,
    /// Objects have a `status` that is written apart.
    pub status: bool,
    /// How objects are scaled.
    pub scale: Option<Scale>,
    /// The columns of `kubectl get` after the name.
    pub columns: Vec<CrdColumn>,
    /// The field selectors, as they are asked for: `spec.color`, and where they point.
    pub selectable_fields: Vec<(String, JsonPath)>,
}

/// Where the numbers of the `scale` subresource are: dotted paths such as `.spec.replicas`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scale {
    /// The wanted number.
    pub spec_replicas: String,
    /// The observed number.
    pub status_replicas: String,
    /// The selector of what is counted, as a string.
    pub label_selector: Option<String>,
}

/// A column of `kubectl get`.
#[derive(Debug, Clone)]
pub struct CrdColumn {
    /// The heading.
    pub name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub type_: String,
    /// A format, or empty.
    pub format: String,
    /// What the column shows.
    pub description: String,
    /// 0: always shown; more: shown by `-o wide`.
    pub priority: i32,
    /// Where the value is; `None` when the path cannot be read, then the cell stays empty.
    pub json_path: Option<JsonPath>,
}

/// Fills in what a definition may leave out.
pub fn default(crd: &mut Value) {
    let Some(spec) = crd.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let names = spec.entry("names").or_insert_with(|| json!({}));
    if let Some(names) = names.as_object_mut() {
        let text = |names: &Map<String, Value>, field: &str| {
            names.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let kind = text(names, "kind");
        if text(names, "singular").is_empty() && !kind.is_empty() {
            names.insert("singular".into(), kind.to_lowercase().into());
        }
        if text(names, "listKind").is_empty() && !kind.is_empty() {
            names.insert("listKind".into(), format!("{kind}List").into());
        }
    }
    if spec.get("conversion").is_none_or(Value::is_null) {
        spec.insert("conversion".into(), json!({"strategy": "None"}));
    }
    if let Some(service) = spec.get_mut("conversion").and_then(|c| c.pointer_mut("/webhook/clientConfig/service"))
        && let Some(service) = service.as_object_mut()
    {
        service.entry("port").or_insert_with(|| 443.into());
    }
}

/// The storage version joins the versions that may be in the store. Done by the server on every write of the definition.
pub fn record_stored_version(crd: &mut Value) {
    let storage = crd.at("spec").list("versions").iter().find(|version| version.flag("storage"));
    let Some(name) = storage.map(|version| version.at("name").clone()) else { return };
    let Some(crd) = crd.as_object_mut() else { return };
    let status = crd.entry("status").or_insert_with(|| json!({}));
    if let Some(status) = status.as_object_mut()
        && let Value::Array(stored) = status.entry("storedVersions").or_insert_with(|| json!([]))
        && !stored.contains(&name)
    {
        stored.push(name);
    }
}

/// Settles the names of a definition, as Kubernetes' controllers do: its status says which were accepted, whether all were, and
/// whether the resource is served. `taken` tells whether another definition of the group has a name.
pub fn accept(crd: &mut Value, taken: &dyn Fn(&str) -> bool, now: jiff::Timestamp) {
    record_stored_version(crd);
    let wanted = crd.at("spec").at("names").clone();
    let mut accepted = crd.at("status").at("acceptedNames").clone();
    if !accepted.is_object() {
        accepted = json!({"plural": "", "kind": ""});
    }
    let conflict = settle_names(&wanted, &mut accepted, taken);
    let established = condition(crd, "Established").is_some_and(|condition| condition.text("status") == "True");
    let now = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let set = |crd: &mut Value, type_: &str, status: &str, reason: &str, message: &str| {
        set_condition(crd, type_, [status, reason, message], &now);
    };
    if let Some(status) = crd.get_mut("status").and_then(Value::as_object_mut) {
        status.insert("acceptedNames".into(), accepted);
    }
    match conflict {
        None => {
            set(crd, "NamesAccepted", "True", "NoConflicts", "no conflicts found");
            if !established {
                set(crd, "Established", "True", "InitialNamesAccepted", "the initial names have been accepted");
            }
        }
        Some((reason, message)) => {
            set(crd, "NamesAccepted", "False", reason, &message);
            if !established {
                set(crd, "Established", "False", "NotAccepted", "not all names are accepted");
            }
        }
    }
}

/// Moves the wanted names that are free to the accepted ones; the last conflict is the one that is told.
fn settle_names(wanted: &Value, accepted: &mut Value, taken: &dyn Fn(&str) -> bool) -> Option<(&'static str, String)> {
    let mut conflict = None;
    let in_use = |name: &str| format!("{} is already in use", crate::field::quote(name));
    let single = |field: &str, reason: &'static str, accepted: &mut Value, conflict: &mut Option<_>| {
        let name = wanted.text(field);
        if name != accepted.text(field) && taken(name) {
            *conflict = Some((reason, in_use(name)));
        } else if let Some(accepted) = accepted.as_object_mut()
            && !name.is_empty()
        {
            accepted.insert(field.to_owned(), name.into());
        }
    };
    single("plural", "PluralConflict", accepted, &mut conflict);
    single("singular", "SingularConflict", accepted, &mut conflict);
    if wanted.at("shortNames") != accepted.at("shortNames") {
        let ours = |name: &str| accepted.texts("shortNames").any(|accepted| accepted == name);
        let refused: Vec<String> =
            wanted.texts("shortNames").filter(|name| !ours(name) && taken(name)).map(in_use).collect();
        match refused.as_slice() {
            [] => copy(wanted, accepted, "shortNames"),
            [one] => conflict = Some(("ShortNamesConflict", one.clone())),
            many => conflict = Some(("ShortNamesConflict", format!("[{}]", many.join(", ")))),
        }
    }
    single("kind", "KindConflict", accepted, &mut conflict);
    single("listKind", "ListKindConflict", accepted, &mut conflict);
    copy(wanted, accepted, "categories");
    conflict
}

fn copy(from: &Value, to: &mut Value, field: &str) {
    if let Some(to) = to.as_object_mut() {
        match from.get(field) {
            Some(value) => to.insert(field.to_owned(), value.clone()),
            None => to.remove(field),
        };
    }
}

fn condition<'c>(crd: &'c Value, type_: &str) -> Option<&'c Value> {
    crd.at("status").list("conditions").iter().find(|condition| condition.text("type") == type_)
}

fn set_condition(crd: &mut Value, type_: &str, [status, reason, message]: [&str; 3], now: &str) {
    let Some(object) = crd.get_mut("status").and_then(Value::as_object_mut) else { return };
    let conditions = object.entry("conditions").or_insert_with(|| json!([]));
    if conditions.is_null() {
        *conditions = json!([]);
    }
    let Some(conditions) = conditions.as_array_mut() else { return };
    let existing = conditions.iter_mut().find(|condition| condition.text("type") == type_);
    let since = match &existing {
        Some(existing) if existing.text("status") == status && existing.has("lastTransitionTime") => {
            existing.text("lastTransitionTime").to_owned()
        }
        _ => now.to_owned(),
    };
    let fresh = json!({
        "type": type_, "status": status, "lastTransitionTime": since, "reason": reason, "message": message,
    });
    match existing {
        Some(existing) => *existing = fresh,
        None => conditions.push(fresh),
    }
}

/// What the server warns the author of a definition about: formats that it does not know and will not check.
pub fn warnings(crd: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    for version in crd.at("spec").list("versions") {
        unknown_formats(version.at("schema").at("openAPIV3Schema"), &mut warnings);
    }
    warnings
}

fn unknown_formats(schema: &Value, warnings: &mut Vec<String>) {
    let name = schema.text("format");
    if !name.is_empty() && !format::supported(schema.text("type"), name) {
        let warning = format!("unrecognized format {}", crate::field::quote(name));
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    let lists = ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|junctor| schema.list(junctor));
    let single = ["items", "not", "additionalProperties"].into_iter().map(|keyword| schema.at(keyword));
    let properties = schema.map("properties").into_iter().flat_map(Map::values);
    for inner in lists.chain(single).chain(properties).filter(|inner| inner.is_object()) {
        unknown_formats(inner, warnings);
    }
}

/// Reads a definition that has been validated. `object_meta` is the schema of `metadata`.
///
/// The names are the accepted ones where there are some: a change that conflicts is not served.
pub fn parse(crd: &Value, object_meta: Option<&Arc<Schema>>) -> Crd {
    let spec = crd.at("spec");
    let accepted = crd.at("status").at("acceptedNames");
    let names = if accepted.text("plural").is_empty() { spec.at("names") } else { accepted };
    let established = condition(crd, "Established").is_some_and(|condition| condition.text("status") == "True");
    let owner = (spec.text("group"), names.text("kind"));
    let all = spec.list("versions");
    Crd {
        group: spec.text("group").to_owned(),
        kind: names.text("kind").to_owned(),
        list_kind: names.text("listKind").to_owned(),
        plural: names.text("plural").to_owned(),
        singular: names.text("singular").to_owned(),
        short_names: names.texts("shortNames").map(str::to_owned).collect(),
        categories: names.texts("categories").map(str::to_owned).collect(),
        namespaced: spec.text("scope") == "Namespaced",
        names: name_rule(crd),
        established,
        versions: all.iter().map(|version| parse_version(version, all, owner, object_meta)).collect(),
    }
}

/// What names of the resource look like: as for all custom resources, unless the definition stands for an API server of its own.
fn name_rule(crd: &Value) -> NameRule {
    let [key, value] = ANY_NAME;
    let asked_for = crd.at("metadata").at("annotations").text(key) == value;
    if asked_for { NameRule::PathSegment } else { NameRule::DnsSubdomain }
}

/// What users of a deprecated version are told: which one to use instead, if there is a better one.
fn deprecation(all: &[Value], group: &str, name: &str, kind: &str) -> String {
    let better = all.iter().filter(|version| version.flag("served") && !version.flag("deprecated"));
    let best = better.map(|version| version.text("name")).max_by_key(|other| (priority(other), Reverse(*other)));
    match best.filter(|best| priority(best) > priority(name)) {
        Some(best) => format!("{group}/{name} {kind} is deprecated; use {group}/{best} {kind}"),
        None => format!("{group}/{name} {kind} is deprecated"),
    }
}

fn parse_version(
    version: &Value,
    all: &[Value],
    (group, kind): (&str, &str),
    object_meta: Option<&Arc<Schema>>,
) -> CrdVersion {
    let name = version.text("name").to_owned();
    let openapi = version.at("schema").at("openAPIV3Schema").clone();
    let subresources = version.at("subresources");
    let scale = subresources.at("scale");
    let selectable = |path: &str| Some((path.trim_start_matches('.').to_owned(), JsonPath::parse(path).ok()?));
    CrdVersion {
        served: version.flag("served"),
        storage: version.flag("storage"),
        deprecation_warning: version.flag("deprecated").then(|| match version.at("deprecationWarning").as_str() {
            Some(warning) => warning.to_owned(),
            None => deprecation(all, group, &name, kind),
        }),
        schema: Arc::new(compile::structural(&openapi, object_meta)),
        openapi,
        status: subresources.has("status"),
        scale: scale.is_object().then(|| Scale {
            spec_replicas: scale.text("specReplicasPath").to_owned(),
            status_replicas: scale.text("statusReplicasPath").to_owned(),
            label_selector: Some(scale.text("labelSelectorPath")).filter(|path| !path.is_empty()).map(str::to_owned),
        }),
        columns: parse_columns(version.list("additionalPrinterColumns")),
        selectable_fields: version
            .list("selectableFields")
            .iter()
            .filter_map(|f| selectable(f.text("jsonPath")))
            .collect(),
        name,
    }
}

/// The columns; the age of the object when there are none.
fn parse_columns(columns: &[Value]) -> Vec<CrdColumn> {
    let column = |name: &str, type_: &str, path: &str, written: &Value| CrdColumn {
        name: name.to_owned(),
        type_: type_.to_owned(),
        format: written.text("format").to_owned(),
        description: written.text("description").to_owned(),
        priority: written.int("priority").and_then(|priority| i32::try_from(priority).ok()).unwrap_or_default(),
        json_path: JsonPath::parse(path).ok(),
    };
    if columns.is_empty() {
        return vec![column("Age", "date", ".metadata.creationTimestamp", &Value::Null)];
    }
    columns
        .iter()
        .map(|written| column(written.text("name"), written.text("type"), written.text("jsonPath"), written))
        .collect()
}

#[cfg(test)]
mod tests;
