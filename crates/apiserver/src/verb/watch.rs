//! Watch: the changes of a resource as they happen, one frame a line.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use http::{Response, StatusCode};
use serde_json::{Value, json};
use tokio::time::{Instant, Sleep};

use super::Call;
use super::read::Filter;
use crate::body::{Body, typed};
use crate::kind::Kind;
use crate::negotiate::{Reading, Want};
use crate::present::{Headings, partial};
use crate::query::{IncludeObject, ListOptions, Query};
use crate::server::ApiServer;
use crate::status::ApiError;
use crate::store::{Change, ChangeKind, Entry, Expired, Range, Subscription};

/// How often a quiet watch is told how far it has come. Kubernetes' own is about a minute.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// Kubernetes ends a watch that names no time-out after 30 to 60 minutes; one number keeps runs alike.
const TIMEOUT: Duration = Duration::from_secs(45 * 60);
/// A last bookmark goes out this long before the end, so that the next watch starts where this one ended.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

impl ApiServer {
    /// Watches the objects that a call names.
    pub(crate) fn watch(&self, call: &Call, options: &ListOptions) -> Result<Response<Body>, ApiError> {
        let accepted = call.accepted(Reading::Watch)?;
        let resource = &call.kind.resource;
        let current = self.store().revision();
        let asked = options.resource_version.unwrap_or_default();
        let selection = Selection {
            call: Arc::new(call.clone()),
            options: options.clone(),
            want: accepted.want,
            include: IncludeObject::parse(&Query::parse(&call.query))?,
        };
        // Version 0, or none, starts with what is there; so does `sendInitialEvents`, which also says when that is done.
        let initial = options.send_initial_events.unwrap_or(asked == 0);
        let (start, ready) = if initial {
            let filter = selection.filter();
            let range = Range { namespace: filter.namespace, after: None, limit: 0 };
            let page = self.store().list(resource, range, |entry| filter.keeps(entry));
            (page.revision, page.entries)
        } else if asked == 0 {
            (current, Vec::new())
        } else {
            (asked, Vec::new())
        };
        let subscription = match self.store().subscribe(resource, start) {
            Ok(subscription) => Some(subscription),
            // Kubernetes answers 200 and says it in the stream: clients list again only then.
            Err(expired) => return Ok(frames(once(expired_frame(start, expired)))),
        };
        let timeout =
            options.timeout_seconds.and_then(|seconds| u64::try_from(seconds).ok()).filter(|seconds| *seconds > 0);
        let timeout = timeout.map_or(TIMEOUT, Duration::from_secs);
        let mut stream = WatchStream {
            server: self.clone(),
            selection,
            subscription,
            ready: VecDeque::new(),
            headings: Headings::Shown,
            bookmarked: start,
            bookmark: None,
            end: Box::pin(tokio::time::sleep(timeout)),
        };
        for entry in ready {
            let frame = stream.frame("ADDED", &entry);
            stream.ready.push_back(frame);
        }
        if options.send_initial_events == Some(true) && options.allow_watch_bookmarks {
            let frame = stream.bookmark_frame(start, true);
            stream.ready.push_back(frame);
        }
        if options.allow_watch_bookmarks {
            stream.bookmark = Some(Box::pin(tokio::time::sleep_until(stream.next_bookmark())));
        }
        Ok(frames(stream))
    }
}

fn frames(stream: impl Stream<Item = Bytes> + Send + 'static) -> Response<Body> {
    typed(StatusCode::OK, "application/json", Body::frames(stream))
}

fn once(frame: Bytes) -> impl Stream<Item = Bytes> + Send + 'static {
    futures::stream::iter([frame])
}

/// What a watch is about; it outlives the request.
struct Selection {
    call: Arc<Call>,
    options: ListOptions,
    want: Want,
    include: IncludeObject,
}

impl Selection {
    fn filter(&self) -> Filter<'_> {
        Filter::new(&self.call, &self.options)
    }

    fn kind(&self) -> &Kind {
        &self.call.kind
    }

    /// What a change looks like from here: an object that enters the selection is new, one that leaves it is gone.
    fn event(&self, change: &Change) -> Option<&'static str> {
        let filter = self.filter();
        let now = change.kind != ChangeKind::Deleted && filter.keeps(&change.object);
        let before = change.previous.as_ref().is_some_and(|previous| filter.keeps(previous));
        match (before, now) {
            (false, true) => Some("ADDED"),
            (true, true) => Some("MODIFIED"),
            (true, false) => Some("DELETED"),
            (false, false) => None,
        }
    }
}

/// The frames of one watch.
struct WatchStream {
    server: ApiServer,
    selection: Selection,
    subscription: Option<Subscription>,
    ready: VecDeque<Bytes>,
    headings: Headings,
    /// The revision that the client knows for certain.
    bookmarked: u64,
    bookmark: Option<Pin<Box<Sleep>>>,
    end: Pin<Box<Sleep>>,
}

impl WatchStream {
    fn frame(&mut self, event: &str, entry: &Entry) -> Bytes {
        self.bookmarked = entry.revision;
        let kind = self.selection.kind();
        let mut out = Vec::with_capacity(entry.json.len() + 128);
        out.extend_from_slice(b"{\"type\":\"");
        out.extend_from_slice(event.as_bytes());
        out.extend_from_slice(b"\",\"object\":");
        match self.selection.want {
            Want::Plain | Want::AggregatedDiscovery => ApiServer::write_object(kind, entry, &mut out),
            Want::PartialObject(version) | Want::PartialObjectList(version) => {
                let document = partial(&mut ApiServer::load(kind, entry), version);
                out.extend(serde_json::to_vec(&document).unwrap_or_default());
            }
            Want::Table(version) => {
                let object = ApiServer::load(kind, entry);
                let metadata = json!({"resourceVersion": entry.revision.to_string()});
                let include = self.selection.include;
                let table = self.server.table(kind, version, &metadata, &[object], include, self.headings);
                self.headings = Headings::Left;
                out.extend(serde_json::to_vec(&table).unwrap_or_default());
            }
        }
        out.extend_from_slice(b"}\n");
        out.into()
    }

    /// How far the watch has come, in a frame without a change.
    fn bookmark_frame(&mut self, revision: u64, initial_events_end: bool) -> Bytes {
        self.bookmarked = revision;
        let kind = self.selection.kind();
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if initial_events_end {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let object = match self.selection.want {
            Want::Plain | Want::AggregatedDiscovery => {
                json!({"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata})
            }
            Want::PartialObject(version) | Want::PartialObjectList(version) => {
                json!({"kind": "PartialObjectMetadata", "apiVersion": version.api_version(), "metadata": metadata})
            }
            Want::Table(version) => {
                let object = json!({"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata});
                let table_metadata = json!({"resourceVersion": revision.to_string()});
                let include = self.selection.include;
                let table = self.server.table(kind, version, &table_metadata, &[object], include, self.headings);
                self.headings = Headings::Left;
                table
            }
        };
        line(&json!({"type": "BOOKMARK", "object": object}))
    }

    /// About every minute, and shortly before the end.
    fn next_bookmark(&self) -> Instant {
        let now = Instant::now();
        let last = self.end.deadline().checked_sub(LAST_BOOKMARK).filter(|last| *last > now);
        last.map_or(now + BOOKMARK_EVERY, |last| last.min(now + BOOKMARK_EVERY))
    }

    /// A bookmark, when the client does not know already how far it has come.
    fn due_bookmark(&mut self) -> Option<Bytes> {
        let caught_up = self.subscription.as_mut()?.caught_up().ok()??;
        (caught_up > self.bookmarked).then(|| self.bookmark_frame(caught_up, false))
    }
}

fn line(value: &Value) -> Bytes {
    let mut out = serde_json::to_vec(value).unwrap_or_default();
    out.push(b'\n');
    out.into()
}

fn expired_frame(revision: u64, expired: Expired) -> Bytes {
    let error = ApiError::expired(format!("too old resource version: {revision} ({})", expired.oldest));
    line(&json!({"type": "ERROR", "object": error.to_value()}))
}

impl Stream for WatchStream {
    type Item = Bytes;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let this = self.get_mut();
        loop {
            if let Some(frame) = this.ready.pop_front() {
                return Poll::Ready(Some(frame));
            }
            if this.subscription.is_none() {
                return Poll::Ready(None);
            }
            if this.end.as_mut().poll(context).is_ready() {
                this.subscription = None;
                return Poll::Ready(None);
            }
            let Some(subscription) = &mut this.subscription else { return Poll::Ready(None) };
            match Pin::new(&mut *subscription).poll_next(context) {
                Poll::Ready(Some(Ok((_, change)))) => {
                    if let Some(event) = this.selection.event(&change) {
                        // One that left the selection is shown as it was, at the version at which it left.
                        let frame = this.leaving(event, &change);
                        return Poll::Ready(Some(frame));
                    }
                }
                Poll::Ready(Some(Err(expired))) => {
                    let revision = subscription.revision();
                    this.subscription = None;
                    return Poll::Ready(Some(expired_frame(revision, expired)));
                }
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => {
                    let next_bookmark = this.next_bookmark();
                    let Some(bookmark) = &mut this.bookmark else { return Poll::Pending };
                    if bookmark.as_mut().poll(context).is_pending() {
                        return Poll::Pending;
                    }
                    bookmark.as_mut().reset(next_bookmark);
                    if let Some(frame) = this.due_bookmark() {
                        this.ready.push_back(frame);
                    }
                }
            }
        }
    }
}

impl WatchStream {
    fn leaving(&mut self, event: &'static str, change: &Change) -> Bytes {
        match &change.previous {
            Some(previous) if event == "DELETED" && change.kind == ChangeKind::Modified => {
                let left = previous.at_revision(change.revision);
                self.frame(event, &left)
            }
            _ => self.frame(event, &change.object),
        }
    }
}
