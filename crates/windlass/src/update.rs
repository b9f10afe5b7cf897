//! The updates of a cluster, and the Jobs that replace its control plane.

use k8s_openapi::api::batch::v1::Job;
use kube::api::{Api, ListParams};
use windlass_api::condition::ConditionType;
use windlass_api::kind::cluster_update::{ClusterUpdate, WaitingFor};
use windlass_api::label;
use windlass_api::name::{ClusterName, ObjectName, UpdateId, UpdateIdError};
use windlass_plan::render::job::NAMESPACE;

use crate::client::{self, Management};
use crate::error::{Explained, Failure, Kind};

/// The last update of a cluster, whether it goes on or not.
pub struct Latest {
    /// Its record.
    pub record: ClusterUpdate,
    /// Its id.
    pub id: UpdateId,
}

impl Latest {
    /// The update of a cluster that began last.
    pub async fn of(management: &Management, cluster: &ClusterName) -> Result<Self, Failure> {
        // It says what is wrong where there is no such cluster.
        management.cluster(cluster).await?;
        let of_cluster = ListParams::default().labels(&format!("{}={cluster}", label::CLUSTER_NAME));
        let listed = management.api::<ClusterUpdate>().list(&of_cluster).await;
        let listed = listed.map_err(client::Error::while_trying(&format!("list the updates of {cluster}")))?;
        let latest = listed.items.into_iter().max_by_key(|update| update.spec.ordinal);
        let record = latest.ok_or_else(|| Error::None { cluster: cluster.clone() })?;
        let id = record.spec.id.parse().map_err(Error::Id)?;
        Ok(Self { record, id })
    }

    /// The name of its record.
    pub fn name(&self) -> &str {
        self.record.metadata.name.as_deref().unwrap_or_default()
    }

    /// The name of the Job that replaces the machines of the control plane.
    pub fn job_name(&self) -> ObjectName {
        self.id.job_name()
    }

    /// That Job, if it is there.
    pub async fn job(&self, management: &Management) -> Result<Option<Job>, client::Error> {
        let name = self.job_name();
        let job = jobs(management).get_opt(name.as_str()).await;
        job.map_err(client::Error::while_trying(&format!("read the Job {name}")))
    }
}

/// The Jobs of updates, which are where the controllers are.
pub fn jobs(management: &Management) -> Api<Job> {
    Api::namespaced(management.client.clone(), NAMESPACE)
}

/// How a Job ended; `None` while it has not.
pub fn ended(job: &Job) -> Option<ConditionType> {
    let conditions = job.status.as_ref()?.conditions.as_deref().unwrap_or_default();
    let is = |end: &ConditionType| conditions.iter().any(|one| one.type_ == end.as_str() && one.status == "True");
    [ConditionType::Complete, ConditionType::Failed].into_iter().find(is)
}

/// What a person can do about what is waited for, each once: first about single objects, then about pools of them.
pub fn ways_out<'a>(waits: impl IntoIterator<Item = &'a WaitingFor>) -> Vec<&'a str> {
    let mut waits: Vec<&WaitingFor> = waits.into_iter().collect();
    waits.sort_by_key(|wait| wait.object.starts_with("Pool/"));
    let mut ways: Vec<&str> = Vec::new();
    for way in waits.into_iter().filter_map(|wait| wait.way_out.as_deref()) {
        if !ways.contains(&way) {
            ways.push(way);
        }
    }
    ways
}

/// There is no update to speak of.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no update of {cluster} has begun")]
    None { cluster: ClusterName },
    #[error("the record of an update has an id that is none")]
    Id(#[source] UpdateIdError),
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::None { .. } => Kind::User,
            Self::Id(_) => Kind::Environment,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::None { cluster } => format!("windlass status {cluster}"),
            Self::Id(_) => "kubectl get clusterupdates -o yaml".to_owned(),
        })
    }
}
