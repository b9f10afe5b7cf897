//! The file operations that a journal needs, as a seam: tests put a disk there that forgets what was not synced.

use std::fs::{self, File as OsFile, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The files of one directory, by name.
pub trait Disk: Send + Sync {
    /// The names there are, in any order.
    fn names(&self) -> io::Result<Vec<String>>;

    /// A new file; one of that name must not be there.
    fn create(&self, name: &str) -> io::Result<Box<dyn File>>;

    /// Reads a file from its beginning.
    fn open(&self, name: &str) -> io::Result<Box<dyn Read + Send>>;

    /// Gives a file another name, in one step.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// What is in a file survives a loss of power from now on.
    fn sync(&self, name: &str) -> io::Result<()>;

    /// Which files there are survives a loss of power from now on.
    fn sync_names(&self) -> io::Result<()>;
}

/// A file that is written from its beginning to its end.
pub trait File: Write + Send {
    /// What was written survives a loss of power from now on.
    fn sync(&mut self) -> io::Result<()>;
}

/// A directory of the operating system's. Files in it are for their owner only.
#[derive(Debug)]
pub struct Directory(PathBuf);

/// Nobody else may look into it.
const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// Group and others.
const STRANGERS: u32 = 0o077;

/// A directory that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// The operating system says no.
    #[error("cannot use {path:?} as a data directory")]
    Os {
        /// The directory.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// It is something else.
    #[error("{path:?} is not a directory")]
    NotADirectory {
        /// What was named.
        path: PathBuf,
    },
    /// Others could read what is in it.
    #[error("others may look into {path:?}: its mode is {mode:04o}, and must be 0700")]
    Open {
        /// The directory or file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// Somebody else's things are in it.
    #[error("{path:?} is no data directory: {found:?} is in it")]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// What is in it.
        found: String,
    },
}

impl Directory {
    /// The directory at this path; a new one where there is none. `is_ours` tells our files by their names: a directory that has
    /// others and none of ours is somebody else's.
    pub fn at(path: &Path, is_ours: impl Fn(&str) -> bool) -> Result<Self, DirectoryError> {
        let os = |source| DirectoryError::Os { path: path.to_owned(), source };
        match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(path).map_err(os)?;
                if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
                    OsFile::open(parent).and_then(|parent| parent.sync_all()).map_err(os)?;
                }
            }
            Err(error) => return Err(os(error)),
            Ok(metadata) if !metadata.is_dir() => return Err(DirectoryError::NotADirectory { path: path.to_owned() }),
            Ok(metadata) => {
                let mode = metadata.permissions().mode() & 0o7777;
                if mode & STRANGERS != 0 {
                    return Err(DirectoryError::Open { path: path.to_owned(), mode });
                }
            }
        }
        let directory = Self(path.to_owned());
        let names = directory.names().map_err(os)?;
        let foreign = names.iter().find(|name| !is_ours(name));
        match foreign {
            Some(found) if !names.iter().any(|name| is_ours(name)) => {
                Err(DirectoryError::Foreign { path: path.to_owned(), found: found.clone() })
            }
            _ => Ok(directory),
        }
    }

    /// A file of it for reading and writing that is there afterwards, whatever was before.
    pub(super) fn open_or_create(&self, name: &str) -> io::Result<OsFile> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(FILE_MODE).open(self.0.join(name))
    }
}

impl Disk for Directory {
    fn names(&self) -> io::Result<Vec<String>> {
        fs::read_dir(&self.0)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn File>> {
        let file = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(self.0.join(name))?;
        Ok(Box::new(file))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(OsFile::open(self.0.join(name))?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.0.join(from), self.0.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.0.join(name))
    }

    fn sync(&self, name: &str) -> io::Result<()> {
        OsFile::open(self.0.join(name))?.sync_all()
    }

    fn sync_names(&self) -> io::Result<()> {
        OsFile::open(&self.0)?.sync_all()
    }
}

impl File for OsFile {
    fn sync(&mut self) -> io::Result<()> {
        // The length is synced with the data, other metadata is not needed.
        self.sync_data()
    }
}
