//! How the components of a control plane are, as the API of the workload cluster shows them.
//!
//! What was read is kept until a static pod or a member of etcd changes: what a watch would have seen.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::Request;
use serde::Deserialize;
use windlass_api::condition::ConditionStatus;
use windlass_api::kind::cluster_api::{Cluster, Machine};
use windlass_api::name::NamespacedName;

use crate::management::conditions::Fact;
use crate::management::context::{Error, Turn, workload_name};
use crate::workload::Member;

/// The conditions of a Machine that tell of static pods, and what the names of those begin with.
const PODS: [(&str, &str); 4] = [
    ("APIServerPodHealthy", "kube-apiserver"),
    ("ControllerManagerPodHealthy", "kube-controller-manager"),
    ("SchedulerPodHealthy", "kube-scheduler"),
    ("EtcdPodHealthy", "etcd"),
];

/// The condition of a Machine that tells of its member of etcd.
pub(super) const ETCD_MEMBER: &str = "EtcdMemberHealthy";

/// What was last read of the components of clusters.
#[derive(Clone, Default)]
pub(in crate::management) struct Components(Arc<Mutex<BTreeMap<NamespacedName, Known>>>);

#[derive(Default)]
struct Known {
    /// How often a component has changed: what was read before the last change is not known.
    changes: u64,
    read: Option<Arc<Read>>,
}

/// What there is to see.
#[derive(Debug, Default)]
pub(super) struct Read {
    pods: BTreeMap<String, Pod>,
    /// The members of etcd; nothing where it has no quorum, and nobody answers for it.
    pub members: Option<Vec<Member>>,
}

/// What was seen.
#[derive(Debug, Clone)]
pub(super) enum Sight {
    /// Nobody answered.
    Unreachable,
    /// This.
    Seen(Arc<Read>),
}

impl Components {
    /// A component of the cluster has changed.
    pub(in crate::management) fn forget(&self, cluster: &NamespacedName) {
        let mut all = self.lock();
        let known = all.entry(cluster.clone()).or_default();
        *known = Known { changes: known.changes + 1, read: None };
    }

    fn recall(&self, cluster: &NamespacedName) -> (u64, Option<Arc<Read>>) {
        self.lock().get(cluster).map(|known| (known.changes, known.read.clone())).unwrap_or_default()
    }

    fn remember(&self, cluster: &NamespacedName, changes: u64, read: &Arc<Read>) {
        let mut all = self.lock();
        let known = all.entry(cluster.clone()).or_default();
        if known.changes == changes {
            known.read = Some(Arc::clone(read));
        }
    }

    // The map is whole after every statement, so a poisoned lock is as good as any.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<NamespacedName, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Deserialize)]
struct List {
    #[serde(default)]
    items: Vec<Pod>,
}

#[derive(Debug, Clone, Deserialize)]
struct Pod {
    metadata: PodMetadata,
    #[serde(default)]
    status: PodStatus,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodMetadata {
    name: String,
    deletion_timestamp: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct PodStatus {
    #[serde(default)]
    phase: String,
    #[serde(default)]
    conditions: Vec<PodCondition>,
}

#[derive(Debug, Clone, Deserialize)]
struct PodCondition {
    #[serde(rename = "type")]
    type_: String,
    status: String,
}

/// Looks at the components of a cluster.
pub(super) async fn look(turn: &Turn, cluster: &Cluster) -> Result<Sight, Error> {
    let name = workload_name(cluster)?;
    let (changes, known) = turn.components.recall(&name);
    let Some(workload) = turn.workloads.get(&name) else { return Ok(Sight::Unreachable) };
    if let Some(known) = known.filter(|_| workload.answers()) {
        return Ok(Sight::Seen(known));
    }
    let path = "/api/v1/namespaces/kube-system/pods?labelSelector=tier%3Dcontrol-plane";
    let what = || format!("list the static pods of {name}");
    let request =
        Request::get(path).body(Vec::new()).map_err(|error| Error::Text { what: what(), why: error.to_string() })?;
    match workload.client().request::<List>(request).await {
        Ok(list) => {
            let pods = list.items.into_iter().map(|pod| (pod.metadata.name.clone(), pod)).collect();
            let read = Arc::new(Read { pods, members: workload.members().ok() });
            turn.components.remember(&name, changes, &read);
            Ok(Sight::Seen(read))
        }
        Err(kube::Error::Api(status)) => Err(Error::Api {
            verb: "list the static pods of",
            object: name.to_string(),
            source: Box::new(kube::Error::Api(status)),
        }),
        Err(_) => Ok(Sight::Unreachable),
    }
}

impl Sight {
    /// Whether kubeadm has begun the cluster: its API answers, and shows an API server.
    pub(super) fn begun(&self) -> bool {
        match self {
            Self::Unreachable => false,
            Self::Seen(read) => read.pods.keys().any(|pod| pod.starts_with("kube-apiserver-")),
        }
    }

    /// The members of etcd, where they are known.
    pub(super) fn members(&self) -> Option<&[Member]> {
        match self {
            Self::Unreachable => None,
            Self::Seen(read) => read.members.as_deref(),
        }
    }

    /// How the components on a Machine are, as conditions of it.
    pub(super) fn of(&self, machine: &Machine) -> Vec<Fact> {
        let types = PODS.map(|(type_, _)| type_).into_iter().chain([ETCD_MEMBER]);
        let Self::Seen(read) = self else {
            let down = "the connection to the workload cluster is down";
            return types.map(|type_| unknown(type_, "ConnectionDown", down)).collect();
        };
        let node = machine.status.as_ref().and_then(|status| status.node_ref.as_ref());
        let Some(node) = node else {
            let waits = match &machine.spec.provider_id {
                Some(id) => format!("Waiting for a Node with spec.providerID {id} to exist"),
                None => "Waiting for the infrastructure machine to report spec.providerID".to_owned(),
            };
            return types.map(|type_| unknown(type_, "InspectionFailed", &waits)).collect();
        };
        let pods = PODS.map(|(type_, component)| read.pod(type_, &format!("{component}-{}", node.name)));
        pods.into_iter().chain([read.member(&node.name)]).collect()
    }
}

impl Read {
    fn pod(&self, type_: &'static str, name: &str) -> Fact {
        let Some(pod) = self.pods.get(name) else {
            return Fact::no(type_, "DoesNotExist", format!("Pod {name} does not exist"));
        };
        let ready = pod.status.conditions.iter().any(|each| each.type_ == "Ready" && each.status == "True");
        match pod.status.phase.as_str() {
            _ if pod.metadata.deletion_timestamp.is_some() => {
                Fact::no(type_, "Deleting", format!("Pod {name} is being deleted"))
            }
            "Running" if ready => Fact::yes(type_, "Running"),
            "Pending" => Fact::no(type_, "Provisioning", "Waiting to be scheduled and started"),
            "Running" => Fact::no(type_, "Provisioning", "Waiting for containers to be ready"),
            phase => Fact::no(type_, "Failed", format!("Pod {name} is {phase}")),
        }
    }

    fn member(&self, node: &str) -> Fact {
        let Some(members) = &self.members else {
            return unknown(ETCD_MEMBER, "InspectionFailed", "etcd does not answer: it has no leader");
        };
        match members.iter().find(|member| member.name == node) {
            None => Fact::no(ETCD_MEMBER, "NotHealthy", format!("Etcd reports no member for Node {node}")),
            Some(member) if member.learner => Fact::no(ETCD_MEMBER, "NotHealthy", "Etcd member is a learner"),
            Some(member) if !member.healthy => Fact::no(ETCD_MEMBER, "NotHealthy", "Etcd member does not answer"),
            Some(_) => Fact::yes(ETCD_MEMBER, "Healthy"),
        }
    }
}

/// Nobody knows.
fn unknown(type_: &'static str, reason: &'static str, message: &str) -> Fact {
    Fact { type_, status: ConditionStatus::Unknown, reason, message: message.to_owned() }
}
