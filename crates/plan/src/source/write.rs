//! One value of a text is written anew, as its author would have.

use granit_parser::ScalarStyle;

use super::tree::{Content, Node};

/// The text with another value in the place of a scalar or an alias. `None` where a value of this form cannot be changed in
/// one line.
pub(super) fn replaced(text: &str, node: &Node, value: &str) -> Option<String> {
    let was = text.get(node.at.clone())?;
    let now = match &node.content {
        Content::Scalar { style: ScalarStyle::Plain, .. } | Content::Alias(_) => plain(value),
        Content::Scalar { style: ScalarStyle::SingleQuoted, .. } => format!("'{}'", value.replace('\'', "''")),
        Content::Scalar { style: ScalarStyle::DoubleQuoted, .. } => double_quoted(value),
        Content::Scalar { value: old, style: ScalarStyle::Literal | ScalarStyle::Folded } => in_block(was, old, value)?,
        Content::Map(_) | Content::List(_) => return None,
    };
    let (before, after) = (text.get(..node.at.start)?, text.get(node.at.end..)?);
    Some(format!("{before}{now}{after}"))
}

/// Without quotes where it is a text all the same.
fn plain(value: &str) -> String {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'+' | b'_' | b'/');
    let begins = value.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    let is_text = begins && value.bytes().all(is_word) && !is_other(value);
    if is_text { value.to_owned() } else { double_quoted(value) }
}

/// Whether a reader would take it for something else than a text: a number, a truth, nothing, a date.
fn is_other(value: &str) -> bool {
    let word = value.to_ascii_lowercase();
    let is_word = ["true", "false", "yes", "no", "on", "off", "y", "n", "null"].contains(&word.as_str());
    let digits = || value.bytes().all(|byte| byte.is_ascii_digit() || b"._-+/eExXoO".contains(&byte));
    // Two dots are no number.
    is_word || value.parse::<f64>().is_ok() || value.starts_with("0x") || digits() && value.matches('.').count() < 2
}

fn double_quoted(value: &str) -> String {
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A block whose text is one line: its head and its indentation stay.
fn in_block(block: &str, old: &str, value: &str) -> Option<String> {
    let old = old.trim_end_matches('\n');
    let is_line = !old.is_empty() && !old.contains('\n') && !value.contains('\n') && !value.is_empty();
    let at = block.rfind(old).filter(|_| is_line)?;
    Some(format!("{}{value}{}", block.get(..at)?, block.get(at + old.len()..)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::tree::Tree;

    fn check(text: &str, value: &str, expected: &str) {
        let tree = Tree::read(text, 0).unwrap();
        let node = tree.at(&tree.documents[0], &["a"]).unwrap().node;
        let written = replaced(text, node, value).unwrap();
        assert_eq!(written, expected);
        let again = Tree::read(&written, 0).unwrap();
        assert_eq!(again.text(&again.documents[0], &["a"]).map(str::trim_end), Some(value), "{written}");
    }

    #[test]
    fn a_value_keeps_the_form_that_it_had() {
        check("a: 1.2.3 # now\nb: 1\n", "1.2.4", "a: 1.2.4 # now\nb: 1\n");
        check("a: '1.2.3'\r\nb: 1\r\n", "1.2.4", "a: '1.2.4'\r\nb: 1\r\n");
        check("{\"a\": \"1.2.3\", \"b\": 1}", "1.2.4", "{\"a\": \"1.2.4\", \"b\": 1}");
        check("a: |-\n  1.2.3\nb: 1\n", "1.2.4", "a: |-\n  1.2.4\nb: 1\n");
        check("a: >\n    1.2.3\n\nb: 1\n", "1.2.4", "a: >\n    1.2.4\n\nb: 1\n");
        check("a: !!str 1.2.3\n", "1.2.4", "a: !!str 1.2.4\n");
        check("a: &it 1.2.3\n", "1.2.4", "a: &it 1.2.4\n");
        check("ä: ü\na: 1.2.3\n", "1.2.4", "ä: ü\na: 1.2.4\n");
    }

    #[test]
    fn a_text_stays_a_text() {
        check("a: v1.24\n", "1.25", "a: \"1.25\"\n");
        check("a: v1.24\n", "v1.25.7---vmware.2-tkg.1", "a: v1.25.7---vmware.2-tkg.1\n");
        check("a: v1.24\n", "1.16.7+vmware.1", "a: 1.16.7+vmware.1\n");
        check("a: v1.24\n", "on", "a: \"on\"\n");
        check("a: v1.24\n", "2026-11-16", "a: \"2026-11-16\"\n");
        check("a: v1.24\n", "a: b", "a: \"a: b\"\n");
        check("a: 'v1.24'\n", "it's", "a: 'it''s'\n");
    }

    #[test]
    fn what_takes_several_lines_is_left_alone() {
        let text = "a: |\n  one\n  two\n";
        let tree = Tree::read(text, 0).unwrap();
        assert_eq!(replaced(text, tree.at(&tree.documents[0], &["a"]).unwrap().node, "1.2.4"), None);
    }
}
