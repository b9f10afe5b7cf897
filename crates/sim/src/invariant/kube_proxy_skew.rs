//! V5: no kube-proxy is newer than an API server, and none is much older.

use windlass_api::version::KubernetesVersion;
use windlass_api::version::facts::behind_max;

use super::exemption::PROXY_OF_NEW_CONTROL_PLANE;
use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Proxy, Topic};

pub(super) const RULE: Rule = Rule {
    id: "V5",
    demands: "No kube-proxy is newer than an API server of its cluster, nor more than three minors older (two below 1.25), and it is \
              no further from the kubelet beside it.",
    topics: &[Topic::Nodes, Topic::Request],
    check,
};

/// Every kube-proxy reaches every API server, through the address of the cluster.
fn check(cluster: &Cluster, _: &Fact, findings: &mut Findings) {
    let workload = &cluster.workload;
    let servers = || workload.serving().map(|(node, version)| (version, node));
    let (Some(oldest), Some(newest)) = (servers().min(), servers().max()) else { return };
    for (pod, proxy) in workload.proxies.iter().filter(|(_, proxy)| workload.runs(&proxy.node)) {
        let say = |(version, server)| {
            format!("kube-proxy on {} is {}, and the API server on {server} is {version}", proxy.node, proxy.version)
        };
        let kubelet = workload.nodes.get(&proxy.node).and_then(|node| node.kubelet.as_ref());
        let apart_max = behind_max(&proxy.version);
        if let Some(kubelet) =
            kubelet.filter(|kubelet| !proxy.version.distance_from(kubelet).is_within(apart_max, apart_max))
        {
            findings.breach(
                &**pod,
                format!("kube-proxy on {} is {}, and its kubelet {kubelet}", proxy.node, proxy.version),
            );
        } else if !proxy.version.distance_from(newest.0).is_within(apart_max, u64::MAX) {
            findings.breach(&**pod, say(newest));
        } else if proxy.version.minor() <= oldest.0.minor() {
            // Neither too old nor too new.
        } else if cluster.rolls_to().is_some_and(|to| is_of_new_machine(cluster, proxy, to)) {
            findings.exempt(&PROXY_OF_NEW_CONTROL_PLANE, &**pod, say(oldest));
        } else {
            findings.breach(&**pod, say(oldest));
        }
    }
}

/// On a machine of the control plane, at the version that the roll leads to, and no other.
fn is_of_new_machine(cluster: &Cluster, proxy: &Proxy, to: &KubernetesVersion) -> bool {
    cluster.is_of_control_plane(&proxy.node) && proxy.version.minor() == to.minor()
}
