//! `windlass logs`: what the attempts at a control plane said, one after the other.

use std::num::NonZeroUsize;
use std::pin::pin;

use futures::{AsyncBufReadExt as _, StreamExt as _};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{ListParams, LogParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use windlass_api::label;
use windlass_api::name::{ClusterName, ObjectName};
use windlass_plan::render::job::NAMESPACE;

use crate::client::{self, Connection, Management};
use crate::error::{Exit, Explained, Failure, Kind};
use crate::output;
use crate::update::{Latest, ended, jobs};

/// Show what the attempts at the control plane of a cluster said
///
/// They are the pods of the Job of its last update, oldest first: one after the other, until one succeeds or four have failed.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  windlass logs my-tkc                all attempts\n  windlass logs my-tkc --attempt 4    the fourth\n  windlass logs my-tkc -f             until the Job has ended"
)]
pub struct Logs {
    /// The cluster
    cluster: ClusterName,
    /// Only this one: 1 is the first
    #[arg(long, value_name = "N", conflicts_with = "follow")]
    attempt: Option<NonZeroUsize>,
    /// Go on until the Job has ended
    #[arg(short, long)]
    follow: bool,
    #[command(flatten)]
    connection: Connection,
}

/// The Job whose attempts are shown.
struct Shown<'a> {
    management: &'a Management,
    job: ObjectName,
    /// How many were shown.
    count: usize,
}

impl Logs {
    /// Shows them.
    pub async fn run(self) -> Result<Exit, Failure> {
        let management = self.connection.open().await?;
        let latest = Latest::of(&management, &self.cluster).await?;
        if latest.job(&management).await?.is_none() {
            return Err(self.no_job(&latest).into());
        }
        let mut shown = Shown { management: &management, job: latest.job_name(), count: 0 };
        if self.follow {
            return tokio::select! {
                biased;
                _ = tokio::signal::ctrl_c() => Ok(Exit::Interrupted),
                ended = shown.follow() => ended.map(|()| Exit::Done),
            };
        }
        let pods = shown.pods().await?;
        let Some(attempt) = self.attempt else {
            shown.show(&pods, false).await?;
            return Ok(Exit::Done);
        };
        let Some(pod) = pods.get(attempt.get() - 1) else {
            return Err(Error::NoAttempt { cluster: self.cluster, attempt, count: pods.len() }.into());
        };
        shown.log(pod, false).await?;
        Ok(Exit::Done)
    }

    fn no_job(&self, latest: &Latest) -> Error {
        Error::NoJob { cluster: self.cluster.clone(), update: latest.name().to_owned(), job: latest.job_name() }
    }
}

impl Shown<'_> {
    fn api(&self) -> Api<Pod> {
        Api::namespaced(self.management.client.clone(), NAMESPACE)
    }

    /// The pods of the Job, oldest first.
    async fn pods(&self) -> Result<Vec<Pod>, client::Error> {
        let of_job = ListParams::default().labels(&format!("{}={}", label::JOB_NAME, self.job));
        let listed = self.api().list(&of_job).await;
        let listed = listed.map_err(client::Error::while_trying(&format!("list the pods of the Job {}", self.job)))?;
        let mut pods = listed.items;
        pods.sort_by_key(|pod| (pod.metadata.creation_timestamp.clone().map(|time| time.0), pod.metadata.name.clone()));
        Ok(pods)
    }

    /// Shows those that were not shown, each under its number. One that has not started is left for later.
    async fn show(&mut self, pods: &[Pod], follow: bool) -> Result<(), Failure> {
        for pod in pods.get(self.count..).unwrap_or_default() {
            if phase(pod) == "Pending" {
                return Ok(());
            }
            self.count += 1;
            let name = pod.metadata.name.as_deref().unwrap_or_default();
            output::data(&format!("==> attempt {}: {name} <==", self.count))?;
            self.log(pod, follow).await?;
        }
        Ok(())
    }

    async fn log(&self, pod: &Pod, follow: bool) -> Result<(), Failure> {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let attempt = format!("read the log of the pod {name}");
        let parameters = LogParams { follow, ..LogParams::default() };
        let stream = self.api().log_stream(name, &parameters).await;
        let mut lines = stream.map_err(client::Error::while_trying(&attempt))?.lines();
        while let Some(line) = lines.next().await {
            output::data(&line.map_err(|source| Error::Read { pod: name.to_owned(), source })?)?;
        }
        Ok(())
    }

    async fn follow(&mut self) -> Result<(), Failure> {
        let changes = watcher::watch_object(jobs(self.management), self.job.as_str());
        let mut changes = pin!(changes.default_backoff());
        while let Some(change) = changes.next().await {
            match change {
                Ok(Some(job)) => {
                    let pods = self.pods().await?;
                    self.show(&pods, true).await?;
                    if ended(&job).is_some() {
                        return Ok(());
                    }
                }
                Ok(None) => {
                    output::say(&format!("The Job {} is gone.", self.job));
                    return Ok(());
                }
                // It is tried again, with longer and longer pauses.
                Err(error) => output::say(&format!("not watched: {error}")),
            }
        }
        Ok(())
    }
}

fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Pending")
}

/// There is no log to show.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(
        "the update {update} of {cluster} has no Job {job}: it has not come to the control plane, or leaves it as it is"
    )]
    NoJob { cluster: ClusterName, update: String, job: ObjectName },
    #[error("there is no attempt {attempt} at the control plane of {cluster}: there were {count}")]
    NoAttempt { cluster: ClusterName, attempt: NonZeroUsize, count: usize },
    #[error("the log of the pod {pod} ended early")]
    Read { pod: String, source: std::io::Error },
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::NoJob { .. } | Self::NoAttempt { .. } => Kind::User,
            Self::Read { .. } => Kind::Environment,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NoJob { cluster, .. } => format!("windlass status {cluster}"),
            Self::NoAttempt { cluster, .. } => format!("windlass logs {cluster}"),
            Self::Read { .. } => "the same again".to_owned(),
        })
    }
}
