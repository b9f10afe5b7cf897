//! The loop of a runner.

use std::any::Any;
use std::collections::BTreeSet;
use std::error::Error;
use std::future::{Future, ready};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{BoxStream, FuturesUnordered, SelectAll, StreamExt};
use tokio::time::Instant;
use tracing::field::Empty;
use tracing::{Instrument, Span};

use super::context::Writes;
use super::{Ctx, Options, Outcome, Summary};
use crate::key::Key;
use crate::queue::{Ending, Queue};
use crate::trace::{Failure, Happening};
use crate::watch::{Observed, Sight};

/// What comes in.
pub(super) enum Input {
    /// From the watch of this index.
    Observed(usize, Observed),
    Triggered(Key),
}

/// A reconcile that has ended.
struct Finished {
    key: Key,
    result: Result<Outcome, Failure>,
    writes: Writes,
    /// How long it was due before it began, and when that was.
    waited: Duration,
    began: Instant,
    /// What it said of itself.
    span: Span,
}

pub(super) struct Engine {
    name: String,
    options: Options,
    watches: Vec<String>,
    /// The watches that have not had their first full list.
    unsynced: BTreeSet<usize>,
    inputs: SelectAll<BoxStream<'static, Input>>,
    queue: Queue,
    /// Polled in the order in which its futures were woken, which on one thread is the same every time.
    running: FuturesUnordered<BoxFuture<'static, Finished>>,
    began: Instant,
    summary: Summary,
    /// How many keys were ready and running when it was last told.
    busy: (usize, usize),
}

impl Engine {
    pub(super) fn new(
        name: String,
        options: Options,
        watches: Vec<String>,
        inputs: SelectAll<BoxStream<'static, Input>>,
    ) -> Self {
        let jitter = options.seed.child(&name).stream("backoff");
        Self {
            unsynced: (0..watches.len()).collect(),
            queue: Queue::new(options.order.clone(), options.backoff, jitter, options.patience),
            running: FuturesUnordered::new(),
            began: Instant::now(),
            summary: Summary::default(),
            busy: (0, 0),
            name,
            options,
            watches,
            inputs,
        }
    }

    pub(super) async fn run<C, R, F, E>(
        mut self,
        context: &Arc<C>,
        reconcile: &Arc<R>,
        mut stop: Pin<&mut impl Future<Output = ()>>,
    ) -> Summary
    where
        C: Send + Sync + 'static,
        R: Fn(Key, Ctx<C>) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Outcome, E>> + Send + 'static,
        E: Error + 'static,
    {
        loop {
            self.queue.wake(self.now());
            self.tell_load();
            let may_start =
                self.unsynced.is_empty() && self.running.len() < self.options.slots && self.queue.has_ready();
            let timer = self.queue.next_timer();
            // In this order: what has come in is taken in before anything starts, so that a burst of changes is one
            // reconcile, and a permuted queue has something to permute.
            tokio::select! {
                biased;
                () = &mut stop => break,
                Some(finished) = self.running.next() => self.finish(finished),
                Some(input) = self.inputs.next() => self.take_in(input),
                () = ready(()), if may_start => self.start(context, reconcile),
                () = tokio::time::sleep_until(self.began + timer.unwrap_or_default()), if timer.is_some() => {}
            }
        }
        self.record(&Happening::Stopping { running: self.running.len() });
        while let Some(finished) = self.running.next().await {
            self.finish(finished);
        }
        self.tell_load();
        self.summary
    }

    fn tell_load(&mut self) {
        let busy = (self.queue.ready(), self.running.len());
        if let Some(load) = self.options.load.as_ref().filter(|_| busy != self.busy) {
            load.busy(busy.0, busy.1);
            self.busy = busy;
        }
    }

    /// Since the run began, by tokio's monotonic clock.
    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn record(&self, happening: &Happening<'_>) {
        if let Some(trace) = &self.options.trace {
            trace.record(self.options.clock.now(), &self.name, happening);
        }
    }

    fn take_in(&mut self, input: Input) {
        let keys = match input {
            Input::Triggered(key) => {
                self.record(&Happening::Triggered { key: &key });
                vec![key]
            }
            Input::Observed(index, Observed { what, keys }) => {
                self.see(index, &what);
                keys
            }
        };
        let now = self.now();
        for key in &keys {
            self.queue.add(key, now);
        }
        self.queue.unpark();
    }

    fn see(&mut self, index: usize, sight: &Sight) {
        let watch = self.watch(index);
        match sight {
            Sight::Listed { objects, revision, unreadable } => {
                self.record(&Happening::Listed { watch, objects: *objects, revision: *revision });
                self.unsynced.remove(&index);
                for (key, why) in unreadable {
                    self.complain(index, key, why);
                }
            }
            Sight::Applied { key, revision } => self.record(&Happening::Applied { watch, key, revision: *revision }),
            Sight::Deleted { key, revision } => self.record(&Happening::Deleted { watch, key, revision: *revision }),
            Sight::Unreadable { key, why } => self.complain(index, key, why),
            Sight::Failed { error, retry_in } => {
                let error = &with_causes(error);
                tracing::warn!(runner = self.name, watch, error, ?retry_in, "a watch failed");
                self.record(&Happening::WatchFailed { watch, error, retry_in: *retry_in });
                self.summary.watch_errors += 1;
            }
        }
    }

    fn complain(&mut self, index: usize, key: &Key, why: &str) {
        let watch = self.watch(index);
        tracing::warn!(runner = self.name, watch, %key, why, "an object cannot be read");
        self.record(&Happening::Unreadable { watch, key, why });
        self.summary.unreadable += 1;
    }

    fn watch(&self, index: usize) -> &str {
        self.watches.get(index).map_or("", String::as_str)
    }

    fn start<C, R, F, E>(&mut self, context: &Arc<C>, reconcile: &Arc<R>)
    where
        C: Send + Sync + 'static,
        R: Fn(Key, Ctx<C>) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Outcome, E>> + Send + 'static,
        E: Error + 'static,
    {
        let Some(turn) = self.queue.take(self.now()) else { return };
        let key = turn.key;
        if let Some(load) = &self.options.load {
            load.waited(turn.waited);
        }
        if !turn.caught_up {
            tracing::warn!(runner = self.name, %key, "its own writes have not been seen in time");
            self.record(&Happening::Stale { key: &key });
            self.summary.stale += 1;
        }
        self.record(&Happening::Started { key: &key });
        self.summary.reconciles += 1;

        let (writes, deadline) = (Writes::default(), self.options.deadline);
        let ctx = Ctx::new(Arc::clone(context), key.clone(), turn.caught_up, writes.clone());
        // What is empty is for reconcilers to fill in: at the end there is one line with all of it.
        let span = tracing::info_span!(
            "reconcile", runner = self.name, %key, stage = Empty, steps = Empty, failed = Empty, waits_for = Empty, sort = Empty
        );
        let (waited, began, said) = (turn.waited, Instant::now(), span.clone());
        let reconcile = Arc::clone(reconcile);
        let called = async move {
            // In a box: it is as large as all that a reconcile may ever need at once, and each of those around would move it.
            let result = Box::pin(reconcile(ctx.key().clone(), ctx)).await;
            result.map_err(|error| Failure::Error(with_causes(&error)))
        };
        let contained = async move {
            // Unwind safe, because what a panicking reconcile leaves behind is what a crash would: reconcilers take their
            // state from the server, and our locks are not held while they run.
            let result = match tokio::time::timeout(deadline, AssertUnwindSafe(called).catch_unwind()).await {
                Ok(Ok(result)) => result,
                Ok(Err(panic)) => Err(Failure::Panic(message(&*panic))),
                Err(_) => Err(Failure::Overdue(deadline)),
            };
            Finished { key, result, writes, waited, began, span: said }
        };
        self.running.push(contained.instrument(span).boxed());
    }

    fn finish(&mut self, Finished { key, result, writes, waited, began, span }: Finished) {
        let now = self.now();
        let (took_ms, waited_ms) = (millis(began.elapsed()), millis(waited));
        let ending = match &result {
            Ok(Outcome { requeue_after: None }) => Ending::Done,
            Ok(Outcome { requeue_after: Some(delay) }) => Ending::Again(*delay),
            Err(_) => Ending::Failed,
        };
        let writes = writes.take();
        let watched_writes = writes.len();
        let delay = self.queue.finish(&key, ending, writes, now);
        let again_ms = delay.map(millis);
        match &result {
            Ok(_) => {
                span.in_scope(|| tracing::info!(took_ms, waited_ms, watched_writes, again_ms, "reconciled"));
                self.record(&Happening::Finished { key: &key, requeue_in: delay });
            }
            Err(failure) => {
                let retry_in = delay.unwrap_or_default();
                let say =
                    || tracing::warn!(took_ms, waited_ms, watched_writes, again_ms, %failure, "a reconcile failed");
                span.in_scope(say);
                self.record(&Happening::Failed { key: &key, failure, retry_in });
                if let Some(load) = &self.options.load {
                    load.retried();
                }
                *match failure {
                    Failure::Error(_) => &mut self.summary.errors,
                    Failure::Panic(_) => &mut self.summary.panics,
                    Failure::Overdue(_) => &mut self.summary.overdue,
                } += 1;
            }
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// What was thrown, when it was text: all that `panic!` throws is.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "not a text".to_owned())
}

/// The error and its causes on one line. Some errors repeat their cause in their own words; it is then said once.
fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        cause = error.source();
    }
    text
}
