//! A server of one's own with the same objects: what a rehearsal begins with.

use windlass_apiserver::Options;

use crate::embedded;
use crate::measure::{Rounds, thread_cpu};
use crate::report::{Table, milliseconds};
use crate::transport::Error;

const OBJECTS: usize = 10_000;
const ROUNDS: usize = 11;

pub async fn table() -> Result<Table, Error> {
    let server = embedded::filled(OBJECTS).await?;
    let mut rounds = Rounds::default();
    for _ in 0..ROUNDS {
        let before = thread_cpu()?;
        let fork = server.fork(Options::default());
        rounds.push(thread_cpu()? - before);
        drop(fork);
    }
    let mut table = Table::new("Fork of a server with 10,000 objects", &["measure", "best", "median"]);
    table.row(["CPU".into(), milliseconds(rounds.min()), milliseconds(rounds.median())]);
    table.note(format!("rounds, ms: {}", rounds.raw(1e3)));
    Ok(table)
}
