//! Q7 and Q8: from nothing to the first answer and to an established definition, and what an empty server holds.

use std::path::Path;
use std::time::Duration;

use http::Method;
use kube::{CustomResourceExt as _, ResourceExt as _};
use serde_json::Value;
use tokio::time::Instant;

use crate::embedded::request;
use crate::list::{answer, json};
use crate::measure::{Rounds, resident};
use crate::objects::{self, Crate};
use crate::real::{self, RealServer};
use crate::report::{Table, megabytes, milliseconds};
use crate::transport::{Error, Https};
use crate::up::Up;

const ROUNDS: usize = 7;

#[derive(Default)]
struct Starts {
    first_answer: Rounds,
    established: Rounds,
    resident: Rounds,
}

pub async fn table() -> Result<Table, Error> {
    let assets = real::assets();
    let (mut ours, mut theirs) = (Starts::default(), Starts::default());
    // The first start reads the programs from the disk, and is thrown away.
    drop(Up::start().await?);
    for _ in 0..ROUNDS {
        ours.start_ours().await?;
        if let Some(assets) = &assets {
            theirs.start_theirs(assets).await?;
        }
    }
    let columns =
        ["measure", "aim", "ours: best", "median", "kube-apiserver + etcd: best", "median", "ratio of medians"];
    let mut table = Table::new("Q7, Q8: start and memory of an empty server", &columns);
    let mut row = |measure: &str, aim: &str, ours: &Rounds, theirs: &Rounds, show: fn(f64) -> String| {
        let not_compared = || "not compared".to_owned();
        let compared = |text: String| if assets.is_some() { text } else { not_compared() };
        table.row([
            measure.to_owned(),
            aim.to_owned(),
            show(ours.min()),
            show(ours.median()),
            compared(show(theirs.min())),
            compared(show(theirs.median())),
            compared(format!("{:.0}", theirs.median() / ours.median())),
        ]);
    };
    row("Q8 exec to the first 200 of /readyz", "≤ 25 ms", &ours.first_answer, &theirs.first_answer, milliseconds);
    row("Q8 exec to a definition established", "", &ours.established, &theirs.established, milliseconds);
    row("Q7 resident after the first answer", "≤ 20 MB", &ours.resident, &theirs.resident, megabytes);
    table.note(format!("ours, first answer, ms: {}", ours.first_answer.raw(1e3)));
    table.note(format!("ours, established, ms: {}", ours.established.raw(1e3)));
    table.note(format!("theirs, first answer, ms: {}", theirs.first_answer.raw(1e3)));
    table.note(format!("theirs, established, ms: {}", theirs.established.raw(1e3)));
    table.note(
        "Both over HTTPS on loopback, the client's handshake included; etcd writes to a temporary folder with fsync.",
    );
    Ok(table)
}

impl Starts {
    async fn start_ours(&mut self) -> Result<(), Error> {
        let began = Instant::now();
        let (up, https) = Up::start().await?;
        answer(&https, request(Method::GET, "/readyz", "application/json", "")?).await?;
        self.first_answer.push(began.elapsed().as_secs_f64());
        self.resident.push(resident(&up.pid().to_string())? as f64);
        establish(&https).await?;
        self.established.push(began.elapsed().as_secs_f64());
        Ok(())
    }

    async fn start_theirs(&mut self, assets: &Path) -> Result<(), Error> {
        let began = Instant::now();
        let (server, https) = RealServer::start_new(assets).await?;
        self.first_answer.push(began.elapsed().as_secs_f64());
        let mut sum = 0;
        for pid in server.pids() {
            sum += resident(&pid.to_string())?;
        }
        self.resident.push(sum as f64);
        establish(&https).await?;
        self.established.push(began.elapsed().as_secs_f64());
        Ok(())
    }
}

/// Defines the custom resource, and waits until it is served.
pub async fn establish(https: &Https) -> Result<(), Error> {
    let definition = Crate::crd();
    let body = serde_json::to_vec(&definition)?;
    answer(https, request(Method::POST, objects::DEFINITIONS, "application/json", body)?).await?;
    let one = format!("{}/{}", objects::DEFINITIONS, definition.name_any());
    loop {
        let found: Value = json(https, request(Method::GET, &one, "application/json", "")?).await?;
        let conditions = found["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
        if conditions.iter().any(|condition| condition["type"] == "Established" && condition["status"] == "True") {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
