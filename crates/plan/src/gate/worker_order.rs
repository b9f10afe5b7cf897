//! Workers never run ahead of the control plane.
//!
//! A kubelet may not be newer than any API server it talks to. The last thing a control-plane update does is to delete the
//! old Machine, so "every control-plane Machine is at the target" also proves that the update has ended.

use windlass_api::version::KubernetesVersion;

use super::Blocked;
use crate::inventory::{Machine, MachineState};

/// Refuses to make workers of a version while any control-plane machine is older than it, and to raise those of a pool while one
/// is on its way out. A pool whose version does not change (class, storage class, count) passes by the same rule, as no machine
/// is older than the workers that are there: it may roll beside the control plane.
pub fn worker_order(
    version: &KubernetesVersion,
    from: Option<&KubernetesVersion>,
    machines: &[Machine],
) -> Option<Blocked> {
    if let Some(behind) = machines.iter().find(|machine| machine.version < *version) {
        return Some(Blocked::ControlPlaneBehind {
            machine: behind.name.clone(),
            at: behind.version.clone(),
            need: version.clone(),
        });
    }
    let is_leaving = |machine: &&Machine| matches!(machine.state, MachineState::Deleting { .. });
    let leaving = machines.iter().find(is_leaving).filter(|_| from.is_some_and(|from| from < version))?;
    let why = "it is on the way out".to_owned();
    Some(Blocked::ControlPlaneMachineNotReady { machine: leaving.name.clone(), why })
}
