//! What is known of the packages and the pods of a cluster: the reader behind `packages` and `verify`.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Node, Pod, Secret};
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::packaging::PackageInstall;
use windlass_api::kind::release::ClusterBootstrap;
use windlass_api::label;
use windlass_api::name::{ClusterName, ClusterSecret, Namespace, PackagePart};
use windlass_plan::bootstrap::{self, Listed, listed};
use windlass_plan::release::PackageSlot;
use windlass_plan::roster::{Facts, Install, Role, Seen, Wanted};

use crate::access::from_kubeconfig;
use crate::client::{self, Management};
use crate::error::{Explained, Failure, Kind};

/// Where a kubeconfig is in its Secret.
const KUBECONFIG_KEY: &str = "value";
/// What a node has booted.
const OPERATING_SYSTEM: &str = "kubernetes.io/os";

/// The management cluster.
pub async fn of_management(management: &Management) -> Result<Facts, Failure> {
    let client = &management.client;
    let clusters: Api<Cluster> = Api::all(client.clone());
    let selected = ListParams::default().labels(label::MANAGEMENT_CLUSTER.name);
    let itself = clusters.list(&selected).await.map_err(client::Error::while_trying("list the clusters"))?;
    let wanted = match itself.items.first() {
        Some(cluster) => {
            let namespace = cluster.namespace().unwrap_or_default();
            bootstrap_of(client, &namespace, &cluster.name_any()).await?.map(|packages| versions(&packages))
        }
        None => None,
    };
    let installs = installs(client).await.map_err(client::Error::while_trying("list the PackageInstalls"))?;
    // Those that are for other clusters are told of there.
    let installs = installs.iter().filter(|install| install.spec.cluster.is_none()).map(Install::of).collect();
    let (_, pods) = pods(client).await.map_err(client::Error::while_trying("list the pods"))?;
    Ok(Facts { role: Role::Management, wanted, installs, pods })
}

/// A workload cluster.
pub async fn of_cluster(management: &Management, name: &ClusterName) -> Result<Facts, Failure> {
    let namespace = &management.namespace;
    let found = management.api::<Cluster>().get_opt(name.as_str()).await;
    let found = found.map_err(client::Error::while_trying(&format!("read the cluster {name}")))?;
    if found.is_none() {
        return Err(client::Error::NoCluster { name: name.clone(), namespace: namespace.clone() }.into());
    }
    let listed = bootstrap_of(&management.client, namespace.as_str(), name.as_str()).await?;
    let workload = connect(management, name).await?;
    let mut all = kapp(management, name, listed.as_deref().unwrap_or_default()).await?;
    let unread = |error: kube::Error| unreached(management, name, said(&error));
    all.extend(installs(&workload).await.map_err(unread)?);
    let (role, pods) = pods(&workload).await.map_err(unread)?;
    let wanted = listed.map(|listed| versions(&listed));
    Ok(Facts { role, wanted, installs: all.iter().map(Install::of).collect(), pods })
}

fn versions(listed: &[Listed]) -> Vec<Wanted> {
    let wanted = |listed: &Listed| Wanted { package: listed.short().to_owned(), version: listed.version() };
    listed.iter().map(wanted).collect()
}

/// What the `ClusterBootstrap` of a cluster lists; nothing where there is none.
async fn bootstrap_of(client: &Client, namespace: &str, name: &str) -> Result<Option<Vec<Listed>>, Failure> {
    let api: Api<ClusterBootstrap> = Api::namespaced(client.clone(), namespace);
    let found = match api.get_opt(name).await {
        Err(error) if is_unknown_kind(&error) => None,
        found => found.map_err(client::Error::while_trying(&format!("read the ClusterBootstrap {name}")))?,
    };
    let listed = found.map(|found| listed(&found.spec.packages)).transpose();
    Ok(listed.map_err(|blocked| Error::Bootstrap { name: name.to_owned(), blocked: Box::new(blocked) })?)
}

/// kapp-controller is installed from here.
async fn kapp(
    management: &Management,
    name: &ClusterName,
    listed: &[Listed],
) -> Result<Vec<PackageInstall>, client::Error> {
    let Some(kapp) = listed.iter().find(|listed| listed.slot == PackageSlot::Kapp) else { return Ok(Vec::new()) };
    let install = kapp.child(name, PackagePart::Install);
    let found = management.api::<PackageInstall>().get_opt(install.as_str()).await;
    let found = found.map_err(client::Error::while_trying(&format!("read the PackageInstall {install}")))?;
    Ok(found.into_iter().collect())
}

async fn connect(management: &Management, name: &ClusterName) -> Result<Client, Failure> {
    let secret = ClusterSecret::Kubeconfig.object_name(name);
    let found = management.api::<Secret>().get_opt(secret.as_str()).await;
    let found = found.map_err(client::Error::while_trying(&format!("read the Secret {secret}")))?;
    let data = found.and_then(|found| found.data).unwrap_or_default();
    let none = || unreached(management, name, format!("there is no Secret {secret} with its kubeconfig yet"));
    let kubeconfig = data.get(KUBECONFIG_KEY).ok_or_else(none)?;
    Ok(from_kubeconfig(&kubeconfig.0).await.map_err(|why| unreached(management, name, why))?)
}

fn unreached(management: &Management, name: &ClusterName, why: String) -> Error {
    Error::Unreached { name: name.clone(), namespace: management.namespace.clone(), why }
}

/// What an API said, without what it was packed in.
fn said(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

/// Every `PackageInstall`; none where there is no such kind.
async fn installs(client: &Client) -> Result<Vec<PackageInstall>, kube::Error> {
    let api: Api<PackageInstall> = Api::all(client.clone());
    match api.list(&ListParams::default()).await {
        Err(error) if is_unknown_kind(&error) => Ok(Vec::new()),
        listed => Ok(listed?.items),
    }
}

fn is_unknown_kind(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// The pods of a cluster, and what its nodes make of it.
async fn pods(client: &Client) -> Result<(Role, Vec<Seen>), kube::Error> {
    let nodes = Api::<Node>::all(client.clone()).list(&ListParams::default()).await?.items;
    let of_windows = |node: &Node| node.labels().get(OPERATING_SYSTEM).is_some_and(|system| system == "windows");
    let role = if nodes.iter().any(of_windows) { Role::Windows } else { Role::Workload };
    let is_control_plane =
        |node: &&Node| label::NODE_CONTROL_PLANE.is_in(node.labels()) || label::NODE_MASTER.is_in(node.labels());
    let control_plane: BTreeSet<String> = nodes.iter().filter(is_control_plane).map(Node::name_any).collect();
    let pods = Api::<Pod>::all(client.clone()).list(&ListParams::default()).await?;
    Ok((role, pods.items.iter().map(|pod| seen(pod, &control_plane)).collect()))
}

fn seen(pod: &Pod, control_plane: &BTreeSet<String>) -> Seen {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref());
    Seen {
        namespace: pod.namespace().unwrap_or_default(),
        name: pod.name_any(),
        ready: conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True"),
        control_plane: node.is_some_and(|node| control_plane.contains(node)),
    }
}

/// What is in a cluster cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the cluster {name} cannot be looked into: {why}")]
    Unreached { name: ClusterName, namespace: Namespace, why: String },
    #[error("the ClusterBootstrap {name} cannot be read: {blocked}")]
    Bootstrap { name: String, blocked: Box<bootstrap::Blocked> },
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Unreached { .. } => Kind::Environment,
            Self::Bootstrap { .. } => Kind::User,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Unreached { name, namespace, .. } => {
                format!("kubectl describe cluster {name} -n {namespace}, which says how far it is")
            }
            Self::Bootstrap { name, blocked } => format!("{}: kubectl edit clusterbootstrap {name}", blocked.way_out()),
        })
    }
}
