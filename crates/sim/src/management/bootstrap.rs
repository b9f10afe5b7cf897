//! The kubeadm bootstrap provider: what a machine reads when it boots.
//!
//! It never makes certificates. The provider that Cluster API comes with does, where they are missing, and has them owned by
//! the first machine's configuration, with which they go. Here they are ours to bring, and a configuration waits for them.

mod cloud_config;

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_api::kind::bootstrap::{BootstrapInitialization, KubeadmConfig, KubeadmConfigStatus};
use windlass_api::kind::cluster_api::{Cluster, Machine};
use windlass_api::label;
use windlass_api::name::{ClusterName, ClusterSecret};
use windlass_runtime::key::Key;
use windlass_runtime::runner::Outcome;

use super::cluster::SECRET_TYPE;
use super::conditions::{self, Fact};
use super::context::{Error, Turn, deleting, path, paused};
use super::ownership::{controlled_by, controller, is_owned_by};
use super::write::{self, title};
use cloud_config::{Begin, Certificates};

pub(super) async fn reconcile(turn: &Turn, config: &KubeadmConfig) -> Result<Outcome, Error> {
    let meta = &config.metadata;
    if deleting(meta) || config.status.as_ref().is_some_and(|status| status.data_secret_name.is_some()) {
        return Ok(Outcome::done());
    }
    let Some(machine) = owner(turn, config) else { return Ok(Outcome::done()) };
    let Some(cluster) = turn.cluster_of(&machine.metadata) else { return Ok(Outcome::done()) };
    if paused(meta, &cluster) || !may_begin(config, &cluster) {
        return Ok(Outcome::done());
    }
    let certificates = match certificates(turn, config, &cluster)? {
        Ok(certificates) => certificates,
        Err(missing) => {
            let refusal = Fact::no("CertificatesAvailable", "NotAvailable", format!("there is no Secret {missing}"));
            say(turn, config, |_| (), [refusal]).await?;
            return Ok(Outcome::done());
        }
    };
    let begin = Begin { config, machine: &machine, cluster: &cluster, certificates, seed: turn.seed };
    let data = cloud_config::render(&begin)?;
    create_secret(turn, config, &cluster, data).await?;
    let created = |status: &mut KubeadmConfigStatus| {
        status.data_secret_name.clone_from(&config.metadata.name);
        status.initialization = Some(BootstrapInitialization { data_secret_created: true });
    };
    let facts = [
        Fact::yes("CertificatesAvailable", "Available"),
        Fact::yes("DataSecretAvailable", "Available"),
        Fact::yes("Ready", "Ready"),
    ];
    say(turn, config, created, facts).await?;
    Ok(Outcome::done())
}

/// The Machine that looks after it.
fn owner(turn: &Turn, config: &KubeadmConfig) -> Option<Arc<Machine>> {
    let name = controller::<Machine>(&config.metadata)?;
    turn.caches.machines.get(&Key { namespace: config.metadata.namespace.clone(), name: name.to_owned() })
}

/// The first machine needs to know where the API will be; all others need one that answers.
fn may_begin(config: &KubeadmConfig, cluster: &Cluster) -> bool {
    let initialization = cluster.status.as_ref().and_then(|status| status.initialization.as_ref());
    let Some(reached) = initialization else { return false };
    let begins = config.spec.init_configuration.is_some() || config.spec.cluster_configuration.is_some();
    cluster.spec.control_plane_endpoint.is_some()
        && reached.infrastructure_provisioned
        && (begins || reached.control_plane_initialized)
}

/// The certificates that the machine needs, or the name of the first Secret that is not there. A worker needs only to know
/// whom to trust.
fn certificates(turn: &Turn, config: &KubeadmConfig, cluster: &Cluster) -> Result<Result<Certificates, String>, Error> {
    let meta = &cluster.metadata;
    let name = ClusterName::new(meta.name.as_deref().unwrap_or_default())
        .map_err(|source| Error::Name { object: path(meta), source })?;
    let joins = config.spec.join_configuration.as_ref();
    let needed = match joins {
        Some(join) if join.control_plane.is_none() => &ClusterSecret::CERTIFICATES[..1],
        _ => &ClusterSecret::CERTIFICATES[..],
    };
    let mut found = Certificates::new();
    for secret in needed {
        let name = secret.object_name(&name).to_string();
        match turn.caches.secrets.get(&Key { namespace: meta.namespace.clone(), name: name.clone() }) {
            Some(object) => drop(found.insert(*secret, object)),
            None => return Ok(Err(name)),
        }
    }
    Ok(Ok(found))
}

async fn create_secret(turn: &Turn, config: &KubeadmConfig, cluster: &Cluster, data: String) -> Result<(), Error> {
    let cluster_name = cluster.metadata.name.clone().unwrap_or_default();
    let secret = Secret {
        metadata: ObjectMeta {
            name: config.metadata.name.clone(),
            namespace: config.metadata.namespace.clone(),
            labels: Some(BTreeMap::from([(label::CLUSTER_NAME.name.to_owned(), cluster_name)])),
            owner_references: Some(vec![controlled_by(config)]),
            ..ObjectMeta::default()
        },
        type_: Some(SECRET_TYPE.to_owned()),
        data: Some(BTreeMap::from([
            ("value".to_owned(), ByteString(data.into_bytes())),
            ("format".to_owned(), ByteString(b"cloud-config".to_vec())),
        ])),
        ..Secret::default()
    };
    match write::create(turn, &secret).await {
        // What was made before a crash is the same; what an earlier configuration of this name left is about to be collected.
        Err(error) if error.already_exists() => {
            let known = turn.caches.secrets.get(&Key::of(&secret));
            let ours = known.is_some_and(|known| is_owned_by(&known.metadata, config));
            if ours { Ok(()) } else { Err(Error::Taken { object: title(&secret) }) }
        }
        result => result.map(drop),
    }
}

/// Changes the status, if that changes anything.
async fn say<const N: usize>(
    turn: &Turn,
    config: &KubeadmConfig,
    change: impl FnOnce(&mut KubeadmConfigStatus),
    facts: [Fact; N],
) -> Result<(), Error> {
    let mut status = config.status.clone().unwrap_or_default();
    change(&mut status);
    for fact in facts {
        conditions::set(&mut status.conditions, fact, config.metadata.generation, &turn.now());
    }
    if config.status.as_ref() != Some(&status) {
        write::status(turn, config, &status).await?;
    }
    Ok(())
}
