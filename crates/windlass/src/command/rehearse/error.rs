//! Why there was no rehearsal.

use std::path::PathBuf;

use windlass_api::name::Namespace;
use windlass_rehearse::matrix::MatrixError;
use windlass_rehearse::rehearsal;
use windlass_rehearse::report;
use windlass_rehearse::snapshot::{LoadError, RestoreError, SaveError, TakeError};

use crate::error::{Explained, Kind};

/// There was no rehearsal.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot start the runtime of a simulated world")]
    Runtime(#[source] std::io::Error),
    #[error("cannot read what an update has left of the simulated world")]
    Left(#[source] TakeError),
    #[error("cannot make a simulated world of what was read")]
    Restore(#[source] RestoreError),
    #[error("cannot rehearse")]
    Rehearse(#[source] rehearsal::Error),
    #[error("cannot rehearse")]
    Report(#[source] report::Error),
    #[error("cannot rehearse with faults")]
    Matrix(#[source] MatrixError),
    #[error("cannot write --picture {path:?}")]
    Picture { path: PathBuf, source: std::io::Error },
    #[error("cannot write --report {path:?}")]
    ReportFile { path: PathBuf, source: std::io::Error },
    #[error("--report has no format {format:?}: there are md and html")]
    ReportFormat { format: String },
    #[error("cannot use --from")]
    Load(#[source] LoadError),
    #[error("no cluster in the namespace {namespace} has the labels {labels}")]
    NoneSelected { labels: String, namespace: Namespace },
    #[error("cannot write --keep {path:?}")]
    Keep { path: PathBuf, source: std::io::Error },
    #[error("cannot keep the snapshot")]
    Save(#[source] SaveError),
    #[error("cannot write the run as JSON")]
    Encode(#[source] serde_json::Error),
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Runtime(_) => Kind::Environment,
            Self::Picture { .. }
            | Self::ReportFile { .. }
            | Self::ReportFormat { .. }
            | Self::Load(_)
            | Self::NoneSelected { .. }
            | Self::Keep { .. }
            | Self::Save(_)
            | Self::Matrix(MatrixError::NoStep { .. }) => Kind::User,
            Self::Left(_)
            | Self::Restore(_)
            | Self::Rehearse(_)
            | Self::Report(_)
            | Self::Matrix(_)
            | Self::Encode(_) => Kind::Internal,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Runtime(_) => "the same again, when this machine has threads to spare".to_owned(),
            Self::Picture { .. } => "--picture with the path of a file in a folder that can be written to".to_owned(),
            Self::ReportFile { .. } => "--report with the path of a file in a folder that can be written to".to_owned(),
            Self::ReportFormat { .. } => "--report md FILE, or --report html FILE".to_owned(),
            Self::Load(_) => "--from with a folder that windlass snapshot take has written".to_owned(),
            Self::NoneSelected { namespace, .. } => format!("kubectl get tkc -n {namespace} --show-labels"),
            Self::Keep { .. } | Self::Save(_) => {
                "--keep with the path of a folder that is new, or was written by it before".to_owned()
            }
            Self::Matrix(MatrixError::NoStep { .. }) => "--fault KIND@STEP, with one of the steps above".to_owned(),
            Self::Left(_)
            | Self::Restore(_)
            | Self::Rehearse(_)
            | Self::Report(_)
            | Self::Matrix(_)
            | Self::Encode(_) => "the same again with another --seed, and a report of this".to_owned(),
        })
    }
}
