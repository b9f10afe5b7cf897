//! `windlass template`: manifests that create clusters, to be kept in files.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::PathBuf;

use windlass_api::annotation;
use windlass_api::name::{AddonName, ClusterClassName, ClusterName, MachineClassName, Namespace, StorageClassName};
use windlass_api::version::VersionPrefix;
use windlass_plan::target::CONTROL_PLANE_COUNTS;

use crate::error::{Exit, Explained, Failure, Kind};
use crate::output;

/// Write a manifest that creates something
#[derive(clap::Subcommand)]
pub enum Template {
    Cluster(Box<Cluster>),
}

impl Template {
    /// Writes it.
    pub fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Cluster(cluster) => cluster.run(),
        }
    }
}

/// Write a manifest that creates a cluster
///
/// Nothing is asked and nothing is created: the manifest is for a repository, for kubectl, or for windlass create cluster -f. With --of it
/// is a Cluster of that class, and without a `TanzuKubernetesCluster`. A file that is there is never overwritten.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  windlass template cluster my-tkc --release v1.17.4 --class best-effort-small --storage-class gc-storage-profile\n  windlass template cluster my-cluster --release v1.24.9+vmware.1-tkg.1 --of tkg-vsphere-default --worker-class tkg-worker --file clusters/my-cluster.yaml"
)]
pub struct Cluster {
    /// Its name
    name: ClusterName,
    /// The release, in full or the beginning of its version
    #[arg(long, visible_alias = "tkr", value_name = "RELEASE")]
    release: VersionPrefix,
    /// Its namespace
    #[arg(short, long, value_name = "NAME", default_value = "default")]
    namespace: Namespace,
    /// How many machines the control plane has: 1, 3 or 5
    #[arg(long, value_name = "N", default_value_t = 1)]
    control_plane: u32,
    /// How many workers
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=1000))]
    workers: u32,
    /// The class of all machines
    #[arg(long, value_name = "NAME", required_unless_present = "of", conflicts_with = "of")]
    class: Option<MachineClassName>,
    /// The storage class of their disks
    #[arg(long, value_name = "NAME", required_unless_present = "of", conflicts_with = "of")]
    storage_class: Option<StorageClassName>,
    /// The add-on that connects the pods [default: the one of the release]
    #[arg(long, value_name = "NAME", conflicts_with = "of")]
    cni: Option<AddonName>,
    /// The class of clusters that it is of
    #[arg(long, value_name = "CLUSTERCLASS", requires = "worker_class")]
    of: Option<ClusterClassName>,
    /// The class of its workers in that class of clusters
    #[arg(long, value_name = "NAME", requires = "of")]
    worker_class: Option<MachineClassName>,
    /// Write it into this file [default: standard output]
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

impl Cluster {
    fn run(self) -> Result<Exit, Failure> {
        if !CONTROL_PLANE_COUNTS.contains(&self.control_plane) {
            return Err(Error::ControlPlane { count: self.control_plane }.into());
        }
        let manifest = self.manifest();
        let Some(path) = &self.file else {
            output::data(&manifest)?;
            return Ok(Exit::Done);
        };
        let opened = OpenOptions::new().write(true).create_new(true).open(path);
        opened.and_then(|mut file| file.write_all(manifest.as_bytes())).map_err(|source| {
            let path = path.clone();
            if source.kind() == io::ErrorKind::AlreadyExists {
                Error::IsThere { path }
            } else {
                Error::File { path, source }
            }
        })?;
        output::data(&format!("{} creates the cluster {}", path.display(), self.name))?;
        Ok(Exit::Done)
    }

    /// The manifest, as a person would write it.
    fn manifest(&self) -> String {
        match &self.of {
            Some(class) => self.of_class(class),
            None => self.of_machines(),
        }
    }

    fn of_machines(&self) -> String {
        let Self { name, namespace, release, control_plane, workers, .. } = self;
        let class = self.class.as_ref().map(ToString::to_string).unwrap_or_default();
        let storage_class = self.storage_class.as_ref().map(ToString::to_string).unwrap_or_default();
        let machines = |count: &u32| {
            format!(
                "      count: {count}\n      class: {}\n      storageClass: {}\n",
                text(&class),
                text(&storage_class)
            )
        };
        let cni = self
            .cni
            .as_ref()
            .map(|cni| format!("  settings:\n    network:\n      cni:\n        name: {}\n", text(cni.as_str())));
        format!(
            "apiVersion: run.tanzu.vmware.com/v1alpha1\nkind: TanzuKubernetesCluster\nmetadata:\n  name: {}\n  namespace: {}\n\
             spec:\n  distribution:\n    version: {} # the release; what it comes to is written into fullVersion\n  topology:\n    \
             controlPlane:\n{}    workers:\n{}{}",
            text(name.as_str()),
            text(namespace.as_str()),
            text(release.as_str()),
            machines(control_plane),
            machines(workers),
            cni.unwrap_or_default(),
        )
    }

    fn of_class(&self, class: &ClusterClassName) -> String {
        let Self { name, namespace, release, control_plane, workers, .. } = self;
        let worker_class = self.worker_class.as_ref().map(ToString::to_string).unwrap_or_default();
        format!(
            "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata:\n  name: {}\n  namespace: {}\n  annotations:\n    \
             {}: \"\" # any release that fits\nspec:\n  topology:\n    classRef:\n      name: {}\n    version: {} # the release; \
             what it comes to is a label\n    controlPlane:\n      replicas: {control_plane}\n    workers:\n      \
             machineDeployments:\n      - class: {}\n        name: md-0\n        replicas: {workers}\n",
            text(name.as_str()),
            text(namespace.as_str()),
            annotation::RESOLVE_RELEASE,
            text(class.as_str()),
            text(release.as_str()),
            text(&worker_class),
        )
    }
}

/// A text that is read as one: names may consist of digits.
fn text(value: &str) -> String {
    let is_plain = value.starts_with(|first: char| first.is_ascii_alphabetic())
        && !["true", "false", "yes", "no", "on", "off", "null", "y", "n"].contains(&value);
    if is_plain { value.to_owned() } else { format!("\"{value}\"") }
}

/// It is not written.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(
        "--control-plane {count} cannot be: etcd needs an odd number of machines to lose one; accepted are 1, 3 and 5"
    )]
    ControlPlane { count: u32 },
    #[error("{} is there, and nothing is overwritten", .path.display())]
    IsThere { path: PathBuf },
    #[error("{} cannot be written", .path.display())]
    File { path: PathBuf, source: io::Error },
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::ControlPlane { .. } | Self::IsThere { .. } => Kind::User,
            Self::File { .. } => Kind::Environment,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::ControlPlane { .. } => "--control-plane 3".to_owned(),
            Self::IsThere { path } => format!("--file with another name, or rm {}", path.display()),
            Self::File { .. } => "--file in a folder that is there".to_owned(),
        })
    }
}
