//! What a data directory holds: the newest checkpoint, and the changes after it.
//!
//! What comes out is a prefix of what went in, with all that was ever acknowledged; or an error, and then nothing was changed.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::sync::Arc;

use super::disk::Disk;
use super::files::{Name, Read1, Reader, What};
use super::key::Keys;
use super::record::{Place, Record};
use super::seal::{HEADER_BYTES, Sort, Unusable};
use super::tables::{Kept, Places};
use crate::store::{Change, Recovered, Resource};

/// Why a data directory cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// The disk says no.
    #[error("cannot read the data directory")]
    Io(#[from] io::Error),
    /// No key that was given opens a file.
    #[error("{file} was sealed with another key than those in the key file")]
    OtherKey {
        /// Which file.
        file: String,
    },
    /// A later version wrote it.
    #[error("{file} has version {version} of the format; this Windlass reads version 1")]
    Version {
        /// Which file.
        file: String,
        /// Its version.
        version: u32,
    },
    /// It is not as it was written, so that something that was acknowledged would be missing.
    #[error("{file} is damaged: {why}")]
    Damaged {
        /// Which file.
        file: String,
        /// What is wrong.
        why: String,
    },
}

/// What was found.
pub(super) struct Found {
    pub(super) places: Places,
    pub(super) stores: BTreeMap<Place, Recovered>,
    /// The number of the next frame.
    pub(super) next_frame: u64,
    /// Of the next file.
    pub(super) next_serial: u64,
    /// All files that were there.
    pub(super) files: Vec<Name>,
    /// How many logs there were after the checkpoint.
    pub(super) logs: usize,
    /// All of them were sealed with the first key.
    pub(super) is_current: bool,
}

/// The history since the checkpoint, of each place.
#[derive(Default)]
struct History(BTreeMap<Place, Since>);

/// The revision that it begins after, and what happened.
type Since = (u64, Vec<(Resource, Arc<Change>)>);

fn damaged(name: Name, why: impl Into<String>) -> RecoverError {
    RecoverError::Damaged { file: name.to_string(), why: why.into() }
}

/// Reads all of it, and makes sure that what was read stays.
pub(super) fn recover(disk: &dyn Disk, keys: &Keys) -> Result<Found, RecoverError> {
    let mut files: Vec<Name> = disk.names()?.iter().filter_map(|name| Name::parse(name)).collect();
    files.sort_unstable();
    let Newest { mut places, after, mut next, mut is_current } = newest_checkpoint(disk, keys, &files)?;
    let mut history = History::default();
    for (place, kept) in &places {
        history.0.insert(place.clone(), (kept.revision, Vec::new()));
    }
    let logs = open_logs(disk, keys, files.iter().filter(|name| name.what == What::Log && name.serial > after))?;
    let firsts: Vec<u64> = logs.iter().map(|(_, log)| log.header.first).collect();
    let count = logs.len();
    for (index, (name, log)) in logs.into_iter().enumerate() {
        is_current &= log.header.is_current;
        // What a later log has again was never acknowledged when it was written here.
        let until = firsts[index + 1..].iter().copied().min().unwrap_or(u64::MAX);
        if log.header.first > next {
            return Err(damaged(name, format!("the changes {next} to {} before it are missing", log.header.first - 1)));
        }
        next = next.max(read_log((name, log), next, until, (&mut places, &mut history))?);
    }
    // A process that was killed may have written what it had no time to sync, and now it counts.
    for name in files.iter().filter(|name| name.what == What::Log && name.serial > after) {
        disk.sync(&name.to_string())?;
    }
    disk.sync_names()?;
    let stores = stores(&places, history);
    let next_serial = files.last().map_or(0, |name| name.serial) + 1;
    Ok(Found { places, stores, next_frame: next, next_serial, files, logs: count, is_current })
}

fn stores(places: &Places, mut history: History) -> BTreeMap<Place, Recovered> {
    let recovered = |(place, kept): (&Place, &Kept)| {
        let (horizon, changes) = history.0.remove(place).unwrap_or_default();
        (place.clone(), kept.recovered(horizon, changes))
    };
    places.iter().map(recovered).collect()
}

/// Where the logs go on from.
struct Newest {
    places: Places,
    /// Only logs with a higher serial number count.
    after: u64,
    /// The number of the frame after it.
    next: u64,
    is_current: bool,
}

/// The newest checkpoint that is whole.
fn newest_checkpoint(disk: &dyn Disk, keys: &Keys, files: &[Name]) -> Result<Newest, RecoverError> {
    let mut first_error = None;
    for name in files.iter().rev().filter(|name| name.what == What::Checkpoint) {
        match read_checkpoint(disk, keys, *name) {
            Ok((places, last, is_current)) => {
                return Ok(Newest { places, after: name.serial, next: last + 1, is_current });
            }
            // The one before it, with all logs since, says the same. If it is there: if not, the logs have a gap.
            Err(error @ RecoverError::Damaged { .. }) => first_error = first_error.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    let begins = files.iter().any(|name| name.what == What::Log && name.serial == 1);
    match first_error {
        Some(error) if !begins => Err(error),
        _ => Ok(Newest { places: Places::new(), after: 0, next: 1, is_current: true }),
    }
}

fn read_checkpoint(disk: &dyn Disk, keys: &Keys, name: Name) -> Result<(Places, u64, bool), RecoverError> {
    let mut reader = match Reader::open(disk, keys, name)? {
        Ok(reader) if reader.header.sort == Sort::Checkpoint => reader,
        Ok(_) => return Err(damaged(name, "it is no checkpoint")),
        Err(unusable) => return Err(unusable_file(name, unusable)),
    };
    let mut places = Places::new();
    let mut current: Option<(Place, Kept)> = None;
    for number in 1.. {
        let Read1::Frame(records) = reader.next(number)? else {
            return Err(damaged(name, "its end is missing"));
        };
        for record in records {
            match record {
                Record::Place { place, revision, draws, at } => {
                    places.extend(current.take());
                    current = Some((place, Kept { revision, draws, at, ..Kept::default() }));
                }
                Record::Object(object) => {
                    let Some((_, kept)) = &mut current else {
                        return Err(damaged(name, "an object belongs to no store"));
                    };
                    let (resource, entry) = object.into_entry();
                    kept.put(&resource, entry);
                }
                Record::End => {
                    places.extend(current.take());
                    return Ok((places, reader.header.first, reader.header.is_current));
                }
                Record::Change { .. } | Record::Forget(_) => return Err(damaged(name, "a change is in it")),
            }
        }
    }
    Err(damaged(name, "its end is missing"))
}

fn unusable_file(name: Name, unusable: Unusable) -> RecoverError {
    match unusable {
        Unusable::OtherKey => RecoverError::OtherKey { file: name.to_string() },
        Unusable::Version(version) => RecoverError::Version { file: name.to_string(), version },
        Unusable::Short => damaged(name, "its beginning is missing"),
        Unusable::Damaged => damaged(name, "its beginning is another than was written"),
    }
}

/// Opens the logs. A header is synced before anything is written after it: one that cannot be used, in a file that has nothing
/// else, is that of a file which came to nothing. What is left of it may look like anything.
fn open_logs<'a>(
    disk: &dyn Disk,
    keys: &Keys,
    names: impl Iterator<Item = &'a Name>,
) -> Result<Vec<(Name, Reader)>, RecoverError> {
    let mut logs = Vec::new();
    for name in names {
        match Reader::open(disk, keys, *name)? {
            Ok(log) if log.header.sort == Sort::Log => logs.push((*name, log)),
            Ok(_) => return Err(damaged(*name, "it is no log")),
            Err(Unusable::Short) => {}
            Err(unusable) if is_longer_than_a_header(disk, *name)? => return Err(unusable_file(*name, unusable)),
            Err(_) => {}
        }
    }
    Ok(logs)
}

fn is_longer_than_a_header(disk: &dyn Disk, name: Name) -> io::Result<bool> {
    let mut input = disk.open(&name.to_string())?;
    let mut beginning = Vec::new();
    input.by_ref().take(HEADER_BYTES as u64 + 1).read_to_end(&mut beginning)?;
    Ok(beginning.len() > HEADER_BYTES)
}

/// Takes the frames of a log from `next` on, but for those from `until` on. Returns the number after the last one.
fn read_log(
    (name, mut log): (Name, Reader),
    next: u64,
    until: u64,
    (places, history): (&mut Places, &mut History),
) -> Result<u64, RecoverError> {
    let mut number = log.header.first;
    while number < until {
        let records = match log.next(number)? {
            Read1::Frame(records) => records,
            Read1::End => break,
            Read1::Damaged => {
                return Err(damaged(name, format!("change {number} of it cannot be read, and later ones can")));
            }
        };
        if number >= next {
            for record in records {
                take(record, places, history).ok_or_else(|| damaged(name, "part of a checkpoint is in it"))?;
            }
        }
        number += 1;
    }
    Ok(number)
}

fn take(record: Record, places: &mut Places, history: &mut History) -> Option<()> {
    match record {
        Record::Forget(place) => {
            places.remove(&place);
            history.0.remove(&place);
        }
        Record::Change { place, kind, at, draws, object } => {
            let (resource, entry) = object.into_entry();
            let kept = places.entry(place.clone()).or_default();
            let previous = kept.change(&resource, kind, &entry, (at, draws));
            let change = Arc::new(Change { kind, revision: entry.revision, at, object: entry, previous });
            history.0.entry(place).or_default().1.push((resource, change));
        }
        Record::Place { .. } | Record::Object(_) | Record::End => return None,
    }
    Some(())
}
