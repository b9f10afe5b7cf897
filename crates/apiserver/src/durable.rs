//! A data directory: what is committed survives the end of the process.
//!
//! ```text
//! Store::put ── Backend::append ──▶ queue ──▶ one thread: frame, write, sync ──▶ whoever waits goes on
//!                                                  └── now and then: a checkpoint, and the old logs go
//! open: newest checkpoint, the logs after it ──▶ a Recovered for each store
//! ```
//!
//! Several stores may share a journal. What happened in them is then one history, of which a crash leaves a beginning: nothing
//! is there in one store whose cause is missing in another.
//!
//! [`disk`] is the seam to the operating system; `seal` encrypts every byte that is written and tells whole frames from others;
//! `recover` reads; `engine` writes; `journal` is the thread around it; [`Lasting`] keeps answers back until they will last.

pub mod disk;
mod engine;
mod files;
mod journal;
mod key;
mod lasting;
mod record;
mod recover;
mod seal;
mod tables;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use journal::Journal;
pub use key::{KeyError, Keys};
pub use lasting::Lasting;
pub use recover::RecoverError;

use crate::store::{Recovered, Waits};
use disk::{Directory, DirectoryError, Disk};
use engine::Engine;

/// A data directory that could not be opened. Nothing in it was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It cannot be used as one.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// Another process has it.
    #[error("the data directory {path:?} is in use{}", by(*.pid))]
    InUse {
        /// The directory.
        path: PathBuf,
        /// The process, if it says so.
        pid: Option<u32>,
    },
    /// It cannot be locked.
    #[error("cannot lock the data directory {path:?}")]
    Lock {
        /// The directory.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// It cannot be read.
    #[error("cannot read the data directory {path:?}")]
    Recover {
        /// The directory.
        path: PathBuf,
        /// Why not.
        #[source]
        source: RecoverError,
    },
    /// The key file has no usable key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The key file would be in the directory that it is to protect.
    #[error("the key file {key:?} is in the data directory {path:?}, where it protects nothing")]
    KeyInside {
        /// The key file.
        key: PathBuf,
        /// The directory.
        path: PathBuf,
    },
    /// The thread that writes could not be started.
    #[error("cannot start the thread that writes")]
    Thread(#[source] io::Error),
}

fn by(pid: Option<u32>) -> String {
    pid.map_or_else(String::new, |pid| format!(" by process {pid}"))
}

/// Opens the data directory at this path, or makes it, with the key file at another: it is made with the directory, and never
/// for one that has something in it already. Returns what each store is to begin with, by its name.
pub fn open(path: &Path, key_file: &Path, waits: Waits) -> Result<(Journal, BTreeMap<Arc<str>, Recovered>), OpenError> {
    let directory = Directory::at(path, files::is_ours)?;
    let lock = lock(&directory, path)?;
    let inside = |key: &Path| {
        let folder = key.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        matches!((folder.canonicalize(), path.canonicalize()), (Ok(folder), Ok(path)) if folder.starts_with(&path))
    };
    if inside(key_file) {
        return Err(OpenError::KeyInside { key: key_file.to_owned(), path: path.to_owned() });
    }
    let io = |source: io::Error| OpenError::Recover { path: path.to_owned(), source: source.into() };
    let is_new = !directory.names().map_err(io)?.iter().any(|name| files::Name::parse(name).is_some());
    let keys = match Keys::read(key_file) {
        Err(KeyError::Missing { .. }) if is_new => Keys::create(key_file)?,
        keys => keys?,
    };
    open_on(Arc::new(directory), &keys, waits, lock).map_err(|error| match error {
        OnError::Recover(source) => OpenError::Recover { path: path.to_owned(), source },
        OnError::Thread(source) => OpenError::Thread(source),
    })
}

/// Why a journal could not be opened on a disk.
#[derive(Debug, thiserror::Error)]
pub enum OnError {
    /// What is there cannot be read.
    #[error(transparent)]
    Recover(#[from] RecoverError),
    /// The thread that writes could not be started.
    #[error("cannot start the thread that writes")]
    Thread(#[source] io::Error),
}

/// The same on any disk; `guard` is dropped when the last byte is written.
pub fn open_on(
    disk: Arc<dyn Disk>,
    keys: &Keys,
    waits: Waits,
    guard: impl Send + 'static,
) -> Result<(Journal, BTreeMap<Arc<str>, Recovered>), OnError> {
    let (engine, recovered) = Engine::open(disk, keys.clone())?;
    let journal = Journal::start(engine, waits, guard).map_err(OnError::Thread)?;
    Ok((journal, recovered))
}

/// Takes the directory for this process. The operating system gives it back when the process ends, however it ends.
fn lock(directory: &Directory, path: &Path) -> Result<File, OpenError> {
    let failed = |source| OpenError::Lock { path: path.to_owned(), source };
    let mut file = directory.open_or_create(files::LOCK).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::Error(source)) => return Err(failed(source)),
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            // What it says is for people only.
            drop(file.take(32).read_to_string(&mut text));
            return Err(OpenError::InUse { path: path.to_owned(), pid: text.trim().parse().ok() });
        }
    }
    let written = file.set_len(0).and_then(|()| file.rewind());
    written.and_then(|()| writeln!(file, "{}", std::process::id())).map_err(failed)?;
    Ok(file)
}
