//! V10: etcd goes from minor to minor.

use windlass_api::version::facts::etcd_floor;

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Topic};

pub(super) const RULE: Rule = Rule {
    id: "V10",
    demands: "The members of etcd are at most one minor apart, no minor is skipped, and none is entered from a patch that cannot.",
    topics: &[Topic::Etcd],
    check,
};

fn check(cluster: &Cluster, fact: &Fact, findings: &mut Findings) {
    let Fact::MemberVersion { node, newest } = fact else { return };
    let members = &cluster.workload.members;
    let Some(version) = members.get(node).and_then(|member| member.version.as_ref()) else { return };
    let minor = version.minor();
    if let Some(newest) = newest.filter(|newest| !minor.distance_from(*newest).is_within(1, 1)) {
        findings.breach(format!("step {node}"), format!("etcd on {node} is {version}, and the newest was {newest}"));
    }
    let others = members.iter().filter(|(other, _)| *other != node);
    for (other, at) in others.filter_map(|(other, member)| Some((other, member.version.as_ref()?))) {
        if !version.distance_from(at).is_within(1, 1) {
            let text = format!("etcd on {node} is {version}, and that on {other} is {at}");
            findings.breach(format!("apart {other}"), text);
        }
        let floor = etcd_floor(at.minor(), minor);
        if let Some(floor) = floor.filter(|floor| at.patch() < *floor) {
            let text = format!(
                "etcd on {node} is {version}, and that on {other} is {at}: it has to be at patch {floor} first"
            );
            findings.breach(format!("floor {other}"), text);
        }
    }
}
