//! D2: workers last.

use windlass_api::version::KubernetesVersion;

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Role, Topic};

pub(super) const RULE: Rule = Rule {
    id: "D2",
    demands: "No worker is newer than a machine of the control plane, and no pool that is ours asks for one that is.",
    topics: &[Topic::Machines],
    check,
};

/// A machine that is being removed still counts: its API server serves until it is gone.
fn check(cluster: &Cluster, _: &Fact, findings: &mut Findings) {
    if cluster.is_ending() {
        return;
    }
    let versions =
        cluster.machines_of(Role::ControlPlane).filter_map(|(name, machine)| Some((machine.version.as_ref()?, name)));
    let Some((oldest, behind)) = versions.min() else { return };
    let mut look = |what: &str, name: &str, version: Option<&KubernetesVersion>| {
        if let Some(version) = version.filter(|version| *version > oldest) {
            let text =
                format!("{what} {name} is at {version}, and Machine {behind} of the control plane is at {oldest}");
            findings.breach(format!("{what} {name}"), text);
        }
    };
    for (name, machine) in cluster.machines_of(Role::Worker) {
        look("Machine", name, machine.version.as_ref());
    }
    // Cluster API lets people ask for all at once, and holds its workers back by itself.
    if cluster.is_ours() {
        for (name, pool) in &cluster.pools {
            look("MachineDeployment", name, pool.version.as_ref());
        }
    }
}
