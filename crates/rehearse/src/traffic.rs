//! Who asks what of the API servers, as counts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use windlass_sim::actor::Caller;
pub use windlass_sim::fault::{Asked, Place};

/// How much a caller asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Requests {
    /// In all, watches included.
    pub all: u64,
    /// Those that were to change something.
    pub writes: u64,
}

/// A right that a request takes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Need {
    /// `get`, `list`, `watch`, `create`, …
    pub verb: &'static str,
    /// `cluster.x-k8s.io`; nothing for what is Kubernetes' own.
    pub group: String,
    /// `machines/status`.
    pub resource: String,
    /// The namespace; nothing where the request names none.
    pub namespace: String,
}

impl Need {
    fn of(asked: &Asked, verb: &'static str) -> Self {
        let Asked { group, resource, namespace, .. } = asked;
        Self { verb, group: group.clone(), resource: resource.clone(), namespace: namespace.clone() }
    }
}

/// Counts requests. A handle: clones count together.
#[derive(Clone, Default)]
pub struct Traffic(Arc<Mutex<Counts>>);

/// By caller, place and right.
type Counts = BTreeMap<(Caller, Place, Need), Requests>;

impl Traffic {
    /// A request has made an object. Whoever applies one that is not there needs the right to create it, too.
    pub fn created(&self, caller: Caller, asked: &Asked) {
        self.lock().entry((caller, asked.place, Need::of(asked, "create"))).or_default();
    }

    /// Counts a request.
    pub fn count(&self, caller: Caller, asked: &Asked) {
        let mut counts = self.lock();
        let requests = counts.entry((caller, asked.place, Need::of(asked, asked.verb))).or_default();
        requests.all += 1;
        requests.writes += u64::from(asked.writes);
    }

    /// How much each caller asked.
    pub fn by_caller(&self) -> BTreeMap<Caller, Requests> {
        let mut by_caller: BTreeMap<Caller, Requests> = BTreeMap::new();
        for ((caller, ..), requests) in &*self.lock() {
            let sum = by_caller.entry(*caller).or_default();
            sum.all += requests.all;
            sum.writes += requests.writes;
        }
        by_caller
    }

    /// The rights that a caller needed so far, for more than a part of it needed them. What is not a resource takes none that
    /// anybody has to be given.
    pub fn needs(&self, caller: Caller, place: Place, part: Option<&Self>) -> BTreeSet<Need> {
        let of_part = part.map(|part| part.lock().clone()).unwrap_or_default();
        let counts = self.lock();
        let of_caller = counts.iter().filter(|((who, at, _), _)| (*who, *at) == (caller, place));
        let beyond = of_caller.filter(|(key, requests)| of_part.get(*key).is_none_or(|part| part.all < requests.all));
        let needs = beyond.map(|((.., need), _)| need).filter(|need| !need.resource.starts_with('/'));
        needs.cloned().collect()
    }

    /// A line for each caller, place, verb and resource, the most asked first.
    pub fn text(&self) -> String {
        let mut sums: BTreeMap<(Caller, Place, &str, String), u64> = BTreeMap::new();
        for ((caller, place, need), requests) in &*self.lock() {
            *sums.entry((*caller, *place, need.verb, need.resource.clone())).or_default() += requests.all;
        }
        let mut lines: Vec<_> = sums.into_iter().filter(|(_, all)| *all > 0).collect();
        lines.sort_by_key(|(_, all)| std::cmp::Reverse(*all));
        let line = |((caller, place, verb, resource), all): ((Caller, Place, &str, String), u64)| {
            format!("{all:>6}  {caller:<12} {place:<10} {verb:<7} {resource}\n")
        };
        lines.into_iter().map(line).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use http::{Method, Request};

    use super::*;

    #[test]
    fn requests_are_summed_by_actor() {
        let traffic = Traffic::default();
        let asked = |method| {
            Asked::of(Place::Workload, &Request::builder().method(method).uri("/api/v1/nodes/a").body(()).unwrap())
        };
        traffic.count(Caller::Controllers, &asked(Method::GET));
        traffic.count(Caller::Controllers, &asked(Method::PATCH));
        traffic.count(Caller::Upgrader, &asked(Method::GET));
        let sums = traffic.by_caller();
        assert_eq!(sums[&Caller::Controllers], Requests { all: 2, writes: 1 });
        assert_eq!(sums[&Caller::Upgrader], Requests { all: 1, writes: 0 });
    }
}
