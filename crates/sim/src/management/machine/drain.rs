//! How pods leave a node whose Machine goes: it is cordoned, and they are evicted through the Eviction API, which asks the
//! disruption budgets. Nobody is forced out: what may not be evicted is tried again.

mod evicted;
mod fate;

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod as FullPod};
use kube::api::{ApiResource, ListParams, ObjectList, Patch, PatchParams, PostParams};
use kube::core::Status;
use kube::core::object::Object;
use kube::{Api, Client, Error as ClientError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_api::kind::cluster_api::{Cluster, Machine};

use crate::management::context::{Error, Turn};
use crate::management::write::failed;
use evicted::Evicted;
use fate::{Fate, Rules};

/// A pod, with what decides how it leaves.
pub(super) type Pod = Object<PodSpec, PodStatus>;

/// What is read of the spec of a pod.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct PodSpec {
    volumes: Vec<Volume>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Volume {
    persistent_volume_claim: Option<Claim>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Claim {
    claim_name: String,
}

/// What is read of the status of a pod.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct PodStatus {
    phase: String,
}

/// Whether all pods that have to have left a node.
#[derive(Debug)]
pub(super) enum Drained {
    /// They have.
    Yes,
    /// They have not, and this is what is waited for.
    NotYet(String),
}

/// A node that pods are to leave.
pub(super) struct Leaving<'a> {
    pub turn: &'a Turn,
    pub machine: &'a Machine,
    pub cluster: &'a Cluster,
    /// The workload API.
    pub client: &'a Client,
    pub node: &'a Node,
}

impl Leaving<'_> {
    /// Whether nobody hears of the kubelet any more: pods on it will never end.
    pub(super) fn is_unreachable(&self) -> bool {
        let conditions = self.node.status.as_ref().and_then(|status| status.conditions.as_ref());
        let ready = conditions.into_iter().flatten().find(|condition| condition.type_ == "Ready");
        ready.is_some_and(|ready| ready.status == "Unknown")
    }

    pub(super) fn node_name(&self) -> &str {
        self.node.metadata.name.as_deref().unwrap_or_default()
    }

    /// Cordons the node and asks the pods that are first to leave.
    pub(super) async fn drain(&self, began: Timestamp) -> Result<Drained, Error> {
        self.cordon().await?;
        let fates = self.fates().await?;
        if fates.iter().all(|(_, fate)| *fate == Fate::Stays) {
            return Ok(Drained::Yes);
        }
        let first = fates.iter().filter_map(|(_, fate)| fate.order()).min().unwrap_or_default();
        let mut evicted = Evicted::default();
        for (pod, fate) in &fates {
            let name = fate::path(pod);
            match fate {
                Fate::Stays => {}
                Fate::Leaves { .. } if pod.metadata.deletion_timestamp.is_some() => evicted.leaving.push(name),
                Fate::Leaves { order } if *order == first => self.evict(pod, name, &mut evicted).await?,
                Fate::Leaves { .. } => evicted.later.push(name),
                Fate::Finishes { order } if *order == first => evicted.finishing.push(name),
                Fate::Finishes { .. } => evicted.finishing_later.push(name),
            }
        }
        Ok(if evicted.is_empty() { Drained::Yes } else { Drained::NotYet(evicted.message(began)) })
    }

    async fn cordon(&self) -> Result<(), Error> {
        if self.node.spec.as_ref().is_some_and(|spec| spec.unschedulable == Some(true)) {
            return Ok(());
        }
        let api: Api<Node> = Api::all(self.client.clone());
        let patch = Patch::Merge(json!({"spec": {"unschedulable": true}}));
        let cordoned = api.patch(self.node_name(), &PatchParams::default(), &patch).await;
        cordoned.map(drop).map_err(|source| failed("cordon the node of", self.machine, source))
    }

    /// The pods on the node, by namespace and name, and what becomes of each.
    pub(super) async fn fates(&self) -> Result<Vec<(Pod, Fate)>, Error> {
        let api: Api<Pod> = Api::all_with(self.client.clone(), &ApiResource::erase::<FullPod>(&()));
        let here = ListParams::default().fields(&format!("spec.nodeName={}", self.node_name()));
        let pods: ObjectList<Pod> =
            api.list(&here).await.map_err(|source| failed("list the pods on the node of", self.machine, source))?;
        let rules = Rules::for_machine(&self.turn.caches.drain_rules, self.machine, self.cluster);
        // Real Cluster API has all namespaces at hand. They are asked for only where a rule wants to know.
        let namespaces = if rules.ask_for_namespaces() { self.namespaces().await? } else { BTreeMap::new() };
        let gone_before = self.is_unreachable().then(|| self.turn.clock.now());
        let mut fates: Vec<(Pod, Fate)> = Vec::with_capacity(pods.items.len());
        for pod in pods.items {
            let fate = fate::of(&pod, &rules, &namespaces, gone_before);
            fates.push((pod, fate));
        }
        fates.sort_by_key(|(pod, _)| fate::path(pod));
        Ok(fates)
    }

    async fn namespaces(&self) -> Result<BTreeMap<String, BTreeMap<String, String>>, Error> {
        let api: Api<Namespace> = Api::all(self.client.clone());
        let all = api.list_metadata(&ListParams::default()).await;
        let all = all.map_err(|source| failed("list the namespaces around the node of", self.machine, source))?;
        let labels = all.items.into_iter().map(|namespace| {
            (namespace.metadata.name.unwrap_or_default(), namespace.metadata.labels.unwrap_or_default())
        });
        Ok(labels.collect())
    }

    /// Asks a pod to leave. A refusal is for people to read, and for the next try.
    async fn evict(&self, pod: &Pod, name: String, evicted: &mut Evicted) -> Result<(), Error> {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let api: Api<FullPod> = Api::namespaced(self.client.clone(), namespace);
        let pod = pod.metadata.name.as_deref().unwrap_or_default();
        // The kubelet is not there to use the time that a pod asks for.
        let grace = if self.is_unreachable() { json!({"gracePeriodSeconds": 1}) } else { json!({}) };
        // `Api::evict` of kube 5.0 writes `delete_options`, which no API server reads.
        let eviction = json!({
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": namespace},
            "deleteOptions": grace,
        });
        match api.create_subresource::<Value, Status>("eviction", pod, &PostParams::default(), &eviction).await {
            Ok(_) => evicted.leaving.push(name),
            Err(ClientError::Api(status)) if status.code == 404 => {}
            Err(ClientError::Api(status)) => evicted.refuse(&status, name),
            Err(source) => return Err(failed("evict a pod from the node of", self.machine, source)),
        }
        Ok(())
    }
}

/// The claims of a pod, as `namespace/name`.
pub(super) fn claims(pod: &Pod) -> impl Iterator<Item = String> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let claims = pod.spec.volumes.iter().filter_map(|volume| volume.persistent_volume_claim.as_ref());
    claims.map(move |claim| format!("{namespace}/{}", claim.claim_name))
}

/// Whether a pod stays on its node until the end.
pub(super) fn stays(fate: Fate) -> bool {
    fate == Fate::Stays
}
