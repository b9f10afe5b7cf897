//! The `windlass` binary: parses the command line, runs one command, and says how it went.

mod access;
mod ask;
mod changed;
mod client;
mod command;
mod course;
mod doing;
mod error;
mod facts;
mod git;
mod log;
mod manifests;
mod output;
mod pending;
mod progress;
mod release;
mod report;
mod roster;
mod scenario;
mod serving;
mod snapshot;
mod standing;
mod state;
mod update;
mod wait;
mod wanted;
mod watch;
mod way;

use std::ffi::OsStr;
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Creates Kubernetes workload clusters and rolls them to new releases, safely.
#[derive(Parser)]
#[command(name = "windlass", version, arg_required_else_help = true, after_help = error::EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: command::Command,
}

fn main() -> ExitCode {
    let parsed = as_it_was_called(Cli::command()).try_get_matches();
    let cli = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(answer) => return output::usage(&answer),
    };
    match cli.command.run() {
        Ok(exit) => exit.into(),
        Err(failure) => output::failure(&failure),
    }
}

/// kubectl finds a program `kubectl-windlass` as `kubectl windlass`: that is then what help says.
fn as_it_was_called(command: clap::Command) -> clap::Command {
    let program = std::env::args_os().next().unwrap_or_default();
    let name = Path::new(&program).file_stem().and_then(OsStr::to_str).unwrap_or_default();
    match name.strip_prefix("kubectl-") {
        Some(plugin) => command.bin_name(format!("kubectl {plugin}")),
        None => command,
    }
}
