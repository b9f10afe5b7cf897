//! Why a folder could not be written or read, and what somebody can do about it.

use std::io;
use std::path::PathBuf;

use serde_json::Value;
use windlass_api::name::NamespacedName;

use super::{FORMAT, HEAD, VERSION};

/// A snapshot that could not be written. What was in its place is still there.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// Something else is in its place.
    #[error("{dir:?} is there and is no snapshot: it has {found}")]
    Occupied {
        /// The folder.
        dir: PathBuf,
        /// What is in it that no snapshot has.
        found: String,
    },
    /// There is no name for a folder in it.
    #[error("{0:?} does not name a folder")]
    NoName(PathBuf),
    /// A file could not be written.
    #[error("write {path:?}")]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// It is no JSON.
    #[error("write the snapshot as JSON")]
    Encode(#[source] serde_json::Error),
}

impl SaveError {
    /// What somebody can do about it.
    pub fn way_out(&self) -> String {
        match self {
            Self::Occupied { .. } | Self::NoName(_) => "the path of a folder that is not there yet".to_owned(),
            Self::Write { .. } => "the path of a folder in one that can be written to, with room for it".to_owned(),
            Self::Encode(_) => "a report of this: it is a mistake of Windlass".to_owned(),
        }
    }
}

/// A folder that cannot be used as a snapshot.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// There is none.
    #[error("there is no folder {0:?}")]
    Absent(PathBuf),
    /// It is a folder of something else.
    #[error("{0:?} is no snapshot: it has no {HEAD}")]
    Foreign(PathBuf),
    /// A file cannot be read.
    #[error("read {file:?}")]
    Read {
        /// Which.
        file: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The head is not what it should be. The cause names the field and the line.
    #[error("{file:?} is not the head of a snapshot")]
    Head {
        /// Which.
        file: PathBuf,
        /// What is wrong.
        #[source]
        source: serde_json::Error,
    },
    /// The head is of something else.
    #[error("{file:?} is not the head of a snapshot: `format` is {found}, not {FORMAT:?}")]
    Format {
        /// Which.
        file: PathBuf,
        /// What is there.
        found: Value,
    },
    /// The format has changed since, or before.
    #[error(
        "{file:?} is of another version: `version` is {found}, and this Windlass reads {VERSION}; {taken_by} has written it"
    )]
    Version {
        /// Which.
        file: PathBuf,
        /// What is there.
        found: Value,
        /// Who wrote it.
        taken_by: String,
    },
    /// A cluster is there twice.
    #[error("{file:?} has the cluster {cluster} twice in `workloads`")]
    Twice {
        /// Which.
        file: PathBuf,
        /// The cluster.
        cluster: NamespacedName,
    },
    /// A line is no JSON.
    #[error("line {line} of {file:?} is no object")]
    Line {
        /// Which.
        file: PathBuf,
        /// The line.
        line: usize,
        /// What is wrong.
        #[source]
        source: serde_json::Error,
    },
    /// An object lacks what every object has.
    #[error("line {line} of {file:?} is no object of Kubernetes: `{field}` is missing")]
    Object {
        /// Which.
        file: PathBuf,
        /// The line.
        line: usize,
        /// What is missing.
        field: String,
    },
    /// There are more or fewer objects than were written.
    #[error("{file:?} has {found} objects, and {HEAD} says {expected} in `objects`: it was cut off, or changed")]
    Count {
        /// Which.
        file: PathBuf,
        /// How many there are.
        found: usize,
        /// How many there should be.
        expected: usize,
    },
}

impl LoadError {
    /// What somebody can do about it.
    pub fn way_out(&self) -> String {
        match self {
            Self::Absent(_) | Self::Foreign(_) | Self::Format { .. } => {
                "the folder that `windlass snapshot take -o DIR` has written".to_owned()
            }
            Self::Read { .. } => "the same as the user who took the snapshot: nobody else can read it".to_owned(),
            Self::Version { taken_by, .. } => {
                format!("the same with {taken_by}, or `windlass snapshot take` once more with this one")
            }
            Self::Head { .. } | Self::Twice { .. } | Self::Line { .. } | Self::Object { .. } | Self::Count { .. } => {
                "`windlass snapshot take` once more; or mend the file, if you have changed it by hand".to_owned()
            }
        }
    }
}
