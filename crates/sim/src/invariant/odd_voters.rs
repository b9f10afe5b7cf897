//! E12: etcd beside API servers has an odd number of voters, and stays there.

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Topic};

pub(super) const RULE: Rule = Rule {
    id: "E12",
    demands: "A control plane with etcd on its machines has an odd number of them, and etcd never moves out or in.",
    topics: &[Topic::Request, Topic::Configuration],
    check,
};

fn check(cluster: &Cluster, fact: &Fact, findings: &mut Findings) {
    if let Fact::KubeadmConfigured { flipped: true } = fact {
        findings
            .breach("place", "etcd was on the machines of the control plane and is not any more, or now is".to_owned());
    }
    let is_external = cluster.control_plane.as_ref().is_some_and(|control_plane| control_plane.external_etcd);
    let count = cluster.control_plane_count().filter(|count| count.is_multiple_of(2));
    if let Some(count) = count.filter(|count| *count > 0 && !is_external && !cluster.is_ending()) {
        findings
            .breach("count", format!("the control plane is asked to have {count} machines, each with a voter of etcd"));
    }
}
