//! `windlass why`: what a cluster waits for, down to the object that everything hangs on, and the way out.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use windlass_api::kind::cluster_update::{UpdateState, WaitingFor};
use windlass_api::name::ClusterName;

use crate::changed::Changed;
use crate::client::{self, Connection};
use crate::course::ClassReport;
use crate::doing::{Doing, Sort};
use crate::error::{Exit, Failure};
use crate::output;
use crate::report::UpdateReport;
use crate::update::ways_out;

/// Say what a cluster waits for: the chain of reasons down to the cause, and what a person can do about it
///
/// Examples:
///   windlass why my-tkc
///   windlass why my-tkc -o json
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Why {
    /// The cluster
    cluster: ClusterName,
    /// Write it as a document instead, for scripts, or the name of the cluster
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Changed>,
    #[command(flatten)]
    connection: Connection,
}

impl Why {
    /// Reads what is on record, and tells it.
    pub async fn run(self) -> Result<Exit, Failure> {
        let management = self.connection.open().await?;
        let sort = Sort::of(&management, &self.cluster).await?;
        let gone = || client::Error::NoCluster { name: self.cluster.clone(), namespace: management.namespace.clone() };
        let report = WhyReport::of(sort.read(&management, &self.cluster).await?.ok_or_else(gone)?);
        match self.output {
            Some(format) => format.tell(&sort.written(&self.cluster), "WhyReport", report)?,
            None => output::data(&report.text(management.now()))?,
        }
        Ok(Exit::Done)
    }
}

/// What a cluster waits for.
#[derive(Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WhyReport {
    cluster: String,
    /// The whole in one word.
    assessment: &'static str,
    /// The update that waits, if one does.
    update: Option<String>,
    /// Why that update failed, if it did.
    failure: Option<String>,
    /// What is waited for, in the order in which a person would have to deal with it.
    waits: Vec<WaitingFor>,
    /// What would be done if somebody agreed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pending: Option<String>,
}

impl WhyReport {
    fn of(doing: Doing) -> Self {
        match doing {
            Doing::Recorded(report) => {
                let unfinished =
                    |update: &UpdateReport| matches!(update.state, Some(UpdateState::Running | UpdateState::Failed));
                let update = report.update.filter(unfinished);
                Self {
                    cluster: report.cluster,
                    assessment: report.assessment,
                    failure: update.as_ref().and_then(|update| update.failure.clone()),
                    update: update.map(|update| update.name),
                    waits: report.waits,
                    pending: report.pending,
                }
            }
            Doing::OfClass(ClassReport { cluster, assessment, waits, pending, .. }) => {
                Self { cluster, assessment, update: None, failure: None, waits, pending }
            }
        }
    }

    fn text(&self, now: Timestamp) -> String {
        let (cluster, word) = (&self.cluster, self.assessment.to_uppercase());
        let pending = self.pending.as_ref().map(|pending| format!("… pending: {pending}"));
        if self.waits.is_empty() && self.failure.is_none() {
            let nothing = pending.unwrap_or_else(|| "✔ it waits for nothing".to_owned());
            return format!("{cluster}  {word}\n{nothing}");
        }
        // What failed is told once, however many stages wait for it.
        let tells_failure = |wait: &&WaitingFor| {
            let tells = |failure: &String| {
                let is_part = !wait.message.is_empty() && failure.contains(&wait.message);
                let told = is_part || wait.message.contains(failure);
                told || wait.because.iter().any(|link| link.contains(failure))
            };
            self.failure.as_ref().is_some_and(tells)
        };
        let (failed, waits): (Vec<&WaitingFor>, Vec<&WaitingFor>) = self.waits.iter().partition(tells_failure);
        let mut sections = vec![match &self.failure {
            Some(failure) => {
                let ways = ways_out(failed).into_iter().map(|way_out| format!("\n  way out: {way_out}"));
                format!("{cluster}  {word}\n✖ the update failed: {failure}{}", ways.collect::<String>())
            }
            None => format!("{cluster}  {word}"),
        }];
        sections.extend(waits.into_iter().map(|wait| chain(wait, now)));
        sections.extend(pending);
        sections.join("\n\n")
    }
}

/// One thing that is waited for, and what is behind it.
fn chain(wait: &WaitingFor, now: Timestamp) -> String {
    let stage = if wait.stage.is_empty() { String::new() } else { format!("{}: ", wait.stage) };
    let since = wait.since.as_deref().and_then(|since| since.parse::<Timestamp>().ok());
    let since = since.map(|since| now.duration_since(since).max(SignedDuration::ZERO));
    let since = since.map(|since| format!(" ({} so far)", output::took(since))).unwrap_or_default();
    let object = if wait.object.is_empty() { String::new() } else { format!("{}: ", wait.object) };
    let mut lines = vec![format!("… {stage}{object}{}{since}", wait.message)];
    let reasons = reasons(wait);
    for (depth, link) in reasons.iter().enumerate() {
        let cause = if depth + 1 == reasons.len() { "  <- cause" } else { "" };
        lines.push(format!("{}└─ {link}{cause}", " ".repeat(2 + 3 * depth)));
    }
    lines.extend(wait.deadline.iter().map(|deadline| format!("  until: {deadline}")));
    lines.extend(wait.way_out.iter().map(|way_out| format!("  way out: {way_out}")));
    lines.join("\n")
}

/// The reasons behind it. The last one has the way out in it, which is told by itself.
fn reasons(wait: &WaitingFor) -> Vec<&str> {
    let way_out = wait.way_out.as_deref().map(|way_out| format!("; {way_out}")).unwrap_or_default();
    let links = wait.because.iter().map(|link| link.strip_suffix(&way_out).unwrap_or(link));
    links.filter(|link| *link != wait.message).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_api::kind::tanzu::TanzuKubernetesCluster;

    use super::*;
    use crate::report::Report;

    fn check(status: &serde_json::Value, update: Option<&serde_json::Value>, expected: &str) {
        let machines = json!({"count": 1, "class": "small", "storageClass": "fast"});
        let cluster = json!({
            "apiVersion": "run.tanzu.vmware.com/v1alpha1",
            "kind": "TanzuKubernetesCluster",
            "metadata": {"name": "my-tkc"},
            "spec": {"distribution": {}, "topology": {"controlPlane": machines, "workers": machines}},
            "status": status,
        });
        let update = update.map(|status| {
            let end = json!({"distribution": "", "kubernetes": "", "controlPlane": machines, "workers": machines});
            serde_json::from_value(json!({
                "apiVersion": "windlass.dev/v1alpha1",
                "kind": "ClusterUpdate",
                "metadata": {"name": "my-tkc-1"},
                "spec": {"cluster": "my-tkc", "ordinal": 1, "id": "7", "from": end, "to": end, "envelopeDigest": ""},
                "status": status,
            }))
            .unwrap()
        });
        let cluster: TanzuKubernetesCluster = serde_json::from_value(cluster).unwrap();
        let now = "2026-05-04T10:09:00Z".parse().unwrap();
        let report = Report::of(&cluster, update.as_ref(), &[], now);
        assert_eq!(WhyReport::of(Doing::Recorded(Box::new(report))).text(now), expected);
    }

    #[test]
    fn reasons_are_told_down_to_the_cause() {
        let wait = json!({"stage": "workers", "reason": "PoolRolling", "object": "MachineDeployment/w",
            "message": "1 of 3 machines are as they should be", "since": "2026-05-04T10:00:00Z", "wayOut": "lift it",
            "because": ["Machine/w-2 is draining", "PodDisruptionBudget/web allows none; lift it"]});
        check(
            &json!({"phase": "updating"}),
            Some(&json!({"state": "Running", "waitingFor": [wait]})),
            "\
my-tkc  UPDATING

… workers: MachineDeployment/w: 1 of 3 machines are as they should be (9m so far)
  └─ Machine/w-2 is draining
     └─ PodDisruptionBudget/web allows none  <- cause
  way out: lift it",
        );
    }

    #[test]
    fn a_failure_is_told_before_what_is_waited_for() {
        check(
            &json!({"phase": "updateFailed"}),
            Some(&json!({"state": "Failed", "failure": "the Job gave up", "waitingFor": [
                {"stage": "controlPlane", "reason": "r", "object": "Job/x", "message": "x: the Job gave up", "wayOut": "delete it"},
                {"stage": "workers", "reason": "r", "object": "Machine/y", "message": "y is old", "because": ["x: the Job gave up"]},
            ]})),
            "my-tkc  UPDATEFAILED\n✖ the update failed: the Job gave up\n  way out: delete it",
        );
        let wait = |stage: &str, object: &str, message: &str, way_out: &str| json!({"stage": stage, "reason": "r", "object": object, "message": message, "wayOut": way_out});
        check(
            &json!({"phase": "updateFailed"}),
            Some(&json!({"state": "Failed", "failure": "w-1 is not drained; the pool stands", "waitingFor": [
                wait("controlPlane", "Pool/w", "the pool stands", "repair it"),
                wait("workers", "Machine/w-1", "w-1 is not drained", "lift the budget"),
                wait("workers", "Pool/w", "the pool stands", "repair it"),
            ]})),
            "my-tkc  UPDATEFAILED\n✖ the update failed: w-1 is not drained; the pool stands\n  way out: lift the budget\n  \
             way out: repair it",
        );
    }

    #[test]
    fn without_an_update_the_cluster_itself_says_what_it_waits_for() {
        let waits =
            json!([{"stage": "", "reason": "SecretLost", "object": "Secret/my-tkc-ca", "message": "it is gone"}]);
        check(
            &json!({"phase": "running", "waits": waits}),
            Some(&json!({"state": "Succeeded"})),
            "my-tkc  RUNNING\n\n… Secret/my-tkc-ca: it is gone",
        );
        check(&json!({"phase": "creating", "waitingFor": "a machine"}), None, "my-tkc  CREATING\n\n… a machine");
        check(&json!({"phase": "running"}), None, "my-tkc  RUNNING\n✔ it waits for nothing");
        let pending = json!([{"type": "UpdatePending", "status": "True", "reason": "ConsentNeeded",
            "message": "machines would be replaced; agree to it", "lastTransitionTime": ""}]);
        check(
            &json!({"phase": "running", "conditions": pending}),
            None,
            "my-tkc  RUNNING\n… pending: machines would be replaced; agree to it",
        );
    }
}
