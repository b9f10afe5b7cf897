//! W3: a pool that is rolled has neither too many machines nor too few.

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Role, Topic};

pub(super) const RULE: Rule = Rule {
    id: "W3",
    demands: "A pool has no more machines than its number and its surge when one is made, and no fewer available ones than its number \
              less what may be unavailable when one is removed.",
    topics: &[Topic::Machines],
    check,
};

/// What a person deletes, and what is deleted because it is not well, is not the pool's own doing.
fn check(cluster: &Cluster, fact: &Fact, findings: &mut Findings) {
    let (name, is_made) = match fact {
        Fact::MachineCreated { machine, role: Role::Worker, .. } => (machine, true),
        Fact::MachineDeleting { machine } => (machine, false),
        _ => return,
    };
    let Some(machine) = cluster.machines.get(name) else { return };
    let Some((pool_name, pool)) = machine.pool.as_ref().and_then(|pool| cluster.pools.get_key_value(pool)) else {
        return;
    };
    let bounds = pool.bounds;
    let mates = || cluster.machines.iter().filter(|(_, mate)| mate.pool == machine.pool && !mate.deleting);
    if cluster.is_ending() || pool.deleting || bounds.on_delete {
        return;
    }
    if is_made {
        let (count, most) = (mates().count(), (bounds.replicas + bounds.surge_max) as usize);
        if count > most {
            findings
                .breach(&**name, format!("MachineDeployment {pool_name} has {count} machines, and may have {most}"));
        }
        return;
    }
    let was_available = cluster.workload.nodes.get(name).is_some_and(|node| node.ready);
    let by_machinery = cluster.actor.is_some_and(crate::actor::Actor::empties_machines);
    let available = mates().filter(|(mate, machine)| cluster.is_available(mate, machine)).count();
    let least = bounds.replicas.saturating_sub(bounds.unavailable_max) as usize;
    if was_available && by_machinery && !machine.removal.is_remedy && available < least {
        let text = format!("MachineDeployment {pool_name} has {available} machines available, and must have {least}");
        findings.breach(&**name, text);
    }
}
