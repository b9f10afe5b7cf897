//! What a repository does not do, and the way out.

use std::io;
use std::path::PathBuf;

use crate::error::{Explained, Kind};

/// A repository does not do what it is asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("git cannot be run")]
    NoGit(#[source] io::Error),
    #[error("git {told}: {said}")]
    Git { told: String, said: String },
    #[error("{} is not in a repository", .path.display())]
    NoRepository { path: PathBuf, source: Box<Error> },
    #[error("{} has changes that are not committed: {}", .root.display(), .files.join(", "))]
    Dirty { root: PathBuf, files: Vec<String> },
    #[error("{} has no commit yet", .root.display())]
    Empty { root: PathBuf },
    #[error("in {} a commit is checked out, and no branch: what is committed there would be on none", .root.display())]
    Detached { root: PathBuf },
    #[error("in {} {what} is under way, and a commit would end up in it", .root.display())]
    UnderWay { root: PathBuf, what: &'static str },
    #[error("the branch {branch} followed {upstream}, which is gone: it was merged, or given up")]
    Gone { branch: String, upstream: String },
    #[error("{} is there, and git does not know it: it would be lost", .path.display())]
    InTheWay { path: PathBuf },
    #[error("the branch {branch} cannot be checked out")]
    Branch { branch: String, source: Box<Error> },
    #[error("{} cannot be read or written", .path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("the commit was refused, and all files are as they were")]
    Commit(#[source] Box<Error>),
    #[error("{remote} does not take the branch {branch}; the commit is in it, here")]
    Push { branch: String, remote: String, source: Box<Error> },
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::NoRepository { .. }
            | Self::Dirty { .. }
            | Self::Empty { .. }
            | Self::Detached { .. }
            | Self::UnderWay { .. }
            | Self::Gone { .. }
            | Self::InTheWay { .. }
            | Self::Branch { .. } => Kind::User,
            Self::NoGit(_) | Self::Git { .. } | Self::File { .. } | Self::Commit(_) | Self::Push { .. } => {
                Kind::Environment
            }
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NoGit(_) => "install git".to_owned(),
            Self::NoRepository { .. } => "a folder that git knows".to_owned(),
            Self::Empty { .. } => "the repository that has the manifest of the cluster".to_owned(),
            Self::Detached { .. } => "--branch NAME".to_owned(),
            Self::UnderWay { .. } => {
                "git status, which says how to end it, or --branch with a branch that is not checked out".to_owned()
            }
            Self::Gone { branch, .. } => format!("git branch -D {branch}, or --branch with another name"),
            Self::InTheWay { path } => format!("git add {0} and commit it, or move {0} away", path.display()),
            Self::Dirty { .. } => "git stash, or --branch with a branch that is not checked out".to_owned(),
            Self::Branch { .. } => "git branch --list, git worktree list".to_owned(),
            Self::Push { branch, remote, .. } => format!("git pull --rebase {remote} {branch}, then git push"),
            Self::Commit(_) => "what the hook says".to_owned(),
            Self::Git { .. } | Self::File { .. } => return None,
        })
    }
}
