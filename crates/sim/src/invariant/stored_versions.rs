//! V12: what is stored can be read.

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Topic};

pub(super) const RULE: Rule = Rule {
    id: "V12",
    demands: "Each version that objects of a custom kind are stored in is served.",
    topics: &[Topic::Configuration],
    check,
};

fn check(_: &Cluster, fact: &Fact, findings: &mut Findings) {
    let Fact::StoredUnserved { definition, unserved } = fact else { return };
    let text = format!("{definition} has objects stored in {}, and does not serve that", unserved.join(", "));
    findings.breach(&**definition, text);
}
