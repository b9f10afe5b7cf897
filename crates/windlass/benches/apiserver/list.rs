//! Q4: a list of 10,000 custom resources, until its last byte has been read.

use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use serde_json::Value;
use tokio::time::Instant;
use tower::Service as _;

use crate::embedded::{self, request};
use crate::measure::{self, Rounds, process_cpu, thread_cpu};
use crate::objects::{Crate, Sample as _};
use crate::real::{self, RealServer};
use crate::report::{Table, grouped, milliseconds};
use crate::start::establish;
use crate::transport::{Error, Https, Transport as _};
use crate::up::Up;

const OBJECTS: usize = 10_000;
const ROUNDS: usize = 15;
/// Requests that are under way at once while a server is filled.
const AT_ONCE: usize = 32;

#[derive(Default)]
struct Lists {
    wall: Rounds,
    server_cpu: Rounds,
    bytes: usize,
}

pub async fn table() -> Result<Table, Error> {
    let in_process = in_process().await?;
    let (up, https) = Up::start().await?;
    fill(&https).await?;
    let reference = match real::assets() {
        Some(assets) => {
            let started = RealServer::start_new(&assets).await?;
            fill(&started.1).await?;
            Some(started)
        }
        None => None,
    };
    let pids = reference.as_ref().map(|(server, _)| server.pids()).unwrap_or_default();
    measure::pin(std::process::id(), 0);
    pids.iter().chain([&up.pid()]).for_each(|pid| measure::pin(*pid, 1));
    let (mut ours, mut theirs) = (Lists::default(), Lists::default());
    // The first round warms up, and is thrown away.
    for round in 0..=ROUNDS {
        ours.round(&https, &[up.pid()], round > 0).await?;
        if let Some((_, https)) = &reference {
            theirs.round(https, &pids, round > 0).await?;
        }
    }
    Ok(report(&in_process, &ours, reference.is_some().then_some(&theirs)))
}

fn report(in_process: &Lists, ours: &Lists, theirs: Option<&Lists>) -> Table {
    let columns = ["server", "p50", "min", "max", "server CPU: median", "min", "bytes"];
    let mut table = Table::new("Q4: list of 10,000 custom resources", &columns);
    let mut row = |server: &str, lists: &Lists| {
        let wall = [lists.wall.median(), lists.wall.min(), lists.wall.max()].map(milliseconds);
        let cpu = [lists.server_cpu.median(), lists.server_cpu.min()].map(milliseconds);
        let ([p50, min, max], [cpu_median, cpu_min]) = (wall, cpu);
        table.row([server.to_owned(), p50, min, max, cpu_median, cpu_min, grouped(lists.bytes as f64)]);
    };
    row("ours, in the process", in_process);
    row("ours, HTTPS", ours);
    if let Some(theirs) = theirs {
        row("kube-apiserver + etcd, HTTPS, JSON", theirs);
        let wall = theirs.wall.median() / ours.wall.median();
        let cpu = theirs.server_cpu.median() / ours.server_cpu.median();
        table.note(format!("Ratio of medians, theirs to ours (aim: ≥ 10): p50 {wall:.1}, server CPU {cpu:.1}."));
        table.note(format!("theirs, ms: {}", theirs.wall.raw(1e3)));
        table.note(format!("theirs, server CPU, ms: {}", theirs.server_cpu.raw(1e3)));
    } else {
        table.note("Ratio to kube-apiserver + etcd: not compared.");
    }
    table.note(format!("ours in the process, ms: {}", in_process.wall.raw(1e3)));
    table.note(format!("ours, ms: {}", ours.wall.raw(1e3)));
    table.note(format!("ours, server CPU, ms: {}", ours.server_cpu.raw(1e3)));
    table
}

async fn in_process() -> Result<Lists, Error> {
    let mut server = embedded::filled(OBJECTS).await?;
    let mut lists = Lists::default();
    for round in 0..=ROUNDS {
        let (began, before) = (Instant::now(), thread_cpu()?);
        let list = server.call(request(Method::GET, Crate::PATH, "application/json", Bytes::new())?).await?;
        let bytes = read(list.into_body()).await?;
        if round > 0 {
            lists.push(began.elapsed(), thread_cpu()? - before, bytes);
        }
    }
    Ok(lists)
}

impl Lists {
    fn push(&mut self, wall: Duration, server_cpu: f64, bytes: usize) {
        self.wall.push(wall.as_secs_f64());
        self.server_cpu.push(server_cpu);
        self.bytes = bytes;
    }

    async fn round(&mut self, https: &Https, pids: &[u32], counts: bool) -> Result<(), Error> {
        let (began, before) = (Instant::now(), process_cpu(pids)?);
        let list = https.send(request(Method::GET, Crate::PATH, "application/json", Bytes::new())?).await?;
        let bytes = read(list.into_body()).await?;
        if counts {
            self.push(began.elapsed(), process_cpu(pids)? - before, bytes);
        }
        Ok(())
    }
}

/// Defines the custom resource, and makes the objects.
async fn fill(https: &Https) -> Result<(), Error> {
    establish(https).await?;
    let create = |number| async move {
        let body = serde_json::to_vec(&Crate::sample(number))?;
        answer(https, request(Method::POST, Crate::PATH, "application/json", body)?).await
    };
    futures::stream::iter((0..OBJECTS).map(create)).buffer_unordered(AT_ONCE).try_for_each(|_| async { Ok(()) }).await
}

/// Reads a body as it comes, without putting it together.
async fn read<B>(mut body: B) -> Result<usize, Error>
where
    B: http_body::Body<Data = Bytes> + Unpin,
    B::Error: Into<Error>,
{
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        bytes += frame.map_err(Into::into)?.data_ref().map_or(0, Bytes::len);
    }
    Ok(bytes)
}

/// Sends a request that must succeed.
pub async fn answer(https: &Https, request: Request<Full<Bytes>>) -> Result<Bytes, Error> {
    let answer = https.send(request).await?;
    let status = answer.status();
    let body = answer.into_body().collect().await?.to_bytes();
    if status.is_success() { Ok(body) } else { Err(format!("{status}: {}", String::from_utf8_lossy(&body)).into()) }
}

/// The answer, read as JSON.
pub async fn json(https: &Https, request: Request<Full<Bytes>>) -> Result<Value, Error> {
    Ok(serde_json::from_slice(&answer(https, request).await?)?)
}
