//! Writes frames and checkpoints, one after the other: no threads, no waiting, no clock. What is around it is in the journal.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use super::disk::{Disk, File};
use super::files::{Name, What};
use super::key::Keys;
use super::record::{self, Item, Place};
use super::recover::{RecoverError, recover};
use super::seal::{Seal, Sort};
use super::tables::{self, Places};
use crate::store::Recovered;

/// A log is left behind for a checkpoint when it is larger than this, and than twice the checkpoint before: then what is written
/// for checkpoints is at most as much as what is written for changes.
const LOG_BYTES_MIN: u64 = 16 << 20;
/// As many logs are left behind, however small: each start and each failure begins one.
const LOGS_MAX: usize = 32;
/// A frame of a checkpoint has about as much.
const CHECKPOINT_FRAME_BYTES: usize = 256 << 10;

/// The writing side of a data directory.
pub(super) struct Engine {
    disk: Arc<dyn Disk>,
    keys: Keys,
    places: Places,
    next_frame: u64,
    next_serial: u64,
    log: Option<Log>,
    /// All files there are, but for the one that is written.
    files: Vec<Name>,
    logs: usize,
    log_bytes: u64,
    checkpoint_bytes: u64,
    /// A checkpoint is needed whatever the sizes are.
    wants_checkpoint: bool,
}

/// The log that is written.
struct Log {
    name: Name,
    file: Box<dyn File>,
    seal: Seal,
    ordinal: u64,
    /// The frame that it begins with.
    first: u64,
}

/// A checkpoint that somebody may write while the log goes on.
pub(super) struct Checkpoint {
    disk: Arc<dyn Disk>,
    keys: Keys,
    places: Places,
    /// The frame after which it is.
    last: u64,
    serial: u64,
}

/// A checkpoint that was written.
pub(super) struct Written {
    serial: u64,
    bytes: u64,
}

fn no_random() -> io::Error {
    io::Error::other("the operating system gave no random bytes")
}

impl Engine {
    /// Goes on with what is in a directory. Nothing is written yet.
    pub(super) fn open(disk: Arc<dyn Disk>, keys: Keys) -> Result<(Self, BTreeMap<Place, Recovered>), RecoverError> {
        let found = recover(&*disk, &keys)?;
        for name in found.files.iter().filter(|name| name.what == What::Unfinished) {
            // It is in the way of nobody, and is tried again at the next start.
            drop(disk.remove(&name.to_string()));
        }
        let engine = Self {
            disk,
            keys,
            places: found.places,
            next_frame: found.next_frame,
            next_serial: found.next_serial,
            log: None,
            files: found.files.into_iter().filter(|name| name.what != What::Unfinished).collect(),
            logs: found.logs,
            log_bytes: 0,
            checkpoint_bytes: 0,
            wants_checkpoint: !found.is_current,
        };
        Ok((engine, found.stores))
    }

    /// Writes items as one frame: when this returns without an error, they survive everything but the loss of the disk. After an
    /// error they may be there or not, all of them; to write them again is right in both cases.
    pub(super) fn write(&mut self, items: &[Item]) -> io::Result<()> {
        let mut content = Vec::with_capacity(items.iter().map(Item::size).sum());
        for item in items {
            record::write_item(item, &mut content);
        }
        let written = self.write_frame(&content);
        if let Err(error) = written {
            self.abandon();
            return Err(error);
        }
        self.next_frame += 1;
        tables::apply(&mut self.places, items);
        Ok(())
    }

    fn write_frame(&mut self, content: &[u8]) -> io::Result<()> {
        let log = match self.log.take() {
            Some(log) => log,
            None => self.begin_log()?,
        };
        // It is there again only for `abandon` to find it, and to go on.
        let log = self.log.insert(log);
        log.ordinal += 1;
        let frame = log.seal.frame(log.ordinal, self.next_frame, content);
        let frame = frame.ok_or_else(|| io::Error::other("more was written at once than fits into a frame"))?;
        log.file.write_all(&frame)?;
        log.file.sync()?;
        self.log_bytes += frame.len() as u64;
        Ok(())
    }

    /// A new log. Its header is synced by itself: so a header that is not whole is one after which nothing was written.
    fn begin_log(&mut self) -> io::Result<Log> {
        let name = Name::new(self.next_serial, What::Log);
        self.next_serial += 1;
        let (header, seal) = Seal::begin(&self.keys, Sort::Log, self.next_frame).ok_or_else(no_random)?;
        let mut file = self.disk.create(&name.to_string())?;
        let begun = file.write_all(&header).and_then(|()| file.sync()).and_then(|()| self.disk.sync_names());
        if let Err(error) = begun {
            drop(file);
            self.discard(name);
            return Err(error);
        }
        self.logs += 1;
        Ok(Log { name, file, seal, ordinal: 0, first: self.next_frame })
    }

    /// After a write or a sync has failed, nobody knows what is on the disk of what came after the last sync, and a second sync
    /// that succeeds would prove nothing. So nothing is ever written to that file again: the frame goes to another one.
    fn abandon(&mut self) {
        let Some(log) = self.log.take() else { return };
        if log.first == self.next_frame {
            self.logs -= 1;
            self.discard(log.name);
        } else {
            self.files.push(log.name);
        }
    }

    /// Removes a file in which nothing is that counts; if that fails, it goes with the next checkpoint.
    fn discard(&mut self, name: Name) {
        if self.disk.remove(&name.to_string()).is_err() {
            self.files.push(name);
        }
    }

    /// Whether it is time for a checkpoint.
    pub(super) fn is_due(&self) -> bool {
        let large = self.log_bytes > LOG_BYTES_MIN.max(self.checkpoint_bytes.saturating_mul(2));
        large || self.logs > LOGS_MAX || self.wants_checkpoint
    }

    /// A checkpoint of what is durable now, to be written by anybody. What comes goes to another log.
    pub(super) fn begin_checkpoint(&mut self) -> Checkpoint {
        if let Some(log) = self.log.take() {
            self.files.push(log.name);
        }
        let serial = self.next_serial;
        self.next_serial += 1;
        self.wants_checkpoint = false;
        self.log_bytes = 0;
        self.logs = 0;
        let (disk, keys, places) = (self.disk.clone(), self.keys.clone(), self.places.clone());
        Checkpoint { disk, keys, places, last: self.next_frame - 1, serial }
    }

    /// Forgets the files that a checkpoint stands for.
    pub(super) fn end_checkpoint(&mut self, written: &Written) {
        self.checkpoint_bytes = written.bytes;
        let (old, kept) = std::mem::take(&mut self.files).into_iter().partition(|name| name.serial < written.serial);
        self.files = kept;
        self.files.push(Name::new(written.serial, What::Checkpoint));
        for name in Vec::from_iter::<Vec<Name>>(old) {
            self.discard(name);
        }
    }
}

impl Checkpoint {
    /// Writes it. Until it is whole it has a name that says so.
    pub(super) fn write(self) -> io::Result<Written> {
        let unfinished = Name::new(self.serial, What::Unfinished).to_string();
        let finished = Name::new(self.serial, What::Checkpoint).to_string();
        let written = self.write_as(&unfinished).and_then(|bytes| {
            self.disk.rename(&unfinished, &finished)?;
            self.disk.sync_names()?;
            Ok(Written { serial: self.serial, bytes })
        });
        if written.is_err() {
            // It may not exist, or already have its name: then it counts, and stands beside what it stands for.
            drop(self.disk.remove(&unfinished));
        }
        written
    }

    fn write_as(&self, name: &str) -> io::Result<u64> {
        let (header, seal) = Seal::begin(&self.keys, Sort::Checkpoint, self.last).ok_or_else(no_random)?;
        let mut file = self.disk.create(name)?;
        file.write_all(&header)?;
        let mut out = Frames { file, seal, number: 0, content: Vec::new(), bytes: header.len() as u64 };
        for (place, kept) in &self.places {
            record::write_place(place, kept.revision, kept.draws, kept.at, &mut out.content);
            for (resource, objects) in &kept.tables {
                for entry in objects.entries() {
                    record::write_object(resource, entry, &mut out.content);
                    if out.content.len() > CHECKPOINT_FRAME_BYTES {
                        out.flush()?;
                    }
                }
            }
        }
        record::write_end(&mut out.content);
        out.flush()?;
        out.file.sync()?;
        Ok(out.bytes)
    }
}

/// A checkpoint on its way to the disk.
struct Frames {
    file: Box<dyn File>,
    seal: Seal,
    number: u64,
    content: Vec<u8>,
    bytes: u64,
}

impl Frames {
    fn flush(&mut self) -> io::Result<()> {
        self.number += 1;
        let frame = self.seal.frame(self.number, self.number, &self.content);
        let frame = frame.ok_or_else(|| io::Error::other("an object is larger than fits into a frame"))?;
        self.content.clear();
        self.bytes += frame.len() as u64;
        self.file.write_all(&frame)
    }
}
