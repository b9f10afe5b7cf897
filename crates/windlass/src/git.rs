//! Repositories, through the `git` that people have: its settings, hooks, signatures and credentials are theirs.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use windlass_plan::source::File;

use crate::error::{Explained, Kind};

/// A folder with a checked-out branch.
#[derive(Debug)]
pub struct Checkout {
    root: PathBuf,
    /// Made for this commit alone: where it was made from.
    made_from: Option<PathBuf>,
}

impl Checkout {
    /// The checkout that a path is in. With a branch that is not checked out there, one of its own, beside: what a person works
    /// on is not touched.
    pub fn open(path: &Path, branch: Option<&str>, beside: &Path) -> Result<Self, Error> {
        let top = git(path, &["rev-parse", "--show-toplevel"])
            .map_err(|error| Error::NoRepository { path: path.to_owned(), source: Box::new(error) })?;
        let here = Self { root: PathBuf::from(top.trim_end()), made_from: None };
        let Some(branch) = branch else { return here.clean() };
        if git(&here.root, &["symbolic-ref", "--quiet", "--short", "HEAD"]).ok().as_deref().map(str::trim_end)
            == Some(branch)
        {
            return here.clean();
        }
        let beside = beside.to_str().unwrap_or_default().to_owned();
        let is_known = git(&here.root, &["rev-parse", "--verify", "--quiet", &format!("refs/heads/{branch}")]).is_ok();
        let made = if is_known {
            git(&here.root, &["worktree", "add", "--quiet", &beside, branch])
        } else {
            git(&here.root, &["worktree", "add", "--quiet", "-b", branch, &beside])
        };
        made.map_err(|error| Error::Branch { branch: branch.to_owned(), source: Box::new(error) })?;
        Ok(Self { root: PathBuf::from(beside), made_from: Some(here.root) })
    }

    /// Nothing of a person's own may end up in the commit, or get lost with it.
    fn clean(self) -> Result<Self, Error> {
        let status = git(&self.root, &["status", "--porcelain", "--untracked-files=no"])?;
        let dirty: Vec<String> = status.lines().map(|line| line.get(3..).unwrap_or(line).to_owned()).collect();
        if dirty.is_empty() { Ok(self) } else { Err(Error::Dirty { root: self.root, files: dirty }) }
    }

    /// The files that may say something of a cluster.
    pub fn files(&self) -> Result<Vec<File>, Error> {
        let patterns = ["*.yaml", "*.yml", "*.json", "Kustomization", "*/Kustomization"];
        let listed = git(&self.root, &[&["ls-files", "-z", "--"], patterns.as_slice()].concat())?;
        let mut files = Vec::new();
        for path in listed.split('\0').filter(|path| !path.is_empty()) {
            let bytes = fs::read(self.root.join(path)).map_err(|source| Error::File { path: path.into(), source })?;
            // What is no text is no manifest.
            if let Ok(text) = String::from_utf8(bytes) {
                files.push(File { path: path.to_owned(), text });
            }
        }
        Ok(files)
    }

    /// Writes files and commits them. If that is refused, they are as they were.
    pub fn commit(&self, files: &[File], message: &str) -> Result<String, Error> {
        let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        let written = self.write(files).and_then(|()| {
            git(&self.root, &[&["add", "--"], paths.as_slice()].concat())?;
            let commit = [&["commit", "--quiet", "--file=-", "--"], paths.as_slice()].concat();
            git_with(&self.root, &commit, message).map_err(|error| Error::Commit(Box::new(error)))
        });
        if let Err(error) = written {
            self.take_back(files)?;
            return Err(error);
        }
        Ok(git(&self.root, &["rev-parse", "--short", "HEAD"])?.trim_end().to_owned())
    }

    fn write(&self, files: &[File]) -> Result<(), Error> {
        for File { path, text } in files {
            fs::write(self.root.join(path), text).map_err(|source| Error::File { path: path.into(), source })?;
        }
        Ok(())
    }

    fn take_back(&self, files: &[File]) -> Result<(), Error> {
        for File { path, .. } in files {
            git(&self.root, &["reset", "--quiet", "--", path])?;
            if git(&self.root, &["cat-file", "-e", &format!("HEAD:{path}")]).is_ok() {
                git(&self.root, &["checkout", "--quiet", "HEAD", "--", path])?;
            } else {
                fs::remove_file(self.root.join(path)).map_err(|source| Error::File { path: path.into(), source })?;
            }
        }
        Ok(())
    }

    /// Sends the branch to where it comes from, `origin` if it comes from nowhere.
    pub fn push(&self) -> Result<String, Error> {
        let branch = git(&self.root, &["symbolic-ref", "--short", "HEAD"])?.trim_end().to_owned();
        let remote = git(&self.root, &["config", &format!("branch.{branch}.remote")]);
        let remote = remote.map_or_else(|_| "origin".to_owned(), |remote| remote.trim_end().to_owned());
        let pushed = git(&self.root, &["push", "--quiet", "--set-upstream", &remote, &branch]);
        pushed.map_err(|error| Error::Push { branch, remote: remote.clone(), source: Box::new(error) })?;
        Ok(remote)
    }

    /// Removes what was made for the commit; the branch stays.
    pub fn close(self) -> Result<(), Error> {
        let Some(from) = &self.made_from else { return Ok(()) };
        git(from, &["worktree", "remove", "--force", self.root.to_str().unwrap_or_default()]).map(drop)
    }
}

fn git(folder: &Path, arguments: &[&str]) -> Result<String, Error> {
    git_with(folder, arguments, "")
}

fn git_with(folder: &Path, arguments: &[&str], input: &str) -> Result<String, Error> {
    let told = arguments.join(" ");
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(arguments).env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(Error::NoGit)?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes()).map_err(Error::NoGit)?;
    }
    let output = child.wait_with_output().map_err(Error::NoGit)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let says = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    let (said, printed) = (says(&output.stderr), says(&output.stdout));
    Err(Error::Git { told, said: if said.is_empty() { printed } else { said } })
}

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
            Self::NoRepository { .. } | Self::Dirty { .. } | Self::Branch { .. } => Kind::User,
            Self::NoGit(_) | Self::Git { .. } | Self::File { .. } | Self::Commit(_) | Self::Push { .. } => {
                Kind::Environment
            }
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NoGit(_) => "install git".to_owned(),
            Self::NoRepository { .. } => "--commit with a folder that git knows".to_owned(),
            Self::Dirty { .. } => "git stash, or --branch with a branch that is not checked out".to_owned(),
            Self::Branch { .. } => "git branch --list, git worktree list".to_owned(),
            Self::Push { branch, remote, .. } => format!("git pull --rebase {remote} {branch}, then git push"),
            Self::Commit(_) => "what the hook says".to_owned(),
            Self::Git { .. } | Self::File { .. } => return None,
        })
    }
}
