//! Which representation a client wants, and which one it sends.
//!
//! A real server has two doors here: its router knows the media types of built-in kinds and turns others away in its own
//! words; what passes it, and every request for a custom resource, is negotiated by the handler.

use std::cmp::Ordering;

use http::StatusCode;

use crate::status::ApiError;

/// JSON.
pub const JSON: &str = "application/json";
/// YAML.
pub const YAML: &str = "application/yaml";
/// Protobuf with the envelope of Kubernetes.
pub const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

const BODIES: [&str; 3] = [JSON, YAML, PROTOBUF];
const STREAMS: [&str; 2] = ["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];

/// What is asked, as far as negotiation cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    /// A built-in resource: the router sees the request first.
    Builtin(Reading),
    /// A custom resource.
    Custom(Reading),
    /// `/api` and `/apis`, which offer aggregated discovery.
    Groups,
    /// The other discovery documents.
    Discovery,
}

/// What a request on a resource is answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// One object.
    Object,
    /// A list.
    List,
    /// A stream of events.
    Watch,
}

/// What the client gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    /// The document.
    pub want: Want,
    /// How it is written.
    pub encoding: Encoding,
}

/// The document that a client wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// The object or list itself.
    Plain,
    /// A `Table` for people.
    Table(MetaVersion),
    /// A `PartialObjectMetadata`.
    PartialObject(MetaVersion),
    /// A `PartialObjectMetadataList`.
    PartialObjectList(MetaVersion),
    /// An `APIGroupDiscoveryList` of `apidiscovery.k8s.io/v2`.
    AggregatedDiscovery,
}

/// How a document is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

impl Encoding {
    /// The media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Json => JSON,
            Self::Yaml => YAML,
        }
    }
}

/// A version of `meta.k8s.io`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetaVersion {
    /// `meta.k8s.io/v1`
    V1,
    /// `meta.k8s.io/v1beta1`
    V1beta1,
}

impl MetaVersion {
    /// The `apiVersion`.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// Chooses the best representation that an `Accept` header asks for.
///
/// We write no protobuf: a client that also takes something else gets that, and one that does not is refused.
pub fn accept(header: Option<&str>, endpoint: Endpoint) -> Result<Accepted, ApiError> {
    let header = header.unwrap_or_default();
    // What nearly every client in the same process sends.
    if header.is_empty() || header == JSON {
        return Ok(Accepted { want: Want::Plain, encoding: Encoding::Json });
    }
    if let Some(refusal) = routed(header, endpoint) {
        return Err(refusal);
    }
    let mut clauses: Vec<Clause<'_>> = header.split(',').filter_map(Clause::parse).collect();
    clauses.sort_by(Clause::rank);
    let watching = matches!(endpoint, Endpoint::Builtin(Reading::Watch) | Endpoint::Custom(Reading::Watch));
    for clause in &clauses {
        for (media_type, encoding) in [(JSON, Encoding::Json), (YAML, Encoding::Yaml)] {
            if !clause.covers(media_type) {
                continue;
            }
            let Some(want) = clause.want(endpoint, encoding) else { continue };
            // The first choice stands, even when it cannot be streamed.
            if watching && encoding == Encoding::Yaml {
                return Err(ApiError::not_acceptable(&STREAMS));
            }
            return Ok(Accepted { want, encoding });
        }
    }
    Err(if watching { ApiError::not_acceptable(&STREAMS) } else { ApiError::not_acceptable(&BODIES) })
}

/// The router of a real server compares media types as text, knows no `application/*`, and has its own words.
fn routed(header: &str, endpoint: Endpoint) -> Option<ApiError> {
    let streams: &[&str] = match endpoint {
        Endpoint::Builtin(Reading::List | Reading::Watch) => &STREAMS,
        Endpoint::Builtin(Reading::Object) | Endpoint::Discovery => &[],
        Endpoint::Custom(_) | Endpoint::Groups => return None,
    };
    let types = header.split(',').map(|part| part.split(';').next().unwrap_or_default().trim_matches(' '));
    if types.into_iter().any(|t| t == "*/*" || BODIES.contains(&t)) {
        return None;
    }
    let offered = [&BODIES[..], streams].concat().join(", ");
    let message = format!("406: Not Acceptable\n\nAvailable representations: {offered}");
    Some(ApiError::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message).with_empty_details())
}

/// One media range of an `Accept` header.
struct Clause<'a> {
    type_: &'a str,
    subtype: &'a str,
    quality: f32,
    group: Option<&'a str>,
    version: Option<&'a str>,
    kind: Option<&'a str>,
    /// `stream=watch`, which YAML cannot do.
    streams: bool,
    /// Asks for something that no endpoint offers.
    impossible: bool,
}

impl<'a> Clause<'a> {
    fn parse(part: &'a str) -> Option<Self> {
        let mut pieces = part.trim_matches(' ').split(';');
        let range = pieces.next()?;
        let (type_, subtype) = match range.split_once('/') {
            Some((_, subtype)) if subtype.is_empty() || subtype.contains('/') => return None,
            Some((type_, subtype)) => (type_.trim_matches(' '), subtype.trim_matches(' ')),
            None if range.trim_matches(' ') == "*" => ("*", "*"),
            None => return None,
        };
        let (group, version, kind) = (None, None, None);
        let mut clause = Self { type_, subtype, quality: 1.0, group, version, kind, streams: false, impossible: false };
        for parameter in pieces {
            let Some((name, value)) = parameter.split_once('=') else { continue };
            if value.is_empty() || value.contains('=') {
                continue;
            }
            let name = name.trim_matches(' ');
            let trimmed = value.trim_matches(' ');
            match name {
                "q" => clause.quality = value.parse().unwrap_or(0.0),
                "g" => clause.group = Some(trimmed),
                "v" => clause.version = Some(trimmed),
                "as" => clause.kind = Some(trimmed),
                "stream" if trimmed == "watch" => clause.streams = true,
                "stream" | "sv" => clause.impossible |= !trimmed.is_empty(),
                _ => {}
            }
        }
        Some(clause)
    }

    /// Better quality first, then what is more specific, then what was written first.
    fn rank(&self, other: &Self) -> Ordering {
        let specific = |c: &Self| (c.type_ == "*", c.subtype == "*");
        other.quality.total_cmp(&self.quality).then_with(|| specific(self).cmp(&specific(other)))
    }

    fn covers(&self, media_type: &str) -> bool {
        let (type_, subtype) = media_type.split_once('/').unwrap_or_default();
        match (self.type_, self.subtype) {
            ("*", "*") => true,
            (t, "*") => t == type_,
            (t, s) => t == type_ && s == subtype,
        }
    }

    /// The document that the clause asks for, when the endpoint has it.
    fn want(&self, endpoint: Endpoint, encoding: Encoding) -> Option<Want> {
        if self.impossible || (self.streams && encoding == Encoding::Yaml) {
            return None;
        }
        if (self.group, self.version, self.kind) == (None, None, None) {
            return Some(Want::Plain);
        }
        let kind = self.kind.unwrap_or_default();
        match (endpoint, self.group.unwrap_or_default(), self.version.unwrap_or_default()) {
            (Endpoint::Groups, "apidiscovery.k8s.io", "v2") if kind == "APIGroupDiscoveryList" => {
                Some(Want::AggregatedDiscovery)
            }
            (Endpoint::Builtin(_) | Endpoint::Custom(_), "meta.k8s.io", version) => {
                let version = match version {
                    "v1" => MetaVersion::V1,
                    "v1beta1" => MetaVersion::V1beta1,
                    _ => return None,
                };
                match kind {
                    "Table" => Some(Want::Table(version)),
                    "PartialObjectMetadata" => Some(Want::PartialObject(version)),
                    "PartialObjectMetadataList" => Some(Want::PartialObjectList(version)),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

/// How a body is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyType {
    /// JSON, also when nothing is said.
    Json,
    /// YAML.
    Yaml,
    /// Protobuf, see [`crate::protobuf`].
    Protobuf,
}

/// Reads the `Content-Type` of a body that is an object.
pub fn body_type(header: Option<&str>) -> Result<BodyType, ApiError> {
    let header = match header {
        None | Some("" | JSON) => return Ok(BodyType::Json),
        Some(header) => header,
    };
    let mut pieces = header.split(';');
    let media_type = pieces.next().unwrap_or_default().trim().to_ascii_lowercase();
    let understood =
        pieces.all(|p| p.trim().is_empty() || p.trim().split_once('=').is_some_and(|(k, _)| !k.is_empty()));
    match media_type.as_str() {
        JSON if understood => Ok(BodyType::Json),
        YAML if understood => Ok(BodyType::Yaml),
        PROTOBUF if understood => Ok(BodyType::Protobuf),
        _ => Err(ApiError::unsupported_media_type(&BODIES)),
    }
}

/// The ways to change an object in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchType {
    /// RFC 6902.
    Json,
    /// RFC 7386.
    Merge,
    /// Strategic merge patch; built-in kinds only.
    Strategic,
    /// Server-side apply. The body is YAML, of which JSON is a part.
    Apply,
}

const PATCHES: [(&str, PatchType); 4] = [
    ("application/json-patch+json", PatchType::Json),
    ("application/merge-patch+json", PatchType::Merge),
    ("application/strategic-merge-patch+json", PatchType::Strategic),
    ("application/apply-patch+yaml", PatchType::Apply),
];

/// Reads the `Content-Type` of a patch. Of custom resources there are no strategic merge patches.
pub fn patch_type(header: Option<&str>, endpoint: Endpoint) -> Result<PatchType, ApiError> {
    let header = header.unwrap_or_default();
    let builtin = matches!(endpoint, Endpoint::Builtin(_));
    let offered = || PATCHES.iter().filter(move |(_, patch)| builtin || *patch != PatchType::Strategic);
    // No trimming: a real server compares the text before the semicolon.
    let media_type = header.split(';').next().unwrap_or_default();
    if let Some((_, patch)) = offered().find(|(name, _)| *name == media_type) {
        return Ok(*patch);
    }
    if builtin && !offered().any(|(name, _)| *name == media_type.trim_matches(' ')) {
        let message = "415: Unsupported Media Type";
        let refusal = ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message);
        return Err(refusal.with_empty_details());
    }
    Err(ApiError::unsupported_media_type(&offered().map(|(name, _)| *name).collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBJECT: Endpoint = Endpoint::Builtin(Reading::Object);
    const CUSTOM: Endpoint = Endpoint::Custom(Reading::Object);

    #[track_caller]
    fn check(header: &str, endpoint: Endpoint, want: Want, encoding: Encoding) {
        assert_eq!(accept(Some(header), endpoint), Ok(Accepted { want, encoding }), "{header}");
    }

    #[track_caller]
    fn refuses(header: &str, endpoint: Endpoint, message: &str) {
        let refusal = accept(Some(header), endpoint).unwrap_err();
        assert_eq!((refusal.message.as_str(), refusal.code.as_u16()), (message, 406), "{header}");
    }

    #[test]
    fn the_first_clause_that_the_endpoint_has_is_served() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
        check("", OBJECT, Want::Plain, Encoding::Json);
        check("*/*", OBJECT, Want::Plain, Encoding::Json);
        check(table, OBJECT, Want::Table(MetaVersion::V1), Encoding::Json);
        check(&format!("{table},application/json"), OBJECT, Want::Table(MetaVersion::V1), Encoding::Json);
        check(
            "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
            Endpoint::Custom(Reading::Watch),
            Want::Table(MetaVersion::V1),
            Encoding::Json,
        );
        check(
            "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
            OBJECT,
            Want::Table(MetaVersion::V1beta1),
            Encoding::Json,
        );
        check("application/yaml;as=Table;v=v1;g=meta.k8s.io", OBJECT, Want::Table(MetaVersion::V1), Encoding::Yaml);
        check("application/json;as=Foo;v=v1;g=meta.k8s.io,application/json", OBJECT, Want::Plain, Encoding::Json);
        check(
            "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
            CUSTOM,
            Want::PartialObject(MetaVersion::V1),
            Encoding::Json,
        );
        check(
            "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
            Endpoint::Custom(Reading::List),
            Want::PartialObjectList(MetaVersion::V1),
            Encoding::Json,
        );
        check("application/yaml;q=0.5,application/json;q=0.6", OBJECT, Want::Plain, Encoding::Json);
        check("application/yaml", OBJECT, Want::Plain, Encoding::Yaml);
        check("application/xml;q=0.9,*/*;q=0.1", OBJECT, Want::Plain, Encoding::Json);
        check("application/json; charset=utf-8", OBJECT, Want::Plain, Encoding::Json);
        check("application/json;stream=watch", Endpoint::Builtin(Reading::Watch), Want::Plain, Encoding::Json);
        check("application/vnd.kubernetes.protobuf,application/json", OBJECT, Want::Plain, Encoding::Json);
        check("application/vnd.kubernetes.protobuf, */*", OBJECT, Want::Plain, Encoding::Json);
        check("application/*", CUSTOM, Want::Plain, Encoding::Json);
        check("*", CUSTOM, Want::Plain, Encoding::Json);
    }

    #[test]
    fn aggregated_discovery_is_served_in_the_version_that_was_asked_for() {
        let v2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        let beta = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
        check(v2, Endpoint::Groups, Want::AggregatedDiscovery, Encoding::Json);
        check(
            &format!("{v2};profile=nopeer,{beta},application/json"),
            Endpoint::Groups,
            Want::AggregatedDiscovery,
            Encoding::Json,
        );
        check(&format!("{beta},application/json"), Endpoint::Groups, Want::Plain, Encoding::Json);
        check(&format!("{v2},application/json"), Endpoint::Discovery, Want::Plain, Encoding::Json);
        let all = "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf";
        refuses(beta, Endpoint::Groups, all);
        refuses(v2, Endpoint::Discovery, all);
        refuses(v2, OBJECT, all);
    }

    #[test]
    fn what_nobody_serves_is_refused_by_the_router_or_by_the_handler() {
        let all = "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf";
        let streams = "only the following media types are accepted: application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";
        let router = "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf";
        refuses("text/html", OBJECT, router);
        refuses("application/*", OBJECT, router);
        refuses("*", OBJECT, router);
        refuses("Application/JSON", OBJECT, router);
        refuses(
            "text/html",
            Endpoint::Builtin(Reading::List),
            "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch",
        );
        refuses("text/html", CUSTOM, all);
        refuses("application/json;as=Table;v=v2;g=meta.k8s.io", OBJECT, all);
        refuses("application/json;as=Table", OBJECT, all);
        refuses("application/json;g=meta.k8s.io", OBJECT, all);
        refuses("application/json;stream=foo", OBJECT, all);
        refuses("application/json;sv=1", OBJECT, all);
        refuses("application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io", OBJECT, all);
        refuses("application/yaml", Endpoint::Custom(Reading::Watch), streams);
        refuses("application/yaml;as=Table;v=v1;g=meta.k8s.io", Endpoint::Builtin(Reading::Watch), streams);
        refuses(";;,,/", CUSTOM, all);
    }

    #[test]
    fn bodies_are_json_yaml_or_protobuf() {
        let check = |header: Option<&str>, expected: Option<BodyType>| {
            assert_eq!(body_type(header).ok(), expected, "{header:?}");
        };
        check(None, Some(BodyType::Json));
        check(Some("application/json; charset=utf-8"), Some(BodyType::Json));
        check(Some("Application/JSON"), Some(BodyType::Json));
        check(Some("application/yaml"), Some(BodyType::Yaml));
        check(Some("application/vnd.kubernetes.protobuf"), Some(BodyType::Protobuf));
        check(Some("application/json; charset=utf-8; foo"), None);
        check(Some("text/plain"), None);
        assert_eq!(
            body_type(Some("text/plain")).unwrap_err().message,
            "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf"
        );
    }

    #[test]
    fn custom_resources_know_no_strategic_merge_patch() {
        let check = |header: &str, endpoint, expected: Result<PatchType, &str>| {
            let found = patch_type(Some(header), endpoint).map_err(|e| e.message);
            assert_eq!(found.as_ref().map_err(String::as_str), expected.as_ref().map_err(|e| *e), "{header}");
        };
        let custom = "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
        check("application/strategic-merge-patch+json", OBJECT, Ok(PatchType::Strategic));
        check("application/merge-patch+json;charset=utf-8", OBJECT, Ok(PatchType::Merge));
        check("application/apply-patch+yaml", CUSTOM, Ok(PatchType::Apply));
        check("application/json-patch+json", CUSTOM, Ok(PatchType::Json));
        check("application/strategic-merge-patch+json", CUSTOM, Err(custom));
        check("text/plain", CUSTOM, Err(custom));
        check("text/plain", OBJECT, Err("415: Unsupported Media Type"));
        check(
            "application/merge-patch+json ;charset=utf-8",
            OBJECT,
            Err(
                "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, application/apply-patch+yaml",
            ),
        );
    }
}
