//! C6: a Job is tried four times.

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Topic};

/// The first, and three more.
const ATTEMPTS_MAX: u32 = 4;

pub(super) const RULE: Rule = Rule {
    id: "C6",
    demands: "A Job that updates a control plane fails at most four times.",
    topics: &[Topic::Machines],
    check,
};

fn check(_: &Cluster, fact: &Fact, findings: &mut Findings) {
    let Fact::JobAttemptFailed { job, failed } = fact else { return };
    if *failed > ATTEMPTS_MAX {
        findings.breach(&**job, format!("Job {job} has failed {failed} times"));
    }
}
