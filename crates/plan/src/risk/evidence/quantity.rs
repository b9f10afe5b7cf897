//! An amount of a resource, as quotas count it.

use std::fmt;

use serde::{Serialize, Serializer};

/// An amount, in thousandths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quantity {
    /// So many thousandths.
    pub millis: i64,
}

const MEBI: i64 = 1 << 20;
const GIBI: i64 = 1 << 30;

impl Quantity {
    /// So many units.
    pub fn units(units: i64) -> Self {
        Self { millis: units.saturating_mul(1000) }
    }

    /// So many times as much.
    #[must_use]
    pub fn times(self, count: u32) -> Self {
        Self { millis: self.millis.saturating_mul(i64::from(count)) }
    }

    /// What is left when so much is taken away; less than nothing where more is taken than there is.
    #[must_use]
    pub fn less(self, taken: Self) -> Self {
        Self { millis: self.millis.saturating_sub(taken.millis) }
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { millis: self.millis.saturating_add(other.millis) }
    }
}

impl fmt::Display for Quantity {
    /// In the largest unit that it is a whole number of: `16Gi`, `12`, `500m`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = self.millis / 1000;
        match self.millis {
            0 => f.write_str("0"),
            millis if millis % 1000 != 0 => write!(f, "{millis}m"),
            _ if units % GIBI == 0 => write!(f, "{}Gi", units / GIBI),
            _ if units % MEBI == 0 => write!(f, "{}Mi", units / MEBI),
            _ => write!(f, "{units}"),
        }
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
