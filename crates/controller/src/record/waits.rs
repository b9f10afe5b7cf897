//! All that is waited for, with what is behind it: what the checker objects to, what could not be written, and what the gates say.

use windlass_api::kind::cluster_update::WaitingFor;
use windlass_plan::check::Severity;
use windlass_plan::gate::Blocked;
use windlass_plan::report::{Secrets, StageReport};
use windlass_plan::why::Known;

use super::Recorded;
use super::condition::moment;

/// The waits of now; those that were told before are known by their moment.
pub(super) fn waits(recorded: &Recorded<'_>, before: &[WaitingFor]) -> Vec<WaitingFor> {
    let report = &recorded.planned.report;
    let current = report.current().map_or("", |stage| stage.stage.as_str());
    let fatal = recorded.findings.iter().filter(|finding| finding.severity == Severity::Fatal);
    let objections = fatal.map(|finding| WaitingFor {
        stage: current.to_owned(),
        reason: finding.id.clone(),
        object: finding.object.clone(),
        message: finding.message.clone(),
        since: since(recorded, before, &finding.id, &finding.object),
        ..WaitingFor::default()
    });
    let failures = recorded.executed.failures.iter().map(|failure| WaitingFor {
        stage: failure.stage.as_str().to_owned(),
        reason: failure.error.category().to_owned(),
        object: failure.role.clone(),
        message: failure.error.to_string(),
        since: since(recorded, before, failure.error.category(), &failure.role),
        ..WaitingFor::default()
    });
    let blocked = report.stages.iter().flat_map(|stage| stage.blocked.iter().map(|it| of_gate(recorded, stage, it)));
    objections.chain(failures).chain(blocked).chain(missing_secret(recorded, before)).collect()
}

fn of_gate(recorded: &Recorded<'_>, stage: &StageReport, blocked: &Blocked) -> WaitingFor {
    let known =
        Known { report: &recorded.planned.report, inventory: &recorded.input.inventory, attempts: recorded.attempts };
    let because = known.because(blocked);
    WaitingFor {
        stage: stage.stage.as_str().to_owned(),
        reason: blocked.reason().to_owned(),
        object: blocked.object(),
        message: blocked.to_string(),
        since: recorded.planned.report.since(blocked).map(moment),
        way_out: because.way_out,
        because: because.links,
        deadline: because.deadline.map(moment),
    }
}

/// A certificate that is missing, where no stage has asked for it.
fn missing_secret(recorded: &Recorded<'_>, before: &[WaitingFor]) -> Option<WaitingFor> {
    let report = &recorded.planned.report;
    let Secrets::Missing(blocked) = &report.secrets else { return None };
    if report.stages.iter().any(|stage| stage.blocked.contains(blocked)) {
        return None;
    }
    Some(WaitingFor {
        stage: windlass_plan::step::Stage::ControlPlane.as_str().to_owned(),
        reason: blocked.reason().to_owned(),
        object: blocked.object(),
        message: blocked.to_string(),
        since: since(recorded, before, blocked.reason(), &blocked.object()),
        way_out: Some(blocked.way_out()),
        because: vec![format!("{blocked}; {}", blocked.way_out())],
        deadline: None,
    })
}

/// That the image of the release is not what it was. Nothing waits for it.
pub(super) fn missing_image(recorded: &Recorded<'_>) -> Option<WaitingFor> {
    let (image, release) = (&recorded.input.inventory.releases.image, &recorded.input.target.release);
    let (reason, message) = image.reason().zip(image.told(release))?;
    Some(WaitingFor {
        reason: reason.to_owned(),
        object: format!("VirtualMachineImage/{}", release.image().map(AsRef::as_ref).unwrap_or_default()),
        message,
        way_out: image.way_out().map(str::to_owned),
        ..WaitingFor::default()
    })
}

/// Since when an objection or a failure is waited out: since the look that first recorded it, with an update or, once that has
/// ended, with its cluster. What gates say is dated by whoever planned.
fn since(recorded: &Recorded<'_>, before: &[WaitingFor], reason: &str, object: &str) -> Option<String> {
    let input = recorded.input;
    let update = input.inventory.update.as_ref()?;
    let on_record = update.waiting.iter().find(|waited| waited.reason == reason && waited.object == object);
    let told = || before.iter().find(|wait| wait.reason == reason && wait.object == object)?.since.clone();
    on_record.map(|waited| moment(waited.since)).or_else(told).or_else(|| Some(moment(input.now)))
}
