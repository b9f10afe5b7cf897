//! Q5: one writer, many watchers.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt as _;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tower::Service as _;
use windlass_apiserver::body::Body;
use windlass_reference::Error;

use super::Scale;
use super::durable::quantile;
use super::embedded::{self, request, send};
use super::measure::{process_cpu, thread_cpu};
use super::objects::{Crate, Sample as _, name};
use super::report::{Aim, Figure, Section, Server, Unit};
use super::side::{self, Client, DURABILITY, Side, Watching};
use super::up::Keeps;

const WATCHERS: usize = 1_000;
/// Streams of one connection, which is fewer than any server allows.
const PER_CONNECTION: usize = 50;
const WRITES: usize = 50;
/// In the process: how many watchers, and how many writes in a round.
const SIZES: [(usize, usize); 2] = [(100, 2_000), (1_000, 200)];

pub async fn measure(scale: Scale) -> Result<Section, Error> {
    let (watchers, writes) = (scale.of(WATCHERS), scale.of(WRITES));
    let mut sides = Side::all(Keeps::OnDisk).await?;
    side::pin(&sides);
    let mut audiences = Vec::new();
    for side in &mut sides {
        audiences.push(Audience::gather(side, watchers).await?);
    }
    let better = |figure: Figure| {
        let times = |than| Aim::TimesBetter { than, times: 5.0 };
        figure.aim(times(Server::Etcd)).aim(times(Server::KubeApiserver))
    };
    let cpu = Figure::new(Some("Q5"), format!("events delivered to {WATCHERS} watchers"), Unit::PerCpuSecond);
    let rate = Figure::new(Some("Q5"), "the same, by the clock", Unit::PerSecond);
    let (mut cpu, mut rate) = (better(cpu), better(rate));
    let mut lag = Figure::new(Some("Q5"), "lag of an event, p99", Unit::Seconds).aim(Aim::AtMost(0.010));
    for counts in scale.rounds() {
        for (side, audience) in sides.iter().zip(&audiences) {
            let pids = side.pids();
            let (began, before) = (Instant::now(), process_cpu(&pids)?);
            let mut lags = audience.tell(writes).await?;
            let (wall, used) = (began.elapsed().as_secs_f64(), process_cpu(&pids)? - before);
            lags.sort_by(f64::total_cmp);
            if counts {
                cpu.push(side.server(), lags.len() as f64 / used);
                rate.push(side.server(), lags.len() as f64 / wall);
                lag.push(side.server(), quantile(&lags, 99));
            }
        }
    }
    let mut figures = vec![cpu, rate, lag];
    for (watchers, writes) in SIZES {
        figures.push(in_the_process(scale, watchers, scale.of(writes)).await?);
    }
    Ok(Section::new("Watches: one writer, many watchers", figures, &[Server::Etcd, Server::KubeApiserver])
        .note(DURABILITY)
        .note(
            "One object is changed when all have the change before: nothing is delivered in batches. The write is included, \
             and lag is from before the write is sent until the event is read, in a process that reads for all watchers on one core.",
        ))
}

/// Many watchers of one object, and somebody who changes it.
struct Audience {
    writer: Client,
    /// The streams live in them.
    _connections: Vec<Client>,
    watchers: Vec<AbortHandle>,
    heard: Rc<Heard>,
    /// How often the object was changed: what is written again as it is would be no event.
    changes: Cell<usize>,
}

struct Heard {
    began: Cell<Instant>,
    lags: RefCell<Vec<f64>>,
}

impl Drop for Audience {
    fn drop(&mut self) {
        self.watchers.iter().for_each(AbortHandle::abort);
    }
}

impl Audience {
    async fn gather(side: &mut Side, count: usize) -> Result<Self, Error> {
        let writer = side.client().await?;
        writer.create(0).await?;
        let heard = Rc::new(Heard { began: Cell::new(Instant::now()), lags: RefCell::default() });
        let connections = side.clients(count.div_ceil(PER_CONNECTION)).await?;
        let mut watchers = Vec::with_capacity(count);
        for number in 0..count {
            let client = connections.get(number / PER_CONNECTION).ok_or("a connection for each")?;
            let watching = client.watch(0).await?;
            watchers.push(tokio::task::spawn_local(listen(watching, Rc::clone(&heard))).abort_handle());
        }
        Ok(Self { writer, _connections: connections, watchers, heard, changes: Cell::new(0) })
    }

    /// Changes the object so many times; how long each took to be heard of by each.
    async fn tell(&self, writes: usize) -> Result<Vec<f64>, Error> {
        self.heard.lags.borrow_mut().clear();
        for number in 0..writes {
            self.heard.began.set(Instant::now());
            let change = self.changes.replace(self.changes.get() + 1);
            self.writer.change(0, u8::try_from(change % 200)?).await?;
            while self.heard.lags.borrow().len() < self.watchers.len() * (number + 1) {
                if self.watchers.iter().any(AbortHandle::is_finished) {
                    return Err("a watch has ended".into());
                }
                tokio::task::yield_now().await;
            }
        }
        Ok(self.heard.lags.take())
    }
}

async fn listen(mut watching: Watching, heard: Rc<Heard>) {
    while let Some(events) = watching.next().await {
        let lag = heard.began.get().elapsed().as_secs_f64();
        heard.lags.borrow_mut().extend(std::iter::repeat_n(lag, events));
    }
}

async fn in_the_process(scale: Scale, watchers: usize, writes: usize) -> Result<Figure, Error> {
    let measure = format!("events delivered to {watchers} watchers in the process");
    let mut figure = Figure::new(None, measure, Unit::PerCpuSecond).alone();
    for counts in scale.rounds() {
        let rate = fan_out(watchers, writes).await?;
        if counts {
            figure.push(Server::Windlass, rate);
        }
    }
    Ok(figure)
}

/// How many events reach a watcher in a second of CPU, which watchers and writer share.
async fn fan_out(watchers: usize, writes: usize) -> Result<f64, Error> {
    let server = embedded::filled(1).await?;
    let delivered = Rc::new(Cell::new(0));
    for _ in 0..watchers {
        let target = format!("{}?watch=true&resourceVersion={}", Crate::PATH, server.store().revision());
        let stream = server.clone().call(request(Method::GET, &target, "application/json", Bytes::new())?).await?;
        tokio::task::spawn_local(count(stream.into_body(), Rc::clone(&delivered)));
    }
    let one = format!("{}/{}", Crate::PATH, name(0));
    let before = thread_cpu()?;
    for number in 0..writes {
        let patch = Crate::patch(u8::try_from(number % 2)?).to_string();
        send(&server, request(Method::PATCH, &one, "application/merge-patch+json", patch)?).await?;
        // Everybody has it before the next one: nothing is delivered in batches.
        while delivered.get() < watchers * (number + 1) {
            tokio::task::yield_now().await;
        }
    }
    let cost = thread_cpu()? - before;
    Ok(delivered.get() as f64 / cost)
}

async fn count(mut stream: Body, delivered: Rc<Cell<usize>>) {
    while let Some(Ok(frame)) = stream.frame().await {
        if frame.is_data() {
            delivered.set(delivered.get() + 1);
        }
    }
}
