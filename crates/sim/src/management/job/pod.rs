//! A pod of a Job: from Pending to its end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStatus, Pod, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_api::label;
use windlass_runtime::key::Key;

use super::command;
use super::process::Doing;
use crate::log::Log;
use crate::management::context::{Error, Turn, beside, path};
use crate::management::ownership::controlled_by;
use crate::management::write;
use crate::program::{Container, Exit};

/// The letters and digits that Kubernetes ends generated names with: none that could make a word.
const SUFFIX_LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LENGTH: usize = 5;

/// What a container is given that nobody knows the end of: that of one killed by signal 9, 128 + 9.
const LOST_CODE: i32 = 137;

pub(super) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Pending")
}

/// When its container ended.
pub(super) fn ended(pod: &Pod) -> Option<Timestamp> {
    let container = pod.status.as_ref()?.container_statuses.as_ref()?.first()?;
    Some(container.state.as_ref()?.terminated.as_ref()?.finished_at.as_ref()?.0)
}

/// The pod of an attempt.
pub(super) fn make(turn: &Turn, job: &Job, attempt: i32) -> Pod {
    let template = job.spec.as_ref().map(|spec| spec.template.clone()).unwrap_or_default();
    let given = template.metadata.unwrap_or_default();
    let name = job.metadata.name.clone().unwrap_or_default();
    // The API server has given the template the other labels of a Job's pods.
    let mut labels: BTreeMap<String, String> = given.labels.unwrap_or_default();
    labels.insert(label::JOB_NAME.name.to_owned(), name.clone());
    Pod {
        metadata: ObjectMeta {
            name: Some(format!("{name}-{}", suffix(turn, job, attempt))),
            namespace: job.metadata.namespace.clone(),
            labels: Some(labels),
            annotations: given.annotations,
            owner_references: Some(vec![controlled_by(job)]),
            ..ObjectMeta::default()
        },
        spec: template.spec,
        status: None,
    }
}

/// From the Job's name and age, not from its uid: that one tells how much else has been made on its server.
fn suffix(turn: &Turn, job: &Job, attempt: i32) -> String {
    let created = job.metadata.creation_timestamp.as_ref().map(|created| created.0.to_string()).unwrap_or_default();
    let mut chance = turn.seed.stream(&format!("pod {} {created} {attempt}", path(&job.metadata)));
    let mut letter = || {
        let drawn = chance.below(SUFFIX_LETTERS.len() as u64);
        usize::try_from(drawn).ok().and_then(|drawn| SUFFIX_LETTERS.get(drawn)).map_or('x', |byte| char::from(*byte))
    };
    (0..SUFFIX_LENGTH).map(|_| letter()).collect()
}

/// Takes the next step of a pod's life. Also says how long to wait for the one after it, where that is known.
pub(super) async fn advance(turn: &Turn, job: &Key, pod: Arc<Pod>) -> Result<(Arc<Pod>, Option<Duration>), Error> {
    let uid = pod.metadata.uid.clone().unwrap_or_default();
    let status = match phase(&pod) {
        "Pending" => {
            let began = pod.metadata.creation_timestamp.clone().unwrap_or_else(|| turn.now()).0;
            let remaining = turn.remaining(began, turn.takes(turn.durations.pod_start, "pod start", &pod.metadata));
            if remaining.is_some() {
                return Ok((pod, remaining));
            }
            // Said before it is done: a program that nobody knows of would run twice.
            let pod = write::status(turn, &*pod, &running(turn, &pod)).await?;
            let name = beside(&pod.metadata, pod.metadata.name.as_deref().unwrap_or_default())?;
            let (command, env) = command::of(&pod);
            turn.processes.start(job, &uid, Container { pod: name, command, env, log: Log::default() });
            return Ok((Arc::new(pod), None));
        }
        "Running" => match turn.processes.doing(&uid) {
            Doing::Runs => return Ok((pod, None)),
            Doing::Ended(exit) => terminated(turn, &pod, &exit, if exit.code == 0 { "Completed" } else { "Error" }),
            Doing::Nothing => {
                let message = "the container was lost with the process that ran it".to_owned();
                terminated(turn, &pod, &Exit { code: LOST_CODE, message }, "ContainerStatusUnknown")
            }
        },
        _ => return Ok((pod, None)),
    };
    Ok((Arc::new(write::status(turn, &*pod, &status).await?), None))
}

fn running(turn: &Turn, pod: &Pod) -> PodStatus {
    let state = ContainerState {
        running: Some(ContainerStateRunning { started_at: Some(turn.now()) }),
        ..ContainerState::default()
    };
    PodStatus {
        phase: Some("Running".to_owned()),
        start_time: Some(turn.now()),
        container_statuses: Some(vec![container(pod, state, true)]),
        ..pod.status.clone().unwrap_or_default()
    }
}

fn terminated(turn: &Turn, pod: &Pod, exit: &Exit, reason: &str) -> PodStatus {
    let status = pod.status.clone().unwrap_or_default();
    let state = ContainerState {
        terminated: Some(ContainerStateTerminated {
            exit_code: exit.code,
            message: (!exit.message.is_empty()).then(|| exit.message.clone()),
            reason: Some(reason.to_owned()),
            started_at: status.start_time.clone(),
            finished_at: Some(turn.now()),
            ..ContainerStateTerminated::default()
        }),
        ..ContainerState::default()
    };
    PodStatus {
        phase: Some(if exit.code == 0 { "Succeeded" } else { "Failed" }.to_owned()),
        container_statuses: Some(vec![container(pod, state, false)]),
        ..status
    }
}

fn container(pod: &Pod, state: ContainerState, ready: bool) -> ContainerStatus {
    let given = pod.spec.as_ref().and_then(|spec| spec.containers.first());
    ContainerStatus {
        name: given.map(|container| container.name.clone()).unwrap_or_default(),
        image: given.and_then(|container| container.image.clone()).unwrap_or_default(),
        ready,
        started: Some(ready),
        state: Some(state),
        ..ContainerStatus::default()
    }
}
