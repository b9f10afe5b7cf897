//! `windlass create cluster`: a cluster with as few words as possible, or as a file has it.
//!
//! A file is a cluster that is one object, a cluster of a class with what belongs to it, or a flat configuration, which is made
//! one of a class ([`class`]).

mod class;
mod error;
mod file;
mod follow;
mod write;

use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use kube::api::PostParams;
use windlass_api::kind::tanzu::{
    Cni, Distribution, Machines, Network, Settings, TanzuKubernetesCluster, TanzuKubernetesClusterSpec, Topology,
};
use windlass_api::kind::virtual_machine::VirtualMachineClass;
use windlass_api::name::{AddonName, ClusterName, MachineClassName, StorageClassName};
use windlass_api::version::VersionPrefix;
use windlass_plan::target::CONTROL_PLANE_COUNTS;

use crate::changed::Changed;
use crate::client::{self, Connection, FIELD_MANAGER, Management};
use crate::error::{Exit, Failure};
use crate::output;
use crate::release;
use crate::wait::{Patience, duration};
use class::Order;
use error::Error;
use file::{Content, File};

/// How long somebody waits who does not say how long.
const PATIENCE: Duration = Duration::from_secs(30 * 60);

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
///
/// With -f it is what the file says: such a cluster in full, a Cluster of a class with what belongs to it, or a flat configuration of
/// the past. The latter two are verified first, and waited for. A flat configuration is converted to a Cluster, which is kept
/// beside it as NAME.cluster.yaml.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  windlass create cluster my-tkc --release v1.16 --control-plane 3 --wait\n  windlass create cluster my-tkc --cni antrea --dry-run=server -o yaml > my-tkc.yaml\n  windlass create cluster -f my-tkc.yaml\n  windlass create cluster my-cluster -f my-cluster.yaml --tkr v1.24.9---vmware.1-tkg.1"
)]
pub struct Cluster {
    /// Its name
    #[arg(required_unless_present = "file")]
    name: Option<ClusterName>,
    /// What it is, in a file; - for standard input
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["control_plane", "workers", "class", "storage_class", "cni"])]
    file: Option<PathBuf>,
    /// The release, or the beginning of its version [default: the newest; with -f what the file says]
    #[arg(long, visible_alias = "tkr", value_name = "RELEASE")]
    release: Option<VersionPrefix>,
    /// How many machines the control plane has: 1, 3 or 5
    #[arg(long, value_name = "N", default_value_t = 1)]
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
    /// The add-on that connects the pods, of those that the release has [default: the one of the release]
    #[arg(long, value_name = "NAME")]
    cni: Option<AddonName>,
    /// Show what would be created: as it is sent, or as the server would store it
    #[arg(long, value_name = "WHERE", conflicts_with = "wait", num_args = 0..=1, require_equals = true, default_missing_value = "server")]
    dry_run: Option<DryRun>,
    /// Write the cluster as a document instead, for scripts, or its name
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Changed>,
    /// Wait until the cluster runs as asked for. One of a class is waited for anyway
    #[arg(long)]
    wait: bool,
    /// Do not wait for a cluster of a class
    #[arg(long, conflicts_with = "wait")]
    no_wait: bool,
    /// Give up waiting after this long [default: 30m]; the work goes on. For a cluster of a class: when nothing has changed for so
    /// long, or after three times that in all
    #[arg(long, value_name = "TIME", value_parser = duration)]
    timeout: Option<Duration>,
    #[command(flatten)]
    connection: Connection,
}

/// Who pretends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum DryRun {
    Client,
    Server,
}

impl Cluster {
    async fn run(self) -> Result<Exit, Failure> {
        let management = self.connection.open().await?;
        match (&self.file, &self.name) {
            (Some(path), _) => self.create_from(&management, &File::read(path)?).await,
            (None, Some(name)) => self.create(&management, self.cluster(&management, name).await?).await,
            (None, None) => Err(Error::NoName.into()),
        }
    }

    /// Creates what a file asks for.
    async fn create_from(&self, management: &Management, file: &File) -> Result<Exit, Failure> {
        let order = Order {
            management,
            file,
            name: self.name.as_ref(),
            release: self.release.as_ref(),
            dry_run: self.dry_run,
            wait: !self.no_wait,
            patience: self.timeout.unwrap_or(PATIENCE),
            output: self.output,
        };
        match file.content()? {
            Content::Flat(configuration) => order.convert(&configuration).await,
            Content::Manifest(documents) => order.create(documents).await,
            Content::Tanzu => {
                if self.release.is_some() {
                    return Err(Error::Fixed { option: "--release", file: file.shown() }.into());
                }
                self.create(management, read(file, self.name.as_ref(), management)?).await
            }
        }
    }

    /// Creates a cluster that is one object.
    async fn create(&self, management: &Management, asked: TanzuKubernetesCluster) -> Result<Exit, Failure> {
        let name: ClusterName = asked.name_any().parse().map_err(Error::Name)?;
        if self.timeout.is_some() && !self.wait {
            return Err(Error::NobodyWaits.into());
        }
        if self.dry_run == Some(DryRun::Client) {
            return self.tell(&asked, "created (dry run)");
        }
        let dry_run = self.dry_run == Some(DryRun::Server);
        let parameters = PostParams { dry_run, field_manager: Some(FIELD_MANAGER.to_owned()) };
        let created = management.api::<TanzuKubernetesCluster>().create(&parameters, &asked).await;
        let created = created.map_err(client::Error::while_trying(&format!("create the cluster {name}")))?;
        management.warnings().iter().for_each(|warning| output::warning(warning));
        if dry_run {
            return self.tell(&created, "created (server dry run)");
        }
        let generation = created.metadata.generation.unwrap_or_default();
        let patience = Patience::new(self.wait, self.timeout.unwrap_or(PATIENCE));
        if let Some(running) = patience.wait(management, &name, generation).await? {
            return self.tell(&running, "created, and running");
        }
        output::note(&format!("Next: windlass status {name} --watch"));
        self.tell(&created, "created")
    }

    fn tell(&self, cluster: &TanzuKubernetesCluster, what: &str) -> Result<Exit, Failure> {
        let name = cluster.name_any();
        if let Some(format) = self.output {
            let mut cluster = cluster.clone();
            cluster.metadata.managed_fields = None;
            format.object(&format!("tanzukubernetescluster.run.tanzu.vmware.com/{name}"), &cluster)?;
            return Ok(Exit::Done);
        }
        let distribution = &cluster.spec.distribution;
        let release = distribution.full_version.as_ref().or(distribution.version.as_ref());
        output::data(&format!("cluster {name} {what}: release {}", output::cell(release)))?;
        Ok(Exit::Done)
    }

    /// The cluster that is asked for, with what was left out filled in.
    async fn cluster(&self, management: &Management, name: &ClusterName) -> Result<TanzuKubernetesCluster, Failure> {
        if !CONTROL_PLANE_COUNTS.contains(&self.control_plane) {
            return Err(Error::ControlPlane { count: self.control_plane }.into());
        }
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
            settings: self.cni.as_ref().map(|cni| Settings {
                network: Some(Network { cni: Some(Cni { name: cni.to_string() }), ..Network::default() }),
            }),
        };
        let mut cluster = TanzuKubernetesCluster::new(name.as_str(), spec);
        cluster.metadata.namespace = Some(management.namespace.to_string());
        Ok(cluster)
    }
}

/// The cluster that a document asks for, in the namespace that the command is for.
fn read(file: &File, name: Option<&ClusterName>, management: &Management) -> Result<TanzuKubernetesCluster, Error> {
    let shown = file.shown();
    let read: Result<TanzuKubernetesCluster, _> = serde_saphyr::from_str(&file.text);
    let mut cluster = read.map_err(|error| file.unreadable(&error))?;
    let inside = cluster.name_any();
    if let Some(given) = name.filter(|given| given.as_str() != inside) {
        return Err(Error::OtherName { file: shown, inside, given: given.clone() });
    }
    let namespace = cluster.metadata.namespace.get_or_insert_with(|| management.namespace.to_string());
    if namespace != management.namespace.as_str() {
        return Err(Error::OtherNamespace { file: shown, namespace: namespace.clone() });
    }
    // What a server has written does not describe a cluster that is yet to be.
    cluster.status = None;
    let ObjectMeta { name, namespace, labels, annotations, .. } = cluster.metadata;
    cluster.metadata = ObjectMeta { name, namespace, labels, annotations, ..ObjectMeta::default() };
    Ok(cluster)
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
