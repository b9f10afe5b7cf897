//! Workers join a control plane of their own minor, and one that is at rest.
//!
//! Where Cluster API makes the machines, kubeadm joins them with the configuration that the control plane wrote for its own
//! minor. A pool that waits for a later hop keeps the machines that it has, and gets no new ones meanwhile.

use windlass_api::version::KubernetesVersion;

use super::Blocked;
use crate::inventory::ControlPlane;

/// Refuses to make workers of another minor than the control plane's, and while that changes.
pub fn join_at_control_plane_version(version: &KubernetesVersion, control_plane: &ControlPlane) -> Option<Blocked> {
    let refuse = |why: String| Some(Blocked::JoinsOtherMinor { version: version.clone(), why });
    let machines = control_plane.machines.iter().map(|machine| &machine.version);
    let kubeadm = control_plane.kubeadm.as_ref();
    let asked = kubeadm.map(|kubeadm| &kubeadm.version);
    let others = kubeadm.iter().flat_map(|kubeadm| &kubeadm.versions);
    if let Some(other) = asked.into_iter().chain(others).chain(machines).find(|it| it.minor() != version.minor()) {
        return refuse(format!("the control plane has {other}"));
    }
    let kubeadm = kubeadm?;
    let progress = kubeadm.progress;
    let rolls = !progress.observed || progress.up_to_date != kubeadm.replicas || progress.replicas != kubeadm.replicas;
    if rolls { refuse(format!("{} is still changing its machines", kubeadm.name)) } else { None }
}
