//! E10: etcd is never without a voter.

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Topic};

pub(super) const RULE: Rule = Rule {
    id: "E10",
    demands: "The last voter of etcd is never removed, and the last but one only when both are healthy.",
    topics: &[Topic::Etcd],
    check,
};

fn check(cluster: &Cluster, fact: &Fact, findings: &mut Findings) {
    let Fact::MemberRemoved { node: removed, member, healthy } = fact else { return };
    if member.learner || cluster.is_ending() {
        return;
    }
    let workload = &cluster.workload;
    let mut left = workload.voters();
    match (left.next(), left.next()) {
        (None, _) => findings.breach(&**removed, format!("{removed} was the last voter of etcd, and is removed")),
        (Some((node, last)), None) if !(*healthy && workload.is_healthy(node, last)) => {
            findings.breach(
                &**removed,
                format!("{removed} is removed from etcd: of the last two voters one is not healthy"),
            );
        }
        (Some(_), _) => {}
    }
}
