//! `windlass retry`: an update that has failed goes on where it stopped.

use kube::api::{DeleteParams, Preconditions};
use serde::Serialize;
use windlass_api::condition::ConditionType;
use windlass_api::kind::cluster_update::UpdateState;
use windlass_api::name::{ClusterName, ObjectName, UpdateId};

use crate::changed::Changed;
use crate::client::{self, Connection};
use crate::error::{Exit, Explained, Failure, Kind};
use crate::output;
use crate::update::{Latest, ended, jobs};

use super::block_on;

/// Try a failed update of a control plane again
///
/// Deletes the Job that has failed. The controllers make it again, with the same id: it goes on with the machines that it finds,
/// and replaces none twice.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  windlass logs my-tkc      see why it failed\n  windlass retry my-tkc     when that is mended"
)]
pub struct Retry {
    /// The cluster
    cluster: ClusterName,
    /// Write it as a document instead, for scripts, or the name of the update
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Changed>,
    #[command(flatten)]
    connection: Connection,
}

/// What `retry -o` writes.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RetryReport<'a> {
    cluster: &'a ClusterName,
    update: &'a str,
    id: UpdateId,
    job: ObjectName,
    failed_attempts: i32,
}

impl Retry {
    /// Deletes the failed Job.
    pub fn run(self) -> Result<Exit, Failure> {
        block_on(self.retry())
    }

    async fn retry(self) -> Result<Exit, Failure> {
        let management = self.connection.open().await?;
        let latest = Latest::of(&management, &self.cluster).await?;
        let job = latest.job(&management).await?;
        let Some(job) = job.filter(|job| ended(job) == Some(ConditionType::Failed)) else {
            return Err(self.nothing(&latest).into());
        };
        let name = latest.job_name();
        // Of this Job: another one of its name may be at work by now.
        let preconditions = Preconditions { uid: job.metadata.uid.clone(), resource_version: None };
        let parameters = DeleteParams::background().preconditions(preconditions);
        let deleted = jobs(&management).delete(name.as_str(), &parameters).await;
        deleted.map_err(client::Error::while_trying(&format!("delete the failed Job {name}")))?;
        let failed_attempts = job.status.and_then(|status| status.failed).unwrap_or_default();
        self.tell(&latest, failed_attempts)
    }

    fn tell(&self, latest: &Latest, failed_attempts: i32) -> Result<Exit, Failure> {
        let (cluster, update, id, job) = (&self.cluster, latest.name(), latest.id, latest.job_name());
        if let Some(format) = self.output {
            let report = RetryReport { cluster, update, id, job, failed_attempts };
            format.tell(&format!("clusterupdate.windlass.dev/{update}"), "RetryReport", report)?;
        } else {
            let attempts = if failed_attempts == 1 { "attempt" } else { "attempts" };
            output::data(&format!(
                "update {update} of {cluster} is tried again: the Job {job} is deleted after {failed_attempts} failed {attempts}, and goes on with the same id {id}"
            ))?;
        }
        output::note(&format!("Next: windlass status {cluster} --watch"));
        Ok(Exit::Done)
    }

    /// Why there is nothing to try again.
    fn nothing(&self, latest: &Latest) -> Error {
        let (cluster, update) = (self.cluster.clone(), latest.name().to_owned());
        let status = latest.record.status.clone().unwrap_or_default();
        match status.state {
            Some(UpdateState::Failed) => {
                Error::NoJob { cluster, update, why: status.failure.unwrap_or_else(|| "nothing is said".to_owned()) }
            }
            Some(UpdateState::Succeeded) => Error::Done { cluster, update },
            _ => Error::GoesOn { cluster, update },
        }
    }
}

/// There is nothing to try again.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("the update {update} of {cluster} goes on: there is nothing to try again")]
    GoesOn { cluster: ClusterName, update: String },
    #[error("the update {update} of {cluster} is done: there is nothing to try again")]
    Done { cluster: ClusterName, update: String },
    #[error("the update {update} of {cluster} did not fail in a Job, and goes on by itself when this is mended: {why}")]
    NoJob { cluster: ClusterName, update: String, why: String },
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        Kind::User
    }

    fn hint(&self) -> Option<String> {
        let (Self::GoesOn { cluster, .. } | Self::Done { cluster, .. } | Self::NoJob { cluster, .. }) = self;
        Some(format!("windlass status {cluster}"))
    }
}
