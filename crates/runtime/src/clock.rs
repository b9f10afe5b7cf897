//! What time it is, as an argument.
//!
//! Only for timestamps that people and objects see. Durations are measured with tokio's monotonic `Instant`, so that a
//! step of the wall clock changes no decision.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// Where timestamps come from. Cheap to clone.
#[derive(Clone)]
pub struct Clock(Source);

#[derive(Clone)]
enum Source {
    Wall,
    Virtual { base: Timestamp, origin: Instant, stopped: Arc<OnceLock<Timestamp>> },
    ByHand { base: Timestamp, elapsed_micros: Arc<AtomicU64> },
    Bent { by: Box<Clock>, shows: Arc<dyn Fn(Timestamp) -> Timestamp + Send + Sync> },
}

impl Clock {
    /// A clock that shows `base` now, and then follows tokio's clock: also when that one is paused, advanced by hand, or
    /// sped up by whoever advances it. Read it only inside the runtime that it was made in, or when it has stopped.
    pub fn virtual_from(base: Timestamp) -> Self {
        Self(Source::Virtual { base, origin: Instant::now(), stopped: Arc::default() })
    }

    /// A virtual clock shows for ever what it shows now, as do its clones. Outside of its runtime, tokio's clock is that of the
    /// machine, and what was made by the one and is read by the other is no time at all.
    pub(crate) fn stop(&self) {
        let now = self.now();
        if let Source::Virtual { stopped, .. } = &self.0 {
            stopped.get_or_init(|| now);
        }
    }

    /// A clock that shows `base` until its hand is moved. It may be read from any thread.
    pub(crate) fn moved_by_hand(base: Timestamp) -> (Self, Hand) {
        let elapsed_micros = Arc::new(AtomicU64::new(0));
        let hand = Hand { elapsed: Duration::ZERO, elapsed_micros: Arc::clone(&elapsed_micros) };
        (Self(Source::ByHand { base, elapsed_micros }), hand)
    }

    /// A clock that shows something else than this one does: to see what becomes of those whose clock is wrong.
    #[must_use]
    pub fn bent(&self, shows: impl Fn(Timestamp) -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Source::Bent { by: Box::new(self.clone()), shows: Arc::new(shows) })
    }

    /// The machine's own clock.
    pub fn wall() -> Self {
        Self(Source::Wall)
    }

    /// The current time.
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Source::Wall => wall_now(),
            // Past the year 9999 the clock stands still: there is nothing later to show.
            Source::Virtual { base, origin, stopped } => {
                let runs = || base.checked_add(origin.elapsed()).unwrap_or(Timestamp::MAX);
                stopped.get().copied().unwrap_or_else(runs)
            }
            Source::Bent { by, shows } => shows(by.now()),
            Source::ByHand { base, elapsed_micros } => {
                let elapsed = Duration::from_micros(elapsed_micros.load(Ordering::Acquire));
                base.checked_add(elapsed).unwrap_or(Timestamp::MAX)
            }
        }
    }

    /// The same clock as a plain function, for those who do not know this crate.
    pub fn now_fn(&self) -> Arc<dyn Fn() -> Timestamp + Send + Sync> {
        let clock = self.clone();
        Arc::new(move || clock.now())
    }
}

/// What moves a clock. There is one for each.
#[derive(Debug)]
pub(crate) struct Hand {
    elapsed: Duration,
    elapsed_micros: Arc<AtomicU64>,
}

impl Hand {
    /// Moves the clock on.
    pub(crate) fn advance(&mut self, by: Duration) {
        self.elapsed = self.elapsed.saturating_add(by);
        let micros = u64::try_from(self.elapsed.as_micros()).unwrap_or(u64::MAX);
        self.elapsed_micros.store(micros, Ordering::Release);
    }
}

/// A moment of real time, for whoever paces virtual time by it.
pub(crate) struct RealTime(std::time::Instant);

impl RealTime {
    #[allow(clippy::disallowed_methods, reason = "tokio's clock is the one that is being paced")]
    pub(crate) fn now() -> Self {
        Self(std::time::Instant::now())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

#[allow(clippy::disallowed_methods, reason = "the one place where wall time enters; everyone else is given a Clock")]
fn wall_now() -> Timestamp {
    Timestamp::now()
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Source::Wall => "Clock::wall",
            Source::Virtual { .. } => "Clock::virtual",
            Source::ByHand { .. } => "Clock::by_hand",
            Source::Bent { .. } => "Clock::bent",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn base() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_virtual_clock_follows_the_paused_clock_of_tokio() {
        let clock = Clock::virtual_from(base());
        let now = clock.now_fn();
        assert_eq!(clock.now(), base());
        tokio::time::sleep(Duration::from_secs(90)).await;
        assert_eq!(clock.now().to_string(), "2026-01-01T00:01:30Z");
        assert_eq!(now(), clock.now());
    }

    #[tokio::test(start_paused = true)]
    async fn a_virtual_clock_stands_still_at_the_end_of_time() {
        let clock = Clock::virtual_from(Timestamp::MAX);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(clock.now(), Timestamp::MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn a_bent_clock_shows_what_it_is_told_to_make_of_the_true_one() {
        let clock = Clock::virtual_from(base()).bent(|now| now + jiff::SignedDuration::from_hours(1));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(clock.now().to_string(), "2026-01-01T01:00:01Z");
    }

    #[test]
    fn the_wall_clock_knows_that_it_is_after_this_line_was_written() {
        assert!(Clock::wall().now() > base() - jiff::SignedDuration::from_hours(24 * 365));
    }
}
