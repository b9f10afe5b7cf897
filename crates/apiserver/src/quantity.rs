//! Amounts of a resource: `100m`, `1.5Gi`, `2e3`.

use std::borrow::Cow;
use std::cmp::Ordering;

/// Why a text is no quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// It does not look like one at all.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// The number in it is none.
    #[error("unable to parse numeric part of quantity")]
    Number,
    /// Its unit is none.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// How a quantity was written, and how it is written again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `12M`.
    Decimal,
    /// `12e6`.
    Exponent,
    /// `12Mi`.
    Binary,
}

/// An amount of a resource. The precision is one billionth, as in Kubernetes; amounts beyond 10^29 are cut to that.
#[derive(Debug, Clone, Copy)]
pub struct Quantity {
    nanos: i128,
    format: Format,
}

const NANOS: i128 = 1_000_000_000;
/// The most that a quantity with a binary unit can be: 2^63 - 1.
const BINARY_MAX: i128 = i64::MAX as i128 * NANOS;
/// The most that we count to: 10^38 fits an `i128`.
const MAX: i128 = 10_i128.pow(38);

const DECIMAL_UNITS: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY_UNITS: [(&str, u32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

/// A quantity's text, taken apart.
struct Parts<'a> {
    negative: bool,
    /// Without leading zeros.
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

impl<'a> Parts<'a> {
    fn of(text: &'a str) -> Result<Self, Malformed> {
        if text.is_empty() {
            return Err(Malformed::Format);
        }
        let (negative, rest) = match text.as_bytes()[0] {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let rest = rest.trim_start_matches('0');
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let (whole, rest) = rest.split_at(digits(rest));
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(rest) => rest.split_at(digits(rest)),
            None => ("", rest),
        };
        let exponent = suffix.trim_start_matches(|c: char| "eEinumkKMGTP".contains(c));
        let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        if exponent.bytes().all(|b| b.is_ascii_digit()) {
            Ok(Self { negative, whole, fraction, suffix })
        } else {
            Err(Malformed::Format)
        }
    }

    /// The unit: its format, and its exponent of ten or two.
    fn unit(&self) -> Result<(Format, i32), Malformed> {
        if let Some((_, exponent)) = DECIMAL_UNITS.iter().find(|(unit, _)| *unit == self.suffix) {
            return Ok((Format::Decimal, *exponent));
        }
        if let Some((_, exponent)) = BINARY_UNITS.iter().find(|(unit, _)| *unit == self.suffix) {
            return Ok((Format::Binary, i32::try_from(*exponent).unwrap_or_default()));
        }
        let exponent = self.suffix.strip_prefix(['e', 'E']).ok_or(Malformed::Suffix)?;
        let exponent: i64 = exponent.parse().map_err(|_| Malformed::Suffix)?;
        // Beyond this every amount is nothing, or too much to count.
        Ok((Format::Exponent, i32::try_from(exponent.clamp(-1000, 1000)).unwrap_or_default()))
    }
}

/// `digits` times ten to the `exponent`, rounded up and cut to what we count to.
fn scaled(digits: impl Iterator<Item = u8>, exponent: i32) -> i128 {
    let mut value: i128 = 0;
    let mut exponent = exponent;
    let mut lost = false;
    for digit in digits {
        let digit = i128::from(digit - b'0');
        if value >= MAX / 10 {
            lost |= digit > 0;
            exponent += 1;
        } else {
            value = value * 10 + digit;
        }
    }
    while exponent > 0 && value > 0 {
        if value > MAX / 10 {
            return MAX;
        }
        value *= 10;
        exponent -= 1;
    }
    while exponent < 0 && value > 0 {
        lost |= value % 10 > 0;
        value /= 10;
        exponent += 1;
    }
    (value + i128::from(lost)).min(MAX)
}

impl Quantity {
    /// Reads a quantity.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let text = text.trim();
        let parts = Parts::of(text)?;
        let (mut format, exponent) = parts.unit()?;
        let digits = parts.whole.bytes().chain(parts.fraction.bytes());
        let places = i32::try_from(parts.fraction.len()).map_err(|_| Malformed::Number)?;
        let mut nanos = if format == Format::Binary {
            let unit = 1_i128 << exponent;
            let (whole, rest) = (scaled(parts.whole.bytes(), 0), scaled(parts.fraction.bytes(), 9 - places));
            let whole = whole.min(BINARY_MAX / unit + 1);
            (whole * unit * NANOS).saturating_add(rest.saturating_mul(unit)).min(BINARY_MAX)
        } else {
            scaled(digits, exponent + 9 - places)
        };
        if format == Format::Binary && nanos > 0 && nanos < NANOS {
            format = Format::Decimal;
        }
        if parts.negative {
            nanos = -nanos;
        }
        Ok(Self { nanos, format })
    }

    /// Whether this is less than nothing.
    pub fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// Whether this is nothing.
    pub fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// Whether this is more than nothing.
    pub fn is_positive(self) -> bool {
        self.nanos > 0
    }

    /// The next whole thousandth.
    #[must_use]
    pub fn rounded_up_to_milli(self) -> Self {
        let rest = self.nanos % (NANOS / 1000);
        let up = if rest == 0 { 0 } else { NANOS / 1000 * rest.signum() - rest };
        Self { nanos: self.nanos.saturating_add(up), ..self }
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { nanos: self.nanos.saturating_add(other.nanos), ..self }
    }

    /// Whether this is a whole number of units.
    pub fn is_integer(self) -> bool {
        self.nanos % NANOS == 0
    }

    /// The amount in units, rounded up.
    pub fn units(self) -> i64 {
        self.scaled_to(NANOS)
    }

    /// The amount in thousandths, rounded up.
    pub fn millis(self) -> i64 {
        self.scaled_to(NANOS / 1000)
    }

    fn scaled_to(self, unit: i128) -> i64 {
        let up = i128::from(self.nanos > 0 && self.nanos % unit != 0);
        i64::try_from(self.nanos / unit + up).unwrap_or(if self.nanos < 0 { i64::MIN } else { i64::MAX })
    }

    /// The amount as Kubernetes writes it: `1000m` is `1`, `1024Mi` is `1Gi`.
    pub fn canonical(self) -> String {
        if self.nanos == 0 {
            return "0".to_owned();
        }
        let small = self.nanos.abs() < 1024 * NANOS;
        if self.format == Format::Binary && !small && self.is_integer() {
            let (mut amount, mut unit) = (self.nanos / NANOS, 0);
            while unit < BINARY_UNITS.len() && amount % 1024 == 0 {
                amount /= 1024;
                unit += 1;
            }
            let suffix = unit.checked_sub(1).map_or("", |unit| BINARY_UNITS[unit].0);
            return format!("{amount}{suffix}");
        }
        let (mut amount, mut exponent) = (self.nanos, -9);
        while amount % 1000 == 0 && (exponent < 18 || self.format == Format::Exponent) {
            amount /= 1000;
            exponent += 3;
        }
        if self.format == Format::Exponent {
            return if exponent == 0 { amount.to_string() } else { format!("{amount}e{exponent}") };
        }
        let suffix = DECIMAL_UNITS.iter().find(|(_, unit)| *unit == exponent).map_or("", |(suffix, _)| suffix);
        format!("{amount}{suffix}")
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

/// A quantity's text as Kubernetes would store it. A text in a form that Kubernetes takes for canonical stays as it is,
/// even `1.500`.
pub fn canonical(text: &str) -> Result<Cow<'_, str>, Malformed> {
    let quantity = Quantity::parse(text)?;
    let text = text.trim();
    let parts = Parts::of(text)?;
    let (format, exponent) = parts.unit()?;
    // Eighteen digits always fit the 64 bits that the short cut is for.
    let (whole, fraction) = (parts.whole, parts.fraction);
    let kept = match format {
        Format::Binary => {
            let digits = i32::try_from(whole.len()).unwrap_or(i32::MAX);
            let last = whole.bytes().rev().take(3).zip([1, 10, 100]).map(|(d, place)| u32::from(d - b'0') * place);
            let room = 15_i32.saturating_sub(digits) - exponent * 3 / 10 - 1;
            fraction.is_empty() && room >= 0 && last.sum::<u32>() % 8 != 0
        }
        Format::Decimal | Format::Exponent => {
            let scale = exponent - i32::try_from(fraction.len()).unwrap_or(i32::MAX);
            let fits = whole.len().max(1) + fraction.len() <= 18;
            // All three digits at the end count, wherever the point is.
            let thousands = whole.bytes().chain(fraction.bytes()).rev().take(3).filter(|b| *b == b'0').count() == 3;
            fits && !whole.is_empty() && scale >= -9 && scale % 3 == 0 && !thousands
        }
    };
    Ok(if kept || text == "0" { Cow::Borrowed(text) } else { Cow::Owned(quantity.canonical()) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantities_are_written_as_kubernetes_writes_them() {
        for (text, expected) in [
            ("0", "0"),
            ("0Gi", "0"),
            ("1", "1"),
            ("+1", "+1"),
            ("-1", "-1"),
            ("1.5", "1500m"),
            ("1.500", "1.500"),
            ("0.5", "500m"),
            ("100m", "100m"),
            ("1000m", "1"),
            ("1000", "1k"),
            ("1024", "1024"),
            ("1024Mi", "1Gi"),
            ("1023Mi", "1023Mi"),
            ("1.5Gi", "1536Mi"),
            ("0.5Gi", "512Mi"),
            ("0.5Ki", "512"),
            ("1Ki", "1Ki"),
            ("8Ki", "8Ki"),
            ("2048Ki", "2Mi"),
            ("1e3", "1e3"),
            ("1E3", "1E3"),
            ("1000e3", "1e6"),
            ("12e2", "1200"),
            ("1.2345n", "2n"),
            ("1n", "1n"),
            ("9223372036854775807", "9223372036854775807"),
            ("100Ei", "9223372036854775807"),
            ("1.", "1."),
            (".5", "500m"),
            ("  1Gi ", "1Gi"),
            ("123456789012345678901", "123456789012345678901"),
            ("0.1Gi", "107374182400m"),
            ("1.1Ki", "1126400m"),
            ("12345678901234567Ki", "9223372036854775807"),
            ("07", "07"),
            ("00.50", "500m"),
            ("10.00", "10"),
            ("1E", "1E"),
            ("1e-3", "1e-3"),
            ("1500e-3", "1500e-3"),
            ("1e0", "1e0"),
            ("5e1", "50"),
            ("1e20", "100e18"),
        ] {
            assert_eq!(canonical(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for (text, expected) in [
            ("", Malformed::Format),
            ("a", Malformed::Format),
            ("1.1.1", Malformed::Format),
            ("1 Gi", Malformed::Format),
            ("1Gib", Malformed::Format),
            ("é", Malformed::Format),
            ("1Kii", Malformed::Suffix),
            ("--1", Malformed::Suffix),
            ("0x10", Malformed::Format),
            ("1K", Malformed::Suffix),
            ("1mi", Malformed::Suffix),
            ("1e", Malformed::Suffix),
            ("1e9999999999999999999", Malformed::Suffix),
        ] {
            assert_eq!(Quantity::parse(text), Err(expected), "{text}");
        }
    }

    #[test]
    fn quantities_compare_by_amount() {
        let read = |text| Quantity::parse(text).unwrap();
        assert_eq!(read("1000m"), read("1"));
        assert_eq!(read("1Ki"), read("1024"));
        assert!(read("1G") < read("1Gi"));
        assert!(read("-1") < read("0") && read("-1").is_negative());
        assert!(!read("100m").is_integer() && read("1e3").is_integer());
        assert_eq!((read("1500m").units(), read("1500m").millis(), read("1e30").units()), (2, 1500, i64::MAX));
    }

    proptest! {
        #[test]
        fn no_text_panics_and_the_canonical_form_means_the_same(text in "[-+]?[0-9]{0,24}[.]?[0-9]{0,12}([numkMGTPE]|Ki|Mi|Gi|Ti|Pi|Ei|e[-+]?[0-9]{1,4})?") {
            if let Ok(quantity) = Quantity::parse(&text) {
                let written = quantity.canonical();
                prop_assert_eq!(Quantity::parse(&written), Ok(quantity), "{} as {}", text, written);
                prop_assert_eq!(Quantity::parse(&canonical(&text).unwrap()), Ok(quantity));
            }
        }

        #[test]
        fn no_garbage_panics(text in ".{0,16}") {
            let read = Quantity::parse(&text).map(Quantity::canonical);
            prop_assert_eq!(read.is_ok(), canonical(&text).is_ok());
        }
    }
}
