//! What has to be so before a set makes a machine, or replaces one that something is wrong with. Deletions wait for nothing.
//!
//! As in Cluster API nothing is checked where machines of the control plane stand for themselves: there is nobody to ask.

use windlass_api::annotation;
use windlass_api::kind::bootstrap;
use windlass_api::version::KubernetesVersion;
use windlass_runtime::key::Key;

use super::View;
use crate::management::contract::{self, ControlPlaneState};

/// The checks, by the names that people leave them out by.
const STABLE: &str = "ControlPlaneIsStable";
const KUBERNETES_SKEW: &str = "KubernetesVersionSkew";
const KUBEADM_SKEW: &str = "KubeadmVersionSkew";
const CONTROL_PLANE_SKEW: &str = "ControlPlaneVersionSkew";

/// How many minors a worker may be behind.
const BEHIND_MAX: u64 = 3;

/// Why no machine may be made now.
pub(super) fn refusals(view: &View<'_>) -> Vec<String> {
    let skipped = skipped(view);
    if skipped.contains(&"All") {
        return Vec::new();
    }
    let Some(reference) = &view.cluster.spec.control_plane_ref else { return Vec::new() };
    let key = Key { namespace: view.cluster.metadata.namespace.clone(), name: reference.name.clone() };
    let title = format!("{} {}", reference.kind, key);
    let Some(control_plane) = view.turn.caches.control_planes.get(&key) else {
        return vec![format!("{title} does not exist")];
    };
    let at = control_plane.spec.version.as_str();
    let topology = view.cluster.spec.topology.as_ref().map(|topology| topology.version.as_str());
    let of_set = view.set.spec.template.spec.version.as_deref();
    let kubeadm = view.set.spec.template.spec.bootstrap.config_ref.as_ref();
    let kubeadm =
        kubeadm.is_some_and(|config| config.kind == "KubeadmConfigTemplate" && config.api_group == bootstrap::GROUP);
    let checks = [
        (STABLE, unstable(&title, contract::state(&control_plane), at, topology)),
        (KUBERNETES_SKEW, of_set.and_then(|version| kubernetes_skew(version, at))),
        (KUBEADM_SKEW, of_set.filter(|_| kubeadm).and_then(|version| kubeadm_skew(version, at))),
        (CONTROL_PLANE_SKEW, of_set.filter(|_| topology.is_some()).and_then(|version| control_plane_skew(version, at))),
    ];
    let failed = checks.into_iter().filter(|(name, _)| !skipped.contains(name));
    failed.filter_map(|(name, why)| Some(format!("{} (\"{name}\" preflight check failed)", why?))).collect()
}

fn skipped<'a>(view: &'a View<'_>) -> Vec<&'a str> {
    let annotations = view.set.metadata.annotations.as_ref();
    let text = annotations.and_then(|all| all.get(annotation::SKIP_PREFLIGHT_CHECKS.name));
    text.map(|text| text.split(',').map(str::trim).collect()).unwrap_or_default()
}

fn unstable(title: &str, state: ControlPlaneState, at: &str, topology: Option<&str>) -> Option<String> {
    if let Some(version) = topology.filter(|version| *version != at) {
        return Some(format!("{title} has a pending version upgrade to {version}"));
    }
    match state {
        ControlPlaneState::Provisioning => Some(format!("{title} is provisioning")),
        ControlPlaneState::Upgrading => Some(format!("{title} is upgrading")),
        ControlPlaneState::Stable => None,
    }
}

/// Both versions as numbers. What cannot be read is not compared: Cluster API would try again for ever.
fn parsed(set: &str, control_plane: &str) -> Option<(KubernetesVersion, KubernetesVersion)> {
    Some((set.parse().ok()?, control_plane.parse().ok()?))
}

fn kubernetes_skew(set: &str, control_plane: &str) -> Option<String> {
    let (of_set, at) = parsed(set, control_plane)?;
    let between = format!(
        "MachineSet version ({}) and ControlPlane version ({}) do not conform to the kubernetes version skew policy as \
         MachineSet version is",
        of_set.bare(),
        at.bare()
    );
    if of_set.minor() > at.minor() {
        return Some(format!("{between} higher than ControlPlane version"));
    }
    let too_old = !of_set.distance_from(&at).is_within(BEHIND_MAX, 0);
    too_old.then(|| format!("{between} more than {BEHIND_MAX} minor versions older than the ControlPlane version"))
}

fn kubeadm_skew(set: &str, control_plane: &str) -> Option<String> {
    let (of_set, at) = parsed(set, control_plane)?;
    (of_set.minor() != at.minor()).then(|| {
        format!(
            "MachineSet version ({}) and ControlPlane version ({}) do not conform to kubeadm version skew policy as kubeadm \
             only supports joining with the same major+minor version as the control plane",
            of_set.bare(),
            at.bare()
        )
    })
}

fn control_plane_skew(set: &str, control_plane: &str) -> Option<String> {
    (set != control_plane).then(|| {
        format!(
            "MachineSet version ({set}) is not yet the same as the ControlPlane version ({control_plane}), waiting for version \
             to be propagated to the MachineSet"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(found: Option<String>, expected: Option<&str>) {
        match (found, expected) {
            (Some(found), Some(expected)) => assert!(found.contains(expected), "{found}\n  does not say\n{expected}"),
            (None, None) => {}
            (found, expected) => panic!("{found:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn a_worker_is_neither_newer_than_the_control_plane_nor_far_behind() {
        check(kubernetes_skew("v1.31.2", "v1.31.0"), None);
        check(kubernetes_skew("v1.28.2", "v1.31.0"), None);
        check(kubernetes_skew("v1.32.0", "v1.31.9"), Some("is higher than ControlPlane version"));
        check(kubernetes_skew("v1.27.2", "v1.31.0"), Some("more than 3 minor versions older"));
        check(kubernetes_skew("latest", "v1.31.0"), None);
    }

    #[test]
    fn kubeadm_joins_at_its_own_minor_only() {
        check(kubeadm_skew("v1.31.2", "v1.31.0"), None);
        check(kubeadm_skew("v1.30.2", "v1.31.0"), Some("same major+minor version as the control plane"));
    }

    #[test]
    fn a_pool_of_a_topology_has_the_version_of_the_control_plane_to_the_letter() {
        check(control_plane_skew("v1.31.0", "v1.31.0"), None);
        check(control_plane_skew("v1.31.0+vmware.1", "v1.31.0+vmware.2"), Some("waiting for version to be propagated"));
    }

    #[test]
    fn a_control_plane_that_moves_or_is_about_to_is_not_stable() {
        let title = "KubeadmControlPlane default/c";
        check(unstable(title, ControlPlaneState::Stable, "v1.31.0", None), None);
        check(unstable(title, ControlPlaneState::Stable, "v1.31.0", Some("v1.31.0")), None);
        check(
            unstable(title, ControlPlaneState::Stable, "v1.31.0", Some("v1.32.0")),
            Some("pending version upgrade to v1.32.0"),
        );
        check(unstable(title, ControlPlaneState::Provisioning, "v1.31.0", None), Some("default/c is provisioning"));
        check(unstable(title, ControlPlaneState::Upgrading, "v1.31.0", None), Some("default/c is upgrading"));
    }
}
