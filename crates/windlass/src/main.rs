//! The `windlass` binary: parses the command line, runs one command, and says how it went.

mod access;
mod ask;
mod changed;
mod client;
mod command;
mod course;
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
mod state;
mod update;
mod wait;
mod wanted;
mod watch;
mod way;

use std::process::ExitCode;

use clap::Parser;

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
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(answer) => return output::usage(&answer),
    };
    match cli.command.run() {
        Ok(exit) => exit.into(),
        Err(failure) => output::failure(&failure),
    }
}
