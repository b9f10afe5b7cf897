//! Time as objects spell it.

use jiff::Timestamp;

/// A moment with second precision: `2026-11-15T08:00:00Z`.
pub fn format(moment: Timestamp) -> String {
    // Not through jiff's formatter: this stands on the path of every create.
    let time = jiff::tz::Offset::UTC.to_datetime(moment);
    let mut text = String::with_capacity(20);
    push(&mut text, i32::from(time.year()), 4);
    for (separator, number) in
        [('-', time.month()), ('-', time.day()), ('T', time.hour()), (':', time.minute()), (':', time.second())]
    {
        text.push(separator);
        push(&mut text, i32::from(number), 2);
    }
    text.push('Z');
    text
}

fn push(text: &mut String, number: i32, width: u32) {
    for digit in (0..width).rev() {
        let digit = number / 10_i32.pow(digit) % 10;
        text.push(char::from_digit(digit.unsigned_abs(), 10).unwrap_or('0'));
    }
}

/// Reads a moment, if it is one.
pub fn parse(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_have_second_precision() {
        for (moment, text) in [
            ("2026-01-02T03:04:05.678Z", "2026-01-02T03:04:05Z"),
            ("1999-12-31T23:59:59+01:00", "1999-12-31T22:59:59Z"),
        ] {
            assert_eq!(format(parse(moment).unwrap()), text);
        }
    }
}
