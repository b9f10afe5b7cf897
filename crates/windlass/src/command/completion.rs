//! `windlass completion`: what shells complete commands with.

use clap::CommandFactory as _;
use clap_complete::{Shell, generate};

use crate::error::{Exit, Failure};
use crate::output;

/// Write what a shell completes commands with
#[derive(clap::Args)]
#[command(after_help = "Example:\n  source <(windlass completion bash)")]
pub struct Completion {
    /// The shell
    shell: Shell,
}

impl Completion {
    /// Writes it.
    pub fn run(&self) -> Result<Exit, Failure> {
        let mut script = Vec::new();
        generate(self.shell, &mut crate::Cli::command(), "windlass", &mut script);
        output::data(&String::from_utf8_lossy(&script))?;
        Ok(Exit::Done)
    }
}
