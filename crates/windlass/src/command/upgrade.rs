//! `windlass upgrade`: the one write by which an upgrade begins.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use kube::api::{Patch, PatchParams};
use serde::Serialize;
use serde_json::json;
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::name::ClusterName;
use windlass_api::version::{KubernetesVersion, VersionPrefix};

use crate::client::{self, Connection, FIELD_MANAGER, Management};
use crate::error::{Exit, Explained, Failure, Kind};
use crate::output::{self, Document, Format};
use crate::wait::Patience;

use super::block_on;
use super::plan::plan;
use super::release::current;

/// Upgrade a cluster to a release
///
/// Sets the version of the cluster; the controllers do the rest: packages, then the control plane, then the workers.
/// Without --yes the upgrade is shown, and a person is asked.
#[derive(clap::Args)]
pub struct Upgrade {
    /// The cluster
    cluster: ClusterName,
    /// The release, or the beginning of its version
    #[arg(long, value_name = "RELEASE")]
    to: VersionPrefix,
    /// Only if this is still what would be done: the envelope that `plan` printed
    #[arg(long, value_name = "DIGEST")]
    envelope: Option<String>,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Write it as a document instead, for scripts
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Format>,
    #[command(flatten)]
    patience: Patience,
    #[command(flatten)]
    connection: Connection,
}

/// What `upgrade -o` writes.
#[derive(Serialize)]
struct UpgradeReport<'a> {
    cluster: &'a ClusterName,
    from: &'a KubernetesVersion,
    to: &'a KubernetesVersion,
    outcome: Outcome,
}

/// How it went.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
enum Outcome {
    NothingToDo,
    Begun,
    Succeeded,
}

impl Upgrade {
    /// Begins the upgrade, and waits for its end if that is wanted.
    pub fn run(self) -> Result<Exit, Failure> {
        if let Some(reviewed) = &self.envelope {
            let found = plan(&self.connection, &self.cluster, &self.to)?.envelope_digest;
            if found != *reviewed {
                return Err(Error::Stale { cluster: self.cluster, to: self.to, found }.into());
            }
        }
        block_on(self.begin())
    }

    async fn begin(self) -> Result<Exit, Failure> {
        let management = self.connection.open().await?;
        let from = current(&management.cluster(&self.cluster).await?)?;
        let to = current(&self.patch(&management, true).await?)?;
        management.warnings().iter().for_each(|warning| output::warning(warning));
        if from == to {
            return self.tell(&from, &to, Outcome::NothingToDo);
        }
        if !self.yes {
            self.ask(&from, &to)?;
        }
        let begun = self.patch(&management, false).await?;
        management.warnings().iter().for_each(|warning| output::warning(warning));
        let generation = begun.metadata.generation.unwrap_or_default();
        if self.patience.wait(&management, &self.cluster, generation).await?.is_some() {
            return self.tell(&from, &to, Outcome::Succeeded);
        }
        output::note(&format!("Next: windlass status {} --watch", self.cluster));
        self.tell(&from, &to, Outcome::Begun)
    }

    /// A hint is resolved anew only where the full version is taken away with it.
    async fn patch(&self, management: &Management, dry_run: bool) -> Result<TanzuKubernetesCluster, client::Error> {
        let patch = json!({"spec": {"distribution": {"version": self.to.as_str(), "fullVersion": null}}});
        let field_manager = Some(FIELD_MANAGER.to_owned());
        let parameters = PatchParams { dry_run, field_manager, ..PatchParams::default() };
        let api = management.api::<TanzuKubernetesCluster>();
        let patched = api.patch(self.cluster.as_str(), &parameters, &Patch::Merge(patch)).await;
        patched.map_err(client::Error::while_trying(&format!("upgrade {} to {}", self.cluster, self.to)))
    }

    /// Nobody is there to answer where standard input is no terminal: then it is a refusal, never a wait.
    fn ask(&self, from: &KubernetesVersion, to: &KubernetesVersion) -> Result<(), Error> {
        let refused = |asked| Error::NotConfirmed { cluster: self.cluster.clone(), to: to.clone(), asked };
        if !io::stdin().is_terminal() {
            return Err(refused(false));
        }
        let mut stderr = io::stderr().lock();
        let question = write!(stderr, "Upgrade {} from {from} to {to}? [y/N] ", self.cluster);
        let mut answer = String::new();
        let read = question.and_then(|()| stderr.flush()).and_then(|()| io::stdin().lock().read_line(&mut answer));
        read.map_err(Error::Terminal)?;
        if matches!(answer.trim(), "y" | "Y" | "yes") { Ok(()) } else { Err(refused(true)) }
    }

    fn tell(&self, from: &KubernetesVersion, to: &KubernetesVersion, outcome: Outcome) -> Result<Exit, Failure> {
        let cluster = &self.cluster;
        match self.output {
            Some(format) => {
                let report = UpgradeReport { cluster, from, to, outcome };
                output::document(format, &Document::new("UpgradeReport", report))?;
            }
            None => output::data(&match outcome {
                Outcome::NothingToDo => format!("cluster {cluster} is asked to be at {to} already"),
                Outcome::Begun => format!("cluster {cluster} is being upgraded: {from} to {to}"),
                Outcome::Succeeded => format!("cluster {cluster} is upgraded: {from} to {to}"),
            })?,
        }
        Ok(Exit::Done)
    }
}

/// Nobody said yes, or not to this.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("{cluster} is not upgraded: {}", if *asked { "the answer was no" } else { "nobody is there to ask, and --yes was not given" })]
    NotConfirmed { cluster: ClusterName, to: KubernetesVersion, asked: bool },
    #[error(
        "{cluster} is not upgraded: what would be done has the envelope {found}, which is not the one that was reviewed"
    )]
    Stale { cluster: ClusterName, to: VersionPrefix, found: String },
    #[error("cannot ask on this terminal")]
    Terminal(#[source] io::Error),
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::NotConfirmed { .. } | Self::Stale { .. } => Kind::User,
            Self::Terminal(_) => Kind::Environment,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::NotConfirmed { cluster, to, .. } => {
                Some(format!("windlass rehearse {cluster} --to {to}, then windlass upgrade {cluster} --to {to} --yes"))
            }
            Self::Stale { cluster, to, .. } => Some(format!("windlass plan {cluster} --to {to}")),
            Self::Terminal(_) => Some("--yes".to_owned()),
        }
    }

    fn exit(&self) -> Exit {
        match self {
            Self::Stale { .. } => Exit::Stale,
            Self::NotConfirmed { .. } | Self::Terminal(_) => Exit::Failed,
        }
    }
}
