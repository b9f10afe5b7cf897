//! What is awaited of a cluster that is being created, what has come, and when waiting will not help any more.
//!
//! A creation is over when everything has come. It is stalled when nothing has changed for as long as somebody has patience, or
//! when it goes on for three times that: something that only changes to and fro never ends by itself.

mod look;
mod part;

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use windlass_api::kind::cluster_api::{Cluster, Machine, MachineDeployment};
use windlass_api::kind::release::ClusterBootstrap;
use windlass_api::label;
use windlass_api::name::{ClusterName, Namespace};

pub use look::{Course, End, Look, Stall};

/// What was read of a cluster.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observed {
    /// The cluster; nothing if it is gone.
    pub cluster: Option<Cluster>,
    /// Its machines.
    pub machines: Vec<Machine>,
    /// Its pools.
    pub pools: Vec<MachineDeployment>,
    /// Whether its kubeconfig is there.
    pub kubeconfig: bool,
    /// The list of its packages.
    pub bootstrap: Option<ClusterBootstrap>,
    /// Whether it gets any.
    pub has_packages: bool,
}

/// Something that is awaited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Thing {
    /// Its API has answered once.
    Initialized,
    /// All machines of the control plane are ready.
    ControlPlane,
    /// There is a way into it.
    Kubeconfig,
    /// Every machine has become a node.
    Nodes,
    /// All machines of a pool are ready.
    Pool(String),
    /// It is known which packages it gets.
    Packages,
    /// A package is in, by its short name.
    Package(String),
}

/// Something that is awaited, and how it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Awaited {
    /// What.
    pub thing: Thing,
    /// Whether it has come.
    pub came: bool,
    /// How it is, in a few words.
    pub how: String,
}

impl fmt::Display for Thing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Initialized => f.write_str("initialised"),
            Self::ControlPlane => f.write_str("control plane"),
            Self::Kubeconfig => f.write_str("kubeconfig"),
            Self::Nodes => f.write_str("nodes"),
            Self::Pool(pool) => write!(f, "pool {pool}"),
            Self::Packages => f.write_str("packages"),
            Self::Package(package) => write!(f, "package {package}"),
        }
    }
}

impl fmt::Display for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.thing, self.how)
    }
}

impl Thing {
    /// What to look at when it does not come.
    pub fn way_on(&self, namespace: &Namespace, cluster: &ClusterName) -> String {
        let of_cluster = format!("-n {namespace} -l {}={cluster}", label::CLUSTER_NAME);
        match self {
            Self::Initialized | Self::ControlPlane | Self::Nodes => {
                format!("kubectl describe clusters,machines {of_cluster}")
            }
            Self::Kubeconfig => format!("kubectl get secrets {of_cluster}"),
            Self::Pool(pool) => {
                format!("kubectl describe machinedeployments {of_cluster},{}={pool}", label::TOPOLOGY_POOL)
            }
            Self::Packages | Self::Package(_) => format!("kubectl describe clusterbootstrap {cluster} -n {namespace}"),
        }
    }
}

/// Everything that is awaited of a cluster, in order.
pub fn awaited(observed: &Observed) -> Vec<Awaited> {
    let Some(cluster) = &observed.cluster else { return Vec::new() };
    let mut awaited = vec![
        part::initialized(cluster, &observed.machines),
        part::control_plane(cluster),
        part::kubeconfig(cluster, observed.kubeconfig),
        part::nodes(cluster, &observed.machines),
    ];
    awaited.extend(part::pools(cluster, &observed.pools));
    if observed.has_packages {
        awaited.extend(part::packages(cluster, observed.bootstrap.as_ref()));
    }
    awaited
}

/// A time as people write it: `31m`, `1h30m`.
fn brief(time: SignedDuration) -> String {
    let whole = SignedDuration::from_secs(time.as_secs());
    jiff::fmt::friendly::SpanPrinter::new().spacing(jiff::fmt::friendly::Spacing::None).duration_to_string(&whole)
}

/// How long it is since then; nothing if that is yet to be.
fn since(then: Timestamp, now: Timestamp) -> SignedDuration {
    now.duration_since(then).max(SignedDuration::ZERO)
}
