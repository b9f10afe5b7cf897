//! Who has how many requests in hand: nobody may take all that the server has.
//!
//! A request counts until it is answered, a watch until it ends. Too many are refused with 429 and the advice to come again, as a
//! real server does.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::Method;

use crate::status::ApiError;

/// What clients may have in hand at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Requests of all clients. Kubernetes' own: 400 that read and 200 that write.
    pub requests_max: usize,
    /// Requests of one user.
    pub requests_per_user_max: usize,
    /// Watches of all clients.
    pub watches_max: usize,
    /// Watches of one user.
    pub watches_per_user_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { requests_max: 600, requests_per_user_max: 400, watches_max: 16_384, watches_per_user_max: 8_192 }
    }
}

/// What a request is counted as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sort {
    /// It only reads.
    Read,
    /// It may write.
    Write,
    /// It goes on.
    Watch,
}

impl Sort {
    pub(crate) fn of(method: &Method, is_watch: bool) -> Self {
        match *method {
            _ if is_watch => Self::Watch,
            Method::GET | Method::HEAD | Method::OPTIONS => Self::Read,
            _ => Self::Write,
        }
    }
}

/// What is in hand.
#[derive(Debug, Clone, Default)]
pub(crate) struct Load(Arc<Mutex<Counts>>);

#[derive(Debug, Default)]
struct Counts {
    all: BTreeMap<Sort, usize>,
    by_user: BTreeMap<String, BTreeMap<Sort, usize>>,
}

/// One request in hand; dropped when it is done.
#[derive(Debug)]
pub(crate) struct InHand {
    load: Load,
    user: String,
    sort: Sort,
}

impl Load {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a request in hand, or refuses it.
    pub(crate) fn take(&self, limits: Limits, user: &str, sort: Sort) -> Result<InHand, ApiError> {
        let mut counts = self.counts();
        let of = |counts: &BTreeMap<Sort, usize>, sort: Sort| counts.get(&sort).copied().unwrap_or_default();
        let same = |counts: &BTreeMap<Sort, usize>| match sort {
            Sort::Watch => of(counts, Sort::Watch),
            Sort::Read | Sort::Write => of(counts, Sort::Read) + of(counts, Sort::Write),
        };
        let (all_max, user_max) = match sort {
            Sort::Watch => (limits.watches_max, limits.watches_per_user_max),
            Sort::Read | Sort::Write => (limits.requests_max, limits.requests_per_user_max),
        };
        if same(&counts.all) >= all_max || counts.by_user.get(user).map_or(0, same) >= user_max {
            return Err(ApiError::too_busy());
        }
        *counts.all.entry(sort).or_default() += 1;
        *counts.by_user.entry(user.to_owned()).or_default().entry(sort).or_default() += 1;
        Ok(InHand { load: self.clone(), user: user.to_owned(), sort })
    }

    /// How many requests of a sort are in hand.
    pub(crate) fn count(&self, sort: Sort) -> usize {
        self.counts().all.get(&sort).copied().unwrap_or_default()
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        let mut counts = self.load.counts();
        let less = |counts: &mut BTreeMap<Sort, usize>| {
            if let Some(count) = counts.get_mut(&self.sort) {
                *count = count.saturating_sub(1);
            }
        };
        less(&mut counts.all);
        if let Some(own) = counts.by_user.get_mut(&self.user) {
            less(own);
            // Users come and go; those who have nothing in hand are not remembered.
            if own.values().all(|count| *count == 0) {
                counts.by_user.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits =
        Limits { requests_max: 3, requests_per_user_max: 2, watches_max: 1, watches_per_user_max: 1 };

    #[test]
    fn a_user_gets_so_much_and_all_together_so_much() {
        let load = Load::default();
        let take = |user: &str, sort| load.take(LIMITS, user, sort);
        let first = take("a", Sort::Read).unwrap();
        let _second = take("a", Sort::Write).unwrap();
        let refusal = take("a", Sort::Read).unwrap_err();
        assert_eq!((refusal.code.as_u16(), refusal.details.retry_after_seconds), (429, 1));
        let _third = take("b", Sort::Read).unwrap();
        take("c", Sort::Read).unwrap_err();
        drop(first);
        let _fourth = take("a", Sort::Read).unwrap();
        assert_eq!((load.count(Sort::Read), load.count(Sort::Write)), (2, 1));
    }

    #[test]
    fn watches_are_counted_apart_and_nobody_is_remembered() {
        let load = Load::default();
        let watch = load.take(LIMITS, "a", Sort::Watch).unwrap();
        load.take(LIMITS, "b", Sort::Watch).unwrap_err();
        drop(load.take(LIMITS, "b", Sort::Read).unwrap());
        drop(watch);
        assert!(load.counts().by_user.is_empty());
    }
}
