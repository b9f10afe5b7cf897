//! The kubeadm bootstrap provider: what a machine reads when it boots.
//!
//! Where machines of a control plane stand for themselves and nobody has brought certificates, the configuration of the first one
//! makes them, as in Cluster API, and they belong to it: when it is deleted they are collected with it, and no machine joins any
//! more. Whoever replaces the first machine has to take them over before.

mod cloud_config;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use windlass_api::kind::bootstrap::{BootstrapInitialization, KubeadmConfig, KubeadmConfigStatus};
use windlass_api::kind::cluster_api::{Cluster, ClusterInitialization, Machine};
use windlass_api::label;
use windlass_api::name::{ClusterName, ClusterSecret};
use windlass_runtime::key::Key;
use windlass_runtime::runner::Outcome;

use super::conditions::{self, Fact, WAITING_FOR_CONTROL_PLANE};
use super::context::{Error, Turn, deleting, is_control_plane, path};
use super::ownership::{controlled_by, controller, is_owned_by};
use super::pause;
use super::secret;
use super::write::{self, title};
use cloud_config::{Begin, Certificates};

/// How soon a Secret of people is looked for again, as in Cluster API after an error.
const SECRET_PAUSE: Duration = Duration::from_secs(30);

pub(super) async fn reconcile(turn: &Turn, config: &KubeadmConfig) -> Result<Outcome, Error> {
    let meta = &config.metadata;
    let cluster = turn.cluster_of(meta);
    if let Some(outcome) = pause::held(turn, config, cluster.as_deref()).await? {
        return Ok(outcome);
    }
    if deleting(meta) || config.status.as_ref().is_some_and(|status| status.data_secret_name.is_some()) {
        return Ok(Outcome::done());
    }
    let Some(machine) = owner(turn, config) else { return Ok(Outcome::done()) };
    let Some(cluster) = turn.cluster_of(&machine.metadata) else { return Ok(Outcome::done()) };
    if !may_begin(config, &machine, &cluster) {
        // That the infrastructure is waited for is over soon, and not worth a write for each machine.
        if reached(&cluster).is_some_and(|reached| reached.infrastructure_provisioned) && !begins(config, &machine) {
            let waits = Fact::no("DataSecretAvailable", "NotAvailable", WAITING_FOR_CONTROL_PLANE);
            say(turn, config, |_| (), [waits]).await?;
        }
        return Ok(Outcome::done());
    }
    let certificates = match certificates(turn, config, &machine, &cluster)? {
        Ok(certificates) => certificates,
        Err(_) if begins(config, &machine) && cluster.spec.control_plane_ref.is_none() => {
            // They will be seen, and with them the configuration is looked at again.
            secret::ensure_certificates(turn, &cluster, &controlled_by(config)).await?;
            return Ok(Outcome::done());
        }
        Err(missing) => {
            let refusal = Fact::no("CertificatesAvailable", "NotAvailable", format!("there is no Secret {missing}"));
            say(turn, config, |_| (), [refusal]).await?;
            return Ok(Outcome::done());
        }
    };
    let contents = match contents(turn, config).await? {
        Ok(contents) => contents,
        Err(missing) => {
            let refusal = Fact::no("DataSecretAvailable", "NotAvailable", missing);
            say(turn, config, |_| (), [refusal]).await?;
            return Ok(Outcome::requeue_after(SECRET_PAUSE));
        }
    };
    let begin = Begin { config, machine: &machine, cluster: &cluster, certificates, contents, seed: turn.seed };
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

/// What is in the Secrets that files are read from, or which one is not there. They belong to people, and are read when they are
/// needed.
async fn contents(
    turn: &Turn,
    config: &KubeadmConfig,
) -> Result<Result<BTreeMap<(String, String), String>, String>, Error> {
    let namespace = config.metadata.namespace.as_deref().unwrap_or_default();
    let api: Api<Secret> = Api::namespaced(turn.client.clone(), namespace);
    let mut contents = BTreeMap::new();
    for (name, key) in cloud_config::sources(config) {
        let object = || format!("Secret {namespace}/{name}");
        let found = api.get_opt(&name).await;
        let found = found.map_err(|source| Error::Api { verb: "read", object: object(), source: Box::new(source) })?;
        let Some(secret) = found else {
            return Ok(Err(format!("there is no {}, which a file is read from", object())));
        };
        match secret.data.as_ref().and_then(|data| data.get(&key)) {
            Some(bytes) => drop(contents.insert((name, key), String::from_utf8_lossy(&bytes.0).into_owned())),
            None => return Ok(Err(format!("{} has no {key}, which a file is read from", object()))),
        }
    }
    Ok(Ok(contents))
}

/// The Machine that looks after it.
fn owner(turn: &Turn, config: &KubeadmConfig) -> Option<Arc<Machine>> {
    let name = controller::<Machine>(&config.metadata)?;
    turn.caches.machines.get(&Key { namespace: config.metadata.namespace.clone(), name: name.to_owned() })
}

/// The first machine needs to know where the API will be; all others need one that answers.
fn may_begin(config: &KubeadmConfig, machine: &Machine, cluster: &Cluster) -> bool {
    let Some(reached) = reached(cluster) else { return false };
    cluster.spec.control_plane_endpoint.is_some()
        && reached.infrastructure_provisioned
        && (begins(config, machine) || reached.control_plane_initialized)
}

/// What the cluster has ever reached.
fn reached(cluster: &Cluster) -> Option<&ClusterInitialization> {
    cluster.status.as_ref().and_then(|status| status.initialization.as_ref())
}

/// Whether the configuration is that of the first machine. One that joins may say what the cluster is like, too: a
/// `KubeadmControlPlane` tells it to all its machines. A worker never begins a cluster, whatever its configuration leaves out.
fn begins(config: &KubeadmConfig, machine: &Machine) -> bool {
    let says_so = config.spec.init_configuration.is_some() || config.spec.join_configuration.is_none();
    says_so && is_control_plane(&machine.metadata)
}

/// Whether it joins as a worker.
fn is_worker(config: &KubeadmConfig, machine: &Machine) -> bool {
    let join = config.spec.join_configuration.as_ref();
    !begins(config, machine) && join.is_none_or(|join| join.control_plane.is_none())
}

/// The certificates that the machine needs, or the name of the first Secret that is not there. A worker needs only to know
/// whom to trust.
fn certificates(
    turn: &Turn,
    config: &KubeadmConfig,
    machine: &Machine,
    cluster: &Cluster,
) -> Result<Result<Certificates, String>, Error> {
    let meta = &cluster.metadata;
    let name = ClusterName::new(meta.name.as_deref().unwrap_or_default())
        .map_err(|source| Error::Name { object: path(meta), source })?;
    let needed = if is_worker(config, machine) { 1 } else { ClusterSecret::CERTIFICATES.len() };
    let mut found = Certificates::new();
    for secret in &ClusterSecret::CERTIFICATES[..needed] {
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
        type_: Some(secret::TYPE.to_owned()),
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
