//! The disk under the management API, and how it fails: full, broken, slow, or a liar.
//!
//! Every change is a record with its length and a checksum. A power cut leaves what was made durable, and at most a part of what
//! came after; whoever reads it stops at the first record that is not whole.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use windlass_apiserver::store::{Backend, Change, ChangeKind, Key, Resource};

use super::kind::{DiskFault, Fault};
use super::{Bite, Faults};

/// A disk. Cheap to clone: clones are the same disk.
#[derive(Clone, Default)]
pub struct Disk(Arc<Mutex<Platter>>);

#[derive(Default)]
struct Platter {
    faults: Faults,
    /// Until a World is furnished its disk is in order.
    armed: bool,
    durable: Vec<u8>,
    /// Written, and not yet durable, with revisions.
    buffered: Vec<(u64, Vec<u8>)>,
    /// Writes that failed, by revision.
    failed: BTreeMap<u64, io::ErrorKind>,
    /// It lies: nothing becomes durable any more.
    lies: bool,
    /// The power has failed in the middle of a write.
    is_dark: bool,
}

/// What is left after a power cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// The highest revision up to which every change is there; 0 if there is none.
    pub revision: u64,
    /// The objects that are there, by resource.
    pub objects: BTreeMap<(String, Key), u64>,
    /// Why it ends where it does, if not because there is no more.
    pub damage: Option<&'static str>,
}

impl Disk {
    /// The disk of a World, if its scenario has anything to do with disks.
    pub(crate) fn of(faults: &Faults) -> Option<Self> {
        let live = faults.live()?;
        let is_disk = |fault: &Fault| matches!(fault, Fault::Disk { .. } | Fault::SlowDisk { .. });
        let concerned = live.scenario.faults.iter().any(|injection| is_disk(&injection.fault));
        let platter = || Platter { faults: faults.clone(), ..Platter::default() };
        concerned.then(|| Self(Arc::new(Mutex::new(platter()))))
    }

    /// From now on it fails as it is told to.
    pub(crate) fn arm(&self) {
        self.platter().armed = true;
    }

    /// The power fails, and comes back: what is there then.
    pub fn power_cut(&self) -> Recovered {
        let mut platter = self.platter();
        let mut bytes = platter.durable.clone();
        if platter.strikes(DiskFault::ShortRead) {
            bytes.truncate(bytes.len() - bytes.len().min(7));
        }
        if platter.strikes(DiskFault::BitFlip) {
            let middle = bytes.len() / 2;
            bytes.get_mut(middle).into_iter().for_each(|byte| *byte ^= 1);
        }
        platter.buffered.clear();
        platter.is_dark = false;
        read(&bytes)
    }

    // Nobody panics while the platter is held, so that a poisoned lock still guards a whole one.
    fn platter(&self) -> MutexGuard<'_, Platter> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Backend for Disk {
    fn append(&self, resource: &Resource, change: &Arc<Change>) {
        let mut platter = self.platter();
        let failure = [(DiskFault::NoSpace, io::ErrorKind::StorageFull), (DiskFault::WriteError, io::ErrorKind::Other)];
        match failure.into_iter().find(|(fault, _)| platter.strikes(*fault)) {
            Some((_, kind)) => drop(platter.failed.insert(change.revision, kind)),
            None => platter.buffered.push((change.revision, record(resource, change))),
        }
    }

    fn durable(&self, revision: u64) -> BoxFuture<'static, io::Result<()>> {
        let disk = self.clone();
        Box::pin(async move {
            let slow = disk.platter().slow();
            if !slow.is_zero() {
                tokio::time::sleep(slow).await;
            }
            disk.platter().sync(revision)
        })
    }
}

impl Platter {
    fn sync(&mut self, revision: u64) -> io::Result<()> {
        if let Some(kind) = self.failed.get(&revision) {
            return Err(io::Error::new(*kind, "the disk did not take the write"));
        }
        if self.strikes(DiskFault::SyncError) {
            return Err(io::Error::other("the disk could not be flushed"));
        }
        if !self.is_dark && self.strikes(DiskFault::TornWrite) {
            self.is_dark = true;
            let torn = self.buffered.first().map(|(_, bytes)| bytes[..bytes.len() / 2].to_vec());
            self.durable.extend(torn.unwrap_or_default());
        }
        if self.is_dark {
            return Err(io::Error::other("the power has failed"));
        }
        self.lies |= self.strikes(DiskFault::SyncLies);
        if !self.lies {
            let ripe = self.buffered.iter().take_while(|(at, _)| *at <= revision).count();
            let ripe = self.buffered.drain(..ripe).flat_map(|(_, bytes)| bytes);
            self.durable.extend(ripe);
        }
        Ok(())
    }

    fn strikes(&self, how: DiskFault) -> bool {
        let Some(live) = self.faults.live().filter(|_| self.armed) else { return false };
        let mut meant = live.open().filter(|(_, injection)| injection.fault == Fault::Disk { how });
        let Some((index, _)) = meant.find(|(index, injection)| live.strikes(*index, &injection.when)) else {
            return false;
        };
        let text = match how {
            DiskFault::NoSpace => "there is no space left on the disk of the management API",
            DiskFault::WriteError => "the disk of the management API does not take a write",
            DiskFault::SyncError => "the disk of the management API cannot be flushed",
            DiskFault::SyncLies => "the disk of the management API says that it is flushed, and is not",
            DiskFault::TornWrite => "the power of the management API fails in the middle of a write",
            DiskFault::ShortRead => "less is read from the disk than was written",
            DiskFault::BitFlip => "a bit on the disk is another than it was",
        };
        // Under the lock of the store, before its observer hears of the change: the mark stands before what it is about.
        live.say_once(index, &Bite { place: "management", cluster: "", object: "disk", text });
        true
    }

    fn slow(&self) -> Duration {
        let Some(live) = self.faults.live().filter(|_| self.armed) else { return Duration::ZERO };
        let slow = live.open().filter_map(|(index, injection)| match &injection.fault {
            Fault::SlowDisk { by } if live.strikes(index, &injection.when) => {
                let text = &format!("the disk of the management API takes {by} for a write");
                live.say_once(index, &Bite { place: "management", cluster: "", object: "disk", text });
                Some(by.0)
            }
            _ => None,
        });
        slow.sum()
    }
}

/// The length of what a record begins with: its own length, and a checksum.
const HEAD: usize = 12;

/// A change as it is on the disk: length, checksum, revision, whether it is there, names.
fn record(resource: &Resource, change: &Change) -> Vec<u8> {
    let is_there = u8::from(change.kind != ChangeKind::Deleted);
    let Key { namespace, name } = &change.object.key;
    let mut content = change.revision.to_be_bytes().to_vec();
    content.push(is_there);
    content.extend(format!("{resource}\n{namespace}\n{name}\n").as_bytes());
    content.extend(&*change.object.json);
    let length = u32::try_from(content.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&length[..], &checksum(&content).to_be_bytes(), &content].concat()
}

/// FNV-1a: enough to notice what nobody did on purpose.
fn checksum(bytes: &[u8]) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

fn read(mut bytes: &[u8]) -> Recovered {
    let mut recovered = Recovered { revision: 0, objects: BTreeMap::new(), damage: None };
    while !bytes.is_empty() {
        let Some((content, rest)) = whole(bytes) else {
            recovered.damage = Some("a record is not whole");
            break;
        };
        let Some((revision, is_there, resource, key)) = parsed(content) else {
            recovered.damage = Some("a record makes no sense");
            break;
        };
        recovered.revision = revision;
        if is_there {
            recovered.objects.insert((resource, key), revision);
        } else {
            recovered.objects.remove(&(resource, key));
        }
        bytes = rest;
    }
    recovered
}

/// The first record, if all of it is there and as it was written.
fn whole(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (head, rest) = bytes.split_at_checked(HEAD)?;
    let length = u32::from_be_bytes(head[..4].try_into().ok()?);
    let sum = u64::from_be_bytes(head[4..].try_into().ok()?);
    let (content, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    (checksum(content) == sum).then_some((content, rest))
}

fn parsed(content: &[u8]) -> Option<(u64, bool, String, Key)> {
    let (revision, rest) = content.split_at_checked(8)?;
    let (is_there, rest) = rest.split_first()?;
    let mut names = rest.splitn(4, |byte| *byte == b'\n').map(|name| String::from_utf8_lossy(name).into_owned());
    let (resource, namespace, name) = (names.next()?, names.next()?, names.next()?);
    Some((u64::from_be_bytes(revision.try_into().ok()?), *is_there == 1, resource, Key::new(&namespace, &name)))
}
