//! One writer, many watchers, all in the process: every change goes to every watcher.

use std::cell::Cell;
use std::rc::Rc;

use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt as _;
use tokio::task::LocalSet;
use tower::Service as _;
use windlass_apiserver::body::Body;

use crate::embedded::{self, request, send};
use crate::measure::{Rounds, thread_cpu};
use crate::objects::{Crate, Sample as _, name};
use crate::report::{Table, grouped};
use crate::transport::Error;

const ROUNDS: usize = 5;
/// How many watchers, and how many writes in a round.
const SIZES: [(usize, usize); 2] = [(100, 2_000), (1_000, 200)];

pub async fn table() -> Result<Table, Error> {
    let columns = ["watchers", "events delivered per CPU-second: best", "median", "µs CPU per event (median)"];
    let mut table = Table::new("Watch fan-out, one writer, one core, in the process", &columns);
    for (watchers, writes) in SIZES {
        let mut rounds = Rounds::default();
        for round in 0..=ROUNDS {
            let cost = LocalSet::new().run_until(fan_out(watchers, writes)).await?;
            if round > 0 {
                rounds.push(cost);
            }
        }
        let rate = |cost: f64| grouped(1.0 / cost);
        let each = format!("{:.2}", rounds.median() * 1e6);
        table.row([grouped(watchers as f64), rate(rounds.min()), rate(rounds.median()), each]);
        table.note(format!("{watchers} watchers, {writes} writes, µs per event: {}", rounds.raw(1e6)));
    }
    table.note("The writes are included: one merge patch for each event that all watchers get.");
    Ok(table)
}

/// Seconds of CPU for each event that reached a watcher.
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
    Ok(cost / delivered.get() as f64)
}

async fn count(mut stream: Body, delivered: Rc<Cell<usize>>) {
    while let Some(Ok(frame)) = stream.frame().await {
        if frame.is_data() {
            delivered.set(delivered.get() + 1);
        }
    }
}
