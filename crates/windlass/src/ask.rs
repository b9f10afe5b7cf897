//! Asking a person on a terminal.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

/// What came of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Yes,
    No,
    /// Standard input is no terminal: a question there would be a wait without an end.
    NobodyThere,
}

/// Asks a question that can be answered with yes; anything else is no.
pub fn ask(question: &str) -> io::Result<Answer> {
    if !io::stdin().is_terminal() {
        return Ok(Answer::NobodyThere);
    }
    let mut stderr = io::stderr().lock();
    write!(stderr, "{question} [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(if matches!(answer.trim(), "y" | "Y" | "yes") { Answer::Yes } else { Answer::No })
}
