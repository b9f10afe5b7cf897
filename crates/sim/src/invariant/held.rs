//! D4: what is paused is left alone.

use jiff::SignedDuration;

use super::{Findings, Rule};
use crate::actor::Actor;
use crate::truth::{Cluster, Fact, Topic};

pub(super) const RULE: Rule = Rule {
    id: "D4",
    demands: "Two seconds after a cluster was paused, and until it is released, Windlass makes and removes no machine of it, switches \
              no pool and makes no Job.",
    topics: &[Topic::Machines],
    check,
};

/// What was decided a moment before the pause may still be written.
const UNDER_WAY: SignedDuration = SignedDuration::from_secs(2);

fn check(cluster: &Cluster, fact: &Fact, findings: &mut Findings) {
    let is_ours = matches!(cluster.actor, Some(Actor::Windlass | Actor::Upgrader));
    let Some(since) = cluster.held.since().filter(|_| is_ours && !cluster.is_ending()) else { return };
    if cluster.now.duration_since(since) <= UNDER_WAY {
        return;
    }
    let what = match fact {
        Fact::MachineCreated { machine, .. } => format!("Machine {machine} is made"),
        Fact::MachineDeleting { machine } => format!("Machine {machine} is removed"),
        Fact::PoolCreated { pool, .. } => format!("the pool {pool} is made"),
        Fact::PoolSwitched { pool, .. } => format!("the pool {pool} is switched"),
        Fact::JobCreated { job } => format!("Job {job} is made"),
        _ => return,
    };
    findings.breach(&*what, format!("{what} while the cluster is paused"));
}
