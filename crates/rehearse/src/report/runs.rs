//! The runs of a report: as many at a time as there are threads, told in order.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use windlass_runtime::chance::Seed;
use windlass_sim::world::World;

use super::Error;
use crate::crash::Crashes;
use crate::rehearsal::{self, Rehearsal, Request, rehearse};

/// On how many threads it is worth while to run.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get)
}

/// The seed of a run. The first has the one that was asked for.
pub(crate) fn seed(first: Seed, run: u32) -> Seed {
    if run == 0 { first } else { first.child(&format!("run {run}")) }
}

/// Holds all runs. Also the World that the first has left.
pub(super) fn hold(
    start: &World,
    request: &Request,
    runs: u32,
    threads: usize,
) -> Result<(Vec<Rehearsal>, World), Error> {
    let first = rehearsal::hold(start, request, Crashes::none())?;
    let mut held = vec![first.rehearsal];
    let others: Vec<u32> = (1..runs).collect();
    let one = |run: &u32| rehearse(start, &Request { seed: seed(request.seed, *run), ..request.clone() });
    for run in in_order(&others, threads, one) {
        held.push(run?);
    }
    Ok((held, first.world))
}

/// Does something with each of them, on so many threads, and returns what came of it in the order in which they were given.
pub(crate) fn in_order<T: Sync, R: Send>(all: &[T], threads: usize, one: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(all.len())));
    let work = || {
        while let Some((index, item)) = {
            let at = next.fetch_add(1, Ordering::Relaxed);
            all.get(at).map(|item| (at, item))
        } {
            let result = one(item);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(all.len()) {
            scope.spawn(work);
        }
        work();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_the_threads_the_order_is_the_same() {
        let all: Vec<u64> = (0..200).collect();
        for threads in [0, 1, 3, 500] {
            assert_eq!(in_order(&all, threads, |item| item * 2), all.iter().map(|item| item * 2).collect::<Vec<_>>());
        }
        assert_eq!(in_order::<u64, u64>(&[], 4, |item| *item), Vec::<u64>::new());
    }

    #[test]
    fn the_first_run_has_the_seed_that_was_asked_for_and_the_others_have_their_own() {
        let seeds: std::collections::BTreeSet<Seed> = (0..100).map(|run| seed(Seed(7), run)).collect();
        assert!(seeds.contains(&Seed(7)) && seeds.len() == 100);
    }
}
