//! What is asked of an API server, and by whom.

use std::fmt;

use http::{Method, Request};
use serde::{Deserialize, Serialize};
use windlass_apiserver::request::{self, Target, Verb};

use super::pattern::Pattern;
use crate::actor::Caller;

/// Which API is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
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
    /// `cluster.x-k8s.io`; nothing for what is Kubernetes' own, or no resource.
    pub group: String,
    /// `machines`, `machines/status`; the path where it names no resource.
    pub resource: String,
    /// The namespace that the path names; nothing where it names none.
    pub namespace: String,
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
            let (verb, none) = ("get", String::new);
            let resource = path.to_owned();
            return Self { place, verb, group: none(), resource, namespace: none(), object: none(), writes: false };
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
        let (group, namespace) = (found.group.to_owned(), found.namespace.unwrap_or_default().to_owned());
        Self { place, verb, group, resource, namespace, object, writes }
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

/// Requests that are meant. What is left out is not looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Requests {
    /// Of this sender.
    #[serde(default, rename = "actor", skip_serializing_if = "Option::is_none")]
    pub caller: Option<Caller>,
    /// To this API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// With this verb. `write` is each that changes something, `read` each that does not and is no watch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verb: Option<String>,
    /// Of this resource: `machines`, `machines/status`.
    #[serde(default, skip_serializing_if = "Pattern::is_any")]
    pub resource: Pattern,
    /// About these objects, as far as the path names them: `namespace/name`, or the namespace alone for a creation.
    #[serde(default, skip_serializing_if = "Pattern::is_any")]
    pub object: Pattern,
}

impl Requests {
    /// Whether this one is meant.
    pub fn matches(&self, caller: Caller, asked: &Asked) -> bool {
        let verb = match self.verb.as_deref() {
            None => true,
            Some("write") => asked.writes,
            Some("read") => !asked.writes && asked.verb != "watch",
            Some(verb) => asked.verb == verb,
        };
        verb && self.caller.is_none_or(|wanted| wanted == caller)
            && self.place.is_none_or(|place| place == asked.place)
            && self.resource.matches(&asked.resource)
            && self.object.matches(&asked.object)
    }

    /// Those of a sender.
    #[must_use]
    pub fn by(mut self, caller: Caller) -> Self {
        self.caller = Some(caller);
        self
    }

    /// Those with a verb and of a resource.
    pub fn to(verb: &str, resource: &str) -> Self {
        Self { verb: Some(verb.to_owned()), resource: Pattern::new(resource), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(method: Method, uri: &str) -> Asked {
        Asked::of(Place::Management, &Request::builder().method(method).uri(uri).body(()).unwrap())
    }

    fn check(method: Method, uri: &str, text: &str, writes: bool) {
        let asked = asked(method, uri);
        assert_eq!((asked.to_string().as_str(), asked.writes), (text, writes), "{uri}");
    }

    const MACHINES: &str = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines";

    #[test]
    fn a_request_is_known_by_its_verb_and_resource() {
        check(Method::GET, &format!("{MACHINES}/m0"), "get machines default/m0", false);
        check(Method::GET, &format!("{MACHINES}?limit=500"), "list machines default", false);
        check(Method::GET, &format!("{MACHINES}?watch=true&resourceVersion=7"), "watch machines default", false);
        check(Method::POST, &format!("{MACHINES}?&fieldManager=windlass"), "create machines default", true);
        check(Method::PATCH, &format!("{MACHINES}/m0/status"), "patch machines/status default/m0", true);
        check(Method::DELETE, &format!("{MACHINES}/m0"), "delete machines default/m0", true);
        check(Method::GET, "/version", "get /version", false);
    }

    #[test]
    fn what_is_only_tried_or_asked_is_no_write() {
        check(Method::POST, "/api/v1/namespaces/a/pods?dryRun=All", "create pods a", false);
        let review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        check(Method::POST, review, "create selfsubjectaccessreviews", false);
    }

    #[test]
    fn requests_are_chosen_by_sender_verb_resource_and_object() {
        let patch = asked(Method::PATCH, &format!("{MACHINES}/m0"));
        let chosen = |requests: Requests| requests.matches(Caller::Controllers, &patch);
        assert!(chosen(Requests::default()) && chosen(Requests::to("write", "*")));
        assert!(chosen(Requests::to("patch", "machines").by(Caller::Controllers)));
        assert!(chosen(Requests { object: "default/*".into(), ..Requests::default() }));
        assert!(!chosen(Requests::to("read", "*")) && !chosen(Requests::to("patch", "nodes")));
        assert!(!chosen(Requests::default().by(Caller::Upgrader)));
        assert!(!chosen(Requests { place: Some(Place::Workload), ..Requests::default() }));
    }
}
