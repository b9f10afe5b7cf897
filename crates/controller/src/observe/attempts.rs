//! The attempts to replace a control plane: the pods of the Job. They are read only when the Job says that there is one more
//! than is on record, or that one has ended.

use std::cmp::Reverse;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job as BatchJob;
use k8s_openapi::api::core::v1::{ContainerState, Pod};
use kube::Api;
use kube::api::ListParams;
use windlass_api::kind::cluster_update::{AttemptRecord, ClusterUpdate};
use windlass_api::label;
use windlass_plan::inventory::Job;
use windlass_runtime::key::Key;

use crate::reconcile::JOB_NAMESPACE;
use crate::reconcile::context::Context;
use crate::record::moment;
use crate::said::said;

/// How much of what an attempt said is put on record.
const WORDS_CHARACTERS_MAX: usize = 1024;

/// The attempts of an update, those of Jobs that are gone included. Where pods cannot be read, what is on record stays.
pub(crate) async fn latest(ctx: &Context, update: Option<&ClusterUpdate>, job: Option<&Job>) -> Vec<AttemptRecord> {
    let known = update.and_then(|update| update.status.as_ref()).map(|status| status.attempts.clone());
    let known = known.unwrap_or_default();
    let Some(job) = job else { return known };
    let live = ctx.caches.jobs.get(&Key::namespaced(JOB_NAMESPACE, job.name.as_str()));
    if !live.is_some_and(|live| has_news(&live, &known)) {
        return known;
    }
    let api: Api<Pod> = Api::namespaced(ctx.access.client.clone(), JOB_NAMESPACE);
    let of_job = ListParams::default().labels(&format!("{}={}", label::JOB_NAME, job.name));
    match api.list(&of_job).await {
        Ok(pods) => with(known, pods.items),
        Err(error) => {
            tracing::warn!(job = job.name.as_str(), error = said(&error), "the Pods of a Job cannot be read");
            known
        }
    }
}

/// Whether a Job says otherwise than the record how many of its pods have begun and ended.
fn has_news(job: &BatchJob, known: &[AttemptRecord]) -> bool {
    let created = job.metadata.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0);
    // A Job that was deleted and made again has the same name; only its own pods are counted.
    let is_of_job = |attempt: &&AttemptRecord| {
        let started: Option<Timestamp> = attempt.started_at.as_deref().and_then(|started| started.parse().ok());
        started.is_none_or(|started| started >= created)
    };
    let ended = known.iter().filter(is_of_job).filter(|attempt| attempt.exit_code.is_some()).count();
    let begun = known.iter().filter(is_of_job).count();
    let count = |number: Option<i32>| number.and_then(|number| usize::try_from(number).ok()).unwrap_or(0);
    let Some(status) = &job.status else { return false };
    let (failed, succeeded, active) = (count(status.failed), count(status.succeeded), count(status.active));
    (failed + succeeded, failed + succeeded + active) != (ended, begun)
}

/// What is on record, with what pods say by now.
fn with(mut known: Vec<AttemptRecord>, mut pods: Vec<Pod>) -> Vec<AttemptRecord> {
    pods.sort_by_key(|pod| {
        let created = pod.metadata.creation_timestamp.as_ref().map(|time| Reverse(Reverse(time.0)));
        (created, pod.metadata.name.clone())
    });
    for pod in pods {
        let found = attempt(pod);
        let next = u32::try_from(known.len()).unwrap_or(u32::MAX).saturating_add(1);
        match known.iter_mut().find(|attempt| attempt.pod == found.pod) {
            Some(attempt) => *attempt = AttemptRecord { number: attempt.number, ..found },
            None => known.push(AttemptRecord { number: next, ..found }),
        }
    }
    known
}

fn attempt(pod: Pod) -> AttemptRecord {
    let status = pod.status.unwrap_or_default();
    let began = status.start_time.map(|time| moment(time.0));
    let state = status.container_statuses.unwrap_or_default().into_iter().find_map(|container| container.state);
    let state = state.unwrap_or_default();
    let mut attempt =
        AttemptRecord { pod: pod.metadata.name.unwrap_or_default(), started_at: began, ..AttemptRecord::default() };
    if let ContainerState { terminated: Some(ended), .. } = state {
        attempt.started_at = ended.started_at.map(|time| moment(time.0)).or(attempt.started_at);
        attempt.finished_at = ended.finished_at.map(|time| moment(time.0));
        attempt.exit_code = Some(ended.exit_code);
        let words = ended.message.filter(|words| !words.is_empty());
        attempt.message = words.map(|words| words.chars().take(WORDS_CHARACTERS_MAX).collect());
    }
    attempt
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, at: &str, exit: Option<(i32, &str)>) -> Pod {
        let state = exit.map_or_else(
            || json!({"running": {"startedAt": at}}),
            |(code, words)| json!({"terminated": {"exitCode": code, "message": words, "startedAt": at, "finishedAt": at}}),
        );
        let container =
            json!({"name": "upgrade", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state});
        serde_json::from_value(json!({
            "metadata": {"name": name, "creationTimestamp": at}, "status": {"startTime": at, "containerStatuses": [container]},
        }))
        .unwrap()
    }

    fn job(created: &str, [active, failed, succeeded]: [i32; 3]) -> BatchJob {
        let status = json!({"active": active, "failed": failed, "succeeded": succeeded});
        serde_json::from_value(json!({"metadata": {"creationTimestamp": created}, "status": status})).unwrap()
    }

    #[test]
    fn each_attempt_is_on_record_once_with_its_last_words() {
        let (first, second, third) = ("2026-01-01T00:00:00Z", "2026-01-01T00:16:00Z", "2026-01-01T01:00:00Z");
        let known = with(Vec::new(), vec![pod("a", first, None)]);
        assert!(!has_news(&job(first, [1, 0, 0]), &known));
        assert!(has_news(&job(first, [0, 1, 0]), &known), "it has ended");

        let known = with(known, vec![pod("b", second, None), pod("a", first, Some((1, "timed out")))]);
        let shown = |known: &[AttemptRecord]| {
            let one = |it: &AttemptRecord| format!("{} {} {:?} {:?}", it.number, it.pod, it.exit_code, it.message);
            known.iter().map(one).collect::<Vec<_>>()
        };
        assert_eq!(shown(&known), [r#"1 a Some(1) Some("timed out")"#, "2 b None None"]);
        assert!(!has_news(&job(first, [1, 1, 0]), &known));

        // The Job was deleted, and made again under its name.
        assert!(has_news(&job(third, [1, 0, 0]), &known));
        let known = with(known, vec![pod("c", third, Some((0, "")))]);
        assert_eq!(shown(&known)[2], "3 c Some(0) None");
        assert!(!has_news(&job(third, [0, 0, 1]), &known));
    }
}
