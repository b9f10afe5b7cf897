//! O4: the authorities of a cluster stay what they are.

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Topic};

pub(super) const RULE: Rule = Rule {
    id: "O4",
    demands: "What is in a certificate's Secret never changes while its cluster lives, not even by way of a new Secret.",
    topics: &[Topic::Secrets],
    check,
};

fn check(cluster: &Cluster, fact: &Fact, findings: &mut Findings) {
    let Fact::SecretChanged { secret } = fact else { return };
    if !cluster.is_ending() {
        findings.breach(&**secret, format!("the Secret {secret} has other contents than at first"));
    }
}
