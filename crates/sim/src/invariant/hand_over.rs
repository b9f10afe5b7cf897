//! O5: a certificate changes hands without being dropped.

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Topic};

pub(super) const RULE: Rule = Rule {
    id: "O5",
    demands: "A certificate gets a new owner before it loses the old one: no write exchanges all of them.",
    topics: &[Topic::Secrets],
    check,
};

fn check(cluster: &Cluster, fact: &Fact, findings: &mut Findings) {
    let Fact::SecretHandedOver { secret } = fact else { return };
    if !cluster.is_ending() {
        findings
            .breach(&**secret, format!("the Secret {secret} lost all owners that it had, for others, in one write"));
    }
}
