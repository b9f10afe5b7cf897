//! E3: the members of etcd change one at a time.

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Topic};

pub(super) const RULE: Rule = Rule {
    id: "E3",
    demands: "At most one member of etcd is on its way in, and no other is removed meanwhile.",
    topics: &[Topic::Etcd],
    check,
};

fn check(cluster: &Cluster, fact: &Fact, findings: &mut Findings) {
    if cluster.is_ending() {
        return;
    }
    let joining: Vec<&str> = cluster.workload.joining().collect();
    if joining.len() > 1 {
        findings.breach("joining", format!("these join etcd at once: {}", joining.join(", ")));
    }
    if let Fact::MemberRemoved { node, member, .. } = fact
        && member.started
        && !member.learner
        && let Some(other) = joining.first()
    {
        findings.breach(&**node, format!("{node} is removed from etcd while {other} joins"));
    }
}
