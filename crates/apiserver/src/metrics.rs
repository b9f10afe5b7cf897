//! What the server counts, by the names of a real one, in the text format of Prometheus: `/metrics`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{Method, Response, StatusCode};

use crate::body::{self, Body};
use crate::load::Sort;
use crate::request::{Target, Verb};
use crate::server::ApiServer;

/// The text format and its version.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The upper bounds of the buckets of durations, in milliseconds: some of a real server's.
const BUCKETS_MILLIS: [u64; 12] = [1, 5, 10, 25, 50, 100, 250, 500, 1_000, 5_000, 15_000, 60_000];

/// What was asked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Asked {
    verb: &'static str,
    group: String,
    version: String,
    resource: String,
    subresource: String,
    scope: &'static str,
}

#[derive(Debug, Default)]
struct Counts {
    answers: BTreeMap<(Asked, u16), u64>,
    durations: BTreeMap<Asked, Durations>,
}

#[derive(Debug, Default)]
struct Durations {
    /// How many took at most so long, bucket by bucket.
    buckets: [u64; BUCKETS_MILLIS.len()],
    sum: Duration,
    count: u64,
}

/// The counters of a server.
#[derive(Debug, Default)]
pub(crate) struct Metrics(Mutex<Counts>);

impl Asked {
    /// What a request asks for. Names of what is not served are not kept: a client could make up any number of them.
    pub(crate) fn of(server: &ApiServer, method: &Method, target: &Target<'_>, is_watch: bool) -> Self {
        let other = Self {
            verb: if *method == Method::GET { "GET" } else { "other" },
            group: String::new(),
            version: String::new(),
            resource: String::new(),
            subresource: String::new(),
            scope: "",
        };
        let Target::Resource(path) = target else { return other };
        let registry = server.registry();
        let (Some(kind), Some(verb)) = (registry.find(path.group, path.version, path.plural), Verb::of(method, path))
        else {
            return other;
        };
        let known = |name: &&str| {
            matches!(*name, "status" | "scale" | "finalize" | "eviction")
                || server.subresource(&kind.resource, name).is_some()
        };
        Self {
            verb: if is_watch { "WATCH" } else { spelt(verb) },
            group: kind.group.clone(),
            version: kind.version.clone(),
            resource: kind.plural.clone(),
            subresource: path.subresource.filter(known).unwrap_or_default().to_owned(),
            scope: match (path.name.is_some(), path.namespace.is_some()) {
                (true, _) => "resource",
                (false, true) => "namespace",
                (false, false) => "cluster",
            },
        }
    }
}

fn spelt(verb: Verb) -> &'static str {
    match verb {
        Verb::Get => "GET",
        Verb::List => "LIST",
        Verb::Create => "POST",
        Verb::Update => "PUT",
        Verb::Patch => "PATCH",
        Verb::Delete => "DELETE",
        Verb::DeleteCollection => "DELETECOLLECTION",
    }
}

impl Metrics {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an answer. A watch lasts for as long as somebody watches, which says nothing about the server.
    pub(crate) fn answered(&self, asked: Asked, code: StatusCode, took: Duration) {
        let mut counts = self.counts();
        *counts.answers.entry((asked.clone(), code.as_u16())).or_default() += 1;
        if asked.verb == "WATCH" {
            return;
        }
        let durations = counts.durations.entry(asked).or_default();
        for (bucket, millis) in durations.buckets.iter_mut().zip(BUCKETS_MILLIS) {
            *bucket += u64::from(took <= Duration::from_millis(millis));
        }
        durations.sum += took;
        durations.count += 1;
    }

    fn write(&self, out: &mut Page) {
        let counts = self.counts();
        out.family("apiserver_request_total", "counter", "Requests, by what was asked and how it was answered.");
        for ((asked, code), count) in &counts.answers {
            out.line("apiserver_request_total", &format!("{},code=\"{code}\"", labels(asked)), count);
        }
        let name = "apiserver_request_duration_seconds";
        out.family(name, "histogram", "How long requests took, without watches.");
        for (asked, durations) in &counts.durations {
            let labels = labels(asked);
            for (bucket, millis) in durations.buckets.iter().zip(BUCKETS_MILLIS) {
                let bound = Duration::from_millis(millis).as_secs_f64();
                out.line(&format!("{name}_bucket"), &format!("{labels},le=\"{bound}\""), bucket);
            }
            out.line(&format!("{name}_bucket"), &format!("{labels},le=\"+Inf\""), durations.count);
            out.line(&format!("{name}_sum"), &labels, durations.sum.as_secs_f64());
            out.line(&format!("{name}_count"), &labels, durations.count);
        }
    }
}

/// The names in them are those of kinds, which need no escapes.
fn labels(asked: &Asked) -> String {
    let Asked { verb, group, version, resource, subresource, scope } = asked;
    format!(
        "verb=\"{verb}\",group=\"{group}\",version=\"{version}\",resource=\"{resource}\",subresource=\"{subresource}\",scope=\"{scope}\""
    )
}

#[derive(Default)]
struct Page(String);

impl Page {
    fn family(&mut self, name: &str, type_: &str, help: &str) {
        // Writing to a String cannot fail.
        let _infallible = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {type_}\n");
    }

    fn line(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        let _infallible = if labels.is_empty() {
            writeln!(self.0, "{name} {value}")
        } else {
            writeln!(self.0, "{name}{{{labels}}} {value}")
        };
    }
}

impl ApiServer {
    /// Answers with all counters.
    pub(crate) fn metrics_page(&self) -> Response<Body> {
        let mut page = Page::default();
        self.metrics().write(&mut page);
        let name = "apiserver_current_inflight_requests";
        page.family(name, "gauge", "Requests in hand, without watches.");
        for (kind, sort) in [("readOnly", Sort::Read), ("mutating", Sort::Write)] {
            page.line(name, &format!("request_kind=\"{kind}\""), self.requests().count(sort));
        }
        let name = "apiserver_longrunning_requests";
        page.family(name, "gauge", "Watches that go on.");
        page.line(name, "verb=\"WATCH\"", self.requests().count(Sort::Watch));
        let name = "apiserver_resource_objects";
        page.family(name, "gauge", "Objects in the store, by resource.");
        for kind in self.registry().resources() {
            let count = self.store().count(&kind.resource);
            if count > 0 {
                page.line(name, &format!("group=\"{}\",resource=\"{}\"", kind.group, kind.plural), count);
            }
        }
        let name = "apiserver_storage_revision";
        page.family(name, "gauge", "The revision of the store: how many changes there have been.");
        page.line(name, "", self.store().revision());
        body::typed(StatusCode::OK, TEXT, Body::whole(page.0))
    }
}
