//! Q4: a list of 10,000 custom resources, until its last byte has been read.

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use http::Method;
use http_body_util::BodyExt as _;
use tokio::time::Instant;
use tower::Service as _;
use windlass_reference::Error;
use windlass_reference::https::Https;

use super::Scale;
use super::embedded::{self, request};
use super::measure::{process_cpu, thread_cpu};
use super::objects::{Crate, Sample as _};
use super::report::{Aim, Figure, Section, Server, Unit};
use super::side::{self, Side, answer};
use super::start::establish;
use super::up::{Keeps, Up};

const OBJECTS: usize = 10_000;
/// Requests that are under way at once while a server is filled.
const AT_ONCE: usize = 32;
/// A round is a median of so many lists: one alone is over too soon.
const LISTS: usize = 3;

pub async fn measure(scale: Scale) -> Result<Section, Error> {
    let objects = scale.of(OBJECTS);
    let (up, https) = Up::start(Keeps::InMemory).await?;
    let mut sides = vec![Side::Ours(up, https)];
    sides.extend(Side::kube().await?);
    for side in &sides {
        fill(way(side)?, objects).await?;
    }
    side::pin(&sides);
    let better = Aim::TimesBetter { than: Server::KubeApiserver, times: 10.0 };
    let mut wall = Figure::new(Some("Q4"), "list over HTTPS, p50", Unit::Seconds).aim(better);
    let mut cpu = Figure::new(Some("Q4"), "the same, CPU of the server", Unit::Seconds).aim(better);
    let mut size = 0;
    for counts in scale.rounds() {
        for side in &sides {
            let pids = side.pids();
            let mut walls = Vec::with_capacity(LISTS);
            let before = process_cpu(&pids)?;
            for _ in 0..LISTS {
                let began = Instant::now();
                let list =
                    way(side)?.send(request(Method::GET, Crate::PATH, "application/json", Bytes::new())?).await?;
                size = read(list.into_body()).await?;
                walls.push(began.elapsed().as_secs_f64());
            }
            walls.sort_by(f64::total_cmp);
            if counts {
                wall.push(side.server(), walls.get(LISTS / 2).copied().unwrap_or_default());
                cpu.push(side.server(), (process_cpu(&pids)? - before) / LISTS as f64);
            }
        }
    }
    let inside = in_the_process(scale, objects).await?;
    let figures = vec![wall, cpu, inside];
    Ok(Section::new("List of 10,000 custom resources", figures, &[Server::KubeApiserver])
        .note(format!("{:.1} MB of JSON, read to its end. Nothing is written meanwhile.", size as f64 / 1e6)))
}

fn way(side: &Side) -> Result<&Https, Error> {
    match side {
        Side::Ours(_, https) | Side::Kube(_, https) => Ok(https),
        Side::Etcd(_) => Err("etcd knows no custom resources".into()),
    }
}

async fn in_the_process(scale: Scale, objects: usize) -> Result<Figure, Error> {
    let mut server = embedded::filled(objects).await?;
    let mut figure = Figure::new(None, "list in the process", Unit::Seconds).alone();
    for counts in scale.rounds() {
        let before = thread_cpu()?;
        let list = server.call(request(Method::GET, Crate::PATH, "application/json", Bytes::new())?).await?;
        read(list.into_body()).await?;
        if counts {
            figure.push(Server::Windlass, thread_cpu()? - before);
        }
    }
    Ok(figure)
}

/// Defines the custom resource, and makes the objects.
pub async fn fill(https: &Https, objects: usize) -> Result<(), Error> {
    establish(https).await?;
    let create = |number| async move {
        let body = serde_json::to_vec(&Crate::sample(number))?;
        answer(https, Method::POST, Crate::PATH, "application/json", body).await
    };
    futures::stream::iter((0..objects).map(create)).buffer_unordered(AT_ONCE).try_for_each(|_| async { Ok(()) }).await
}

/// Reads a body as it comes, without putting it together.
async fn read<B>(mut body: B) -> Result<usize, Error>
where
    B: hyper::body::Body<Data = Bytes> + Unpin,
    B::Error: Into<Error>,
{
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        bytes += frame.map_err(Into::into)?.data_ref().map_or(0, Bytes::len);
    }
    Ok(bytes)
}
