//! Amounts such as `500m`, `1Gi` or `2e3`: exact, and written the one way in which Kubernetes writes each of them.

use std::cmp::Ordering;

/// Billionths in one.
const UNIT: i128 = 1_000_000_000;
/// Billionths in a thousandth, the finest that resources are counted in.
const MILLI: i128 = 1_000_000;

/// An amount, to a billionth.
#[derive(Debug, Clone, Copy)]
pub struct Quantity {
    nanos: i128,
    notation: Notation,
}

/// How an amount was written, and shall be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Notation {
    /// `500m`, `2k`.
    Decimal,
    /// `1Gi`.
    Binary,
    /// `2e3`.
    Exponent,
}

const DECIMAL_SUFFIXES: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY_SUFFIXES: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

impl Quantity {
    /// Reads an amount. `None` when it is malformed, or too large to be counted in billionths.
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, rest) = match text.as_bytes().first()? {
            b'-' => (true, text.get(1..)?),
            b'+' => (false, text.get(1..)?),
            _ => (false, text),
        };
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, suffix) = rest.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.len() + fraction.len() == 0 || fraction.contains('.') {
            return None;
        }
        let (notation, multiplier, exponent) = interpret(suffix)?;
        let digits = whole
            .bytes()
            .chain(fraction.bytes())
            .try_fold(0_i128, |sum, digit| sum.checked_mul(10)?.checked_add(i128::from(digit - b'0')))?;
        let scale = exponent.checked_add(9)?.checked_sub(i32::try_from(fraction.len()).ok()?)?;
        let mut nanos = scaled(digits.checked_mul(multiplier)?, scale)?;
        if notation == Notation::Binary {
            nanos = nanos.min(i128::from(i64::MAX) * UNIT);
        }
        Some(Self { nanos: if negative { -nanos } else { nanos }, notation })
    }

    /// Whether there is more than nothing.
    pub fn is_positive(self) -> bool {
        self.nanos > 0
    }

    /// The next whole thousandth.
    #[must_use]
    pub fn rounded_up_to_milli(self) -> Self {
        let rest = self.nanos % MILLI;
        let up = if rest == 0 { 0 } else { MILLI * rest.signum() - rest };
        Self { nanos: self.nanos.saturating_add(up), ..self }
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { nanos: self.nanos.saturating_add(other.nanos), ..self }
    }

    /// The amount as Kubernetes writes it. `None` when there is no suffix for it.
    pub fn canonical(self) -> Option<String> {
        if self.nanos == 0 {
            return Some("0".to_owned());
        }
        if self.notation == Notation::Binary && self.nanos.abs() >= 1024 * UNIT && self.nanos % UNIT == 0 {
            let (amount, times) = without_factors(self.nanos / UNIT, 1024);
            let suffix = if times == 0 { "" } else { BINARY_SUFFIXES.get(times - 1)? };
            return Some(format!("{amount}{suffix}"));
        }
        let (mut amount, times) = without_factors(self.nanos, 10);
        let mut exponent = i32::try_from(times).ok()? - 9;
        while exponent % 3 != 0 {
            amount = amount.checked_mul(10)?;
            exponent -= 1;
        }
        if self.notation == Notation::Exponent {
            return Some(if exponent == 0 { amount.to_string() } else { format!("{amount}e{exponent}") });
        }
        let (suffix, _) = DECIMAL_SUFFIXES.iter().find(|(_, power)| *power == exponent)?;
        Some(format!("{amount}{suffix}"))
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

/// What a suffix means: how to write it again, a factor, and a power of ten.
fn interpret(suffix: &str) -> Option<(Notation, i128, i32)> {
    if let Some((_, power)) = DECIMAL_SUFFIXES.iter().find(|(known, _)| *known == suffix) {
        return Some((Notation::Decimal, 1, *power));
    }
    if let Some(index) = BINARY_SUFFIXES.iter().position(|known| *known == suffix) {
        return Some((Notation::Binary, 1024_i128.checked_pow(u32::try_from(index + 1).ok()?)?, 0));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    Some((Notation::Exponent, 1, exponent.parse().ok()?))
}

/// `digits` times a power of ten, rounded away from nothing: who asks for some gets some.
fn scaled(digits: i128, power: i32) -> Option<i128> {
    if digits == 0 {
        return Some(0);
    }
    let factor = 10_i128.checked_pow(power.unsigned_abs());
    if power >= 0 {
        return digits.checked_mul(factor?);
    }
    // A divisor beyond all numbers leaves the smallest amount there is.
    Some(factor.map_or(1, |factor| digits / factor + i128::from(digits % factor != 0)))
}

/// A number without the factor, and how often it was in there.
fn without_factors(mut number: i128, factor: i128) -> (i128, usize) {
    let mut times = 0;
    while number != 0 && number % factor == 0 {
        number /= factor;
        times += 1;
    }
    (number, times)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(written: &str, expected: Option<&str>) {
        assert_eq!(Quantity::parse(written).and_then(Quantity::canonical).as_deref(), expected, "{written}");
    }

    #[test]
    fn amounts_are_written_one_way() {
        for (written, expected) in [
            ("0", "0"),
            ("0Gi", "0"),
            ("1", "1"),
            ("0.5", "500m"),
            (".5", "500m"),
            ("5.", "5"),
            ("+1000m", "1"),
            ("1500m", "1500m"),
            ("100", "100"),
            ("1000", "1k"),
            ("1024", "1024"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("1536Ki", "1536Ki"),
            ("0.5Ki", "512"),
            ("0.1Ki", "102400m"),
            ("123456789", "123456789"),
            ("120M", "120M"),
            ("1e3", "1e3"),
            ("12E2", "1200"),
            ("10e3", "10e3"),
            ("-5m", "-5m"),
            ("0.0000000001", "1n"),
            ("1e-50", "1e-9"),
            ("9223372036854775807", "9223372036854775807"),
            ("100Ei", "9223372036854775807"),
        ] {
            check(written, Some(expected));
        }
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        for written in ["", "-", ".", "Gi", "1.2.3", "1 Gi", "1gi", "0x10", "1e", "1ee3", "é", "1e99999999999", "1e300"]
        {
            check(written, None);
        }
    }

    #[test]
    fn amounts_compare_by_what_they_mean() {
        let parse = |text| Quantity::parse(text).unwrap();
        assert_eq!(parse("1Ki"), parse("1024"));
        assert!(parse("1G") < parse("1Gi"));
        assert_eq!(parse("1500u").rounded_up_to_milli(), parse("2m"));
        assert_eq!(parse("300m").plus(parse("0.7")), parse("1"));
    }
}
