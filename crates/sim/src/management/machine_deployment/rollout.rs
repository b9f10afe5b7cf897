//! The arithmetic of a rollout, as Cluster API has it: numbers in, numbers out.
//!
//! A rolling update never has more machines than `replicas + surge_max`, and never fewer that can be relied on than
//! `replicas - unavailable_max`, whichever machine goes next: it is the set that chooses, so every machine that goes is taken
//! for one that could be relied on. Where that leaves nothing to be done, because old machines are broken, one of them goes
//! all the same.

/// What a rollout keeps to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    /// How many machines there should be.
    pub replicas: u32,
    /// How many more there may be.
    pub surge_max: u32,
    /// How many fewer can be relied on.
    pub unavailable_max: u32,
    /// Who decides when an old machine goes.
    pub strategy: Strategy,
}

/// Who decides when an old machine goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strategy {
    /// The arithmetic.
    RollingUpdate,
    /// Somebody who deletes it.
    OnDelete,
}

impl Limits {
    /// With both numbers zero nothing could ever move: one machine may then be missing.
    pub(super) fn sound(self) -> Self {
        if self.surge_max == 0 && self.unavailable_max == 0 { Self { unavailable_max: 1, ..self } } else { self }
    }

    /// How many machines have to be there that can be relied on.
    pub(super) fn least(self) -> u32 {
        match self.strategy {
            Strategy::RollingUpdate => self.replicas.saturating_sub(self.unavailable_max),
            Strategy::OnDelete => self.replicas,
        }
    }

    /// How many machines there may be in all.
    pub(super) fn most(self) -> u32 {
        match self.strategy {
            Strategy::RollingUpdate => self.replicas.saturating_add(self.surge_max),
            Strategy::OnDelete => self.replicas,
        }
    }
}

/// How a set is doing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// How many machines it should have.
    pub wanted: u32,
    /// How many it has, with those that go.
    pub present: u32,
    /// How many of them can be relied on.
    pub available: u32,
}

/// How many machines each set should have next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    pub new: u32,
    pub old: Vec<u32>,
}

/// The next step. The old sets come oldest first.
pub(super) fn plan(limits: Limits, new: Counts, old: &[Counts]) -> Wanted {
    let grown = grow(limits, new, old);
    let old = match limits.strategy {
        Strategy::OnDelete => follow(limits, grown, old),
        Strategy::RollingUpdate => {
            let left = shrink(limits, grown, new, old);
            let moves = grown != new.wanted || left.iter().zip(old).any(|(left, set)| *left != set.wanted);
            if moves { left } else { unblock(new, old) }
        }
    };
    Wanted { new: grown, old }
}

/// What the new set may have. A machine counts from when it is wanted until it is gone.
fn grow(limits: Limits, new: Counts, old: &[Counts]) -> u32 {
    if new.wanted >= limits.replicas {
        return limits.replicas;
    }
    let machines = total(old.iter().chain([&new]).map(|set| set.wanted.max(set.present)));
    let room = limits.most().saturating_sub(machines);
    new.wanted + room.min(limits.replicas - new.wanted)
}

/// What is left of the old sets.
fn shrink(limits: Limits, grown: u32, new: Counts, old: &[Counts]) -> Vec<u32> {
    let mut left: Vec<u32> = old.iter().map(|set| set.wanted).collect();
    let wanted = total(left.iter().copied().chain([new.wanted]));
    let leaving = total(old.iter().map(|set| set.present.saturating_sub(set.wanted)))
        .saturating_add(new.present.saturating_sub(new.wanted.min(grown)));
    // New machines that cannot be relied on slow the rollout down, or stop it: it must not make all machines like them.
    let missing = new.wanted.saturating_sub(new.available);
    let least = limits.least();
    let taken = leaving.saturating_add(missing).saturating_add(least);
    let mut budget = Budget {
        room: wanted.saturating_sub(taken),
        available: total(old.iter().chain([&new]).map(|set| set.available)),
        least,
    };
    // What cannot be relied on goes first, from the oldest set on.
    for (left, set) in left.iter_mut().zip(old) {
        let broken = left.saturating_sub(set.available);
        *left -= budget.take(*left, broken, *set);
    }
    for (left, set) in left.iter_mut().zip(old) {
        *left -= budget.take(*left, *left, *set);
    }
    left
}

/// How many machines may still go in this step.
struct Budget {
    room: u32,
    available: u32,
    least: u32,
}

impl Budget {
    /// How many of at most `most` machines a set can do without, if it should have `wanted`.
    fn take(&mut self, wanted: u32, most: u32, set: Counts) -> u32 {
        let mut gone = most.min(self.room);
        if gone == 0 {
            return 0;
        }
        if set.available > 0 {
            // Only machines that are there can be missed.
            let mut deleted = set.present.saturating_sub(wanted - gone);
            let spare = self.available.saturating_sub(self.least);
            if spare < deleted {
                let floor = set.present.saturating_sub(spare).min(wanted);
                gone = wanted - floor;
                deleted = set.present.saturating_sub(floor);
            }
            self.available = self.available.saturating_sub(deleted.min(set.available));
        }
        self.room = self.room.saturating_sub(gone);
        gone
    }
}

/// Nothing moves. If that is for broken old machines alone, one of them goes, whatever it costs: nobody else will mend them.
fn unblock(new: Counts, old: &[Counts]) -> Vec<u32> {
    let mut left: Vec<u32> = old.iter().map(|set| set.wanted).collect();
    let at_rest = old.iter().chain([&new]).all(|set| set.wanted == set.present);
    if at_rest && new.available == new.present {
        let broken = |(_, set): &(&mut u32, &Counts)| set.available != set.present && set.wanted > 0;
        if let Some((left, _)) = left.iter_mut().zip(old).find(broken) {
            *left -= 1;
        }
    }
    left
}

/// Old sets do not make again what somebody deleted, and give up what the pool has too many of.
fn follow(limits: Limits, grown: u32, old: &[Counts]) -> Vec<u32> {
    let mut left: Vec<u32> = old.iter().map(|set| set.wanted.min(set.present)).collect();
    let mut surplus = total(left.iter().copied().chain([grown])).saturating_sub(limits.replicas);
    for left in &mut left {
        let gone = surplus.min(*left);
        *left -= gone;
        surplus -= gone;
    }
    left
}

fn total(counts: impl Iterator<Item = u32>) -> u32 {
    counts.fold(0, u32::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts([wanted, present, available]: [u32; 3]) -> Counts {
        Counts { wanted, present, available }
    }

    fn limits([replicas, surge_max, unavailable_max]: [u32; 3]) -> Limits {
        Limits { replicas, surge_max, unavailable_max, strategy: Strategy::RollingUpdate }.sound()
    }

    fn check(limits: Limits, new: [u32; 3], old: &[[u32; 3]], wanted_new: u32, wanted_old: &[u32]) {
        let old: Vec<Counts> = old.iter().copied().map(counts).collect();
        let wanted = plan(limits, counts(new), &old);
        assert_eq!((wanted.new, wanted.old.as_slice()), (wanted_new, wanted_old), "{limits:?} {new:?} {old:?}");
    }

    #[test]
    fn a_surge_comes_first_and_the_old_go_as_the_new_are_available() {
        let surge = limits([3, 1, 0]);
        check(surge, [0, 0, 0], &[], 3, &[]);
        check(surge, [0, 0, 0], &[[3, 3, 3]], 1, &[3]);
        check(surge, [1, 1, 0], &[[3, 3, 3]], 1, &[3]);
        check(surge, [1, 1, 1], &[[3, 3, 3]], 1, &[2]);
        // One goes, and still counts.
        check(surge, [1, 1, 1], &[[2, 3, 3]], 1, &[2]);
        check(surge, [1, 1, 1], &[[2, 3, 2]], 1, &[2]);
        check(surge, [1, 1, 1], &[[2, 2, 2]], 2, &[2]);
        check(surge, [3, 3, 3], &[[1, 1, 1]], 3, &[0]);
        check(surge, [3, 3, 3], &[[0, 0, 0]], 3, &[0]);
    }

    #[test]
    fn without_a_surge_the_old_make_room() {
        check(limits([3, 0, 1]), [0, 0, 0], &[[3, 3, 3]], 0, &[2]);
        check(limits([3, 0, 1]), [0, 0, 0], &[[2, 2, 2]], 1, &[2]);
        check(limits([3, 0, 1]), [1, 1, 0], &[[2, 2, 2]], 1, &[2]);
        check(limits([3, 0, 0]), [0, 0, 0], &[[3, 3, 3]], 0, &[2]);
    }

    #[test]
    fn both_numbers_go_together() {
        // Six machines, three more and one fewer allowed.
        let both = limits([6, 3, 1]);
        check(both, [0, 0, 0], &[[6, 6, 6]], 3, &[5]);
        check(both, [3, 3, 0], &[[5, 5, 5]], 4, &[5]);
        check(both, [3, 3, 3], &[[5, 5, 5]], 4, &[2]);
        // More than there are may be missing.
        check(limits([6, 0, 10]), [0, 0, 0], &[[6, 6, 6]], 0, &[0]);
        check(limits([6, 10, 0]), [0, 0, 0], &[[6, 6, 6]], 6, &[6]);
    }

    #[test]
    fn new_machines_that_do_not_come_up_stop_the_rollout() {
        let both = limits([6, 3, 2]);
        check(both, [4, 4, 0], &[[4, 4, 4]], 5, &[4]);
        check(both, [5, 5, 2], &[[4, 4, 4]], 5, &[2]);
        check(both, [5, 5, 0], &[[4, 4, 4]], 5, &[4]);
    }

    #[test]
    fn what_is_broken_goes_first_also_from_a_younger_set() {
        check(limits([3, 1, 0]), [1, 1, 1], &[[2, 2, 2], [1, 1, 0]], 1, &[2, 0]);
        check(limits([6, 3, 1]), [3, 3, 3], &[[3, 3, 3], [3, 3, 0]], 3, &[2, 0]);
    }

    #[test]
    fn a_broken_old_machine_that_blocks_everything_goes_all_the_same() {
        // To take one of three is to take a good one, as far as one knows; and nothing else moves.
        check(limits([3, 1, 0]), [1, 1, 1], &[[3, 3, 2]], 1, &[2]);
        // Something moves, or may still come up: nothing is forced.
        check(limits([3, 1, 0]), [1, 1, 1], &[[3, 4, 2]], 1, &[3]);
        check(limits([3, 1, 0]), [1, 1, 0], &[[3, 3, 2]], 1, &[3]);
        check(limits([3, 1, 0]), [0, 0, 0], &[[3, 3, 2]], 1, &[3]);
    }

    #[test]
    fn machines_that_were_never_made_cost_nothing() {
        // Wanted twenty, there are fifteen: five can go for free, and of the rest as many as there are to spare.
        check(limits([15, 0, 2]), [0, 0, 0], &[[20, 15, 15]], 0, &[13]);
    }

    #[test]
    fn a_pool_grows_and_shrinks_without_a_roll() {
        check(limits([5, 1, 0]), [3, 3, 3], &[], 5, &[]);
        check(limits([1, 1, 0]), [3, 3, 3], &[], 1, &[]);
        check(limits([0, 1, 0]), [2, 2, 2], &[], 0, &[]);
    }

    #[test]
    fn an_old_machine_stays_until_somebody_deletes_it() {
        let on_delete = Limits { strategy: Strategy::OnDelete, ..limits([3, 1, 0]) };
        check(on_delete, [0, 0, 0], &[[3, 3, 3]], 0, &[3]);
        check(on_delete, [0, 0, 0], &[[3, 2, 2]], 0, &[2]);
        check(on_delete, [0, 0, 0], &[[2, 2, 2]], 1, &[2]);
        // The pool shrinks: old machines go first, from the oldest set on.
        let smaller = Limits { replicas: 2, ..on_delete };
        check(smaller, [1, 1, 1], &[[1, 1, 1], [2, 2, 2]], 1, &[0, 1]);
    }

    #[test]
    fn no_number_is_too_large() {
        let huge = limits([u32::MAX, u32::MAX, 0]);
        check(huge, [u32::MAX, 0, 0], &[[u32::MAX, u32::MAX, u32::MAX]], u32::MAX, &[u32::MAX]);
    }

    /// Sets that do at once what they are told, and machines that become available a step later.
    #[test]
    fn every_roll_ends_and_keeps_its_limits() {
        for replicas in 0..8 {
            for (surge, unavailable) in [(1, 0), (0, 1), (2, 1), (0, 0), (3, 0), (0, 3), (10, 10)] {
                let limits = limits([replicas, surge, unavailable]);
                let mut new = Counts::default();
                let mut old = [counts([replicas; 3])];
                for _ in 0..50 {
                    let wanted = plan(limits, new, &old);
                    (new.wanted, old[0].wanted) = (wanted.new, wanted.old[0]);
                    new.available = new.present;
                    new.present = new.wanted;
                    old[0] = counts([wanted.old[0]; 3]);
                    assert!(new.present + old[0].present <= replicas + limits.surge_max, "{limits:?}");
                    assert!(new.available + old[0].available + limits.unavailable_max >= replicas, "{limits:?}");
                }
                assert_eq!((new.available, old[0].present), (replicas, 0), "{limits:?}");
            }
        }
    }
}
