//! Jobs of the management cluster: their controller, and the kubelet that runs their pods.
//!
//! A pod's program is a function of this process. What it comes to is written into the pod; what is lost with the process (a
//! restart, a fork) is a pod that runs without a program, which has then failed like one whose node was lost.

mod command;
mod pod;
mod process;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobCondition, JobStatus};
use k8s_openapi::api::core::v1::Pod;
use kube::api::DeleteParams;
use windlass_api::condition::{ConditionStatus, ConditionType};
use windlass_runtime::key::Key;
use windlass_runtime::runner::Outcome;

use super::context::{Error, Turn, after, deleting};
use super::ownership::is_owned_by;
use super::write;
pub(super) use process::Processes;

/// How long after the first failure the next attempt begins; it doubles with each further one.
const BACKOFF: Duration = Duration::from_secs(10);
/// The longest that an attempt is put off.
const BACKOFF_MAX: Duration = Duration::from_secs(360);

pub(super) async fn reconcile(turn: &Turn, key: &Key) -> Result<Outcome, Error> {
    let job = turn.caches.jobs.get(key).filter(|job| !deleting(&job.metadata));
    let Some(job) = job else {
        // Its pods are collected; nobody waits for what they do.
        turn.processes.keep(key, &[]);
        return Ok(Outcome::done());
    };
    let pods = pods(turn, &job);
    let live: Vec<&str> = pods.iter().filter(|pod| !deleting(&pod.metadata)).filter_map(|pod| uid(pod)).collect();
    turn.processes.keep(key, &live);
    for pod in pods.iter().filter(|pod| deleting(&pod.metadata)) {
        write::delete_with(turn, &**pod, DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() })
            .await?;
    }
    let mut wait = None;
    let mut current = Vec::with_capacity(pods.len());
    for pod in pods.into_iter().filter(|pod| !deleting(&pod.metadata)) {
        let (pod, remaining) = pod::advance(turn, key, pod).await?;
        wait = wait.or(remaining);
        current.push(pod);
    }
    let tally = Tally::of(&job, &current);
    if job.spec.as_ref().and_then(|spec| spec.suspend) != Some(true) && tally.may_go_on() {
        match turn.remaining(tally.last_failure.unwrap_or(Timestamp::MIN), tally.backoff()) {
            None => {
                let pod = write::create(turn, &pod::make(turn, &job, tally.failed)).await?;
                current.push(Arc::new(pod));
            }
            remaining => wait = wait.or(remaining),
        }
    }
    let status = status(turn, &job, &Tally::of(&job, &current));
    // On the wire none is the same as zero.
    let known = job.status.clone().map(|known| JobStatus { active: known.active.or(Some(0)), ..known });
    if known.as_ref() != Some(&status) {
        tell(turn, &job, status).await?;
    }
    Ok(if wait.is_some() { after(wait) } else { Outcome::done() })
}

/// Writes the status down. API servers from 1.31 on take an end only from somebody who has said by which measure it is one; older
/// ones, and ours, do not ask.
async fn tell(turn: &Turn, job: &Job, mut status: JobStatus) -> Result<(), Error> {
    let Err(refused) = write::status(turn, job, &status).await else { return Ok(()) };
    let Error::Api { source, .. } = &refused else { return Err(refused) };
    let kube::Error::Api(said) = &**source else { return Err(refused) };
    let conditions = status.conditions.get_or_insert_default();
    let measures = [(ConditionType::Complete, "SuccessCriteriaMet"), (ConditionType::Failed, "FailureTarget")];
    let measure = measures.into_iter().find(|(_, measure)| said.message.contains(measure));
    let found = measure.and_then(|(end, measure)| {
        let end = conditions.iter().position(|condition| condition.type_ == end.as_str())?;
        Some((end, JobCondition { type_: measure.to_owned(), ..conditions[end].clone() }))
    });
    let Some((place, measure)) = found else { return Err(refused) };
    conditions.insert(place, measure);
    write::status(turn, job, &status).await.map(drop)
}

fn pods(turn: &Turn, job: &Job) -> Vec<Arc<Pod>> {
    let all = turn.caches.pods.list_in(job.metadata.namespace.as_deref().unwrap_or_default());
    all.into_iter().filter(|pod| is_owned_by(&pod.metadata, job)).collect()
}

fn uid(pod: &Pod) -> Option<&str> {
    pod.metadata.uid.as_deref()
}

/// What has come of the attempts of a Job.
struct Tally {
    active: i32,
    succeeded: i32,
    failed: i32,
    last_failure: Option<Timestamp>,
    backoff_limit: i32,
}

impl Tally {
    fn of(job: &Job, pods: &[Arc<Pod>]) -> Self {
        let count = |phases: &[&str]| {
            let those = pods.iter().filter(|pod| phases.contains(&pod::phase(pod)));
            i32::try_from(those.count()).unwrap_or(i32::MAX)
        };
        // Attempts whose pods somebody has removed still count.
        let known = job.status.as_ref().and_then(|status| status.failed).unwrap_or(0);
        Self {
            active: count(&["Pending", "Running"]),
            succeeded: count(&["Succeeded"]),
            failed: count(&["Failed"]).max(known),
            last_failure: pods.iter().filter(|pod| pod::phase(pod) == "Failed").filter_map(|pod| pod::ended(pod)).max(),
            backoff_limit: job.spec.as_ref().and_then(|spec| spec.backoff_limit).unwrap_or(6),
        }
    }

    fn used_up(&self) -> bool {
        self.failed > self.backoff_limit
    }

    fn may_go_on(&self) -> bool {
        self.active == 0 && self.succeeded == 0 && !self.used_up()
    }

    /// How long after the last failure the next attempt begins.
    fn backoff(&self) -> Duration {
        match u32::try_from(self.failed).unwrap_or(0).checked_sub(1) {
            None => Duration::ZERO,
            Some(doublings) => BACKOFF.saturating_mul(1 << doublings.min(16)).min(BACKOFF_MAX),
        }
    }
}

fn status(turn: &Turn, job: &Job, tally: &Tally) -> JobStatus {
    let mut status = job.status.clone().unwrap_or_default();
    let number = |count: i32| (count > 0).then_some(count);
    status.active = Some(tally.active);
    status.succeeded = number(tally.succeeded);
    status.failed = number(tally.failed);
    status.ready = status.ready.or(Some(0));
    status.start_time = status.start_time.or_else(|| Some(turn.now()));
    let ended = match (tally.succeeded > 0, tally.used_up() && tally.active == 0) {
        (true, _) => Some((ConditionType::Complete, "CompletionsReached", "the program has ended well")),
        (false, true) => {
            Some((ConditionType::Failed, "BackoffLimitExceeded", "Job has reached the specified backoff limit"))
        }
        (false, false) => None,
    };
    let Some((type_, reason, message)) = ended else { return status };
    let conditions = status.conditions.get_or_insert_default();
    if conditions.iter().any(|condition| condition.type_ == type_.as_str()) {
        return status;
    }
    conditions.push(JobCondition {
        type_: type_.to_string(),
        status: ConditionStatus::True.to_string(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_probe_time: Some(turn.now()),
        last_transition_time: Some(turn.now()),
    });
    if type_ == ConditionType::Complete {
        status.completion_time = Some(turn.now());
    }
    status
}
