//! What the API server costs: in this process, and behind HTTPS beside a real kube-apiserver when one is given.
//!
//! `cargo bench -p windlass --bench apiserver [-- SECTION...]` runs all sections, or those that are named: `memory`,
//! `operations`, `fork`, `watch`, `list`, `start`. With `KUBEBUILDER_ASSETS` naming a folder that has `kube-apiserver` and
//! `etcd`, `list` and `start` also run on those, in turns. The rules are in `docs/performance.md`.
#![allow(missing_docs, reason = "a program, not an interface; and the objects are what a user of kube would write")]
#![allow(clippy::cast_precision_loss, reason = "counts here are far below 2^52")]

mod embedded;
mod fork;
#[path = "../../../apiserver/tests/it/conformance/hooks.rs"]
#[allow(dead_code, reason = "nothing is measured of webhooks")]
mod hooks;
mod list;
mod measure;
mod memory;
mod objects;
mod operations;
#[path = "../../../apiserver/tests/it/conformance/real.rs"]
#[allow(dead_code, reason = "the conformance tests use more of it")]
mod real;
mod report;
mod start;
#[path = "../../../apiserver/tests/it/conformance/transport.rs"]
mod transport;
mod up;
mod watch;

use transport::Error;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// In this order: memory is measured on a heap that nothing has used before.
const SECTIONS: [&str; 6] = ["memory", "operations", "fork", "watch", "list", "start"];

fn main() -> Result<(), Error> {
    // Cargo adds `--bench`.
    let chosen: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    if let Some(unknown) = chosen.iter().find(|name| !SECTIONS.contains(&name.as_str())) {
        return Err(format!("there is no section {unknown}; the sections are {}", SECTIONS.join(", ")).into());
    }
    // One thread does everything, so its CPU time is that of client and server.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    report::say(&format!("Machine: {}", measure::machine()));
    for section in SECTIONS {
        if chosen.is_empty() || chosen.iter().any(|name| name == section) {
            runtime.block_on(run(section))?;
        }
    }
    Ok(())
}

async fn run(section: &str) -> Result<(), Error> {
    let table = match section {
        "memory" => memory::table().await?,
        "operations" => operations::table().await?,
        "fork" => fork::table().await?,
        "watch" => watch::table().await?,
        "list" => list::table().await?,
        _ => start::table().await?,
    };
    table.print();
    Ok(())
}
