//! What a person sees while a command waits: a board that is drawn anew on a terminal, one line per change in a log.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use jiff::Timestamp;

use crate::output;
use crate::report::Report;

/// How often a log says again what is being waited for, so that nobody takes silence for an end.
pub const HEARTBEAT: Duration = Duration::from_secs(30);

/// More lines than this push the head out of a small window.
const LINES_MAX: usize = 16;

/// The board, or the lines. They go to standard error.
pub struct Progress {
    what: String,
    board: Option<Board>,
    last: String,
}

/// A line that turns, and lines below it.
struct Board {
    all: MultiProgress,
    head: ProgressBar,
    lines: Vec<ProgressBar>,
}

impl Progress {
    /// Nothing is shown before there is something to tell.
    pub fn new(what: impl Into<String>) -> Self {
        let board = io::stderr().is_terminal().then(Board::new);
        Self { what: what.into(), board, last: String::new() }
    }

    /// How it is now. Told once, however often it is said.
    pub fn tell(&mut self, how: &str) {
        if self.last == how {
            return;
        }
        how.clone_into(&mut self.last);
        match &self.board {
            Some(board) => board.head.set_message(format!("{}: {how}", self.what)),
            None => self.log(how),
        }
    }

    /// Something has come: a line that stays.
    pub fn came(&mut self, what: &str) {
        match &self.board {
            // A line that cannot be drawn is no reason to stop waiting.
            Some(board) => drop(board.all.println(output::painted(&format!("✔ {what}")))),
            None => self.log(what),
        }
    }

    /// What is waited for now: shown on a terminal, and in a log only when nothing else happens.
    pub fn waits(&mut self, what: &str) {
        if let Some(board) = &self.board {
            board.head.set_message(format!("{}: {what}", self.what));
        }
        what.clone_into(&mut self.last);
    }

    /// How the cluster is now: on a terminal all of it, in a log the line that says most.
    pub fn show(&mut self, report: &Report) {
        match &mut self.board {
            Some(board) => board.draw(report),
            None => self.tell(&report.line()),
        }
    }

    /// Time has passed and nothing has changed.
    pub fn beat(&self) {
        if self.board.is_none() {
            self.log(&format!("still {}", self.last));
        }
    }

    /// Leaves no line behind on a terminal: what remains is the answer.
    pub fn end(&self) {
        if let Some(board) = &self.board {
            board.end();
        }
    }

    fn log(&self, how: &str) {
        output::say(&format!("{:.0} {}: {how}", now(), self.what));
    }
}

impl Board {
    fn new() -> Self {
        let all = MultiProgress::new();
        let head = all.add(ProgressBar::new_spinner());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}") {
            head.set_style(style);
        }
        head.enable_steady_tick(Duration::from_millis(120));
        Self { all, head, lines: Vec::new() }
    }

    fn draw(&mut self, report: &Report) {
        self.head.set_message(report.title());
        let lines = report.board(LINES_MAX);
        for line in self.lines.drain(lines.len().min(self.lines.len())..) {
            line.finish_and_clear();
            self.all.remove(&line);
        }
        for (index, text) in lines.into_iter().enumerate() {
            if index == self.lines.len() {
                let line = self.all.add(ProgressBar::new_spinner());
                if let Ok(style) = ProgressStyle::with_template("{wide_msg}") {
                    line.set_style(style);
                }
                self.lines.push(line);
            }
            self.lines[index].set_message(output::painted(&text));
        }
    }

    fn end(&self) {
        for line in &self.lines {
            line.finish_and_clear();
        }
        self.head.finish_and_clear();
    }
}

/// A bar for what is counted, on a terminal only: in a log it would say nothing that the answer does not say.
pub fn bar(what: &str, count: usize) -> ProgressBar {
    let bar = ProgressBar::new(u64::try_from(count).unwrap_or(u64::MAX));
    if let Ok(style) = ProgressStyle::with_template("{elapsed} {wide_bar} {pos} of {len} {msg}") {
        bar.set_style(style);
    }
    bar.set_message(what.to_owned());
    bar
}

/// The wall clock of whoever watches.
#[allow(clippy::disallowed_methods, reason = "a log of this process is in the time of its reader")]
fn now() -> Timestamp {
    Timestamp::now()
}
