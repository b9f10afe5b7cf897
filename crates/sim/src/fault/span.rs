//! A length of time, as people write it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

/// A length of time: `90s`, `5m`, `1h 30m`, `250ms`. It is never negative.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Span(pub Duration);

/// A text that is no length of time.
#[derive(Debug, thiserror::Error)]
#[error("{text:?} is no length of time: write it as 90s, 5m or 1h 30m")]
pub struct SpanError {
    text: String,
}

impl Span {
    /// So many seconds.
    pub fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// So many minutes.
    pub fn minutes(minutes: u64) -> Self {
        Self::seconds(60 * minutes)
    }

    /// Both, one after the other.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Whether it is none.
    pub fn is_zero(&self) -> bool {
        self.0.is_zero()
    }
}

impl FromStr for Span {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        let read = text.parse::<SignedDuration>().ok().and_then(|read| Duration::try_from(read).ok());
        read.map(Self).ok_or_else(|| SpanError { text: text.to_owned() })
    }
}

impl TryFrom<String> for Span {
    type Error = SpanError;

    fn try_from(text: String) -> Result<Self, SpanError> {
        text.parse()
    }
}

impl From<Span> for String {
    fn from(span: Span) -> Self {
        span.to_string()
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.as_secs(), self.0.subsec_millis()) {
            (seconds, 0) => write!(f, "{seconds}s"),
            _ => write!(f, "{}ms", self.0.as_millis()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_as_people_write_them_and_written_so_that_they_can_be_read() {
        for (text, millis) in [("90s", 90_000), ("5m", 300_000), ("1h 30m", 5_400_000), ("250ms", 250)] {
            let span: Span = text.parse().unwrap();
            assert_eq!(span.0.as_millis(), millis, "{text}");
            assert_eq!(span.to_string().parse::<Span>().unwrap(), span);
        }
        for text in ["", "soon", "-5m", "7"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }
}
