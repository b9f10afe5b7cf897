//! `windlass upgrade --commit`: an upgrade that is asked for by a commit, for review before anybody applies it.

use std::path::PathBuf;

use serde::Serialize;
use windlass_plan::source::{self, Edit, File, SourceError, Wish};

use crate::command::plan::Reviewed;
use crate::error::{Explained, Failure, Kind};
use crate::git::Checkout;

/// How an upgrade is asked for in a repository.
#[derive(clap::Args)]
pub struct Commit {
    /// Do not ask the server: change the one line in this repository that asks for the release, and commit it with the plan
    #[arg(long = "commit", value_name = "REPO", help_heading = "Git")]
    repository: Option<PathBuf>,
    /// Commit on this branch, which is made if there is none; what is checked out is not touched
    #[arg(long, value_name = "BRANCH", requires = "repository", help_heading = "Git")]
    branch: Option<String>,
    /// Only in this file, or in files below it
    #[arg(long, value_name = "PATH", requires = "repository", help_heading = "Git")]
    file: Option<String>,
    /// Push the branch
    #[arg(long, requires = "repository", help_heading = "Git")]
    push: bool,
}

/// What became of it.
#[derive(Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Committed {
    /// The commit; none if the files asked for it already.
    pub commit: Option<String>,
    /// What the files ask for.
    pub to: String,
    /// The file that was changed, and where.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Where it was pushed to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pushed_to: Option<String>,
}

impl Commit {
    /// Whether it was asked for.
    pub fn is_asked_for(&self) -> bool {
        self.repository.is_some()
    }

    /// Changes the one line, and commits it.
    pub fn make(&self, plan: &Reviewed) -> Result<Committed, Failure> {
        let Some(repository) = &self.repository else {
            return Ok(Self::nothing(plan));
        };
        let beside = tempfile::tempdir().map_err(Error::Folder)?;
        let checkout = Checkout::open(repository, self.branch.as_deref(), &beside.path().join("checkout"))?;
        let made = self.make_in(&checkout, plan);
        // Whatever became of it, nothing is left behind.
        let closed = checkout.close();
        let made = made?;
        closed?;
        Ok(made)
    }

    fn make_in(&self, checkout: &Checkout, plan: &Reviewed) -> Result<Committed, Failure> {
        let edit = self.edit(&checkout.files()?, plan).map_err(Error::Source)?;
        let Some(edit) = edit else { return Ok(Self::nothing(plan)) };
        let commit = checkout.commit(&changed(&edit, plan), &message(&edit, plan))?;
        let pushed_to = if self.push { Some(checkout.push()?) } else { None };
        Ok(Committed { commit: Some(commit), to: edit.to, place: Some(edit.place.to_string()), pushed_to })
    }

    fn nothing(plan: &Reviewed) -> Committed {
        let to = plan.asks.first().map(|(_, to)| to.clone()).unwrap_or_default();
        Committed { commit: None, to, place: None, pushed_to: None }
    }

    /// The change of the first field that the files have.
    fn edit(&self, files: &[File], plan: &Reviewed) -> Result<Option<Edit>, SourceError> {
        let mut missing = None;
        for (trigger, to) in &plan.asks {
            let wish = Wish { cluster: &plan.subject, trigger: *trigger, to, only: self.file.as_deref() };
            match source::edit(files, &wish) {
                Err(refusal @ SourceError::NoField { .. }) => missing = Some(refusal),
                found => return found,
            }
        }
        missing.map_or(Ok(None), Err)
    }
}

/// The file with the line, and the plan beside it.
fn changed(edit: &Edit, plan: &Reviewed) -> Vec<File> {
    let folder = edit.place.path.rsplit_once('/').map(|(folder, _)| format!("{folder}/")).unwrap_or_default();
    let path = format!("{folder}{}.plan.md", plan.subject.name);
    vec![File { path: edit.place.path.clone(), text: edit.text.clone() }, File { path, text: plan.markdown.clone() }]
}

fn message(edit: &Edit, plan: &Reviewed) -> String {
    format!("Upgrade {} from {} to {}\n\n{}\n", plan.subject, edit.from, edit.to, plan.text)
}

/// It cannot be asked for by a commit.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error("no folder can be made to work in")]
    Folder(#[source] std::io::Error),
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Source(_) => Kind::User,
            Self::Folder(_) => Kind::Environment,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Source(SourceError::Ambiguous { places }) => {
                places.first().map(|place| format!("--file {}", place.path))
            }
            Self::Source(SourceError::NoCluster { .. }) => {
                Some("--commit with the repository of the cluster".to_owned())
            }
            Self::Source(_) | Self::Folder(_) => None,
        }
    }
}
