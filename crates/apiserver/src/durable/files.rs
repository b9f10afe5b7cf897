//! The files of a data directory, by name: a serial number, which each new file has one higher, and what is in it.

use std::io::{self, Read};

use super::disk::Disk;
use super::key::Keys;
use super::record::{self, Record};
use super::seal::{FRAME_HEAD_BYTES, HEADER_BYTES, Header, Seal, Unusable, frame_head, next_magic};

/// Who holds the directory writes its process id here.
pub(super) const LOCK: &str = "lock";
const LOG: &str = "log";
const CHECKPOINT: &str = "checkpoint";
const UNFINISHED: &str = "new";

/// A file of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    pub(super) serial: u64,
    pub(super) what: What,
}

/// What is in a file, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    Log,
    Checkpoint,
    /// A checkpoint that is being written.
    Unfinished,
}

impl Name {
    pub(super) fn new(serial: u64, what: What) -> Self {
        Self { serial, what }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let (serial, suffix) = text.split_once('.')?;
        let what = match suffix {
            LOG => What::Log,
            CHECKPOINT => What::Checkpoint,
            UNFINISHED => What::Unfinished,
            _ => return None,
        };
        let name = Self { serial: u64::from_str_radix(serial, 16).ok()?, what };
        (name.to_string() == text).then_some(name)
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let suffix = match self.what {
            What::Log => LOG,
            What::Checkpoint => CHECKPOINT,
            What::Unfinished => UNFINISHED,
        };
        write!(f, "{:016x}.{suffix}", self.serial)
    }
}

/// Whether a file of this name is ours.
pub(super) fn is_ours(name: &str) -> bool {
    name == LOCK || Name::parse(name).is_some()
}

/// A file that is being read, frame by frame.
pub(super) struct Reader {
    input: Box<dyn Read + Send>,
    seal: Seal,
    pub(super) header: Header,
    ordinal: u64,
}

/// How reading a frame ended.
pub(super) enum Read1 {
    /// With what is in it.
    Frame(Vec<Record>),
    /// The file ends here, or with a part of a frame that never became whole.
    End,
    /// The frame is damaged: whole ones come after it.
    Damaged,
}

impl Reader {
    /// Reads a header. The inner error says why the file cannot be used.
    pub(super) fn open(disk: &dyn Disk, keys: &Keys, name: Name) -> io::Result<Result<Self, Unusable>> {
        let mut input = disk.open(&name.to_string())?;
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        input.by_ref().take(HEADER_BYTES as u64).read_to_end(&mut bytes)?;
        Ok(Seal::read(keys, &bytes).map(|(header, seal)| Self { input, seal, header, ordinal: 0 }))
    }

    /// The next frame, which must have this number.
    pub(super) fn next(&mut self, number: u64) -> io::Result<Read1> {
        let ordinal = self.ordinal + 1;
        let mut read = Vec::with_capacity(FRAME_HEAD_BYTES);
        self.input.by_ref().take(FRAME_HEAD_BYTES as u64).read_to_end(&mut read)?;
        if read.is_empty() {
            return Ok(Read1::End);
        }
        if let Some((length, _)) = frame_head(&read) {
            let head = read.clone();
            let mut sealed = Vec::with_capacity(length);
            self.input.by_ref().take(length as u64).read_to_end(&mut sealed)?;
            read.extend_from_slice(&sealed);
            if let Some(content) = self.seal.open(ordinal, number, &head, sealed) {
                self.ordinal = ordinal;
                return Ok(record::read(&content).map_or(Read1::Damaged, Read1::Frame));
            }
        }
        self.input.read_to_end(&mut read)?;
        Ok(if self.any_after(&read, ordinal, number) { Read1::Damaged } else { Read1::End })
    }

    /// Whether any later frame is in these bytes, that begin with one which is not whole. Each frame is written when the one
    /// before it is synced: so a crash leaves at most one that is not whole, and nothing after it.
    fn any_after(&self, bytes: &[u8], ordinal: u64, number: u64) -> bool {
        let mut from = 1;
        while let Some(at) = next_magic(bytes, from) {
            from = at + 1;
            let Some((length, found)) = frame_head(&bytes[at..]).filter(|(_, found)| *found > number) else { continue };
            let Some(frame) = bytes.get(at..at + FRAME_HEAD_BYTES + length) else { continue };
            let (head, sealed) = frame.split_at(FRAME_HEAD_BYTES);
            let later = ordinal.checked_add(found - number);
            if later.is_some_and(|later| self.seal.open(later, found, head, sealed.to_vec()).is_some()) {
                return true;
            }
        }
        false
    }
}
