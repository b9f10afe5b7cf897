//! How long ago: the short form in which `kubectl get` shows spans of time.

use std::fmt::Write as _;

use jiff::Timestamp;

/// The time from `then` to `now`, or `<unknown>` when `then` is not a time.
pub fn since(then: Option<&str>, now: Timestamp) -> String {
    match then.and_then(|text| text.parse::<Timestamp>().ok()) {
        Some(then) => human(now.duration_since(then)),
        None => "<unknown>".to_owned(),
    }
}

/// A span of time with two or three significant digits: `5m12s`, `3h`, `2y14d`.
///
/// A clock that is less than two seconds behind counts as now; more is `<invalid>`.
pub fn human(span: jiff::SignedDuration) -> String {
    // Truncated towards zero: -1.9 s is -1.
    let seconds = span.as_secs();
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => one(seconds, 's'),
        _ if minutes < 10 => two(minutes, 'm', seconds % 60, 's'),
        _ if minutes < 180 => one(minutes, 'm'),
        _ if hours < 8 => two(hours, 'h', minutes % 60, 'm'),
        _ if hours < 48 => one(hours, 'h'),
        _ if days < 8 => two(days, 'd', hours % 24, 'h'),
        _ if years < 2 => one(days, 'd'),
        _ if years < 8 => two(years, 'y', days % 365, 'd'),
        _ => one(years, 'y'),
    }
}

fn one(count: i64, unit: char) -> String {
    format!("{count}{unit}")
}

fn two(count: i64, unit: char, rest: i64, rest_unit: char) -> String {
    let mut text = one(count, unit);
    if rest != 0 {
        // Writing to a String cannot fail.
        write!(text, "{rest}{rest_unit}").ok();
    }
    text
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;

    fn check(milliseconds: i64, expected: &str) {
        assert_eq!(human(SignedDuration::from_millis(milliseconds)), expected, "{milliseconds} ms");
    }

    #[test]
    fn spans_keep_two_or_three_digits() {
        for (seconds, expected) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (MINUTE * 5 + 12, "5m12s"),
            (MINUTE * 10 - 1, "9m59s"),
            (MINUTE * 10, "10m"),
            (MINUTE * 10 + 59, "10m"),
            (MINUTE * 180 - 1, "179m"),
            (HOUR * 3, "3h"),
            (HOUR * 3 + MINUTE * 7, "3h7m"),
            (HOUR * 8 - 1, "7h59m"),
            (HOUR * 8, "8h"),
            (HOUR * 48 - 1, "47h"),
            (HOUR * 48, "2d"),
            (HOUR * 49, "2d1h"),
            (DAY * 8 - 1, "7d23h"),
            (DAY * 8, "8d"),
            (YEAR * 2 - 1, "729d"),
            (YEAR * 2, "2y"),
            (YEAR * 2 + DAY * 14, "2y14d"),
            (YEAR * 8 - 1, "7y364d"),
            (YEAR * 8 + DAY, "8y"),
        ] {
            check(seconds * 1000, expected);
        }
        check(-1999, "0s");
        check(-999, "0s");
    }

    #[test]
    fn a_time_that_is_none_is_unknown() {
        let now: Timestamp = "2026-11-15T09:00:00Z".parse().unwrap();
        assert_eq!(since(Some("2026-11-15T08:54:48Z"), now), "5m12s");
        assert_eq!(since(Some("2026-11-15T08:54:48.000001Z"), now), "5m11s");
        assert_eq!(since(Some("yesterday"), now), "<unknown>");
        assert_eq!(since(None, now), "<unknown>");
    }
}
