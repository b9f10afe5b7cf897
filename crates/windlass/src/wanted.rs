//! What a command is asked to plan or rehearse: another release, other fields, or the end of a cluster.

use windlass_api::version::VersionPrefix;
use windlass_rehearse::rehearsal::{Setting, Wish};

use crate::error::{Explained, Kind};
use crate::way::Way;

/// What is asked of a cluster.
#[derive(clap::Args)]
pub struct Wanted {
    /// The release, or the beginning of its version
    #[arg(long, value_name = "RELEASE")]
    pub to: Option<VersionPrefix>,
    /// Another value of a field under topology or settings: topology.workers.count=5. May be given several times
    #[arg(long, value_name = "FIELD=VALUE")]
    pub set: Vec<Setting>,
    /// The end of the cluster
    #[arg(long, conflicts_with_all = ["to", "set"])]
    pub delete: bool,
}

impl Wanted {
    /// A release, and nothing else.
    pub fn release_only(to: &VersionPrefix) -> Self {
        Self { to: Some(to.clone()), set: Vec::new(), delete: false }
    }

    /// What is asked, as a rehearsal asks it.
    pub fn wish(&self) -> Wish {
        if self.delete {
            return Wish::Delete;
        }
        Wish::fields(self.to.as_ref().map(VersionPrefix::as_str), &self.set)
    }

    /// The release, if nothing else is asked.
    pub fn release(&self) -> Option<&VersionPrefix> {
        self.to.as_ref().filter(|_| self.set.is_empty())
    }

    /// The words that ask for the same, for the next command.
    pub fn words(&self) -> String {
        self.wish().words().join(" ")
    }

    /// Refuses fields that would have to wait for the end of several updates.
    pub fn fits(&self, way: Option<&Way>) -> Result<(), Error> {
        match (way, &self.to) {
            (Some(way), Some(to)) if !self.set.is_empty() => {
                Err(Error::Several { to: to.clone(), way: way.to_string() })
            }
            _ => Ok(()),
        }
    }
}

/// What is asked cannot be planned.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("nothing is asked for")]
    Nothing,
    #[error("{to} takes several updates ({way}): other fields cannot be set in the same write")]
    Several { to: VersionPrefix, way: String },
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        Kind::User
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Nothing => "--to RELEASE, --set FIELD=VALUE or --delete".to_owned(),
            Self::Several { .. } => "the same without --set, and the fields when the last update is done".to_owned(),
        })
    }
}
