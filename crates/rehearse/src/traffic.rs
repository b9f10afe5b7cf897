//! Who asks what of the API servers, as counts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

pub use windlass_sim::fault::{Actor, Asked, Place};

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
    use http::{Method, Request};

    use super::*;

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
