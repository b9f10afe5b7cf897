//! Why a text is not JSON, in the words of Go's decoder: those are the words that clients of a Kubernetes API server see.
//!
//! serde has already said no when this is asked, so that reading the text a second time costs nothing that matters.

/// Nesting that a real server refuses too.
const DEPTH_MAX: usize = 10_000;

/// Says why `text` is not JSON. A text that is JSON, and was refused for another reason, is nested too deeply.
pub fn explain(text: &[u8]) -> String {
    let mut reader = Reader { text, at: 0 };
    match reader.document() {
        Ok(()) | Err(Fault::Depth) => "exceeded max depth".to_owned(),
        Err(Fault::End) => "unexpected end of JSON input".to_owned(),
        Err(Fault::Byte(byte, context)) => format!("invalid character {} {context}", quoted(byte)),
    }
}

/// What a JSON value is called in Go's complaints about types.
pub fn type_name(value: &serde_json::Value) -> &'static str {
    use serde_json::Value;
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

enum Fault {
    End,
    Depth,
    Byte(u8, &'static str),
}

fn quoted(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        b'\\' => r"'\\'".to_owned(),
        b'\n' => r"'\n'".to_owned(),
        b'\r' => r"'\r'".to_owned(),
        b'\t' => r"'\t'".to_owned(),
        0x07 => r"'\a'".to_owned(),
        0x08 => r"'\b'".to_owned(),
        0x0b => r"'\v'".to_owned(),
        0x0c => r"'\f'".to_owned(),
        // Go reads the byte as the code point of the same number, and prints what can be printed.
        0x20..=0x7e | 0xa1..=0xac | 0xae..=0xff => format!("'{}'", char::from(byte)),
        0x80..=0xa0 | 0xad => format!("'\\u{byte:04x}'"),
        _ => format!("'\\x{byte:02x}'"),
    }
}

fn enter(open: &mut Vec<u8>, bracket: u8) -> Result<(), Fault> {
    if open.len() >= DEPTH_MAX {
        return Err(Fault::Depth);
    }
    open.push(bracket);
    Ok(())
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Result<u8, Fault> {
        self.text.get(self.at).copied().ok_or(Fault::End)
    }

    fn skip_space(&mut self) {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// Walks the document with a stack of its own: hostile nesting must not reach ours.
    fn document(&mut self) -> Result<(), Fault> {
        let mut open: Vec<u8> = Vec::new();
        'value: loop {
            self.skip_space();
            match self.peek()? {
                b'{' => {
                    self.at += 1;
                    enter(&mut open, b'{')?;
                    self.skip_space();
                    if self.peek()? != b'}' {
                        self.key()?;
                        continue 'value;
                    }
                }
                b'[' => {
                    self.at += 1;
                    enter(&mut open, b'[')?;
                    self.skip_space();
                    if self.peek()? != b']' {
                        continue 'value;
                    }
                }
                _ => self.scalar()?,
            }
            loop {
                self.skip_space();
                match open.last() {
                    None if self.at == self.text.len() => return Ok(()),
                    None => return Err(Fault::Byte(self.peek()?, "after top-level value")),
                    Some(b'{') => match self.peek()? {
                        b',' => {
                            self.at += 1;
                            self.skip_space();
                            self.key()?;
                            continue 'value;
                        }
                        b'}' => {
                            self.at += 1;
                            open.pop();
                        }
                        other => return Err(Fault::Byte(other, "after object key:value pair")),
                    },
                    Some(_) => match self.peek()? {
                        b',' => {
                            self.at += 1;
                            continue 'value;
                        }
                        b']' => {
                            self.at += 1;
                            open.pop();
                        }
                        other => return Err(Fault::Byte(other, "after array element")),
                    },
                }
            }
        }
    }

    fn key(&mut self) -> Result<(), Fault> {
        match self.peek()? {
            b'"' => self.string()?,
            other => return Err(Fault::Byte(other, "looking for beginning of object key string")),
        }
        self.skip_space();
        match self.peek()? {
            b':' => {
                self.at += 1;
                Ok(())
            }
            other => Err(Fault::Byte(other, "after object key")),
        }
    }

    fn scalar(&mut self) -> Result<(), Fault> {
        match self.peek()? {
            b'"' => self.string(),
            b't' => self.literal(
                "true",
                &[
                    "in literal true (expecting 'r')",
                    "in literal true (expecting 'u')",
                    "in literal true (expecting 'e')",
                ],
            ),
            b'f' => self.literal(
                "false",
                &[
                    "in literal false (expecting 'a')",
                    "in literal false (expecting 'l')",
                    "in literal false (expecting 's')",
                    "in literal false (expecting 'e')",
                ],
            ),
            b'n' => self.literal(
                "null",
                &[
                    "in literal null (expecting 'u')",
                    "in literal null (expecting 'l')",
                    "in literal null (expecting 'l')",
                ],
            ),
            b'-' | b'0'..=b'9' => self.number(),
            other => Err(Fault::Byte(other, "looking for beginning of value")),
        }
    }

    fn literal(&mut self, word: &str, contexts: &[&'static str]) -> Result<(), Fault> {
        self.at += 1;
        for (expected, context) in word.bytes().skip(1).zip(contexts) {
            let found = self.peek()?;
            if found != expected {
                return Err(Fault::Byte(found, context));
            }
            self.at += 1;
        }
        Ok(())
    }

    fn string(&mut self) -> Result<(), Fault> {
        self.at += 1;
        loop {
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Ok(());
                }
                b'\\' => {
                    self.at += 1;
                    match self.peek()? {
                        b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => self.at += 1,
                        b'u' => {
                            self.at += 1;
                            for _ in 0..4 {
                                let digit = self.peek()?;
                                if !digit.is_ascii_hexdigit() {
                                    return Err(Fault::Byte(digit, "in \\u hexadecimal character escape"));
                                }
                                self.at += 1;
                            }
                        }
                        other => return Err(Fault::Byte(other, "in string escape code")),
                    }
                }
                control @ 0..0x20 => return Err(Fault::Byte(control, "in string literal")),
                _ => self.at += 1,
            }
        }
    }

    fn number(&mut self) -> Result<(), Fault> {
        if self.peek()? == b'-' {
            self.at += 1;
        }
        match self.peek()? {
            b'0' => self.at += 1,
            b'1'..=b'9' => self.digits(),
            other => return Err(Fault::Byte(other, "in numeric literal")),
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.some_digits("after decimal point in numeric literal")?;
        }
        if matches!(self.text.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek()?, b'+' | b'-') {
                self.at += 1;
            }
            self.some_digits("in exponent of numeric literal")?;
        }
        Ok(())
    }

    fn some_digits(&mut self, context: &'static str) -> Result<(), Fault> {
        let first = self.peek()?;
        if !first.is_ascii_digit() {
            return Err(Fault::Byte(first, context));
        }
        self.digits();
        Ok(())
    }

    fn digits(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, said: &str) {
        assert_eq!(explain(text.as_bytes()), said, "{text}");
    }

    #[test]
    fn the_first_wrong_character_is_named_with_its_place() {
        check("", "unexpected end of JSON input");
        check("{", "unexpected end of JSON input");
        check(r#"[{"op":"add"}"#, "unexpected end of JSON input");
        check("x", "invalid character 'x' looking for beginning of value");
        check("{}x", "invalid character 'x' after top-level value");
        check("{a}", "invalid character 'a' looking for beginning of object key string");
        check(r#"{"a"}"#, "invalid character '}' after object key");
        check(r#"{"a":1 "b"}"#, "invalid character '\"' after object key:value pair");
        check("[1 2]", "invalid character '2' after array element");
        check("[1,]", "invalid character ']' looking for beginning of value");
        check("trux", "invalid character 'x' in literal true (expecting 'e')");
        check("01", "invalid character '1' after top-level value");
        check("-x", "invalid character 'x' in numeric literal");
        check("1.x", "invalid character 'x' after decimal point in numeric literal");
        check("1e", "unexpected end of JSON input");
        check("\"\\q\"", "invalid character 'q' in string escape code");
        check("\"\\u12g\"", "invalid character 'g' in \\u hexadecimal character escape");
        check("\"a\nb\"", "invalid character '\\n' in string literal");
    }

    #[test]
    fn hostile_nesting_is_reported_and_not_followed() {
        check(&"[".repeat(1_000_000), "exceeded max depth");
    }
}
