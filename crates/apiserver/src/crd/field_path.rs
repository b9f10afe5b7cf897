//! Paths that name a field of a schema: `.spec.color`, `.spec['my-color']`.

use serde_json::Value;

use crate::value::Fields;

/// The schema of the field that `path` names, and the names on the way; or why there is none.
pub(super) fn find<'s>(schema: &'s Value, path: &str, brackets: bool) -> Result<(&'s Value, Vec<String>), String> {
    let mut here = schema;
    let mut names = Vec::new();
    let mut tokens = Tokens(path);
    while let Some(token) = tokens.next() {
        let name = match token {
            "[" if !brackets => return Err("array notation is not allowed".to_owned()),
            "[" => {
                let quoted = tokens.next().ok_or("unexpected end of JSON path")?;
                let inner = quoted.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
                let inner = inner.ok_or_else(|| format!("expected single quoted string but got {quoted}"))?;
                inner.replace("\\'", "'")
            }
            "." => tokens.next().ok_or("unexpected end of JSON path")?.to_owned(),
            other => return Err(format!("expected [ or . but got: {other}")),
        };
        let next = if here.map("properties").is_some_and(|properties| !properties.is_empty()) {
            here.at("properties").at(&name)
        } else {
            here.at("additionalProperties")
        };
        if !next.is_object() {
            return Err("does not refer to a valid field".to_owned());
        }
        here = next;
        names.push(name);
        if token == "[" {
            match tokens.next() {
                Some("]") => {}
                Some(other) => return Err(format!("expected ] but got {other}")),
                None => return Err("unexpected end of JSON path".to_owned()),
            }
        }
    }
    Ok((here, names))
}

/// Dots and brackets, and what is between them; inside of single quotes they mean nothing.
struct Tokens<'t>(&'t str);

impl<'t> Iterator for Tokens<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        let text = self.0;
        let first = text.chars().next()?;
        let end = match first {
            '.' | '[' | ']' => 1,
            '\'' => {
                let mut escaped = false;
                let closing = text.char_indices().skip(1).find(|(_, c)| {
                    let closes = *c == '\'' && !escaped;
                    escaped = *c == '\\';
                    closes
                });
                closing.map_or(text.len(), |(at, _)| at + 1)
            }
            _ => text.find(['.', '[', ']']).unwrap_or(text.len()),
        };
        let (token, rest) = text.split_at(end);
        self.0 = rest;
        Some(token)
    }
}
