//! A plan in a file: what was reviewed, to be done later or not at all.

use std::path::{Path, PathBuf};
use std::{fs, io};

use serde_json::Value;
use windlass_api::name::{ClusterName, NameError, Namespace};
use windlass_api::version::{VersionError, VersionPrefix};

use super::PlanReport;
use crate::error::{Explained, Kind};
use crate::output::Document;

/// What is in the file.
const KIND: &str = "PlanReport";

/// A plan that was kept.
pub struct Kept {
    pub cluster: ClusterName,
    pub namespace: Namespace,
    pub to: VersionPrefix,
    /// What the update may do.
    pub envelope_digest: String,
    /// What differed when it was reviewed, field by field.
    change: Value,
}

/// Keeps a plan.
pub fn write(path: &Path, report: &PlanReport) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(&Document::new(KIND, report)).map_err(Error::Malformed)?;
    fs::write(path, text + "\n").map_err(|source| Error::Write { path: path.to_owned(), source })
}

/// Reads one that was kept.
pub fn read(path: &Path) -> Result<Kept, Error> {
    let text = fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    let found: Value = serde_json::from_str(&text).map_err(Error::Malformed)?;
    let field = |name: &'static str| found[name].as_str().ok_or(Error::Missing { field: name });
    if field("kind")? != KIND {
        return Err(Error::Missing { field: "kind" });
    }
    Ok(Kept {
        cluster: field("cluster")?.parse().map_err(Error::Name)?,
        namespace: field("namespace")?.parse().map_err(Error::Name)?,
        to: field("to")?.parse().map_err(Error::Version)?,
        envelope_digest: field("envelopeDigest")?.to_owned(),
        change: found["change"].clone(),
    })
}

impl Kept {
    /// What is not as it was reviewed, if anything.
    pub fn differs(&self, now: &PlanReport) -> Option<String> {
        if now.envelope_digest != self.envelope_digest {
            return Some(format!("the envelope is {}, and {} was reviewed", now.envelope_digest, self.envelope_digest));
        }
        let change = serde_json::to_value(&now.change).unwrap_or_default();
        let moved = |field: &Value| {
            let known = self.change["changes"].as_array().is_some_and(|known| known.contains(field));
            (!known).then(|| {
                format!(
                    "{} of the {}",
                    field["field"].as_str().unwrap_or("a field"),
                    field["role"].as_str().unwrap_or("cluster")
                )
            })
        };
        let new = change["changes"].as_array().into_iter().flatten().find_map(moved);
        let new = new.map(|field| format!("{field} is not what it was"));
        new.or_else(|| (change != self.change).then(|| "less is to be changed than was reviewed".to_owned()))
    }
}

/// The file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot write the plan to {}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot read the plan {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("the file is no plan")]
    Malformed(#[source] serde_json::Error),
    #[error("the file is no plan: {field} is not what it should be")]
    Missing { field: &'static str },
    #[error("the file is no plan: it names no cluster")]
    Name(#[source] NameError),
    #[error("the file is no plan: it names no release")]
    Version(#[source] VersionError),
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Write { .. } | Self::Read { .. } => Kind::Environment,
            Self::Malformed(_) | Self::Missing { .. } | Self::Name(_) | Self::Version(_) => Kind::User,
        }
    }

    fn hint(&self) -> Option<String> {
        Some("windlass plan CLUSTER --to RELEASE --out FILE".to_owned())
    }
}
