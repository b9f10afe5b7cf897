//! What an accepted change will mean, told before it is made.

use windlass_api::kind::tanzu::{Machines, Phase, TanzuKubernetesCluster};

/// What will be replaced, and in which order; `None` if nothing will be. Workers may wait for a later hop.
pub(super) fn of(
    before: &TanzuKubernetesCluster,
    after: &TanzuKubernetesCluster,
    workers_wait: bool,
) -> Option<String> {
    let version = |cluster: &TanzuKubernetesCluster| cluster.spec.distribution.full_version.clone().unwrap_or_default();
    let (from, to) = (version(before), version(after));
    let (old, new) = (&before.spec.topology, &after.spec.topology);
    let other_version = from != to;
    let replaced = |old: &Machines, new: &Machines| {
        let other = other_version || old.class != new.class || old.storage_class != new.storage_class;
        // Machines that are only now asked for are made, not replaced.
        if other { old.count.min(new.count) } else { 0 }
    };
    let control_plane = replaced(&old.control_plane, &new.control_plane);
    let workers = if workers_wait { 0 } else { replaced(&old.workers, &new.workers) };

    let mut parts = Vec::new();
    if other_version {
        parts.push("packages".to_owned());
    }
    parts.extend(counted(control_plane, "control-plane machine"));
    parts.extend(counted(workers, "worker"));
    if parts.is_empty() {
        return None;
    }
    let verb = if parts.len() == 1 && control_plane + workers == 1 { "is" } else { "are" };
    let name = after.metadata.name.as_deref().unwrap_or_default();
    let change = if other_version { format!("{from} -> {to}: ") } else { String::new() };
    let queued = match before.status.as_ref().and_then(|status| status.phase) {
        Some(Phase::Updating) => ", after the update that is running",
        _ => "",
    };
    let kept = if workers_wait { "; the workers wait for a later hop" } else { "" };
    // Only versions have an order; machines of another class or with other disks roll side by side.
    let parts = parts.join(if other_version { ", then " } else { " and " });
    Some(format!("{name}: {change}{parts} {verb} replaced{queued}{kept}"))
}

fn counted(count: u32, what: &str) -> Option<String> {
    match count {
        0 => None,
        1 => Some(format!("1 {what}")),
        _ => Some(format!("{count} {what}s")),
    }
}
