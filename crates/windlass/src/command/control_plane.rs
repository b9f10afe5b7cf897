//! `windlass control-plane upgrade` and `abort`: what the Jobs of an update run.

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
    /// Does what it is told, and says how it went.
    pub async fn run(self) -> Result<Exit, Failure> {
        let (client, clock) = (ambient().await?, Clock::wall());
        let workloads = Arc::new(OverKubeconfig::of(client.clone(), clock.clone()));
        let access = UpgraderAccess { client, workloads, clock };
        let id = self.command.arguments().upgrade_id;
        let done = upgrader::obey(&access, &self.command).await;
        let done = done.map_err(|error| Unfinished { report: error.report(), id })?;
        output::data(&done)?;
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
