//! The format of a transcript: sentences, commands, and what is answered.
//!
//! A line `# …` is a sentence to the reader, a line `$ …` a command for `sh`; a here-document belongs to its command, and so
//! does the line after one that ends with a backslash. What follows, up to the next of the two, is what was printed (standard
//! output and standard error); `? 1` at its end is the exit code, when it is not 0. A printed line that looks like one of these,
//! or is empty at the end, has a backslash before it.

use std::fmt;

const COMMAND: &str = "$ ";
const SENTENCE: &str = "#";
const CODE: &str = "? ";
const ESCAPE: &str = "\\";

/// A transcript.
pub struct Script {
    pub parts: Vec<Part>,
}

/// A piece of a transcript.
pub enum Part {
    /// Lines for the reader, and the blank lines around them.
    Text(String),
    /// `line` may be many: a here-document.
    Command { line: String, output: String, code: i32 },
}

impl Script {
    /// Reads a file. What was answered is not taken over: the commands are about to be run.
    pub fn parse(text: &str) -> Self {
        let mut parts: Vec<Part> = Vec::new();
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            if let Some(command) = line.strip_prefix(COMMAND) {
                let mut command = command.to_owned();
                let mut end = here_document(&command);
                while end.is_some() || command.ends_with('\\') {
                    let next = lines.next().expect("a command has an end");
                    command.push('\n');
                    command.push_str(next);
                    if end.as_deref() == Some(next) {
                        break;
                    }
                    end = end.or_else(|| here_document(next));
                }
                parts.push(Part::Command { line: command, output: String::new(), code: 0 });
            } else if line.starts_with(SENTENCE) {
                match parts.last_mut() {
                    Some(Part::Text(text)) => text.extend([line, "\n"]),
                    _ => parts.push(Part::Text(format!("{line}\n"))),
                }
            } else if let Some(Part::Text(text)) = parts.last_mut() {
                assert!(line.is_empty(), "neither a command nor a sentence: {line}");
                text.push('\n');
            }
        }
        Self { parts }
    }
}

/// The word that ends the here-document that this line begins.
fn here_document(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("<<")?;
    let word: String = rest.trim_start_matches(['\'', '"']).chars().take_while(char::is_ascii_uppercase).collect();
    (!word.is_empty()).then_some(word)
}

/// A printed line, as it is written.
fn escape(line: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let special = [COMMAND, SENTENCE, CODE, ESCAPE].iter().any(|mark| line.starts_with(mark));
    writeln!(f, "{}{line}", if special { ESCAPE } else { "" })
}

/// The file.
impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut after_command = false;
        for part in &self.parts {
            match part {
                Part::Text(text) => {
                    let blank = if after_command { "\n" } else { "" };
                    write!(f, "{blank}{text}")?;
                }
                Part::Command { line, output, code } => {
                    writeln!(f, "{COMMAND}{line}")?;
                    output.lines().try_for_each(|line| escape(line, f))?;
                    if *code != 0 {
                        writeln!(f, "{CODE}{code}")?;
                    }
                }
            }
            after_command = matches!(part, Part::Command { .. });
        }
        Ok(())
    }
}

#[test]
fn a_transcript_is_written_as_it_was_read() {
    let text =
        "# A sentence\n# of two lines.\n\n$ one\n$ cat <<EOF\n$ not a command\n\nEOF\n$ a \\\n  b\n\n# The end.\n$ c\n";
    let mut script = Script::parse(text);
    assert_eq!(script.to_string(), text);
    let lines: Vec<&str> = script
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Command { line, .. } => Some(line.as_str()),
            Part::Text(_) => None,
        })
        .collect();
    assert_eq!(lines, ["one", "cat <<EOF\n$ not a command\n\nEOF", "a \\\n  b", "c"]);

    let Some(Part::Command { output, code, .. }) = script.parts.last_mut() else { panic!("the last one is a command") };
    "x\n$ y\n\n# z\n".clone_into(output);
    *code = 1;
    let written = script.to_string();
    assert!(written.ends_with("$ c\nx\n\\$ y\n\n\\# z\n? 1\n"), "{written}");
    assert_eq!(Script::parse(&written).to_string(), text, "what was answered is forgotten");
}
