//! What is going on with a cluster, for status, CLI, Events and webhook warnings: the same words everywhere.

use jiff::Timestamp;
use serde::Serialize;
use windlass_api::kind::tanzu::Phase;
use windlass_api::name::AddonName;
use windlass_api::version::facts;

use crate::gate::{self, Blocked};
use crate::inventory::Waited;
use crate::planner::{Case, Course};
use crate::step::Stage;
use crate::target::Drive;

/// What is going on with a cluster.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[must_use = "whoever waits wants to be told what for"]
pub struct Report {
    /// The whole in one word.
    pub assessment: Assessment,
    /// The stages, in order; each exactly once.
    pub stages: Vec<StageReport>,
    /// Since when each thing is waited for that a stage waits for, as far as anybody remembers: each reason and object once.
    pub waiting: Vec<Waited>,
    /// Whether the certificates and keys of the cluster are there.
    pub secrets: Secrets,
    /// Rules that are known not to hold for a while, with the reason why that is tolerable.
    pub exemptions: Vec<String>,
    /// Why an update does not begin: nobody has asked for it, or it was given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<Blocked>,
}

/// Whether the certificates and keys of a cluster are there.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Secrets {
    /// The cluster is still being made, and they with it; or others see to them.
    NotYet,
    /// All of them are.
    Intact,
    /// One is not, and no machine could join any more.
    Missing(Blocked),
    /// They could not be looked at.
    Unknown {
        /// Why not.
        why: String,
    },
}

/// The whole in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Assessment {
    /// The cluster is being made.
    Creating,
    /// It is as it was asked to be. Whether it is well is said by the stages: one that is not done is not.
    Running,
    /// It is being changed, or will be.
    Updating,
    /// The change failed; a person has to look.
    UpdateFailed,
}

/// What is going on in a stage.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[must_use = "whoever waits wants to be told what for"]
pub struct StageReport {
    /// Which stage.
    pub stage: Stage,
    /// How far it is.
    pub state: StageState,
    /// What it will change: one line each, sorted.
    pub changes: Vec<String>,
    /// What keeps it from going on. Never empty when the state is [`StageState::Waiting`].
    pub blocked: Vec<Blocked>,
}

/// How far a stage is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum StageState {
    /// There is nothing to do: all is at the target, and well.
    Done,
    /// There are steps to be made now, or as soon as the update is on record.
    Ready,
    /// Steps were made, and others are at work: the Job, Cluster API, kubelets.
    Running,
    /// It may not go on yet.
    Waiting,
    /// It gave up.
    Failed,
}

/// Something that a stage waits for, as people and scripts read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Wait {
    /// Why, in one word.
    pub reason: &'static str,
    /// For which object, as `Kind/name`.
    pub object: String,
    /// Why, in a sentence.
    pub message: String,
    /// Since when; nothing where nobody remembers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub since: Option<Timestamp>,
    /// What a person can do about it; nothing where waiting is all there is to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub way_out: Option<String>,
}

impl Report {
    pub(crate) fn new(case: &Case<'_>) -> Self {
        Self {
            assessment: Assessment::Running,
            stages: Vec::new(),
            waiting: Vec::new(),
            secrets: secrets(case),
            exemptions: exemptions(case),
            pending: case.pending.clone(),
        }
    }

    /// Dates what the stages wait for. What was waited for at the last look has been waited for since then; what is new is
    /// waited for since now, if there is an update whose record will remember it.
    pub(crate) fn date(&mut self, case: &Case<'_>, now: Timestamp) {
        let update = case.inventory.update.as_ref().filter(|update| !update.state.is_over());
        let Some(update) = update else { return };
        // The record of an update that failed stays as it is.
        let remembers = matches!(case.course, Course::Running | Course::Resume | Course::Aborting);
        for blocked in self.stages.iter().flat_map(|stage| &stage.blocked) {
            if since(&self.waiting, blocked).is_some() {
                continue;
            }
            let known = since(&update.waiting, blocked).or_else(|| remembers.then_some(now));
            let (reason, object) = (blocked.reason().to_owned(), blocked.object());
            self.waiting.extend(known.map(|since| Waited { reason, object, since }));
        }
    }

    /// Since when something is waited for; `None` where nobody remembers.
    pub fn since(&self, blocked: &Blocked) -> Option<Timestamp> {
        since(&self.waiting, blocked)
    }

    /// What a stage waits for, with all that is known about it.
    pub fn waits(&self, stage: &StageReport) -> Vec<Wait> {
        let wait = |blocked: &Blocked| Wait {
            reason: blocked.reason(),
            object: blocked.object(),
            message: blocked.to_string(),
            since: self.since(blocked),
            way_out: Some(blocked.way_out()).filter(|way_out| way_out != "wait"),
        };
        stage.blocked.iter().map(wait).collect()
    }

    /// The phase of a cluster that had this phase before. The planner has no memory, so to it a cluster that was never updated
    /// and is not well looks like one that is still being created; its status knows better.
    pub fn phase(&self, before: Option<Phase>) -> Phase {
        let changes = self.stages.iter().any(|stage| !stage.changes.is_empty());
        let assessment = match (self.assessment, before) {
            (Assessment::Creating, Some(Phase::Creating | Phase::Failed | Phase::Deleting) | None) => {
                return Phase::Creating;
            }
            (Assessment::Creating, Some(_)) if changes => Assessment::Updating,
            (Assessment::Creating, Some(_)) => Assessment::Running,
            (assessment, _) => assessment,
        };
        match assessment {
            Assessment::Creating => Phase::Creating,
            Assessment::Updating => Phase::Updating,
            Assessment::UpdateFailed => Phase::UpdateFailed,
            Assessment::Running if self.current().is_some() => Phase::Unhealthy,
            Assessment::Running => Phase::Running,
        }
    }

    /// The first stage that is not done.
    pub fn current(&self) -> Option<&StageReport> {
        self.stages.iter().find(|stage| stage.state != StageState::Done)
    }
}

/// Of a cluster whose API has answered once: before that they are made, not missed.
fn secrets(case: &Case<'_>) -> Secrets {
    if !case.is_initialized() || case.target.drive != Drive::Machines {
        return Secrets::NotYet;
    }
    let inventory = case.inventory;
    if let Some(gap) = inventory.gaps.iter().find(|gap| gap.object.starts_with("Secret")) {
        return Secrets::Unknown { why: format!("{}: {}", gap.object, gap.why) };
    }
    gate::certificates_present(&case.target.cluster.name, &inventory.secrets).map_or(Secrets::Intact, Secrets::Missing)
}

/// A reason and an object are one wait, whatever the sentence says by now.
fn since(waiting: &[Waited], blocked: &Blocked) -> Option<Timestamp> {
    let object = blocked.object();
    let same = |waited: &&Waited| waited.reason == blocked.reason() && waited.object == object;
    waiting.iter().find(same).map(|waited| waited.since)
}

/// The rules that will not hold for a while: only while machines join the control plane, and only where the version says so.
fn exemptions(case: &Case<'_>) -> Vec<String> {
    let to = &case.target.release.kubernetes;
    let mut exemptions: Vec<String> = left_to_cluster_api(case).into_iter().collect();
    if !case.joins_are_coming() {
        return exemptions;
    }
    // Of the API servers: a worker may be older than all of them.
    let from = case.inventory.control_plane.machines.iter().map(|machine| &machine.version).min();
    if let Some(from) = from.filter(|from| from.minor() < to.minor()) {
        if !facts::kubelet_uses_local_api_server(to) {
            exemptions.push(format!(
                "V1: while the control plane is replaced, kubelets of its new machines ({to}) may reach API servers of {from}; \
                 before 1.31 they know no other way, and no worker is replaced until all API servers are new"
            ));
        }
        if !facts::managers_use_local_api_server(to) {
            exemptions.push(format!(
                "V4: while the control plane is replaced, controller manager and scheduler of its new machines ({to}) may reach \
                 API servers of {from}; before 1.19.1 kubeadm gives them the address of the cluster, and one of each leads at a time"
            ));
        }
        let is_proxy = |addon: &AddonName| addon.as_str() == "kube-proxy";
        let proxy_is_ours = case.target.release.addons.keys().any(is_proxy);
        exemptions.extend(proxy_is_ours.then(|| format!(
            "V5: kube-proxy of {to} runs on new machines of the control plane while API servers of {from} are left; their disks \
             have no older image, and no old node ever gets it"
        )));
    }
    if !facts::joins_etcd_as_learner(to) {
        exemptions.push(format!(
            "E1: each machine that joins the control plane counts in etcd before it has caught up; kubeadm {to} has no \
             learners (1.27), so one more failure in that window can cost the quorum"
        ));
    }
    exemptions
}

/// Whether the add-ons that a `KubeadmControlPlane` brings are left to it, and come when its machines are new: not first.
fn left_to_cluster_api(case: &Case<'_>) -> Option<String> {
    let is_left = |addon: &&str| !case.target.release.addons.keys().any(|name| name.as_str() == *addon);
    let left: Vec<&str> = ["kube-proxy", "coredns"].into_iter().filter(is_left).collect();
    let left = left.join(" and ");
    (case.target.drive != Drive::Machines && !left.is_empty()).then(|| {
        format!(
            "D1: {left} are Cluster API's to bring, after the control plane; they are left alone, and not waited for"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The phase after one before, with a stage that is done, that changes something, or that is not well.
    fn check(assessment: Assessment, stage: StageState, change: bool, before: Option<Phase>, phase: Phase) {
        let changes = if change { vec!["a line".to_owned()] } else { Vec::new() };
        let stage = StageReport { stage: Stage::Workers, state: stage, changes, blocked: Vec::new() };
        let (waiting, exemptions) = (Vec::new(), Vec::new());
        let secrets = Secrets::Intact;
        let report = Report { assessment, stages: vec![stage], waiting, secrets, exemptions, pending: None };
        assert_eq!(report.phase(before), phase, "{assessment:?} {before:?}");
    }

    #[test]
    fn a_cluster_that_has_been_running_is_not_created_again() {
        use Assessment::{Creating, Running, UpdateFailed, Updating};
        use StageState::{Done, Ready, Running as AtWork};
        check(Creating, AtWork, false, None, Phase::Creating);
        check(Creating, AtWork, true, Some(Phase::Creating), Phase::Creating);
        check(Creating, AtWork, false, Some(Phase::Running), Phase::Unhealthy);
        check(Creating, Ready, true, Some(Phase::Running), Phase::Updating);
        check(Running, Done, false, Some(Phase::Creating), Phase::Running);
        check(Running, AtWork, false, Some(Phase::Running), Phase::Unhealthy);
        check(Updating, Ready, true, Some(Phase::Running), Phase::Updating);
        check(UpdateFailed, Ready, true, Some(Phase::Updating), Phase::UpdateFailed);
    }
}
