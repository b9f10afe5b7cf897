//! D1: add-ons first.

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Topic, Update};

pub(super) const RULE: Rule = Rule {
    id: "D1",
    demands: "The Job and the first machine of an update are created only when all add-ons of its release (of several networks, \
              one) are in the workload cluster, and were seen there by whoever makes their pods.",
    topics: &[Topic::Machines],
    check,
};

/// The add-ons of which a cluster has one.
pub(super) const NETWORKS: [&str; 2] = ["antrea", "calico"];

fn check(cluster: &Cluster, fact: &Fact, findings: &mut Findings) {
    let machines = || cluster.machines.values();
    match fact {
        Fact::JobCreated { job } => {
            let update = cluster.running_update().filter(|update| !machines().any(|machine| update.brings(machine)));
            if let Some(update) = update {
                check_addons(cluster, update, &format!("Job {job}"), findings);
            }
        }
        Fact::MachineCreated { machine: name, .. } => {
            let Some(machine) = cluster.machines.get(name) else { return };
            let mut others = cluster.machines.iter().filter(|(other, _)| *other != name).map(|(_, other)| other);
            match cluster.running_update().filter(|update| update.brings(machine)) {
                Some(update) if !others.any(|other| update.brings(other)) => {
                    check_addons(cluster, update, &format!("Machine {name}"), findings);
                }
                // A machine that is newer than all others is the first of an update, whether or not there is a record of it.
                None if cluster.is_ours()
                    && machines().count() > 1
                    && others.all(|other| other.version < machine.version) =>
                {
                    let text =
                        format!("Machine {name} is newer than all others, and no update that is running leads to it");
                    findings.breach(&**name, text);
                }
                Some(_) | None => {}
            }
        }
        _ => {}
    }
}

fn check_addons(cluster: &Cluster, update: &Update, created: &str, findings: &mut Findings) {
    let to = &update.to_distribution;
    let is_there = |addon: &str| cluster.workload.has_addon(addon, to);
    let is_network = |addon: &str| NETWORKS.contains(&addon);
    let has_network = update.addons.iter().any(|addon| is_network(addon) && is_there(addon));
    for addon in &update.addons {
        if !is_there(addon) && (!is_network(addon) || !has_network) {
            findings.breach(&**addon, format!("{created} is created before add-on {addon} of {to} is there"));
        }
    }
}
