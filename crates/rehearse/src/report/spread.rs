//! How long something takes, over many runs.

use std::fmt;

use jiff::SignedDuration;
use jiff::fmt::friendly::{Spacing, SpanPrinter};
use serde::Serialize;

/// How long something takes: in half of the runs no longer than the first, in nine of ten no longer than the second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Spread {
    /// Half of the runs took no longer.
    #[schemars(with = "String")]
    pub p50: SignedDuration,
    /// Nine of ten took no longer.
    #[schemars(with = "String")]
    pub p90: SignedDuration,
}

impl Spread {
    /// Of so many runs. Of none it is nothing.
    pub fn of(times: impl Iterator<Item = SignedDuration>) -> Self {
        let mut times: Vec<SignedDuration> = times.collect();
        times.sort_unstable();
        // The nearest rank: the smallest time that so many percent do not exceed.
        let rank = |percent: usize| times.get((times.len() * percent).div_ceil(100).saturating_sub(1)).copied();
        Self { p50: rank(50).unwrap_or_default(), p90: rank(90).unwrap_or_default() }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "P50 {}, P90 {}", told(self.p50), told(self.p90))
    }
}

/// A time as people write it: `6m31s`. What is below a second is left out.
pub(crate) fn told(time: SignedDuration) -> String {
    let whole = SignedDuration::from_secs(time.as_secs());
    SpanPrinter::new().spacing(Spacing::None).duration_to_string(&whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_there_were() {
        let check = |seconds: &[i64], p50: i64, p90: i64| {
            let spread = Spread::of(seconds.iter().map(|second| SignedDuration::from_secs(*second)));
            assert_eq!((spread.p50.as_secs(), spread.p90.as_secs()), (p50, p90), "{seconds:?}");
        };
        check(&[], 0, 0);
        check(&[7], 7, 7);
        check(&[9, 1], 1, 9);
        check(&[10, 1, 2, 3, 4, 5, 6, 7, 8, 9], 5, 9);
        check(&(1..=20).collect::<Vec<_>>(), 10, 18);
        assert_eq!(Spread::of([SignedDuration::from_secs(391)].into_iter()).to_string(), "P50 6m31s, P90 6m31s");
    }
}
