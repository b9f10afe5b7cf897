//! What can go wrong in a command: who can do something about it, and what.

use std::fmt;
use std::io;
use std::path::PathBuf;

use windlass_apiserver::listen;
use windlass_apiserver::listen::kubeconfig;

/// The exit code of a command that failed, and of a command line that could not be understood. Other codes have a meaning of
/// their own (2: there are changes; 3: a check refused), so clap's 2 for wrong usage is not used.
pub const EXIT_FAILURE: u8 = 1;

/// For `--help`.
pub const EXIT_CODES: &str = "Exit codes:\n  0  done, or ended by SIGINT or SIGTERM\n  1  failed, or wrong usage";

/// Who can do something about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// What was asked for cannot be.
    User,
    /// The machine does not allow it, or not now.
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

/// A command failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot start the runtime")]
    Runtime(#[source] io::Error),
    #[error("cannot listen for signals")]
    Signals(#[source] io::Error),
    #[error("cannot write to standard output")]
    Output(#[source] io::Error),
    #[error("there is no directory for the kubeconfig: neither XDG_STATE_HOME nor HOME names one")]
    NoStateDirectory,
    #[error("{path:?} is not a usable path")]
    Path { path: PathBuf, source: io::Error },
    #[error("the kubeconfig was written to {path:?}, which is not UTF-8 and cannot be printed")]
    PathText { path: PathBuf },
    #[error(transparent)]
    Listen(#[from] listen::Error),
    #[error(transparent)]
    Kubeconfig(#[from] kubeconfig::Error),
}

impl Error {
    /// Who can do something about it.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Path { .. } | Self::PathText { .. } | Self::Listen(listen::Error::NotLoopback { .. }) => Kind::User,
            Self::Kubeconfig(error) => match error {
                kubeconfig::Error::NotAPath { .. }
                | kubeconfig::Error::NotAFile { .. }
                | kubeconfig::Error::NotOurs { .. } => Kind::User,
                _ => Kind::Environment,
            },
            Self::Runtime(_)
            | Self::Signals(_)
            | Self::Output(_)
            | Self::NoStateDirectory
            | Self::Listen(listen::Error::Bind { .. } | listen::Error::Random | listen::Error::Clock { .. }) => {
                Kind::Environment
            }
            Self::Listen(_) => Kind::Internal,
        }
    }

    /// The next thing to type.
    pub fn hint(&self) -> Option<String> {
        let elsewhere = "windlass up --kubeconfig PATH, with a path of its own";
        match self {
            Self::NoStateDirectory | Self::Path { .. } | Self::PathText { .. } | Self::Kubeconfig(_) => {
                Some(elsewhere.to_owned())
            }
            Self::Listen(listen::Error::Bind { .. }) => {
                Some("windlass up without --port, which takes a free one".to_owned())
            }
            Self::Listen(listen::Error::Clock { .. }) => Some("setting this machine's clock".to_owned()),
            _ => None,
        }
    }
}
