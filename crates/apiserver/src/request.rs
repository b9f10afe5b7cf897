//! What a request is about, read off its method and path.

use http::Method;

/// What a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target<'a> {
    /// Objects.
    Resource(ResourcePath<'a>),
    /// `/api`: the versions of the core group.
    CoreVersions,
    /// `/apis`: the other groups.
    Groups,
    /// `/apis/apps`: one group.
    Group(&'a str),
    /// `/api/v1` or `/apis/apps/v1`: the resources of a group and version.
    Version(&'a str, &'a str),
    /// `/openapi/v2`: one document for everything, of which clients are told nothing.
    OpenApi2,
    /// `/openapi/v3`: the list of documents.
    OpenApi,
    /// `/openapi/v3/apis/apps/v1`: one document.
    OpenApiVersion(&'a str, &'a str),
    /// `/version`.
    ServerVersion,
    /// `/healthz`, `/livez`, `/readyz`.
    Health(&'a str),
    /// `/metrics`: what the server counts.
    Metrics,
    /// `/`: the list of paths.
    Root,
    /// Anything else.
    Unknown,
}

/// The parts of a path that names objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourcePath<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The version.
    pub version: &'a str,
    /// The namespace, where the path has one.
    pub namespace: Option<&'a str>,
    /// The plural name.
    pub plural: &'a str,
    /// One object.
    pub name: Option<&'a str>,
    /// A part of it, or something that can be done with it.
    pub subresource: Option<&'a str>,
    /// The path is one of the old ones that mean a watch: `/api/v1/watch/…`.
    pub watch: bool,
}

/// Reads a path. Percent-escapes do not occur in the names that Kubernetes allows in paths, so none are decoded: a path with one
/// names nothing.
pub fn target(path: &str) -> Target<'_> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    match parts.as_slice() {
        [] => Target::Root,
        ["api"] => Target::CoreVersions,
        ["apis"] => Target::Groups,
        ["apis", group] => Target::Group(group),
        ["api", version] => Target::Version("", version),
        ["apis", group, version] => Target::Version(group, version),
        ["api", version, rest @ ..] => resource("", version, rest),
        ["apis", group, version, rest @ ..] => resource(group, version, rest),
        ["openapi", "v2"] => Target::OpenApi2,
        ["openapi", "v3"] => Target::OpenApi,
        ["openapi", "v3", "api", version] => Target::OpenApiVersion("", version),
        ["openapi", "v3", "apis", group, version] => Target::OpenApiVersion(group, version),
        ["version"] => Target::ServerVersion,
        ["metrics"] => Target::Metrics,
        [probe @ ("healthz" | "livez" | "readyz"), ..] => Target::Health(probe),
        _ => Target::Unknown,
    }
}

fn resource<'a>(group: &'a str, version: &'a str, rest: &[&'a str]) -> Target<'a> {
    let (watch, rest) = match rest {
        ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
        rest => (false, rest),
    };
    let base = ResourcePath { group, version, watch, ..ResourcePath::default() };
    let found = match rest {
        // A namespace is itself an object; `status` and `finalize` are its parts, everything else lives inside it.
        ["namespaces", name, subresource @ ("status" | "finalize")] => ResourcePath {
            plural: "namespaces",
            namespace: Some(name),
            name: Some(name),
            subresource: Some(subresource),
            ..base
        },
        ["namespaces", name] => ResourcePath { plural: "namespaces", namespace: Some(name), name: Some(name), ..base },
        ["namespaces", namespace, plural] => ResourcePath { namespace: Some(namespace), plural, ..base },
        ["namespaces", namespace, plural, name] => {
            ResourcePath { namespace: Some(namespace), plural, name: Some(name), ..base }
        }
        ["namespaces", namespace, plural, name, subresource] => ResourcePath {
            namespace: Some(namespace),
            plural,
            name: Some(name),
            subresource: Some(subresource),
            ..base
        },
        [plural] => ResourcePath { plural, ..base },
        [plural, name] => ResourcePath { plural, name: Some(name), ..base },
        [plural, name, subresource] => {
            ResourcePath { plural, name: Some(name), subresource: Some(subresource), ..base }
        }
        _ => return Target::Unknown,
    };
    Target::Resource(found)
}

/// What is to be done with objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Read one.
    Get,
    /// Read many, or watch them.
    List,
    /// Make one.
    Create,
    /// Replace one.
    Update,
    /// Change one.
    Patch,
    /// Delete one.
    Delete,
    /// Delete many.
    DeleteCollection,
}

impl Verb {
    /// As Kubernetes spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }

    /// The verb of a method on a path, if there is one.
    pub fn of(method: &Method, path: &ResourcePath<'_>) -> Option<Self> {
        match (method, path.name.is_some()) {
            (&Method::GET | &Method::HEAD, true) => Some(Self::Get),
            (&Method::GET | &Method::HEAD, false) => Some(Self::List),
            (&Method::POST, _) => Some(Self::Create),
            (&Method::PUT, true) => Some(Self::Update),
            (&Method::PATCH, true) => Some(Self::Patch),
            (&Method::DELETE, true) => Some(Self::Delete),
            (&Method::DELETE, false) => Some(Self::DeleteCollection),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, expected: &ResourcePath<'_>) {
        assert_eq!(target(path), Target::Resource(expected.clone()), "{path}");
    }

    #[test]
    fn paths_name_objects() {
        let core = ResourcePath { version: "v1", ..ResourcePath::default() };
        let apps = ResourcePath { group: "apps", version: "v1", plural: "deployments", ..ResourcePath::default() };
        check("/api/v1/pods", &ResourcePath { plural: "pods", ..core.clone() });
        check("/api/v1/nodes/n1", &ResourcePath { plural: "nodes", name: Some("n1"), ..core.clone() });
        check("/api/v1/namespaces", &ResourcePath { plural: "namespaces", ..core.clone() });
        let namespace = ResourcePath { plural: "namespaces", namespace: Some("a"), name: Some("a"), ..core.clone() };
        check("/api/v1/namespaces/a", &namespace);
        check("/api/v1/namespaces/a/finalize", &ResourcePath { subresource: Some("finalize"), ..namespace });
        check("/api/v1/namespaces/a/pods", &ResourcePath { namespace: Some("a"), plural: "pods", ..core });
        let named = ResourcePath { namespace: Some("a"), name: Some("web"), ..apps.clone() };
        check("/apis/apps/v1/namespaces/a/deployments/web", &named);
        check(
            "/apis/apps/v1/namespaces/a/deployments/web/scale",
            &ResourcePath { subresource: Some("scale"), ..named },
        );
        check("/apis/apps/v1/deployments", &apps);
    }

    #[test]
    fn other_paths_are_told_apart() {
        for (path, expected) in [
            ("/", Target::Root),
            ("/api", Target::CoreVersions),
            ("/apis", Target::Groups),
            ("/apis/apps", Target::Group("apps")),
            ("/apis/apps/v1", Target::Version("apps", "v1")),
            ("/api/v1", Target::Version("", "v1")),
            ("/openapi/v2", Target::OpenApi2),
            ("/openapi/v3/apis/apps/v1", Target::OpenApiVersion("apps", "v1")),
            ("/readyz/etcd", Target::Health("readyz")),
            ("/api/v1/namespaces/a/pods/p/log/x", Target::Unknown),
            ("/metrics", Target::Metrics),
            ("/nothing", Target::Unknown),
        ] {
            assert_eq!(target(path), expected, "{path}");
        }
    }
}
