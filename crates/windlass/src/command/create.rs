//! `windlass create cluster`: a cluster with as few words as possible.

use k8s_openapi::api::storage::v1::StorageClass;
use kube::ResourceExt;
use kube::api::PostParams;
use windlass_api::kind::tanzu::{Distribution, Machines, TanzuKubernetesCluster, TanzuKubernetesClusterSpec, Topology};
use windlass_api::kind::virtual_machine::VirtualMachineClass;
use windlass_api::name::{ClusterName, MachineClassName, StorageClassName};
use windlass_api::version::VersionPrefix;

use crate::client::{self, Connection, FIELD_MANAGER, Management};
use crate::error::{Exit, Explained, Failure, Kind};
use crate::output::{self, Format};
use crate::release;
use crate::wait::Patience;

/// Create a cluster
#[derive(clap::Subcommand)]
pub enum Create {
    Cluster(Cluster),
}

impl Create {
    /// Creates it.
    pub async fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Cluster(cluster) => cluster.run().await,
        }
    }
}

/// Create a workload cluster
///
/// What is left out is chosen, and said: the newest release, the smallest machine class, the default storage class.
#[derive(clap::Args)]
pub struct Cluster {
    /// Its name
    name: ClusterName,
    /// The release, or the beginning of its version [default: the newest]
    #[arg(long, value_name = "RELEASE")]
    release: Option<VersionPrefix>,
    /// How many machines the control plane has: an odd number
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=9))]
    control_plane: u32,
    /// How many workers
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=1000))]
    workers: u32,
    /// The class of all machines [default: the smallest]
    #[arg(long, value_name = "NAME")]
    class: Option<MachineClassName>,
    /// The storage class of their disks [default: the default one]
    #[arg(long, value_name = "NAME")]
    storage_class: Option<StorageClassName>,
    /// Show what would be created: as it is sent, or as the server would store it
    #[arg(long, value_name = "WHERE", conflicts_with = "wait")]
    dry_run: Option<DryRun>,
    /// Write the cluster as a document instead, for scripts
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Format>,
    #[command(flatten)]
    patience: Patience,
    #[command(flatten)]
    connection: Connection,
}

/// Who pretends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum DryRun {
    Client,
    Server,
}

impl Cluster {
    async fn run(self) -> Result<Exit, Failure> {
        if self.control_plane.is_multiple_of(2) {
            return Err(Error::EvenControlPlane { count: self.control_plane }.into());
        }
        let management = self.connection.open().await?;
        let asked = self.cluster(&management).await?;
        if self.dry_run == Some(DryRun::Client) {
            return self.tell(&asked, "created (dry run)");
        }
        let dry_run = self.dry_run == Some(DryRun::Server);
        let parameters = PostParams { dry_run, field_manager: Some(FIELD_MANAGER.to_owned()) };
        let created = management.api::<TanzuKubernetesCluster>().create(&parameters, &asked).await;
        let created = created.map_err(client::Error::while_trying(&format!("create the cluster {}", self.name)))?;
        management.warnings().iter().for_each(|warning| output::warning(warning));
        if dry_run {
            return self.tell(&created, "created (server dry run)");
        }
        let generation = created.metadata.generation.unwrap_or_default();
        if let Some(running) = self.patience.wait(&management, &self.name, generation).await? {
            return self.tell(&running, "created, and running");
        }
        output::note(&format!("Next: windlass status {} --watch", self.name));
        self.tell(&created, "created")
    }

    fn tell(&self, cluster: &TanzuKubernetesCluster, what: &str) -> Result<Exit, Failure> {
        if let Some(format) = self.output {
            let mut cluster = cluster.clone();
            cluster.metadata.managed_fields = None;
            output::document(format, &cluster)?;
            return Ok(Exit::Done);
        }
        let distribution = &cluster.spec.distribution;
        let release = distribution.full_version.as_ref().or(distribution.version.as_ref());
        output::data(&format!("cluster {} {what}: release {}", self.name, output::cell(release)))?;
        Ok(Exit::Done)
    }

    /// The cluster that is asked for, with what was left out filled in.
    async fn cluster(&self, management: &Management) -> Result<TanzuKubernetesCluster, Failure> {
        let mut chosen = Vec::new();
        let version = if let Some(hint) = &self.release {
            hint.to_string()
        } else {
            let releases = release::all(management).await?;
            let newest = release::newest(&releases)?.distribution.to_string();
            chosen.push(format!("--release {newest} (the newest)"));
            newest
        };
        let class = if let Some(class) = &self.class {
            class.to_string()
        } else {
            let class = smallest(&management.all("machine classes").await?)?;
            chosen.push(format!("--class {class} (the smallest)"));
            class
        };
        let storage_class = if let Some(storage_class) = &self.storage_class {
            storage_class.to_string()
        } else {
            let (storage_class, why) = usual(&management.all("storage classes").await?)?;
            chosen.push(format!("--storage-class {storage_class} ({why})"));
            storage_class
        };
        if !chosen.is_empty() {
            output::say(&format!("Chosen: {}", chosen.join(", ")));
        }
        let machines = |count| Machines { count, class: class.clone(), storage_class: storage_class.clone() };
        let spec = TanzuKubernetesClusterSpec {
            topology: Topology { control_plane: machines(self.control_plane), workers: machines(self.workers) },
            distribution: Distribution { version: Some(version), full_version: None },
            settings: None,
        };
        let mut cluster = TanzuKubernetesCluster::new(self.name.as_str(), spec);
        cluster.metadata.namespace = Some(management.namespace.to_string());
        Ok(cluster)
    }
}

/// The class with the fewest processors; of several, the first by name.
fn smallest(classes: &[VirtualMachineClass]) -> Result<String, Error> {
    let size = |class: &VirtualMachineClass| class.spec.hardware.as_ref().map_or(u32::MAX, |hardware| hardware.cpus);
    let smallest = classes.iter().min_by_key(|class| (size(class), class.name_any()));
    smallest.map(ResourceExt::name_any).ok_or(Error::NoClasses)
}

/// The storage class that is marked as the default one, or the only one there is; and why.
fn usual(classes: &[StorageClass]) -> Result<(String, &'static str), Error> {
    let is_default =
        |class: &&StorageClass| class.annotations().get(DEFAULT_CLASS).is_some_and(|value| value == "true");
    if let Some(class) = classes.iter().find(is_default) {
        return Ok((class.name_any(), "the default"));
    }
    match classes {
        [] => Err(Error::NoStorageClasses),
        [only] => Ok((only.name_any(), "the only one")),
        many => Err(Error::NoDefaultStorageClass {
            known: many.iter().map(ResourceExt::name_any).collect::<Vec<_>>().join(", "),
        }),
    }
}

/// How Kubernetes marks the default storage class.
const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";

/// What was left out could not be chosen, or what was given cannot be.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(
        "--control-plane {count} cannot be: etcd needs an odd number of machines to lose one; accepted are 1, 3, 5, 7 and 9"
    )]
    EvenControlPlane { count: u32 },
    #[error("--class cannot be chosen: there are no VirtualMachineClasses")]
    NoClasses,
    #[error("--storage-class cannot be chosen: there are no StorageClasses")]
    NoStorageClasses,
    #[error("--storage-class cannot be chosen: none is the default; there are {known}")]
    NoDefaultStorageClass { known: String },
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::EvenControlPlane { .. } | Self::NoDefaultStorageClass { .. } => Kind::User,
            Self::NoClasses | Self::NoStorageClasses => Kind::Environment,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::EvenControlPlane { count } => format!("--control-plane {}", count + 1),
            Self::NoClasses => "kubectl get virtualmachineclasses".to_owned(),
            Self::NoStorageClasses => "kubectl get storageclasses".to_owned(),
            Self::NoDefaultStorageClass { .. } => "--storage-class NAME, with one of them".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_smallest_class_is_chosen_and_of_equals_the_first_by_name() {
        let class = |name: &str, cpus: u32| -> VirtualMachineClass {
            let class = json!({
                "apiVersion": "vmoperator.vmware.com/v1alpha1", "kind": "VirtualMachineClass",
                "metadata": {"name": name}, "spec": {"hardware": {"cpus": cpus, "memory": "4Gi"}},
            });
            serde_json::from_value(class).unwrap()
        };
        let classes = [class("guaranteed-small", 2), class("best-effort-large", 4), class("best-effort-small", 2)];
        assert_eq!(smallest(&classes).unwrap(), "best-effort-small");
        assert!(matches!(smallest(&[]), Err(Error::NoClasses)));
    }

    #[test]
    fn a_storage_class_is_chosen_only_where_there_is_no_choice() {
        let class = |name: &str, default: bool| -> StorageClass {
            let annotations = if default { json!({DEFAULT_CLASS: "true"}) } else { json!({}) };
            let metadata = json!({"name": name, "annotations": annotations});
            serde_json::from_value(json!({"metadata": metadata, "provisioner": "example.com/none"})).unwrap()
        };
        assert_eq!(usual(&[class("slow", false)]).unwrap(), ("slow".to_owned(), "the only one"));
        assert_eq!(usual(&[class("slow", false), class("fast", true)]).unwrap(), ("fast".to_owned(), "the default"));
        let refusal = usual(&[class("slow", false), class("fast", false)]).unwrap_err();
        assert_eq!(refusal.to_string(), "--storage-class cannot be chosen: none is the default; there are slow, fast");
    }
}
