//! What a cluster of a class is asked to be. Its owner says so in `Cluster.spec.topology`, and the class what can be said there.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::control_plane::KubeadmControlPlane;
use windlass_api::kind::topology::{ClusterClass, MachineDeploymentTopology, Topology, VariableOverrides};

use super::kubeadm_control_plane::leave_theirs;
use super::{
    ClusterId, Drive, MachinesTarget, NetworkTarget, PoolTarget, PoolVersion, Target, TargetError, named, odd,
    one_image,
};
use crate::release::Release;
use crate::render::Defaults;
use crate::render::topology::told;

/// What the class of a cluster can be told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TopologyTarget {
    /// The name of the `ClusterClass`.
    pub class: String,
    /// The variables that it has, of those that we know.
    pub variables: BTreeSet<TopologyVariable>,
}

/// A variable of a class that we know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum TopologyVariable {
    /// The releases of the cluster's machines, by version of Kubernetes. Ours alone.
    #[serde(rename = "TKR_DATA")]
    ReleaseData,
    /// How much of everything a machine has.
    #[serde(rename = "vmClass")]
    MachineClass,
    /// Where a machine's disks are.
    #[serde(rename = "storageClass")]
    StorageClass,
}

impl TopologyVariable {
    const ALL: [Self; 3] = [Self::ReleaseData, Self::MachineClass, Self::StorageClass];

    /// The name by which a class declares it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReleaseData => "TKR_DATA",
            Self::MachineClass => "vmClass",
            Self::StorageClass => "storageClass",
        }
    }
}

impl Target {
    /// What the owner asks for: what the topology says, with the release. Pools are in the order of the topology, in which
    /// Cluster API rolls them. Whether `kube-proxy` and `CoreDNS` are ours is said by the control plane that was derived, so
    /// they are not before there is one.
    pub fn of_topology(
        cluster: &Cluster,
        class: &ClusterClass,
        control_plane: Option<&KubeadmControlPlane>,
        mut release: Release,
    ) -> Result<Self, TargetError> {
        let metadata = &cluster.metadata;
        let (namespace, name) = (metadata.namespace.as_deref(), metadata.name.as_deref());
        let field = "spec.topology";
        let missing = || TargetError::Missing { field: field.to_owned(), why: ": the cluster is of no class" };
        let topology = cluster.spec.topology.as_ref().ok_or_else(missing)?;
        let variables = variables(class)?;
        let field = format!("{field}.controlPlane");
        let count = odd(&format!("{field}.replicas"), replicas(&field, topology.control_plane.replicas)?)?;
        let machines = machines(&field, count, topology, topology.control_plane.variables.as_ref())?;
        let pools =
            topology.workers.machine_deployments.iter().map(|it| pool(topology, it)).collect::<Result<_, _>>()?;
        if variables.contains(&TopologyVariable::ReleaseData) {
            one_image("spec.topology.variables[TKR_DATA]", &release)?;
        }
        leave_theirs(&mut release, control_plane.and_then(|it| it.metadata.annotations.as_ref()));
        Ok(Self {
            cluster: ClusterId::new(namespace, name, metadata.uid.as_deref())?,
            drive: Drive::Topology,
            release,
            control_plane: machines,
            pools,
            network: NetworkTarget::of(cluster.spec.cluster_network.as_ref())?,
            defaults: Defaults::default(),
            topology: Some(TopologyTarget { class: topology.class_ref.name.clone(), variables }),
            fields: None,
        })
    }
}

/// The variables of a class that we know. Without one for the class of machines nobody could say which machines to make.
fn variables(class: &ClusterClass) -> Result<BTreeSet<TopologyVariable>, TargetError> {
    let has = |variable: &TopologyVariable| class.spec.variables.iter().any(|found| found.name == variable.as_str());
    let known: BTreeSet<TopologyVariable> = TopologyVariable::ALL.into_iter().filter(has).collect();
    let needed = [TopologyVariable::MachineClass, TopologyVariable::StorageClass];
    match needed.into_iter().find(|variable| !known.contains(variable)) {
        None => Ok(known),
        Some(missing) => {
            let name = class.metadata.name.as_deref().unwrap_or_default();
            let field = format!("ClusterClass/{name}: spec.variables[{}]", missing.as_str());
            Err(TargetError::Missing { field, why: ": the class cannot be told which machines to make" })
        }
    }
}

fn pool(topology: &Topology, found: &MachineDeploymentTopology) -> Result<PoolTarget, TargetError> {
    let field = format!("spec.topology.workers.machineDeployments[{}]", found.name);
    let count = replicas(&field, found.replicas)?;
    Ok(PoolTarget {
        name: named(&format!("{field}.name"), &found.name)?,
        machines: machines(&field, count, topology, found.variables.as_ref())?,
        version: PoolVersion::Release,
    })
}

fn replicas(field: &str, count: Option<u32>) -> Result<u32, TargetError> {
    let why = ": pools whose size others decide cannot be updated yet";
    count.ok_or_else(|| TargetError::Missing { field: format!("{field}.replicas"), why })
}

fn machines(
    field: &str,
    count: u32,
    topology: &Topology,
    part: Option<&VariableOverrides>,
) -> Result<MachinesTarget, TargetError> {
    let value = |variable: TopologyVariable| {
        let name = variable.as_str();
        let field = format!("{field}: variable {name}");
        match told(topology, part, name) {
            Some(Value::String(text)) => Ok((field, text.as_str())),
            Some(_) => Err(TargetError::Unreadable { field, why: "it is no text".to_owned() }),
            None => Err(TargetError::Missing { field: format!("spec.topology.variables[{name}]"), why: "" }),
        }
    };
    let (class_field, class) = value(TopologyVariable::MachineClass)?;
    let (storage_field, storage_class) = value(TopologyVariable::StorageClass)?;
    Ok(MachinesTarget {
        count,
        class: Some(named(&class_field, class)?),
        storage_class: Some(named(&storage_field, storage_class)?),
    })
}
