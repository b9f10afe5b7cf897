//! V3: API servers are at most one minor apart.

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Topic};

pub(super) const RULE: Rule = Rule {
    id: "V3",
    demands: "The API servers of a cluster are at most one minor apart.",
    topics: &[Topic::Nodes],
    check,
};

fn check(cluster: &Cluster, _: &Fact, findings: &mut Findings) {
    let servers = || cluster.workload.serving().map(|(node, version)| (version, node));
    let (Some((oldest, old)), Some((newest, new))) = (servers().min(), servers().max()) else { return };
    if !newest.distance_from(oldest).is_within(0, 1) {
        findings.breach("skew", format!("the API server on {old} is {oldest}, and that on {new} is {newest}"));
    }
}
