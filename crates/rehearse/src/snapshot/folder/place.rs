//! Puts files into a folder so that it has all of them or is as it was before.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use windlass_apiserver::private;

use super::error::SaveError;
use super::{HEAD, MANAGEMENT, WORKLOADS};

/// Writes the files into a folder beside its place, and then puts it there.
pub(super) fn replace(dir: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) -> Result<(), SaveError> {
    let there = vacant(dir)?;
    let [new, old] = [beside(dir, "new")?, beside(dir, "old")?];
    let written = write_all(&new, files).and_then(|()| swap(dir, &new, &old, there));
    if written.is_err() && new.exists() {
        // What went wrong is told; that a rest of it stays would only be told instead.
        drop(fs::remove_dir_all(&new));
    }
    written
}

/// Whether there is a folder that may be replaced: one that is empty, or a snapshot and nothing else.
pub(super) fn vacant(dir: &Path) -> Result<bool, SaveError> {
    let occupied = |found: String| SaveError::Occupied { dir: dir.to_owned(), found };
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Err(occupied("a file".to_owned())),
        Err(source) => return Err(SaveError::Write { path: dir.to_owned(), source }),
    };
    let names = entries.map(|entry| entry.map(|entry| entry.file_name()));
    let mut names: Vec<OsString> =
        names.collect::<Result<_, _>>().map_err(|source| SaveError::Write { path: dir.to_owned(), source })?;
    names.sort();
    let is_ours = |name: &&OsString| [HEAD, MANAGEMENT, WORKLOADS].iter().any(|ours| name.as_os_str() == *ours);
    if let Some(other) = names.iter().find(|name| !is_ours(name)) {
        return Err(occupied(format!("{} in it", other.display())));
    }
    if !names.is_empty() && !names.iter().any(|name| name.as_os_str() == HEAD) {
        return Err(occupied(format!("no {HEAD}")));
    }
    Ok(true)
}

/// A hidden folder in the same one, of this process alone.
fn beside(dir: &Path, what: &str) -> Result<PathBuf, SaveError> {
    let name = dir.file_name().ok_or_else(|| SaveError::NoName(dir.to_owned()))?;
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}.{what}", std::process::id()));
    let path = dir.with_file_name(hidden);
    // No other process of this id is alive: it is what one left that was killed.
    match fs::remove_dir_all(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(SaveError::Write { path, source: error }),
        _ => Ok(path),
    }
}

fn write_all(new: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) -> Result<(), SaveError> {
    make_folder(new)?;
    make_folder(&new.join(WORKLOADS))?;
    for (file, content) in files {
        let path = new.join(file);
        private::write_file(&path, content).map_err(|source| SaveError::Write { path, source })?;
    }
    Ok(())
}

/// The old folder goes out of the way first, and comes back if the new one cannot take its place.
fn swap(dir: &Path, new: &Path, old: &Path, there: bool) -> Result<(), SaveError> {
    let failed = |source| SaveError::Write { path: dir.to_owned(), source };
    if there {
        fs::rename(dir, old).map_err(failed)?;
    }
    if let Err(source) = fs::rename(new, dir) {
        if there {
            fs::rename(old, dir).map_err(failed)?;
        }
        return Err(failed(source));
    }
    if there {
        fs::remove_dir_all(old).map_err(|source| SaveError::Write { path: old.to_owned(), source })?;
    }
    // Or a crash of the machine could undo the new name.
    let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent).and_then(|parent| parent.sync_all()).map_err(failed)
}

fn make_folder(path: &Path) -> Result<(), SaveError> {
    private::make_folder(path).map_err(|source| SaveError::Write { path: path.to_owned(), source })
}
