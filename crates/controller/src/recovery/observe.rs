//! Reads what is there: the Secrets of a cluster, and what its machines were given.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::api::ListParams;
use kube::{Api, Client};
use serde::Deserialize;
use windlass_api::kind::cluster_api::{Cluster, Machine};
use windlass_api::label;
use windlass_api::name::{ClusterName, ClusterSecret, MachineName, Namespace};

use super::Error;
use super::bootstrap::{self, Half, Pem};
use super::pair::{self, PublicDigest};
use super::plan::{self, Custody, Found, Live, Source};

/// Where Cluster API keeps what a machine boots with, and what that is for.
const DATA: &str = "value";
const FORMAT: &str = "format";
/// What a kubeconfig is kept under.
const KUBECONFIG: &str = "value";

/// Reads all of it.
pub(super) async fn find(client: &Client, namespace: &Namespace, cluster: &Cluster) -> Result<Found, Error> {
    let name = super::name_of(cluster)?;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace.as_str());
    let mut found = Found::default();
    for secret in ClusterSecret::CERTIFICATES {
        let object = read(&secrets, secret.object_name(&name).as_str()).await?;
        found.secrets.insert(secret, object.map_or(Live::Absent, |object| live(secret, &object, cluster)));
    }
    if let Some(kubeconfig) = read(&secrets, ClusterSecret::Kubeconfig.object_name(&name).as_str()).await? {
        found.trusted = authorities(&kubeconfig).into_iter().collect();
    }
    for machine in machines(client, namespace, &name).await? {
        let offers = match &machine.spec.bootstrap.data_secret_name {
            Some(data) => offered(read(&secrets, data).await?.as_ref(), data),
            None => Err("it was given nothing yet".to_owned()),
        };
        let machine: MachineName = machine.metadata.name.unwrap_or_default().parse().map_err(Error::Name)?;
        found.sources.push(Source { machine, offers });
    }
    Ok(found)
}

async fn read(api: &Api<Secret>, name: &str) -> Result<Option<Secret>, Error> {
    api.get_opt(name).await.map_err(Error::api("read", format!("Secret/{name}")))
}

/// The machines of the control plane, newest first.
async fn machines(client: &Client, namespace: &Namespace, name: &ClusterName) -> Result<Vec<Machine>, Error> {
    let api: Api<Machine> = Api::namespaced(client.clone(), namespace.as_str());
    let selector = format!("{}={name},{}", label::CLUSTER_NAME, label::CONTROL_PLANE);
    let listed = api.list(&ListParams::default().labels(&selector)).await;
    let mut machines = listed.map_err(Error::api("list", format!("the machines of {name}")))?.items;
    let age = |machine: &Machine| machine.metadata.creation_timestamp.as_ref().map(|Time(time)| *time);
    machines.sort_by(|a, b| age(b).cmp(&age(a)).then_with(|| a.metadata.name.cmp(&b.metadata.name)));
    Ok(machines)
}

/// A Secret that is there.
pub(super) fn live(secret: ClusterSecret, object: &Secret, cluster: &Cluster) -> Live {
    if object.metadata.deletion_timestamp.is_some() {
        return Live::Leaving;
    }
    let half = |half: Half| Pem::new(field(object, half.key()).unwrap_or_default());
    let pair = pair::verify(secret, &half(Half::Public), &half(Half::Private));
    Live::There { pair, custody: custody(&object.metadata, cluster) }
}

fn custody(secret: &ObjectMeta, cluster: &Cluster) -> Custody {
    let owners = secret.owner_references.as_deref().unwrap_or_default();
    if owners.is_empty() {
        Custody::Nobody
    } else if owners.iter().any(|owner| Some(&owner.uid) == cluster.metadata.uid.as_ref()) {
        Custody::Cluster
    } else {
        Custody::Others
    }
}

/// What a machine was given.
fn offered(data: Option<&Secret>, name: &str) -> Result<BTreeMap<ClusterSecret, plan::Offer>, String> {
    let data = data.ok_or_else(|| format!("the Secret {name}, which it booted with, is gone"))?;
    match field(data, FORMAT) {
        None | Some(b"cloud-config") => {}
        Some(_) => return Err(format!("the Secret {name}, which it booted with, is no cloud-config")),
    }
    let text = field(data, DATA).and_then(|bytes| std::str::from_utf8(bytes).ok());
    let text = text.ok_or_else(|| format!("the Secret {name}, which it booted with, has no text under {DATA:?}"))?;
    let files = bootstrap::files(text).map_err(|why| format!("the Secret {name}, which it booted with: {why}"))?;
    Ok(plan::offers(files))
}

fn field<'a>(secret: &'a Secret, key: &str) -> Option<&'a [u8]> {
    secret.data.as_ref()?.get(key).map(|bytes| bytes.0.as_slice())
}

#[derive(Deserialize)]
struct Kubeconfig {
    #[serde(default)]
    clusters: Vec<NamedCluster>,
}

#[derive(Deserialize)]
struct NamedCluster {
    cluster: Trust,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Trust {
    #[serde(default)]
    certificate_authority_data: String,
}

/// The authorities that a kubeconfig trusts. One that cannot be read trusts nobody, and says nothing against anybody.
fn authorities(kubeconfig: &Secret) -> Vec<PublicDigest> {
    let text = field(kubeconfig, KUBECONFIG).and_then(|bytes| std::str::from_utf8(bytes).ok());
    let parsed = text.and_then(|text| serde_saphyr::from_str::<Kubeconfig>(text).ok());
    let clusters = parsed.map(|kubeconfig| kubeconfig.clusters).unwrap_or_default();
    let trusted = |named: &NamedCluster| STANDARD.decode(named.cluster.certificate_authority_data.trim()).ok();
    clusters.iter().filter_map(trusted).flat_map(|bundle| pair::bundle(&bundle)).collect()
}

/// The Cluster that lives now.
pub(super) async fn cluster(client: &Client, namespace: &Namespace, name: &ClusterName) -> Result<Cluster, Error> {
    let api: Api<Cluster> = Api::namespaced(client.clone(), namespace.as_str());
    let cluster = api.get_opt(name.as_str()).await.map_err(Error::api("read", format!("Cluster/{name}")))?;
    let cluster = cluster.ok_or_else(|| Error::NoCluster { name: name.clone(), namespace: namespace.clone() })?;
    if cluster.metadata.deletion_timestamp.is_some() {
        return Err(Error::Leaving { name: name.clone() });
    }
    Ok(cluster)
}
