//! `windlass replay`: one run of a rehearsal again, exactly as it was.

use std::io;
use std::path::{Path, PathBuf};

use clap::Parser as _;
use windlass_rehearse::rehearsal;
use windlass_rehearse::replay::Run;
use windlass_rehearse::snapshot::{LoadError, Snapshot};
use windlass_runtime::chance::Seed;

use super::rehearse::{Rehearse, restore};
use crate::error::{Exit, Explained, Failure, Kind};
use crate::output::{self, Document, Format};

/// Repeat one run of a rehearsal exactly: the same start, seed and faults
///
/// Takes a file that `rehearse --keep` has written, or the line of a report that begins with `windlass rehearse`. Of a file it
/// says whether it came out the same.
#[derive(clap::Args)]
pub struct Replay {
    /// A file, or the line
    #[arg(value_name = "FILE|LINE", required = true)]
    what: Vec<String>,
    /// The snapshot that the run starts from [default: the folder `snapshot` beside the file]
    #[arg(long, value_name = "DIR")]
    from: Option<PathBuf>,
    /// Write it as a document instead, for scripts
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Format>,
}

/// A line, as it is read again.
#[derive(clap::Parser)]
#[command(name = "rehearse")]
struct Line {
    #[command(flatten)]
    rehearse: Rehearse,
}

impl Replay {
    /// Repeats it.
    pub fn run(self) -> Result<Exit, Failure> {
        let words: Vec<&str> = self.what.iter().flat_map(|word| word.split_whitespace()).collect();
        match words.as_slice() {
            ["windlass", "rehearse", ..] => line(&words[1..]),
            _ => self.file(),
        }
    }

    fn file(&self) -> Result<Exit, Failure> {
        let path = PathBuf::from(self.what.join(" "));
        let text = std::fs::read_to_string(&path).map_err(|source| Error::Read { path: path.clone(), source })?;
        let run: Run = serde_json::from_str(&text).map_err(|source| Error::Run { path: path.clone(), source })?;
        let folder = self.from.clone().unwrap_or_else(|| path.parent().unwrap_or(Path::new("")).join("snapshot"));
        let snapshot = Snapshot::load(&folder).map_err(Error::Load)?;
        let world = restore(&snapshot, Seed(run.seed))?;
        let replayed = run.replay(&world).map_err(Error::Rehearse)?;
        let exit = if replayed.same { Exit::Done } else { Exit::OperationFailed };
        if let Some(format) = self.output {
            output::document(format, &Document::new("ReplayReport", replayed))?;
            return Ok(exit);
        }
        let same = if replayed.same {
            "✔ the same, to the byte".to_owned()
        } else {
            format!("✖ not the same: it was {}", replayed.was)
        };
        output::data(&format!("{}\n{same}", replayed.run.text()))?;
        Ok(exit)
    }
}

/// The command that a line is, read by its own rules.
fn line(words: &[&str]) -> Result<Exit, Failure> {
    let words: Vec<String> = words.iter().map(|word| word.trim_matches('\'').to_owned()).collect();
    match Line::try_parse_from(words) {
        Ok(line) => line.rehearse.run(),
        Err(error) => Err(Error::Line { why: error.kind().to_string() }.into()),
    }
}

/// Nothing was repeated.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {path:?}")]
    Read { path: PathBuf, source: io::Error },
    #[error("{path:?} is not a run that was kept")]
    Run { path: PathBuf, source: serde_json::Error },
    #[error("cannot use the snapshot of the run")]
    Load(#[source] LoadError),
    #[error("cannot rehearse")]
    Rehearse(#[source] rehearsal::Error),
    #[error("the line cannot be read: {why}")]
    Line { why: String },
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Rehearse(_) => Kind::Internal,
            Self::Read { .. } | Self::Run { .. } | Self::Load(_) | Self::Line { .. } => Kind::User,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Read { .. } | Self::Run { .. } => {
                "the path of a .run.json that windlass rehearse --keep DIR has written".to_owned()
            }
            Self::Load(_) => "--from with the folder of its snapshot".to_owned(),
            Self::Rehearse(_) => "the same again, and a report of this".to_owned(),
            Self::Line { .. } => "the whole line of the report, between quotes".to_owned(),
        })
    }
}
