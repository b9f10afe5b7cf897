//! The thread that makes changes durable, and those who wait for it.
//!
//! Changes are queued under their stores' locks. The thread takes all that have come while it was writing, and writes them as one
//! frame: the more there is to do, the fewer syncs each change costs. No runtime's thread ever waits for a disk.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use futures::FutureExt as _;
use futures::channel::oneshot;
use futures::future::BoxFuture;

use super::engine::{Engine, Written};
use super::record::{Item, Place};
use crate::store::{Backend, Change, Keeper, Resource, Waits};

/// A frame takes no more than this, unless one change alone does.
const FRAME_BYTES_MAX: usize = 4 << 20;
/// How long it takes until a write is tried again that the disk refused.
const RETRY: Duration = Duration::from_millis(500);

/// Keeps the changes of several stores in one order, until it is [closed](Self::close). Cheap to clone: clones are the same journal.
#[derive(Clone)]
pub struct Journal(Arc<Shared>);

pub(super) struct Shared {
    queue: Mutex<Queue>,
    /// The thread waits for it.
    work: Condvar,
    waits: Waits,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Queue {
    items: VecDeque<Item>,
    /// How many items were ever queued: the latest one's ticket.
    queued: u64,
    /// Up to which ticket all are durable.
    durable: u64,
    waiting: Vec<(u64, oneshot::Sender<io::Result<()>>)>,
    /// Who has each place; whoever had it before is not heard any more.
    seats: BTreeMap<Place, u64>,
    next_seat: u64,
    /// Why the disk takes nothing at the moment.
    trouble: Option<Trouble>,
    checkpoint: Option<io::Result<Written>>,
    is_idle: bool,
    /// It is to end.
    ends: bool,
    /// It has ended: nothing becomes durable any more.
    ended: bool,
}

/// An error that several are told of.
#[derive(Debug, Clone)]
struct Trouble {
    kind: io::ErrorKind,
    text: String,
}

impl Trouble {
    fn of(error: &io::Error) -> Self {
        Self { kind: error.kind(), text: error.to_string() }
    }

    fn error(&self) -> io::Error {
        io::Error::new(self.kind, self.text.clone())
    }
}

impl Journal {
    /// Starts the thread. It holds on to `guard` until it has ended.
    pub(super) fn start(engine: Engine, waits: Waits, guard: impl Send + 'static) -> io::Result<Self> {
        let (queue, work, thread) = (Mutex::default(), Condvar::new(), Mutex::default());
        let shared = Arc::new(Shared { queue, work, waits, thread });
        let writer = Writer { shared: shared.clone(), engine, checkpoint: None };
        let body = move || {
            let _end = End(writer.shared.clone());
            writer.run();
            drop(guard);
        };
        let handle = thread::Builder::new().name("windlass-journal".into()).spawn(body)?;
        *shared.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(handle);
        Ok(Self(shared))
    }

    /// Writes what is queued, and ends. What is committed later is lost. Blocks until it is done.
    pub fn close(&self) -> io::Result<()> {
        self.0.end();
        let handle = self.0.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Err(_)) = handle.map(JoinHandle::join) {
            return Err(io::Error::other("the journal's thread has panicked"));
        }
        let queue = self.0.queue();
        match &queue.trouble {
            Some(trouble) if !queue.items.is_empty() => Err(trouble.error()),
            _ => Ok(()),
        }
    }
}

impl Keeper for Journal {
    fn backend(&self, place: &str) -> Arc<dyn Backend> {
        let place: Place = place.into();
        let mut queue = self.0.queue();
        queue.next_seat += 1;
        let number = queue.next_seat;
        queue.seats.insert(place.clone(), number);
        drop(queue);
        let (ticket, draws) = (AtomicU64::new(0), OnceLock::new());
        Arc::new(Seat { shared: self.0.clone(), place, number, ticket, draws })
    }

    fn forget(&self, place: &str) {
        let mut queue = self.0.queue();
        queue.seats.remove(place);
        self.0.push(queue, Item::Forget(place.into()));
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let queue = self.0.queue();
        f.debug_struct("Journal")
            .field("queued", &queue.queued)
            .field("durable", &queue.durable)
            .finish_non_exhaustive()
    }
}

impl Shared {
    /// Nobody panics while it is held, so that a poisoned lock still guards a whole queue.
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, mut queue: MutexGuard<'_, Queue>, item: Item) -> u64 {
        queue.queued += 1;
        queue.items.push_back(item);
        let ticket = queue.queued;
        let is_idle = std::mem::take(&mut queue.is_idle);
        drop(queue);
        if is_idle {
            self.work.notify_one();
        }
        ticket
    }

    fn end(&self) {
        self.queue().ends = true;
        self.work.notify_one();
    }

    fn when_durable(&self, ticket: u64) -> BoxFuture<'static, io::Result<()>> {
        let mut queue = self.queue();
        if queue.durable >= ticket {
            return std::future::ready(Ok(())).boxed();
        }
        if let Some(trouble) = &queue.trouble {
            return std::future::ready(Err(trouble.error())).boxed();
        }
        if queue.ended {
            return std::future::ready(Err(ended())).boxed();
        }
        let (sender, receiver) = oneshot::channel();
        queue.waiting.push((ticket, sender));
        drop(queue);
        receiver.map(|told| told.map_err(|_| ended()).flatten()).boxed()
    }
}

/// The backend of one store.
struct Seat {
    shared: Arc<Shared>,
    place: Place,
    number: u64,
    /// The latest change's.
    ticket: AtomicU64,
    draws: OnceLock<Arc<AtomicU64>>,
}

impl Backend for Seat {
    fn append(&self, resource: &Resource, change: &Arc<Change>) {
        // Identities are drawn before the object is committed that has them: so this counts all that can be in it.
        let draws = self.draws.get().map_or(0, |draws| draws.load(Ordering::Relaxed));
        let queue = self.shared.queue();
        if queue.seats.get(&self.place) != Some(&self.number) {
            // The place was forgotten: somebody has not noticed yet.
            return;
        }
        let (place, resource, change) = (self.place.clone(), resource.clone(), change.clone());
        let ticket = self.shared.push(queue, Item::Change { place, resource, change, draws });
        self.ticket.store(ticket, Ordering::Release);
    }

    fn durable(&self, _revision: u64) -> BoxFuture<'static, io::Result<()>> {
        // A little more than was asked for, if somebody else wrote meanwhile: it is in the same frame most of the time.
        self.shared.when_durable(self.ticket.load(Ordering::Acquire))
    }

    fn refuses(&self) -> Option<io::Error> {
        let queue = self.shared.queue();
        queue.trouble.as_ref().map(Trouble::error).or_else(|| queue.ended.then(ended))
    }

    fn waits(&self) -> Waits {
        self.shared.waits
    }

    fn counts(&self, draws: &Arc<AtomicU64>) {
        // A server tells it once.
        drop(self.draws.set(draws.clone()));
    }
}

fn ended() -> io::Error {
    io::Error::other("the journal has ended")
}

/// Whoever waits for what will not be written is told, however the thread ends.
struct End(Arc<Shared>);

impl Drop for End {
    fn drop(&mut self) {
        let mut queue = self.0.queue();
        queue.ended = true;
        queue.waiting.clear();
    }
}

/// What the thread does.
struct Writer {
    shared: Arc<Shared>,
    engine: Engine,
    /// Who writes a checkpoint, if somebody does.
    checkpoint: Option<JoinHandle<()>>,
}

impl Writer {
    fn run(mut self) {
        loop {
            let Some(batch) = self.next_batch() else { break };
            if batch.is_empty() {
                self.take_checkpoint();
                continue;
            }
            match self.engine.write(&batch) {
                Ok(()) => self.succeeded(batch.len() as u64),
                Err(error) => {
                    if self.failed(batch, &error) {
                        break;
                    }
                }
            }
            self.take_checkpoint();
        }
        if let Some(handle) = self.checkpoint.take() {
            // It has told what came of it, or panicked, and then the old files stay.
            drop(handle.join());
            self.take_checkpoint();
        }
    }

    /// All that was queued, up to the size of a frame; nothing where a checkpoint was written; `None` at the end.
    fn next_batch(&self) -> Option<Vec<Item>> {
        let mut queue = self.shared.queue();
        while queue.items.is_empty() && queue.checkpoint.is_none() {
            if queue.ends {
                return None;
            }
            queue.is_idle = true;
            queue = self.shared.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        queue.is_idle = false;
        let mut size = 0;
        let mut batch = Vec::with_capacity(queue.items.len());
        while let Some(item) = queue.items.front() {
            size += item.size();
            if size > FRAME_BYTES_MAX && !batch.is_empty() {
                break;
            }
            batch.extend(queue.items.pop_front());
        }
        Some(batch)
    }

    fn succeeded(&self, items: u64) {
        let mut queue = self.shared.queue();
        queue.durable += items;
        if queue.trouble.take().is_some() {
            tracing::info!("the disk of the data directory takes writes again");
        }
        let durable = queue.durable;
        let (done, waiting) =
            std::mem::take(&mut queue.waiting).into_iter().partition(|(ticket, _)| *ticket <= durable);
        queue.waiting = waiting;
        drop(queue);
        for (_, waiter) in Vec::from_iter::<Vec<_>>(done) {
            // Whoever does not wait any more does not want to know.
            drop(waiter.send(Ok(())));
        }
    }

    /// Everybody who waits is told. What could not be written is tried again after a while; until then nothing more is taken on.
    /// Returns whether it is time to end.
    fn failed(&self, batch: Vec<Item>, error: &io::Error) -> bool {
        let trouble = Trouble::of(error);
        let mut queue = self.shared.queue();
        if queue.trouble.is_none() {
            tracing::error!(%error, "the disk of the data directory takes no writes; they are refused until it does");
        }
        queue.trouble = Some(trouble.clone());
        for item in batch.into_iter().rev() {
            queue.items.push_front(item);
        }
        let waiting = std::mem::take(&mut queue.waiting);
        drop(queue);
        for (_, waiter) in waiting {
            drop(waiter.send(Err(trouble.error())));
        }
        let queue = self.shared.queue();
        let is_open = |queue: &mut Queue| !queue.ends;
        let waited = self.shared.work.wait_timeout_while(queue, RETRY, is_open);
        waited.unwrap_or_else(PoisonError::into_inner).0.ends
    }

    /// Begins a checkpoint that is due, on a thread of its own, and ends one that is written.
    fn take_checkpoint(&mut self) {
        let told = self.shared.queue().checkpoint.take();
        if let Some(told) = told {
            self.checkpoint = None;
            match told {
                Ok(written) => self.engine.end_checkpoint(&written),
                Err(error) => tracing::warn!(%error, "a checkpoint of the data directory could not be written"),
            }
        }
        if self.checkpoint.is_some() || !self.engine.is_due() {
            return;
        }
        let (checkpoint, shared) = (self.engine.begin_checkpoint(), self.shared.clone());
        let body = move || {
            let written = checkpoint.write();
            shared.queue().checkpoint = Some(written);
            shared.work.notify_one();
        };
        match thread::Builder::new().name("windlass-checkpoint".into()).spawn(body) {
            Ok(handle) => self.checkpoint = Some(handle),
            Err(error) => tracing::warn!(%error, "there is no thread to write a checkpoint of the data directory"),
        }
    }
}
