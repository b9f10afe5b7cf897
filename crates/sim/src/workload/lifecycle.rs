//! The node lifecycle controller: what it makes of what kubelets say of their nodes, and of their silence.
//!
//! Taints follow from the condition `Ready` and from the cordon; pods that do not put up with a taint leave. There are no
//! leases: a kubelet that is switched off says nothing from then on, and one that is not is heard.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use windlass_apiserver::store::Key;
use windlass_apiserver::time;

use super::seen::{PodSpec, Taint, Truth};
use super::view::{Due, View};
use super::write::{NODES, PODS, set_condition};
use super::{Workload, pod};

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// How long a pod puts up with a node that is not ready, unless it says otherwise: an API server writes as much into it, by
/// its plugin `DefaultTolerationSeconds`.
const TOLERATED: SignedDuration = SignedDuration::from_secs(300);

/// What a kubelet says of its node apart from whether it is ready, and what it says when all is well.
pub(super) const PRESSURES: [(&str, &str, &str); 3] = [
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
];

/// The taints that a node has for what is heard of it: keys and effects.
fn wanted(heard: Option<Truth>, cordoned: bool) -> Vec<(&'static str, &'static str)> {
    let both = |key| vec![(key, Taint::NO_SCHEDULE), (key, Taint::NO_EXECUTE)];
    let mut taints = match heard {
        Some(Truth::False) => both(NOT_READY),
        Some(Truth::Unknown) => both(UNREACHABLE),
        Some(Truth::True) | None => Vec::new(),
    };
    if cordoned {
        taints.push((UNSCHEDULABLE, Taint::NO_SCHEDULE));
    }
    taints
}

fn is_ours(key: &str) -> bool {
    matches!(key, NOT_READY | UNREACHABLE | UNSCHEDULABLE)
}

/// Gives a node the taints that it should have.
pub(super) fn sync(workload: &Workload, view: &View, name: &str) {
    let Some(node) = view.nodes.get(name) else { return };
    let wanted = wanted(node.heard(), node.spec.unschedulable);
    let mut has: Vec<(&str, &str)> = node
        .spec
        .taints
        .iter()
        .filter(|taint| is_ours(&taint.key))
        .map(|taint| (&*taint.key, &*taint.effect))
        .collect();
    has.sort_unstable();
    let mut wish = wanted.clone();
    wish.sort_unstable();
    if has == wish {
        return;
    }
    let now = workload.now();
    workload.change(NODES, &Key::new("", name), |object| write_taints(object, &wanted, now));
}

/// Writes the taints into a node that follow from what is heard of it: whoever changes that need not be followed.
pub(super) fn taint(node: &mut Value, heard: Truth, now: Timestamp) {
    let cordoned = node["spec"]["unschedulable"] == true;
    write_taints(node, &wanted(Some(heard), cordoned), now);
}

fn write_taints(node: &mut Value, wanted: &[(&str, &str)], now: Timestamp) {
    let known = match node["spec"]["taints"].take() {
        Value::Array(taints) => taints,
        _ => Vec::new(),
    };
    let is = |taint: &Value, (key, effect): (&str, &str)| taint["key"] == key && taint["effect"] == effect;
    let (ours, mut taints): (Vec<Value>, Vec<Value>) =
        known.into_iter().partition(|taint| is_ours(taint["key"].as_str().unwrap_or_default()));
    for wish in wanted {
        let kept = ours.iter().find(|taint| is(taint, *wish)).cloned();
        let (key, effect) = wish;
        taints.push(kept.unwrap_or_else(|| json!({"key": key, "effect": effect, "timeAdded": time::format(now)})));
    }
    if let Value::Object(spec) = &mut node["spec"] {
        spec.remove("taints");
        if !taints.is_empty() {
            spec.insert("taints".to_owned(), taints.into());
        }
    }
}

/// A kubelet has been silent for too long: nobody knows how its node is, and its pods do not count any more.
pub(super) fn node_lost(workload: &Workload, view: &View, node: &str) {
    let now = workload.now();
    if !view.is_silent(node, now) || view.nodes.get(node).is_none_or(|node| node.heard() == Some(Truth::Unknown)) {
        return;
    }
    workload.change(NODES, &Key::new("", node), |object| {
        let silence = "Kubelet stopped posting node status.";
        for type_ in PRESSURES.map(|(type_, _, _)| type_).into_iter().chain(["Ready"]) {
            set_condition(object, type_, "Unknown", "NodeStatusUnknown", silence, now);
        }
        taint(object, Truth::Unknown, now);
    });
    for (key, _) in view.pods_on(node).filter(|(_, pod)| pod.ready()) {
        workload.change(PODS, key, |object| pod::lose(object, now));
    }
}

/// Pods that have put up with a taint of their node for long enough are to end, so that others take their place. On a node whose
/// kubelet is silent they are shown until the node is deleted, as nobody can tell whether they have ended.
pub(super) fn drive_away(workload: &Workload, view: &mut View, name: &str) {
    let Some(node) = view.nodes.get(name) else { return };
    let now = workload.now();
    let taints: Vec<&Taint> = node.spec.taints.iter().filter(|taint| &*taint.effect == Taint::NO_EXECUTE).collect();
    let mut next = None;
    for (key, pod) in view.pods_on(name).filter(|(_, pod)| pod.active()) {
        match leaves_at(&pod.spec, &taints) {
            Some(at) if at <= now => workload.delete_pod(key),
            Some(at) => next = Some(next.map_or(at, |next: Timestamp| next.min(at))),
            None => {}
        }
    }
    if let Some(at) = next {
        view.wake(at, Due::Evict(name.into()));
    }
}

/// When a pod leaves a node with these taints: as soon as one of them has been there for longer than the pod tolerates it.
fn leaves_at(spec: &PodSpec, taints: &[&Taint]) -> Option<Timestamp> {
    let tolerated = |taint: &Taint| {
        let mut tolerations = spec.tolerations.iter().filter(|toleration| toleration.tolerates(taint)).peekable();
        if tolerations.peek().is_none() {
            let defaulted = matches!(&*taint.key, NOT_READY | UNREACHABLE);
            return Some(if defaulted { TOLERATED } else { SignedDuration::ZERO });
        }
        // Those without a time are for ever, and others may still end it.
        let seconds = tolerations.filter_map(|toleration| toleration.seconds).min();
        seconds.map(|seconds| SignedDuration::from_secs(seconds.max(0)))
    };
    let left = |taint: &&Taint| {
        let since = taint.time_added.unwrap_or(Timestamp::UNIX_EPOCH);
        tolerated(taint).map(|tolerated| since.checked_add(tolerated).unwrap_or(Timestamp::MAX))
    };
    taints.iter().filter_map(left).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(tolerations: &str, key: &str, expected: Option<i64>) {
        let spec: PodSpec = serde_json::from_str(&format!(r#"{{"tolerations": [{tolerations}]}}"#)).unwrap();
        let taint = Taint { time_added: Some(Timestamp::UNIX_EPOCH), ..Taint::new(key, Taint::NO_EXECUTE) };
        let leaves = leaves_at(&spec, &[&taint]).map(Timestamp::as_second);
        assert_eq!(leaves, expected, "{tolerations} with {key}");
    }

    #[test]
    fn a_pod_leaves_when_it_has_tolerated_a_taint_for_long_enough() {
        check("", UNREACHABLE, Some(300));
        check("", "maintenance", Some(0));
        check(r#"{"operator": "Exists"}"#, UNREACHABLE, None);
        check(r#"{"key": "maintenance", "operator": "Exists", "tolerationSeconds": 60}"#, "maintenance", Some(60));
        let both = r#"{"operator": "Exists"}, {"key": "maintenance", "operator": "Exists", "tolerationSeconds": 5}"#;
        check(both, "maintenance", Some(5));
        check(r#"{"operator": "Exists", "tolerationSeconds": -1}"#, NOT_READY, Some(0));
    }

    #[test]
    fn taints_follow_from_what_is_heard_and_those_of_others_stay() {
        let mut node = json!({"spec": {"taints": [{"key": "theirs", "effect": "NoExecute"}]}});
        let keys = |node: &Value| {
            let taints = node["spec"]["taints"].as_array().unwrap();
            taints
                .iter()
                .map(|taint| format!("{}:{}", taint["key"], taint["effect"]).replace('"', ""))
                .collect::<Vec<_>>()
        };
        let at = |second| Timestamp::from_second(second).unwrap();
        taint(&mut node, Truth::False, at(1));
        let not_ready =
            ["theirs:NoExecute", "node.kubernetes.io/not-ready:NoSchedule", "node.kubernetes.io/not-ready:NoExecute"];
        assert_eq!(keys(&node), not_ready);
        taint(&mut node, Truth::False, at(2));
        assert_eq!(node["spec"]["taints"][1]["timeAdded"], "1970-01-01T00:00:01Z", "it is the same taint");
        node["spec"]["unschedulable"] = true.into();
        taint(&mut node, Truth::True, at(3));
        assert_eq!(keys(&node), ["theirs:NoExecute", "node.kubernetes.io/unschedulable:NoSchedule"]);
    }
}
