//! Where in an expression something is. The interpreter forgets it, so it is looked for in the text.

/// A complaint with the line that it is about, as the reference implementation prints it.
pub(in crate::cel) fn pointed(text: &str, line: usize, column: usize, what: &str) -> String {
    let shown = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    format!("ERROR: <input>:{line}:{column}: {what}\n | {shown}\n | {}^", ".".repeat(column.saturating_sub(1)))
}

/// The same about an offset, in bytes.
pub(super) fn at(text: &str, offset: usize, what: &str) -> String {
    let before = text.get(..offset).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    pointed(text, line, column, what)
}

/// Where a name stands by itself: after a dot, or not after one.
pub(super) fn name(text: &str, name: &str, after_dot: bool) -> usize {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let found = text.match_indices(name).find(|(at, _)| {
        let (before, after) = (text[..*at].chars().next_back(), text[at + name.len()..].chars().next());
        let alone = !before.is_some_and(is_word) && !after.is_some_and(is_word);
        alone && (before == Some('.')) == after_dot
    });
    let at = found.map_or(0, |(at, _)| at);
    if after_dot { at.saturating_sub(1) } else { at }
}

/// Where an operator stands, outside of texts.
pub(super) fn operator(text: &str, operator: &str) -> usize {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '\'' || c == '"' => quote = Some(c),
            None if text[at..].starts_with(operator) => return at,
            Some(_) | None => {}
        }
    }
    0
}
