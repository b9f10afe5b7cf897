//! Q7 and Q8: from nothing to the first answer and to an established definition, and what an empty server holds.

use std::path::Path;
use std::time::Duration;

use http::Method;
use kube::{CustomResourceExt as _, ResourceExt as _};
use tokio::time::Instant;
use windlass_reference::Error;
use windlass_reference::etcd::Etcd;
use windlass_reference::https::Https;
use windlass_reference::server::RealServer;

use super::Scale;
use super::measure::resident_together;
use super::objects::{self, Crate};
use super::report::{Aim, Figure, Section, Server, Unit};
use super::side::{Side, answer, json};
use super::up::{Keeps, Up};

struct Starts {
    first_answer: Figure,
    established: Figure,
    resident: Figure,
}

pub async fn measure(scale: Scale) -> Result<Section, Error> {
    let figure = |number, measure: &str, unit| Figure::new(number, measure, unit);
    let better = |than, times| Aim::TimesBetter { than, times };
    let mut starts = Starts {
        first_answer: figure(Some("Q8"), "start to the first answer", Unit::Seconds)
            .aim(Aim::AtMost(0.025))
            .aim(better(Server::Etcd, 18.0)),
        established: figure(Some("Q8"), "start to a definition established", Unit::Seconds),
        resident: figure(Some("Q7"), "resident after the first answer", Unit::Bytes)
            .aim(Aim::AtMost(20e6))
            .aim(better(Server::KubeApiserver, 16.0)),
    };
    let (etcd, assets) = (windlass_reference::installed("etcd"), windlass_reference::assets());
    // The first start reads the programs from the disk, and is thrown away.
    for counts in scale.rounds() {
        starts.ours(counts).await?;
        if let Some(program) = &etcd {
            starts.etcd(program, counts).await?;
        }
        if let Some(assets) = &assets {
            starts.kube(assets, counts).await?;
        }
    }
    let figures = vec![starts.first_answer, starts.established, starts.resident];
    Ok(Section::new("Start and memory of an empty server", figures, &[Server::KubeApiserver]).note(
        "From the start of the process, with nothing written before; over HTTPS on loopback, the client's handshake \
         included. Ours keeps everything in memory, the others write to a temporary folder. Ours is the server alone: windlass up has a World in it, too.",
    ))
}

impl Starts {
    fn first(&mut self, counts: bool, server: Server, began: Instant, pids: &[u32]) -> Result<(), Error> {
        if counts {
            self.first_answer.push(server, began.elapsed().as_secs_f64());
            self.resident.push(server, resident_together(pids)?);
        }
        Ok(())
    }

    async fn ours(&mut self, counts: bool) -> Result<(), Error> {
        let began = Instant::now();
        let (up, https) = Up::start(Keeps::InMemory).await?;
        answer(&https, Method::GET, "/readyz", "application/json", "").await?;
        self.first(counts, Server::Windlass, began, &[up.pid()])?;
        establish(&https).await?;
        if counts {
            self.established.push(Server::Windlass, began.elapsed().as_secs_f64());
        }
        Ok(())
    }

    async fn etcd(&mut self, program: &Path, counts: bool) -> Result<(), Error> {
        let began = Instant::now();
        let mut side = Side::Etcd(Etcd::start(program)?);
        side.client().await?.has(0).await?;
        self.first(counts, Server::Etcd, began, &side.pids())
    }

    async fn kube(&mut self, assets: &Path, counts: bool) -> Result<(), Error> {
        let began = Instant::now();
        let (server, https) = RealServer::start_new(assets).await?;
        self.first(counts, Server::KubeApiserver, began, &server.pids())?;
        establish(&https).await?;
        if counts {
            self.established.push(Server::KubeApiserver, began.elapsed().as_secs_f64());
        }
        Ok(())
    }
}

/// Defines the custom resource, and waits until it is served.
pub async fn establish(https: &Https) -> Result<(), Error> {
    let definition = Crate::crd();
    let body = serde_json::to_vec(&definition)?;
    answer(https, Method::POST, objects::DEFINITIONS, "application/json", body).await?;
    let one = format!("{}/{}", objects::DEFINITIONS, definition.name_any());
    loop {
        let found = json(https, &one).await?;
        let conditions = found["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
        if conditions.iter().any(|condition| condition["type"] == "Established" && condition["status"] == "True") {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
