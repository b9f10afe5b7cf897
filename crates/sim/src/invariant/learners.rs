//! E4: a member learns before it counts.

use windlass_api::version::facts::joins_etcd_as_learner;

use super::exemption::JOIN_WITHOUT_LEARNING;
use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Topic};

pub(super) const RULE: Rule = Rule {
    id: "E4",
    demands: "A member joins etcd as a learner, counts only when it has started, and does not lead before it counts.",
    topics: &[Topic::Etcd],
    check,
};

fn check(cluster: &Cluster, fact: &Fact, findings: &mut Findings) {
    let workload = &cluster.workload;
    match fact {
        // The first member has nobody to learn from.
        Fact::MemberAdded { node, learner: false } if workload.members.len() > 1 => {
            let text = format!("{node} is added to etcd, and counts at once");
            match workload.running.get(node) {
                Some(kubeadm) if !joins_etcd_as_learner(kubeadm) => {
                    findings.exempt(&JOIN_WITHOUT_LEARNING, &**node, text);
                }
                Some(_) | None => findings.breach(&**node, text),
            }
        }
        Fact::MemberPromoted { node } if !workload.members.get(node).is_some_and(|member| member.started) => {
            findings.breach(&**node, format!("etcd on {node} counts, and has not started"));
        }
        Fact::LeaderMoved { node } if workload.members.get(node).is_some_and(|member| member.learner) => {
            findings.breach(&**node, format!("etcd on {node} leads, and is a learner"));
        }
        _ => {}
    }
}
