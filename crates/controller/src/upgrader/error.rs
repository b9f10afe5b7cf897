//! Why a run ended without having replaced everything. The report becomes the termination message of the pod.

use std::error::Error as _;
use std::time::Duration;

use windlass_api::key::KeyError;
use windlass_api::name::{NameError, NamespacedName};
use windlass_plan::gate::Blocked;
use windlass_plan::roll::{self, Failure, Wait};

use super::replacement;
use crate::access::{ConnectError, EtcdError};

/// Why a run ended without having replaced everything.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An API did not do what it was asked.
    #[error("{attempt}")]
    Api {
        /// What was attempted.
        attempt: String,
        /// What came back.
        #[source]
        source: Box<kube::Error>,
    },
    /// The workload cluster cannot be connected to.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// etcd did not do what it was asked.
    #[error("{attempt}")]
    Etcd {
        /// What was attempted.
        attempt: String,
        /// What came back.
        #[source]
        source: EtcdError,
    },
    /// What was waited for did not come.
    #[error("waited {} for {wanted}: {missing}", SpelledDuration(*.waited))]
    Waited {
        /// For how long.
        waited: Duration,
        /// For what.
        wanted: String,
        /// What was missing at the end.
        missing: String,
    },
    /// Nobody may touch the cluster.
    #[error("the cluster {cluster} is {state}: its machines are left alone")]
    HandsOff {
        /// The cluster.
        cluster: String,
        /// `paused` or `being deleted`.
        state: String,
    },
    /// There is nothing to replace.
    #[error("the cluster {cluster} has no control-plane machines")]
    NoMachines {
        /// The cluster.
        cluster: String,
    },
    /// Another update has not ended.
    #[error(
        "the machine {machine} takes part in the update {theirs}, which has not ended: run that one again, with its own id"
    )]
    OtherUpdate {
        /// The machine.
        machine: String,
        /// The id on it.
        theirs: String,
    },
    /// Two machines would have the same replacement.
    #[error("the machines {first} and {second} both have the name base {base}: one of them would have no replacement")]
    SharedBase {
        /// One machine.
        first: String,
        /// The other.
        second: String,
        /// What both have.
        base: String,
    },
    /// There is an object of that name, and this update did not make it.
    #[error("there is a {kind} {name} already, and {why}: it is not taken over")]
    NotOurs {
        /// Its kind.
        kind: &'static str,
        /// Its name.
        name: String,
        /// How that can be seen.
        why: String,
    },
    /// A machine that must not be deleted, in a state in which it cannot be kept.
    #[error(
        "the machine {machine} is not healthy, and it cannot be made anew because {why}: a person has to repair it"
    )]
    Irreplaceable {
        /// The machine.
        machine: String,
        /// Why it must stay.
        why: String,
    },
    /// It is too late to give up.
    #[error("the update cannot be given up any more: {why}")]
    Irrevocable {
        /// Why not.
        why: String,
    },
    /// Something does not keep still.
    #[error("{step}: it is never in the state that was seen a moment before")]
    Restless {
        /// What was to be done.
        step: String,
    },
    /// Something that must be there is not.
    #[error("there is no {kind} {name}, {why}")]
    Missing {
        /// Its kind.
        kind: &'static str,
        /// Its name.
        name: String,
        /// What it is needed for.
        why: &'static str,
    },
    /// Kubelets of new machines would find no configuration, and there is none to copy. Within a minor the first of the two is
    /// the one that was lost; on the way to another, the second.
    #[error(
        "there is no ConfigMap {wanted}, which kubelets of new machines read, and no {previous} to copy it from: bring back the \
         one that the cluster had"
    )]
    NoKubeletConfig {
        /// The one of the minor that machines are to have.
        wanted: String,
        /// The one of the minor before.
        previous: String,
    },
    /// What is in an object cannot be used.
    #[error("the {kind} {name} cannot be used: {why}")]
    Unusable {
        /// Its kind.
        kind: &'static str,
        /// Its name.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// A patch does not fit what it is for.
    #[error("apply {flag} to the {kind} {name}: {why}")]
    Patch {
        /// The argument that it came with.
        flag: &'static str,
        /// The kind of the object.
        kind: &'static str,
        /// The name of the object.
        name: String,
        /// Why it does not fit.
        why: String,
    },
    /// A name in an object is none.
    #[error("read the name of a machine")]
    Name(#[from] NameError),
    /// An annotation cannot be read.
    #[error("read the annotations of the machine {machine}")]
    Annotation {
        /// The machine.
        machine: String,
        /// What is wrong with them.
        #[source]
        source: KeyError,
    },
}

impl Error {
    /// What an API answered to an attempt.
    pub(super) fn api(attempt: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        |source| Self::Api { attempt: attempt.into(), source: Box::new(source) }
    }

    /// A certificate is not there.
    pub(super) fn without_certificate(name: &str) -> Self {
        let why = "and without it no machine can join the cluster";
        Self::Missing { kind: "Secret", name: name.to_owned(), why }
    }

    /// The refusal of a gate that forbids to touch the cluster.
    pub(super) fn blocked(cluster: &NamespacedName, blocked: Blocked) -> Self {
        let cluster = cluster.to_string();
        match blocked {
            Blocked::Paused { by } => Self::HandsOff { cluster, state: by },
            other => Self::HandsOff { cluster, state: format!("not to be touched ({other})") },
        }
    }

    /// Why an attempt was given up.
    pub(super) fn given_up(cluster: &NamespacedName, attempt: &roll::Attempt, failure: Failure) -> Self {
        match failure {
            Failure::TimedOut { wait } => Self::Waited {
                waited: wait.patience(attempt).unsigned_abs(),
                wanted: wanted(cluster, &wait),
                missing: wait.missing().to_owned(),
            },
            Failure::ReplacementLost { machine, why } => Self::Irreplaceable { machine: machine.to_string(), why },
            Failure::NoMachines => Self::NoMachines { cluster: cluster.to_string() },
            Failure::ForeignAttempt { machine, theirs } => {
                Self::OtherUpdate { machine: machine.to_string(), theirs: theirs.to_string() }
            }
            Failure::SharedBase { first, second, base } => {
                Self::SharedBase { first: first.to_string(), second: second.to_string(), base: base.to_string() }
            }
            Failure::Irrevocable { why } => Self::Irrevocable { why: why.to_string() },
            Failure::CertificateMissing { secret } => {
                Self::without_certificate(secret.object_name(&attempt.cluster).as_str())
            }
            Failure::Foreign { machine, part, why } => {
                Self::NotOurs { kind: replacement::kind(part), name: machine.to_string(), why }
            }
        }
    }

    /// Whether asking again, from the beginning, may help: the API did not answer, or the object had changed.
    pub(super) fn is_transient(&self) -> bool {
        let Self::Api { source, .. } = self else { return false };
        match &**source {
            kube::Error::Api(status) => matches!(status.code, 409 | 429 | 500..),
            kube::Error::Service(_) | kube::Error::HyperError(_) | kube::Error::ReadEvents(_) => true,
            _ => false,
        }
    }

    /// The whole in one line, causes included.
    pub fn report(&self) -> String {
        let mut text = self.to_string();
        if let Self::Api { source, .. } = self {
            return format!("{text}: {}", answer(source));
        }
        let mut cause = self.source();
        while let Some(because) = cause {
            text.push_str(": ");
            text.push_str(&because.to_string());
            cause = because.source();
        }
        text
    }
}

/// What was waited for, in words that go on after "waited for".
fn wanted(cluster: &NamespacedName, wait: &Wait) -> String {
    match wait {
        Wait::Healthy { machine, .. } => format!("the machine {machine} to be healthy"),
        Wait::AtRest { .. } => format!("the control plane of {cluster} to be at rest"),
        Wait::Etcd { without, .. } => format!("etcd to do without {without}"),
        Wait::Released { .. } => format!("{cluster} to be released"),
        Wait::Gone { machine, .. } => format!("the machine {machine} to be gone"),
        Wait::PartGone { machine, part } => {
            format!("the {} {machine} of an earlier try to be gone", replacement::kind(*part))
        }
    }
}

/// What an API answered, without the debugging text that `kube` adds to it. The text has all causes in it already.
pub(super) fn answer(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => format!("{} ({})", status.message, status.code),
        kube::Error::Service(source) => source.to_string(),
        other => other.to_string(),
    }
}

/// A duration as people write it: `15m`, `1h 30m`.
struct SpelledDuration(Duration);

impl std::fmt::Display for SpelledDuration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let seconds = self.0.as_secs();
        let parts = [(seconds / 3600, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")];
        let written: Vec<String> =
            parts.iter().filter(|(number, _)| *number > 0).map(|(number, unit)| format!("{number}{unit}")).collect();
        f.write_str(if written.is_empty() { "0s".to_owned() } else { written.join(" ") }.as_str())
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn a_report_says_what_was_attempted_and_what_came_back() {
        let status = Status::failure("machines.cluster.x-k8s.io is forbidden", "Forbidden").with_code(403);
        let error = Error::api("list the machines of default/my-tkc")(kube::Error::Api(Box::new(status)));
        assert_eq!(error.report(), "list the machines of default/my-tkc: machines.cluster.x-k8s.io is forbidden (403)");
        assert!(!error.is_transient());
    }

    #[test]
    fn waiting_is_reported_in_units_that_people_use() {
        let waited = |seconds| {
            let wanted = "the machine m to be healthy".to_owned();
            Error::Waited { waited: Duration::from_secs(seconds), wanted, missing: "it has no node".to_owned() }
                .report()
        };
        assert_eq!(waited(900), "waited 15m for the machine m to be healthy: it has no node");
        assert!(waited(5430).starts_with("waited 1h 30m 30s for "));
        assert!(waited(0).starts_with("waited 0s for "));
    }
}
