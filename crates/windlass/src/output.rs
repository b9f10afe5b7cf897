//! The only place that prints. Standard output is for data, standard error for people.

use std::error::Error as _;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use crate::error::{EXIT_FAILURE, Error};

/// One line of data.
pub fn data(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")?;
    stdout.flush()
}

/// A remark for a person who watches; scripts get none.
pub fn note(text: &str) {
    if io::stderr().is_terminal() {
        complain(text);
    }
}

/// Says what failed, why, and what to try; the exit code to end with.
pub fn failure(error: &Error) -> ExitCode {
    let mut text = format!("error ({}): {error}", error.kind());
    let mut cause = error.source();
    while let Some(because) = cause {
        text.push_str("\n  because: ");
        text.push_str(&because.to_string());
        cause = because.source();
    }
    if let Some(hint) = error.hint() {
        text.push_str("\n  try: ");
        text.push_str(&hint);
    }
    complain(&text);
    ExitCode::from(EXIT_FAILURE)
}

/// Help and version as asked for, or what is wrong with the command line; the exit code to end with.
pub fn usage(answer: &clap::Error) -> ExitCode {
    // With nobody there to read it, the exit code is all that can be said.
    drop(answer.print());
    if answer.use_stderr() { ExitCode::from(EXIT_FAILURE) } else { ExitCode::SUCCESS }
}

fn complain(text: &str) {
    // There is no place left to report this to.
    drop(writeln!(io::stderr().lock(), "{text}"));
}
