//! Reads a snapshot. Only the most needed kinds fail it: what else cannot be read is a gap, with a way out.

mod list;

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use serde_json::Value;
use windlass_api::name::{ClusterName, ClusterSecret, NamespacedName};
use windlass_controller::access::{self, WorkloadCluster, Workloads};
use windlass_plan::inventory;
use windlass_sim::workload::Alarm;
use windlass_sim::world::World;

use super::kinds::{self, Chosen, Infrastructure, Need, Row};
use super::{EtcdMember, Gap, Snapshot, WorkloadSnapshot, place, sort};
use crate::assembly;
use list::Reader;

/// A management cluster that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("list {what} of the management cluster")]
pub struct TakeError {
    what: String,
    #[source]
    source: Box<kube::Error>,
}

/// Reads a management cluster and the workload clusters that it has.
pub async fn take(client: &Client, workloads: &dyn Workloads, now: Timestamp) -> Result<Snapshot, TakeError> {
    let mut gaps = Vec::new();
    let mut reader = Reader::new(client.clone());
    let mut management = Vec::new();
    let rows = kinds::management().iter().flat_map(|row| row.chosen().iter().map(move |chosen| (row, *chosen)));
    for (row, chosen) in rows {
        match reader.list(row, chosen).await {
            Ok(objects) => management.extend(objects),
            Err(kube::Error::Api(status)) if row.need != Need::Always => {
                gaps.extend(gap(row, &status, "the management cluster"));
            }
            Err(source) => return Err(TakeError { what: row.resource_name(), source: Box::new(source) }),
        }
    }
    let infrastructure = Infrastructure::among(&management);
    for row in infrastructure.rows() {
        match reader.list(&row, Chosen::All).await {
            Ok(objects) => management.extend(objects),
            Err(kube::Error::Api(status)) => gaps.extend(gap(&row, &status, "the management cluster")),
            Err(source) => return Err(TakeError { what: row.resource_name(), source: Box::new(source) }),
        }
    }
    sort(&mut management);
    // One may have been chosen twice, or refused so.
    management.dedup_by(|a, b| place(a) == place(b));
    gaps.dedup();
    let clusters = management.iter().filter(|object| object["kind"] == "Cluster");
    let clusters: Vec<NamespacedName> = clusters.filter_map(name).collect();
    let mut read = BTreeMap::new();
    for cluster in clusters {
        let connected = connect(client, workloads, &cluster).await;
        let seen = match connected {
            Ok(connected) => read_workload(&connected, &cluster, &mut gaps).await,
            Err(why) => Err(why),
        };
        match seen {
            Ok(workload) => drop(read.insert(cluster, workload)),
            Err(why) => gaps.push(unreachable(&cluster, why)),
        }
    }
    let taken_by = concat!("windlass ", env!("CARGO_PKG_VERSION")).to_owned();
    Ok(Snapshot { taken_at: now, taken_by, management, workloads: read, gaps })
}

impl Snapshot {
    /// A snapshot of a World.
    pub async fn of(world: &World) -> Result<Self, TakeError> {
        take(&world.client(), &assembly::workloads(world), world.settings().clock.now()).await
    }
}

fn name(object: &Value) -> Option<NamespacedName> {
    let metadata = &object["metadata"];
    let (namespace, name) = (metadata["namespace"].as_str()?, metadata["name"].as_str()?);
    Some(NamespacedName { namespace: namespace.parse().ok()?, name: name.parse().ok()? })
}

/// What is missing when a kind is refused. Nothing, where many clusters do not have it.
fn gap(row: &Row<'_>, status: &kube::core::Status, of: &str) -> Option<Gap> {
    let resource = row.resource_name();
    let what = format!("{resource} of {of}");
    // By their codes: a path that a server does not have is answered without a reason.
    if status.code == 404 {
        let way_out = format!("none is needed if nothing there is a {resource}; else install its definition");
        let why = "the server does not know this kind".to_owned();
        return (row.need != Need::Sometimes).then_some(Gap { what, why, way_out });
    }
    let way_out = if status.code == 403 {
        format!(
            "a role that may list them: kubectl create clusterrole windlass-snapshot --verb=list --resource={resource}"
        )
    } else {
        "the same again".to_owned()
    };
    Some(Gap { what, why: status.message.clone(), way_out })
}

fn unreachable(cluster: &NamespacedName, why: String) -> Gap {
    let way_out = format!(
        "a way to its API from here, and a role that may get the Secret {}-kubeconfig in {}",
        cluster.name, cluster.namespace
    );
    Gap { what: format!("the workload cluster {cluster}"), why, way_out }
}

async fn connect(
    client: &Client,
    workloads: &dyn Workloads,
    cluster: &NamespacedName,
) -> Result<WorkloadCluster, String> {
    let name = ClusterName::new(cluster.name.as_str()).map_err(|error| error.to_string())?;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), cluster.namespace.as_str());
    let secret = ClusterSecret::Kubeconfig.object_name(&name);
    let secret = secrets.get(secret.as_str()).await.map_err(|error| error.to_string())?;
    let kubeconfig = secret.data.and_then(|mut data| data.remove("value"));
    let kubeconfig = kubeconfig.ok_or_else(|| "its kubeconfig Secret is empty".to_owned())?;
    workloads.connect(cluster, &kubeconfig.0).await.map_err(|error| error.to_string())
}

/// Reads a workload cluster. One that does not answer is not asked for kind after kind.
async fn read_workload(
    workload: &WorkloadCluster,
    cluster: &NamespacedName,
    gaps: &mut Vec<Gap>,
) -> Result<WorkloadSnapshot, String> {
    let mut read = WorkloadSnapshot::default();
    let mut found = Vec::new();
    let mut reader = Reader::new(workload.client.clone());
    for row in kinds::workload() {
        match reader.list(row, Chosen::All).await {
            Ok(objects) => read.objects.extend(objects),
            Err(kube::Error::Api(status)) if status.code != 503 => {
                found.extend(gap(row, &status, &cluster.to_string()));
            }
            Err(error) => return Err(error.to_string()),
        }
    }
    sort(&mut read.objects);
    match workload.etcd.members().await {
        Ok(members) => {
            read.members = members.into_iter().map(member).collect();
            read.members.sort_by(|a, b| (&a.name, a.id).cmp(&(&b.name, b.id)));
        }
        Err(error) => found.push(Gap {
            what: format!("the members of etcd of {cluster}"),
            why: error.to_string(),
            way_out: "none is needed: a rehearsal takes every machine of the control plane for a member that is well"
                .to_owned(),
        }),
    }
    gaps.append(&mut found);
    Ok(read)
}

fn member(member: access::Member) -> EtcdMember {
    let access::Member { id, name, learner, healthy, leader, version, alarms } = member;
    let alarm = |alarm| match alarm {
        inventory::Alarm::NoSpace => Alarm::NoSpace,
        inventory::Alarm::Corrupt => Alarm::Corrupt,
    };
    EtcdMember { id, name, learner, healthy, leader, version, alarms: alarms.into_iter().map(alarm).collect() }
}

#[cfg(test)]
mod tests;
