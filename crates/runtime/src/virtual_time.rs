//! A run in which an hour of waiting takes microseconds; and one in which it takes as long as a person wants to wait.

mod paced;

use std::io;

use jiff::Timestamp;

use crate::chance::Seed;
use crate::clock::Clock;

pub use paced::run_paced;

/// The time and the chance of a virtual run.
#[derive(Debug, Clone)]
pub struct Virtual {
    /// Shows the base at the start, then virtual time.
    pub clock: Clock,
    /// Decides everything random.
    pub seed: Seed,
}

/// Runs a future to its end on this thread, with tokio's clock paused: whenever everything waits, time jumps to the next
/// timer. The body must end by itself, since watches have timers for ever, and must do no real I/O, since every timeout
/// on it would fire at once. When it has ended, its clock stands still and may be read from anywhere. Fails only if the
/// runtime cannot be built.
pub fn run_virtual<F, T>(seed: Seed, base: Timestamp, body: impl FnOnce(Virtual) -> F) -> io::Result<T>
where
    F: Future<Output = T>,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    // The body is called inside: a `kube::Client` can only be made there, and a clock only read there.
    Ok(runtime.block_on(async {
        let clock = Clock::virtual_from(base);
        let ended = body(Virtual { clock: clock.clone(), seed }).await;
        clock.stop();
        ended
    }))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_day_passes_in_no_time_and_the_clock_shows_it() {
        let base = "2026-01-01T00:00:00Z".parse().unwrap();
        let end = run_virtual(Seed(1), base, |world| async move {
            tokio::time::sleep(Duration::from_secs(24 * 60 * 60)).await;
            world.clock.now()
        });
        assert_eq!(end.unwrap().to_string(), "2026-01-02T00:00:00Z");
    }

    #[test]
    fn a_clock_shows_the_end_of_its_run_when_that_is_over() {
        let base = "2026-01-01T00:00:00Z".parse().unwrap();
        let clock = run_virtual(Seed(1), base, |world| async move {
            tokio::time::sleep(Duration::from_secs(60 * 60)).await;
            world.clock
        });
        let clock = clock.unwrap();
        assert_eq!(clock.now().to_string(), "2026-01-01T01:00:00Z");
        // In another run, too, whose hours are not its own.
        let later = run_virtual(Seed(1), base, |_| async {
            tokio::time::sleep(Duration::from_secs(24 * 60 * 60)).await;
            clock.now()
        });
        assert_eq!(later.unwrap(), clock.now());
    }
}
