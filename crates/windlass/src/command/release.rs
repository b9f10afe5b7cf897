//! `windlass release`: which releases there are, and how to get from one to another.

use serde::Serialize;
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::name::ClusterName;
use windlass_api::version::{KubernetesVersion, VersionPrefix};
use windlass_plan::resolve;

use crate::client::{self, Connection, Management};
use crate::error::{Exit, Explained, Failure, Kind};
use crate::output::{self, Document, Format};
use crate::release::{self, Summary};

/// Show the releases that clusters can have
#[derive(clap::Subcommand)]
pub enum Release {
    List(List),
    Path(Path),
}

impl Release {
    /// Runs the one that was asked for.
    pub async fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::List(list) => list.run().await,
            Self::Path(path) => path.run().await,
        }
    }
}

/// List the releases there are, oldest first
#[derive(clap::Args)]
pub struct List {
    /// Write it as a document instead, for scripts
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Format>,
    #[command(flatten)]
    connection: Connection,
}

/// What `release list -o` and `get releases -o` write.
#[derive(Serialize)]
pub struct ReleaseList {
    pub items: Vec<Summary>,
}

impl List {
    async fn run(self) -> Result<Exit, Failure> {
        let releases = summaries(&self.connection.open().await?).await?;
        match self.output {
            Some(format) => output::document(format, &Document::new("ReleaseList", ReleaseList { items: releases }))?,
            None => print(&releases)?,
        }
        Ok(Exit::Done)
    }
}

/// The releases there are, oldest first.
pub async fn summaries(management: &Management) -> Result<Vec<Summary>, client::Error> {
    Ok(release::all(management).await?.iter().map(Summary::from).collect())
}

/// The releases as a table; a remark where there are none.
pub fn print(releases: &[Summary]) -> Result<(), output::Error> {
    if releases.is_empty() {
        output::say("No releases found: no machine image says what is on it.");
        return Ok(());
    }
    let rows = releases.iter().map(|release| {
        let addons = release.addons.iter().map(|addon| format!("{} {}", addon.name, addon.version));
        vec![
            release.version.to_string(),
            release.kubernetes.to_string(),
            release.etcd.clone(),
            addons.collect::<Vec<_>>().join(", "),
        ]
    });
    output::data(&output::table(&["RELEASE", "KUBERNETES", "ETCD", "ADD-ONS"], rows))
}

/// Show the releases on the way from a cluster's own to another
#[derive(clap::Args)]
pub struct Path {
    /// The cluster
    cluster: ClusterName,
    /// The release to get to, or the beginning of its version
    #[arg(long, value_name = "RELEASE")]
    to: VersionPrefix,
    /// Write it as a document instead, for scripts
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Format>,
    #[command(flatten)]
    connection: Connection,
}

/// What `release path -o` writes.
#[derive(Serialize)]
struct ReleasePath {
    cluster: ClusterName,
    from: KubernetesVersion,
    to: KubernetesVersion,
    steps: Vec<KubernetesVersion>,
}

impl Path {
    async fn run(self) -> Result<Exit, Failure> {
        let management = self.connection.open().await?;
        let cluster = management.cluster(&self.cluster).await?;
        let releases = release::all(&management).await?;
        let from = current(&cluster)?;
        let to = resolve::newest(&self.to, &releases).map_err(release::Error::from)?.distribution.clone();
        let steps = resolve::path(&from, &to, &releases).map_err(release::Error::from)?;
        let steps = steps.into_iter().map(|release| release.distribution.clone()).collect();
        let path = ReleasePath { cluster: self.cluster, from, to, steps };
        match self.output {
            Some(format) => output::document(format, &Document::new("ReleasePath", path))?,
            None => path.print()?,
        }
        Ok(Exit::Done)
    }
}

impl ReleasePath {
    fn print(&self) -> Result<(), output::Error> {
        let Some(first) = self.steps.first() else {
            output::say(&format!("{} is at {} already.", self.cluster, self.to));
            return Ok(());
        };
        let from = [&self.from].into_iter().chain(&self.steps);
        let rows = from
            .zip(&self.steps)
            .zip(1..)
            .map(|((from, to), step): (_, u32)| vec![step.to_string(), from.to_string(), to.to_string()]);
        output::data(&output::table(&["STEP", "FROM", "TO"], rows))?;
        output::note(&format!("Next: windlass plan {} --to {first}", self.cluster));
        Ok(())
    }
}

/// The release that a cluster was resolved to.
pub fn current(cluster: &TanzuKubernetesCluster) -> Result<KubernetesVersion, Unresolved> {
    let name = || cluster.metadata.name.clone().unwrap_or_default();
    let text = cluster.spec.distribution.full_version.as_deref();
    text.and_then(|text| text.parse().ok()).ok_or_else(|| Unresolved { cluster: name() })
}

/// A cluster without a release has no way to another.
#[derive(Debug, thiserror::Error)]
#[error("the cluster {cluster} has no release: spec.distribution.fullVersion is not a version")]
pub struct Unresolved {
    cluster: String,
}

impl Explained for Unresolved {
    fn kind(&self) -> Kind {
        Kind::User
    }

    fn hint(&self) -> Option<String> {
        Some(format!("windlass status {}", self.cluster))
    }
}
