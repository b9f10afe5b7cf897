//! Q6: what an object costs in memory.

use futures::{StreamExt as _, TryStreamExt as _};
use http::Method;
use windlass_apiserver::ApiServer;
use windlass_apiserver::store::Range;
use windlass_reference::Error;

use super::Scale;
use super::embedded::{self, request, send};
use super::measure::{resident, resident_together};
use super::objects::{Crate, Sample as _};
use super::report::{Aim, Figure, Section, Server, Unit};
use super::side::Side;
use super::up::Keeps;

const OBJECTS: usize = 100_000;
/// In servers of their own: kube-apiserver takes minutes for more.
const COMPARED: usize = 10_000;
const AT_ONCE: usize = 32;
/// What is aimed at, for an object of 1 KiB.
const BYTES_MAX: f64 = 2_048.0;

pub async fn measure(scale: Scale) -> Result<Section, Error> {
    let objects = scale.of(OBJECTS);
    let (small, first) = in_the_process("1 KiB as stored", objects, Crate::small).await?;
    // The first server stays, so that the second gets nothing of its memory.
    let (_, second) = in_the_process("1 KiB as sent", objects, Crate::sample).await?;
    drop(small);
    let compared = compared(scale.of(COMPARED)).await?;
    let figures = vec![first.aim(Aim::AtMost(BYTES_MAX)), second, compared];
    Ok(Section::new("Memory per object", figures, &[Server::Etcd, Server::KubeApiserver])
        .note(format!("In the process: {objects} custom resources, and the history of their creation for watches."))
        .note(
            "What is stored includes managedFields, of which the sent object has none; etcd alone stores what is sent.",
        )
        .note("Resident memory, one round: a heap is new once. Beside the others: ConfigMaps, with data directories."))
}

async fn in_the_process(object: &str, count: usize, make: fn(usize) -> Crate) -> Result<(ApiServer, Figure), Error> {
    let server = embedded::server().await?;
    let before = resident("self")?;
    for number in 0..count {
        let body = serde_json::to_vec(&make(number))?;
        send(&server, request(Method::POST, Crate::PATH, "application/json", body)?).await?;
    }
    let each = (resident("self")? - before) / count as f64;
    let everything = Range { namespace: None, after: None, limit: 0 };
    let entries = server.store().list("crates.bench.example.com", everything, |_| true).entries;
    let stored = entries.iter().map(|entry| entry.json.len()).sum::<usize>() / count;
    let measure = format!("in the process, {object} ({stored} B stored)");
    Ok((server, Figure::new(Some("Q6"), measure, Unit::Bytes).alone().all(Server::Windlass, [each])))
}

async fn compared(count: usize) -> Result<Figure, Error> {
    let aim = |than, times| Aim::TimesBetter { than, times };
    let mut figure = Figure::new(Some("Q6"), format!("at {count} objects, 1 KiB as sent"), Unit::Bytes)
        .aim(aim(Server::Etcd, 2.0))
        .aim(aim(Server::KubeApiserver, 50.0));
    for side in &mut Side::all(Keeps::OnDisk).await? {
        let client = side.client().await?;
        let pids = side.pids();
        let before = resident_together(&pids)?;
        let creating = futures::stream::iter((0..count).map(|number| client.create(number)));
        creating.buffer_unordered(AT_ONCE).try_for_each(|()| async { Ok(()) }).await?;
        figure.push(side.server(), (resident_together(&pids)? - before) / count as f64);
    }
    Ok(figure)
}
