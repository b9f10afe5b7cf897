//! What a sweep costs: time of the wall and of processors.

use std::time::{Duration, Instant};

/// Of `/proc/self/stat`: Linux has counted in hundredths of a second since 2.4, whatever the kernel's own tick is.
const TICK: Duration = Duration::from_millis(10);

/// A watch that was started.
pub struct Watch {
    began: Instant,
    cpu: Option<Duration>,
}

/// What was read from it.
#[derive(Debug, Clone, Copy)]
pub struct Figures {
    /// How long it took.
    pub wall: Duration,
    /// How much of all processors; nothing where the system does not say.
    pub cpu: Option<Duration>,
}

impl Watch {
    /// Starts.
    #[allow(clippy::disallowed_methods, reason = "what a sweep costs is in the time of whoever waits for it")]
    pub fn begin() -> Self {
        Self { began: Instant::now(), cpu: cpu() }
    }

    /// What it shows.
    pub fn read(&self) -> Figures {
        let used = self.cpu.zip(cpu()).map(|(before, now)| now.saturating_sub(before));
        Figures { wall: self.began.elapsed(), cpu: used }
    }
}

/// The processor time of this process so far, in user and kernel mode.
fn cpu() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name in the second field may contain spaces; the fields after its parenthesis begin with the third.
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let ticks = fields.get(11..=12)?.iter().map(|field| field.parse::<u32>().ok()).sum::<Option<u32>>()?;
    Some(TICK * ticks)
}
