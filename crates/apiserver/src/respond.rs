//! From a request to its answer: read the path, find the kind, call the verb.

use std::fmt;

use bytes::{Buf, Bytes, BytesMut};
use http::{Method, Request, Response, StatusCode, header, request::Parts};
use http_body_util::BodyExt;
use serde_json::json;
use tokio::time::Instant;

use crate::auth::User;
use crate::body::{self, Body};
use crate::builtin::Verbs;
use crate::kind::builtins;
use crate::load::Sort;
use crate::metrics::Asked;
use crate::negotiate::{self, Endpoint, Want};
use crate::openapi;
use crate::query::Query;
use crate::request::{ResourcePath, Target, Verb, target};
use crate::server::ApiServer;
use crate::status::ApiError;
use crate::subresource::SubresourceRequest;
use crate::verb::Call;

/// The Kubernetes version that this server behaves like.
pub const GIT_VERSION: &str = "v1.36.0+windlass";

/// What a real server has below its objects and this one has not, unless another crate adds it.
const UNSERVED: &[(&str, &str)] = &[
    ("nodes", "proxy"),
    ("pods", "attach"),
    ("pods", "binding"),
    ("pods", "ephemeralcontainers"),
    ("pods", "exec"),
    ("pods", "log"),
    ("pods", "portforward"),
    ("pods", "proxy"),
    ("pods", "resize"),
    ("serviceaccounts", "token"),
    ("services", "proxy"),
];

impl ApiServer {
    /// Answers any request. A refusal is an answer too.
    pub(crate) async fn respond<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body,
        B::Error: fmt::Display,
    {
        let (parts, body) = request.into_parts();
        let target = target(parts.uri.path());
        let is_watch = is_watch(&parts, &target);
        let begun = Instant::now();
        let user = parts.extensions.get::<User>().map_or("", |user| user.name.as_str());
        let in_hand = self.requests().take(self.options().limits, user, Sort::of(&parts.method, is_watch));
        let answer = match &in_hand {
            Ok(_) => match self.read_body(body).await {
                Ok(bytes) => self.answer_request(&parts, &target, bytes).await,
                Err(refusal) => Err(refusal),
            },
            Err(refusal) => Err(refusal.clone()),
        };
        let answer = answer.unwrap_or_else(|refusal| body::refusal(&refusal));
        let asked = Asked::of(self, &parts.method, &target, is_watch);
        self.metrics().answered(asked, answer.status(), begun.elapsed());
        match in_hand {
            // A watch is in hand until it ends.
            Ok(in_hand) if is_watch && answer.status() == StatusCode::OK => answer.map(|body| body.holding(in_hand)),
            _ => answer,
        }
    }

    /// Reads a body, but not more than anybody should send.
    async fn read_body<B>(&self, body: B) -> Result<Bytes, ApiError>
    where
        B: http_body::Body,
        B::Error: fmt::Display,
    {
        let max = self.options().body_bytes_max;
        let mut body = std::pin::pin!(body);
        let mut whole = BytesMut::new();
        let mut first: Option<Bytes> = None;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|e| ApiError::bad_request(format!("reading the request's body: {e}")))?;
            let Ok(mut data) = frame.into_data() else { continue };
            let size = data.remaining();
            if whole.len() + first.as_ref().map_or(0, Bytes::len) + size > max {
                return Err(ApiError::too_large(format!("Request entity too large: limit is {max}")));
            }
            // One chunk is the common case and needs no copy.
            let chunk = data.copy_to_bytes(size);
            match first.take() {
                None if whole.is_empty() => first = Some(chunk),
                None => whole.extend_from_slice(&chunk),
                Some(earlier) => {
                    whole.extend_from_slice(&earlier);
                    whole.extend_from_slice(&chunk);
                }
            }
        }
        Ok(first.unwrap_or_else(|| whole.freeze()))
    }

    async fn answer_request(
        &self,
        parts: &Parts,
        target: &Target<'_>,
        body: Bytes,
    ) -> Result<Response<Body>, ApiError> {
        let accept = parts.headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
        if !matches!(target, Target::Resource(_)) && !matches!(parts.method, Method::GET | Method::HEAD) {
            return Err(ApiError::method_not_allowed());
        }
        match target {
            Target::Resource(path) => self.answer_resource(parts, path, body).await,
            Target::CoreVersions if aggregated(accept)? => Ok(self.aggregated(true)),
            Target::Groups if aggregated(accept)? => Ok(self.aggregated(false)),
            Target::CoreVersions => Ok(self.core_versions()),
            Target::Groups => Ok(self.groups()),
            Target::Group(group) => self.group(group),
            Target::Version(group, version) => self.version(group, version),
            Target::OpenApi2 => Ok(openapi::v2(accept)),
            Target::OpenApi => Ok(self.openapi_index()),
            Target::OpenApiVersion(group, version) => self.openapi(group, version),
            Target::ServerVersion => Ok(body::json(StatusCode::OK, &version())),
            Target::Health(_) => Ok(body::typed(StatusCode::OK, "text/plain; charset=utf-8", Body::whole("ok"))),
            Target::Metrics => Ok(self.metrics_page()),
            Target::Root => Ok(body::json(StatusCode::OK, &json!({"paths": self.paths()}))),
            Target::Unknown => Err(ApiError::no_such_page()),
        }
    }

    fn paths(&self) -> Vec<String> {
        let registry = self.registry();
        let mut paths = vec!["/api".to_owned(), "/api/v1".to_owned(), "/apis".to_owned()];
        for group in registry.groups().filter(|group| !group.is_empty()) {
            paths.push(format!("/apis/{group}"));
            paths.extend(registry.versions(group).iter().map(|version| format!("/apis/{group}/{version}")));
        }
        paths.extend(
            ["/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz", "/version"].map(str::to_owned),
        );
        paths
    }

    async fn answer_resource(
        &self,
        parts: &Parts,
        path: &ResourcePath<'_>,
        body: Bytes,
    ) -> Result<Response<Body>, ApiError> {
        let registry = self.registry();
        let builtin = builtins::registry().has_version(path.group, path.version);
        let missing = || if builtin { ApiError::no_such_path() } else { ApiError::no_such_page() };
        let kind = registry.find(path.group, path.version, path.plural).ok_or_else(missing)?.clone();
        // A kind without namespaces is not found inside of one; one object of a kind with namespaces is not found outside.
        let in_namespace = path.namespace.is_some() && path.plural != "namespaces";
        if in_namespace != kind.namespaced && (in_namespace || path.name.is_some()) {
            return Err(missing());
        }
        let call = Call {
            kind,
            namespace: path.namespace.filter(|_| in_namespace).unwrap_or_default().to_owned(),
            name: path.name.unwrap_or_default().to_owned(),
            subresource: path.subresource.unwrap_or_default().to_owned(),
            query: query(parts, path),
            headers: parts.headers.clone(),
            user: parts.extensions.get::<User>().cloned().unwrap_or_else(User::admin),
            body,
        };
        let answer = match self.complete(&call.kind).await {
            Ok(()) => self.call_verb(&parts.method, path, &call).await,
            Err(refusal) => Err(refusal),
        };
        // Even after a refusal: an earlier client may have hung up in the middle.
        self.settle().await;
        let mut response = answer.unwrap_or_else(|refusal| body::refusal(&refusal));
        if let Some(deprecation) = call.kind.deprecation() {
            body::warn(&mut response, &[deprecation]);
        }
        Ok(response)
    }

    async fn call_verb(
        &self,
        method: &Method,
        path: &ResourcePath<'_>,
        call: &Call,
    ) -> Result<Response<Body>, ApiError> {
        if call.kind.is_custom() && *method == Method::PUT && path.name.is_none() {
            return Err(ApiError::bad_request("name must be provided"));
        }
        let verb = Verb::of(method, path).ok_or_else(ApiError::method_not_allowed)?;
        if path.watch {
            return if verb == Verb::Get || verb == Verb::List {
                self.list_or_watch(call)
            } else {
                Err(not_offered(call, verb))
            };
        }
        match call.subresource.as_str() {
            "" => {}
            "status" if call.kind.status => {
                return match verb {
                    Verb::Get => self.get(call),
                    Verb::Update => self.update(call).await,
                    Verb::Patch => self.patch(call).await,
                    Verb::List | Verb::Create | Verb::Delete | Verb::DeleteCollection => Err(not_offered(call, verb)),
                };
            }
            "scale" if call.kind.scale.is_some() => return self.scale(call, method).await,
            "finalize" if &*call.kind.resource == "namespaces" => {
                return if verb == Verb::Update {
                    self.update(call).await
                } else {
                    Err(ApiError::method_not_allowed())
                };
            }
            other => return self.call_subresource(method, other, call).await,
        }
        // One namespace at a time, but for lists.
        if call.kind.namespaced && call.namespace.is_empty() && verb != Verb::List {
            return Err(not_offered(call, verb));
        }
        let offered = call.kind.builtin().map_or(Verbs::All, |builtin| builtin.verbs);
        match (verb, offered) {
            (Verb::Create, _) if path.name.is_none() => self.create(call).await,
            (_, Verbs::CreateOnly) | (Verb::DeleteCollection, Verbs::AllButDeleteCollection) | (Verb::Create, _) => {
                Err(ApiError::method_not_allowed())
            }
            (Verb::Get, _) => self.get(call),
            (Verb::List, _) => self.list_or_watch(call),
            (Verb::Update, _) => self.update(call).await,
            (Verb::Patch, _) => self.patch(call).await,
            (Verb::Delete, _) => self.delete(call).await,
            (Verb::DeleteCollection, _) => self.delete_collection(call).await,
        }
    }

    async fn call_subresource(&self, method: &Method, name: &str, call: &Call) -> Result<Response<Body>, ApiError> {
        let missing = || {
            if UNSERVED.contains(&(&*call.kind.resource, name)) {
                ApiError::not_implemented(&format!("{}/{name}", call.kind.plural))
            } else if call.kind.is_custom() {
                call.not_found()
            } else {
                ApiError::no_such_path()
            }
        };
        let subresource = self.subresource(&call.kind.resource, name).ok_or_else(missing)?;
        let request = SubresourceRequest {
            kind: call.kind.clone(),
            namespace: call.namespace.clone(),
            name: call.name.clone(),
            method: method.clone(),
            query: call.query.clone(),
            headers: call.headers.clone(),
            user: call.user.clone(),
            body: call.body.clone(),
        };
        subresource.call(self, request).await
    }
}

/// Whether the answer goes on: a watch.
fn is_watch(parts: &Parts, target: &Target<'_>) -> bool {
    let asked = || Query::parse(parts.uri.query().unwrap_or_default()).flag("watch").unwrap_or(false);
    match target {
        Target::Resource(path) => {
            matches!(parts.method, Method::GET) && path.subresource.is_none() && (path.watch || asked())
        }
        _ => false,
    }
}

/// The query string; an old watch path says in the path what is now said there.
fn query(parts: &Parts, path: &ResourcePath<'_>) -> String {
    let sent = parts.uri.query().unwrap_or_default();
    if path.watch { format!("watch=true&{sent}") } else { sent.to_owned() }
}

/// A verb that the path does not take. Custom resources have their own words for it.
fn not_offered(call: &Call, verb: Verb) -> ApiError {
    if !call.kind.is_custom() {
        return ApiError::method_not_allowed();
    }
    ApiError::not_supported(verb.as_str(), &call.kind.plural, &call.kind.group)
}

fn aggregated(accept: Option<&str>) -> Result<bool, ApiError> {
    Ok(negotiate::accept(accept, Endpoint::Groups)?.want == Want::AggregatedDiscovery)
}

fn version() -> serde_json::Value {
    json!({
        "major": "1", "minor": "36", "gitVersion": GIT_VERSION, "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z", "goVersion": "", "compiler": "rustc", "platform": "embedded",
        "emulationMajor": "1", "emulationMinor": "36", "minCompatibilityMajor": "1", "minCompatibilityMinor": "35",
    })
}
