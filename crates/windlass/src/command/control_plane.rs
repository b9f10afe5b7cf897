//! `windlass control-plane upgrade`: what the Job of an update runs.

use std::sync::Arc;

use windlass_api::name::UpdateId;
use windlass_controller::upgrader::{self, UpgraderAccess};
use windlass_runtime::clock::Clock;

use crate::access::{OverKubeconfig, ambient};
use crate::error::{Exit, Explained, Failure, Kind};
use crate::output;

/// Work on the machines of a control plane, as the Jobs of updates do
#[derive(clap::Args)]
pub struct ControlPlane {
    #[command(subcommand)]
    command: upgrader::Command,
}

impl ControlPlane {
    /// Replaces the machines, and says how it went.
    pub async fn run(self) -> Result<Exit, Failure> {
        let upgrader::Command::Upgrade(arguments) = self.command;
        let access =
            UpgraderAccess { client: ambient().await?, workloads: Arc::new(OverKubeconfig), clock: Clock::wall() };
        let id = arguments.upgrade_id;
        let done = upgrader::run(&access, &arguments).await;
        let done = done.map_err(|error| Unfinished { report: error.report(), id })?;
        output::data(&done.to_string())?;
        Ok(Exit::Done)
    }
}

/// Not all machines were replaced.
#[derive(Debug, thiserror::Error)]
#[error("{report}")]
struct Unfinished {
    report: String,
    id: UpdateId,
}

impl Explained for Unfinished {
    fn kind(&self) -> Kind {
        Kind::Environment
    }

    fn hint(&self) -> Option<String> {
        Some(format!("the same again, with --upgrade-id={}: it goes on where this run has ended", self.id))
    }

    fn exit(&self) -> Exit {
        Exit::OperationFailed
    }
}
