//! The arithmetic of a rolling update, as Cluster API has it: never more machines than `replicas + surge_max`, never fewer that
//! can be relied on than `replicas - unavailable_max`, whichever machine goes next.

/// What a rolling update keeps to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    /// How many machines there should be.
    pub replicas: u32,
    /// How many more there may be.
    pub surge_max: u32,
    /// How many fewer can be relied on.
    pub unavailable_max: u32,
    /// Old machines go only when somebody else deletes them.
    pub on_delete: bool,
}

impl Limits {
    /// With both numbers zero nothing could ever move: one machine may then be missing.
    pub(super) fn sound(self) -> Self {
        if self.surge_max == 0 && self.unavailable_max == 0 { Self { unavailable_max: 1, ..self } } else { self }
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

impl Counts {
    /// How many can still be relied on when those that the set has too many of are gone, whichever they are.
    fn lasting(self) -> u32 {
        self.available.min(self.wanted)
    }
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
    if limits.on_delete {
        // What somebody deleted is not made again by its old set.
        return Wanted { new: grown, old: old.iter().map(|set| set.wanted.min(set.present)).collect() };
    }
    Wanted { new: grown, old: shrink(limits, Counts { wanted: grown, ..new }, old) }
}

fn grow(limits: Limits, new: Counts, old: &[Counts]) -> u32 {
    if new.wanted >= limits.replicas {
        return limits.replicas;
    }
    let surge_max = if limits.on_delete { 0 } else { limits.surge_max };
    // A machine counts from when it is wanted until it is gone.
    let total: u32 = old.iter().chain([&new]).map(|set| set.wanted.max(set.present)).sum();
    let room = (limits.replicas + surge_max).saturating_sub(total);
    new.wanted + room.min(limits.replicas - new.wanted)
}

fn shrink(limits: Limits, new: Counts, old: &[Counts]) -> Vec<u32> {
    let least = limits.replicas.saturating_sub(limits.unavailable_max);
    let wanted: u32 = old.iter().chain([&new]).map(|set| set.wanted).sum();
    let unavailable_new = new.wanted.saturating_sub(new.available);
    let mut room = wanted.saturating_sub(least).saturating_sub(unavailable_new);
    let lasting: u32 = old.iter().chain([&new]).map(|set| set.lasting()).sum();
    let mut spare = lasting.saturating_sub(least);

    // What cannot be relied on goes first: it costs nothing.
    let mut left: Vec<u32> = Vec::with_capacity(old.len());
    for set in old {
        let broken = set.wanted - set.lasting();
        let gone = broken.min(room);
        room -= gone;
        left.push(set.wanted - gone);
    }
    for (wanted, set) in left.iter_mut().zip(old) {
        // Whichever machine goes, it may be one that can be relied on.
        let gone = (*wanted).min(set.lasting()).min(room).min(spare);
        *wanted -= gone;
        room -= gone;
        spare -= gone;
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts([wanted, present, available]: [u32; 3]) -> Counts {
        Counts { wanted, present, available }
    }

    fn limits([replicas, surge_max, unavailable_max]: [u32; 3]) -> Limits {
        Limits { replicas, surge_max, unavailable_max, on_delete: false }.sound()
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
    fn what_is_broken_goes_first_also_from_a_younger_set() {
        check(limits([3, 1, 0]), [1, 1, 1], &[[2, 2, 2], [1, 1, 0]], 1, &[2, 0]);
        check(limits([3, 1, 0]), [1, 1, 1], &[[3, 3, 2]], 1, &[2]);
    }

    #[test]
    fn a_pool_grows_and_shrinks_without_a_roll() {
        check(limits([5, 1, 0]), [3, 3, 3], &[], 5, &[]);
        check(limits([1, 1, 0]), [3, 3, 3], &[], 1, &[]);
        check(limits([0, 1, 0]), [2, 2, 2], &[], 0, &[]);
    }

    #[test]
    fn an_old_machine_stays_until_somebody_deletes_it() {
        let on_delete = Limits { on_delete: true, ..limits([3, 1, 0]) };
        check(on_delete, [0, 0, 0], &[[3, 3, 3]], 0, &[3]);
        check(on_delete, [0, 0, 0], &[[3, 2, 2]], 0, &[2]);
        check(on_delete, [0, 0, 0], &[[2, 2, 2]], 1, &[2]);
    }

    /// Sets that do at once what they are told, and machines that become available at once, in every order of the two.
    #[test]
    fn every_roll_ends_and_keeps_its_limits() {
        for replicas in 0..5 {
            for (surge, unavailable) in [(1, 0), (0, 1), (2, 1), (0, 0)] {
                let limits = limits([replicas, surge, unavailable]);
                let mut new = Counts::default();
                let mut old = [counts([replicas; 3])];
                for _ in 0..50 {
                    let wanted = plan(limits, new, &old);
                    (new.wanted, old[0].wanted) = (wanted.new, wanted.old[0]);
                    // An old machine goes at once, a new one is there at once and available a step later.
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
