//! A snapshot as a folder of files that people can read.
//!
//! ```text
//! DIR/snapshot.json                    what it is: format, version, when, by what, gaps, and how much the other files have
//! DIR/management.jsonl                 the objects of the management cluster, one on each line
//! DIR/workloads/NAMESPACE.NAME.jsonl   those of a workload cluster
//! ```
//! The same snapshot gives the same bytes. A folder is written beside its place and then put there, so that nobody ever reads
//! half of one; only its owner can read it.

mod error;
mod place;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_api::name::NamespacedName;

use super::{EtcdMember, Gap, Snapshot, WorkloadSnapshot, sort};
pub use error::{LoadError, SaveError};

/// What tells a snapshot from other folders.
const FORMAT: &str = "windlass-snapshot";
/// The version of the format. Whoever changes what is in a folder raises it.
const VERSION: u64 = 2;

const HEAD: &str = "snapshot.json";
const MANAGEMENT: &str = "management.jsonl";
const WORKLOADS: &str = "workloads";

/// What is in `snapshot.json`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Head {
    format: String,
    version: u64,
    taken_at: Timestamp,
    taken_by: String,
    management: ManagementHead,
    workloads: Vec<WorkloadHead>,
    gaps: Vec<Gap>,
}

/// How many objects there are: a file that was cut off has fewer.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ManagementHead {
    objects: usize,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WorkloadHead {
    cluster: NamespacedName,
    objects: usize,
    members: Vec<EtcdMember>,
}

/// The file of a workload cluster. A namespace has no dot in it, so no two clusters have the same.
fn file_of(cluster: &NamespacedName) -> PathBuf {
    Path::new(WORKLOADS).join(format!("{}.{}.jsonl", cluster.namespace, cluster.name))
}

impl Snapshot {
    /// Writes it as a folder. An older snapshot in that place is replaced; anything else is left alone, and an error.
    pub fn save(&self, dir: &Path) -> Result<(), SaveError> {
        place::replace(dir, &self.files()?)
    }

    /// Whether a snapshot can be written there: a folder that is not there yet, is empty, or is a snapshot. For whoever wants
    /// to know before they read the clusters.
    pub fn may_save(dir: &Path) -> Result<(), SaveError> {
        place::vacant(dir).map(drop)
    }

    /// The files by their paths in the folder.
    fn files(&self) -> Result<BTreeMap<PathBuf, Vec<u8>>, SaveError> {
        let workloads = self.workloads.iter().map(|(cluster, workload)| WorkloadHead {
            cluster: cluster.clone(),
            objects: workload.objects.len(),
            members: workload.members.clone(),
        });
        let head = Head {
            format: FORMAT.to_owned(),
            version: VERSION,
            taken_at: self.taken_at,
            taken_by: self.taken_by.clone(),
            management: ManagementHead { objects: self.management.len() },
            workloads: workloads.collect(),
            gaps: self.gaps.clone(),
        };
        let mut head = serde_json::to_vec_pretty(&head).map_err(SaveError::Encode)?;
        head.push(b'\n');
        let mut files = BTreeMap::from([(HEAD.into(), head), (MANAGEMENT.into(), lines(&self.management)?)]);
        for (cluster, workload) in &self.workloads {
            files.insert(file_of(cluster), lines(&workload.objects)?);
        }
        Ok(files)
    }

    /// Reads a folder that [`Snapshot::save`] has written.
    pub fn load(dir: &Path) -> Result<Self, LoadError> {
        let head = head(dir)?;
        let management = objects(dir, Path::new(MANAGEMENT), head.management.objects)?;
        let mut workloads = BTreeMap::new();
        for WorkloadHead { cluster, objects: count, members } in head.workloads {
            let objects = objects(dir, &file_of(&cluster), count)?;
            if workloads.insert(cluster.clone(), WorkloadSnapshot { objects, members }).is_some() {
                return Err(LoadError::Twice { file: dir.join(HEAD), cluster });
            }
        }
        let Head { taken_at, taken_by, gaps, .. } = head;
        Ok(Self { taken_at, taken_by, management, workloads, gaps })
    }
}

/// An object on each line, in the order of their places.
fn lines(objects: &[Value]) -> Result<Vec<u8>, SaveError> {
    let mut sorted = objects.to_vec();
    sort(&mut sorted);
    let mut bytes = Vec::new();
    for object in &sorted {
        serde_json::to_writer(&mut bytes, object).map_err(SaveError::Encode)?;
        bytes.push(b'\n');
    }
    Ok(bytes)
}

fn read(file: &Path) -> Result<String, LoadError> {
    fs::read_to_string(file).map_err(|source| LoadError::Read { file: file.to_owned(), source })
}

/// What the folder says about itself: first whether it is a snapshot at all, then of which version, then the rest.
fn head(dir: &Path) -> Result<Head, LoadError> {
    let file = dir.join(HEAD);
    let text = match fs::read_to_string(&file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(if dir.exists() {
                LoadError::Foreign(dir.to_owned())
            } else {
                LoadError::Absent(dir.to_owned())
            });
        }
        read => read.map_err(|source| LoadError::Read { file: file.clone(), source })?,
    };
    let decode = |source| LoadError::Head { file: file.clone(), source };
    let value: Value = serde_json::from_str(&text).map_err(decode)?;
    if value["format"] != FORMAT {
        return Err(LoadError::Format { file, found: value["format"].clone() });
    }
    if value["version"] != VERSION {
        let taken_by = value["takenBy"].as_str().unwrap_or("another program").to_owned();
        return Err(LoadError::Version { file, found: value["version"].clone(), taken_by });
    }
    serde_json::from_str(&text).map_err(decode)
}

/// The objects of a file, of which there must be as many as were written.
fn objects(dir: &Path, file: &Path, expected: usize) -> Result<Vec<Value>, LoadError> {
    let file = dir.join(file);
    let mut objects = Vec::with_capacity(expected.min(1 << 16));
    for (line, text) in (1..).zip(read(&file)?.lines()) {
        let object: Value =
            serde_json::from_str(text).map_err(|source| LoadError::Line { file: file.clone(), line, source })?;
        let missing = ["/apiVersion", "/kind", "/metadata/name"]
            .into_iter()
            .find(|field| object.pointer(field).and_then(Value::as_str).is_none_or(str::is_empty));
        if let Some(field) = missing {
            let field = field.trim_start_matches('/').replace('/', ".");
            return Err(LoadError::Object { file, line, field });
        }
        objects.push(object);
    }
    if objects.len() != expected {
        return Err(LoadError::Count { file, found: objects.len(), expected });
    }
    sort(&mut objects);
    Ok(objects)
}

#[cfg(test)]
mod tests;
