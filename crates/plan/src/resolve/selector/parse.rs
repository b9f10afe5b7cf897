//! The grammar of label selectors.

use std::collections::BTreeSet;
use std::fmt;

use super::Requirement;

/// The most of a refused text that a complaint repeats.
const QUOTED_MAX_CHARS: usize = 128;

/// A text that is no label selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no label selector, at character {position}: {problem}")]
pub struct SelectorError {
    /// The text, or its beginning.
    pub text: String,
    /// Which character the complaint is about; the first is 1.
    pub position: usize,
    /// What is wrong.
    pub problem: SelectorProblem,
}

/// What is wrong with a label selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SelectorProblem {
    /// A requirement has no key.
    NoKey {
        /// What is there instead; empty at the end of the text.
        found: String,
    },
    /// A comma is the last thing there is.
    NothingAfterComma,
    /// The key is none.
    Key(String),
    /// The value is none.
    Value(String),
    /// After the key there is something else than an operator.
    Operator(String),
    /// The values are not in parentheses.
    NoParenthesis {
        /// What is there instead; empty at the end of the text.
        found: String,
    },
    /// The parenthesis is empty.
    NoValues,
    /// The parenthesis is not closed.
    NotClosed,
    /// After a requirement there is something else than a comma.
    NoComma(String),
}

impl fmt::Display for SelectorProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let instead =
            |found: &str| if found.is_empty() { "the text ends".to_owned() } else { format!("{found:?} was found") };
        match self {
            Self::NoKey { found } => write!(f, "the key of a label is expected, and {}", instead(found)),
            Self::NothingAfterComma => f.write_str("after a comma the key of a label is missing"),
            Self::Key(key) => write!(f, "{key:?} is no key of a label"),
            Self::Value(value) => write!(f, "{value:?} is no value of a label"),
            Self::Operator(found) => {
                write!(f, "after a key comes one of = == != in notin, or a comma; {found:?} was found")
            }
            Self::NoParenthesis { found } => write!(f, "values are in parentheses, and {}", instead(found)),
            Self::NoValues => f.write_str("there is no value between the parentheses"),
            Self::NotClosed => f.write_str("the parenthesis is not closed"),
            Self::NoComma(found) => write!(f, "a comma is expected, and {found:?} was found"),
        }
    }
}

/// A piece of the text, and where it begins, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Token<'a> {
    text: &'a str,
    at: usize,
}

/// Longer ones first, as the first that fits is taken.
const SYMBOLS: [&str; 9] = ["==", "!=", "=", "!", "(", ")", ",", ">", "<"];

fn tokens(text: &str) -> Vec<Token<'_>> {
    let (mut tokens, mut rest) = (Vec::new(), text);
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return tokens;
        }
        let symbol = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)).map(|symbol| symbol.len());
        let stops = |c: char| c.is_whitespace() || "=!(),><".contains(c);
        let end = symbol.or_else(|| rest.find(stops)).unwrap_or(rest.len());
        let (token, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        tokens.push(Token { text: token, at: text.len() - rest.len() });
        rest = after;
    }
}

/// Reads all requirements.
pub(super) fn requirements(text: &str) -> Result<Vec<Requirement>, SelectorError> {
    let parser = Parser { text, tokens: tokens(text), next: 0 };
    parser.requirements().map_err(|(at, problem)| SelectorError {
        text: text.chars().take(QUOTED_MAX_CHARS).collect(),
        position: text.get(..at).unwrap_or(text).chars().count() + 1,
        problem,
    })
}

/// A complaint, and where it is, in bytes.
type Complaint = (usize, SelectorProblem);

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token<'a>>,
    next: usize,
}

impl<'a> Parser<'a> {
    /// The token that comes next; an empty one at the end.
    fn peek(&self) -> Token<'a> {
        self.tokens.get(self.next).copied().unwrap_or(Token { text: "", at: self.text.len() })
    }

    fn take(&mut self) -> Token<'a> {
        let token = self.peek();
        self.next += 1;
        token
    }

    fn requirements(mut self) -> Result<Vec<Requirement>, Complaint> {
        let mut requirements = Vec::new();
        while !self.peek().text.is_empty() {
            requirements.push(self.requirement()?);
            let comma = self.take();
            match (comma.text, self.peek()) {
                ("", _) => break,
                (",", Token { text: "", at }) => return Err((at, SelectorProblem::NothingAfterComma)),
                (",", _) => {}
                (other, _) => return Err((comma.at, SelectorProblem::NoComma(other.to_owned()))),
            }
        }
        Ok(requirements)
    }

    fn requirement(&mut self) -> Result<Requirement, Complaint> {
        if self.peek().text == "!" {
            self.next += 1;
            return Ok(Requirement::Absent(self.key()?));
        }
        let key = self.key()?;
        let operator = self.peek();
        if matches!(operator.text, "" | ",") {
            return Ok(Requirement::Exists(key));
        }
        self.next += 1;
        Ok(match operator.text {
            "=" | "==" => Requirement::In(key, BTreeSet::from([self.value()?])),
            "!=" => Requirement::NotIn(key, BTreeSet::from([self.value()?])),
            "in" => Requirement::In(key, self.values()?),
            "notin" => Requirement::NotIn(key, self.values()?),
            other => return Err((operator.at, SelectorProblem::Operator(other.to_owned()))),
        })
    }

    fn key(&mut self) -> Result<String, Complaint> {
        let token = self.take();
        if token.text.is_empty() || is_symbol(token.text) {
            return Err((token.at, SelectorProblem::NoKey { found: token.text.to_owned() }));
        }
        if is_key(token.text) {
            Ok(token.text.to_owned())
        } else {
            Err((token.at, SelectorProblem::Key(cut(token.text))))
        }
    }

    /// The value after an operator, which may be the empty one.
    fn value(&mut self) -> Result<String, Complaint> {
        let token = self.peek();
        if matches!(token.text, "" | ",") {
            return Ok(String::new());
        }
        self.next += 1;
        if is_symbol(token.text) || !is_value(token.text) {
            return Err((token.at, SelectorProblem::Value(cut(token.text))));
        }
        Ok(token.text.to_owned())
    }

    fn values(&mut self) -> Result<BTreeSet<String>, Complaint> {
        let open = self.take();
        if open.text != "(" {
            return Err((open.at, SelectorProblem::NoParenthesis { found: open.text.to_owned() }));
        }
        let mut values = BTreeSet::new();
        loop {
            let token = self.take();
            match token.text {
                "" => return Err((token.at, SelectorProblem::NotClosed)),
                ")" | "," => return Err((token.at, SelectorProblem::NoValues)),
                text if is_symbol(text) || !is_value(text) => {
                    return Err((token.at, SelectorProblem::Value(cut(text))));
                }
                text => values.insert(text.to_owned()),
            };
            let after = self.take();
            match after.text {
                ")" => return Ok(values),
                "," => {}
                "" => return Err((after.at, SelectorProblem::NotClosed)),
                other => return Err((after.at, SelectorProblem::NoComma(cut(other)))),
            }
        }
    }
}

fn cut(text: &str) -> String {
    text.chars().take(QUOTED_MAX_CHARS).collect()
}

fn is_symbol(text: &str) -> bool {
    SYMBOLS.contains(&text)
}

/// `os-name`, `run.tanzu.vmware.com/tkr`.
pub(in crate::resolve) fn is_key(text: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && is_value(part);
    match text.split_once('/') {
        None => is_part(text),
        Some((prefix, name)) => {
            let is_label = |label: &str| {
                let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
                !label.is_empty() && label.bytes().all(inner) && !label.starts_with('-') && !label.ends_with('-')
            };
            is_part(name) && prefix.len() <= 253 && prefix.split('.').all(is_label)
        }
    }
}

/// At most 63 letters, digits, `-`, `_` and `.`, of which the last three neither begin nor end it; or nothing.
pub(in crate::resolve) fn is_value(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let ends = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= 63 && bytes.iter().copied().all(inner) && ends(bytes.first()) && ends(bytes.last())
}
