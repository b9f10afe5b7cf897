//! What is going on already, and who has a say in it.

use super::evidence::{Evidence, HoldOn, Update, UpdateState};
use super::{Found, Risk, RiskId, Severity};

pub(super) fn check(evidence: &Evidence, found: &mut Found) {
    if !evidence.rolls.any() {
        return;
    }
    let updates = found.read(&[RiskId::UpdateInProgress, RiskId::UpdateFailedBefore], &evidence.updates);
    if let Some(last) = updates.last() {
        found.risks.extend(running(last, evidence).or_else(|| failed(last, evidence)));
    }
    let to = evidence.to.read().map(|to| to.distribution.to_string());
    let earlier = updates.split_last().map_or(&[][..], |(_, earlier)| earlier);
    for update in earlier.iter().filter(|update| Some(&update.to) == to.as_ref()) {
        found.risks.extend(failed_to_the_same(update, evidence));
    }
    for hold in found.read(&[RiskId::Hold], &evidence.holds) {
        let (severity, effect) = match hold.on {
            HoldOn::Cluster => (Severity::Blocks, "nothing of the cluster is changed"),
            HoldOn::Pool => (Severity::Blocks, "its machines stay as they are, and the update does not end"),
            HoldOn::Machine => (Severity::Risky, "once it is on the way out, it stays until whoever holds it lets go"),
        };
        found.raise(Risk {
            severity,
            id: RiskId::Hold,
            object: hold.object.clone(),
            message: format!("{}: {effect}", hold.how),
            because: Vec::new(),
            way_out: hold.way_out.clone(),
        });
    }
    for keeper in found.read(&[RiskId::GitopsDrift], &evidence.keepers) {
        found.raise(Risk {
            severity: Severity::Risky,
            id: RiskId::GitopsDrift,
            object: keeper.object.clone(),
            message: format!(
                "{} of {} keeps it as its repository has it, and sets back what is typed",
                keeper.of, keeper.tool
            ),
            because: vec!["a release that is set back in the middle of an update is another update".to_owned()],
            way_out: "make the change in the repository".to_owned(),
        });
    }
}

fn object(update: &Update, evidence: &Evidence) -> String {
    format!("ClusterUpdate {}/{}", evidence.cluster.namespace, update.name)
}

fn running(update: &Update, evidence: &Evidence) -> Option<Risk> {
    (update.state == UpdateState::Running).then(|| Risk {
        severity: Severity::Risky,
        id: RiskId::UpdateInProgress,
        object: object(update, evidence),
        message: format!("it leads to {} and has not ended: what is asked for now begins when it has", update.to),
        because: update.because.clone(),
        way_out: format!("windlass why {0}; wait, or windlass abort {0}", evidence.cluster.name),
    })
}

fn failed(update: &Update, evidence: &Evidence) -> Option<Risk> {
    (update.state == UpdateState::Failed).then(|| Risk {
        severity: Severity::Blocks,
        id: RiskId::UpdateFailedBefore,
        object: object(update, evidence),
        message: format!(
            "the last update, to {}, has failed, and none begins before somebody has seen to that",
            update.to
        ),
        because: update.because.clone(),
        way_out: format!(
            "windlass logs {0} says why; when that is repaired, windlass retry {0}",
            evidence.cluster.name
        ),
    })
}

fn failed_to_the_same(update: &Update, evidence: &Evidence) -> Option<Risk> {
    let how = match update.state {
        UpdateState::Failed => "failed",
        UpdateState::Aborted => "was given up",
        UpdateState::Running | UpdateState::Succeeded => return None,
    };
    Some(Risk {
        severity: Severity::Risky,
        id: RiskId::UpdateFailedBefore,
        object: object(update, evidence),
        message: format!("an earlier update to the same release, {}, {how}", update.to),
        because: update.because.clone(),
        way_out: format!(
            "kubectl -n {} get clusterupdate {} -o yaml says why",
            evidence.cluster.namespace, update.name
        ),
    })
}
