//! What a person sees while a command waits: one line that changes on a terminal, one line per change in a log.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use jiff::Timestamp;

use crate::output;

/// How often a log says again what is being waited for, so that nobody takes silence for an end.
pub const HEARTBEAT: Duration = Duration::from_secs(30);

/// The line, or the lines. They go to standard error.
pub struct Progress {
    what: String,
    spinner: Option<ProgressBar>,
    last: String,
}

impl Progress {
    /// Nothing is shown before there is something to tell.
    pub fn new(what: impl Into<String>) -> Self {
        let spinner = io::stderr().is_terminal().then(|| {
            let spinner = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}") {
                spinner.set_style(style);
            }
            spinner.enable_steady_tick(Duration::from_millis(120));
            spinner
        });
        Self { what: what.into(), spinner, last: String::new() }
    }

    /// How it is now. Told once, however often it is said.
    pub fn tell(&mut self, how: &str) {
        if self.last == how {
            return;
        }
        how.clone_into(&mut self.last);
        match &self.spinner {
            Some(spinner) => spinner.set_message(format!("{}: {how}", self.what)),
            None => self.log(how),
        }
    }

    /// Time has passed and nothing has changed.
    pub fn beat(&self) {
        if self.spinner.is_none() {
            self.log(&format!("still {}", self.last));
        }
    }

    /// Leaves no line behind on a terminal: what remains is the answer.
    pub fn end(&self) {
        if let Some(spinner) = &self.spinner {
            spinner.finish_and_clear();
        }
    }

    fn log(&self, how: &str) {
        output::say(&format!("{:.0} {}: {how}", now(), self.what));
    }
}

/// The wall clock of whoever watches.
#[allow(clippy::disallowed_methods, reason = "a log of this process is in the time of its reader")]
fn now() -> Timestamp {
    Timestamp::now()
}
