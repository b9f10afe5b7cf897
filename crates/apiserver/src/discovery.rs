//! Discovery: which groups, versions and resources there are, in the aggregated form and in the old one.

use base64::Engine as _;
use http::{Response, StatusCode};
use serde_json::{Value, json};

use crate::body::{self, Body};
use crate::builtin::Verbs;
use crate::kind::{Kind, Registry, api_version};
use crate::server::ApiServer;
use crate::status::ApiError;
use crate::subresource::Described;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

const ALL_VERBS: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
/// Custom resources list the same verbs in another order.
const CUSTOM_VERBS: &[&str] = &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

fn verbs(kind: &Kind) -> Vec<&'static str> {
    match kind.builtin().map(|builtin| builtin.verbs) {
        Some(Verbs::CreateOnly) => vec!["create"],
        Some(Verbs::AllButDeleteCollection) => {
            ALL_VERBS.iter().copied().filter(|verb| *verb != "deletecollection").collect()
        }
        Some(Verbs::All) => ALL_VERBS.to_vec(),
        None => CUSTOM_VERBS.to_vec(),
    }
}

/// A subresource and what goes in and out of it.
struct Part {
    name: String,
    group: String,
    version: String,
    kind: String,
    verbs: Vec<&'static str>,
}

impl ApiServer {
    /// `/api` and `/apis` in one document: everything that kubectl wants to know, in two requests.
    pub(crate) fn aggregated(&self, core: bool) -> Response<Body> {
        let registry = self.registry();
        let groups: Vec<Value> = ordered_groups(&registry)
            .into_iter()
            .filter(|group| group.is_empty() == core)
            .map(|group| self.aggregated_group(&registry, group))
            .collect();
        let list = json!({
            "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": groups,
        });
        body::typed(StatusCode::OK, AGGREGATED, Body::whole(serde_json::to_vec(&list).unwrap_or_default()))
    }

    fn aggregated_group(&self, registry: &Registry, group: &str) -> Value {
        let versions: Vec<Value> = registry
            .versions(group)
            .into_iter()
            .map(|version| {
                let resources: Vec<Value> =
                    registry.kinds(group, version).map(|kind| self.aggregated_resource(kind)).collect();
                json!({"version": version, "resources": resources, "freshness": "Current"})
            })
            .collect();
        let mut metadata = json!({});
        if !group.is_empty() {
            metadata["name"] = group.into();
        }
        json!({"metadata": metadata, "versions": versions})
    }

    fn aggregated_resource(&self, kind: &Kind) -> Value {
        let kind_of =
            |group: &str, version: &str, kind: &str| json!({"group": group, "version": version, "kind": kind});
        let mut resource = json!({
            "resource": kind.plural,
            "responseKind": if kind.is_custom() {
                kind_of(&kind.group, &kind.version, &kind.kind)
            } else {
                kind_of("", "", &kind.kind)
            },
            "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
            "singularResource": kind.singular,
            "verbs": verbs(kind),
        });
        if !kind.short_names.is_empty() {
            resource["shortNames"] = kind.short_names.clone().into();
        }
        if !kind.categories.is_empty() {
            resource["categories"] = kind.categories.clone().into();
        }
        let parts: Vec<Value> = self
            .parts(kind)
            .into_iter()
            .map(|part| {
                json!({
                    "subresource": part.name, "verbs": part.verbs,
                    "responseKind": kind_of(&part.group, &part.version, &part.kind),
                })
            })
            .collect();
        if !parts.is_empty() {
            resource["subresources"] = parts.into();
        }
        resource
    }

    fn parts(&self, kind: &Kind) -> Vec<Part> {
        let mut parts: Vec<Part> = self
            .subresources()
            .iter()
            .filter(|((resource, _), _)| {
                **resource == *kind.resource && kind.builtin().is_none_or(|b| b.group == kind.group)
            })
            .map(|((_, name), subresource)| {
                let Described { group, version, kind, verbs } = subresource.describe();
                let verbs = verbs.to_vec();
                Part { name: name.clone(), group: group.into(), version: version.into(), kind: kind.into(), verbs }
            })
            .collect();
        let mut add = |name: &str, group: &str, version: &str, kind: &str| {
            let verbs = vec!["get", "patch", "update"];
            parts.push(Part {
                name: name.into(),
                group: group.into(),
                version: version.into(),
                kind: kind.into(),
                verbs,
            });
        };
        if kind.scale.is_some() {
            add("scale", "autoscaling", "v1", "Scale");
        }
        if kind.status {
            add("status", &kind.group, &kind.version, &kind.kind);
        }
        if &*kind.resource == "namespaces" {
            parts.push(Part {
                name: "finalize".into(),
                group: String::new(),
                version: "v1".into(),
                kind: "Namespace".into(),
                verbs: vec!["update"],
            });
        }
        if kind.is_custom() {
            parts.sort_by(|a, b| b.name.cmp(&a.name));
        } else {
            parts.sort_by(|a, b| a.name.cmp(&b.name));
        }
        parts
    }

    /// `/api` as clients knew it first.
    pub(crate) fn core_versions(&self) -> Response<Body> {
        let registry = self.registry();
        body::json(
            StatusCode::OK,
            &json!({
                "kind": "APIVersions", "versions": registry.versions(""),
                "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}],
            }),
        )
    }

    /// `/apis` as clients knew it first.
    pub(crate) fn groups(&self) -> Response<Body> {
        let registry = self.registry();
        let groups: Vec<Value> = ordered_groups(&registry)
            .into_iter()
            .filter(|name| !name.is_empty())
            .map(|name| group(&registry, name))
            .collect();
        body::json(StatusCode::OK, &json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
    }

    /// `/apis/apps`.
    pub(crate) fn group(&self, name: &str) -> Result<Response<Body>, ApiError> {
        let registry = self.registry();
        if registry.versions(name).is_empty() {
            return Err(ApiError::no_such_page());
        }
        let mut document = group(&registry, name);
        document["kind"] = "APIGroup".into();
        document["apiVersion"] = "v1".into();
        Ok(body::json(StatusCode::OK, &document))
    }

    /// `/apis/apps/v1`.
    pub(crate) fn version(&self, group: &str, version: &str) -> Result<Response<Body>, ApiError> {
        let registry = self.registry();
        if !registry.has_version(group, version) {
            return Err(if group.is_empty() { ApiError::no_such_path() } else { ApiError::no_such_page() });
        }
        let mut resources = Vec::new();
        for kind in registry.kinds(group, version) {
            let mut resource = json!({
                "name": kind.plural, "singularName": kind.singular, "namespaced": kind.namespaced,
                "kind": kind.kind, "verbs": verbs(kind),
            });
            if !kind.short_names.is_empty() {
                resource["shortNames"] = kind.short_names.clone().into();
            }
            if !kind.categories.is_empty() {
                resource["categories"] = kind.categories.clone().into();
            }
            if let Some(stored) = registry.stored(&kind.resource).filter(|_| verbs(kind).len() > 1) {
                resource["storageVersionHash"] = storage_hash(stored).into();
            }
            resources.push(resource);
            for part in self.parts(kind) {
                let mut resource = json!({
                    "name": format!("{}/{}", kind.plural, part.name), "singularName": "",
                    "namespaced": kind.namespaced, "kind": part.kind, "verbs": part.verbs,
                });
                if (part.group.as_str(), part.version.as_str()) != (group, version) {
                    resource["group"] = part.group.into();
                    resource["version"] = part.version.into();
                }
                resources.push(resource);
            }
        }
        let group_version = api_version(group, version);
        Ok(body::json(
            StatusCode::OK,
            &json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources}),
        ))
    }
}

fn group(registry: &Registry, name: &str) -> Value {
    let versions: Vec<Value> = registry
        .versions(name)
        .into_iter()
        .map(|version| json!({"groupVersion": api_version(name, version), "version": version}))
        .collect();
    json!({"name": name, "preferredVersion": versions.first(), "versions": versions})
}

/// The built-in groups in the order in which Kubernetes lists them, which decides what an ambiguous name means to kubectl.
const FIRST: &[&str] = &[
    "",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
];

fn ordered_groups(registry: &Registry) -> Vec<&str> {
    let mut groups: Vec<&str> = registry.groups().collect();
    groups.sort_by_key(|group| (FIRST.iter().position(|first| first == group).unwrap_or(FIRST.len()), *group));
    groups
}

/// Tells whether the version that objects are stored in has changed. Opaque to clients, so it need not be Kubernetes' own hash.
fn storage_hash(stored: &Kind) -> String {
    let digest = crate::openapi::digest(format!("{}/{}/{}", stored.group, stored.version, stored.kind).as_bytes());
    base64::engine::general_purpose::STANDARD.encode(digest.to_be_bytes())
}
