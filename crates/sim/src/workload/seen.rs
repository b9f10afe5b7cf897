//! Objects as the simulators of a workload cluster see them: the fields that decide something, and no others.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use windlass_runtime::chance::Seed;

pub(super) type Labels = BTreeMap<Box<str>, Box<str>>;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Meta {
    pub(super) name: Box<str>,
    pub(super) uid: Box<str>,
    pub(super) generation: i64,
    pub(super) labels: Labels,
    pub(super) creation_timestamp: Option<Timestamp>,
    pub(super) deletion_timestamp: Option<Timestamp>,
    pub(super) deletion_grace_period_seconds: i64,
    pub(super) finalizers: Vec<Box<str>>,
    owner_references: Vec<OwnerReference>,
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
}

fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| *condition.type_ == *type_)
}

#[derive(Debug, Deserialize)]
pub(super) struct Node {
    pub(super) metadata: Meta,
    #[serde(default)]
    pub(super) spec: NodeSpec,
    #[serde(default)]
    status: NodeStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct NodeSpec {
    #[serde(rename = "providerID")]
    pub(super) provider_id: String,
    pub(super) unschedulable: bool,
    pub(super) taints: Vec<Taint>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeStatus {
    conditions: Vec<Condition>,
    addresses: Vec<Address>,
    node_info: NodeInfo,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Address {
    #[serde(rename = "type")]
    type_: Box<str>,
    address: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeInfo {
    kubelet_version: String,
}

impl Node {
    pub(super) fn ready(&self) -> Truth {
        find(&self.status.conditions, "Ready").map(|condition| condition.status).unwrap_or_default()
    }

    pub(super) fn kubelet(&self) -> &str {
        &self.status.node_info.kubelet_version
    }

    pub(super) fn address(&self) -> String {
        let internal = self.status.addresses.iter().find(|address| &*address.type_ == "InternalIP");
        internal.map(|address| address.address.clone()).unwrap_or_default()
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Taint {
    key: Box<str>,
    value: Box<str>,
    effect: Box<str>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Toleration {
    key: Box<str>,
    operator: Box<str>,
    value: Box<str>,
    effect: Box<str>,
    #[serde(rename = "tolerationSeconds")]
    seconds: Option<i64>,
}

impl Toleration {
    fn tolerates(&self, taint: &Taint) -> bool {
        let effect = self.effect.is_empty() || self.effect == taint.effect;
        let key = self.key == taint.key || (self.key.is_empty() && &*self.operator == "Exists");
        effect && key && (&*self.operator == "Exists" || self.value == taint.value)
    }
}

/// What a pod asks of its node.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PodSpec {
    pub(super) node_name: Option<Box<str>>,
    node_selector: Labels,
    tolerations: Vec<Toleration>,
}

impl PodSpec {
    /// Whether the node has what the pod selects, and no taint that keeps it away.
    pub(super) fn fits(&self, node: &Node) -> bool {
        let selected = self.node_selector.iter().all(|(key, value)| node.metadata.labels.get(key) == Some(value));
        let keeps_away = |taint: &&Taint| matches!(&*taint.effect, "NoSchedule" | "NoExecute");
        let tolerated = |taint: &Taint| self.tolerations.iter().any(|toleration| toleration.tolerates(taint));
        selected && node.spec.taints.iter().filter(keeps_away).all(tolerated)
    }

    /// Whether the pod puts up with a node that nobody hears of, for ever.
    pub(super) fn tolerates_unreachable(&self) -> bool {
        let taint =
            Taint { key: "node.kubernetes.io/unreachable".into(), value: Box::default(), effect: "NoExecute".into() };
        self.tolerations.iter().any(|toleration| toleration.seconds.is_none() && toleration.tolerates(&taint))
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Pod {
    pub(super) metadata: Meta,
    #[serde(default)]
    pub(super) spec: PodSpec,
    #[serde(default)]
    status: PodStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PodStatus {
    phase: Box<str>,
    conditions: Vec<Condition>,
}

impl Pod {
    pub(super) fn ready(&self) -> bool {
        find(&self.status.conditions, "Ready").is_some_and(|condition| condition.status == Truth::True)
    }

    pub(super) fn deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// It has not ended, and is not to end.
    pub(super) fn active(&self) -> bool {
        !self.deleting() && !matches!(&*self.status.phase, "Succeeded" | "Failed")
    }

    /// It waits for a kubelet to start it.
    pub(super) fn starts(&self) -> bool {
        self.active() && self.spec.node_name.is_some() && matches!(&*self.status.phase, "" | "Pending")
    }

    /// It was said that no node fits.
    pub(super) fn known_unschedulable(&self) -> bool {
        find(&self.status.conditions, "PodScheduled").is_some_and(|condition| condition.status == Truth::False)
    }

    pub(super) fn scheduled_at(&self) -> Timestamp {
        let scheduled =
            find(&self.status.conditions, "PodScheduled").and_then(|scheduled| scheduled.last_transition_time);
        scheduled.unwrap_or_else(|| self.metadata.created_at())
    }
}

/// A template of pods: kept as text, since it is compared often and read seldom.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct Template(pub(super) Box<RawValue>);

impl Template {
    /// The same for equal templates, in any World.
    pub(super) fn hash(&self) -> String {
        suffix(Seed(0).stream(self.0.get()).u64(), 10)
    }
}

/// Characters for a name, from the alphabet that Kubernetes uses for that.
pub(super) fn suffix(mut bits: u64, characters: usize) -> String {
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

#[derive(Debug, Deserialize)]
pub(super) struct DaemonSet {
    pub(super) metadata: Meta,
    pub(super) spec: DaemonSetSpec,
    #[serde(default)]
    pub(super) status: DaemonSetStatus,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DaemonSetSpec {
    pub(super) template: Template,
    #[serde(default)]
    pub(super) update_strategy: Strategy,
}

#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct DaemonSetStatus {
    pub(super) current_number_scheduled: i64,
    pub(super) desired_number_scheduled: i64,
    pub(super) number_available: i64,
    pub(super) number_misscheduled: i64,
    pub(super) number_ready: i64,
    pub(super) number_unavailable: i64,
    pub(super) observed_generation: i64,
    pub(super) updated_number_scheduled: i64,
}

/// How pods are replaced by newer ones.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Strategy {
    #[serde(rename = "type")]
    pub(super) type_: Box<str>,
    pub(super) rolling_update: RollingUpdate,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RollingUpdate {
    pub(super) max_surge: Option<Amount>,
    pub(super) max_unavailable: Option<Amount>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Deployment {
    pub(super) metadata: Meta,
    pub(super) spec: DeploymentSpec,
    #[serde(default)]
    pub(super) status: DeploymentStatus,
}

#[derive(Debug, Deserialize)]
pub(super) struct DeploymentSpec {
    #[serde(default = "one")]
    pub(super) replicas: i64,
    pub(super) selector: Box<RawValue>,
    pub(super) template: Template,
    #[serde(default)]
    pub(super) strategy: Strategy,
}

fn one() -> i64 {
    1
}

#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct DeploymentStatus {
    pub(super) available_replicas: i64,
    pub(super) observed_generation: i64,
    pub(super) ready_replicas: i64,
    pub(super) replicas: i64,
    pub(super) unavailable_replicas: i64,
    pub(super) updated_replicas: i64,
}

#[derive(Debug, Deserialize)]
pub(super) struct ReplicaSet {
    pub(super) metadata: Meta,
    pub(super) spec: ReplicaSetSpec,
    #[serde(default)]
    pub(super) status: ReplicaSetStatus,
}

#[derive(Debug, Deserialize)]
pub(super) struct ReplicaSetSpec {
    #[serde(default = "one")]
    pub(super) replicas: i64,
    pub(super) template: Template,
}

#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ReplicaSetStatus {
    pub(super) available_replicas: i64,
    pub(super) fully_labeled_replicas: i64,
    pub(super) observed_generation: i64,
    pub(super) ready_replicas: i64,
    pub(super) replicas: i64,
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

    fn check_fit(pod: &str, node: &str, fits: bool) {
        let pod: Pod = serde_json::from_str(pod).unwrap();
        let node: Node = serde_json::from_str(node).unwrap();
        assert_eq!(pod.spec.fits(&node), fits, "{pod:?} on {node:?}");
    }

    #[test]
    fn a_pod_fits_where_it_is_selected_and_tolerates_what_keeps_others_away() {
        let node = r#"{"metadata": {"labels": {"a": "1"}}, "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}, {"key": "p", "effect": "PreferNoSchedule"}]}}"#;
        let pod = |selector: &str, tolerations: &str| {
            format!(
                r#"{{"metadata": {{}}, "spec": {{"nodeSelector": {{{selector}}}, "tolerations": [{tolerations}]}}}}"#
            )
        };
        check_fit(&pod(r#""a": "1""#, r#"{"operator": "Exists"}"#), node, true);
        check_fit(&pod("", r#"{"key": "k", "operator": "Exists", "effect": "NoSchedule"}"#), node, true);
        check_fit(&pod("", r#"{"key": "k", "effect": "NoExecute"}"#), node, false);
        check_fit(&pod("", ""), node, false);
        check_fit(&pod(r#""a": "2""#, r#"{"operator": "Exists"}"#), node, false);
    }
}
