//! Asks the rules, and remembers what they said.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::{Exempted, Finding, Findings, RULES, Rule, Violation};
use crate::truth::{Cluster, Fact};

/// What rules have found so far, and what of it still holds.
#[derive(Clone, Default)]
pub(crate) struct Watch {
    violations: Vec<Violation>,
    exempted: Vec<Exempted>,
    /// The subjects that a rule found in a cluster when it was asked last.
    open: BTreeMap<(Box<str>, &'static str), BTreeSet<String>>,
}

impl Watch {
    pub(crate) fn violations(&self) -> &[Violation] {
        &self.violations
    }

    pub(crate) fn exempted(&self) -> &[Exempted] {
        &self.exempted
    }

    /// Asks every rule that the fact concerns.
    pub(crate) fn check(&mut self, truth: &Cluster, fact: &Fact, cluster: &str, at: Timestamp, write: u64) {
        for rule in RULES.iter().filter(|rule| rule.topics.contains(&fact.topic())) {
            let mut findings = Findings::default();
            (rule.check)(truth, fact, &mut findings);
            self.take(rule, findings, cluster, at, write);
        }
    }

    fn take(&mut self, rule: &Rule, findings: Findings, cluster: &str, at: Timestamp, write: u64) {
        let Findings { breaches, exempted } = findings;
        // Nearly always: nothing is wrong, and nothing was.
        if breaches.is_empty() && exempted.is_empty() && self.open.is_empty() {
            return;
        }
        let key = (Box::from(cluster), rule.id);
        let before = self.open.remove(&key).unwrap_or_default();
        let mut open = BTreeSet::new();
        for Finding { subject, message } in breaches {
            let subject = format!("breach {subject}");
            if !before.contains(&subject) {
                let (id, cluster) = (rule.id.to_owned(), cluster.to_owned());
                self.violations.push(Violation { id, at, write, cluster, message });
            }
            open.insert(subject);
        }
        for (exemption, Finding { subject, message }) in exempted {
            let subject = format!("exempt {subject}");
            if !before.contains(&subject) {
                let (id, cluster) = (exemption.rule.to_owned(), cluster.to_owned());
                self.exempted.push(Exempted { id, at, write, cluster, message, why: exemption.why.to_owned() });
            }
            open.insert(subject);
        }
        if !open.is_empty() {
            self.open.insert(key, open);
        }
    }
}
