//! Q6: what an object costs in memory.

use http::Method;
use windlass_apiserver::ApiServer;
use windlass_apiserver::store::Range;

use crate::embedded::{self, request, send};
use crate::measure::resident;
use crate::objects::{Crate, Sample as _};
use crate::report::{Table, grouped};
use crate::transport::Error;

const OBJECTS: usize = 100_000;

pub async fn table() -> Result<Table, Error> {
    let columns = ["object", "aim", "as sent", "as stored", "resident for each", "per stored byte"];
    let mut table = Table::new("Q6: memory per custom resource, in the process", &columns);
    let small = row(&mut table, "1 KiB as stored", "≤ 2,048 B", Crate::small).await?;
    // The first server stays, so that the second gets nothing of its memory.
    row(&mut table, "1 KiB as sent", "", Crate::sample).await?;
    drop(small);
    table
        .note(format!("{OBJECTS} objects, and the history of their creation for watches. One round: the heap is new."));
    table.note("What is stored includes managedFields.");
    Ok(table)
}

async fn row(table: &mut Table, object: &str, aim: &str, make: fn(usize) -> Crate) -> Result<ApiServer, Error> {
    let server = embedded::server().await?;
    let before = resident("self")?;
    for number in 0..OBJECTS {
        let body = serde_json::to_vec(&make(number))?;
        send(&server, request(Method::POST, Crate::PATH, "application/json", body)?).await?;
    }
    let each = (resident("self")? - before) as f64 / OBJECTS as f64;
    let everything = Range { namespace: None, after: None, limit: 0 };
    let entries = server.store().list("crates.bench.example.com", everything, |_| true).entries;
    let stored = entries.iter().map(|entry| entry.json.len()).sum::<usize>() as f64 / OBJECTS as f64;
    let bytes = |bytes: f64| format!("{} B", grouped(bytes));
    let sent = serde_json::to_vec(&make(0))?.len() as f64;
    let ratio = format!("{:.2} B", each / stored);
    table.row([object.to_owned(), aim.to_owned(), bytes(sent), bytes(stored), bytes(each), ratio]);
    Ok(server)
}
