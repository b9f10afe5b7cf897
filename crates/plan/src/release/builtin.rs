//! The add-ons that kubeadm would install, which are ours because their order matters: kube-proxy and `CoreDNS`.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_api::label;
use windlass_api::name::{AddonName, NameError};

use super::{AddonRelease, Release, placement};

const NAMESPACE: &str = "kube-system";

/// As many as kubeadm runs.
const COREDNS_REPLICAS: u32 = 2;

/// kube-proxy and `CoreDNS` as they come with a release.
pub(super) fn addons(release: &Release) -> Result<BTreeMap<AddonName, AddonRelease>, NameError> {
    let proxy = AddonName::new("kube-proxy")?;
    let dns = AddonName::new("coredns")?;
    let addon = |name: &AddonName, slot: &str, display_name: &str, version: String, mut object: Value| {
        placement::make_safe(&mut object, name, &release.distribution);
        AddonRelease { slot: slot.to_owned(), display_name: display_name.to_owned(), version, objects: vec![object] }
    };
    let proxy_addon = addon(&proxy, "proxy", "kube-proxy", release.kubernetes.to_string(), kube_proxy(release));
    let dns_addon = addon(&dns, "dns", "CoreDNS", release.coredns.tag.clone(), coredns(release));
    Ok(BTreeMap::from([(proxy, proxy_addon), (dns, dns_addon)]))
}

/// It may not be newer than any API server, which is why it is bound to the distribution of its node.
fn kube_proxy(release: &Release) -> Value {
    let labels = json!({ "k8s-app": "kube-proxy" });
    json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": { "name": "kube-proxy", "namespace": NAMESPACE, "labels": labels },
        "spec": {
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "priorityClassName": "system-node-critical",
                    "hostNetwork": true,
                    "tolerations": [{ "operator": "Exists" }],
                    "containers": [{
                        "name": "kube-proxy",
                        "image": format!("{}/kube-proxy:{}", release.image_repository, release.kubernetes.tag()),
                    }],
                },
            },
        },
    })
}

/// Its pods run on machines of the control plane too: in an update those are the first of the new distribution, and the
/// first pod has to run on one of them before any old one may go.
fn coredns(release: &Release) -> Value {
    let labels = json!({ "k8s-app": "kube-dns" });
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": "coredns", "namespace": NAMESPACE, "labels": labels },
        "spec": {
            "replicas": COREDNS_REPLICAS,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "priorityClassName": "system-cluster-critical",
                    "tolerations": [
                        { "key": "CriticalAddonsOnly", "operator": "Exists" },
                        { "key": label::NODE_MASTER.name, "operator": "Exists", "effect": "NoSchedule" },
                        { "key": label::NODE_CONTROL_PLANE.name, "operator": "Exists", "effect": "NoSchedule" },
                    ],
                    "containers": [{
                        "name": "coredns",
                        "image": format!("{}/coredns:{}", release.coredns.repository, release.coredns.tag),
                    }],
                },
            },
        },
    })
}
