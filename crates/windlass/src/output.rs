//! The only place that prints. Standard output is for data, standard error for people.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use comfy_table::{ContentArrangement, presets};
use jiff::SignedDuration;
use jiff::fmt::friendly::{Spacing, SpanPrinter};
use serde::Serialize;

use crate::error::{Exit, Explained, Failure, Kind};

/// What a report is written as when it is not for people. Both are the same document, of a kind with a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    Json,
    Yaml,
}

/// The version of the documents that commands print.
pub const API_VERSION: &str = "cli.windlass.dev/v1alpha1";

/// A document that a command prints: a kind with a version, so that scripts can rely on it.
#[derive(Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Document<T> {
    api_version: &'static str,
    kind: &'static str,
    #[serde(flatten)]
    content: T,
}

impl<T: Serialize> Document<T> {
    /// A document of that kind.
    pub fn new(kind: &'static str, content: T) -> Self {
        Self { api_version: API_VERSION, kind, content }
    }
}

/// Something could not be printed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot write to standard output")]
    Write(#[source] io::Error),
    #[error("cannot write the answer as JSON")]
    Json(#[source] serde_json::Error),
    #[error("cannot write the answer as YAML")]
    Yaml(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Write(_) => Kind::Environment,
            Self::Json(_) | Self::Yaml(_) => Kind::Internal,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Write(_) => None,
            Self::Json(_) => Some("-o yaml".to_owned()),
            Self::Yaml(_) => Some("-o json".to_owned()),
        }
    }

    fn exit(&self) -> Exit {
        if self.is_silent() { Exit::NobodyReads } else { Exit::Failed }
    }

    fn is_silent(&self) -> bool {
        matches!(self, Self::Write(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// Data, with an end of line.
pub fn data(text: &str) -> Result<(), Error> {
    let mut stdout = io::stdout().lock();
    let text = text.trim_end_matches('\n');
    let text = if stdout.is_terminal() { painted(text) } else { text.to_owned() };
    writeln!(stdout, "{text}").and_then(|()| stdout.flush()).map_err(Error::Write)
}

/// A document as data.
pub fn document(format: Format, content: &impl Serialize) -> Result<(), Error> {
    match format {
        Format::Json => data(&serde_json::to_string_pretty(content).map_err(Error::Json)?),
        Format::Yaml => data(&serde_saphyr::to_string(content).map_err(|source| Error::Yaml(Box::new(source)))?),
    }
}

/// A document as one line of JSON: of several that follow each other.
pub fn line(kind: &'static str, content: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string(&Document::new(kind, content)).map_err(Error::Json)
}

/// Rows under a header, as kubectl shows them: no lines, three blanks between columns, no blanks at the ends.
pub fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = comfy_table::Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header);
    table.add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, 3));
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}

/// A cell for what may not be there.
pub fn cell(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// A time that something took, as kubectl writes ages: `6m31s`.
pub fn took(time: SignedDuration) -> String {
    let whole = SignedDuration::from_secs(time.as_secs());
    SpanPrinter::new().spacing(Spacing::None).duration_to_string(&whole)
}

/// The signs in a text, in their colours: for terminals. A sign never stands without a word, so nothing is lost without them.
pub fn painted(text: &str) -> String {
    let colour = |sign: char| match sign {
        '✔' => Some(AnsiColor::Green),
        '✖' => Some(AnsiColor::Red),
        '…' => Some(AnsiColor::Yellow),
        '▶' | '█' => Some(AnsiColor::Cyan),
        _ => None,
    };
    if !colours_are_wanted() {
        return text.to_owned();
    }
    let mut painted = String::with_capacity(text.len());
    let mut last = None;
    for sign in text.chars() {
        let now = colour(sign);
        if now != last {
            painted.push_str(&now.map_or_else(
                || anstyle::Reset.render().to_string(),
                |colour| Style::new().fg_color(Some(colour.into())).render().to_string(),
            ));
            last = now;
        }
        painted.push(sign);
    }
    if last.is_some() {
        painted.push_str(&anstyle::Reset.render().to_string());
    }
    painted
}

/// As people tell all programs: see <https://no-color.org>.
fn colours_are_wanted() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !is_set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// A remark for a person who watches; scripts get none.
pub fn note(text: &str) {
    if io::stderr().is_terminal() {
        say(text);
    }
}

/// What the server warns of, as kubectl words it.
pub fn warning(text: &str) {
    say(&format!("Warning: {text}"));
}

/// What to try where something was refused that is no failure of the command.
pub fn try_instead(hint: &str) {
    say(&format!("  try: {hint}"));
}

/// Something that people and logs should have, and that is not data.
pub fn say(text: &str) {
    // There is no place left to report a failure to.
    drop(writeln!(io::stderr().lock(), "{text}"));
}

/// Says what failed, why, and what to try; the exit code to end with.
pub fn failure(failure: &Failure) -> ExitCode {
    if !failure.is_silent() {
        say(&failure.text());
    }
    failure.exit().into()
}

/// Help and version as asked for, or what is wrong with the command line; the exit code to end with.
pub fn usage(answer: &clap::Error) -> ExitCode {
    // With nobody there to read it, the exit code is all that can be said.
    drop(answer.print());
    if answer.use_stderr() { Exit::Failed.into() } else { Exit::Done.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_as_wide_as_it_must_be_and_no_wider() {
        let rows = [["a", "1", ""], ["long-name", "2", "x y"]];
        let text = table(&["NAME", "COUNT", "WHY"], rows.map(|row| row.map(str::to_owned).to_vec()));
        assert_eq!(text, "NAME        COUNT   WHY\na           1\nlong-name   2       x y");
    }

    #[test]
    fn a_closed_pipe_is_an_end_and_not_an_error() {
        let failed = |kind| Failure::from(Error::Write(io::Error::from(kind)));
        let closed = failed(io::ErrorKind::BrokenPipe);
        assert_eq!((closed.is_silent(), closed.exit()), (true, Exit::NobodyReads));
        let full = failed(io::ErrorKind::StorageFull);
        assert_eq!((full.is_silent(), full.exit()), (false, Exit::Failed));
    }

    #[test]
    fn times_are_written_without_blanks() {
        assert_eq!(took(SignedDuration::from_millis(391_700)), "6m31s");
        assert_eq!(took(SignedDuration::from_secs(3_600)), "1h");
    }

    #[test]
    fn a_document_names_its_kind_before_its_content() {
        let document = Document::new("Greeting", serde_json::json!({"text": "hello"}));
        let written = serde_json::to_string(&document).unwrap();
        assert_eq!(written, r#"{"apiVersion":"cli.windlass.dev/v1alpha1","kind":"Greeting","text":"hello"}"#);
    }
}
