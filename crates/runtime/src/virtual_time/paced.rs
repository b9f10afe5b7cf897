//! A run in which virtual time goes a given number of times as fast as the wall clock.
//!
//! It is the same paused clock as in a rehearsal, moved by hand: a thread of its own ticks in real time, and each tick advances
//! virtual time by what has passed, times the speed. Tokio would move a paused clock by itself whenever everything waits, were
//! it not for a blocking task that is parked until the end.

use std::io;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Notify;

use super::Virtual;
use crate::chance::Seed;
use crate::clock::{Clock, Hand, RealTime};

/// How often virtual time moves. Nobody at a terminal tells 10 ms from at once.
const TICK: Duration = Duration::from_millis(10);
/// Timers that lie within one step of the clock all fire at its end, so that what follows from the first of them is late by up
/// to a step. A quarter of a second is little beside anything that a machine does.
const STEP_MAX: Duration = Duration::from_millis(250);
/// What a slow machine may fall behind, in ticks, before virtual time goes slower instead: without a limit, a pause of the
/// process (a laptop that sleeps) would be followed by a rush through all that was missed.
const TICKS_BEHIND_MAX: u32 = 100;

/// Runs a future to its end on this thread, with virtual time that goes so many `times` as fast as real time. The clock that the
/// body is given may be read from any thread. Real I/O must happen in other threads.
pub fn run_paced<F, T>(seed: Seed, base: Timestamp, times: NonZeroU32, body: impl FnOnce(Virtual) -> F) -> io::Result<T>
where
    F: Future<Output = T>,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    let (clock, hand) = Clock::moved_by_hand(base);
    let ticker = Ticker::start()?;
    let result = runtime.block_on(async {
        let (end, parked) = mpsc::channel::<()>();
        // Ends when its sender is dropped, which is an error and the end that is waited for.
        let inhibitor = tokio::task::spawn_blocking(move || parked.recv().is_err());
        let result = tokio::select! {
            biased;
            result = body(Virtual { clock, seed }) => result,
            never = pace(&ticker, hand, times) => match never {},
        };
        drop(end);
        // A task that only waited cannot have failed.
        drop(inhibitor.await);
        result
    });
    Ok(result)
}

/// Moves the clock for ever.
async fn pace(ticker: &Ticker, mut hand: Hand, times: NonZeroU32) -> std::convert::Infallible {
    let start = RealTime::now();
    let mut due = Duration::ZERO;
    let mut forgiven = Duration::ZERO;
    loop {
        ticker.ticked.notified().await;
        let passed = start.elapsed().saturating_mul(times.get()).saturating_sub(forgiven);
        let behind = passed.saturating_sub(due);
        let behind_max = TICK.saturating_mul(TICKS_BEHIND_MAX).saturating_mul(times.get());
        forgiven += behind.saturating_sub(behind_max);
        let mut left = behind.min(behind_max);
        due += left;
        while !left.is_zero() {
            let step = left.min(STEP_MAX);
            hand.advance(step);
            tokio::time::advance(step).await;
            left -= step;
        }
    }
}

/// A thread that ticks in real time, for as long as this value lives.
struct Ticker {
    ticked: Arc<Notify>,
    /// Dropping it ends the thread.
    _stop: mpsc::Sender<()>,
}

impl Ticker {
    fn start() -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let ticked = Arc::new(Notify::new());
        let tick = Arc::clone(&ticked);
        let run = move || {
            while stopped.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                tick.notify_one();
            }
        };
        thread::Builder::new().name("windlass-ticker".into()).spawn(run)?;
        Ok(Self { ticked, _stop: stop })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }

    fn speed(times: u32) -> NonZeroU32 {
        NonZeroU32::new(times).unwrap()
    }

    #[test]
    fn an_hour_at_high_speed_ends_and_the_clock_shows_it_on_every_thread() {
        let shown = run_paced(Seed(1), base(), speed(100_000), |world| async move {
            tokio::time::sleep(Duration::from_secs(3_600)).await;
            let clock = world.clock.clone();
            thread::spawn(move || clock.now()).join().unwrap()
        });
        assert!(shown.unwrap() >= base() + Duration::from_secs(3_600));
    }

    #[test]
    fn timers_fire_in_their_order_and_never_early() {
        let fired = run_paced(Seed(1), base(), speed(10_000), |world| async move {
            let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
            for seconds in [30_u64, 10, 20] {
                let (sender, clock) = (sender.clone(), world.clock.clone());
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_secs(seconds)).await;
                    sender.send((seconds, clock.now())).unwrap();
                });
            }
            drop(sender);
            let mut fired = Vec::new();
            while let Some(timer) = receiver.recv().await {
                fired.push(timer);
            }
            fired
        });
        let fired = fired.unwrap();
        assert_eq!(fired.iter().map(|(seconds, _)| *seconds).collect::<Vec<_>>(), [10, 20, 30]);
        assert!(fired.iter().all(|(seconds, at)| *at >= base() + Duration::from_secs(*seconds)));
    }

    #[test]
    fn waiting_for_another_thread_does_not_make_time_leap() {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let other = thread::spawn(move || sender.send(()));
        let answered = run_paced(Seed(1), base(), speed(1), |_| async move {
            // On a clock that moves by itself this day would be over at once.
            tokio::time::timeout(Duration::from_secs(24 * 3_600), receiver).await
        });
        assert!(answered.unwrap().is_ok());
        assert!(other.join().unwrap().is_ok());
    }
}
