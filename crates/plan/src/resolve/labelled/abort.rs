//! An update by label that is given up: the label names the release again that the cluster was last brought to.
//!
//! Until Cluster API is told of a change that replaces machines, nothing has been begun, and nothing has to be undone. From then on
//! there is only forward: before it makes the first machine, it writes the new version down where kubeadm finds it, and whatever
//! joined then under the old one would run another Kubernetes than it says
//! ([decision 46](../../../../../docs/decisions/0046-an-update-by-label-is-given-up-until-cluster-api-is-told.md)).

use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::cluster_update::ClusterUpdate;
use windlass_api::version::KubernetesVersion;

use super::asked;
use super::course::goes_on;
use crate::change::{Effect, classify};
use crate::inventory::Inventory;
use crate::target::Target;

/// The release that a cluster is to keep, where its label says that its update is to be given up. `deployed` is the one that it was
/// last brought to.
pub fn back_to(
    cluster: &Cluster,
    deployed: Option<&KubernetesVersion>,
    update: Option<&ClusterUpdate>,
) -> Option<KubernetesVersion> {
    let update = update.filter(|update| goes_on(update))?;
    let asked = asked(cluster).ok()??;
    (deployed == Some(&asked) && update.spec.to.distribution != asked.to_string()).then_some(asked)
}

/// Why it cannot be given up any more; `None` while it can. `back` is what the cluster was, and is to be again.
pub fn too_late(back: &Target, inventory: &Inventory) -> Option<String> {
    let control_plane = &inventory.control_plane;
    if control_plane.kubeadm.is_none() || !inventory.gaps.is_empty() {
        return Some("not all of the cluster can be read, so that nobody knows what Cluster API was told".to_owned());
    }
    let old = &back.release.kubernetes;
    if let Some(machine) = control_plane.machines.iter().find(|machine| machine.version > *old) {
        return Some(format!("Machine {} has {}", machine.name, machine.version));
    }
    let changes = classify(back, inventory).changes;
    let told = changes.iter().find(|change| matches!(change.effect, Effect::Replaces | Effect::Refused))?;
    let has = told.from.as_deref().unwrap_or("nothing");
    let (field, role) = (&told.field, &told.role);
    Some(format!("Cluster API was told that {field} of {role} is {has}, and replaces machines for that"))
}
