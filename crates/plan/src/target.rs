//! What a cluster is asked to be.

use std::net::IpAddr;

use serde::Serialize;
use windlass_api::kind::cluster_update::UpdateEnd;
use windlass_api::kind::tanzu::{CidrBlocks, Machines, Network, TanzuKubernetesCluster};
use windlass_api::name::{ClusterName, MachineClassName, NameError, Namespace, PoolName, StorageClassName, Uid};

use crate::release::Release;

/// What a cluster is asked to be: a release, and what its owner chose.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Target {
    /// The cluster.
    pub cluster: ClusterId,
    /// The release.
    pub release: Release,
    /// The machines of the control plane.
    pub control_plane: MachinesTarget,
    /// The pools of workers, in the order in which they are rolled. A `TanzuKubernetesCluster` has one, named `default`.
    pub pools: Vec<PoolTarget>,
    /// The network inside of the cluster.
    pub network: NetworkTarget,
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
    /// How much of everything each has.
    pub class: MachineClassName,
    /// Where their disks are.
    pub storage_class: StorageClassName,
}

/// A pool of workers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PoolTarget {
    /// Its name.
    pub name: PoolName,
    /// Its machines.
    pub machines: MachinesTarget,
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
    #[error("spec.topology.controlPlane.count: {count} machines are no control plane; accepted are 1, 3 and 5")]
    ControlPlaneCount {
        /// What was asked.
        count: u32,
    },
    /// A field is no range of addresses.
    #[error("{field}: {text:?} is no range of addresses such as {PODS}")]
    Cidr {
        /// The field.
        field: String,
        /// What was asked.
        text: String,
    },
}

impl Target {
    /// What the owner asks for.
    pub fn new(tkc: &TanzuKubernetesCluster, release: Release) -> Result<Self, TargetError> {
        let topology = &tkc.spec.topology;
        Self::with_machines(tkc, &topology.control_plane, &topology.workers, release)
    }

    /// What an update that was begun leads to, whatever its owner asks for by now.
    pub fn of_update(tkc: &TanzuKubernetesCluster, to: &UpdateEnd, release: Release) -> Result<Self, TargetError> {
        Self::with_machines(tkc, &to.control_plane, &to.workers, release)
    }

    fn with_machines(
        tkc: &TanzuKubernetesCluster,
        control_plane: &Machines,
        workers: &Machines,
        mut release: Release,
    ) -> Result<Self, TargetError> {
        let metadata = &tkc.metadata;
        let cluster = ClusterId {
            namespace: named("metadata.namespace", metadata.namespace.as_deref().unwrap_or_default())?,
            name: named("metadata.name", metadata.name.as_deref().unwrap_or_default())?,
            uid: named("metadata.uid", metadata.uid.as_deref().unwrap_or_default())?,
        };
        let control_plane = MachinesTarget::new("spec.topology.controlPlane", control_plane)?;
        if !matches!(control_plane.count, 1 | 3 | 5) {
            return Err(TargetError::ControlPlaneCount { count: control_plane.count });
        }
        let pool = PoolTarget {
            name: named("spec.topology.workers", POOL)?,
            machines: MachinesTarget::new("spec.topology.workers", workers)?,
        };
        let network = tkc.spec.settings.as_ref().and_then(|settings| settings.network.as_ref());
        if let Some(chosen) = network.and_then(|network| network.cni.as_ref()) {
            release.addons.retain(|name, addon| addon.slot != "cni" || name.as_str() == chosen.name);
        }
        let network = NetworkTarget::new(network)?;
        Ok(Self { cluster, release, control_plane, pools: vec![pool], network })
    }

    /// The target as one end of an update.
    pub fn end(&self) -> UpdateEnd {
        UpdateEnd {
            distribution: self.release.distribution.to_string(),
            kubernetes: self.release.kubernetes.to_string(),
            control_plane: self.control_plane.written(),
            workers: self.pools.first().map(|pool| pool.machines.written()).unwrap_or_default(),
        }
    }
}

impl MachinesTarget {
    fn new(field: &str, asked: &Machines) -> Result<Self, TargetError> {
        Ok(Self {
            count: asked.count,
            class: named(&format!("{field}.class"), &asked.class)?,
            storage_class: named(&format!("{field}.storageClass"), &asked.storage_class)?,
        })
    }

    fn written(&self) -> Machines {
        Machines { count: self.count, class: self.class.to_string(), storage_class: self.storage_class.to_string() }
    }
}

impl NetworkTarget {
    fn new(asked: Option<&Network>) -> Result<Self, TargetError> {
        let blocks = |field: &str, asked: Option<&CidrBlocks>, default: &str| match asked {
            Some(blocks) if !blocks.cidr_blocks.is_empty() => {
                blocks.cidr_blocks.iter().map(|text| cidr(field, text)).collect()
            }
            _ => Ok(vec![default.to_owned()]),
        };
        let pods = asked.and_then(|network| network.pods.as_ref());
        let services = asked.and_then(|network| network.services.as_ref());
        let domain = asked.and_then(|network| network.service_domain.as_deref());
        Ok(Self {
            pods: blocks("spec.settings.network.pods.cidrBlocks", pods, PODS)?,
            services: blocks("spec.settings.network.services.cidrBlocks", services, SERVICES)?,
            service_domain: domain.unwrap_or(SERVICE_DOMAIN).to_owned(),
        })
    }
}

fn named<T: std::str::FromStr<Err = NameError>>(field: &str, text: &str) -> Result<T, TargetError> {
    text.parse().map_err(|source| TargetError::Name { field: field.to_owned(), source })
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
mod tests {
    use windlass_api::annotation;
    use windlass_api::kind::tanzu::{Settings, TanzuKubernetesClusterSpec, Topology};
    use windlass_api::kind::virtual_machine::VirtualMachineImage;

    use super::*;

    fn release() -> Release {
        let mut image = VirtualMachineImage::default();
        image.metadata.name = Some("photon".to_owned());
        let text = r#"{"distribution":{"version":"v1.16.7+vmware.1-guest.1"},
            "kubernetes":{"imageRepository":"vmware","version":"v1.16.7+vmware.1"},
            "etcd":{"imageRepository":"vmware","version":"v3"},"coredns":{"imageRepository":"vmware","version":"v1"}}"#;
        let addon =
            |name: &str| (format!("{}{name}", annotation::ADDON_PREFIX), r#"{"type":"inline","value":""}"#.to_owned());
        let distribution = (annotation::DISTRIBUTION.name.to_owned(), text.to_owned());
        image.metadata.annotations = Some([distribution, addon("calico"), addon("antrea")].into());
        Release::from_image(&image).unwrap()
    }

    fn cluster() -> TanzuKubernetesCluster {
        let machines =
            |count| Machines { count, class: "small".to_owned(), storage_class: "gc-storage-profile".to_owned() };
        let mut tkc = TanzuKubernetesCluster::new(
            "my-tkc",
            TanzuKubernetesClusterSpec {
                topology: Topology { control_plane: machines(3), workers: machines(2) },
                ..TanzuKubernetesClusterSpec::default()
            },
        );
        tkc.metadata.namespace = Some("default".to_owned());
        tkc.metadata.uid = Some("uid".to_owned());
        tkc
    }

    fn check(change: impl FnOnce(&mut TanzuKubernetesCluster), refusal: &str) {
        let mut tkc = cluster();
        change(&mut tkc);
        let answer = Target::new(&tkc, release()).map(|_| ()).map_err(|error| error.to_string());
        assert!(answer.clone().is_err_and(|error| error.starts_with(refusal)), "{answer:?}");
    }

    fn network(tkc: &mut TanzuKubernetesCluster, network: Network) {
        tkc.spec.settings = Some(Settings { network: Some(network) });
    }

    #[test]
    fn a_refusal_names_the_field() {
        check(|tkc| tkc.spec.topology.control_plane.class.clear(), r#"spec.topology.controlPlane.class: "" is not"#);
        check(|tkc| tkc.spec.topology.workers.storage_class = "A".to_owned(), "spec.topology.workers.storageClass: ");
        for count in [0, 2, 4, 7] {
            let refusal = format!(
                "spec.topology.controlPlane.count: {count} machines are no control plane; accepted are 1, 3 and 5"
            );
            check(|tkc| tkc.spec.topology.control_plane.count = count, &refusal);
        }
        let pods = |text: &str| Some(CidrBlocks { cidr_blocks: vec![text.to_owned()] });
        for text in ["10.0.0.0", "10.0.0.0/33", "pods/8"] {
            check(
                |tkc| network(tkc, Network { pods: pods(text), ..Network::default() }),
                &format!("spec.settings.network.pods.cidrBlocks: {text:?} is no range of addresses"),
            );
        }
    }

    #[test]
    fn what_the_owner_left_out_has_a_default() {
        let target = Target::new(&cluster(), release()).unwrap();
        assert_eq!(target.network.pods, ["192.168.0.0/16"]);
        assert_eq!(target.network.services, ["10.96.0.0/12"]);
        assert_eq!(target.network.service_domain, "cluster.local");
        assert_eq!(target.pools[0].name.as_str(), "default");
    }

    #[test]
    fn only_the_chosen_network_add_on_is_part_of_the_target() {
        let mut tkc = cluster();
        let cni = windlass_api::kind::tanzu::Cni { name: "calico".to_owned() };
        network(&mut tkc, Network { cni: Some(cni), ..Network::default() });
        let target = Target::new(&tkc, release()).unwrap();
        let addons: Vec<&str> = target.release.addons.keys().map(AsRef::as_ref).collect();
        assert_eq!(addons, ["calico", "coredns", "kube-proxy"]);
    }

    #[test]
    fn the_end_of_an_update_leads_back_to_its_target() {
        let target = Target::new(&cluster(), release()).unwrap();
        let mut tkc = cluster();
        tkc.spec.topology.workers.count = 9;
        assert_eq!(Target::of_update(&tkc, &target.end(), release()), Ok(target));
    }
}
