//! Why `windlass up` could not start, and what to do about it.

use std::io;
use std::path::PathBuf;

use windlass_apiserver::durable::disk::DirectoryError;
use windlass_apiserver::durable::{self, KeyError, OpenError, RecoverError};
use windlass_apiserver::listen::{self, kubeconfig};
use windlass_sim::world as sim;

use super::metrics;
use crate::error::{Explained, Kind};
use crate::{output, scenario};

/// The cluster could not be started.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot start the runtime")]
    Runtime(#[source] io::Error),
    #[error("cannot start the simulated world")]
    Thread(#[source] io::Error),
    #[error("cannot furnish the simulated world")]
    World(#[source] sim::Error),
    #[error("the simulated world has ended by itself")]
    WorldEnded,
    #[error(transparent)]
    Data(#[from] durable::OpenError),
    #[error("what happened last could not be written to the data directory")]
    Keep(#[source] io::Error),
    #[error("the scenario has faults of a simulated disk, and with --data-dir the disk is a real one")]
    SimulatedDisk,
    #[error("cannot listen for signals")]
    Signals(#[source] io::Error),
    #[error(transparent)]
    Scenario(#[from] scenario::Error),
    #[error(transparent)]
    Output(#[from] output::Error),
    #[error("there is no directory for the kubeconfig: neither XDG_STATE_HOME nor HOME names one")]
    NoStateDirectory,
    #[error("{path:?} is not a usable path")]
    Path { path: PathBuf, source: io::Error },
    #[error("the kubeconfig was written to {path:?}, which is not UTF-8 and cannot be printed")]
    PathText { path: PathBuf },
    #[error(transparent)]
    Metrics(#[from] metrics::Error),
    #[error(transparent)]
    Listen(#[from] listen::Error),
    #[error(transparent)]
    Kubeconfig(#[from] kubeconfig::Error),
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Path { .. }
            | Self::PathText { .. }
            | Self::SimulatedDisk
            | Self::Metrics(_)
            | Self::Listen(listen::Error::NotLoopback { .. }) => Kind::User,
            Self::Kubeconfig(error) => match error {
                kubeconfig::Error::NotAPath { .. }
                | kubeconfig::Error::NotAFile { .. }
                | kubeconfig::Error::NotOurs { .. } => Kind::User,
                _ => Kind::Environment,
            },
            Self::Runtime(_)
            | Self::Thread(_)
            | Self::Signals(_)
            | Self::NoStateDirectory
            | Self::Listen(listen::Error::Bind { .. } | listen::Error::Random | listen::Error::Clock { .. }) => {
                Kind::Environment
            }
            Self::Data(error) => match error {
                OpenError::Lock { .. } | OpenError::Thread(_) => Kind::Environment,
                OpenError::Recover { source: RecoverError::Io(_) | RecoverError::Damaged { .. }, .. } => {
                    Kind::Environment
                }
                _ => Kind::User,
            },
            Self::Keep(_) => Kind::Environment,
            Self::Scenario(error) => error.kind(),
            Self::Output(error) => error.kind(),
            Self::World(_) | Self::WorldEnded | Self::Listen(_) => Kind::Internal,
        }
    }

    fn hint(&self) -> Option<String> {
        let elsewhere = "windlass up --kubeconfig PATH, with a path of its own";
        match self {
            Self::NoStateDirectory | Self::Path { .. } | Self::PathText { .. } | Self::Kubeconfig(_) => {
                Some(elsewhere.to_owned())
            }
            Self::Listen(listen::Error::Bind { .. }) => {
                Some("windlass up without --port, which takes a free one".to_owned())
            }
            Self::Listen(listen::Error::Clock { .. }) => Some("setting this machine's clock".to_owned()),
            Self::Metrics(_) => Some("windlass up --metrics without an address, which takes a free port".to_owned()),
            Self::Data(error) => data_hint(error),
            Self::Keep(_) => Some("making room on its disk; what was answered before is kept".to_owned()),
            Self::SimulatedDisk => Some("windlass up --scenario without --data-dir".to_owned()),
            Self::Scenario(error) => error.hint(),
            Self::Output(error) => error.hint(),
            Self::WorldEnded => Some("windlass up".to_owned()),
            Self::Runtime(_) | Self::Thread(_) | Self::World(_) | Self::Signals(_) | Self::Listen(_) => None,
        }
    }
}

fn data_hint(error: &OpenError) -> Option<String> {
    let another = "windlass up --data-dir DIR, with a directory of its own";
    Some(match error {
        OpenError::InUse { .. } => format!("ending the other one, or {another}"),
        OpenError::Directory(DirectoryError::Open { path, .. }) => format!("chmod 700 {}", path.display()),
        OpenError::Key(KeyError::Open { path, .. }) => format!("chmod 600 {}", path.display()),
        OpenError::Directory(_) => another.to_owned(),
        OpenError::KeyInside { .. } => "windlass up --key-file FILE, outside of the data directory".to_owned(),
        OpenError::Key(KeyError::Missing { .. } | KeyError::Malformed { .. } | KeyError::Empty { .. })
        | OpenError::Recover { source: RecoverError::OtherKey { .. }, .. } => {
            "windlass up --key-file FILE, with the key that the directory was made with; without it nobody can read it"
                .to_owned()
        }
        OpenError::Recover { source: RecoverError::Damaged { .. }, .. } => {
            format!("a copy of the directory from before, or {another}; nothing in it was changed")
        }
        OpenError::Recover { source: RecoverError::Version { .. }, .. } => "the Windlass that wrote it".to_owned(),
        OpenError::Recover { .. } | OpenError::Key(_) | OpenError::Lock { .. } | OpenError::Thread(_) => return None,
    })
}
