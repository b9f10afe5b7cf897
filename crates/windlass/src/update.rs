//! The updates of a cluster, and the Jobs that replace its control plane.

use std::collections::BTreeSet;

use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, Preconditions};
use serde_json::{Value, json};
use windlass_api::annotation::MACHINE_UPDATE_ID;
use windlass_api::condition::ConditionType;
use windlass_api::key::KeyError;
use windlass_api::kind::cluster_api::Machine;
use windlass_api::kind::cluster_update::{ClusterUpdate, ClusterUpdateIdError, WaitingFor};
use windlass_api::label;
use windlass_api::name::{ClusterName, ObjectName, UpdateId};
use windlass_plan::render::job::NAMESPACE;

use crate::client::{self, FIELD_MANAGER, Management};
use crate::error::{Explained, Failure, Kind};

/// The last update of a cluster, whether it goes on or not.
pub struct Latest {
    /// Its record.
    pub record: ClusterUpdate,
    /// Its id.
    pub id: UpdateId,
}

impl Latest {
    /// The update of a cluster that began last; there has to be one.
    pub async fn of(management: &Management, cluster: &ClusterName) -> Result<Self, Failure> {
        let found = Self::find(management, cluster).await?;
        Ok(found.ok_or_else(|| Error::None { cluster: cluster.clone() })?)
    }

    /// The update of a cluster that began last, if one has.
    pub async fn find(management: &Management, cluster: &ClusterName) -> Result<Option<Self>, Failure> {
        // It says what is wrong where there is no such cluster.
        let asked = management.cluster(cluster).await?;
        let of_cluster = ListParams::default().labels(&format!("{}={cluster}", label::CLUSTER_NAME));
        let listed = management.api::<ClusterUpdate>().list(&of_cluster).await;
        let listed = listed.map_err(client::Error::while_trying(&format!("list the updates of {cluster}")))?;
        let announced = asked.status.as_ref().and_then(|status| status.update.as_ref());
        if let Some(update) = announced.filter(|update| !listed.items.iter().any(|one| one.name_any() == **update)) {
            return Err(Error::Begins { cluster: cluster.clone(), update: update.clone() }.into());
        }
        let latest = listed.items.into_iter().max_by_key(|update| update.spec.ordinal);
        let Some(record) = latest else { return Ok(None) };
        let id = record.id().map_err(Error::Id)?;
        Ok(Some(Self { record, id }))
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
        read(management, &self.job_name()).await
    }

    /// The update that marks machines of the control plane and is not this one: nobody else will end it.
    pub async fn foreign(&self, management: &Management, cluster: &ClusterName) -> Result<UpdateId, Failure> {
        let selector = format!("{}={cluster},{}", label::CLUSTER_NAME, label::CONTROL_PLANE);
        let listed = management.api::<Machine>().list(&ListParams::default().labels(&selector)).await;
        let machines = listed.map_err(client::Error::while_trying(&format!("list the machines of {cluster}")))?;
        let mut theirs = BTreeSet::new();
        for machine in &machines.items {
            let mark = MACHINE_UPDATE_ID.get(machine.annotations());
            theirs.extend(mark.map_err(|why| Error::Mark { machine: machine.name_any(), why })?);
        }
        theirs.remove(&self.id);
        let mut theirs = theirs.into_iter();
        match (theirs.next(), theirs.next()) {
            (Some(foreign), None) => Ok(foreign),
            (None, _) => Err(Error::NothingForeign { cluster: cluster.clone() }.into()),
            (Some(one), Some(other)) => Err(Error::ManyForeign { cluster: cluster.clone(), one, other }.into()),
        }
    }

    /// The Job that gives the update up, if it is there and could not.
    pub async fn failed_abort(&self, management: &Management) -> Result<Option<Job>, client::Error> {
        let job = read(management, &self.id.abort_job_name()).await?;
        Ok(job.filter(|job| ended(job) == Some(ConditionType::Failed)))
    }
}

/// Writes annotations of the record of an update; `null` takes one away.
pub async fn annotate(management: &Management, update: &str, what: Value, doing: &str) -> Result<(), client::Error> {
    let parameters = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let patch = Patch::Merge(json!({ "metadata": { "annotations": what } }));
    let patched = management.api::<ClusterUpdate>().patch(update, &parameters, &patch).await;
    patched.map(drop).map_err(client::Error::while_trying(doing))
}

async fn read(management: &Management, name: &ObjectName) -> Result<Option<Job>, client::Error> {
    let job = jobs(management).get_opt(name.as_str()).await;
    job.map_err(client::Error::while_trying(&format!("read the Job {name}")))
}

/// Deletes a Job, so that it is made again. Only this one: another one of its name may be at work by now.
pub async fn delete(management: &Management, job: &Job) -> Result<(), client::Error> {
    let name = job.metadata.name.as_deref().unwrap_or_default();
    let preconditions = Preconditions { uid: job.metadata.uid.clone(), resource_version: None };
    let parameters = DeleteParams::background().preconditions(preconditions);
    let deleted = jobs(management).delete(name, &parameters).await;
    deleted.map(drop).map_err(client::Error::while_trying(&format!("delete the failed Job {name}")))
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
    #[error("the update {update} of {cluster} begins at this moment, and is not on record yet")]
    Begins { cluster: ClusterName, update: String },
    #[error("no machine of {cluster} is marked by another update: there is nothing to adopt")]
    NothingForeign { cluster: ClusterName },
    #[error(
        "the machines of {cluster} are marked by more than one other update, {one} and {other}: only one can be adopted"
    )]
    ManyForeign { cluster: ClusterName, one: UpdateId, other: UpdateId },
    #[error("the mark of the Machine {machine} cannot be read")]
    Mark {
        machine: String,
        #[source]
        why: KeyError,
    },
    #[error("the record of an update has an id that is none")]
    Id(#[source] ClusterUpdateIdError),
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::None { .. } | Self::NothingForeign { .. } => Kind::User,
            Self::Begins { .. } | Self::Id(_) | Self::Mark { .. } | Self::ManyForeign { .. } => Kind::Environment,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::None { cluster } | Self::NothingForeign { cluster } => format!("windlass status {cluster}"),
            Self::Begins { .. } => "the same again in a moment".to_owned(),
            Self::ManyForeign { .. } | Self::Mark { .. } => {
                format!("kubectl get machines -o yaml, and the annotation {MACHINE_UPDATE_ID}")
            }
            Self::Id(_) => "kubectl get clusterupdates -o yaml".to_owned(),
        })
    }
}
