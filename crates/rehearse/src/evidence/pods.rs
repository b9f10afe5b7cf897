//! Pods and their budgets.

use serde_json::Value;
use windlass_api::label;
use windlass_plan::risk::evidence::{Budget, Evidence, Pod, PullFailure};

use super::lists::Lists;
use super::object::{
    self, condition, controller, full_name, labels, list, namespace_of, said, selects, some_text, text,
};
use super::workload::named;

/// What the API says of a pod that its kubelet runs from a file.
const MIRROR: &str = "kubernetes.io/config.mirror";
/// What a kubelet says that cannot get an image.
const WITHOUT_IMAGE: [&str; 4] = ["ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName"];
const STATUSES: [&str; 3] =
    ["/status/initContainerStatuses", "/status/containerStatuses", "/status/ephemeralContainerStatuses"];

pub(super) fn fill(evidence: &mut Evidence, lists: &Lists<'_>) {
    let pods = lists.kind("Pod");
    let budgets = lists.kind("PodDisruptionBudget");
    let all = pods.read().cloned().unwrap_or_default();
    evidence.budgets = budgets.map(|found| found.into_iter().map(|found| budget(found, &all)).collect());
    evidence.pods = pods.map(|pods| pods.into_iter().map(|found| pod(lists, found)).collect());
}

fn pod(lists: &Lists<'_>, pod: &Value) -> Pod {
    let owner = controller(pod);
    let by_daemon_set = owner.as_ref().is_some_and(|owner| owner.starts_with("DaemonSet/"));
    let is_kept = object::label(pod, label::POD_DRAIN.name) == Some(label::PodDrain::Skip.as_str());
    let phase = text(pod, "/status/phase");
    let volumes = || list(pod, "/spec/volumes");
    let in_memory = |volume: &&Value| text(volume, "/emptyDir/medium") == "Memory";
    let scratch = volumes().filter(|volume| volume["emptyDir"].is_object() && !in_memory(volume));
    let claims = volumes().filter_map(|volume| some_text(volume, "/persistentVolumeClaim/claimName"));
    let namespace = namespace_of(pod);
    Pod {
        name: full_name(pod),
        node: some_text(pod, "/spec/nodeName"),
        package: package(lists, pod, owner.as_deref()),
        owner,
        stays: by_daemon_set || is_kept || object::annotation(pod, MIRROR).is_some(),
        ended: matches!(phase, "Succeeded" | "Failed"),
        pending: phase == "Pending",
        not_ready: not_ready(pod),
        scratch: scratch.map(|volume| text(volume, "/name").to_owned()).collect(),
        claims: claims.map(|claim| format!("{namespace}/{claim}")).collect(),
        pull_failures: STATUSES.iter().flat_map(|statuses| pull_failures(pod, statuses)).collect(),
    }
}

fn not_ready(pod: &Value) -> Option<String> {
    match condition(pod, "Ready") {
        Some(ready) if ready["status"] == "True" => None,
        // A pod that nobody has room for says so elsewhere.
        ready => {
            let scheduled = condition(pod, "PodScheduled").filter(|condition| condition["status"] == "False");
            Some(scheduled.or(ready).map_or_else(|| format!("it is {}", text(pod, "/status/phase")), said))
        }
    }
}

/// The containers that wait for their image.
fn pull_failures<'v>(pod: &'v Value, statuses: &str) -> impl Iterator<Item = PullFailure> + use<'v> {
    list(pod, statuses).filter_map(|status| {
        let waiting = status.pointer("/state/waiting")?;
        let failed = WITHOUT_IMAGE.contains(&text(waiting, "/reason"));
        failed.then(|| PullFailure { image: text(status, "/image").to_owned(), why: said(waiting) })
    })
}

/// The package of Windlass that a pod is part of: its owner, or the owner of that, has the label.
fn package(lists: &Lists<'_>, pod: &Value, owner: Option<&str>) -> Option<String> {
    let namespace = namespace_of(pod);
    let find = |owner: &str| {
        let (kind, name) = owner.split_once('/')?;
        named(lists, kind, &format!("{namespace}/{name}"))
    };
    let owner = find(owner?)?;
    let addon = |object: &Value| object::label(object, label::ADDON.name).map(str::to_owned);
    addon(owner).or_else(|| addon(find(&controller(owner)?)?))
}

fn budget(budget: &Value, pods: &[&Value]) -> Budget {
    let selector = budget.pointer("/spec/selector");
    let namespace = namespace_of(budget);
    let its_own = |pod: &&&Value| namespace_of(pod) == namespace && selects(selector, &labels(pod));
    let amount = |field: &str| serde_json::from_value(budget["spec"][field].clone()).ok();
    let expected = budget.pointer("/status/expectedPods").and_then(Value::as_u64);
    Budget {
        name: full_name(budget),
        pods: pods.iter().filter(its_own).map(|pod| full_name(pod)).collect(),
        min_available: amount("minAvailable"),
        max_unavailable: amount("maxUnavailable"),
        expected: expected.and_then(|count| u32::try_from(count).ok()).filter(|count| *count > 0),
        lets_unready_go: text(budget, "/spec/unhealthyPodEvictionPolicy") == "AlwaysAllow",
    }
}
