//! What one run knows throughout: its arguments, the live cluster, and the ways to both APIs.
//!
//! Whether the cluster may be touched is not among it: that is asked again after every wait.

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Api, Client, Resource, ResourceExt};
use windlass_api::kind::cluster_api::{Cluster, Machine};
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::label;
use windlass_api::name::{ClusterSecret, NamespacedName};
use windlass_plan::roll::HandsOff;

use super::wait::Patience;
use super::{Arguments, Errand, Error, UpgraderAccess};
use crate::access::WorkloadCluster;
use crate::observe::management;

/// The key of a kubeconfig in its Secret.
const KUBECONFIG_KEY: &str = "value";

/// What one run knows throughout.
pub struct Attempt<'a> {
    /// What it was told.
    pub arguments: &'a Arguments,
    /// What it is for.
    pub errand: Errand,
    /// What it was given.
    pub access: &'a UpgraderAccess,
    /// The cluster, as `namespace/name`.
    pub cluster: NamespacedName,
    /// A reference to the live Cluster, by uid.
    pub owner: OwnerReference,
    /// The name of the object that the Cluster was made for, if there is one: who pauses that means all of it.
    pub wish: Option<String>,
    /// The ways to the workload cluster.
    pub workload: WorkloadCluster,
}

impl<'a> Attempt<'a> {
    /// Reads the cluster, and connects to the workload cluster. Nothing is written. Also says whether the cluster may be
    /// touched.
    pub async fn begin(
        access: &'a UpgraderAccess,
        arguments: &'a Arguments,
        errand: Errand,
    ) -> Result<(Self, Option<HandsOff>), Error> {
        let cluster = NamespacedName {
            namespace: arguments.cluster_namespace.clone(),
            name: arguments.cluster_name.clone().into(),
        };
        let patience = Patience::of(arguments.machine_timeout);
        let live = patience.retry(|| read_cluster(access, &cluster)).await?;
        let wish = wish(&live).map(str::to_owned);
        let hands_off = patience.retry(|| hands_off(access, &cluster, &live)).await?;
        if let Some(HandsOff::Lost { state }) = hands_off {
            return Err(Error::HandsOff { cluster: cluster.to_string(), state });
        }
        let unusable =
            || Error::Unusable { kind: "Cluster", name: cluster.to_string(), why: "it has no uid".to_owned() };
        let owner = live.owner_ref(&()).ok_or_else(unusable)?;
        let workload = patience.retry(|| connect(access, arguments, &cluster)).await?;
        Ok((Self { arguments, errand, access, cluster, owner, wish, workload }, hands_off))
    }

    /// Why the cluster may not be touched by now, if so.
    pub async fn hands_off(&self) -> Result<Option<HandsOff>, Error> {
        let patience = self.patience();
        let live = patience.retry(|| read_cluster(self.access, &self.cluster)).await?;
        if live.uid().as_ref() != Some(&self.owner.uid) {
            return Ok(Some(HandsOff::Lost { state: "another one by now".to_owned() }));
        }
        patience.retry(|| hands_off(self.access, &self.cluster, &live)).await
    }

    /// How long an API may not answer: as long as a machine may take, whichever of the two it is.
    pub fn patience(&self) -> Patience {
        Patience::of(self.arguments.machine_timeout)
    }

    /// The machines in the cluster's namespace.
    pub fn machines(&self) -> Api<Machine> {
        self.management()
    }

    /// What the control-plane machines of the cluster are found by.
    pub fn selector(&self) -> String {
        format!("{}={},{}", label::CLUSTER_NAME, self.arguments.cluster_name, label::CONTROL_PLANE)
    }

    /// Objects in the cluster's namespace.
    pub fn management<K>(&self) -> Api<K>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client(), self.cluster.namespace.as_str())
    }

    /// The management cluster.
    pub fn client(&self) -> Client {
        self.access.client.clone()
    }
}

async fn read_cluster(access: &UpgraderAccess, name: &NamespacedName) -> Result<Cluster, Error> {
    let api: Api<Cluster> = Api::namespaced(access.client.clone(), name.namespace.as_str());
    api.get(name.name.as_str()).await.map_err(Error::api(format!("read the cluster {name}")))
}

async fn hands_off(
    access: &UpgraderAccess,
    name: &NamespacedName,
    cluster: &Cluster,
) -> Result<Option<HandsOff>, Error> {
    if cluster.meta().deletion_timestamp.is_some() {
        return Ok(Some(HandsOff::Lost { state: "being deleted".to_owned() }));
    }
    let api: Api<TanzuKubernetesCluster> = Api::namespaced(access.client.clone(), name.namespace.as_str());
    let wish = match wish(cluster) {
        Some(wish) => {
            let read = api.get_metadata_opt(wish).await;
            read.map_err(Error::api(format!("read whether TanzuKubernetesCluster/{wish} is paused")))?
        }
        None => None,
    };
    let by = management::paused(cluster, wish.as_ref().map(|wish| &wish.metadata));
    Ok(by.map(|by| HandsOff::Held { by }))
}

fn wish(cluster: &Cluster) -> Option<&str> {
    let is_wish = |owner: &&OwnerReference| owner.kind == TanzuKubernetesCluster::kind(&());
    cluster.owner_references().iter().find(is_wish).map(|owner| owner.name.as_str())
}

async fn connect(
    access: &UpgraderAccess,
    arguments: &Arguments,
    cluster: &NamespacedName,
) -> Result<WorkloadCluster, Error> {
    let api: Api<Secret> = Api::namespaced(access.client.clone(), cluster.namespace.as_str());
    let name = ClusterSecret::Kubeconfig.object_name(&arguments.cluster_name);
    let secret =
        api.get(name.as_str()).await.map_err(Error::api(format!("read the kubeconfig of {cluster} from {name}")))?;
    let kubeconfig = secret.data.as_ref().and_then(|data| data.get(KUBECONFIG_KEY));
    let kubeconfig = kubeconfig.ok_or_else(|| Error::Unusable {
        kind: "Secret",
        name: name.to_string(),
        why: format!("it has no {KUBECONFIG_KEY}"),
    })?;
    Ok(access.workloads.connect(cluster, &kubeconfig.0).await?)
}
