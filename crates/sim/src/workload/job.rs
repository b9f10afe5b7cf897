//! The controller of Jobs in a workload cluster: pods that are to end, tried again when they end badly.
//!
//! What has ended is counted from the pods that are there and from what was counted before, without the finalizers that a real
//! controller keeps on its pods: of pods that somebody deletes before they are counted nothing is known.

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};
use windlass_apiserver::store::Key;
use windlass_apiserver::time;

use super::seen::{Job, Pod, PodSpec, RestartPolicy};
use super::view::{Controller, Due, View};
use super::write::{JOBS, PODS, controlled_by, set_condition};
use super::{Workload, pod};

/// How long after the first failure the next attempt begins; it doubles with each further one.
const BACKOFF: SignedDuration = SignedDuration::from_secs(10);
/// The longest that an attempt is put off.
const BACKOFF_MAX: SignedDuration = SignedDuration::from_secs(600);

#[derive(Deserialize)]
struct TemplateSpec {
    #[serde(default)]
    spec: PodSpec,
}

/// What has come of a Job's pods.
#[derive(Debug, Default)]
struct Tally {
    active: Vec<Key>,
    ready: i64,
    succeeded: i64,
    failed: i64,
    restarts: i64,
    last_failure: Option<Timestamp>,
}

impl Tally {
    fn of<'a>(job: &Job, pods: impl Iterator<Item = (&'a Key, &'a Pod)>) -> Self {
        let mut tally = Self::default();
        for (key, pod) in pods {
            if pod.succeeded() {
                tally.succeeded += 1;
            } else if pod.failed() {
                tally.failed += 1;
                tally.last_failure = tally.last_failure.max(pod.ended_at());
            } else if !pod.deleting() {
                tally.active.push(key.clone());
                tally.ready += i64::from(pod.ready());
                tally.restarts += pod.restarts();
            }
        }
        tally.succeeded = tally.succeeded.max(job.status.succeeded);
        tally.failed = tally.failed.max(job.status.failed);
        tally
    }

    fn active(&self) -> i64 {
        i64::try_from(self.active.len()).unwrap_or(i64::MAX)
    }

    /// When the next attempt may begin.
    fn retries_at(&self) -> Timestamp {
        let Some(last) = self.last_failure else { return Timestamp::MIN };
        let doublings = u32::try_from(self.failed.clamp(1, 16) - 1).unwrap_or_default();
        let wait = BACKOFF.checked_mul(1 << doublings).unwrap_or(BACKOFF_MAX).min(BACKOFF_MAX);
        last.checked_add(wait).unwrap_or(Timestamp::MAX)
    }
}

/// How a Job ends: the condition, its reason and its message.
type Ending = (&'static str, &'static str, &'static str);

/// Brings a Job one step closer to its end.
pub(super) fn sync(workload: &Workload, view: &mut View, key: &Key) {
    let Some(job) = view.jobs.get(key).filter(|job| !job.metadata.deleting() && !job.status.ended()) else { return };
    let mut tally = Tally::of(job, view.pods_of(&job.metadata.uid));
    let now = workload.now();
    let ending = ending(job, &tally, now);
    if ending.is_some() || job.spec.suspend {
        for pod in std::mem::take(&mut tally.active) {
            end(workload, view, &pod);
        }
        tally.ready = 0;
    }
    let Some(job) = view.jobs.get(key) else { return };
    let mut wake = deadline(job).filter(|_| ending.is_none());
    if ending.is_none() && !job.spec.suspend {
        let missing = missing(job, &tally);
        let retries_at = tally.retries_at();
        if missing > 0 && retries_at > now {
            wake = Some(wake.map_or(retries_at, |at| at.min(retries_at)));
        } else {
            let owner = controlled_by("batch/v1", "Job", &key.name, &job.metadata.uid);
            for _ in 0..missing {
                let pod = workload.free_pod_name(key, "");
                workload.create(PODS, &pod, pod::from_template(&job.spec.template, owner.clone()));
                tally.active.push(pod);
            }
        }
    }
    write_status(workload, key, job, &tally, ending);
    if let Some(at) = wake.filter(|at| *at > now) {
        view.wake(at, Due::Look(Controller::Job(key.clone())));
    }
}

/// One that has no node was never started: nobody has to end it.
fn end(workload: &Workload, view: &mut View, key: &Key) {
    match view.pods.get(key) {
        Some(pod) if pod.spec.node_name.is_some() => workload.delete_pod(key),
        _ => drop(view.ended.insert(key.clone())),
    }
}

fn deadline(job: &Job) -> Option<Timestamp> {
    let seconds = job.spec.active_deadline_seconds?;
    job.status.start_time?.checked_add(SignedDuration::from_secs(seconds)).ok()
}

fn ending(job: &Job, tally: &Tally, now: Timestamp) -> Option<Ending> {
    let complete = match job.spec.completions {
        Some(completions) => tally.succeeded >= completions,
        None => tally.succeeded > 0 && tally.active.is_empty(),
    };
    if complete {
        return Some(("Complete", "CompletionsReached", "Reached expected number of succeeded pods"));
    }
    let limit = job.spec.backoff_limit;
    let restarts_on_failure = serde_json::from_str::<TemplateSpec>(job.spec.template.0.get())
        .is_ok_and(|template| template.spec.restart_policy == RestartPolicy::OnFailure);
    let restarted_too_often = restarts_on_failure && tally.restarts >= limit.max(1);
    if tally.failed > limit || restarted_too_often {
        return Some(("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"));
    }
    let over = deadline(job).is_some_and(|deadline| deadline <= now) && !job.spec.suspend;
    over.then_some(("Failed", "DeadlineExceeded", "Job was active longer than specified deadline"))
}

/// How many pods are to be made.
fn missing(job: &Job, tally: &Tally) -> i64 {
    let wanted = match job.spec.completions {
        Some(completions) => job.spec.parallelism.min(completions - tally.succeeded),
        // Once one has ended well, the others only come to their end.
        None if tally.succeeded > 0 => 0,
        None => job.spec.parallelism,
    };
    (wanted - tally.active()).max(0)
}

fn write_status(workload: &Workload, key: &Key, job: &Job, tally: &Tally, ending: Option<Ending>) {
    let known = &job.status;
    let counts = [tally.active(), tally.ready, tally.succeeded, tally.failed];
    let starts = known.start_time.is_none() && !job.spec.suspend;
    if counts == [known.active, known.ready, known.succeeded, known.failed] && !starts && ending.is_none() {
        return;
    }
    let now = workload.now();
    workload.change(JOBS, key, |object| {
        let status = &mut object["status"];
        if !status.is_object() {
            *status = json!({});
        }
        for (field, count) in ["active", "ready", "succeeded", "failed"].into_iter().zip(counts) {
            status[field] = count.into();
        }
        if starts {
            status["startTime"] = time::format(now).into();
        }
        let Some((type_, reason, message)) = ending else { return };
        if type_ == "Complete" {
            status["completionTime"] = time::format(now).into();
        }
        set_condition(object, type_, "True", reason, message, now);
        probed(object, now);
    });
}

/// A Job's conditions also say when they were looked at.
fn probed(job: &mut Value, now: Timestamp) {
    for condition in job["status"]["conditions"].as_array_mut().into_iter().flatten() {
        condition["lastProbeTime"] = time::format(now).into();
    }
}
