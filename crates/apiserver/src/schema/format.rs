//! The `format`s of strings that a server checks.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Whether the format says anything for a declared type. Others are ignored, as a real server does.
pub(crate) fn supported(declared: &str, format: &str) -> bool {
    match declared {
        "" | "string" => matches(format, "").is_some(),
        "integer" => matches!(format, "int32" | "int64"),
        "number" => matches!(format, "float" | "double"),
        _ => false,
    }
}

/// Whether the text is of the format; `None` for a format that is not checked. Dashes in the name do not matter.
pub(crate) fn matches(format: &str, text: &str) -> Option<bool> {
    Some(match format {
        "bsonobjectid" => text.len() == 24 && all_hex(text),
        "uri" => uri(text),
        "email" => email(text),
        "hostname" => hostname(text),
        "ipv4" => ipv4(text).is_some() || (text.contains('.') && text.parse::<Ipv6Addr>().is_ok()),
        "ipv6" => text.contains(':') && text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => cidr(text),
        "mac" => mac(text),
        "uuid" => uuid(text, None, false),
        "uuid3" => uuid(text, Some('3'), false),
        "uuid4" => uuid(text, Some('4'), true),
        "uuid5" => uuid(text, Some('5'), true),
        "isbn" => isbn10(text) || isbn13(text),
        "isbn10" => isbn10(text),
        "isbn13" => isbn13(text),
        "creditcard" => credit_card(text),
        "ssn" => text.len() == 11 && ssn(text),
        "hexcolor" => {
            let digits = text.strip_prefix('#').unwrap_or(text);
            matches!(digits.len(), 3 | 6) && all_hex(digits)
        }
        "rgbcolor" => rgb_color(text),
        "byte" => base64(text),
        "password" => true,
        "date" => date(text),
        "duration" => duration(text),
        "date-time" | "datetime" => date_time(text),
        "k8s-short-name" | "k8sshortname" => text.len() <= 63 && label(text),
        "k8s-long-name" | "k8slongname" => text.len() <= 253 && text.split('.').all(label),
        dashed if dashed.contains('-') => return matches(&dashed.replace('-', ""), text),
        _ => return None,
    })
}

fn all_hex(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_hexdigit())
}

fn all_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn label(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !text.is_empty() && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

/// An absolute URI, or an absolute path.
fn uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|b| b.is_ascii_control()) {
        return false;
    }
    if text.starts_with('/') || text == "*" {
        return escapes(text);
    }
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let named = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    let authority = rest.strip_prefix("//").map(|rest| rest.split(['/', '?']).next().unwrap_or_default());
    named && authority.is_none_or(valid_authority) && escapes(rest)
}

fn valid_authority(authority: &str) -> bool {
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let after = match host.strip_prefix('[') {
        Some(inner) => match inner.split_once(']') {
            Some((_, after)) => after,
            None => return false,
        },
        None => host.find(':').map_or("", |colon| host.get(colon..).unwrap_or_default()),
    };
    let port = after.strip_prefix(':').map_or(after.is_empty(), |port| port.bytes().all(|b| b.is_ascii_digit()));
    port && !host.contains([' ', '<', '>', '"', '^', '`', '{', '}', '|', '\\'])
}

/// Every percent sign is followed by two hexadecimal digits.
fn escapes(text: &str) -> bool {
    let path = text.split('?').next().unwrap_or_default();
    path.split('%').skip(1).all(|after| after.get(..2).is_some_and(all_hex))
}

fn email(text: &str) -> bool {
    let address = match (text.rfind('<'), text.strip_suffix('>')) {
        (Some(open), Some(closed)) => closed.get(open + 1..).unwrap_or_default(),
        _ => text.trim(),
    };
    let atom = |part: &str, more: &str| {
        !part.is_empty()
            && part.split('.').all(|atom| !atom.is_empty())
            && part.chars().all(|c| c.is_alphanumeric() || more.contains(c))
    };
    let quoted = |local: &str| local.len() > 2 && local.starts_with('"') && local.ends_with('"');
    address.rsplit_once('@').is_some_and(|(local, domain)| {
        const SPECIAL: &str = "!#$%&'*+-/=?^_`{|}~.";
        (quoted(local) || atom(local, SPECIAL)) && (atom(domain, SPECIAL) || domain.starts_with('['))
    })
}

fn hostname(text: &str) -> bool {
    let letter_or_digit = |c: char| c.is_ascii_digit() || c.is_alphabetic() || !(c.is_ascii() || c.is_whitespace());
    let part = |part: &str| {
        part.len() <= 63
            && part.starts_with(letter_or_digit)
            && part.ends_with(letter_or_digit)
            && part.chars().all(|c| letter_or_digit(c) || c == '-')
    };
    if text.len() > 255 || !text.split('.').all(part) {
        return false;
    }
    match text.rsplit_once('.') {
        Some((_, top)) => top.chars().count() >= 2 && top.chars().all(char::is_alphabetic),
        // In a name without dots, only one dash is allowed, after the first character.
        None => text.chars().skip(2).all(|c| c != '-'),
    }
}

/// Leading zeros are tolerated: they were, once.
fn ipv4(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part = parts.next().filter(|part| all_digits(part))?;
        *octet = part.parse().ok()?;
    }
    parts.next().is_none().then(|| Ipv4Addr::from(octets))
}

fn cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    if !all_digits(bits) || bits.len() > 3 {
        return false;
    }
    let Ok(bits) = bits.parse::<u16>() else { return false };
    match ipv4(address) {
        Some(_) => bits <= 32,
        None => bits <= 128 && address.parse::<Ipv6Addr>().is_ok(),
    }
}

fn mac(text: &str) -> bool {
    let grouped = |separator: char, width: usize, groups: &[usize]| {
        let parts: Vec<&str> = text.split(separator).collect();
        groups.contains(&parts.len()) && parts.iter().all(|part| part.len() == width && all_hex(part))
    };
    grouped(':', 2, &[6, 8, 20]) || grouped('-', 2, &[6, 8, 20]) || grouped('.', 4, &[3, 4, 10])
}

/// A UUID of a version, if one is asked for, and of the usual variant, if that is asked for. Dashes are optional.
fn uuid(text: &str, version: Option<char>, variant: bool) -> bool {
    let mut rest = text;
    let mut digits = String::with_capacity(32);
    for (position, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if position > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some((group, after)) = rest.split_at_checked(length) else { return false };
        digits.push_str(group);
        rest = after;
    }
    let nth = |position: usize| digits.chars().nth(position);
    rest.is_empty()
        && all_hex(&digits)
        && version.is_none_or(|version| nth(12) == Some(version))
        && (!variant || nth(16).is_some_and(|c| "89abAB".contains(c)))
}

fn isbn_digits(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace() && *c != '-').collect()
}

fn isbn10(text: &str) -> bool {
    let text = isbn_digits(text);
    let value = |(index, c): (usize, char)| match c {
        'X' if index == 9 => Some(10),
        c => c.to_digit(10),
    };
    let digits: Option<Vec<u32>> = text.chars().enumerate().map(value).collect();
    digits.is_some_and(|digits| digits.len() == 10 && (1..).zip(&digits).map(|(n, d)| n * d).sum::<u32>() % 11 == 0)
}

fn isbn13(text: &str) -> bool {
    let digits: Option<Vec<u32>> = isbn_digits(text).chars().map(|c| c.to_digit(10)).collect();
    digits.is_some_and(|digits| {
        digits.len() == 13 && [1, 3].iter().cycle().zip(&digits).map(|(n, d)| n * d).sum::<u32>() % 10 == 0
    })
}

fn credit_card(text: &str) -> bool {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(10)).collect();
    let luhn = digits.iter().rev().enumerate().map(|(index, digit)| match index % 2 {
        0 => *digit,
        _ if *digit > 4 => digit * 2 - 9,
        _ => digit * 2,
    });
    (13..=16).contains(&digits.len()) && luhn.sum::<u32>() % 10 == 0
}

fn ssn(text: &str) -> bool {
    let parts: Vec<&str> = text.split(['-', ' ']).collect();
    matches!(parts.as_slice(), [a, b, c] if a.len() == 3 && b.len() == 2 && c.len() == 4)
        && parts.iter().all(|part| all_digits(part))
}

fn rgb_color(text: &str) -> bool {
    let inside = text.strip_prefix("rgb(").and_then(|rest| rest.strip_suffix(')'));
    let component = |part: &str| {
        let part = part.trim();
        all_digits(part) && (part == "0" || !part.starts_with('0')) && part.parse::<u8>().is_ok()
    };
    inside.is_some_and(|inside| inside.split(',').count() == 3 && inside.split(',').all(component))
}

fn base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let alphabet = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/');
    !text.is_empty() && text.len().is_multiple_of(4) && text.len() - digits.len() <= 2 && digits.bytes().all(alphabet)
}

fn date(text: &str) -> bool {
    text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok()
}

fn date_time(text: &str) -> bool {
    let Some((day, time)) = text.split_once(['T', 't']) else { return false };
    let Some(clock) = time.get(..8) else { return false };
    let mut parts = clock.split(':');
    let mut below = |limit: u8| {
        parts
            .next()
            .is_some_and(|part| part.len() == 2 && all_digits(part) && part.parse::<u8>().is_ok_and(|n| n < limit))
    };
    let sound = below(24) && below(60) && below(60) && parts.next().is_none();
    let rest = time.get(8..).unwrap_or_default();
    // Any character may stand before the fraction: a real server's expression has an unescaped dot there.
    let zone = match rest.find(['Z', 'z', '+', '-']) {
        Some(0) => rest,
        Some(at) if rest.get(1..at).is_some_and(all_digits) => rest.get(at..).unwrap_or_default(),
        _ => return false,
    };
    let offset = |zone: &str| {
        zone.len() == 6
            && zone.bytes().enumerate().skip(1).all(|(i, b)| if i == 3 { b == b':' } else { b.is_ascii_digit() })
    };
    sound && date(day) && (zone.eq_ignore_ascii_case("z") || offset(zone))
}

/// A duration as Go reads it (`1h30m`), or a number and a unit in words (`2 days`).
fn duration(text: &str) -> bool {
    go_duration(text) || scala_duration(text)
}

fn go_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        if number.matches('.').count() > 1 || !number.contains(|c: char| c.is_ascii_digit()) {
            return false;
        }
        let units = ["ns", "us", "\u{b5}s", "\u{3bc}s", "ms", "s", "m", "h"];
        let end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        if !units.contains(&unit) {
            return false;
        }
        rest = after;
    }
    true
}

fn scala_duration(text: &str) -> bool {
    const EXACT: [&str; 14] =
        ["ns", "us", "\u{b5}s", "ms", "s", "m", "h", "hr", "d", "w", "wk", "nano", "micro", "milli"];
    const PREFIXES: [&str; 8] = ["nano", "micro", "milli", "sec", "min", "hour", "day", "week"];
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let from_number = rest.get(start..).unwrap_or_default();
        let after = from_number.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
        let end = after.find(|c: char| !c.is_ascii_alphabetic() && c != '\u{b5}').unwrap_or(after.len());
        let (unit, next) = after.split_at(end);
        let unit = unit.to_lowercase();
        if EXACT.contains(&unit.as_str()) || PREFIXES.iter().any(|prefix| unit.starts_with(prefix)) {
            return true;
        }
        rest = next;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[track_caller]
    fn check(format: &str, right: &[&str], wrong: &[&str]) {
        for text in right {
            assert_eq!(matches(format, text), Some(true), "{text:?} is a {format}");
        }
        for text in wrong {
            assert_eq!(matches(format, text), Some(false), "{text:?} is no {format}");
        }
    }

    #[test]
    fn formats_are_recognised() {
        check(
            "date-time",
            &["2014-12-15T19:30:20.000Z", "2014-12-15t19:30:20+01:00"],
            &["2014-12-15", "x", "2014-12-15T25:30:20Z", "2014-12-15T19:30:20"],
        );
        check("date", &["2006-01-02"], &["2006-13-02", "2006-1-2", ""]);
        check("ipv4", &["10.0.0.1", "010.0.0.1"], &["10.0.0", "10.0.0.256", "::1"]);
        check("ipv6", &["::1", "fe80::1"], &["10.0.0.1", "g::"]);
        check("cidr", &["10.0.0.0/8", "fd00::/64"], &["10.0.0.0", "10.0.0.0/33", "10.0.0.0/x"]);
        check("mac", &["01:23:45:67:89:ab", "0123.4567.89ab"], &["01:23", "01:23:45:67:89:zz"]);
        check("uuid", &["6ba7b810-9dad-11d1-80b4-00c04fd430c8", "6BA7B8109DAD11D180B400C04FD430C8"], &["6ba7b810", ""]);
        check("uuid4", &["6ba7b810-9dad-41d1-80b4-00c04fd430c8"], &["6ba7b810-9dad-11d1-80b4-00c04fd430c8"]);
        check("byte", &["aGVsbG8=", "YWJj"], &["a", "aGVsbG8", ""]);
        check("duration", &["1h30m", "22 ns", "-5s", "0", "2 days"], &["", "5", "abc", "5 parsecs"]);
        check("uri", &["https://example.com/a?b", "/a/b", "mailto:x@y.z"], &["example.com", "", "http://[::1"]);
        check("email", &["a@example.com", "A B <a@b.c>"], &["a", "@b", "a@"]);
        check("hostname", &["example.com", "host", "a-b"], &["-a", "a_b", "", "example.1"]);
        check("isbn", &["0321751043", "978-0321751041"], &["0321751044"]);
        check("creditcard", &["4111 1111 1111 1111"], &["4111111111111112"]);
        check("hexcolor", &["#FFFFFF", "abc"], &["#GGGGGG", "#ab"]);
        check("rgbcolor", &["rgb(255, 0,1)"], &["rgb(256,0,1)", "rgb(1,2)"]);
        check("ssn", &["111-22-3333"], &["111223333", "11-222-3333"]);
        check("k8s-short-name", &["a-b"], &["A", "a.b", "-a"]);
        check("k8s-long-name", &["a-b.c"], &["a..b", "A"]);
        assert_eq!(matches("no-such-format", "x"), None);
    }
}
