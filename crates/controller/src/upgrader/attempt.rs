//! What one run knows throughout: its arguments, the live cluster, and the ways to both APIs.

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::ListParams;
use kube::{Api, Client, Resource, ResourceExt};
use windlass_api::kind::cluster_api::{Cluster, Machine};
use windlass_api::name::{ClusterSecret, NamespacedName};
use windlass_api::{annotation, label};

use super::{Arguments, Error, UpgraderAccess, mark};
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
    /// Reads the cluster and its control-plane machines, refuses what must not be touched, and connects to the workload
    /// cluster. Nothing is written.
    pub async fn begin(access: &'a UpgraderAccess, arguments: &'a Arguments) -> Result<(Self, Vec<Machine>), Error> {
        let cluster = NamespacedName {
            namespace: arguments.cluster_namespace.clone(),
            name: arguments.cluster_name.clone().into(),
        };
        let owner = live_owner(access, &cluster).await?;
        let machines = list_machines(access, arguments, &cluster).await?;
        if machines.is_empty() {
            return Err(Error::NoMachines { cluster: cluster.to_string() });
        }
        for machine in &machines {
            mark::refuse_other(machine, arguments.upgrade_id)?;
        }
        let workload = connect(access, arguments, &cluster).await?;
        Ok((Self { arguments, access, cluster, owner, workload }, machines))
    }

    /// The machines in the cluster's namespace.
    pub fn machines(&self) -> Api<Machine> {
        self.management()
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

/// What the control-plane machines of the cluster are found by.
pub fn selector(arguments: &Arguments) -> String {
    format!("{}={},{}", label::CLUSTER_NAME, arguments.cluster_name, label::CONTROL_PLANE)
}

async fn live_owner(access: &UpgraderAccess, name: &NamespacedName) -> Result<OwnerReference, Error> {
    let api: Api<Cluster> = Api::namespaced(access.client.clone(), name.namespace.as_str());
    let cluster = api.get(name.name.as_str()).await.map_err(Error::api(format!("read the cluster {name}")))?;
    let hands_off = |state| Error::HandsOff { cluster: name.to_string(), state };
    if cluster.meta().deletion_timestamp.is_some() {
        return Err(hands_off("being deleted"));
    }
    if cluster.spec.paused == Some(true) || annotation::PAUSED.is_in(cluster.annotations()) {
        return Err(hands_off("paused"));
    }
    let unusable = || Error::Unusable { kind: "Cluster", name: name.to_string(), why: "it has no uid".to_owned() };
    cluster.owner_ref(&()).ok_or_else(unusable)
}

async fn list_machines(
    access: &UpgraderAccess,
    arguments: &Arguments,
    cluster: &NamespacedName,
) -> Result<Vec<Machine>, Error> {
    let api: Api<Machine> = Api::namespaced(access.client.clone(), cluster.namespace.as_str());
    // Without a resource version this is a quorum read.
    let list = api.list(&ListParams::default().labels(&selector(arguments))).await;
    Ok(list.map_err(Error::api(format!("list the control-plane machines of {cluster}")))?.items)
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
