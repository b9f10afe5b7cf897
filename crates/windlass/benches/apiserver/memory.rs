//! Q6: what an object costs in memory.

use windlass_apiserver::store::Range;

use crate::embedded;
use crate::measure::resident;
use crate::objects::{Crate, Sample as _};
use crate::report::{Table, grouped, megabytes};
use crate::transport::Error;

const OBJECTS: usize = 100_000;

pub async fn table() -> Result<Table, Error> {
    let empty = embedded::server().await?;
    let before = resident("self")?;
    let server = embedded::filled(OBJECTS).await?;
    let growth = (resident("self")? - before) as f64;
    drop(empty);
    let everything = Range { namespace: None, after: None, limit: 0 };
    let entries = server.store().list("crates.bench.example.com", everything, |_| true).entries;
    let stored: usize = entries.iter().map(|entry| entry.json.len()).sum();

    let mut table = Table::new("Q6: memory per custom resource, in the process", &["measure", "aim", "ours"]);
    let sent = serde_json::to_vec(&Crate::sample(0))?.len();
    let each = |bytes: f64| format!("{} B", grouped(bytes / OBJECTS as f64));
    table.row(["as sent".into(), String::new(), format!("{sent} B")]);
    table.row(["as stored, with managed fields".into(), String::new(), each(stored as f64)]);
    table.row(["resident memory for each".into(), "≤ 2,048 B".into(), each(growth)]);
    table.row(["resident memory for all".into(), String::new(), megabytes(growth)]);
    table
        .note(format!("{OBJECTS} objects, and the history of their creation for watches. One round: the heap is new."));
    Ok(table)
}
