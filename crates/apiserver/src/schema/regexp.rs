//! Regular expressions as Go reads them.
//!
//! `CustomResourceDefinition`s are written for Go's RE2. The syntax here is nearly the same; what differs is translated:
//! `\d`, `\s`, `\w` and `\b` know only ASCII there, and a class knows no nesting and no set operations.

use regex::Regex;

/// Compiles a pattern with Go's meaning.
pub(crate) fn compile(pattern: &str) -> Result<Regex, regex::Error> {
    Regex::new(&translate(pattern))
}

/// What Go says about a pattern that is none.
pub(crate) fn go_words(pattern: &str, error: &regex::Error) -> String {
    let text = error.to_string();
    let from = |start: &str| pattern.find(start).and_then(|at| pattern.get(at..)).unwrap_or(pattern).to_owned();
    let escape = || {
        let known = |c: char| "dDsSwWbBAzpPaftnrvxQEC".contains(c) || c.is_ascii_punctuation();
        let mut rest = pattern;
        while let Some((_, after)) = rest.split_once('\\') {
            match after.chars().next() {
                Some(c) if known(c) => rest = after.get(c.len_utf8()..).unwrap_or_default(),
                Some(c) => return format!("\\{c}"),
                None => break,
            }
        }
        "\\".to_owned()
    };
    let (problem, place) = if text.contains("unclosed group") {
        ("missing closing )", pattern.to_owned())
    } else if text.contains("unopened group") {
        ("unexpected )", pattern.to_owned())
    } else if text.contains("unclosed character class") {
        ("missing closing ]", from("["))
    } else if text.contains("look-around") {
        let kinds = ["(?=", "(?!", "(?<"];
        (
            "invalid or unsupported Perl syntax",
            kinds.iter().find(|kind| pattern.contains(**kind)).unwrap_or(&"(?").to_string(),
        )
    } else if text.contains("repetition operator missing") {
        ("missing argument to repetition operator", pattern.chars().find(|c| "*+?{".contains(*c)).into_iter().collect())
    } else if text.contains("incomplete escape sequence") {
        ("trailing backslash at end of expression", String::new())
    } else if text.contains("escape sequence") || text.contains("backreference") {
        ("invalid escape sequence", escape())
    } else {
        return format!(
            "error parsing regexp: {}",
            text.lines().last().unwrap_or_default().trim_start_matches("error: ")
        );
    };
    format!("error parsing regexp: {problem}: `{place}`")
}

fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut chars = pattern.chars().peekable();
    let mut in_class = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(escaped) => translate_escape(escaped, in_class, &mut out),
                None => out.push('\\'),
            },
            '[' if !in_class => {
                in_class = true;
                out.push('[');
                if chars.peek() == Some(&'^') {
                    chars.next();
                    out.push('^');
                }
                // A bracket that closes at once is a member of the class.
                if chars.peek() == Some(&']') {
                    chars.next();
                    out.push_str("\\]");
                }
            }
            '[' if chars.peek() != Some(&':') => out.push_str("\\["),
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            '[' => {
                out.push('[');
                for c in chars.by_ref() {
                    out.push(c);
                    if c == ']' {
                        break;
                    }
                }
            }
            '&' | '~' if in_class => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

fn translate_escape(escaped: char, in_class: bool, out: &mut String) {
    match escaped {
        'd' => out.push_str("[0-9]"),
        'D' => out.push_str("[^0-9]"),
        's' => out.push_str("[\\t\\n\\f\\r ]"),
        'S' => out.push_str("[^\\t\\n\\f\\r ]"),
        'w' => out.push_str("[0-9A-Za-z_]"),
        'W' => out.push_str("[^0-9A-Za-z_]"),
        'b' if !in_class => out.push_str("(?-u:\\b)"),
        c => {
            out.push('\\');
            out.push(c);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{compile, go_words};

    #[track_caller]
    fn check(pattern: &str, text: &str, matches: bool) {
        assert_eq!(compile(pattern).unwrap().is_match(text), matches, "{pattern} on {text}");
    }

    #[test]
    fn patterns_mean_what_go_says() {
        check(r"^\d+$", "42", true);
        check(r"^\d+$", "\u{0664}\u{0662}", false);
        check(r"^[\w.-]+$", "a.b-c_9", true);
        check(r"^[\w.-]+$", "\u{e4}", false);
        check(r"^[^[\]]+$", "a", true);
        check(r"^[^[\]]+$", "a[", false);
        check(r"^[]a]+$", "]a", true);
        check(r"^[a&&b]+$", "a&b", true);
        check(r"^[[:alpha:]]+$", "abc", true);
        check(r"\bfoo\b", "a foo b", true);
        check(r"^(([a-z0-9]([-a-z0-9]*[a-z0-9])?)(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$", "a-b.c", true);
        check("(?i)^abc$", "ABC", true);
    }

    #[test]
    fn a_broken_pattern_is_refused_in_the_words_of_go() {
        let check = |pattern: &str, expected: &str| {
            let error = compile(pattern).unwrap_err();
            assert_eq!(go_words(pattern, &error), format!("error parsing regexp: {expected}"));
        };
        check("a(", "missing closing ): `a(`");
        check("a)", "unexpected ): `a)`");
        check("x[a", "missing closing ]: `[a`");
        check("a\\", "trailing backslash at end of expression: ``");
        check("*a", "missing argument to repetition operator: `*`");
        check("^(?!a)", "invalid or unsupported Perl syntax: `(?!`");
        check("a\\y", "invalid escape sequence: `\\y`");
        check("(a)\\1", "invalid escape sequence: `\\1`");
    }
}
