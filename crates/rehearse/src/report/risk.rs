//! Risks, as people read them: in a report, and in a plan.

use std::collections::{BTreeMap, BTreeSet};

use windlass_plan::risk::{Risk, Severity};

/// Of more than this that was not read, only the ids are told.
const TOLD_MAX: usize = 5;

/// A line for each, with what is behind it and the way out. What is good to know and nothing else is left to the document.
pub fn lines(risks: &[Risk]) -> Vec<String> {
    let mut lines = Vec::new();
    for risk in risks.iter().filter(|risk| risk.severity < Severity::Unknown) {
        let sign = if risk.blocks() { '✖' } else { '▲' };
        lines.push(format!("{sign} {} {}: {}", risk.id, risk.object, risk.message));
        lines.extend(risk.because.iter().map(|because| format!("    because {because}")));
        if !risk.way_out.is_empty() {
            lines.push(format!("    way out: {}", risk.way_out));
        }
    }
    lines.extend(undecided(risks));
    lines
}

/// What could not be decided, by what was not read. Of much of that the ids are enough: a whole cluster is out of reach.
fn undecided(risks: &[Risk]) -> Vec<String> {
    let mut gaps: BTreeMap<(&str, &[String]), Vec<&str>> = BTreeMap::new();
    for risk in risks.iter().filter(|risk| risk.severity == Severity::Unknown) {
        gaps.entry((&risk.object, &risk.because)).or_default().push(risk.id.as_str());
    }
    if gaps.len() > TOLD_MAX {
        let ids: BTreeSet<&str> = gaps.into_values().flatten().collect();
        let ids: Vec<&str> = ids.into_iter().collect();
        return vec![format!("? not decided, as something was not read: {}", ids.join(", "))];
    }
    let line = |((what, why), ids): ((&str, &[String]), Vec<&str>)| {
        format!("? {} not decided: {what}: {}", ids.join(", "), why.join("; "))
    };
    gaps.into_iter().map(line).collect()
}
