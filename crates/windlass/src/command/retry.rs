//! `windlass retry`: an update that has failed goes on where it stopped.

use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt as _;
use serde::Serialize;
use serde_json::json;
use windlass_api::annotation;
use windlass_api::condition::ConditionType;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::cluster_update::{ClusterUpdate, UpdateState};
use windlass_api::name::{ClusterName, ObjectName, UpdateId};

use crate::changed::Changed;
use crate::client::{self, Connection, Management};
use crate::error::{Exit, Explained, Failure, Kind};
use crate::output;
use crate::report;
use crate::update::{self, Latest, annotate, delete, ended, ways_out};

use super::block_on;

/// Try a failed update of a control plane again
///
/// Deletes the Job that has failed. The controllers make it again, with the same id: it goes on with the machines that it finds,
/// and replaces none twice. An update whose workers failed has no Job: it goes on by itself when they move again, and it is said
/// what keeps them. Where Cluster API replaces the machines it never has to be told again, and that is all that is said.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  windlass logs my-tkc      see why it failed\n  windlass retry my-tkc     when that is mended"
)]
pub struct Retry {
    /// The cluster
    cluster: ClusterName,
    /// Go on with what another update has begun and nobody leads any more: machines carry its mark
    #[arg(long)]
    adopt: bool,
    /// Write it as a document instead, for scripts, or the name of the update
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Changed>,
    #[command(flatten)]
    connection: Connection,
}

/// What `retry -o` writes.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetryReport<'a> {
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
        if let Err(client::Error::ByLabel { .. }) = management.cluster(&self.cluster).await {
            return Err(self.by_label(&management).await?.into());
        }
        let latest = Latest::of(&management, &self.cluster).await?;
        let job = latest.job(&management).await?;
        let failed = job.filter(|job| ended(job) == Some(ConditionType::Failed));
        if self.adopt {
            return self.take_over(&management, &latest, failed).await;
        }
        let Some(job) = failed else {
            return Err(nothing(&self.cluster, &latest.record).into());
        };
        delete(&management, &job).await?;
        let failed_attempts = job.status.and_then(|status| status.failed).unwrap_or_default();
        let (cluster, update, id, job) = (&self.cluster, latest.name(), latest.id, latest.job_name());
        let attempts = if failed_attempts == 1 { "attempt" } else { "attempts" };
        let said = format!(
            "update {update} of {cluster} is tried again: the Job {job} is deleted after {failed_attempts} failed {attempts}, and goes on with the same id {id}"
        );
        self.tell(update, id, failed_attempts, &said)
    }

    /// Why there is nothing to do for a cluster whose machines Cluster API replaces.
    async fn by_label(&self, management: &Management) -> Result<Error, Failure> {
        let (name, cluster) = (&self.cluster, || self.cluster.clone());
        if self.adopt {
            return Ok(Error::NothingToAdopt { cluster: cluster() });
        }
        let found = management.api::<Cluster>().get(name.as_str()).await;
        let found = found.map_err(client::Error::while_trying(&format!("read the cluster {name}")))?;
        let record = report::update(management, &found).await?;
        let record = record.ok_or_else(|| update::Error::None { cluster: cluster() })?;
        let waits = record.status.as_ref().map(|status| status.waiting_for.clone()).unwrap_or_default();
        // Nobody gives up and has to be told to try again: what goes on is said with what it waits for.
        Ok(match (nothing(name, &record), waits.first()) {
            (Error::GoesOn { cluster, update }, Some(first)) => Error::Waits {
                cluster,
                update,
                why: first.message.clone(),
                ways: ways_out(&waits).into_iter().map(str::to_owned).collect(),
            },
            (error, _) => error,
        })
    }

    /// Goes on under the id of the update whose marks are on the machines. A Job that has failed because of them has nothing
    /// more to do.
    async fn take_over(&self, management: &Management, latest: &Latest, failed: Option<Job>) -> Result<Exit, Failure> {
        let (cluster, update) = (&self.cluster, latest.name());
        if let Some(UpdateState::Succeeded | UpdateState::Aborted) =
            latest.record.status.as_ref().and_then(|status| status.state)
        {
            return Err(nothing(cluster, &latest.record).into());
        }
        let id = latest.foreign(management, cluster).await?;
        let (key, value) = annotation::ADOPT.entry(&id);
        let failed_attempts = failed.as_ref().and_then(|job| job.status.as_ref()?.failed).unwrap_or_default();
        annotate(management, update, json!({ key: value }), &format!("have the update {update} adopt {id}")).await?;
        if let Some(job) = failed {
            delete(management, &job).await?;
        }
        let said = format!("update {update} of {cluster} goes on with what the update {id} has begun");
        self.tell(update, id, failed_attempts, &said)
    }

    fn tell(&self, update: &str, id: UpdateId, failed_attempts: i32, said: &str) -> Result<Exit, Failure> {
        let cluster = &self.cluster;
        match self.output {
            Some(format) => {
                let report = RetryReport { cluster, update, id, job: id.job_name(), failed_attempts };
                format.tell_update(update, "RetryReport", report)?;
            }
            None => output::data(said)?,
        }
        output::note(&format!("Next: windlass status {cluster} --watch"));
        Ok(Exit::Done)
    }
}

/// Why there is nothing to try again.
fn nothing(cluster: &ClusterName, record: &ClusterUpdate) -> Error {
    let (cluster, update) = (cluster.clone(), record.name_any());
    let status = record.status.clone().unwrap_or_default();
    match status.state {
        Some(UpdateState::Failed) => Error::Mend {
            cluster,
            update,
            why: status.failure.unwrap_or_else(|| "nothing is said".to_owned()),
            ways: ways_out(&status.waiting_for).into_iter().map(str::to_owned).collect(),
        },
        Some(UpdateState::Succeeded) => Error::Done { cluster, update },
        Some(UpdateState::Aborted) => Error::GivenUp { cluster, update },
        Some(UpdateState::Running) | None => Error::GoesOn { cluster, update },
    }
}

/// There is nothing to try again.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("the update {update} of {cluster} goes on: there is nothing to try again")]
    GoesOn { cluster: ClusterName, update: String },
    #[error("the update {update} of {cluster} is done: there is nothing to try again")]
    Done { cluster: ClusterName, update: String },
    #[error("the update {update} of {cluster} was given up: there is nothing to try again")]
    GivenUp { cluster: ClusterName, update: String },
    #[error("{cluster} is rolled by Cluster API: none of its updates can be without somebody who leads it")]
    NothingToAdopt { cluster: ClusterName },
    #[error("the update {update} of {cluster} goes on, and there is nothing to try again; it waits: {why}")]
    Waits { cluster: ClusterName, update: String, why: String, ways: Vec<String> },
    #[error("the update {update} of {cluster} goes on by itself when this is mended: {why}")]
    Mend { cluster: ClusterName, update: String, why: String, ways: Vec<String> },
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        Kind::User
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::GoesOn { cluster, .. } | Self::Done { cluster, .. } | Self::GivenUp { cluster, .. } => {
                format!("windlass status {cluster}")
            }
            Self::NothingToAdopt { .. } => "the same without --adopt".to_owned(),
            Self::Waits { cluster, ways, .. } | Self::Mend { cluster, ways, .. } => {
                let more = [format!("windlass why {cluster}")];
                ways.iter().chain(&more).map(String::as_str).collect::<Vec<_>>().join("\n  try: ")
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(status: &serde_json::Value, said: &str) {
        let machines = json!({"count": 1, "class": "small", "storageClass": "fast"});
        let end = json!({"distribution": "", "kubernetes": "", "controlPlane": machines, "workers": machines});
        let record = serde_json::from_value(json!({
            "apiVersion": "windlass.dev/v1alpha1",
            "kind": "ClusterUpdate",
            "metadata": {"name": "my-tkc-1"},
            "spec": {"cluster": "my-tkc", "ordinal": 1, "id": "7", "from": end, "to": end, "envelopeDigest": ""},
            "status": status,
        }));
        let error = nothing(&"my-tkc".parse().unwrap(), &record.unwrap());
        assert_eq!(Failure::from(error).text(), said);
    }

    #[test]
    fn of_workers_that_failed_it_is_said_what_to_do() {
        let stalled = "the pool default has not moved since 2026-05-04T10:00:00Z";
        let wait = |object: &str, message: &str, way_out: &str| json!({"stage": "workers", "reason": "r", "object": object, "message": message, "wayOut": way_out});
        check(
            &json!({"state": "Failed", "failure": stalled, "waitingFor": [
                wait("Pool/default", stalled, "repair what keeps its machines"),
                wait("Machine/w-1", "Machine w-1 cannot be drained", "relax the budget"),
                wait("Machine/w-2", "Machine w-2 cannot be drained", "relax the budget"),
                wait("Pool/default", stalled, "repair what keeps its machines"),
            ]}),
            "\
error (user): the update my-tkc-1 of my-tkc goes on by itself when this is mended: the pool default has not moved since 2026-05-04T10:00:00Z
  try: relax the budget
  try: repair what keeps its machines
  try: windlass why my-tkc",
        );
        check(
            &json!({"state": "Running"}),
            "error (user): the update my-tkc-1 of my-tkc goes on: there is nothing to try again\n  try: windlass status my-tkc",
        );
    }
}
