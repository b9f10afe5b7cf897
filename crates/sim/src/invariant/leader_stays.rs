//! E6: who leads etcd is not removed from it.

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Topic};

pub(super) const RULE: Rule = Rule {
    id: "E6",
    demands: "The leader of etcd is not removed while there is another voter: that one leads first.",
    topics: &[Topic::Etcd],
    check,
};

fn check(cluster: &Cluster, fact: &Fact, findings: &mut Findings) {
    let Fact::MemberRemoved { node, member, .. } = fact else { return };
    if member.leader && cluster.workload.voters().next().is_some() && !cluster.is_ending() {
        findings.breach(&**node, format!("{node} is removed from etcd, and leads it"));
    }
}
