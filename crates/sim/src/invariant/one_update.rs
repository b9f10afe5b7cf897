//! C4: one update at a time.

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Topic};

pub(super) const RULE: Rule = Rule {
    id: "C4",
    demands: "At most one update of a cluster runs, by at most one Job, and its id never changes.",
    topics: &[Topic::Request, Topic::Machines],
    check,
};

fn check(cluster: &Cluster, fact: &Fact, findings: &mut Findings) {
    if let Fact::UpdateRenamed { update, was } = fact {
        findings.breach(&**update, format!("ClusterUpdate {update} had the id {was}, and has another"));
    }
    if cluster.running_updates.len() > 1 {
        let names: Vec<&str> = cluster.running_updates.keys().map(|name| &**name).collect();
        findings.breach("updates", format!("these updates run at once: {}", names.join(", ")));
    }
    let mut jobs = cluster.active_jobs();
    if let (Some(first), Some(second)) = (jobs.next(), jobs.next()) {
        findings.breach("jobs", format!("Job {first} and Job {second} update the control plane at once"));
    }
}
