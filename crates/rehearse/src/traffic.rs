//! Who asks what of the API servers, as counts.

use std::collections::BTreeMap;
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

/// Counts requests. A handle: clones count together.
#[derive(Clone, Default)]
pub struct Traffic(Arc<Mutex<Counts>>);

/// By caller, place, verb and resource.
type Counts = BTreeMap<(Caller, Place, &'static str, String), Requests>;

impl Traffic {
    /// Counts a request.
    pub fn count(&self, caller: Caller, asked: &Asked) {
        let mut counts = self.lock();
        let requests = counts.entry((caller, asked.place, asked.verb, asked.resource.clone())).or_default();
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

    /// A line for each caller, place, verb and resource, the most asked first.
    pub fn text(&self) -> String {
        let counts = self.lock();
        let mut lines: Vec<_> = counts.iter().collect();
        lines.sort_by_key(|(_, requests)| std::cmp::Reverse(requests.all));
        let line = |((caller, place, verb, resource), requests): (&(Caller, Place, &str, String), &Requests)| {
            format!("{:>6}  {caller:<12} {place:<10} {verb:<7} {resource}\n", requests.all)
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
