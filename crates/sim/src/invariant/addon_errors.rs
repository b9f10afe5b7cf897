//! D8: an add-on that fails holds up the control plane, and nothing else.

use super::addons_first::NETWORKS;
use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Role, Topic, Update};

pub(super) const RULE: Rule = Rule {
    id: "D8",
    demands: "While an add-on cannot be applied, no Job of an update is created, and no first machine if it was not applied when the \
              Job was created; and the other add-ons of the release (of several networks, one) are applied all the same before the \
              update gives up.",
    topics: &[Topic::Machines, Topic::Request],
    check,
};

fn check(cluster: &Cluster, fact: &Fact, findings: &mut Findings) {
    let (Some(wish), Some(update)) = (&cluster.wish, &cluster.update) else { return };
    if wish.addon_errors.is_empty() || cluster.is_ending() {
        return;
    }
    let errors = || wish.addon_errors.iter().map(|addon| &**addon);
    let failed = errors().collect::<Vec<_>>().join(", ");
    match fact {
        Fact::JobCreated { job } => {
            findings.breach(&**job, format!("Job {job} is created, and these add-ons could not be applied: {failed}"));
        }
        Fact::MachineCreated { machine, role: Role::ControlPlane, .. } if is_first(cluster, update, machine) => {
            // One that was applied is there, as D1 asks: what is said of it since is that nobody could look.
            let failed: Vec<&str> = errors().filter(|addon| !cluster.was_applied(addon)).collect();
            if !failed.is_empty() {
                let failed = failed.join(", ");
                let text = format!("Machine {machine} is created, and these add-ons could not be applied: {failed}");
                findings.breach(&**machine, text);
            }
        }
        Fact::UpdateFailed { .. } => {
            let is_known = |addon: &str| {
                wish.addon_errors.contains(addon) || cluster.workload.has_addon(addon, &update.to_distribution)
            };
            let is_network = |addon: &str| NETWORKS.contains(&addon);
            let has_network = update.addons.iter().any(|addon| is_network(addon) && is_known(addon));
            let others = update.addons.iter().filter(|addon| !is_known(addon));
            for addon in others.filter(|addon| !is_network(addon) || !has_network) {
                let text = format!("add-on {addon} was not applied, and only these could not be: {failed}");
                findings.breach(&**addon, text);
            }
        }
        _ => {}
    }
}

fn is_first(cluster: &Cluster, update: &Update, machine: &str) -> bool {
    let brought = cluster.machines.iter().filter(|(_, machine)| update.brings(machine));
    brought.map(|(name, _)| &**name).eq([machine])
}
