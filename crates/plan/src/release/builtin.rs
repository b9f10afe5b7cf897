//! The add-ons that kubeadm would install, which are ours because their order matters: kube-proxy and `CoreDNS`.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_api::label;
use windlass_api::name::AddonName;

use super::{AddonRelease, ImageTag, Release, placement};

const NAMESPACE: &str = "kube-system";

/// As many as kubeadm runs.
const COREDNS_REPLICAS: u32 = 2;

/// kube-proxy and `CoreDNS` as they come with a release, from the repository of Kubernetes and from the image that are given;
/// or why they cannot.
pub(super) fn addons(
    release: &Release,
    repository: &str,
    dns_image: &ImageTag,
) -> Result<BTreeMap<AddonName, AddonRelease>, String> {
    let addon = |name: &str, slot: &str, display_name: &str, version: String, mut object: Value| {
        let name = AddonName::new(name).map_err(|error| error.to_string())?;
        placement::make_safe(&mut object, &name, &release.distribution)?;
        let (slot, display_name) = (slot.to_owned(), display_name.to_owned());
        Ok((name, AddonRelease { slot, display_name, version, objects: vec![object] }))
    };
    let proxy = kube_proxy(release, repository);
    [
        addon("kube-proxy", "proxy", "kube-proxy", release.kubernetes.to_string(), proxy),
        addon("coredns", "dns", "CoreDNS", dns_image.tag.clone(), coredns(dns_image)),
    ]
    .into_iter()
    .collect()
}

/// It may not be newer than any API server, which is why it is bound to the distribution of its node.
fn kube_proxy(release: &Release, repository: &str) -> Value {
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
                        "image": format!("{repository}/kube-proxy:{}", release.kubernetes.tag()),
                    }],
                },
            },
        },
    })
}

/// Its pods run on machines of the control plane too: in an update those are the first of the new distribution, and the
/// first pod has to run on one of them before any old one may go.
fn coredns(image: &ImageTag) -> Value {
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
                        "image": format!("{}/coredns:{}", image.repository, image.tag),
                    }],
                },
            },
        },
    })
}
