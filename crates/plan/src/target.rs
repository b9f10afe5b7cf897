//! What a cluster is asked to be.
//!
//! There are three ways to ask, one for each drive: a `TanzuKubernetesCluster`, the objects of a cluster whose control plane
//! Cluster API rolls, and a topology. A refusal names the field.

pub(crate) mod classic;
mod cni;
mod kubeadm_control_plane;
mod topology;

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_api::kind::cluster_update::{PoolEnd, UpdateEnd};
use windlass_api::kind::tanzu::{CidrBlocks, Machines, Network, TanzuKubernetesCluster};
use windlass_api::name::{ClusterName, MachineClassName, NameError, Namespace, PoolName, StorageClassName, Uid};
use windlass_api::version::KubernetesVersion;
use windlass_api::{annotation, key};

use crate::release::{Original, Release};
use crate::render::Defaults;
use crate::resolve::hops;

pub use classic::{ClassicParts, ClassicPool, Fields, ObjectFields, PoolFields, TemplateFields};
pub use kubeadm_control_plane::{KubeadmParts, MachineTemplate, PoolParts};
pub use topology::{TopologyTarget, TopologyVariable};

/// What a cluster is asked to be: a release, and what its owner chose.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Target {
    /// The cluster.
    pub cluster: ClusterId,
    /// Who rolls its machines.
    pub drive: Drive,
    /// The release.
    pub release: Release,
    /// The machines of the control plane.
    pub control_plane: MachinesTarget,
    /// The pools of workers, in the order in which they are rolled. A `TanzuKubernetesCluster` has one, named `default`.
    pub pools: Vec<PoolTarget>,
    /// The network inside of the cluster.
    pub network: NetworkTarget,
    /// What Windlass decides of its machines.
    #[serde(skip_serializing_if = "Defaults::is_empty")]
    pub defaults: Defaults,
    /// What the class of the cluster can be told, where it is of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology: Option<TopologyTarget>,
    /// What the release sets on the objects of the cluster, where these are its owner's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fields: Option<Fields>,
}

/// Who rolls the machines of a cluster. The gates are the same for all three.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Drive {
    /// We do: the Job replaces one Machine of the control plane at a time, and pools are switched to new templates.
    Machines,
    /// Cluster API rolls the control plane: version and templates are written in one write, then each pool.
    KubeadmControlPlane,
    /// Cluster API derives everything from `Cluster.spec.topology`: nothing else is written.
    Topology,
}

/// The object that stands for a cluster: what is asked for, and what is agreed to, is written on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum ClusterKind {
    /// All of the cluster is made of it.
    TanzuKubernetesCluster,
    /// Cluster API's own.
    Cluster,
}

impl ClusterKind {
    /// The name of the kind.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TanzuKubernetesCluster => "TanzuKubernetesCluster",
            Self::Cluster => "Cluster",
        }
    }
}

/// Which cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClusterId {
    /// Its namespace.
    pub namespace: Namespace,
    /// Its name.
    pub name: ClusterName,
    /// What tells it from an earlier cluster of the same name.
    pub uid: Uid,
}

/// Machines that are alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MachinesTarget {
    /// How many.
    pub count: u32,
    /// How much of everything each has; `None` where their infrastructure has no classes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<MachineClassName>,
    /// Where their disks are; `None` where their infrastructure has no such thing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_class: Option<StorageClassName>,
}

/// A pool of workers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PoolTarget {
    /// Its name.
    pub name: PoolName,
    /// Its machines.
    pub machines: MachinesTarget,
    /// Whether its machines get the version of the release.
    pub version: PoolVersion,
}

/// Which version the machines of a pool get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum PoolVersion {
    /// That of the release.
    Release,
    /// The one that they have: the release is only a hop, and the skew policy lets them wait for a later one.
    Kept,
}

/// The network inside of the cluster. What the owner left out has a default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NetworkTarget {
    /// The addresses of pods.
    pub pods: Vec<String>,
    /// The addresses of Services.
    pub services: Vec<String>,
    /// The domain of the names of Services.
    pub service_domain: String,
}

/// How many machines a control plane may have: an odd number, so that etcd can lose one, and not more than can agree with each
/// other in good time.
pub const CONTROL_PLANE_COUNTS: [u32; 3] = [1, 3, 5];

/// The pool of a `TanzuKubernetesCluster`.
const POOL: &str = "default";
const PODS: &str = "192.168.0.0/16";
const SERVICES: &str = "10.96.0.0/12";
const SERVICE_DOMAIN: &str = "cluster.local";

/// A cluster that cannot be what it is asked to be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// A field is not the name that it should be.
    #[error("{field}: {source}")]
    Name {
        /// The field.
        field: String,
        /// What is wrong.
        source: NameError,
    },
    /// etcd needs a majority: an even number of members is no safer than one less.
    #[error("{field}: {count} machines are no control plane; accepted are {accepted}")]
    ControlPlaneCount {
        /// The field.
        field: String,
        /// What was asked.
        count: u32,
        /// What is accepted.
        accepted: &'static str,
    },
    /// etcd is not on the machines of the control plane, and it never moves there.
    #[error("{field}: etcd is elsewhere, and only a control plane with its own etcd can be updated")]
    ExternalEtcd {
        /// The field.
        field: String,
    },
    /// A field that is needed is not there.
    #[error("{field}: it is not set{why}")]
    Missing {
        /// The field.
        field: String,
        /// What follows from that, with a colon before it; or nothing.
        why: &'static str,
    },
    /// A field cannot be read.
    #[error("{field}: {why}")]
    Unreadable {
        /// The field.
        field: String,
        /// What is wrong.
        why: String,
    },
    /// Its machines are made from one image.
    #[error("{field}: release {release} has {count} machine images, and machines of this cluster are made from one")]
    Images {
        /// The field.
        field: String,
        /// The release.
        release: String,
        /// How many it has.
        count: usize,
    },
    /// The release does not say all that is needed to make machines of it.
    #[error("release {release} is not complete: no ConfigMap {map} says {field}; whoever publishes it has to add that")]
    Incomplete {
        /// The release.
        release: String,
        /// The ConfigMap.
        map: String,
        /// The field.
        field: String,
    },
    /// A field is no range of addresses.
    #[error("{field}: {text:?} is no range of addresses such as {PODS}")]
    Cidr {
        /// The field.
        field: String,
        /// What was asked.
        text: String,
    },
    /// The network that pods are to have is none of the release, or nobody says which.
    #[error("{field}: {why}")]
    Cni {
        /// The field.
        field: String,
        /// What is wrong, and what is accepted.
        why: String,
    },
    /// An annotation is not what its key promises.
    #[error("metadata.annotations: {why}")]
    Annotation {
        /// What is wrong with which.
        why: String,
    },
}

impl Target {
    /// The object that stands for the cluster.
    pub fn kind(&self) -> ClusterKind {
        match self.drive {
            Drive::Machines => ClusterKind::TanzuKubernetesCluster,
            Drive::KubeadmControlPlane | Drive::Topology => ClusterKind::Cluster,
        }
    }

    /// What the owner asks for.
    pub fn new(tkc: &TanzuKubernetesCluster, release: Release) -> Result<Self, TargetError> {
        let topology = &tkc.spec.topology;
        let workers = pool_version(tkc, &release)?;
        Self::with_machines(tkc, &topology.control_plane, (&topology.workers, workers), release)
    }

    /// What an update that was begun leads to, whatever its owner asks for by now.
    pub fn of_update(tkc: &TanzuKubernetesCluster, to: &UpdateEnd, release: Release) -> Result<Self, TargetError> {
        let target =
            Self::with_machines(tkc, &to.control_plane, (&to.workers, PoolVersion::in_update(to, POOL)), release)?;
        Ok(target.with_defaults(Defaults { node_registration: to.defaults.clone() }))
    }

    /// The same with what this Windlass decides.
    #[must_use]
    pub fn with_defaults(self, defaults: Defaults) -> Self {
        Self { defaults, ..self }
    }

    fn with_machines(
        tkc: &TanzuKubernetesCluster,
        control_plane: &Machines,
        (workers, version): (&Machines, PoolVersion),
        mut release: Release,
    ) -> Result<Self, TargetError> {
        let metadata = &tkc.metadata;
        let (namespace, name) = (metadata.namespace.as_deref(), metadata.name.as_deref());
        let cluster = ClusterId::new(namespace, name, metadata.uid.as_deref())?;
        let control_plane = MachinesTarget::new("spec.topology.controlPlane", control_plane)?;
        if !CONTROL_PLANE_COUNTS.contains(&control_plane.count) {
            let (field, count) = ("spec.topology.controlPlane.count".to_owned(), control_plane.count);
            return Err(TargetError::ControlPlaneCount { field, count, accepted: "1, 3 and 5" });
        }
        let pool = PoolTarget {
            name: named("spec.topology.workers", POOL)?,
            machines: MachinesTarget::new("spec.topology.workers", workers)?,
            version,
        };
        let network = tkc.spec.settings.as_ref().and_then(|settings| settings.network.as_ref());
        let chosen = network.and_then(|network| network.cni.as_ref()).map(|cni| cni.name.as_str());
        let present = tkc.status.as_ref().and_then(|status| status.addons.get("cni")).map(|addon| addon.name.as_str());
        cni::choose("spec.settings.network.cni.name", chosen, present, &mut release)?;
        let network = NetworkTarget::new("spec.settings.network", network)?;
        one_image("spec.distribution", &release)?;
        let drive = Drive::Machines;
        let (pools, defaults) = (vec![pool], Defaults::default());
        let (topology, fields) = (None, None);
        Ok(Self { cluster, drive, release, control_plane, pools, network, defaults, topology, fields })
    }

    /// The same cluster on the way to the end of an update that was begun, whatever its owner asks for by now.
    pub fn toward(mut self, to: &UpdateEnd) -> Result<Self, TargetError> {
        self.control_plane = MachinesTarget::new("spec.to.controlPlane", &to.control_plane)?;
        let pool = |pool: &PoolEnd| {
            let field = format!("spec.to.pools[{}]", pool.name);
            Ok(PoolTarget {
                name: named(&format!("{field}.name"), &pool.name)?,
                machines: MachinesTarget::new(&field, &pool.machines)?,
                version: PoolVersion::in_update(to, &pool.name),
            })
        };
        self.pools = to.pools.iter().map(pool).collect::<Result<_, TargetError>>()?;
        Ok(self)
    }

    /// The target as one end of an update.
    pub fn end(&self) -> UpdateEnd {
        let mut end = UpdateEnd {
            distribution: self.release.distribution.to_string(),
            kubernetes: self.release.kubernetes.to_string(),
            release: self.original_digest().map(str::to_owned),
            control_plane: self.control_plane.written(),
            kept_pools: self.kept_pools().map(|pool| pool.name.to_string()).collect(),
            defaults: self.defaults.node_registration.clone(),
            ..UpdateEnd::default()
        };
        match self.drive {
            Drive::Machines => {
                end.workers = self.pools.first().map(|pool| pool.machines.written()).unwrap_or_default();
            }
            Drive::KubeadmControlPlane | Drive::Topology => {
                let written =
                    |pool: &PoolTarget| PoolEnd { name: pool.name.to_string(), machines: pool.machines.written() };
                end.pools = self.pools.iter().map(written).collect();
            }
        }
        end
    }

    /// What is kept of its release for the cluster. Where Cluster API rolls the machines, nothing is.
    pub fn original(&self) -> Option<&Original> {
        self.release.original.as_deref().filter(|_| self.drive == Drive::Machines)
    }

    /// The digest of what is kept of its release.
    pub fn original_digest(&self) -> Option<&str> {
        self.original().map(Original::digest)
    }

    /// The pools whose machines keep the version that they have.
    pub fn kept_pools(&self) -> impl Iterator<Item = &PoolTarget> {
        self.pools.iter().filter(|pool| pool.version == PoolVersion::Kept)
    }
}

impl PoolVersion {
    /// Which version a pool gets in an update that was begun.
    fn in_update(to: &UpdateEnd, pool: &str) -> Self {
        if to.kept_pools.iter().any(|kept| kept == pool) { Self::Kept } else { Self::Release }
    }
}

/// Whether the release is only a hop that workers need not make: the cluster is on its way to a later one, and its oldest
/// machines may still speak to API servers of the minor after this one. Of a cluster whose machines are not known to be that
/// new, all are replaced.
fn pool_version(tkc: &TanzuKubernetesCluster, release: &Release) -> Result<PoolVersion, TargetError> {
    let Some(annotations) = &tkc.metadata.annotations else { return Ok(PoolVersion::Release) };
    let on_the_way_to = annotation::ON_THE_WAY_TO.get(annotations).map_err(|error| malformed(&error))?;
    let version = tkc.status.as_ref().and_then(|status| status.version.as_deref());
    let oldest: Option<KubernetesVersion> = version.and_then(|version| version.parse().ok());
    let waits = match (on_the_way_to, oldest) {
        (Some(end), Some(oldest)) => end > release.distribution && hops::may_wait(&oldest, &release.kubernetes),
        (None, _) | (_, None) => false,
    };
    Ok(if waits { PoolVersion::Kept } else { PoolVersion::Release })
}

fn malformed(error: &key::KeyError) -> TargetError {
    TargetError::Annotation { why: format!("{error}: {}", error.source) }
}

impl ClusterId {
    /// The three from an object's metadata.
    fn new(namespace: Option<&str>, name: Option<&str>, uid: Option<&str>) -> Result<Self, TargetError> {
        Ok(Self {
            namespace: named("metadata.namespace", namespace.unwrap_or_default())?,
            name: named("metadata.name", name.unwrap_or_default())?,
            uid: named("metadata.uid", uid.unwrap_or_default())?,
        })
    }
}

impl MachinesTarget {
    fn new(field: &str, asked: &Machines) -> Result<Self, TargetError> {
        Ok(Self {
            count: asked.count,
            class: Some(named(&format!("{field}.class"), &asked.class)?),
            storage_class: Some(named(&format!("{field}.storageClass"), &asked.storage_class)?),
        })
    }

    fn written(&self) -> Machines {
        let [class, storage_class] = [self.class(), self.storage_class()].map(str::to_owned);
        Machines { count: self.count, class, storage_class }
    }

    /// How much of everything each has; nothing where there are no classes.
    pub fn class(&self) -> &str {
        self.class.as_ref().map(AsRef::as_ref).unwrap_or_default()
    }

    /// Where their disks are; nothing where there is no such thing.
    pub fn storage_class(&self) -> &str {
        self.storage_class.as_ref().map(AsRef::as_ref).unwrap_or_default()
    }
}

impl NetworkTarget {
    /// What a Cluster says about it.
    fn of(asked: Option<&Value>) -> Result<Self, TargetError> {
        let field = "spec.clusterNetwork";
        let read = |asked: &Value| Network::deserialize(asked);
        let unreadable =
            |error: serde_json::Error| TargetError::Unreadable { field: field.to_owned(), why: error.to_string() };
        Self::new(field, asked.map(read).transpose().map_err(unreadable)?.as_ref())
    }

    fn new(field: &str, asked: Option<&Network>) -> Result<Self, TargetError> {
        let blocks = |part: &str, asked: Option<&CidrBlocks>, default: &str| match asked {
            Some(blocks) if !blocks.cidr_blocks.is_empty() => {
                blocks.cidr_blocks.iter().map(|text| cidr(&format!("{field}.{part}.cidrBlocks"), text)).collect()
            }
            _ => Ok(vec![default.to_owned()]),
        };
        let pods = asked.and_then(|network| network.pods.as_ref());
        let services = asked.and_then(|network| network.services.as_ref());
        let domain = asked.and_then(|network| network.service_domain.as_deref());
        Ok(Self {
            pods: blocks("pods", pods, PODS)?,
            services: blocks("services", services, SERVICES)?,
            service_domain: domain.unwrap_or(SERVICE_DOMAIN).to_owned(),
        })
    }
}

fn named<T: std::str::FromStr<Err = NameError>>(field: &str, text: &str) -> Result<T, TargetError> {
    text.parse().map_err(|source| TargetError::Name { field: field.to_owned(), source })
}

/// Refuses a release that leaves open which image machines are made from.
fn one_image(field: &str, release: &Release) -> Result<(), TargetError> {
    let refused = || TargetError::Images {
        field: field.to_owned(),
        release: release.distribution.to_string(),
        count: release.images.len(),
    };
    release.image().map(|_| ()).ok_or_else(refused)
}

/// The count, if a control plane with its own etcd can have so many machines. More than seven members of etcd are slower and
/// no safer.
fn odd(field: &str, count: u32) -> Result<u32, TargetError> {
    let accepted = "1, 3, 5 and 7";
    let refused = || TargetError::ControlPlaneCount { field: field.to_owned(), count, accepted };
    matches!(count, 1 | 3 | 5 | 7).then_some(count).ok_or_else(refused)
}

/// The text, if it is an address and the length of a prefix.
fn cidr(field: &str, text: &str) -> Result<String, TargetError> {
    let parts = text.split_once('/').and_then(|(address, length)| {
        let address: IpAddr = address.parse().ok()?;
        let length: u8 = length.parse().ok()?;
        Some((address, length))
    });
    match parts {
        Some((IpAddr::V4(_), 0..=32) | (IpAddr::V6(_), 0..=128)) => Ok(text.to_owned()),
        _ => Err(TargetError::Cidr { field: field.to_owned(), text: text.to_owned() }),
    }
}

#[cfg(test)]
mod tests;
