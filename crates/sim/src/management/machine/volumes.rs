//! Whether the volumes of a node are detached: a disk that is still attached when its machine is deleted would go with it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::PersistentVolume;
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::Api;
use kube::api::ListParams;
use windlass_apiserver::time;

use super::drain::{Leaving, claims, stays};
use crate::management::context::Error;
use crate::management::write::failed;

/// Volumes that are waited for, in order.
#[derive(Debug, Default, PartialEq, Eq)]
struct Attached {
    /// Claims, as `namespace/name`.
    claims: BTreeSet<String>,
    /// Volumes that nobody claims.
    unclaimed: BTreeSet<String>,
    /// What the node says is attached to it, and no volume knows of.
    unknown_to_volumes: BTreeSet<String>,
    /// Volumes that are attached and do not exist.
    missing: BTreeSet<String>,
}

impl Leaving<'_> {
    /// What is waited for until the volumes of the node are detached; `None` when they are. On a node that nobody hears of
    /// they never would be.
    pub(super) async fn attached(&self, began: Timestamp) -> Result<Option<String>, Error> {
        if self.is_unreachable() {
            return Ok(None);
        }
        let by_attachment = self.attachments().await?;
        let status = self.node.status.as_ref();
        let by_node = status.and_then(|status| status.volumes_attached.as_ref()).into_iter().flatten();
        let by_node: BTreeSet<String> = by_node.map(|volume| volume.name.clone()).collect();
        if by_attachment.is_empty() && by_node.is_empty() {
            return Ok(None);
        }
        // The volumes of pods that stay are attached until the end.
        let fates = self.fates().await?;
        let staying: BTreeSet<String> =
            fates.iter().filter(|(_, fate)| stays(*fate)).flat_map(|(pod, _)| claims(pod)).collect();
        let volumes = self.volumes().await?;
        Ok(sort(&by_attachment, &by_node, &volumes, &staying).message(began))
    }

    /// The names of the volumes that are attached to the node.
    async fn attachments(&self) -> Result<BTreeSet<String>, Error> {
        let api: Api<VolumeAttachment> = Api::all(self.client.clone());
        let all = api.list(&ListParams::default()).await;
        let all = all.map_err(|source| failed("list what is attached to the node of", self.machine, source))?;
        let here = all.items.into_iter().filter(|attachment| {
            attachment.spec.node_name == self.node_name()
                && attachment.status.as_ref().is_some_and(|status| status.attached)
        });
        Ok(here.filter_map(|attachment| attachment.spec.source.persistent_volume_name).collect())
    }

    /// All volumes by name: who claims them, and what a node calls them.
    async fn volumes(&self) -> Result<BTreeMap<String, Volume>, Error> {
        let api: Api<PersistentVolume> = Api::all(self.client.clone());
        let all = api.list(&ListParams::default()).await;
        let all = all.map_err(|source| failed("list the volumes around the node of", self.machine, source))?;
        let volumes = all.items.into_iter().map(|volume| {
            let spec = volume.spec.unwrap_or_default();
            let claim = spec.claim_ref.filter(|claim| claim.kind.as_deref() == Some("PersistentVolumeClaim"));
            let claim = claim
                .map(|claim| format!("{}/{}", claim.namespace.unwrap_or_default(), claim.name.unwrap_or_default()));
            let device = spec.csi.map(|csi| format!("kubernetes.io/csi/{}^{}", csi.driver, csi.volume_handle));
            (volume.metadata.name.unwrap_or_default(), Volume { claim, device })
        });
        Ok(volumes.collect())
    }
}

/// A volume.
struct Volume {
    /// Who claims it, as `namespace/name`.
    claim: Option<String>,
    /// What a node calls it that it is attached to.
    device: Option<String>,
}

fn sort(
    by_attachment: &BTreeSet<String>,
    by_node: &BTreeSet<String>,
    volumes: &BTreeMap<String, Volume>,
    staying: &BTreeSet<String>,
) -> Attached {
    let mut attached = Attached::default();
    let mut known_devices = BTreeSet::new();
    for (name, volume) in volumes {
        let device = volume.device.as_ref().filter(|device| by_node.contains(*device));
        known_devices.extend(device);
        if device.is_none() && !by_attachment.contains(name) {
            continue;
        }
        match &volume.claim {
            Some(claim) if staying.contains(claim) => false,
            Some(claim) => attached.claims.insert(claim.clone()),
            None => attached.unclaimed.insert(name.clone()),
        };
    }
    attached.missing.extend(by_attachment.iter().filter(|name| !volumes.contains_key(*name)).cloned());
    attached.unknown_to_volumes.extend(by_node.iter().filter(|device| !known_devices.contains(device)).cloned());
    attached
}

impl Attached {
    /// What is waited for; `None` if nothing is.
    fn message(&self, began: Timestamp) -> Option<String> {
        let parts = [
            (&self.claims, "PersistentVolumeClaims"),
            (&self.unclaimed, "PersistentVolumes without a .spec.claimRef to a PersistentVolumeClaim"),
            (&self.unknown_to_volumes, "Node with .status.volumesAttached entries not matching a PersistentVolume"),
            (&self.missing, "VolumeAttachment with .spec.source.persistentVolumeName not matching a PersistentVolume"),
        ];
        let lines = parts.iter().filter(|(names, _)| !names.is_empty()).map(|(names, what)| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            format!("\n* {what}: {}", names.join(", "))
        });
        let lines: String = lines.collect();
        (!lines.is_empty())
            .then(|| format!("Waiting for Node volumes to be detached (started at {}){lines}", time::format(began)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_attached_is_waited_for_unless_its_pod_stays() {
        let names = |names: &[&str]| -> BTreeSet<String> { names.iter().map(|name| (*name).to_owned()).collect() };
        let volume = |claim: Option<&str>, device: &str| Volume {
            claim: claim.map(str::to_owned),
            device: Some(device.to_owned()),
        };
        let volumes = BTreeMap::from([
            ("claimed".to_owned(), volume(Some("a/data"), "d1")),
            ("staying".to_owned(), volume(Some("a/log"), "d2")),
            ("unclaimed".to_owned(), volume(None, "d3")),
            ("elsewhere".to_owned(), volume(Some("a/other"), "d4")),
        ]);
        let attached =
            sort(&names(&["claimed", "staying", "gone"]), &names(&["d2", "d3", "d9"]), &volumes, &names(&["a/log"]));
        let expected = "\
Waiting for Node volumes to be detached (started at 1970-01-01T00:00:00Z)
* PersistentVolumeClaims: a/data
* PersistentVolumes without a .spec.claimRef to a PersistentVolumeClaim: unclaimed
* Node with .status.volumesAttached entries not matching a PersistentVolume: d9
* VolumeAttachment with .spec.source.persistentVolumeName not matching a PersistentVolume: gone";
        assert_eq!(attached.message(Timestamp::UNIX_EPOCH).as_deref(), Some(expected));
        let staying = sort(&names(&["staying"]), &names(&["d2"]), &volumes, &names(&["a/log"]));
        assert_eq!(staying.message(Timestamp::UNIX_EPOCH), None);
    }
}
