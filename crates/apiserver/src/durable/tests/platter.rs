//! A disk that forgets what was not synced, tears what was written last at any byte, and fails when it is told to.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard};

use super::super::disk::{Disk, File};
use super::Dice;

/// Cheap to clone: clones are the same disk.
#[derive(Clone)]
pub(super) struct Platter(Arc<Mutex<State>>);

struct State {
    dice: Dice,
    files: BTreeMap<u64, Content>,
    names: BTreeMap<String, u64>,
    /// Names as they survive.
    durable_names: BTreeMap<String, u64>,
    /// What was done to names since then.
    pending: Vec<Renaming>,
    next: u64,
    faults: Faults,
}

#[derive(Clone)]
enum Renaming {
    Create(String, u64),
    Rename(String, String),
    Remove(String),
}

#[derive(Default, Clone)]
struct Content {
    durable: Vec<u8>,
    now: Vec<u8>,
}

/// What goes wrong, each with the chance of one in so many; never with 0.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Faults {
    /// A write takes only some bytes, and says how many.
    pub(super) short: u64,
    /// A write takes some bytes, and fails.
    pub(super) write: u64,
    /// There is no room; some bytes may have been taken.
    pub(super) full: u64,
    /// A sync fails, and what was to be synced may be lost, although it can still be read.
    pub(super) sync: u64,
    /// A sync succeeds, and has done nothing.
    pub(super) lie: u64,
    /// Names cannot be changed or synced.
    pub(super) names: u64,
}

impl Platter {
    pub(super) fn new(seed: u64, faults: Faults) -> Self {
        Self(Arc::new(Mutex::new(State {
            dice: Dice::new(seed),
            files: BTreeMap::new(),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            pending: Vec::new(),
            next: 0,
            faults,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    pub(super) fn set(&self, faults: Faults) {
        self.state().faults = faults;
    }

    /// The power fails. Of what was not synced, some is there and some is not.
    pub(super) fn cut_power(&self) {
        let mut state = self.state();
        let state = &mut *state;
        let kept = state.dice.index(state.pending.len() + 1);
        let mut names = std::mem::take(&mut state.durable_names);
        for renaming in state.pending.drain(..).take(kept) {
            apply(&mut names, renaming);
        }
        state.durable_names = names.clone();
        state.names = names;
        for content in state.files.values_mut() {
            content.crash(&mut state.dice);
        }
    }

    /// A bit of a file is another than it was. The file's name, and how many bytes it had.
    pub(super) fn flip(&self) -> Option<(String, usize, usize)> {
        let mut state = self.state();
        let state = &mut *state;
        let names: Vec<String> = state.names.keys().cloned().collect();
        let name = names.get(state.dice.index(names.len()))?.clone();
        let content = state.files.get_mut(&state.names[&name])?;
        let at = state.dice.index(content.now.len());
        *content.now.get_mut(at)? ^= 1 << state.dice.below(8);
        content.durable.clone_from(&content.now);
        Some((name, at, content.now.len()))
    }

    /// All bytes of all files, also of those that have no name any more.
    pub(super) fn everything(&self) -> Vec<Vec<u8>> {
        self.state().files.values().flat_map(|content| [content.now.clone(), content.durable.clone()]).collect()
    }

    pub(super) fn file_names(&self) -> Vec<String> {
        self.state().names.keys().cloned().collect()
    }

    /// Takes a file away.
    pub(super) fn lose(&self, name: &str) {
        let mut state = self.state();
        state.names.remove(name);
        state.durable_names.remove(name);
    }
}

impl Content {
    fn crash(&mut self, dice: &mut Dice) {
        // What was appended is there up to some byte; before that, some of it may never have reached the disk.
        let appended = self.now.len().saturating_sub(self.durable.len());
        let mut left = self.now[..self.durable.len() + dice.index(appended + 1)].to_vec();
        left[..self.durable.len()].clone_from_slice(&self.durable);
        if left.len() > self.durable.len() && dice.one_in(3) {
            let from = self.durable.len() + dice.index(left.len() - self.durable.len());
            let to = from + dice.index(left.len() - from + 1);
            left[from..to].fill(0);
        }
        self.now = left.clone();
        self.durable = left;
    }
}

fn apply(names: &mut BTreeMap<String, u64>, renaming: Renaming) {
    match renaming {
        Renaming::Create(name, file) => drop(names.insert(name, file)),
        Renaming::Remove(name) => drop(names.remove(&name)),
        Renaming::Rename(from, to) => {
            if let Some(file) = names.remove(&from) {
                names.insert(to, file);
            }
        }
    }
}

impl State {
    fn strikes(&mut self, fault: fn(&Faults) -> u64) -> bool {
        let chance = fault(&self.faults);
        chance > 0 && self.dice.one_in(chance)
    }

    fn rename(&mut self, renaming: Renaming) -> io::Result<()> {
        if self.strikes(|faults| faults.names) {
            return Err(io::Error::other("the names cannot be changed"));
        }
        apply(&mut self.names, renaming.clone());
        self.pending.push(renaming);
        Ok(())
    }

    fn sync(&mut self, file: u64) -> io::Result<()> {
        if self.strikes(|faults| faults.lie) {
            return Ok(());
        }
        let fails = self.strikes(|faults| faults.sync);
        let Some(content) = self.files.get_mut(&file) else { return Ok(()) };
        if fails {
            // The kernel has marked its pages as clean: a later sync has nothing to do, and says that all is well.
            let kept = self.dice.index(content.now.len() - content.durable.len() + 1);
            let until = content.durable.len() + kept;
            let lost = content.now.len() - until;
            content.durable = content.now[..until].to_vec();
            content.durable.extend(std::iter::repeat_n(0, lost));
            return Err(io::Error::other("the disk could not be flushed"));
        }
        content.durable.clone_from(&content.now);
        Ok(())
    }
}

struct Handle {
    disk: Platter,
    file: u64,
}

impl Write for Handle {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.disk.state();
        let state = &mut *state;
        let part = state.dice.index(bytes.len() + 1);
        let fails = [
            (state.strikes(|faults| faults.write), io::ErrorKind::Other),
            (state.strikes(|faults| faults.full), io::ErrorKind::StorageFull),
        ];
        let is_short = state.strikes(|faults| faults.short) && part > 0;
        let content = state.files.entry(self.file).or_default();
        if let Some((_, kind)) = fails.into_iter().find(|(fails, _)| *fails) {
            content.now.extend_from_slice(&bytes[..part]);
            return Err(kind.into());
        }
        let taken = if is_short { part } else { bytes.len() };
        content.now.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl File for Handle {
    fn sync(&mut self) -> io::Result<()> {
        self.disk.state().sync(self.file)
    }
}

fn missing() -> io::Error {
    io::ErrorKind::NotFound.into()
}

impl Disk for Platter {
    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.file_names())
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn File>> {
        let mut state = self.state();
        if state.names.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if state.strikes(|faults| faults.full) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        state.next += 1;
        let file = state.next;
        state.files.insert(file, Content::default());
        state.rename(Renaming::Create(name.to_owned(), file))?;
        Ok(Box::new(Handle { disk: self.clone(), file }))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn Read + Send>> {
        let state = self.state();
        let file = state.names.get(name).ok_or_else(missing)?;
        Ok(Box::new(io::Cursor::new(state.files[file].now.clone())))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.state().rename(Renaming::Rename(from.to_owned(), to.to_owned()))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.state().rename(Renaming::Remove(name.to_owned()))
    }

    fn sync(&self, name: &str) -> io::Result<()> {
        let mut state = self.state();
        let file = *state.names.get(name).ok_or_else(missing)?;
        state.sync(file)
    }

    fn sync_names(&self) -> io::Result<()> {
        let mut state = self.state();
        if state.strikes(|faults| faults.names) {
            return Err(io::Error::other("the names cannot be synced"));
        }
        state.durable_names = state.names.clone();
        state.pending.clear();
        Ok(())
    }
}
