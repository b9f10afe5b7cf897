//! What is in a frame: changes one after the other, or the objects of a checkpoint.

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;

use crate::store::{Change, ChangeKind, Entry, Key, Resource};

/// Which of the stores that share a journal.
pub(super) type Place = Arc<str>;

/// Something to be kept.
#[derive(Debug, Clone)]
pub(super) enum Item {
    /// A store has changed.
    Change {
        place: Place,
        resource: Resource,
        change: Arc<Change>,
        /// How many identities its server had drawn.
        draws: u64,
    },
    /// A store is gone, with all that is in it.
    Forget(Place),
}

impl Item {
    /// About how many bytes it takes.
    pub(super) fn size(&self) -> usize {
        const NAMES: usize = 128;
        match self {
            Self::Change { change, .. } => change.object.json.len() + NAMES,
            Self::Forget(place) => place.len() + NAMES,
        }
    }
}

/// An [`Item`] or a part of a checkpoint, as it is read.
#[derive(Debug)]
pub(super) enum Record {
    /// A store has changed.
    Change { place: Place, kind: ChangeKind, at: Timestamp, draws: u64, object: Object },
    /// A store is gone.
    Forget(Place),
    /// In a checkpoint: how far a store was.
    Place { place: Place, revision: u64, draws: u64, at: Timestamp },
    /// In a checkpoint: an object of the store that was named last.
    Object(Object),
    /// In a checkpoint: there is no more.
    End,
}

/// An object, as it is read.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) resource: Resource,
    pub(super) key: Key,
    pub(super) revision: u64,
    pub(super) json: Bytes,
}

impl Object {
    pub(super) fn into_entry(self) -> (Resource, Arc<Entry>) {
        (self.resource, Arc::new(Entry::stored(self.key, self.revision, self.json)))
    }
}

const ADDED: u8 = 1;
const MODIFIED: u8 = 2;
const DELETED: u8 = 3;
const FORGET: u8 = 4;
const PLACE: u8 = 5;
const OBJECT: u8 = 6;
const END: u8 = 7;

/// Writes an item.
pub(super) fn write_item(item: &Item, out: &mut Vec<u8>) {
    match item {
        Item::Forget(place) => {
            out.push(FORGET);
            put_text(out, place);
        }
        Item::Change { place, resource, change, draws } => {
            out.push(match change.kind {
                ChangeKind::Added => ADDED,
                ChangeKind::Modified => MODIFIED,
                ChangeKind::Deleted => DELETED,
            });
            put_text(out, place);
            put_time(out, change.at);
            put_number(out, *draws);
            put_object(out, resource, &change.object);
        }
    }
}

/// Writes how far a store was.
pub(super) fn write_place(place: &str, revision: u64, draws: u64, at: Timestamp, out: &mut Vec<u8>) {
    out.push(PLACE);
    put_text(out, place);
    put_number(out, revision);
    put_number(out, draws);
    put_time(out, at);
}

/// Writes an object of a checkpoint.
pub(super) fn write_object(resource: &str, entry: &Entry, out: &mut Vec<u8>) {
    out.push(OBJECT);
    put_object(out, resource, entry);
}

/// Writes that a checkpoint is whole.
pub(super) fn write_end(out: &mut Vec<u8>) {
    out.push(END);
}

/// The records in a frame; `None` where it makes no sense.
pub(super) fn read(mut bytes: &[u8]) -> Option<Vec<Record>> {
    let input = &mut bytes;
    let mut records = Vec::new();
    while let Some(tag) = take(input, 1) {
        records.push(match tag[0] {
            FORGET => Record::Forget(text(input)?.into()),
            PLACE => Record::Place {
                place: text(input)?.into(),
                revision: number(input)?,
                draws: number(input)?,
                at: time(input)?,
            },
            OBJECT => Record::Object(object(input)?),
            END => Record::End,
            kind => Record::Change {
                kind: match kind {
                    ADDED => ChangeKind::Added,
                    MODIFIED => ChangeKind::Modified,
                    DELETED => ChangeKind::Deleted,
                    _ => return None,
                },
                place: text(input)?.into(),
                at: time(input)?,
                draws: number(input)?,
                object: object(input)?,
            },
        });
    }
    Some(records)
}

fn put_object(out: &mut Vec<u8>, resource: &str, entry: &Entry) {
    put_text(out, resource);
    put_text(out, &entry.key.namespace);
    put_text(out, &entry.key.name);
    put_number(out, entry.revision);
    put_number(out, entry.json.len() as u64);
    out.extend_from_slice(&entry.json);
}

fn object(input: &mut &[u8]) -> Option<Object> {
    let resource = text(input)?.into();
    let key = Key::new(text(input)?, text(input)?);
    let revision = number(input)?;
    let length = usize::try_from(number(input)?).ok()?;
    Some(Object { resource, key, revision, json: Bytes::copy_from_slice(take(input, length)?) })
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_number(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

fn text<'a>(input: &mut &'a [u8]) -> Option<&'a str> {
    let length = usize::try_from(number(input)?).ok()?;
    std::str::from_utf8(take(input, length)?).ok()
}

/// Seven bits to a byte, the lowest first; the highest bit says that there are more.
fn put_number(out: &mut Vec<u8>, mut number: u64) {
    let low = |number: u64| u8::try_from(number & 0x7f).unwrap_or_default();
    while number >= 0x80 {
        out.push(low(number) | 0x80);
        number >>= 7;
    }
    out.push(low(number));
}

fn number(input: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = u64::from(take(input, 1)?[0]);
        number |= (byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

fn put_time(out: &mut Vec<u8>, at: Timestamp) {
    out.extend_from_slice(&at.as_second().to_be_bytes());
    out.extend_from_slice(&at.subsec_nanosecond().to_be_bytes());
}

fn time(input: &mut &[u8]) -> Option<Timestamp> {
    let second = i64::from_be_bytes(take(input, 8)?.try_into().ok()?);
    let nanosecond = i32::from_be_bytes(take(input, 4)?.try_into().ok()?);
    Timestamp::new(second, nanosecond).ok()
}

fn take<'a>(input: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = input.split_at_checked(length)?;
    *input = rest;
    Some(taken)
}
