//! `GET …/pods/NAME/log`, as `kubectl logs` asks for it.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{Stream, StreamExt};
use http::{Method, Response, StatusCode};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use windlass_apiserver::body::{self, Body};
use windlass_apiserver::query::Query;
use windlass_apiserver::status::ApiError;
use windlass_apiserver::store::{Key, Store, Subscription};
use windlass_apiserver::subresource::{Described, Subresource, SubresourceRequest};
use windlass_apiserver::{ApiServer, time};

use super::{LOGS, Line, Written, written};

const PODS: &str = "pods";

/// The subresource.
pub(crate) struct PodLog;

impl PodLog {
    /// Lets a server answer for logs. Its forks do so, too.
    pub(crate) fn serve(server: &ApiServer) {
        server.add_subresource(PODS, "log", Arc::new(Self));
    }
}

impl Subresource for PodLog {
    fn describe(&self) -> Described {
        Described { group: "", version: "v1", kind: "Pod", verbs: &["get"] }
    }

    fn call<'a>(
        &'a self,
        server: &'a ApiServer,
        request: SubresourceRequest,
    ) -> BoxFuture<'a, Result<Response<Body>, ApiError>> {
        Box::pin(std::future::ready(answer(server, &request)))
    }
}

/// What of a log is asked for.
#[derive(Debug, Default)]
struct Wish {
    container: Option<String>,
    follow: bool,
    previous: bool,
    timestamps: bool,
    since: Option<Timestamp>,
    lines_max: Option<usize>,
    bytes_max: Option<usize>,
}

impl Wish {
    fn read(query: &str, now: Timestamp) -> Result<Self, ApiError> {
        let query = Query::parse(query);
        let is_set = |key: &str| matches!(query.first(key), Some("" | "1" | "true"));
        let number = |key: &str| match query.first(key) {
            None => Ok(None),
            Some(text) => {
                let number = text.parse::<i64>().ok().and_then(|number| usize::try_from(number).ok());
                let refusal =
                    || ApiError::bad_request(format!("{key} must be a number that is not negative, not {text:?}"));
                number.map(Some).ok_or_else(refusal)
            }
        };
        let ago = number("sinceSeconds")?.and_then(|seconds| i64::try_from(seconds).ok());
        let ago = ago.and_then(|seconds| now.checked_sub(SignedDuration::from_secs(seconds)).ok());
        Ok(Self {
            container: query.first("container").filter(|name| !name.is_empty()).map(str::to_owned),
            follow: is_set("follow"),
            previous: is_set("previous"),
            timestamps: is_set("timestamps"),
            since: ago.or_else(|| query.first("sinceTime").and_then(|text| text.parse().ok())),
            lines_max: number("tailLines")?,
            bytes_max: number("limitBytes")?,
        })
    }

    fn write(&self, line: &Line) -> String {
        if self.timestamps { format!("{} {}\n", time::format(line.at), line.text) } else { format!("{}\n", line.text) }
    }

    /// What is asked for of what there is.
    fn select(&self, written: &Written) -> Bytes {
        let recent = written.lines.iter().filter(|line| self.since.is_none_or(|since| line.at >= since));
        let lines: Vec<&Line> = recent.collect();
        let skipped = self.lines_max.map_or(0, |max| lines.len().saturating_sub(max));
        let mut text: Vec<u8> = lines[skipped..].iter().flat_map(|line| self.write(line).into_bytes()).collect();
        text.truncate(self.bytes_max.unwrap_or(usize::MAX));
        text.into()
    }
}

fn answer(server: &ApiServer, request: &SubresourceRequest) -> Result<Response<Body>, ApiError> {
    if request.method != Method::GET {
        return Err(ApiError::method_not_allowed());
    }
    let wish = Wish::read(&request.query, server.now())?;
    let key = Key::new(&request.namespace, &request.name);
    let store = server.store();
    let changes = store.subscribe_all();
    let entry = store.get(PODS, &key).ok_or_else(|| ApiError::not_found(PODS, "", &request.name))?;
    let pod = entry.to_value("v1", "Pod");
    check(&pod, &wish)?;
    let written = written(store, &key, &entry.uid);
    let text = wish.select(&written);
    let body = if wish.follow && !has_ended(&pod) {
        let seen = written.dropped + written.lines.len();
        let follower = Follower { store: store.clone(), changes, key, uid: entry.uid.to_string(), seen, wish };
        Body::frames(futures::stream::iter((!text.is_empty()).then_some(text)).chain(follower.frames()))
    } else {
        Body::whole(text)
    };
    Ok(body::typed(StatusCode::OK, "text/plain", body))
}

/// Whether there can be a log at all, in the words of a kubelet.
fn check(pod: &Value, wish: &Wish) -> Result<(), ApiError> {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let containers = pod["spec"]["containers"].as_array().map_or(&[][..], Vec::as_slice);
    let names: Vec<&str> = containers.iter().filter_map(|container| container["name"].as_str()).collect();
    let container = match &wish.container {
        Some(container) if names.contains(&container.as_str()) => container.as_str(),
        Some(container) => {
            return Err(ApiError::bad_request(format!("container {container} is not valid for pod {name}")));
        }
        None if names.len() > 1 => {
            let choose =
                format!("a container name must be specified for pod {name}, choose one of: [{}]", names.join(" "));
            return Err(ApiError::bad_request(choose));
        }
        None => names.first().copied().unwrap_or_default(),
    };
    let statuses = pod["status"]["containerStatuses"].as_array().map_or(&[][..], Vec::as_slice);
    let status = statuses.iter().find(|status| status["name"] == container);
    let begun = |state: &Value| state["running"].is_object() || state["terminated"].is_object();
    if wish.previous && !status.is_some_and(|status| begun(&status["lastState"])) {
        return Err(ApiError::bad_request(format!(
            "previous terminated container \"{container}\" in pod \"{name}\" not found"
        )));
    }
    if status.is_some_and(|status| begun(&status["state"]) || begun(&status["lastState"])) {
        return Ok(());
    }
    // Without a node there is no kubelet to ask: the log is empty.
    if !pod["spec"]["nodeName"].is_string() {
        return Ok(());
    }
    let reason = status.and_then(|status| status["state"]["waiting"]["reason"].as_str()).unwrap_or("ContainerCreating");
    let reason = match reason {
        "ErrImagePull" => "image can't be pulled",
        "ImagePullBackOff" => "trying and failing to pull image",
        reason => reason,
    };
    Err(ApiError::bad_request(format!("container \"{container}\" in pod \"{name}\" is waiting to start: {reason}")))
}

fn has_ended(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
}

/// Somebody who reads on while a pod writes.
struct Follower {
    store: Store,
    changes: Subscription,
    key: Key,
    uid: String,
    /// How many lines were read.
    seen: usize,
    wish: Wish,
}

impl Follower {
    /// What comes, until the pod has ended.
    fn frames(self) -> impl Stream<Item = Bytes> + Send {
        futures::stream::unfold(Some(self), |follower| async move {
            let mut follower = follower?;
            loop {
                if let Ok((resource, change)) = follower.changes.next().await? {
                    if change.object.key != follower.key || !matches!(&*resource, LOGS | PODS) {
                        continue;
                    }
                } else {
                    // So much has happened that it is not all known any more; what there is now is.
                    follower.changes = follower.store.subscribe_all();
                }
                let goes_on = follower.goes_on();
                let text = follower.take();
                if !goes_on {
                    return (!text.is_empty()).then_some((text, None));
                }
                if !text.is_empty() {
                    return Some((text, Some(follower)));
                }
            }
        })
    }

    fn goes_on(&self) -> bool {
        let pod = self.store.get(PODS, &self.key).filter(|pod| *pod.uid == *self.uid);
        pod.is_some_and(|pod| !has_ended(&pod.to_value("v1", "Pod")))
    }

    fn take(&mut self) -> Bytes {
        let written = written(&self.store, &self.key, &self.uid);
        let fresh = written.lines.iter().skip(self.seen.saturating_sub(written.dropped));
        let text: String = fresh.map(|line| self.wish.write(line)).collect();
        self.seen = written.dropped + written.lines.len();
        text.into()
    }
}
