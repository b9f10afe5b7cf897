//! Nothing is left behind further than API servers support it.
//!
//! A kubelet or kube-proxy may be a few minors older than an API server, and no more. The control plane waits for those that
//! its next step would leave too far behind: workers first, then.

use serde_json::Value;
use windlass_api::version::{KubernetesVersion, facts};

use super::Blocked;
use crate::inventory::Reachable;
use crate::package::{self, PROXY};

/// Refuses to raise API servers to a version that a kubelet or kube-proxy in the cluster is too old for.
pub fn kubelets_not_too_old(to: &KubernetesVersion, workload: &Reachable<'_>) -> Option<Blocked> {
    let is_too_old = |at: &KubernetesVersion| !at.distance_from(to).is_within(facts::behind_max(at), u64::MAX);
    let kubelets = workload.nodes.iter().map(|node| (format!("Node/{}", node.name), node.kubelet.clone()));
    let proxies = workload.addons.iter().filter(|(addon, _)| addon.as_str() == PROXY).flat_map(|(_, found)| found);
    let proxies = proxies.filter(|found| runs_pods(&found.live));
    let proxies = proxies.filter_map(|found| Some((package::object_name(&found.live), proxy_version(&found.live)?)));
    let (object, at) = kubelets.chain(proxies).find(|(_, at)| is_too_old(at))?;
    Some(Blocked::TooOld { object, at, to: to.clone() })
}

fn runs_pods(live: &Value) -> bool {
    live["status"]["desiredNumberScheduled"].as_u64().unwrap_or_default() > 0
}

/// The version in the tag of its image.
fn proxy_version(live: &Value) -> Option<KubernetesVersion> {
    let image = live.pointer("/spec/template/spec/containers/0/image")?.as_str()?;
    let (_, tag) = image.rsplit_once(':')?;
    tag.parse().ok()
}
