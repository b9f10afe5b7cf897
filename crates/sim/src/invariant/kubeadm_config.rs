//! C11: kubeadm's record follows what was decided, and forgets who is gone.

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Role, Topic};

pub(super) const RULE: Rule = Rule {
    id: "C11",
    demands: "The version in kubeadm-config is one that a machine of the control plane has or was asked to have, and kubeadm-config \
              names no machine that is gone when the next one is asked for, or when an update is done.",
    topics: &[Topic::Configuration, Topic::Machines, Topic::Request],
    check,
};

/// Names of API servers are kept below 1.22 only, which Cluster API rolls no more: it leaves them where they are.
fn check(cluster: &Cluster, fact: &Fact, findings: &mut Findings) {
    if cluster.is_ending() {
        return;
    }
    let kubeadm = &cluster.workload.kubeadm;
    match fact {
        Fact::KubeadmConfigured { .. } => {
            let has = cluster.machines_of(Role::ControlPlane).filter_map(|(_, machine)| machine.version.as_ref());
            let asked = cluster.control_plane.as_ref().and_then(|control_plane| control_plane.version.as_ref());
            let decided = has.chain(asked).chain(cluster.running_update().map(|update| &update.to)).max();
            let (Some(version), Some(decided)) = (&kubeadm.version, decided) else { return };
            if version > decided {
                let text = format!("kubeadm-config says {version}, and nothing newer than {decided} was asked for");
                findings.breach("version", text);
            }
        }
        Fact::MachineCreated { role: Role::ControlPlane, .. } | Fact::UpdateSucceeded { .. }
            if cluster.control_plane.is_none() =>
        {
            for node in kubeadm.endpoints.iter().filter(|node| !cluster.machines.contains_key(*node)) {
                let text = format!("Machine {node} is gone, and kubeadm-config names its API server to those who join");
                findings.breach(&**node, text);
            }
        }
        _ => {}
    }
}
