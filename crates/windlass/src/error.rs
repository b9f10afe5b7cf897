//! What a failed command says: who can do something about it, what to type next, and the exit code.
//!
//! Every module has its own enum of errors, and says these three things about it by [`Explained`].

use std::error::Error;
use std::fmt;
use std::process::ExitCode;

/// How a command ended. clap's 2 for wrong usage is not used: it means that there are changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// All is done, or there was nothing to do.
    Done = 0,
    /// It failed, or the command line could not be understood.
    Failed = 1,
    /// There are changes, and the question was whether there are.
    Changes = 2,
    /// A rule forbids it.
    Refused = 3,
    /// It waits for somebody to agree.
    Waiting = 4,
    /// What was begun has failed.
    OperationFailed = 5,
    /// It goes on; who waited for it does not.
    TimedOut = 6,
    /// What was reviewed is not what would be done any more.
    Stale = 7,
    /// As above, because of Ctrl-C.
    Interrupted = 130,
    /// Whoever read the answer has read enough: `… | head`. The code that a shell gives to a program that SIGPIPE ended.
    NobodyReads = 141,
}

/// For `--help`.
pub const EXIT_CODES: &str = "\
Exit codes:
    0  done, or there was nothing to do; `up`: ended by SIGINT or SIGTERM
    1  failed, or wrong usage
    1  diff: something differs; what fails there is more than 1
    2  plan --detailed-exitcode, secrets: there is something to change; snapshot diff: something has changed;
       gitops check: the repository is older, or drifts
    3  refused, by a rule: the message says which
    4  update, upgrade: it waits for somebody to agree
    5  what was begun has failed; rehearse: the goal was not reached;
       sweep: something is broken; verify, release verify: something is wrong
    6  timed out while waiting; what was begun goes on
    7  what was reviewed is not what would be done any more
  130  interrupted while waiting; what was begun goes on
  141  whoever read the output closed it";

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Who can do something about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// What was asked for cannot be.
    User,
    /// The machine, or a cluster, does not allow it, or not now.
    Environment,
    /// Our fault.
    Internal,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::User => "user",
            Self::Environment => "environment",
            Self::Internal => "internal",
        })
    }
}

/// An error that knows what a person can do about it.
pub trait Explained: Error {
    /// Who can do something about it.
    fn kind(&self) -> Kind;

    /// The next thing to type.
    fn hint(&self) -> Option<String>;

    /// What scripts are told.
    fn exit(&self) -> Exit {
        Exit::Failed
    }

    /// Whether there is anything to say about it. Nobody wants to hear that what they closed was closed.
    fn is_silent(&self) -> bool {
        false
    }
}

/// A command failed.
#[derive(Debug)]
pub struct Failure(Box<dyn Explained>);

impl Failure {
    /// What failed, why, and what to try.
    pub fn text(&self) -> String {
        let mut text = format!("error ({}): {}", self.0.kind(), self.0);
        let mut cause = self.0.source();
        while let Some(because) = cause {
            let words = because.to_string();
            // Some errors have the words of their cause in their own.
            if !text.ends_with(&words) {
                text.push_str("\n  because: ");
                text.push_str(&words);
            }
            cause = because.source();
        }
        if let Some(hint) = self.0.hint() {
            text.push_str("\n  try: ");
            text.push_str(&hint);
        }
        text
    }

    /// Who can do something about it.
    pub fn kind(&self) -> Kind {
        self.0.kind()
    }

    /// The next thing to type.
    pub fn hint(&self) -> Option<String> {
        self.0.hint()
    }

    /// What failed, in a line, for those who can go on without it.
    pub fn brief(&self) -> String {
        self.0.to_string()
    }

    /// Why, where that is not all in its own words.
    pub fn cause(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }

    /// What scripts are told.
    pub fn exit(&self) -> Exit {
        self.0.exit()
    }

    /// Whether there is nothing to say.
    pub fn is_silent(&self) -> bool {
        self.0.is_silent()
    }
}

impl<E: Explained + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(Box::new(error))
    }
}

/// The error and its causes on one line. Some errors have the words of their cause in their own; it is then said once.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(because) = cause {
        let words = because.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        cause = because.source();
    }
    text
}
