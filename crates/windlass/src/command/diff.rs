//! `windlass diff`: what a release would write into the objects of a classic cluster, in the manner of `kubectl diff`.

use kube::api::ListParams;
use serde::Serialize;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::cluster_update::ClusterUpdate;
use windlass_api::label;
use windlass_api::name::ClusterName;
use windlass_api::version::VersionPrefix;
use windlass_controller::classic::Unplanned;
use windlass_controller::classic::review::{Reviewed, review};
use windlass_plan::diff::ObjectDiff;

use crate::client::{self, AnyCluster, Connection, Management};
use crate::error::{Exit, Explained, Failure, Kind};
use crate::output::{self, Document, Format};

/// Show what a release would write into the objects of a cluster, as kubectl diff does
///
/// Of a cluster whose release is a label, all objects are shown that would be written, each as it is and as it would be. Nothing is
/// written. Without --to it is what the release of its label would write now: where nothing has drifted, nothing.
#[derive(clap::Args)]
#[command(after_help = "Exit codes, as of kubectl diff: 0 nothing differs, 1 something does, more than 1 it failed")]
pub struct Diff {
    /// The cluster
    cluster: ClusterName,
    /// The release, or the beginning of its version
    #[arg(long, value_name = "RELEASE")]
    to: Option<VersionPrefix>,
    /// Write it as a document instead, for scripts
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Format>,
    #[command(flatten)]
    connection: Connection,
}

/// What `diff -o` writes.
#[derive(Serialize, schemars::JsonSchema)]
pub struct ClusterDiff<'a> {
    cluster: &'a ClusterName,
    release: String,
    objects: &'a [ObjectDiff],
}

impl Diff {
    /// Compares.
    pub async fn run(self) -> Result<Exit, Failure> {
        // That something differs is told by the code that else says that a command has failed.
        self.compare().await.map_err(|failure| Error::Failed { failure }.into())
    }

    async fn compare(&self) -> Result<Exit, Failure> {
        let management = self.connection.open().await?;
        let AnyCluster::ByLabel(cluster) = management.any_cluster(&self.cluster).await? else {
            return Err(Error::OtherSort { cluster: self.cluster.clone() }.into());
        };
        let latest = latest(&management, &cluster).await?;
        let reviewed = review(&management.client, &cluster, latest.as_ref(), self.to.as_ref()).await;
        let Reviewed { release, diff } =
            reviewed.map_err(|source| Error::Unplanned { cluster: self.cluster.clone(), source: Box::new(source) })?;
        if let Some(format) = self.output {
            let release = release.bare().to_string();
            let found = ClusterDiff { cluster: &self.cluster, release, objects: &diff.objects };
            output::document(format, &Document::new("ClusterDiff", found))?;
        } else if diff.changes() {
            output::data(diff.text().trim_end_matches('\n'))?;
            output::note(&diff.summary());
        }
        Ok(if diff.changes() { Exit::Failed } else { Exit::Done })
    }
}

/// The latest update of a cluster.
async fn latest(management: &Management, cluster: &Cluster) -> Result<Option<ClusterUpdate>, client::Error> {
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    let of_cluster = ListParams::default().labels(&format!("{}={name}", label::CLUSTER_NAME));
    let listed = management.api::<ClusterUpdate>().list(&of_cluster).await;
    let listed = listed.map_err(client::Error::while_trying(&format!("list the updates of {name}")))?;
    Ok(listed.items.into_iter().max_by_key(|update| update.spec.ordinal))
}

/// Nothing could be compared.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("{cluster} is not a cluster whose release is a label")]
    OtherSort { cluster: ClusterName },
    #[error("{cluster} cannot be compared")]
    Unplanned { cluster: ClusterName, source: Box<Unplanned> },
    #[error("{}", with_causes(failure))]
    Failed { failure: Failure },
}

/// All that a failure says, on one line.
fn with_causes(failure: &Failure) -> String {
    let mut said = vec![failure.brief()];
    let mut cause = failure.cause();
    while let Some(because) = cause {
        said.push(because.to_string());
        cause = because.source();
    }
    said.join(": ")
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::OtherSort { .. } | Self::Unplanned { .. } => Kind::User,
            Self::Failed { failure } => failure.kind(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::OtherSort { cluster } => Some(format!("windlass plan {cluster} --to RELEASE")),
            Self::Unplanned { source, .. } => source.way_out(),
            Self::Failed { failure } => failure.hint(),
        }
    }

    fn exit(&self) -> Exit {
        match self {
            Self::Failed { failure } if failure.exit() == Exit::Failed => Exit::OperationFailed,
            Self::Failed { failure } => failure.exit(),
            Self::OtherSort { .. } | Self::Unplanned { .. } => Exit::Refused,
        }
    }
}
