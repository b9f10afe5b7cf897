//! A plan as people read it.

use windlass_plan::check::Finding;
use windlass_plan::step::Stage;

use super::{PlanReport, StageForeseen};

impl PlanReport {
    /// For people, on a terminal or in a message.
    pub(super) fn text(&self) -> String {
        if !self.changes() && self.findings.is_empty() {
            return format!("{} is at {}: nothing to do.", self.cluster, self.to);
        }
        let from = self.update.as_ref().filter(|update| update.from != self.to);
        let from = from.map(|update| format!("{} -> ", update.from)).unwrap_or_default();
        let mut lines = vec![format!("Plan {}: {from}{}", self.cluster, self.to), format!("  why: {}", self.why)];
        lines.extend(self.way.as_ref().map(|way| format!("  way: {way}")));
        for (stage, number) in self.stages.iter().zip(1..) {
            lines.extend(stage_lines(number, stage));
        }
        if !self.exemptions.is_empty() {
            lines.push("\nTolerated for a while".to_owned());
            lines.extend(self.exemptions.iter().map(|exemption| format!("  {exemption}")));
        }
        if !self.findings.is_empty() {
            lines.push("\nFindings".to_owned());
            lines.extend(self.findings.iter().map(|finding| {
                let Finding { id, severity, object, message } = finding;
                format!("  {severity:?} {id} {object}: {message}")
            }));
        }
        lines.extend(section("Risks", &self.outlook.risks()));
        lines.extend(self.changes().then(|| format!("\nTime: {}", self.outlook.time())));
        lines.push(format!("\nEnvelope {}", self.envelope_digest));
        lines.push(self.summary());
        lines.join("\n")
    }

    /// For people who review it: as a document beside what asks for it.
    pub(super) fn markdown(&self) -> String {
        let from = self.update.as_ref().filter(|update| update.from != self.to);
        let from = from.map(|update| format!("{} → ", update.from)).unwrap_or_default();
        let mut lines = vec![format!("# {}: {from}{}\n", self.subject, self.to), format!("{}.", self.why)];
        lines.extend(self.way.as_ref().map(|way| format!("\nThe whole way: {way}.")));
        for (stage, number) in self.stages.iter().zip(1..) {
            lines.push(format!("\n## {number}. {}\n", stage.stage));
            if stage.changes.is_empty() {
                lines.push("Nothing to change.".to_owned());
            }
            lines.extend(stage.changes.iter().map(|change| format!("- {change}")));
            lines.extend(stage.waits.iter().map(|wait| format!("- waits: {}", wait.message)));
        }
        if !self.exemptions.is_empty() {
            lines.push("\n## Tolerated for a while\n".to_owned());
            lines.extend(self.exemptions.iter().map(|exemption| format!("- {exemption}")));
        }
        if !self.findings.is_empty() {
            lines.push("\n## Findings\n".to_owned());
            lines.extend(self.findings.iter().map(|finding| {
                let Finding { id, severity, object, message } = finding;
                format!("- {severity:?} {id} {object}: {message}")
            }));
        }
        let risks = self.outlook.risks();
        if !risks.is_empty() {
            lines.push("\n## Risks\n".to_owned());
            // What is behind a risk is a part of it.
            lines.extend(risks.iter().map(|line| match line.strip_prefix("    ") {
                Some(more) => format!("  - {more}"),
                None => format!("- {line}"),
            }));
        }
        lines.extend(self.changes().then(|| format!("\nTime: {}.", self.outlook.time())));
        lines.push(format!("\nEnvelope `{}`. {}\n", self.envelope_digest, self.summary()));
        lines.join("\n")
    }

    /// The whole in one line.
    fn summary(&self) -> String {
        let of = |stage: Stage| self.stages.iter().filter(move |report| report.stage == stage);
        let count = |stage| of(stage).map(|report| report.changes.len()).sum::<usize>();
        let held = self.stages.iter().filter(|stage| !stage.waits.is_empty() && !stage.changes.is_empty()).count();
        format!(
            "Plan: {} of packages, {} of the control plane, {} of the workers; {held} of {} stages would wait first.",
            changes(count(Stage::Packages)),
            changes(count(Stage::ControlPlane)),
            changes(count(Stage::Workers)),
            self.stages.len(),
        )
    }
}

/// Lines below a title, if there are any.
pub(super) fn section(title: &str, lines: &[String]) -> Vec<String> {
    let title = (!lines.is_empty()).then(|| format!("\n{title}"));
    title.into_iter().chain(lines.iter().map(|line| format!("  {line}"))).collect()
}

pub(super) fn changes(count: usize) -> String {
    match count {
        1 => "1 change".to_owned(),
        count => format!("{count} changes"),
    }
}

fn stage_lines(number: u32, stage: &StageForeseen) -> Vec<String> {
    let mut lines = vec![format!("\n{number} {}", stage.stage)];
    if stage.changes.is_empty() {
        lines.push("  nothing to change".to_owned());
    }
    lines.extend(stage.changes.iter().map(|change| format!("  {change}")));
    lines.extend(stage.waits.iter().flat_map(|wait| {
        let since = wait.since.map(|since| format!(" (since {since:.0})")).unwrap_or_default();
        let why = format!("  waits: {}{since}", wait.message);
        [Some(why), wait.way_out.as_ref().map(|way_out| format!("    way out: {way_out}"))].into_iter().flatten()
    }));
    lines
}
