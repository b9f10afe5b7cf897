//! Reads what is verified of the management side before a cluster is created. What cannot be read is a gap, and no failure.

use k8s_openapi::api::core::v1::{ConfigMap, Node, Secret};
use kube::api::{Api, ListParams};
use kube::{Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::packaging::Package;
use windlass_api::kind::release::{ClusterBootstrapTemplate, OSImage, TanzuKubernetesRelease};
use windlass_api::label;
use windlass_plan::bootstrap::SYSTEM_NAMESPACE;
use windlass_plan::creation::{Facts, Gap, NodeFact, Proxy, ProxyFacts, ReleaseFact, Wanted, release_facts};

use crate::client::Management;

/// Where people who are nobody yet may read.
const PUBLIC_NAMESPACE: &str = "kube-public";
/// How to authenticate, where there is a provider of identities.
const AUTHENTICATION: &str = "pinniped-info";
/// What programs are told of proxies: each may be a `ConfigMap` or a Secret.
const TOLD: [&str; 2] = ["kapp-controller-config", "tkr-controller-config"];

/// Reads all of it.
pub async fn read(management: &Management, wanted: Option<Wanted>) -> Facts {
    let client = &management.client;
    let server = client.apiserver_version().await.map(|version| version.git_version);
    let own = own(client).await;
    Facts {
        server: server.map_err(brief),
        nodes: all::<Node>(client, None).await.map(|nodes| nodes.iter().map(node).collect()),
        releases: releases(client).await,
        proxies: proxies(client, own.as_ref().ok().and_then(Option::as_ref)).await,
        authentication: authentication(client).await,
        management: own,
        wanted,
    }
}

/// Why something could not be read, in one sentence.
fn brief(error: kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message,
        other => other.to_string(),
    }
}

async fn all<K>(client: &Client, labelled: Option<&str>) -> Gap<Vec<K>>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let parameters = labelled.map_or_else(ListParams::default, |label| ListParams::default().labels(label));
    Api::<K>::all(client.clone()).list(&parameters).await.map(|list| list.items).map_err(brief)
}

/// The Cluster that is the management cluster itself.
async fn own(client: &Client) -> Gap<Option<Cluster>> {
    let labelled: Vec<Cluster> = all(client, Some(label::MANAGEMENT_CLUSTER.name)).await?;
    Ok(labelled.into_iter().next())
}

fn node(node: &Node) -> NodeFact {
    let status = node.status.clone().unwrap_or_default();
    let ready = status.conditions.iter().flatten().any(|it| it.type_ == "Ready" && it.status == "True");
    let labels = node.labels();
    NodeFact {
        name: node.name_any(),
        ready,
        control_plane: label::NODE_CONTROL_PLANE.is_in(labels) || label::NODE_MASTER.is_in(labels),
        kubelet: status.node_info.map(|info| info.kubelet_version).unwrap_or_default(),
        zone: labels.get(label::ZONE.name).cloned(),
    }
}

async fn releases(client: &Client) -> Gap<Vec<ReleaseFact>> {
    let releases: Vec<TanzuKubernetesRelease> = all(client, None).await?;
    let os_images: Vec<OSImage> = all(client, None).await?;
    let templates: Vec<ClusterBootstrapTemplate> = all(client, None).await?;
    let packages: Vec<Package> = all(client, None).await?;
    let system = |namespace: Option<String>| namespace.as_deref() == Some(SYSTEM_NAMESPACE);
    let templates: Vec<_> = templates.into_iter().filter(|it| system(it.namespace())).collect();
    let packages: Vec<_> = packages.into_iter().filter(|it| system(it.namespace())).collect();
    Ok(release_facts(&releases, &os_images, &templates, &packages))
}

async fn proxies(client: &Client, own: Option<&Cluster>) -> Gap<ProxyFacts> {
    let mut told = Vec::new();
    for name in TOLD {
        let map = Api::<ConfigMap>::namespaced(client.clone(), SYSTEM_NAMESPACE).get_opt(name).await.map_err(brief)?;
        if let Some(data) = map.map(|map| map.data.unwrap_or_default()) {
            told.push((format!("ConfigMap/{name}"), Proxy::of_config(|key| data.get(key).cloned())));
        }
        let secret = Api::<Secret>::namespaced(client.clone(), SYSTEM_NAMESPACE).get_opt(name).await.map_err(brief)?;
        if let Some(data) = secret.map(|secret| secret.data.unwrap_or_default()) {
            let text = |key: &str| data.get(key).and_then(|bytes| String::from_utf8(bytes.0.clone()).ok());
            told.push((format!("Secret/{name}"), Proxy::of_config(text)));
        }
    }
    Ok(ProxyFacts { management: own.map(Proxy::of_cluster).unwrap_or_default(), told })
}

async fn authentication(client: &Client) -> Gap<bool> {
    let found = Api::<ConfigMap>::namespaced(client.clone(), PUBLIC_NAMESPACE).get_opt(AUTHENTICATION).await;
    found.map(|found| found.is_some()).map_err(brief)
}
