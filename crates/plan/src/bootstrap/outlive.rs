//! Machines outlive packages: those of a cluster that is kept for its packages are switched off after these have gone.
//!
//! A cluster that goes is not drained: Cluster API deletes its machines in the same moment. Where nobody holds that, what should
//! take a package's objects away (a load balancer, a record of names) goes before it has done so. So each machine has a hook, for
//! as long as its cluster has the finalizer. A machine that goes alone is let go of at once.

use windlass_api::annotation;
use windlass_api::kind::cluster_api::{Cluster, Machine};

use super::FINALIZER;

/// Who waits, as the hook says it.
pub const WAITS: &str = "tkg.tanzu.vmware.com/addons";

/// What is to be done to the hook of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    /// It is put there.
    Set,
    /// It is taken away.
    Release,
}

/// What is to be done to the hook of a machine, whose cluster this is; nothing if it is as it should be.
pub fn outlive(machine: &Machine, cluster: Option<&Cluster>) -> Option<Hook> {
    let annotations = machine.metadata.annotations.as_ref();
    let is_there = annotations.is_some_and(|annotations| annotation::OUTLIVES_PACKAGES.is_in(annotations));
    let wanted = cluster.is_some_and(|cluster| waits(machine, cluster));
    match (is_there, wanted) {
        (false, true) => Some(Hook::Set),
        (true, false) => Some(Hook::Release),
        (true, true) | (false, false) => None,
    }
}

/// Whether a cluster is kept until packages that were added to it have gone.
pub fn is_kept(cluster: &Cluster) -> bool {
    cluster.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == FINALIZER)
}

/// Whether a machine waits for the packages of its cluster: while nobody goes, and while all go.
fn waits(machine: &Machine, cluster: &Cluster) -> bool {
    let goes_alone = machine.metadata.deletion_timestamp.is_some() && cluster.metadata.deletion_timestamp.is_none();
    is_kept(cluster) && !goes_alone
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(kept: bool, [cluster_goes, machine_goes]: [bool; 2], has_hook: bool, expected: Option<Hook>) {
        let at = |goes: bool| if goes { json!("2026-01-01T00:00:00Z") } else { Value::Null };
        let cluster: Cluster = serde_json::from_value(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": {"name": "wl", "deletionTimestamp": at(cluster_goes), "finalizers": if kept { vec![FINALIZER] } else { vec![] }},
            "spec": {},
        }))
        .unwrap();
        let mut machine = Machine::default();
        machine.metadata.deletion_timestamp = serde_json::from_value(at(machine_goes)).unwrap();
        machine.metadata.annotations =
            has_hook.then(|| [(annotation::OUTLIVES_PACKAGES.name.to_owned(), WAITS.to_owned())].into());
        let told = format!("kept {kept}, cluster goes {cluster_goes}, machine goes {machine_goes}, hook {has_hook}");
        assert_eq!(outlive(&machine, Some(&cluster)), expected, "{told}");
    }

    #[test]
    fn a_machine_waits_while_its_cluster_is_kept_and_not_when_it_goes_alone() {
        let (nobody, alone, all) = ([false, false], [false, true], [true, true]);
        check(true, nobody, false, Some(Hook::Set));
        check(true, nobody, true, None);
        check(true, alone, true, Some(Hook::Release));
        check(true, alone, false, None);
        check(true, all, true, None);
        check(true, all, false, Some(Hook::Set));
        check(true, [true, false], false, Some(Hook::Set));
        for goes in [nobody, alone, all] {
            check(false, goes, true, Some(Hook::Release));
            check(false, goes, false, None);
        }
    }

    #[test]
    fn a_machine_whose_cluster_is_none_of_ours_is_let_go_of() {
        let mut machine = Machine::default();
        assert_eq!(outlive(&machine, None), None);
        machine.metadata.annotations = Some([(annotation::OUTLIVES_PACKAGES.name.to_owned(), String::new())].into());
        assert_eq!(outlive(&machine, None), Some(Hook::Release));
    }
}
