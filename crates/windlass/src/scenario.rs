//! Files that say what goes wrong in a simulated world.

use std::io;
use std::path::{Path, PathBuf};

use windlass_sim::fault::{Scenario, ScenarioError};

use crate::error::{Explained, Kind};

/// Reads one; without a file nothing goes wrong.
pub fn read(path: Option<&Path>) -> Result<Scenario, Error> {
    let Some(path) = path else { return Ok(Scenario::default()) };
    let text = std::fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    Scenario::from_yaml(&text).map_err(|source| Error::Scenario { path: path.to_owned(), source })
}

/// It is not known what is to go wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read --scenario {path:?}")]
    Read { path: PathBuf, source: io::Error },
    #[error("--scenario {path:?} cannot be used")]
    Scenario { path: PathBuf, source: ScenarioError },
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        Kind::User
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Read { .. } => "--scenario with the path of a file".to_owned(),
            Self::Scenario { .. } => "a file such as in docs/faults.md, under Scenarios".to_owned(),
        })
    }
}
