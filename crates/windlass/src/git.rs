//! Repositories, through the `git` that people have: its settings, hooks, signatures and credentials are theirs.

mod error;

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use windlass_plan::source::File;

pub use error::Error;

/// What git keeps while something is under way that a commit of ours would end, or end up in: the file or folder, and in words.
const UNDER_WAY: [(&str, &str); 6] = [
    ("MERGE_HEAD", "a merge"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
    ("BISECT_LOG", "a bisection"),
];
/// What stands for a link among the modes of files. Where it leads to is not ours to change.
const LINK: &str = "120000";

/// A folder with a checked-out branch.
#[derive(Debug)]
pub struct Checkout {
    root: PathBuf,
    /// Made for this commit alone: where it was made from.
    made_from: Option<PathBuf>,
}

impl Checkout {
    /// The checkout that a path is in, to read it as it is.
    pub fn look(path: &Path) -> Result<Self, Error> {
        let top = git(path, &["rev-parse", "--show-toplevel"])
            .map_err(|error| Error::NoRepository { path: path.to_owned(), source: Box::new(error) })?;
        Ok(Self { root: PathBuf::from(top.trim_end()), made_from: None })
    }

    /// The checkout that a path is in, to commit in it. With a branch that is not checked out there, one of its own, beside: what a
    /// person works on is not touched.
    pub fn open(path: &Path, branch: Option<&str>, beside: &Path) -> Result<Self, Error> {
        let here = Self::look(path)?;
        if git(&here.root, &["rev-parse", "--verify", "--quiet", "HEAD"]).is_err() {
            return Err(Error::Empty { root: here.root });
        }
        let checked_out = here.branch();
        if let Some(branch) = branch.filter(|branch| checked_out.as_deref() != Some(*branch)) {
            return here.beside(branch, beside);
        }
        here.nothing_is_under_way()?;
        let Some(branch) = checked_out else { return Err(Error::Detached { root: here.root }) };
        here.follows_something(&branch)?;
        here.clean()
    }

    /// The branch that is checked out; none where it is a commit alone.
    fn branch(&self) -> Option<String> {
        let head = git(&self.root, &["symbolic-ref", "--quiet", "--short", "HEAD"]);
        head.ok().map(|head| head.trim_end().to_owned())
    }

    /// A checkout of a branch beside this one: of the branch that is here, of that which the remote has, or of a new one.
    fn beside(self, branch: &str, beside: &Path) -> Result<Self, Error> {
        let folder = beside.to_str().unwrap_or_default();
        let is_there = |name: &str| git(&self.root, &["rev-parse", "--verify", "--quiet", name]).is_ok();
        let remote = self.remote(branch);
        let theirs = format!("{remote}/{branch}");
        let made = if is_there(&format!("refs/heads/{branch}")) {
            self.follows_something(branch)?;
            git(&self.root, &["worktree", "add", "--quiet", folder, branch])
        } else if is_there(&format!("refs/remotes/{theirs}")) {
            git(&self.root, &["worktree", "add", "--quiet", "--track", "-b", branch, folder, &theirs])
        } else {
            git(&self.root, &["worktree", "add", "--quiet", "-b", branch, folder])
        };
        made.map_err(|error| Error::Branch { branch: branch.to_owned(), source: Box::new(error) })?;
        Ok(Self { root: PathBuf::from(beside), made_from: Some(self.root) })
    }

    /// A commit in the middle of something would end up in it.
    fn nothing_is_under_way(&self) -> Result<(), Error> {
        for (name, what) in UNDER_WAY {
            let path = git(&self.root, &["rev-parse", "--git-path", name])?;
            if self.root.join(path.trim_end()).exists() {
                return Err(Error::UnderWay { root: self.root.clone(), what });
            }
        }
        Ok(())
    }

    /// A branch whose counterpart was deleted was merged, or given up: what is committed to it is lost on people.
    fn follows_something(&self, branch: &str) -> Result<(), Error> {
        let asked = ["for-each-ref", "--format=%(upstream:short) %(upstream:track)", &format!("refs/heads/{branch}")];
        let answer = git(&self.root, &asked)?;
        match answer.trim_end().split_once(' ') {
            Some((upstream, "[gone]")) => Err(Error::Gone { branch: branch.to_owned(), upstream: upstream.to_owned() }),
            Some(_) | None => Ok(()),
        }
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
        let listed = git(&self.root, &[&["ls-files", "-z", "--stage", "--"], patterns.as_slice()].concat())?;
        let mut files: Vec<File> = Vec::new();
        for (about, path) in listed.split('\0').filter_map(|line| line.split_once('\t')) {
            // In the middle of a merge, a file is listed once for each side.
            if about.starts_with(LINK) || files.last().is_some_and(|last| last.path == path) {
                continue;
            }
            let bytes = match fs::read(self.root.join(path)) {
                Ok(bytes) => bytes,
                // Not everything has to be checked out.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(source) => return Err(Error::File { path: path.into(), source }),
            };
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
        for path in &paths {
            let is_tracked = git(&self.root, &["ls-files", "--error-unmatch", "--", path]).is_ok();
            if !is_tracked && fs::symlink_metadata(self.root.join(path)).is_ok() {
                return Err(Error::InTheWay { path: PathBuf::from(path) });
            }
        }
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
                match fs::remove_file(self.root.join(path)) {
                    Err(source) if source.kind() != io::ErrorKind::NotFound => {
                        return Err(Error::File { path: path.into(), source });
                    }
                    Ok(()) | Err(_) => {}
                }
            }
        }
        Ok(())
    }

    /// Sends the branch to where it comes from, `origin` if it comes from nowhere.
    pub fn push(&self) -> Result<String, Error> {
        let branch = git(&self.root, &["symbolic-ref", "--short", "HEAD"])?.trim_end().to_owned();
        let remote = self.remote(&branch);
        let pushed = git(&self.root, &["push", "--quiet", "--set-upstream", &remote, &branch]);
        pushed.map_err(|error| Error::Push { branch, remote: remote.clone(), source: Box::new(error) })?;
        Ok(remote)
    }

    fn remote(&self, branch: &str) -> String {
        let remote = git(&self.root, &["config", &format!("branch.{branch}.remote")]);
        remote.map_or_else(|_| "origin".to_owned(), |remote| remote.trim_end().to_owned())
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
    // Whoever runs us in a hook means the repository that was named, and not the one of the hook.
    for of_another in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
        command.env_remove(of_another);
    }
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
