//! `windlass snapshot`: clusters as they are now, kept in a folder: to rehearse from, to compare, to hand on.

mod text;

use std::path::PathBuf;

use serde::Serialize;
use windlass_rehearse::snapshot::{self, LoadError, SaveError, SnapshotDiff, SnapshotSummary};

use crate::client::Connection;
use crate::error::{Exit, Explained, Failure, Kind};
use crate::output::{self, Document, Format};
use crate::snapshot::{read, wall_now};

use super::block_on;

/// Keep what a rehearsal starts from: a management cluster and its workload clusters, without what is secret
#[derive(clap::Subcommand)]
pub enum Snapshot {
    Take(Take),
    Load(Load),
    Diff(Diff),
}

/// Read the clusters once, and write what was read into a folder
///
/// Only reads are made. What is secret is left out: the data of Secrets, credentials in pods and in what configures them, and
/// what machines are told when they boot. What cannot be read is named, with a way out. A snapshot in that folder is replaced; anything else
/// is left alone.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  windlass snapshot take -o monday")]
pub struct Take {
    /// The folder
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    #[command(flatten)]
    connection: Connection,
}

/// Read a snapshot back, check it, and show what is in it
#[derive(clap::Args)]
#[command(after_help = "Example:\n  windlass snapshot load monday")]
pub struct Load {
    /// The folder
    dir: PathBuf,
    /// Write it as a document instead, for scripts
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Format>,
}

/// Show what has changed from one snapshot to another, field by field
///
/// What changes by itself is left out: versions of objects, and times at which somebody has looked. Ends with code 2 if
/// something has changed.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  windlass snapshot diff monday tuesday")]
pub struct Diff {
    /// The folder of the earlier one
    before: PathBuf,
    /// The folder of the later one
    after: PathBuf,
    /// Write it as a document instead, for scripts
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Format>,
}

impl Snapshot {
    /// Takes, shows or compares.
    pub fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Take(take) => block_on(take.run()),
            Self::Load(load) => load.run(),
            Self::Diff(diff) => diff.run(),
        }
    }
}

impl Take {
    async fn run(self) -> Result<Exit, Failure> {
        snapshot::Snapshot::may_save(&self.output).map_err(Error::Save)?;
        let management = self.connection.open().await?;
        let snapshot = read(&management).await?;
        snapshot.save(&self.output).map_err(Error::Save)?;
        output::data(&text::taken(&self.output, &snapshot.summary()))?;
        output::note(&format!("Next: windlass snapshot load {}", self.output.display()));
        Ok(Exit::Done)
    }
}

/// What `snapshot load -o` writes.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Loaded {
    age_seconds: i64,
    #[serde(flatten)]
    summary: SnapshotSummary,
}

impl Load {
    fn run(self) -> Result<Exit, Failure> {
        let summary = load(&self.dir)?.summary();
        // A cluster that lives faster than we do is ahead of us.
        let age = wall_now().duration_since(summary.taken_at).max(jiff::SignedDuration::ZERO);
        match self.output {
            Some(format) => {
                let loaded = Loaded { age_seconds: age.as_secs(), summary };
                output::document(format, &Document::new("SnapshotSummary", loaded))?;
            }
            None => output::data(&text::summary(&self.dir, &summary, age))?,
        }
        Ok(Exit::Done)
    }
}

impl Diff {
    fn run(self) -> Result<Exit, Failure> {
        let [before, after] = [load(&self.before)?, load(&self.after)?];
        let diff: SnapshotDiff = before.diff(&after);
        match self.output {
            Some(format) => output::document(format, &Document::new("SnapshotDiff", &diff))?,
            None => output::data(&text::diff(&diff))?,
        }
        Ok(if diff.is_empty() { Exit::Done } else { Exit::Changes })
    }
}

fn load(dir: &std::path::Path) -> Result<snapshot::Snapshot, Error> {
    snapshot::Snapshot::load(dir).map_err(Error::Load)
}

/// A folder that could not be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot write the snapshot")]
    Save(#[source] SaveError),
    #[error("cannot read the snapshot")]
    Load(#[source] LoadError),
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Save(SaveError::Encode(_)) => Kind::Internal,
            Self::Save(SaveError::Write { .. }) | Self::Load(LoadError::Read { .. }) => Kind::Environment,
            Self::Save(_) | Self::Load(_) => Kind::User,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Save(error) => error.way_out(),
            Self::Load(error) => error.way_out(),
        })
    }
}
