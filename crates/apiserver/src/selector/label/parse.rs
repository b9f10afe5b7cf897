//! The grammar of label selectors in a query string.
//!
//! Every complaint is worded as a real server words it, which also decides the order of the checks.

use std::collections::BTreeSet;

use super::{Operator, Requirement};
use crate::field::quote;
use crate::meta::format;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Symbol(&'static str),
    End,
}

impl<'a> Token<'a> {
    fn text(self) -> &'a str {
        match self {
            Self::Word(text) | Self::Symbol(text) => text,
            Self::End => "",
        }
    }

    fn is_symbol(self, symbol: &str) -> bool {
        matches!(self, Self::Symbol(s) if s == symbol)
    }
}

struct Parser<'a> {
    rest: &'a str,
    token: Token<'a>,
}

/// Reads all requirements.
pub(super) fn requirements(text: &str) -> Result<Vec<Requirement>, String> {
    let mut parser = Parser { rest: text, token: Token::End };
    parser.advance();
    let mut requirements = Vec::new();
    loop {
        match parser.token {
            Token::End => return Ok(requirements),
            Token::Word(_) | Token::Symbol("!") => {}
            Token::Symbol(other) => {
                return Err(format!("found '{other}', expected: !, identifier, or 'end of string'"));
            }
        }
        let requirement = parser.requirement().map_err(|e| format!("unable to parse requirement: {e}"))?;
        requirements.push(requirement);
        match parser.take() {
            Token::End => return Ok(requirements),
            Token::Symbol(",") => {
                if !matches!(parser.token, Token::Word(_) | Token::Symbol("!")) {
                    return Err(format!("found '{}', expected: identifier after ','", parser.token.text()));
                }
            }
            other => return Err(format!("found '{}', expected: ',' or 'end of string'", other.text())),
        }
    }
}

const SYMBOLS: [&str; 9] = ["==", "!=", "=", "!", "(", ")", ",", ">", "<"];

impl<'a> Parser<'a> {
    /// Moves to the next token. A NUL ends the text, as it does for a real server.
    fn advance(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
        if self.rest.is_empty() || self.rest.starts_with('\0') {
            self.token = Token::End;
            return;
        }
        if let Some(symbol) = SYMBOLS.iter().find(|s| self.rest.starts_with(**s)) {
            self.rest = &self.rest[symbol.len()..];
            self.token = Token::Symbol(symbol);
            return;
        }
        let stops = |c: char| matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<' | ' ' | '\t' | '\r' | '\n' | '\0');
        let end = self.rest.find(stops).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        self.token = Token::Word(word);
    }

    fn take(&mut self) -> Token<'a> {
        let token = self.token;
        self.advance();
        token
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let negated = self.token.is_symbol("!");
        if negated {
            self.advance();
        }
        let key = match self.take() {
            Token::Word(key) => key,
            other => return Err(format!("found '{}', expected: identifier", other.text())),
        };
        let wrong = format::is_qualified_name(key);
        if !wrong.is_empty() {
            return Err(format!("<nil>: Invalid value: {}: {}", quote(key), wrong.join("; ")));
        }
        if negated {
            return Requirement::new(key.to_owned(), Operator::DoesNotExist, Vec::new());
        }
        if self.token == Token::End || self.token.is_symbol(",") {
            return Requirement::new(key.to_owned(), Operator::Exists, Vec::new());
        }
        let operator = self.operator()?;
        let values = match operator {
            Operator::In | Operator::NotIn => self.values()?,
            _ => vec![self.exact_value()?],
        };
        Requirement::new(key.to_owned(), operator, values)
    }

    fn operator(&mut self) -> Result<Operator, String> {
        Ok(match self.take() {
            Token::Word("in") => Operator::In,
            Token::Word("notin") => Operator::NotIn,
            Token::Symbol("=") => Operator::Equals,
            Token::Symbol("==") => Operator::DoubleEquals,
            Token::Symbol("!=") => Operator::NotEquals,
            Token::Symbol(">") => Operator::GreaterThan,
            Token::Symbol("<") => Operator::LessThan,
            other => return Err(format!("found '{}', expected: in, notin, =, ==, !=, gt, lt", other.text())),
        })
    }

    /// `(a,b)`: sorted, each once. `()` and a comma without a neighbour stand for the empty value.
    fn values(&mut self) -> Result<Vec<String>, String> {
        let open = self.take();
        if !open.is_symbol("(") {
            return Err(format!("found '{}' expected: '('", open.text()));
        }
        let mut values = BTreeSet::new();
        match self.token {
            Token::Symbol(")") => {
                values.insert(String::new());
            }
            Token::Word(_) | Token::Symbol(",") => self.listed_values(&mut values)?,
            other => return Err(format!("found '{}', expected: ',', ')' or identifier", other.text())),
        }
        self.advance();
        Ok(values.into_iter().collect())
    }

    /// Stops before the closing parenthesis.
    fn listed_values(&mut self, values: &mut BTreeSet<String>) -> Result<(), String> {
        loop {
            match self.take() {
                Token::Word(value) => {
                    values.insert(value.to_owned());
                    match self.token {
                        Token::Symbol(",") => {}
                        Token::Symbol(")") => return Ok(()),
                        other => return Err(format!("found '{}', expected: ',' or ')'", other.text())),
                    }
                }
                Token::Symbol(",") => {
                    if values.is_empty() || self.token.is_symbol(",") {
                        values.insert(String::new());
                    }
                    if self.token.is_symbol(")") {
                        values.insert(String::new());
                        return Ok(());
                    }
                }
                other => return Err(format!("found '{}', expected: ',', or identifier", other.text())),
            }
        }
    }

    fn exact_value(&mut self) -> Result<String, String> {
        if self.token == Token::End || self.token.is_symbol(",") {
            return Ok(String::new());
        }
        match self.take() {
            Token::Word(value) => Ok(value.to_owned()),
            other => Err(format!("found '{}', expected: identifier", other.text())),
        }
    }
}
