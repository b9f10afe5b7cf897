//! The verbs, one file each.

mod up;

use crate::error::Error;

/// What Windlass can be told to do.
#[derive(clap::Subcommand)]
pub enum Command {
    Up(up::Up),
}

impl Command {
    /// Runs the command to its end.
    pub fn run(self) -> Result<(), Error> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Error::Runtime)?;
        match self {
            Self::Up(up) => runtime.block_on(up.run()),
        }
    }
}
