//! Machines of a control plane that stood for themselves, and that a `KubeadmControlPlane` takes over.
//!
//! With them it takes over the certificates, which until then go with the configuration of the first machine: had that been
//! deleted before, no machine could ever have joined again.

use std::sync::Arc;

use serde_json::json;
use windlass_api::kind::bootstrap::KubeadmConfig;
use windlass_api::kind::cluster_api::{Cluster, Machine};
use windlass_api::kind::control_plane::KubeadmControlPlane;
use windlass_api::version::KubernetesVersion;
use windlass_runtime::key::Key;

use crate::management::context::{Error, Turn, belonging, deleting, is_control_plane, path};
use crate::management::ownership::{controlled_by, owners};
use crate::management::write;

/// Takes over what can be. A machine that is too far from the wanted version stays as it is, and nothing is done.
pub(super) async fn machines(turn: &Turn, object: &KubeadmControlPlane, cluster: &Cluster) -> Result<bool, Error> {
    let found = adoptable(turn, cluster);
    if let Some(machine) = found.iter().find(|machine| !is_near(object, machine)) {
        tracing::warn!(machine = path(&machine.metadata), "a machine is too far from the version of its control plane");
        return Ok(false);
    }
    for machine in &found {
        take_secrets(turn, object, machine).await?;
        let change = json!({"metadata": {"ownerReferences": [controlled_by(object)]}});
        write::patch(turn, &**machine, change).await?;
    }
    // What was taken over is seen in the next turn.
    Ok(found.is_empty())
}

/// Machines of the control plane that nobody looks after.
fn adoptable(turn: &Turn, cluster: &Cluster) -> Vec<Arc<Machine>> {
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    let all = belonging(&turn.caches.machines, &cluster.metadata, name);
    let alone = |machine: &Machine| !owners(&machine.metadata).iter().any(|owner| owner.controller == Some(true));
    let ours = all
        .into_iter()
        .filter(|machine| is_control_plane(&machine.metadata) && !deleting(&machine.metadata) && alone(machine));
    ours.collect()
}

/// Whether a machine is at most one minor away from the wanted version.
fn is_near(object: &KubeadmControlPlane, machine: &Machine) -> bool {
    let version = |text: &str| text.parse::<KubernetesVersion>().ok();
    let (wanted, has) = (version(&object.spec.version), machine.spec.version.as_deref().and_then(version));
    wanted.zip(has).is_some_and(|(wanted, has)| has.distance_from(&wanted).is_within(1, 1))
}

/// The Secrets that go with the machine's configuration are to go with the control plane.
async fn take_secrets(turn: &Turn, object: &KubeadmControlPlane, machine: &Machine) -> Result<(), Error> {
    let Some(config) = &machine.spec.bootstrap.config_ref else { return Ok(()) };
    let key = Key { namespace: machine.metadata.namespace.clone(), name: config.name.clone() };
    let Some(config): Option<Arc<KubeadmConfig>> = turn.caches.bootstraps.get(&key) else { return Ok(()) };
    let secrets = belonging(&turn.caches.secrets, &machine.metadata, &machine.spec.cluster_name);
    let data = config.status.as_ref().and_then(|status| status.data_secret_name.as_deref());
    for secret in secrets {
        let owned = owners(&secret.metadata).iter().any(|owner| Some(&owner.uid) == config.metadata.uid.as_ref());
        if owned && secret.metadata.name.as_deref() != data {
            let change = json!({"metadata": {"ownerReferences": [controlled_by(object)]}});
            write::patch(turn, &*secret, change).await?;
        }
    }
    Ok(())
}
