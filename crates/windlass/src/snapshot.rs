//! What `plan` and `rehearse` start from: a management cluster and its workload clusters, read once over their APIs.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};
use serde_json::Value;
use windlass_api::name::NamespacedName;
use windlass_controller::access::{ConnectError, Etcd, EtcdError, Member, WorkloadCluster, Workloads};
use windlass_rehearse::snapshot::{Snapshot, TakeError, take};

use crate::access::from_kubeconfig;
use crate::client::Management;
use crate::error::{Explained, Kind};
use crate::output;

/// Reads everything that an update depends on. What cannot be read, people are told of.
pub async fn read(management: &Management) -> Result<Snapshot, Error> {
    let mut snapshot = take(&management.client, &OverKubeconfig, wall_now()).await.map_err(Error::Take)?;
    // A cluster whose clock runs ahead of ours must not see its objects come from the future.
    if let Some(newest) = snapshot.management.iter().filter_map(newest).max() {
        snapshot.taken_at = snapshot.taken_at.max(newest);
    }
    for gap in &snapshot.gaps {
        output::warning(&format!("{} could not be read: {}\n  way out: {}", gap.what, gap.why, gap.way_out));
    }
    Ok(snapshot)
}

/// The last time that something is said to have happened to an object.
fn newest(object: &Value) -> Option<Timestamp> {
    let created = object["metadata"]["creationTimestamp"].as_str();
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let changed = conditions.filter_map(|condition| condition["lastTransitionTime"].as_str());
    changed.chain(created).filter_map(|text| text.parse().ok()).max()
}

/// The time here.
#[allow(clippy::disallowed_methods, reason = "the binary is where real time is injected")]
pub fn wall_now() -> Timestamp {
    Timestamp::now()
}

/// Connects to workload clusters as anybody with their kubeconfig can.
struct OverKubeconfig;

impl Workloads for OverKubeconfig {
    fn connect<'a>(
        &'a self,
        cluster: &'a NamespacedName,
        kubeconfig: &'a [u8],
    ) -> BoxFuture<'a, Result<WorkloadCluster, ConnectError>> {
        Box::pin(async move {
            let client =
                from_kubeconfig(kubeconfig).await.map_err(|why| ConnectError { cluster: cluster.clone(), why })?;
            let etcd = Arc::new(EtcdPods(client.clone()));
            Ok(WorkloadCluster { client, etcd })
        })
    }
}

/// The members of etcd as their pods show them. Who only reads a cluster has no other way to ask etcd.
struct EtcdPods(Client);

impl Etcd for EtcdPods {
    fn members(&self) -> BoxFuture<'_, Result<Vec<Member>, EtcdError>> {
        Box::pin(async move {
            let pods: Api<Pod> = Api::namespaced(self.0.clone(), "kube-system");
            let listed = pods.list(&ListParams::default().labels("component=etcd")).await;
            let listed = listed.map_err(|error| EtcdError(error.to_string()))?;
            let nodes = Api::<Node>::all(self.0.clone()).list(&ListParams::default()).await;
            let nodes = nodes.map_err(|error| EtcdError(error.to_string()))?;
            let lost: BTreeSet<String> = nodes.items.iter().filter(|node| is_lost(node)).map(Node::name_any).collect();
            let mut members: Vec<Member> = (1..).zip(&listed.items).map(|(id, pod)| member(id, pod, &lost)).collect();
            // Pods do not say who leads: somebody does who is well.
            if let Some(first) = members.iter_mut().find(|member| member.healthy) {
                first.leader = true;
            }
            Ok(members)
        })
    }

    fn remove(&self, _: u64) -> BoxFuture<'_, Result<(), EtcdError>> {
        Box::pin(std::future::ready(Err(EtcdError("a snapshot changes nothing".to_owned()))))
    }

    fn move_leader(&self, _: u64) -> BoxFuture<'_, Result<(), EtcdError>> {
        Box::pin(std::future::ready(Err(EtcdError("a snapshot changes nothing".to_owned()))))
    }
}

/// Nothing is heard of its kubelet, so that what is said of its pods is old.
fn is_lost(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "Unknown")
}

fn member(id: u64, pod: &Pod, lost: &BTreeSet<String>) -> Member {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let healthy = conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True");
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
    let healthy = healthy && !node.as_ref().is_some_and(|node| lost.contains(node));
    let containers = pod.spec.as_ref().map(|spec| spec.containers.as_slice()).unwrap_or_default();
    let image = containers.iter().find_map(|container| container.image.as_deref());
    let version = image.and_then(|image| image.rsplit_once(':')).and_then(|(_, tag)| tag.parse().ok());
    let name = node.unwrap_or_else(|| pod.name_any());
    Member { id, name, learner: false, healthy, leader: false, version, alarms: BTreeSet::new() }
}

/// There is nothing to start from.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot take a snapshot")]
    Take(#[source] TakeError),
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        Kind::Environment
    }

    fn hint(&self) -> Option<String> {
        Some("windlass get clusters, which shows whether the management cluster answers".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_member_whose_pod_is_not_ready_does_not_answer() {
        let pod = |ready: &str| {
            let conditions = json!([{"type": "Ready", "status": ready}]);
            let pod = json!({"metadata": {"name": "etcd-a"}, "status": {"conditions": conditions},
                "spec": {"nodeName": "a", "containers": [{"name": "etcd", "image": "r/etcd:v3.4.3_vmware.5"}]}});
            serde_json::from_value::<Pod>(pod).unwrap()
        };
        let check = |ready, healthy| {
            let member = member(1, &pod(ready), &BTreeSet::new());
            assert_eq!((member.name.as_str(), member.healthy, member.leader), ("a", healthy, false));
            assert_eq!(member.version.map(|version| version.to_string()).as_deref(), Some("v3.4.3+vmware.5"));
        };
        check("True", true);
        check("False", false);
    }
}
