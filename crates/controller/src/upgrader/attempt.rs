//! What one run knows throughout: its arguments, the live cluster, and the ways to both APIs.

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Api, Client, Resource, ResourceExt};
use windlass_api::kind::cluster_api::{Cluster, Machine};
use windlass_api::name::{ClusterSecret, NamespacedName};
use windlass_api::{annotation, label};

use super::{Arguments, Error, UpgraderAccess};
use crate::access::WorkloadCluster;

/// The key of a kubeconfig in its Secret.
const KUBECONFIG_KEY: &str = "value";

/// What one run knows throughout.
pub struct Attempt<'a> {
    /// What it was told.
    pub arguments: &'a Arguments,
    /// What it was given.
    pub access: &'a UpgraderAccess,
    /// The cluster, as `namespace/name`.
    pub cluster: NamespacedName,
    /// A reference to the live Cluster, by uid.
    pub owner: OwnerReference,
    /// The ways to the workload cluster.
    pub workload: WorkloadCluster,
}

impl<'a> Attempt<'a> {
    /// Reads the cluster, refuses what must not be touched, and connects to the workload cluster. Nothing is written.
    pub async fn begin(access: &'a UpgraderAccess, arguments: &'a Arguments) -> Result<Self, Error> {
        let cluster = NamespacedName {
            namespace: arguments.cluster_namespace.clone(),
            name: arguments.cluster_name.clone().into(),
        };
        let live = read_cluster(access, &cluster).await?;
        if let Some(state) = hands_off(&live) {
            return Err(Error::HandsOff { cluster: cluster.to_string(), state: state.to_owned() });
        }
        let unusable =
            || Error::Unusable { kind: "Cluster", name: cluster.to_string(), why: "it has no uid".to_owned() };
        let owner = live.owner_ref(&()).ok_or_else(unusable)?;
        let workload = connect(access, arguments, &cluster).await?;
        Ok(Self { arguments, access, cluster, owner, workload })
    }

    /// Whether the cluster may not be touched by now: it is `paused`, or `being deleted`.
    pub async fn hands_off(&self) -> Result<Option<&'static str>, Error> {
        let live = read_cluster(self.access, &self.cluster).await?;
        Ok(if live.uid().as_ref() == Some(&self.owner.uid) { hands_off(&live) } else { Some("another one by now") })
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

fn hands_off(cluster: &Cluster) -> Option<&'static str> {
    if cluster.meta().deletion_timestamp.is_some() {
        return Some("being deleted");
    }
    let is_paused = cluster.spec.paused == Some(true) || annotation::PAUSED.is_in(cluster.annotations());
    is_paused.then_some("paused")
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
