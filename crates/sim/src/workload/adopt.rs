//! A cluster that was made from the objects of another API server: what is no object is made up from what they show.

use std::collections::BTreeSet;

use windlass_api::name::NodeName;

use super::record::{self, Machine};
use super::{Alarm, Member, Trouble, Workload, kubelet};

/// A member of etcd as it was seen elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// What it says of itself.
    pub member: Member,
    /// What it warns of.
    pub alarms: BTreeSet<Alarm>,
}

impl Workload {
    /// Makes up the machines and members of a cluster that has nodes and no records. A node that nobody hears of is a machine
    /// that is switched off; every other is one that is switched on. Members are as they were seen. Where none were, all
    /// machines of the control plane have one, of which the first leads.
    pub fn adopt(&self, seen: &[Seen]) {
        let _lock = self.lock();
        let store = self.0.server.store();
        if store.count(record::MACHINES) > 0 {
            return;
        }
        for (machine, control_plane) in kubelet::machines_behind_nodes(store, self.0.clock.now()) {
            if control_plane && seen.is_empty() {
                self.put(&self.new_member(&machine.name, true, false));
            }
            self.put(&machine);
        }
        // An API that was read had a quorum, whatever is said of its members.
        let voters = || seen.iter().filter(|seen| !seen.member.learner);
        let believed = voters().filter(|seen| seen.member.healthy).count() > voters().count() / 2;
        for seen in seen {
            self.adopt_member(seen, seen.member.healthy || !believed);
        }
        self.settle();
    }

    fn adopt_member(&self, seen: &Seen, healthy: bool) {
        let Member { id, name, learner, leader, version, .. } = seen.member.clone();
        let started = !name.is_empty();
        // One that has not started has no name yet.
        let name = if started { name } else { format!("unstarted-{id:x}") };
        let Ok(node) = NodeName::new(&name) else { return };
        self.put(&record::Member { id, name: node.clone(), learner, started, leader, version });
        let machine = record::of::<Machine>(self.0.server.store(), &node);
        match machine {
            // It answers, so its machine is on, whatever its kubelet does.
            Some(machine) if healthy && !machine.on => self.put(&Machine { on: true, off_at: None, ..machine }),
            _ => {}
        }
        let cut_off = started && !healthy;
        if cut_off || !seen.alarms.is_empty() {
            self.put(&Trouble { name: node, cut_off, alarms: seen.alarms.clone() });
        }
    }
}
