//! The sizes of the sets of a pool whose rollout is paused, as Cluster API has them: a pool that grows or shrinks half-way does
//! so in each of its sets, in proportion, so that it does not go on with the rollout.

use super::rollout::{Limits, Strategy};

/// A set of a pool that does not roll.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Share {
    /// How many machines it should have.
    pub wanted: u32,
    /// How many of its machines can be relied on.
    pub available: u32,
    /// How many machines the pool could have when the set got its size.
    pub most_before: u32,
    /// How many machines the pool should have had then.
    pub replicas_before: u32,
    /// Whether it is what the pool should become.
    pub is_new: bool,
}

/// How many machines each set should have. The sets come oldest first.
pub(super) fn sizes(limits: Limits, sets: &[Share]) -> Vec<u32> {
    let mut sizes: Vec<u32> = sets.iter().map(|set| set.wanted).collect();
    let active: Vec<usize> = (0..sets.len()).filter(|&index| sizes[index] > 0).collect();
    match *active {
        [] => {
            let newest = sets.iter().position(|set| set.is_new).or(sets.len().checked_sub(1));
            if let Some(index) = newest {
                sizes[index] = limits.replicas;
            }
        }
        [only] => sizes[only] = limits.replicas,
        _ if sets.iter().any(|set| is_saturated(limits, *set)) => {
            for (size, set) in sizes.iter_mut().zip(sets) {
                *size = if set.is_new { *size } else { 0 };
            }
        }
        _ => match limits.strategy {
            Strategy::RollingUpdate => share_out(limits, sets, active, &mut sizes),
            Strategy::OnDelete => {}
        },
    }
    sizes
}

/// Whether the new set is all that the pool needs.
fn is_saturated(limits: Limits, set: Share) -> bool {
    set.is_new && [set.wanted, set.available, set.replicas_before] == [limits.replicas; 3]
}

fn share_out(limits: Limits, sets: &[Share], mut active: Vec<usize>, sizes: &mut [u32]) {
    let allowed = if limits.replicas == 0 { 0 } else { i64::from(limits.most()) };
    let missing = allowed - active.iter().map(|&index| i64::from(sizes[index])).sum::<i64>();
    if missing == 0 {
        return;
    }
    // The largest first; of two that are alike the newer grows, and the older shrinks.
    active
        .sort_by_key(|&index| (std::cmp::Reverse(sizes[index]), if missing > 0 { sets.len() - index } else { index }));
    let mut shared = 0;
    for &index in &active {
        let left = missing - shared;
        let fraction = fraction(limits, sets[index]);
        let share = if missing > 0 { fraction.min(left) } else { fraction.max(left) };
        sizes[index] = resized(sizes[index], share);
        shared += share;
    }
    if let Some(&largest) = active.first() {
        sizes[largest] = resized(sizes[largest], missing - shared);
    }
}

/// By how much a set grows with its pool, to the nearest machine.
fn fraction(limits: Limits, set: Share) -> i64 {
    let size = i64::from(set.wanted);
    if limits.replicas == 0 {
        return -size;
    }
    let (now, before) = (i64::from(limits.most()), i64::from(set.most_before.max(1)));
    (2 * size * now + before) / (2 * before) - size
}

fn resized(size: u32, by: i64) -> u32 {
    u32::try_from((i64::from(size) + by).max(0)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(replicas: u32, surge_max: u32, before: u32, sets: &[(u32, bool)], expected: &[u32]) {
        let limits = Limits { replicas, surge_max, unavailable_max: 1, strategy: Strategy::RollingUpdate };
        let share = |&(wanted, is_new): &(u32, bool)| Share {
            wanted,
            available: wanted,
            most_before: before + surge_max,
            replicas_before: before,
            is_new,
        };
        let sets: Vec<Share> = sets.iter().map(share).collect();
        assert_eq!(sizes(limits, &sets), expected, "{replicas} after {before} with {surge_max}: {sets:?}");
    }

    #[test]
    fn a_pool_with_one_set_has_it_all() {
        check(5, 1, 3, &[(3, true)], &[5]);
        check(5, 1, 3, &[(3, false)], &[5]);
        check(5, 1, 3, &[(3, false), (0, true)], &[5, 0]);
        check(5, 1, 0, &[(0, false), (0, true)], &[0, 5]);
        check(5, 1, 3, &[], &[]);
    }

    #[test]
    fn a_pool_that_was_paused_half_way_grows_and_shrinks_in_proportion() {
        // 10 with 3 more: 8 and 5. 15 with 3 more are 18: 5 more, of which the larger set gets 3 and the smaller 2.
        check(15, 3, 10, &[(8, false), (5, true)], &[11, 7]);
        check(5, 3, 10, &[(8, false), (5, true)], &[5, 3]);
        check(0, 3, 10, &[(8, false), (5, true)], &[0, 0]);
        check(10, 3, 10, &[(8, false), (5, true)], &[8, 5]);
        // What cannot be shared out evenly is the largest set's.
        check(11, 1, 10, &[(5, false), (6, true)], &[5, 7]);
        check(4, 0, 3, &[(1, false), (1, false), (1, true)], &[1, 1, 2]);
    }

    #[test]
    fn a_rollout_that_was_as_good_as_over_is_over() {
        check(5, 1, 5, &[(1, false), (5, true)], &[0, 5]);
    }
}
