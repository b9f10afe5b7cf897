//! The event log of a run: what determinism is judged by, and where metrics and timelines are read off.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use crate::key::Key;

/// One thing that happened in a runner. Its text is one line.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Happening<'a> {
    /// A watch has its full list, up to this resource version.
    Listed {
        /// What is watched.
        watch: &'a str,
        /// How many objects there are.
        objects: usize,
        /// The highest resource version among them.
        revision: u64,
    },
    /// An object came or changed.
    Applied {
        /// What is watched.
        watch: &'a str,
        /// The object.
        key: &'a Key,
        /// Its resource version.
        revision: u64,
    },
    /// An object is gone.
    Deleted {
        /// What is watched.
        watch: &'a str,
        /// The object.
        key: &'a Key,
        /// The resource version of its deletion.
        revision: u64,
    },
    /// An object cannot be read as its kind. The others can.
    Unreadable {
        /// What is watched.
        watch: &'a str,
        /// The object.
        key: &'a Key,
        /// Why not.
        why: &'a str,
    },
    /// A watch failed, and goes on after a pause.
    WatchFailed {
        /// What is watched.
        watch: &'a str,
        /// The error with its causes.
        error: &'a str,
        /// How long the pause is.
        retry_in: Duration,
    },
    /// A key was asked for from outside.
    Triggered {
        /// The key.
        key: &'a Key,
    },
    /// A key is reconciled although the caches have not seen all that it wrote.
    Stale {
        /// The key.
        key: &'a Key,
    },
    /// A reconcile began.
    Started {
        /// The key.
        key: &'a Key,
    },
    /// A reconcile ended well.
    Finished {
        /// The key.
        key: &'a Key,
        /// When it comes back, if nothing changes before.
        requeue_in: Option<Duration>,
    },
    /// A reconcile ended badly.
    Failed {
        /// The key.
        key: &'a Key,
        /// How.
        failure: &'a Failure,
        /// When it is tried again, if nothing changes before.
        retry_in: Duration,
    },
    /// No further reconcile begins.
    Stopping {
        /// How many still run.
        running: usize,
    },
}

/// How a reconcile ended badly.
#[derive(Debug, Clone, PartialEq)]
pub enum Failure {
    /// It returned an error: the text of it and its causes.
    Error(String),
    /// It panicked, with this message.
    Panic(String),
    /// It did not end in this time, and was dropped.
    Overdue(Duration),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(error) => write!(f, "{error}"),
            Self::Panic(message) => write!(f, "panic: {message}"),
            Self::Overdue(deadline) => write!(f, "not done after {deadline:?}"),
        }
    }
}

impl fmt::Display for Happening<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listed { watch, objects, revision } => write!(f, "listed {watch}: {objects} @{revision}"),
            Self::Applied { watch, key, revision } => write!(f, "applied {watch} {key} @{revision}"),
            Self::Deleted { watch, key, revision } => write!(f, "deleted {watch} {key} @{revision}"),
            Self::Unreadable { watch, key, why } => write!(f, "unreadable {watch} {key}: {why}"),
            Self::WatchFailed { watch, error, retry_in } => {
                write!(f, "watch failed {watch}, retry in {retry_in:?}: {error}")
            }
            Self::Triggered { key } => write!(f, "triggered {key}"),
            Self::Stale { key } => write!(f, "stale {key}: its own writes have not been seen"),
            Self::Started { key } => write!(f, "started {key}"),
            Self::Finished { key, requeue_in: None } => write!(f, "finished {key}"),
            Self::Finished { key, requeue_in: Some(delay) } => write!(f, "finished {key}, again in {delay:?}"),
            Self::Failed { key, failure, retry_in } => write!(f, "failed {key}, retry in {retry_in:?}: {failure}"),
            Self::Stopping { running } => write!(f, "stopping, {running} running"),
        }
    }
}

/// Where the event log goes.
pub trait Trace: Send + Sync {
    /// Something happened at this time in the runner of this name.
    fn record(&self, at: Timestamp, runner: &str, happening: &Happening<'_>);
}

/// An event log in memory, a line for each happening.
#[derive(Debug, Default)]
pub struct TraceLog(Mutex<Vec<String>>);

impl TraceLog {
    /// The lines so far.
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Trace for TraceLog {
    fn record(&self, at: Timestamp, runner: &str, happening: &Happening<'_>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{at} {runner} {happening}"));
    }
}
