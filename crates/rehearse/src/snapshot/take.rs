//! Reads a snapshot.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DynamicObject, ListParams};
use kube::core::ApiResource;
use kube::{Api, Client};
use serde_json::Value;
use windlass_api::name::{ClusterName, ClusterSecret, NamespacedName};
use windlass_controller::access::{WorkloadCluster, Workloads};
use windlass_plan::inventory;
use windlass_sim::workload::Alarm;
use windlass_sim::world::World;

use super::{EtcdMember, Gap, Snapshot, WorkloadSnapshot, kinds, sort};
use crate::assembly;

/// What stands where the value of a Secret was.
const STAND_IN: &str = "a stand-in: the value was left out of the snapshot";

/// A management cluster that could not be read. What cannot be read of a workload cluster is a gap.
#[derive(Debug, thiserror::Error)]
#[error("list {what} of the management cluster")]
pub struct TakeError {
    what: String,
    #[source]
    source: Box<kube::Error>,
}

/// Reads a management cluster and the workload clusters that it has. A kind that the management cluster does not know is one
/// without objects.
pub async fn take(client: &Client, workloads: &dyn Workloads, now: Timestamp) -> Result<Snapshot, TakeError> {
    let taken_by = concat!("windlass ", env!("CARGO_PKG_VERSION")).to_owned();
    let (management, workloads_read, gaps) = (Vec::new(), BTreeMap::new(), Vec::new());
    let mut snapshot = Snapshot { taken_at: now, taken_by, management, workloads: workloads_read, gaps };
    for kind in kinds::management() {
        match list(client, &kind, kinds::selector(&kind)).await {
            Ok(objects) => snapshot.management.extend(objects),
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            Err(source) => return Err(TakeError { what: kind.plural, source: Box::new(source) }),
        }
    }
    let clusters = snapshot.management.iter().filter(|object| object["kind"] == "Cluster");
    let clusters: Vec<NamespacedName> = clusters.filter_map(name).collect();
    for cluster in clusters {
        match connect(client, workloads, &cluster).await {
            Ok(connected) => {
                let read = read(&connected, &cluster, &mut snapshot.gaps).await;
                snapshot.workloads.insert(cluster, read);
            }
            Err(why) => {
                snapshot.gaps.push(Gap { what: format!("the workload cluster {cluster}"), why, way_out: String::new() })
            }
        }
    }
    sort(&mut snapshot.management);
    for workload in snapshot.workloads.values_mut() {
        sort(&mut workload.objects);
    }
    Ok(snapshot)
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

/// The objects of a kind, without what is secret and without what only the server needs.
async fn list(client: &Client, kind: &ApiResource, labels: Option<&str>) -> Result<Vec<Value>, kube::Error> {
    let objects: Api<DynamicObject> = Api::all_with(client.clone(), kind);
    let selected = labels.map_or_else(ListParams::default, |labels| ListParams::default().labels(labels));
    let listed = objects.list(&selected).await?;
    let mut values = Vec::with_capacity(listed.items.len());
    for object in listed.items {
        let mut value = serde_json::to_value(object).map_err(kube::Error::SerdeError)?;
        value["apiVersion"] = kind.api_version.as_str().into();
        value["kind"] = kind.kind.as_str().into();
        if let Some(metadata) = value["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        if kind.kind == "Secret" {
            redact(&mut value);
        }
        values.push(value);
    }
    Ok(values)
}

/// Replaces each value of a Secret by a stand-in, and removes what else may hold one.
fn redact(secret: &mut Value) {
    let stand_in = Value::String(STANDARD.encode(STAND_IN));
    for field in ["data", "stringData"] {
        for value in secret.get_mut(field).and_then(Value::as_object_mut).into_iter().flat_map(|data| data.values_mut())
        {
            value.clone_from(&stand_in);
        }
    }
    // kubectl keeps a copy of all that was applied in an annotation.
    if let Some(annotations) = secret["metadata"].get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    }
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

async fn read(workload: &WorkloadCluster, cluster: &NamespacedName, gaps: &mut Vec<Gap>) -> WorkloadSnapshot {
    let mut read = WorkloadSnapshot::default();
    for kind in kinds::workload() {
        match list(&workload.client, &kind, None).await {
            Ok(objects) => read.objects.extend(objects),
            // Clusters of other versions have other kinds.
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            Err(error) => gaps.push(Gap {
                what: format!("{} of {cluster}", kind.plural),
                why: error.to_string(),
                way_out: String::new(),
            }),
        }
    }
    match workload.etcd.members().await {
        Ok(members) => {
            read.members = members
                .into_iter()
                .map(|member| EtcdMember {
                    id: member.id,
                    name: member.name,
                    learner: member.learner,
                    healthy: member.healthy,
                    leader: member.leader,
                    version: member.version,
                    alarms: member.alarms.into_iter().map(alarm).collect(),
                })
                .collect();
        }
        Err(error) => gaps.push(Gap {
            what: format!("the members of etcd of {cluster}"),
            why: error.to_string(),
            way_out: String::new(),
        }),
    }
    read
}

fn alarm(alarm: inventory::Alarm) -> Alarm {
    match alarm {
        inventory::Alarm::NoSpace => Alarm::NoSpace,
        inventory::Alarm::Corrupt => Alarm::Corrupt,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn of_a_secret_everything_is_kept_but_what_is_in_it() {
        let last_applied = "kubectl.kubernetes.io/last-applied-configuration";
        let mut secret = json!({
            "metadata": {"name": "a", "labels": {"l": "v"}, "annotations": {last_applied: "secret", "other": "kept"}},
            "type": "cluster.x-k8s.io/secret",
            "data": {"tls.crt": "c2VjcmV0", "tls.key": "c2VjcmV0"},
        });
        redact(&mut secret);
        let stand_in = STANDARD.encode(STAND_IN);
        assert_eq!(
            secret,
            json!({
                "metadata": {"name": "a", "labels": {"l": "v"}, "annotations": {"other": "kept"}},
                "type": "cluster.x-k8s.io/secret",
                "data": {"tls.crt": stand_in, "tls.key": stand_in},
            })
        );
    }
}
