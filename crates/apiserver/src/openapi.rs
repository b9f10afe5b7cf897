//! OpenAPI v3: what kubectl reads before it applies, diffs or explains.
//!
//! One document for each group and version. Built-in kinds are published from the facts that their schemas are compiled from,
//! custom resources from their definitions. A path says no more than clients read: which kind it serves, and which parameters
//! a write takes (from `fieldValidation` kubectl learns that the server checks fields itself).

use std::collections::{BTreeMap, BTreeSet};

use http::{Response, StatusCode};
use serde_json::{Map, Value, json};

use crate::body::{self, Body};
use crate::kind::{Kind, Origin, Registry, builtins};
use crate::server::ApiServer;
use crate::status::ApiError;

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const REF: &str = "#/components/schemas/";

/// The protobuf form of OpenAPI v2, the only one that kubectl asks for. It asks with an `@` and is answered without: a media
/// type has none, and its parser knows.
const V2_ASKED: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
const V2_ANSWERED: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
/// `swagger` (field 1) is "2.0", `info` (2) has a `title` (1) and a `version` (2), `paths` (8) and `definitions` (9) are empty.
const V2_EMPTY: &[u8] = b"\x0a\x032.0\x12\x0f\x0a\x0aKubernetes\x12\x01-\x42\x00\x4a\x00";

/// `/openapi/v2`: a document without definitions. kubectl insists on one before it takes a `kind: List`, and where it finds
/// no definition of a kind, it leaves the checks to the server.
pub(crate) fn v2(accept: Option<&str>) -> Response<Body> {
    if accept.is_some_and(|accept| [V2_ASKED, V2_ANSWERED].iter().any(|type_| accept.contains(type_))) {
        return body::typed(StatusCode::OK, V2_ANSWERED, Body::whole(V2_EMPTY));
    }
    let info = json!({"title": "Kubernetes", "version": "-"});
    body::json(StatusCode::OK, &json!({"swagger": "2.0", "info": info, "paths": {}, "definitions": {}}))
}

impl ApiServer {
    /// `/openapi/v3`: the list of documents.
    pub(crate) fn openapi_index(&self) -> Response<Body> {
        let registry = self.registry();
        let mut paths = Map::new();
        for group in registry.groups() {
            for version in registry.versions(group) {
                let path = if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") };
                let digest = digest(&serde_json::to_vec(&document(&registry, group, version)).unwrap_or_default());
                let url = format!("/openapi/v3/{path}?hash={digest:016X}");
                paths.insert(path, json!({"serverRelativeURL": url}));
            }
        }
        body::json(StatusCode::OK, &json!({"paths": paths}))
    }

    /// `/openapi/v3/apis/apps/v1`: one document.
    pub(crate) fn openapi(&self, group: &str, version: &str) -> Result<Response<Body>, ApiError> {
        let registry = self.registry();
        if !registry.has_version(group, version) {
            return Err(ApiError::no_such_path());
        }
        Ok(body::json(StatusCode::OK, &document(&registry, group, version)))
    }
}

fn document(registry: &Registry, group: &str, version: &str) -> Value {
    let mut schemas = BTreeMap::new();
    let mut wanted = BTreeSet::new();
    let mut paths = Map::new();
    for kind in registry.kinds(group, version) {
        add_paths(kind, &mut paths);
        match &kind.origin {
            Origin::Builtin(builtin) => {
                wanted.insert(builtin.definition.to_owned());
            }
            Origin::Custom(custom) => {
                wanted.insert(OBJECT_META.to_owned());
                schemas.insert(definition_name(kind), published(kind, &custom.published));
            }
        }
    }
    add_definitions(wanted, &mut schemas);
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": crate::respond::GIT_VERSION},
        "paths": paths,
        "components": {"schemas": schemas},
    })
}

/// Built-in definitions, and all that they refer to.
fn add_definitions(mut wanted: BTreeSet<String>, schemas: &mut BTreeMap<String, Value>) {
    let Some(definitions) = builtins::definitions() else { return };
    while let Some(name) = wanted.pop_first() {
        if schemas.contains_key(&name) {
            continue;
        }
        if let Some(schema) = definitions.raw(&name) {
            references(&schema, &mut wanted);
            schemas.insert(name, schema);
        }
    }
}

fn references(schema: &Value, found: &mut BTreeSet<String>) {
    match schema {
        Value::Object(fields) => {
            if let Some(name) = fields.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix(REF)) {
                found.insert(name.to_owned());
            }
            fields.values().for_each(|field| references(field, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

/// `dev.windlass.v1alpha1.ClusterUpdate`: the group backwards.
fn definition_name(kind: &Kind) -> String {
    let reversed: Vec<&str> = kind.group.rsplit('.').collect();
    format!("{}.{}.{}", reversed.join("."), kind.version, kind.kind)
}

fn group_version_kind(kind: &Kind) -> Value {
    json!({"group": kind.group, "version": kind.version, "kind": kind.kind})
}

/// A custom resource's schema with the fields that every object has.
fn published(kind: &Kind, schema: &Value) -> Value {
    let mut schema = if schema.is_object() { schema.clone() } else { json!({"type": "object"}) };
    if !schema["properties"].is_object() {
        schema["properties"] = json!({});
    }
    let text = |description: &str| json!({"type": "string", "description": description});
    schema["properties"]["apiVersion"] = text("The group and version of this object's schema.");
    schema["properties"]["kind"] = text("The kind of this object.");
    schema["properties"]["metadata"] = json!({
        "description": "Name, namespace, labels and everything else that all objects have.",
        "allOf": [{"$ref": format!("{REF}{OBJECT_META}")}],
    });
    schema["x-kubernetes-group-version-kind"] = json!([group_version_kind(kind)]);
    schema
}

fn add_paths(kind: &Kind, paths: &mut Map<String, Value>) {
    let root = if kind.group.is_empty() {
        format!("/api/{}", kind.version)
    } else {
        format!("/apis/{}/{}", kind.group, kind.version)
    };
    let scope = if kind.namespaced { "/namespaces/{namespace}" } else { "" };
    let collection = format!("{root}{scope}/{}", kind.plural);
    let name = match &kind.origin {
        Origin::Builtin(builtin) => builtin.definition.to_owned(),
        Origin::Custom(_) => definition_name(kind),
    };
    let operation = |action: &str, parameters: &[&str]| {
        let parameters: Vec<Value> = parameters
            .iter()
            .map(|name| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}}))
            .collect();
        let content = json!({"application/json": {"schema": {"$ref": format!("{REF}{name}")}}});
        json!({
            "x-kubernetes-action": action, "x-kubernetes-group-version-kind": group_version_kind(kind),
            "parameters": parameters,
            "responses": {"200": {"description": "OK", "content": content}},
        })
    };
    let written = ["dryRun", "fieldManager", "fieldValidation"];
    let patched = ["dryRun", "fieldManager", "fieldValidation", "force"];
    if kind.namespaced {
        let everywhere =
            json!({"get": operation("list", &["labelSelector", "fieldSelector", "limit", "continue", "watch"])});
        paths.insert(format!("{root}/{}", kind.plural), everywhere);
    }
    paths.insert(
        collection.clone(),
        json!({
            "get": operation("list", &["labelSelector", "fieldSelector", "limit", "continue", "watch"]),
            "post": operation("post", &written),
        }),
    );
    paths.insert(
        format!("{collection}/{{name}}"),
        json!({
            "get": operation("get", &[]),
            "put": operation("put", &written),
            "patch": operation("patch", &patched),
            "delete": operation("delete", &["dryRun", "propagationPolicy"]),
        }),
    );
}

/// FNV-1a: tells documents apart, no more.
pub(crate) fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tags and contents of a message whose fields are all short, and strings or messages.
    fn fields(mut message: &[u8]) -> Vec<(u8, &[u8])> {
        let mut found = Vec::new();
        while let [tag, length, rest @ ..] = message {
            let (content, next) = rest.split_at(usize::from(*length));
            found.push((*tag, content));
            message = next;
        }
        assert!(message.is_empty());
        found
    }

    #[test]
    fn the_empty_document_is_well_formed() {
        let document = fields(V2_EMPTY);
        let tags: Vec<u8> = document.iter().map(|(tag, _)| tag >> 3).collect();
        assert_eq!(tags, [1, 2, 8, 9]);
        assert_eq!(document[0].1, b"2.0");
        assert_eq!(fields(document[1].1), [(0x0a, &b"Kubernetes"[..]), (0x12, &b"-"[..])]);
    }

    #[test]
    fn version_2_is_answered_in_the_form_that_is_asked_for() {
        for (accept, type_) in [
            (None, "application/json"),
            (Some("application/json"), "application/json"),
            (Some("application/com.github.proto-openapi.spec.v2@v1.0+protobuf"), V2_ANSWERED),
            (Some(V2_ANSWERED), V2_ANSWERED),
        ] {
            assert_eq!(v2(accept).headers()["content-type"], type_, "{accept:?}");
        }
    }
}
