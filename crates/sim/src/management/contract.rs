//! What Cluster API's contract lets others conclude from the status of a control plane. Everything that waits for control planes
//! goes by these.

use windlass_api::kind::control_plane::KubeadmControlPlane;
use windlass_api::version::KubernetesVersion;

/// How far a control plane is with the version that it was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ControlPlaneState {
    /// No machine has a version yet.
    Provisioning,
    /// Some machine is older than what was asked for.
    Upgrading,
    /// All machines have what was asked for.
    Stable,
}

/// How far a control plane is.
pub(crate) fn state(control_plane: &KubeadmControlPlane) -> ControlPlaneState {
    let status = control_plane.status.as_ref();
    let versions = status.map(|status| status.versions.as_slice()).unwrap_or_default();
    // Before 1.14 only the oldest version was said.
    let mut versions: Vec<&str> = versions.iter().map(|counted| counted.version.as_str()).collect();
    versions.extend(status.and_then(|status| status.version.as_deref()).filter(|_| versions.is_empty()));
    match () {
        () if versions.is_empty() => ControlPlaneState::Provisioning,
        () if versions.iter().any(|version| is_older(version, &control_plane.spec.version)) => {
            ControlPlaneState::Upgrading
        }
        () => ControlPlaneState::Stable,
    }
}

/// Whether a version is older than another. One that cannot be read is taken for older if it is another at all.
pub(super) fn is_older(version: &str, than: &str) -> bool {
    match (version.parse::<KubernetesVersion>(), than.parse::<KubernetesVersion>()) {
        (Ok(version), Ok(than)) => version < than,
        _ => version != than,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(status: &serde_json::Value, expected: ControlPlaneState) {
        let object = json!({"metadata": {}, "spec": {"version": "v1.31.1"}, "status": status});
        assert_eq!(state(&serde_json::from_value(object).unwrap()), expected, "{status}");
    }

    #[test]
    fn a_control_plane_moves_until_its_oldest_machine_has_the_version() {
        check(&json!({}), ControlPlaneState::Provisioning);
        check(&json!({"version": "v1.30.4"}), ControlPlaneState::Upgrading);
        check(&json!({"version": "v1.31.1"}), ControlPlaneState::Stable);
        let both = json!([{"version": "v1.30.4", "replicas": 1}, {"version": "v1.31.1", "replicas": 2}]);
        check(&json!({"version": "v1.31.1", "versions": both}), ControlPlaneState::Upgrading);
        check(&json!({"versions": [{"version": "v1.32.0", "replicas": 3}]}), ControlPlaneState::Stable);
    }
}
