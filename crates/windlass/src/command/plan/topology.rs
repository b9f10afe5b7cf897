//! A cluster of a class: its packages, then what Cluster API makes of its machines.

use serde::Serialize;
use windlass_api::name::NamespacedName;
use windlass_plan::bootstrap::envelope::ClassEnvelope;
use windlass_plan::step::Stage;
use windlass_rehearse::preview::{ClassPreview, PackageChange};

use super::outlook::Outlook;
use super::text::{changes, section};
use crate::wanted::Wanted;

/// What a change would do to a cluster of a class.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClassReport {
    cluster: String,
    namespace: String,
    /// Both.
    #[serde(skip)]
    pub subject: NamespacedName,
    /// The release that it has.
    from: String,
    /// The release that it would have.
    pub to: String,
    /// What was asked for.
    why: String,
    /// What the release says, as one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release_digest: Option<String>,
    /// What the whole upgrade may do, and what is approved; nothing where that cannot be said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub envelope_digest: Option<String>,
    stages: Vec<StageForeseen>,
    /// The packages that would be others.
    packages: Vec<PackageChange>,
    #[serde(flatten)]
    outlook: Outlook,
}

#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
struct StageForeseen {
    stage: Stage,
    changes: Vec<String>,
    waits: Vec<String>,
}

impl ClassReport {
    pub fn of(preview: ClassPreview, cluster: &NamespacedName, wanted: &Wanted, outlook: Outlook) -> Self {
        let waits = |stage: Stage| match stage {
            Stage::Packages => Vec::new(),
            Stage::ControlPlane => preview.waits().into_iter().collect(),
            Stage::Workers if preview.control_plane.is_empty() || wanted.delete => Vec::new(),
            Stage::Workers => vec!["the control plane comes first".to_owned()],
        };
        let stage = |stage: Stage| StageForeseen { stage, changes: preview.changes(stage), waits: waits(stage) };
        Self {
            cluster: cluster.name.to_string(),
            namespace: cluster.namespace.to_string(),
            subject: cluster.clone(),
            why: format!("it was asked for: {}", wanted.words()),
            release_digest: preview.envelope.as_ref().map(|envelope| envelope.release_digest.clone()),
            envelope_digest: preview.envelope.as_ref().map(ClassEnvelope::digest),
            stages: Stage::ALL.map(stage).into(),
            outlook,
            from: preview.from,
            to: preview.to,
            packages: preview.packages,
        }
    }

    /// Whether there is anything to change.
    pub fn changes(&self) -> bool {
        self.stages.iter().any(|stage| !stage.changes.is_empty())
    }

    pub fn text(&self) -> String {
        if !self.changes() {
            return format!("{} is at {}: nothing to do.", self.cluster, self.to);
        }
        let from = if self.from == self.to { String::new() } else { format!("{} -> ", self.from) };
        let mut lines = vec![format!("Plan {}: {from}{}", self.cluster, self.to), format!("  why: {}", self.why)];
        for (stage, number) in self.stages.iter().zip(1..) {
            lines.extend(stage.lines(number));
        }
        lines.extend(section("Risks", &self.outlook.risks()));
        lines.push(format!("\nTime: {}", self.outlook.time()));
        let gap = if self.envelope_digest.is_some() { "" } else { "\n" };
        lines.extend(self.envelope_digest.iter().map(|digest| format!("\nEnvelope {digest}")));
        let count = |stage: Stage| {
            self.stages.iter().filter(|known| known.stage == stage).map(|known| known.changes.len()).sum()
        };
        lines.push(format!(
            "{gap}Plan: {} of packages, {} of the control plane, {} of the workers.",
            changes(count(Stage::Packages)),
            changes(count(Stage::ControlPlane)),
            changes(count(Stage::Workers)),
        ));
        lines.join("\n")
    }
}

impl StageForeseen {
    fn lines(&self, number: u32) -> Vec<String> {
        let mut lines = vec![format!("\n{number} {}", self.stage)];
        if self.changes.is_empty() {
            lines.push("  nothing to change".to_owned());
            return lines;
        }
        lines.extend(self.changes.iter().map(|change| format!("  {change}")));
        lines.extend(self.waits.iter().map(|wait| format!("  waits: {wait}")));
        lines
    }
}
