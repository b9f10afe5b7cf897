//! How long to wait after a failure.

use std::time::Duration;

use crate::chance::Chance;

/// Exponential, capped, with jitter from the seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The delay after the first failure; it doubles with each further one.
    pub base: Duration,
    /// The longest delay.
    pub cap: Duration,
    /// How soon after a failure a change may bring the next try forward. Whoever records failures in the object wakes
    /// itself with each one: this is what keeps that from being a hot loop.
    pub soonest: Duration,
}

impl Backoff {
    /// For reconciles: a conflict is retried at once to the eye, and a broken cluster costs one try in two minutes.
    pub const RECONCILE: Self =
        Self { base: Duration::from_millis(200), cap: Duration::from_secs(120), soonest: Duration::from_secs(1) };

    /// For watches: the figures of kube's own default, whose jitter is not from our seed.
    pub const WATCH: Self =
        Self { base: Duration::from_millis(800), cap: Duration::from_secs(30), soonest: Duration::from_millis(800) };

    /// The delay after so many failures in a row: between half and all of the exponential, in whole milliseconds (which
    /// is what timers resolve), and never nothing.
    pub fn delay(&self, failures: u32, chance: &mut Chance) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        let full = millis(self.base.saturating_mul(1 << doublings).min(self.cap)).max(1);
        Duration::from_millis(chance.range(full.div_ceil(2)..full + 1))
    }
}

fn millis(duration: Duration) -> u64 {
    // Half of the range, so that one can be added.
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX / 2).min(u64::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::Seed;

    fn check(failures: u32, least_ms: u64, most_ms: u64) {
        let mut chance = Seed(1).stream("backoff");
        let backoff = Backoff { base: Duration::from_millis(100), cap: Duration::from_secs(10), ..Backoff::RECONCILE };
        let delays: Vec<Duration> = (0..100).map(|_| backoff.delay(failures, &mut chance)).collect();
        let (least, most) = (delays.iter().min().unwrap(), delays.iter().max().unwrap());
        assert!(least.as_millis() >= least_ms.into() && most.as_millis() <= most_ms.into(), "{least:?}..{most:?}");
        assert!(least < most, "no jitter after {failures} failures");
    }

    #[test]
    fn delays_double_are_jittered_and_capped() {
        check(0, 50, 100);
        check(1, 50, 100);
        check(2, 100, 200);
        check(3, 200, 400);
        check(20, 5_000, 10_000);
        check(u32::MAX, 5_000, 10_000);
    }

    #[test]
    fn a_delay_is_never_nothing() {
        let zero = Backoff { base: Duration::ZERO, cap: Duration::ZERO, soonest: Duration::ZERO };
        assert_eq!(zero.delay(1, &mut Seed(1).stream("backoff")), Duration::from_millis(1));
        let endless = Backoff { base: Duration::MAX, cap: Duration::MAX, soonest: Duration::ZERO };
        assert!(endless.delay(3, &mut Seed(1).stream("backoff")) > Duration::from_secs(1 << 40));
    }
}
