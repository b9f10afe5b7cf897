//! The shapes that names, labels and other short strings must have. Each check returns what is wrong, in Kubernetes' words;
//! a string that is right costs a scan and no allocation.

use std::borrow::Cow;

const DNS_LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const DNS_SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const QUALIFIED_NAME: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const QUALIFIED_NAME_WORDS: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

/// The longest a DNS label, a label's value or the name in a qualified name may be.
const LABEL_MAX: usize = 63;
/// The longest a DNS subdomain may be.
const SUBDOMAIN_MAX: usize = 253;

fn too_long(max: usize, unit: &str) -> String {
    format!("must be no more than {max} {unit}")
}

/// A complaint that shows examples and the expression that a value must match.
fn pattern(words: &str, examples: &[&str], expression: &str) -> String {
    let mut text = format!("{words} (");
    for (i, example) in examples.iter().enumerate() {
        text += if i == 0 { "e.g. '" } else { " or '" };
        text += example;
        text += "', ";
    }
    text += "regex used for validation is '";
    text += expression;
    text += "')";
    text
}

/// Whether the first and last byte pass `edge`, and all others `inner`.
fn bounded(text: &str, edge: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    match text.as_bytes() {
        [] => false,
        [only] => edge(*only),
        [first, middle @ .., last] => edge(*first) && edge(*last) && middle.iter().all(|b| inner(*b)),
    }
}

fn lower_alnum(b: u8) -> bool {
    b.is_ascii_lowercase() || b.is_ascii_digit()
}

fn matches_label(text: &str) -> bool {
    bounded(text, lower_alnum, |b| lower_alnum(b) || b == b'-')
}

fn matches_subdomain(text: &str) -> bool {
    text.split('.').all(matches_label)
}

fn matches_qualified(text: &str) -> bool {
    bounded(text, |b| b.is_ascii_alphanumeric(), |b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

/// A lowercase label of RFC 1123: `my-name`.
pub fn is_dns_label(value: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if value.len() > LABEL_MAX {
        wrong.push(too_long(LABEL_MAX, "characters"));
    }
    if !matches_label(value) {
        wrong.push(if matches_subdomain(value) {
            "must not contain dots".to_owned()
        } else {
            let words = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character";
            pattern(words, &["my-name", "123-abc"], DNS_LABEL)
        });
    }
    wrong
}

/// A lowercase subdomain of RFC 1123: `example.com`.
pub fn is_dns_subdomain(value: &str) -> Vec<String> {
    subdomain(value, "characters")
}

fn subdomain(value: &str, unit: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if value.len() > SUBDOMAIN_MAX {
        wrong.push(too_long(SUBDOMAIN_MAX, unit));
    }
    if !matches_subdomain(value) {
        let words = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
        wrong.push(pattern(words, &["example.com"], DNS_SUBDOMAIN));
    }
    wrong
}

/// A DNS subdomain that may have underscores, as in search domains.
pub fn is_dns_subdomain_with_underscore(value: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if value.len() > SUBDOMAIN_MAX {
        wrong.push(too_long(SUBDOMAIN_MAX, "characters"));
    }
    let part = |text: &str| {
        let text = text.strip_prefix('_').unwrap_or(text);
        bounded(text, lower_alnum, |b| lower_alnum(b) || matches!(b, b'-' | b'_'))
    };
    if !value.split('.').all(part) {
        let words = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character";
        let expression = r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*";
        wrong.push(pattern(words, &["example.com"], expression));
    }
    wrong
}

/// A wildcard and a DNS subdomain: `*.example.com`.
pub fn is_wildcard_dns_subdomain(value: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if value.len() > SUBDOMAIN_MAX {
        wrong.push(too_long(SUBDOMAIN_MAX, "characters"));
    }
    if !value.strip_prefix("*.").is_some_and(matches_subdomain) {
        let words = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character";
        wrong.push(pattern(words, &["*.example.com"], &format!(r"\*\.{DNS_SUBDOMAIN}")));
    }
    wrong
}

/// A label of RFC 1035, which starts with a letter.
pub fn is_dns1035_label(value: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if value.len() > LABEL_MAX {
        wrong.push(too_long(LABEL_MAX, "characters"));
    }
    if !matches_label(value) || value.starts_with(|c: char| c.is_ascii_digit()) {
        let words = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character";
        wrong.push(pattern(words, &["my-name", "abc-123"], "[a-z]([-a-z0-9]*[a-z0-9])?"));
    }
    wrong
}

/// The key of a label, a finalizer, a resource: a name, after an optional DNS subdomain and a slash.
pub fn is_qualified_name(value: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let (prefix, name) = match value.split_once('/') {
        None => (None, value),
        Some((_, rest)) if rest.contains('/') => {
            let text = format!(
                "a valid label key {QUALIFIED_NAME_WORDS} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            );
            return vec![text];
        }
        Some((prefix, name)) => (Some(prefix), name),
    };
    match prefix {
        Some("") => wrong.push("prefix part must be non-empty".to_owned()),
        Some(prefix) => wrong.extend(subdomain(prefix, "bytes").into_iter().map(|text| format!("prefix part {text}"))),
        None => {}
    }
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_MAX {
        wrong.push(format!("name part {}", too_long(LABEL_MAX, "bytes")));
    }
    if !matches_qualified(name) {
        wrong.push(format!("name part {QUALIFIED_NAME_WORDS}"));
    }
    wrong
}

/// The value of a label.
pub fn is_label_value(value: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if value.len() > LABEL_MAX {
        wrong.push(too_long(LABEL_MAX, "bytes"));
    }
    if !value.is_empty() && !matches_qualified(value) {
        let words = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
        wrong.push(pattern(words, &["MyValue", "my_value", "12345"], &format!("({QUALIFIED_NAME})?")));
    }
    wrong
}

/// A name that can be one segment of a URL's path.
pub fn is_path_segment_name(value: &str) -> Vec<String> {
    if value == "." || value == ".." { vec![format!("may not be '{value}'")] } else { is_path_segment_prefix(value) }
}

/// The start of a name that can be one segment of a URL's path.
pub fn is_path_segment_prefix(value: &str) -> Vec<String> {
    let found = ["/", "%"].into_iter().filter(|illegal| value.contains(illegal));
    found.map(|illegal| format!("may not contain '{illegal}'")).collect()
}

/// A key in a ConfigMap or Secret.
pub fn is_config_map_key(value: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if value.len() > SUBDOMAIN_MAX {
        wrong.push(too_long(SUBDOMAIN_MAX, "characters"));
    }
    let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
    if value.is_empty() || !value.bytes().all(legal) {
        let words = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
        wrong.push(pattern(words, &["key.name", "KEY_NAME", "key-name"], "[-._a-zA-Z0-9]+"));
    }
    match value {
        "." => wrong.push("must not be '.'".to_owned()),
        ".." => wrong.push("must not be '..'".to_owned()),
        _ if value.starts_with("..") => wrong.push("must not start with '..'".to_owned()),
        _ => {}
    }
    wrong
}

/// The name of an environment variable.
pub fn is_env_var_name(value: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if value.is_empty() {
        wrong.push("environment variable name must be non-empty".to_owned());
    }
    if value.bytes().any(|b| !(b' '..=b'~').contains(&b) || b == b'=') {
        let words = "a valid environment variable name must consist only of printable ASCII characters other than '='";
        wrong.push(words.to_owned());
    }
    wrong
}

/// The name of a port in a container.
pub fn is_port_name(value: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if value.len() > 15 {
        wrong.push(too_long(15, "characters"));
    }
    if value.is_empty() || !value.bytes().all(|b| lower_alnum(b) || b == b'-') {
        wrong.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !value.bytes().any(|b| b.is_ascii_lowercase()) {
        wrong.push("must contain at least one letter (a-z)".to_owned());
    }
    if value.contains("--") {
        wrong.push("must not contain consecutive hyphens".to_owned());
    }
    if value.starts_with('-') || value.ends_with('-') {
        wrong.push("must not begin or end with a hyphen".to_owned());
    }
    wrong
}

/// The number of a port.
pub fn is_port_number(value: i64) -> Vec<String> {
    is_in_range(value, 1, 65535)
}

/// A number from `min` to `max`, both allowed.
pub fn is_in_range(value: i64, min: i64, max: i64) -> Vec<String> {
    if (min..=max).contains(&value) { Vec::new() } else { vec![format!("must be between {min} and {max}, inclusive")] }
}

/// A percentage: `25%`.
pub fn is_percent(value: &str) -> Vec<String> {
    match value.strip_suffix('%') {
        Some(digits) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => Vec::new(),
        _ => {
            let words = "a valid percent string must be a numeric string followed by an ending '%'";
            vec![pattern(words, &["1%", "93%"], "[0-9]+%")]
        }
    }
}

/// The name of an HTTP header.
pub fn is_http_header_name(value: &str) -> Vec<String> {
    if !value.is_empty() && value.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        return Vec::new();
    }
    let words = "a valid HTTP header must consist of alphanumeric characters or '-'";
    vec![pattern(words, &["X-Header-Name"], "[-A-Za-z0-9]+")]
}

/// The reason of a condition.
pub fn is_condition_reason(value: &str) -> Vec<String> {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let bytes = value.as_bytes();
    let ends = bytes.first().is_some_and(u8::is_ascii_alphabetic) && bytes.last().is_some_and(|b| word(*b));
    if ends && bytes.iter().all(|b| word(*b) || matches!(b, b',' | b':')) {
        return Vec::new();
    }
    let words = "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'";
    let examples = ["my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB"];
    vec![pattern(words, &examples, "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")]
}

/// A name, or the start of one when `prefix` is set: a DNS subdomain.
pub fn name_is_dns_subdomain(name: &str, prefix: bool) -> Vec<String> {
    is_dns_subdomain(&completed(name, prefix))
}

/// A name, or the start of one when `prefix` is set: a DNS label.
pub fn name_is_dns_label(name: &str, prefix: bool) -> Vec<String> {
    is_dns_label(&completed(name, prefix))
}

/// A name, or the start of one when `prefix` is set: a DNS label that starts with a letter.
pub fn name_is_dns1035_label(name: &str, prefix: bool) -> Vec<String> {
    is_dns1035_label(&completed(name, prefix))
}

/// A dash at the end of a name's start is fine: something follows it. Like the original, this loses the character before
/// the dash too.
fn completed(name: &str, prefix: bool) -> Cow<'_, str> {
    match name.strip_suffix('-') {
        Some(start) if prefix && !start.is_empty() => {
            let kept = start.char_indices().next_back().map_or("", |(at, _)| &start[..at]);
            if start.is_ascii() { Cow::Owned(format!("{kept}a")) } else { Cow::Borrowed(name) }
        }
        _ => Cow::Borrowed(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rule: fn(&str) -> Vec<String>, good: &[&str], bad: &[&str]) {
        for text in good {
            assert_eq!(rule(text), Vec::<String>::new(), "{text:?} is fine");
        }
        for text in bad {
            assert_ne!(rule(text), Vec::<String>::new(), "{text:?} is not");
        }
    }

    #[test]
    fn dns_labels() {
        let good = ["a", "0", "a1", "a-1", "a--1--2--b", "1-a", &"a".repeat(63)];
        let bad = ["", "A", "aBc", "-", "a-", "-a", "_", "a_b", ".", "a.", "a b", " a", "a.1", "é", &"a".repeat(64)];
        check(is_dns_label, &good, &bad);
        assert_eq!(is_dns_label("a.b"), ["must not contain dots"]);
    }

    #[test]
    fn dns_subdomains() {
        let good = ["a", "a.b", "0.1", "a--1--2--b.a", "1.2.3.4.5", &"a".repeat(253)];
        let bad = ["", ".", "a.", ".a", "a..b", "A.a", "a.-b", "a-.b", "a/b", "a b", "a\n", &"a".repeat(254)];
        check(is_dns_subdomain, &good, &bad);
        check(is_dns_subdomain_with_underscore, &["_sip._tcp.example.com", "a_b"], &["_", "__a", "a_", "A"]);
        check(is_wildcard_dns_subdomain, &["*.bar.com"], &["*", "*.*.com", "*bar.com", "bar.com", "f*.bar.com"]);
        check(is_dns1035_label, &["a", "a1"], &["1a", "A", "", "a.b"]);
    }

    #[test]
    fn qualified_names_and_label_values() {
        let long = format!("{}/{}", "a".repeat(253), "b".repeat(63));
        let good = ["simple", "1234", "1.2.3.4/5678", "Uppercase_Is_OK_123", "example.com/Upper_Case", &long];
        let bad = ["", "nospecialchars%^=@", "ends-", "-starts", "only/one/slash", "Example.com/abc", "/a", "a/", "é"];
        check(is_qualified_name, &good, &bad);
        assert_eq!(is_qualified_name(&"a".repeat(64)), ["name part must be no more than 63 bytes"]);
        assert_eq!(is_qualified_name("/simple"), ["prefix part must be non-empty"]);
        check(is_label_value, &["", "a", "a_b.c-d", &"a".repeat(63)], &["-a", "a-", ".a", "a b", "ā", &"a".repeat(64)]);
    }

    #[test]
    fn the_words_show_examples_and_the_expression() {
        assert_eq!(
            is_label_value("a b"),
            [
                "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
            ]
        );
        assert_eq!(
            is_dns_label("A"),
            [
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
            ]
        );
    }

    #[test]
    fn keys_ports_variables_and_percentages() {
        check(
            is_config_map_key,
            &["a", "A.b_c-d", ".a", "a..b"],
            &["", ".", "..", "..a", "a b", "a/b", &"a".repeat(254)],
        );
        check(is_port_name, &["http", "a-1", "1a"], &["", "80", "a--b", "-a", "a-", "A", "abcdefghijklmnop"]);
        check(is_env_var_name, &["A", "a.b-c", "1", "a b", "#"], &["", "a=b", "ä", "a\u{7f}"]);
        check(is_percent, &["0%", "100%"], &["", "%", "1", "-1%", "1.5%"]);
        check(is_condition_reason, &["A", "a_", "A,b:c"], &["", "1", "_a", "a:", "a b"]);
        check(is_http_header_name, &["X-A"], &["", "a b", "a_b"]);
        check(is_path_segment_name, &["system:node", "A b"], &[".", "..", "a/b", "a%b"]);
        assert_eq!(is_port_number(0), ["must be between 1 and 65535, inclusive"]);
    }

    #[test]
    fn the_start_of_a_name_may_end_with_a_dash() {
        for (prefix, fine) in
            [("a-", true), ("a.b-", true), ("-", false), ("A-", true), ("aA-b-", false), ("é-", false)]
        {
            assert_eq!(name_is_dns_subdomain(prefix, true).is_empty(), fine, "{prefix}");
        }
        assert!(!name_is_dns_subdomain("a-", false).is_empty());
        assert!(name_is_dns_label("ab-", true).is_empty());
    }
}
