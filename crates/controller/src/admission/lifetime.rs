//! What belongs to a cluster for as long as it lives, and is refused before it is stored: the planner would refuse it for ever.
//!
//! It is compared with what has been made, not with what was asked for: a cluster of which nothing has been made yet can still
//! be asked to be another one, and whoever set a field back to what the cluster has is not kept from it.

use std::collections::BTreeSet;

use kube::api::ListParams;
use kube::{Api, Client};
use windlass_api::kind::cluster_api::{Cluster, Machine};
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::{annotation, label};
use windlass_plan::change;
use windlass_plan::gate::Blocked;
use windlass_plan::target::Target;

use super::choice::Unknown;
use crate::observe::management::network;

/// The complaint about a change that no cluster survives.
pub(super) async fn refused(
    client: &Client,
    before: &TanzuKubernetesCluster,
    asked: &TanzuKubernetesCluster,
    target: &Target,
) -> Result<Option<String>, Unknown> {
    let count = |cluster: &TanzuKubernetesCluster| cluster.spec.topology.control_plane.count;
    let lowered = count(asked) < count(before);
    let other_network = before.spec.settings != asked.spec.settings;
    let blocked = match (lowered, other_network) {
        (false, false) => None,
        (true, false) => too_large(client, asked, target).await?,
        (lowered, true) => match network_refused(client, before, asked, target).await? {
            None if lowered => too_large(client, asked, target).await?,
            blocked => blocked,
        },
    };
    Ok(blocked.map(|blocked| format!("{blocked}; {}", blocked.way_out())))
}

/// Refuses to have fewer machines in the control plane than there are.
async fn too_large(
    client: &Client,
    asked: &TanzuKubernetesCluster,
    target: &Target,
) -> Result<Option<Blocked>, Unknown> {
    let namespace = asked.metadata.namespace.as_deref().unwrap_or_default();
    let selector = format!("{}={},{}", label::CLUSTER_NAME, target.cluster.name, label::CONTROL_PLANE);
    let api: Api<Machine> = Api::namespaced(client.clone(), namespace);
    let listed = api.list_metadata(&ListParams::default().labels(&selector)).await;
    let listed = listed.map_err(|source| Unknown::new("Machines", source))?;
    // A machine and the one that takes its place are one.
    let row = |meta: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta| {
        let base = meta.annotations.as_ref().and_then(|all| all.get(annotation::MACHINE_NAME_BASE.name));
        base.or(meta.name.as_ref()).cloned()
    };
    let rows: BTreeSet<String> = listed.items.iter().filter_map(|machine| row(&machine.metadata)).collect();
    let (have, want) = (u32::try_from(rows.len()).unwrap_or(u32::MAX), target.control_plane.count);
    Ok((have > want).then_some(Blocked::ControlPlaneTooLarge { have, want }))
}

/// Refuses another network than the cluster has.
async fn network_refused(
    client: &Client,
    before: &TanzuKubernetesCluster,
    asked: &TanzuKubernetesCluster,
    target: &Target,
) -> Result<Option<Blocked>, Unknown> {
    let namespace = asked.metadata.namespace.as_deref().unwrap_or_default();
    let api: Api<Cluster> = Api::namespaced(client.clone(), namespace);
    let live = api.get_opt(target.cluster.name.as_str()).await;
    let live = live.map_err(|source| Unknown::new("Clusters", source))?;
    let Some(live) = live else { return Ok(None) };
    let network = network(&live).and_then(|given| change::refused_network(target, &given));
    // What was asked for before may be unreadable, and then says nothing.
    let old = || super::choice::target(before, target.release.clone()).ok();
    Ok(network.or_else(|| change::refused_choice(&old()?, target)))
}
