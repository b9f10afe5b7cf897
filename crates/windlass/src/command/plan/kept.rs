//! A plan in a file: what was reviewed, to be done later or not at all.

use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::Serialize;
use serde_json::Value;
use windlass_api::name::{ClusterName, NameError, Namespace};
use windlass_api::version::{VersionError, VersionPrefix};

use super::Planned;
use crate::error::{Explained, Kind};
use crate::output::Document;

/// What is in the file: a plan of a cluster whose updates are on record, or of one of a class.
const KINDS: [&str; 2] = ["PlanReport", "ClassPlanReport"];

/// A plan that was kept.
pub struct Kept {
    pub cluster: ClusterName,
    pub namespace: Namespace,
    pub to: VersionPrefix,
    /// What the update may do.
    pub envelope_digest: String,
    /// The whole, as it was reviewed.
    report: Value,
}

/// Keeps a plan.
pub fn write(path: &Path, kind: &'static str, report: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(&Document::new(kind, report)).map_err(Error::Malformed)?;
    fs::write(path, text + "\n").map_err(|source| Error::Write { path: path.to_owned(), source })
}

/// Reads one that was kept.
pub fn read(path: &Path) -> Result<Kept, Error> {
    let text = fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    let found: Value = serde_json::from_str(&text).map_err(Error::Malformed)?;
    let field = |name: &'static str| found[name].as_str().ok_or(Error::Missing { field: name });
    if !KINDS.contains(&field("kind")?) {
        return Err(Error::Missing { field: "kind" });
    }
    Ok(Kept {
        cluster: field("cluster")?.parse().map_err(Error::Name)?,
        namespace: field("namespace")?.parse().map_err(Error::Name)?,
        to: field("to")?.parse().map_err(Error::Version)?,
        envelope_digest: field("envelopeDigest")?.to_owned(),
        report: found,
    })
}

impl Kept {
    /// What is not as it was reviewed, if anything.
    pub fn differs(&self, now: &Planned) -> Option<String> {
        let digest = now.envelope_digest();
        if digest != Some(self.envelope_digest.as_str()) {
            let found = digest.unwrap_or("none at all");
            return Some(format!("the envelope is {found}, and {} was reviewed", self.envelope_digest));
        }
        match now {
            Planned::Change(now) => self.differs_in_fields(&serde_json::to_value(&now.change).unwrap_or_default()),
            Planned::OfClass(now) => self.differs_in_stages(&serde_json::to_value(now).unwrap_or_default()),
        }
    }

    /// What is said of the stages of a cluster of a class. What they wait for is no part of what was reviewed.
    fn differs_in_stages(&self, now: &Value) -> Option<String> {
        let changes = |report: &Value| -> Vec<Value> {
            let stages = report["stages"].as_array().into_iter().flatten();
            stages.flat_map(|stage| stage["changes"].as_array().cloned().unwrap_or_default()).collect()
        };
        let (then, now) = (changes(&self.report), changes(now));
        let new = now.iter().find(|change| !then.contains(change)).and_then(Value::as_str);
        let new = new.map(|change| format!("{change} is not what was reviewed"));
        new.or_else(|| (then != now).then(|| "less is to be changed than was reviewed".to_owned()))
    }

    fn differs_in_fields(&self, change: &Value) -> Option<String> {
        let reviewed = &self.report["change"];
        let moved = |field: &Value| {
            let known = reviewed["changes"].as_array().is_some_and(|known| known.contains(field));
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
        new.or_else(|| (change != reviewed).then(|| "less is to be changed than was reviewed".to_owned()))
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
