//! A pod: what it asks of its node, and how far its containers are.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use windlass_apiserver::quantity::Quantity;
use windlass_apiserver::store::Key;

use super::node::{Node, Room, Taint, Toleration};
use super::{Condition, Labels, Meta, Truth, find};

/// What a pod asks of its node, and what runs in it.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(in crate::workload) struct PodSpec {
    pub(in crate::workload) node_name: Option<Box<str>>,
    pub(in crate::workload) restart_policy: RestartPolicy,
    pub(in crate::workload) tolerations: Vec<Toleration>,
    node_selector: Labels,
    affinity: Option<Affinity>,
    containers: Vec<Container>,
    init_containers: Vec<Container>,
    volumes: Vec<Volume>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Volume {
    persistent_volume_claim: Option<ClaimSource>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClaimSource {
    claim_name: Box<str>,
}

/// What becomes of a container that has ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub(in crate::workload) enum RestartPolicy {
    Never,
    OnFailure,
    #[default]
    #[serde(other)]
    Always,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Container {
    image: Box<str>,
    resources: Resources,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Resources {
    requests: Requests,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Requests {
    cpu: Option<Box<str>>,
    memory: Option<Box<str>>,
}

impl Container {
    fn room(&self) -> Room {
        let read = |text: &Option<Box<str>>| text.as_deref().and_then(|text| Quantity::parse(text).ok());
        let requests = &self.resources.requests;
        Room {
            cpu_millis: read(&requests.cpu).map_or(0, Quantity::millis),
            memory_bytes: read(&requests.memory).map_or(0, Quantity::units),
            pods: 0,
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Affinity {
    node_affinity: Option<NodeAffinity>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NodeAffinity {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    required: Option<NodeSelector>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeSelector {
    node_selector_terms: Vec<Term>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Term {
    match_expressions: Vec<Requirement>,
    match_fields: Vec<Requirement>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Requirement {
    key: Box<str>,
    operator: Box<str>,
    values: Vec<Box<str>>,
}

impl Term {
    /// A term that asks for nothing matches nothing.
    fn matches(&self, node: &Node) -> bool {
        let labelled = |wish: &Requirement| wish.is_met_by(node.metadata.labels.get(&wish.key).map(|value| &**value));
        // The only field that may be asked for is the name.
        let named = |wish: &Requirement| &*wish.key == "metadata.name" && wish.is_met_by(Some(&node.metadata.name));
        let asks = !self.match_expressions.is_empty() || !self.match_fields.is_empty();
        asks && self.match_expressions.iter().all(labelled) && self.match_fields.iter().all(named)
    }
}

impl Requirement {
    fn is_met_by(&self, found: Option<&str>) -> bool {
        let among = |found: &str| self.values.iter().any(|value| **value == *found);
        let number = |text: &str| text.parse::<i64>().ok();
        let compared = |is_so: fn(i64, i64) -> bool| {
            let wish = self.values.first().and_then(|value| number(value));
            found.and_then(number).zip(wish).is_some_and(|(found, wish)| is_so(found, wish))
        };
        match &*self.operator {
            "In" => found.is_some_and(among),
            "NotIn" => !found.is_some_and(among),
            "Exists" => found.is_some(),
            "DoesNotExist" => found.is_none(),
            "Gt" => compared(|found, wish| found > wish),
            "Lt" => compared(|found, wish| found < wish),
            _ => false,
        }
    }
}

/// Why a node does not take a pod, in the words of kube-scheduler.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::workload) enum Refusal {
    Unschedulable,
    Taint { key: Box<str>, value: Box<str> },
    Affinity,
    Insufficient(&'static str),
    TooManyPods,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unschedulable => f.write_str("node(s) were unschedulable"),
            Self::Taint { key, value } => write!(f, "node(s) had untolerated taint {{{key}: {value}}}"),
            Self::Affinity => f.write_str("node(s) didn't match Pod's node affinity/selector"),
            Self::Insufficient(what) => write!(f, "Insufficient {what}"),
            Self::TooManyPods => f.write_str("Too many pods"),
        }
    }
}

impl PodSpec {
    /// The claims of a pod in this namespace.
    pub(in crate::workload) fn claims(&self, namespace: &str) -> Vec<Key> {
        let claims = self.volumes.iter().filter_map(|volume| volume.persistent_volume_claim.as_ref());
        claims.map(|claim| Key::new(namespace, &claim.claim_name)).collect()
    }

    /// Why a node with so much room left does not take the pod: the first reason, in the order in which kube-scheduler asks.
    pub(in crate::workload) fn refusal(&self, node: &Node, left: Room) -> Option<Refusal> {
        let cordon = Taint::new("node.kubernetes.io/unschedulable", Taint::NO_SCHEDULE);
        if node.spec.unschedulable && !self.tolerates(&cordon) {
            return Some(Refusal::Unschedulable);
        }
        if let Some(taint) = self.kept_away_by(node, &[Taint::NO_SCHEDULE, Taint::NO_EXECUTE]) {
            return Some(Refusal::Taint { key: taint.key.clone(), value: taint.value.clone() });
        }
        if !self.selects(node) {
            return Some(Refusal::Affinity);
        }
        let wish = self.room();
        if left.pods < wish.pods {
            return Some(Refusal::TooManyPods);
        }
        if left.cpu_millis < wish.cpu_millis {
            return Some(Refusal::Insufficient("cpu"));
        }
        (left.memory_bytes < wish.memory_bytes).then_some(Refusal::Insufficient("memory"))
    }

    /// Whether the node has the labels that the pod asks for.
    pub(in crate::workload) fn selects(&self, node: &Node) -> bool {
        let labelled = self.node_selector.iter().all(|(key, value)| node.metadata.labels.get(key) == Some(value));
        let affinity = self.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
        let required = affinity.and_then(|affinity| affinity.required.as_ref());
        labelled && required.is_none_or(|required| required.node_selector_terms.iter().any(|term| term.matches(node)))
    }

    /// The first taint of these effects that the pod does not tolerate.
    pub(in crate::workload) fn kept_away_by<'n>(&self, node: &'n Node, effects: &[&str]) -> Option<&'n Taint> {
        let mut taints = node.spec.taints.iter().filter(|taint| effects.contains(&&*taint.effect));
        taints.find(|taint| !self.tolerates(taint))
    }

    pub(in crate::workload) fn tolerates(&self, taint: &Taint) -> bool {
        self.tolerations.iter().any(|toleration| toleration.tolerates(taint))
    }

    /// How much the pod asks for: what all containers do together, or one that runs before them does alone.
    pub(in crate::workload) fn room(&self) -> Room {
        let all = self.containers.iter().map(Container::room).fold(Room::NONE, Room::plus);
        let most = self.init_containers.iter().map(Container::room).fold(all, Room::max);
        Room { pods: 1, ..most }
    }

    /// The images of its containers, those first that run before the others.
    pub(in crate::workload) fn images(&self) -> impl Iterator<Item = &str> {
        self.init_containers.iter().chain(&self.containers).map(|container| &*container.image)
    }
}

#[derive(Debug, Deserialize)]
pub(in crate::workload) struct Pod {
    pub(in crate::workload) metadata: Meta,
    #[serde(default)]
    pub(in crate::workload) spec: PodSpec,
    #[serde(default)]
    status: PodStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodStatus {
    phase: Box<str>,
    conditions: Vec<Condition>,
    container_statuses: Vec<ContainerStatus>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ContainerStatus {
    restart_count: i64,
    state: State,
    last_state: State,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct State {
    running: Option<Running>,
    waiting: Option<Waiting>,
    terminated: Option<Terminated>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Running {
    started_at: Option<Timestamp>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Waiting {
    reason: Box<str>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Terminated {
    finished_at: Option<Timestamp>,
}

/// How long a container runs that is to end, unless it is told otherwise.
const RUN: SignedDuration = SignedDuration::from_secs(10);
/// How long a kubelet waits before it starts a container again; twice as long each time.
const RESTART: SignedDuration = SignedDuration::from_secs(10);
/// The longest that it waits.
const RESTART_MAX: SignedDuration = SignedDuration::from_secs(300);

/// How far a pod is that is bound to a node and has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::workload) enum Life {
    /// It waits for a kubelet to start it.
    Starts,
    /// An image was asked for in vain, at this time.
    ImageMissing { since: Timestamp },
    /// An image is not asked for any more for a while.
    ImageAwaited,
    /// Its containers run, and go on doing so.
    Runs,
    /// Its containers run, and end at this time.
    RunsUntil(Timestamp),
    /// Its containers have ended, and are started again at this time.
    RestartsAt(Timestamp),
}

impl Pod {
    pub(in crate::workload) fn ready(&self) -> bool {
        find(&self.status.conditions, "Ready").is_some_and(|condition| condition.status == Truth::True)
    }

    pub(in crate::workload) fn deleting(&self) -> bool {
        self.metadata.deleting()
    }

    /// Its containers have ended for good.
    pub(in crate::workload) fn ended(&self) -> bool {
        self.succeeded() || self.failed()
    }

    pub(in crate::workload) fn succeeded(&self) -> bool {
        &*self.status.phase == "Succeeded"
    }

    pub(in crate::workload) fn failed(&self) -> bool {
        &*self.status.phase == "Failed"
    }

    /// It has not ended, and is not to end.
    pub(in crate::workload) fn active(&self) -> bool {
        !self.deleting() && !self.ended()
    }

    /// How far it is; nothing while it has no node, or has ended, or is to end.
    pub(in crate::workload) fn life(&self) -> Option<Life> {
        if !self.active() || self.spec.node_name.is_none() {
            return None;
        }
        let container = self.status.container_statuses.first();
        let waiting = container.and_then(|container| container.state.waiting.as_ref()).map(|waiting| &*waiting.reason);
        let life = match (&*self.status.phase, waiting) {
            (_, Some("ErrImagePull")) => Life::ImageMissing { since: self.unready_since() },
            (_, Some("ImagePullBackOff")) => Life::ImageAwaited,
            (_, Some("CrashLoopBackOff")) => Life::RestartsAt(self.restarts_at()),
            ("" | "Pending", _) => Life::Starts,
            _ => self.end_at().map_or(Life::Runs, Life::RunsUntil),
        };
        Some(life)
    }

    /// What its containers end with.
    pub(in crate::workload) fn exit_code(&self) -> i64 {
        self.metadata.annotations.exit_code.as_deref().and_then(|code| code.parse().ok()).unwrap_or(0)
    }

    /// How often its containers were started again.
    pub(in crate::workload) fn restarts(&self) -> i64 {
        self.status.container_statuses.iter().map(|container| container.restart_count).sum()
    }

    /// When its containers end: those end that are told to, and those of a pod that is not to run for ever and belongs to
    /// somebody who waits for its end.
    fn end_at(&self) -> Option<Timestamp> {
        let told = &self.metadata.annotations;
        let waited_for = self.spec.restart_policy != RestartPolicy::Always && self.metadata.controller().is_some();
        if !waited_for && told.exit_code.is_none() && told.runs_for_seconds.is_none() {
            return None;
        }
        let runs_for = told.runs_for_seconds.as_deref().and_then(|seconds| seconds.parse().ok());
        let runs_for = runs_for.map_or(RUN, SignedDuration::from_secs);
        let started = self.status.container_statuses.first()?.state.running.as_ref()?.started_at?;
        started.checked_add(runs_for).ok()
    }

    fn restarts_at(&self) -> Timestamp {
        let container = self.status.container_statuses.first();
        let ended = container.and_then(|container| container.last_state.terminated.as_ref()?.finished_at);
        let doublings = u32::try_from(self.restarts().clamp(1, 16) - 1).unwrap_or_default();
        let wait = RESTART.checked_mul(1 << doublings).unwrap_or(RESTART_MAX).min(RESTART_MAX);
        ended.unwrap_or_else(|| self.metadata.created_at()).checked_add(wait).unwrap_or(Timestamp::MAX)
    }

    fn unready_since(&self) -> Timestamp {
        let since = find(&self.status.conditions, "Ready").and_then(|ready| ready.last_transition_time);
        since.unwrap_or_else(|| self.metadata.created_at())
    }

    /// When its containers ended, all of them.
    pub(in crate::workload) fn ended_at(&self) -> Option<Timestamp> {
        let ended = |container: &ContainerStatus| container.state.terminated.as_ref()?.finished_at;
        self.status.container_statuses.iter().filter_map(ended).max()
    }

    /// What was said of why no node fits; nothing where nobody has looked yet.
    pub(in crate::workload) fn unschedulable(&self) -> Option<&str> {
        let scheduled = find(&self.status.conditions, "PodScheduled");
        scheduled.filter(|scheduled| scheduled.status == Truth::False).map(|scheduled| &*scheduled.message)
    }

    pub(in crate::workload) fn scheduled_at(&self) -> Timestamp {
        let scheduled =
            find(&self.status.conditions, "PodScheduled").and_then(|scheduled| scheduled.last_transition_time);
        scheduled.unwrap_or_else(|| self.metadata.created_at())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: &str = r#"{
        "metadata": {"name": "n", "labels": {"a": "1"}},
        "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}, {"key": "p", "effect": "PreferNoSchedule"}]}
    }"#;
    const ALL: &str = r#""tolerations": [{"operator": "Exists"}]"#;

    fn check(spec: &str, left: Room, refusal: Option<&str>) {
        let spec: PodSpec = serde_json::from_str(&format!("{{{spec}}}")).unwrap();
        let node: Node = serde_json::from_str(NODE).unwrap();
        assert_eq!(spec.refusal(&node, left).map(|refusal| refusal.to_string()).as_deref(), refusal, "{spec:?}");
    }

    #[test]
    fn a_pod_fits_where_it_is_selected_and_tolerates_what_keeps_others_away() {
        let tainted = Some("node(s) had untolerated taint {k: }");
        let room = Room::default();
        check(&format!(r#""nodeSelector": {{"a": "1"}}, {ALL}"#), room, None);
        check(r#""tolerations": [{"key": "k", "operator": "Exists", "effect": "NoSchedule"}]"#, room, None);
        check(r#""tolerations": [{"key": "k", "effect": "NoExecute"}]"#, room, tainted);
        check("", room, tainted);
        let elsewhere = Some("node(s) didn't match Pod's node affinity/selector");
        check(&format!(r#""nodeSelector": {{"a": "2"}}, {ALL}"#), room, elsewhere);
    }

    #[test]
    fn a_pod_may_ask_for_nodes_by_affinity() {
        let check_term = |term: &str, fits: bool| {
            let affinity = format!(
                r#""affinity": {{"nodeAffinity": {{"requiredDuringSchedulingIgnoredDuringExecution":
                    {{"nodeSelectorTerms": [{term}]}}}}}}, {ALL}"#
            );
            let refusal = (!fits).then_some("node(s) didn't match Pod's node affinity/selector");
            check(&affinity, Room::default(), refusal);
        };
        check_term(r#"{"matchExpressions": [{"key": "a", "operator": "In", "values": ["0", "1"]}]}"#, true);
        check_term(r#"{"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}"#, false);
        check_term(r#"{"matchExpressions": [{"key": "b", "operator": "NotIn", "values": ["1"]}]}"#, true);
        check_term(r#"{"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["0"]}]}"#, true);
        check_term(r#"{"matchExpressions": [{"key": "a", "operator": "Lt", "values": ["1"]}]}"#, false);
        check_term(r#"{"matchExpressions": [{"key": "b", "operator": "Exists"}]}"#, false);
        check_term(r#"{"matchExpressions": [{"key": "b", "operator": "DoesNotExist"}]}"#, true);
        check_term(r#"{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}"#, true);
        check_term("{}", false);
    }

    #[test]
    fn a_pod_fits_where_there_is_room_for_all_of_its_containers() {
        let wish = format!(
            r#""containers": [{{"resources": {{"requests": {{"cpu": "300m", "memory": "1Gi"}}}}}},
                {{"resources": {{"requests": {{"cpu": "0.2"}}}}}}],
               "initContainers": [{{"resources": {{"requests": {{"memory": "2Gi"}}}}}}], {ALL}"#
        );
        let room = |cpu_millis, gibibytes: i64, pods| Room { cpu_millis, memory_bytes: gibibytes << 30, pods };
        check(&wish, room(500, 2, 1), None);
        check(&wish, room(499, 2, 1), Some("Insufficient cpu"));
        check(&wish, room(500, 1, 1), Some("Insufficient memory"));
        check(&wish, room(500, 2, 0), Some("Too many pods"));
    }

    fn check_life(spec: &str, annotations: &str, status: &str, expected: Option<Life>) {
        let pod = format!(
            r#"{{"metadata": {{"annotations": {{{annotations}}}}}, "spec": {{"nodeName": "n", {spec}}}, "status": {{{status}}}}}"#
        );
        let pod: Pod = serde_json::from_str(&pod).unwrap();
        assert_eq!(pod.life(), expected, "{pod:?}");
    }

    #[test]
    fn how_far_a_pod_is_can_be_told_from_its_status() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let running = r#""phase": "Running", "containerStatuses": [{"state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]"#;
        let always = r#""restartPolicy": "Always""#;
        check_life(always, "", r#""phase": "Pending""#, Some(Life::Starts));
        check_life(always, "", running, Some(Life::Runs));
        let fails = r#""sim.windlass.dev/exit-code": "1", "sim.windlass.dev/runs-for-seconds": "3""#;
        check_life(always, fails, running, Some(Life::RunsUntil(at("2026-01-01T00:00:03Z"))));
        let third = r#""phase": "Running", "containerStatuses": [{"restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"finishedAt": "2026-01-01T00:00:00Z"}}}]"#;
        check_life(always, fails, third, Some(Life::RestartsAt(at("2026-01-01T00:00:40Z"))));
        check_life(always, "", r#""phase": "Failed""#, None);
    }
}
