//! kube-proxy and `CoreDNS`, which follow once all machines are as they should be: Cluster API changes them last, unless it is told
//! to leave them alone.

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::PodSpec;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_api::annotation;
use windlass_api::version::KubernetesVersion;

use super::view::View;
use crate::management::context::{Error, Turn, workload_name};

const NAMESPACE: &str = "kube-system";
const KUBE_PROXY: &str = "kube-proxy";
const COREDNS: &str = "coredns";

/// Brings both up to the version of the control plane, once for each change of it.
pub(super) async fn follow(turn: &Turn, view: &View<'_>) -> Result<(), Error> {
    let meta = &view.object.metadata;
    let uid = meta.uid.as_deref().unwrap_or_default();
    if turn.wire.has_followed(uid, meta.generation) {
        return Ok(());
    }
    let Some(workload) = turn.workloads.get(&workload_name(view.cluster)?) else { return Ok(()) };
    let annotations = meta.annotations.clone().unwrap_or_default();
    let given = &view.wish["clusterConfiguration"];
    let cluster = workload.name().to_string();
    if !annotation::SKIP_KUBE_PROXY.is_in(&annotations)
        && let Ok(version) = view.object.spec.version.parse::<KubernetesVersion>()
    {
        let repository = given["imageRepository"].as_str();
        let image = |known: &str| renamed(known, KUBE_PROXY, repository, &version.tag().to_string());
        set_image::<DaemonSet>(&workload.client(), &cluster, KUBE_PROXY, image).await?;
    }
    // Without a tag in the configuration `CoreDNS` stays what kubeadm made it.
    if !annotation::SKIP_COREDNS.is_in(&annotations)
        && let Some(tag) = given["dns"]["imageTag"].as_str()
    {
        let repository = given["dns"]["imageRepository"].as_str().or(given["imageRepository"].as_str());
        let image = |known: &str| renamed(known, COREDNS, repository, tag);
        set_image::<Deployment>(&workload.client(), &cluster, COREDNS, image).await?;
    }
    turn.wire.followed(uid, meta.generation);
    Ok(())
}

/// The image of another tag, in the repository where it is unless another is asked for.
fn renamed(known: &str, name: &str, repository: Option<&str>, tag: &str) -> String {
    let before = known.rsplit_once(':').map_or(known, |(image, _)| image);
    match repository {
        Some(repository) => format!("{repository}/{name}:{tag}"),
        None => format!("{before}:{tag}"),
    }
}

/// What has a template of pods.
trait Workload:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Serialize + std::fmt::Debug
{
    fn pods(&self) -> Option<&PodSpec>;
}

impl Workload for DaemonSet {
    fn pods(&self) -> Option<&PodSpec> {
        self.spec.as_ref()?.template.spec.as_ref()
    }
}

impl Workload for Deployment {
    fn pods(&self) -> Option<&PodSpec> {
        self.spec.as_ref()?.template.spec.as_ref()
    }
}

/// Gives the container of this name another image, if it is there and has another one.
async fn set_image<K: Workload>(
    client: &Client,
    cluster: &str,
    name: &str,
    image: impl Fn(&str) -> String,
) -> Result<(), Error> {
    let failed = |verb: &'static str, source: kube::Error| Error::Api {
        verb,
        object: format!("{} {name} of {cluster}", K::kind(&())),
        source: Box::new(source),
    };
    let api: Api<K> = Api::namespaced(client.clone(), NAMESPACE);
    let Some(object) = api.get_opt(name).await.map_err(|source| failed("read", source))? else { return Ok(()) };
    let containers = object.pods().map(|pods| pods.containers.as_slice()).unwrap_or_default();
    let Some(known) = containers.iter().find(|container| container.name == name).and_then(|found| found.image.as_ref())
    else {
        return Ok(());
    };
    let wanted = image(known);
    if *known == wanted {
        return Ok(());
    }
    let containers: Value = json!([{"name": name, "image": wanted}]);
    let change = json!({"spec": {"template": {"spec": {"containers": containers}}}});
    let written = api.patch(name, &PatchParams::default(), &Patch::Strategic(change)).await;
    written.map(drop).map_err(|source| failed("change", source))
}
