//! Objects as the simulators of a workload cluster see them: the fields that decide something, and no others.

mod node;
mod pod;
mod set;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use windlass_runtime::chance::Seed;

pub(super) use node::{Node, Room, Taint, Toleration};
pub(super) use pod::{Life, Pod, PodSpec, Refusal, RestartPolicy};
pub(super) use set::{
    DaemonSet, DaemonSetStatus, Deployment, DeploymentStatus, Job, ReplicaSet, ReplicaSetStatus, StatefulSet,
    StatefulSetStatus,
};

pub(super) type Labels = BTreeMap<Box<str>, Box<str>>;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Meta {
    pub(super) name: Box<str>,
    pub(super) uid: Box<str>,
    pub(super) generation: i64,
    pub(super) labels: Labels,
    pub(super) annotations: Told,
    pub(super) creation_timestamp: Option<Timestamp>,
    pub(super) deletion_timestamp: Option<Timestamp>,
    pub(super) deletion_grace_period_seconds: i64,
    pub(super) finalizers: Vec<Box<str>>,
    owner_references: Vec<OwnerReference>,
}

/// The annotations that decide something: what a controller keeps in mind, and what somebody who wants to see a pod fail may
/// say about its containers, which are no programs here.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Told {
    /// What they end with.
    #[serde(rename = "sim.windlass.dev/exit-code")]
    pub(super) exit_code: Option<Box<str>>,
    /// How long they run before that.
    #[serde(rename = "sim.windlass.dev/runs-for-seconds")]
    pub(super) runs_for_seconds: Option<Box<str>>,
    /// Which of the templates of its `Deployment` a set is for, as they came.
    #[serde(rename = "deployment.kubernetes.io/revision")]
    pub(super) revision: Option<Box<str>>,
}

impl Told {
    /// The number of a template; those without one came before all others.
    pub(super) fn revision(&self) -> i64 {
        self.revision.as_deref().and_then(|revision| revision.parse().ok()).unwrap_or(0)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OwnerReference {
    uid: Box<str>,
    controller: bool,
}

impl Meta {
    /// The uid of the controller that the object belongs to.
    pub(super) fn controller(&self) -> Option<&str> {
        self.owner_references.iter().find(|owner| owner.controller).map(|owner| &*owner.uid)
    }

    pub(super) fn created_at(&self) -> Timestamp {
        self.creation_timestamp.unwrap_or(Timestamp::UNIX_EPOCH)
    }

    pub(super) fn deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub(super) enum Truth {
    True,
    False,
    #[default]
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Condition {
    #[serde(rename = "type")]
    pub(super) type_: Box<str>,
    #[serde(default)]
    pub(super) status: Truth,
    #[serde(default)]
    pub(super) last_transition_time: Option<Timestamp>,
    #[serde(default)]
    pub(super) message: Box<str>,
}

fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| *condition.type_ == *type_)
}

/// A template of pods: kept as text, since it is compared often and read seldom.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct Template(pub(super) Box<RawValue>);

impl Template {
    /// The same for equal templates, in any World.
    pub(super) fn hash(&self) -> String {
        hash(self.0.get())
    }
}

fn hash(template: &str) -> String {
    suffix(Seed(0).stream(template).u64(), 10)
}

/// By what the pods of a template of pods are known in any World.
pub fn template_hash(template: &serde_json::Value) -> String {
    hash(&template.to_string())
}

/// Characters for a name, from the alphabet that Kubernetes uses for that.
pub(crate) fn suffix(mut bits: u64, characters: usize) -> String {
    const ALPHABET: [char; 27] = [
        'b', 'c', 'd', 'f', 'g', 'h', 'j', 'k', 'l', 'm', 'n', 'p', 'q', 'r', 's', 't', 'v', 'w', 'x', 'z', '2', '4',
        '5', '6', '7', '8', '9',
    ];
    let mut next = || {
        let index = usize::try_from(bits % 27).unwrap_or_default();
        bits /= 27;
        ALPHABET[index]
    };
    (0..characters).map(|_| next()).collect()
}

/// A number, or a share in percent.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum Amount {
    Number(i64),
    Share(Box<str>),
}

impl Amount {
    /// The number, of a whole; a share is rounded up.
    pub(super) fn of_rounded_up(&self, whole: i64) -> i64 {
        (self.hundredths(whole) + 99) / 100
    }

    /// The number, of a whole; a share is rounded down.
    pub(super) fn of_rounded_down(&self, whole: i64) -> i64 {
        self.hundredths(whole) / 100
    }

    fn hundredths(&self, whole: i64) -> i64 {
        match self {
            Self::Number(number) => number.saturating_mul(100),
            Self::Share(text) => text.trim_end_matches('%').parse::<i64>().unwrap_or_default().saturating_mul(whole),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_amount(amount: &str, whole: i64, up: i64, down: i64) {
        let amount: Amount = serde_json::from_str(amount).unwrap();
        assert_eq!((amount.of_rounded_up(whole), amount.of_rounded_down(whole)), (up, down), "{amount:?} of {whole}");
    }

    #[test]
    fn a_share_is_rounded_and_a_number_is_not() {
        check_amount("1", 3, 1, 1);
        check_amount(r#""25%""#, 4, 1, 1);
        check_amount(r#""25%""#, 2, 1, 0);
        check_amount(r#""0%""#, 9, 0, 0);
    }
}
