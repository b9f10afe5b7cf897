//! V6: a cluster goes from minor to minor.

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Topic};

pub(super) const RULE: Rule = Rule {
    id: "V6",
    demands: "The API servers of a cluster skip no minor, also where there is only one.",
    topics: &[Topic::Nodes],
    check,
};

fn check(cluster: &Cluster, _: &Fact, findings: &mut Findings) {
    let served = &cluster.workload.minors_served;
    for (before, after) in served.iter().zip(served.iter().skip(1)) {
        if before.next() != Some(*after) {
            findings.breach(
                after.to_string(),
                format!("there is an API server of {after}, and there was none after {before}"),
            );
        }
    }
}
