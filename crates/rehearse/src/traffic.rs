//! Who asks what of the API servers, as counts.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{Method, Request};
use serde::{Deserialize, Serialize};
use windlass_apiserver::request::{self, Target, Verb};

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Actor {
    /// The controllers of Windlass.
    Controllers,
    /// The program in the pods of an update's Job.
    Upgrader,
    /// The simulators of the management side.
    Simulators,
}

impl Actor {
    /// The word for it in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Controllers => "controllers",
            Self::Upgrader => "upgrader",
            Self::Simulators => "simulators",
        }
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Which API is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The management cluster.
    Management,
    /// A workload cluster.
    Workload,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Management => "management",
            Self::Workload => "workload",
        })
    }
}

/// What is asked: a verb, and what it is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asked {
    /// Which API.
    pub place: Place,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: &'static str,
    /// `machines`, `machines/status`; the path where it names no resource.
    pub resource: String,
    /// `namespace/name`, as far as the path says.
    pub object: String,
    /// Something is to be changed, and not only tried.
    pub writes: bool,
}

impl Asked {
    /// What a request asks.
    pub fn of<B>(place: Place, request: &Request<B>) -> Self {
        let query = request.uri().query().unwrap_or_default();
        let path = request.uri().path();
        let Target::Resource(found) = request::target(path) else {
            let (verb, object) = ("get", String::new());
            return Self { place, verb, resource: path.to_owned(), object, writes: false };
        };
        let has = |parameter: &str| query.split('&').any(|part| part.starts_with(parameter));
        let verb = match Verb::of(request.method(), &found) {
            Some(Verb::List) if has("watch=true") || has("watch=1") => "watch",
            Some(verb) => verb.as_str(),
            None => "unknown",
        };
        let resource = match found.subresource {
            Some(subresource) => format!("{}/{subresource}", found.plural),
            None => found.plural.to_owned(),
        };
        let object = [found.namespace, found.name].into_iter().flatten().collect::<Vec<_>>().join("/");
        // Reviews are questions, though they are posted.
        let question = found.plural.ends_with("reviews");
        let writes = !matches!(*request.method(), Method::GET | Method::HEAD) && !has("dryRun=") && !question;
        Self { place, verb, resource, object, writes }
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if !self.object.is_empty() {
            write!(f, " {}", self.object)?;
        }
        if self.place == Place::Workload { f.write_str(" (workload)") } else { Ok(()) }
    }
}

/// How much an actor asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Requests {
    /// In all, watches included.
    pub all: u64,
    /// Those that were to change something.
    pub writes: u64,
}

/// Counts requests. A handle: clones count together.
#[derive(Clone, Default)]
pub struct Traffic(Arc<Mutex<Counts>>);

/// By actor, place, verb and resource.
type Counts = BTreeMap<(Actor, Place, &'static str, String), Requests>;

impl Traffic {
    /// Counts a request.
    pub fn count(&self, actor: Actor, asked: &Asked) {
        let mut counts = self.lock();
        let requests = counts.entry((actor, asked.place, asked.verb, asked.resource.clone())).or_default();
        requests.all += 1;
        requests.writes += u64::from(asked.writes);
    }

    /// How much each actor asked.
    pub fn by_actor(&self) -> BTreeMap<Actor, Requests> {
        let mut by_actor: BTreeMap<Actor, Requests> = BTreeMap::new();
        for ((actor, ..), requests) in &*self.lock() {
            let sum = by_actor.entry(*actor).or_default();
            sum.all += requests.all;
            sum.writes += requests.writes;
        }
        by_actor
    }

    /// A line for each actor, place, verb and resource, the most asked first.
    pub fn text(&self) -> String {
        let counts = self.lock();
        let mut lines: Vec<_> = counts.iter().collect();
        lines.sort_by_key(|(_, requests)| std::cmp::Reverse(requests.all));
        let line = |((actor, place, verb, resource), requests): (&(Actor, Place, &str, String), &Requests)| {
            format!("{:>6}  {actor:<12} {place:<10} {verb:<7} {resource}\n", requests.all)
        };
        lines.into_iter().map(line).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: Method, uri: &str, text: &str, writes: bool) {
        let request = Request::builder().method(method).uri(uri).body(()).unwrap();
        let asked = Asked::of(Place::Management, &request);
        assert_eq!((asked.to_string().as_str(), asked.writes), (text, writes), "{uri}");
    }

    #[test]
    fn a_request_is_known_by_its_verb_and_resource() {
        let machines = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines";
        check(Method::GET, &format!("{machines}/m0"), "get machines default/m0", false);
        check(Method::GET, &format!("{machines}?limit=500"), "list machines default", false);
        check(Method::GET, &format!("{machines}?watch=true&resourceVersion=7"), "watch machines default", false);
        check(Method::POST, &format!("{machines}?&fieldManager=windlass"), "create machines default", true);
        check(Method::PATCH, &format!("{machines}/m0/status"), "patch machines/status default/m0", true);
        check(Method::DELETE, &format!("{machines}/m0"), "delete machines default/m0", true);
        check(Method::GET, "/version", "get /version", false);
    }

    #[test]
    fn what_is_only_tried_or_asked_is_no_write() {
        check(Method::POST, "/api/v1/namespaces/a/pods?dryRun=All", "create pods a", false);
        let review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        check(Method::POST, review, "create selfsubjectaccessreviews", false);
    }

    #[test]
    fn requests_are_summed_by_actor() {
        let traffic = Traffic::default();
        let asked = |method| {
            Asked::of(Place::Workload, &Request::builder().method(method).uri("/api/v1/nodes/a").body(()).unwrap())
        };
        traffic.count(Actor::Controllers, &asked(Method::GET));
        traffic.count(Actor::Controllers, &asked(Method::PATCH));
        traffic.count(Actor::Upgrader, &asked(Method::GET));
        let sums = traffic.by_actor();
        assert_eq!(sums[&Actor::Controllers], Requests { all: 2, writes: 1 });
        assert_eq!(sums[&Actor::Upgrader], Requests { all: 1, writes: 0 });
    }
}
