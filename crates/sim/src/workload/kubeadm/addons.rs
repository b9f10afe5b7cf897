//! The add-ons of `kubeadm init`: kube-proxy and `CoreDNS`, each with what it needs to run, unless its phase is left out.

use serde_json::{Value, json};
use windlass_api::label;
use windlass_api::version::{KubernetesVersion, facts};
use windlass_apiserver::store::Key;

use super::super::Workload;
use super::super::record::Machine;
use super::super::write::{DAEMON_SETS, DEPLOYMENTS, SERVICE_ACCOUNTS, SERVICES};
use super::leaves::{bind, config_map, group, may_get, role};
use super::{KUBE_SYSTEM, yaml};

const KUBE_PROXY: &str = "kube-proxy";
const COREDNS: &str = "coredns";
/// What services get their addresses from, unless it is said otherwise.
const SERVICE_SUBNET: &str = "10.96.0.0/12";
/// As many as kubeadm runs.
const COREDNS_REPLICAS: i64 = 2;

/// Writes both, but for what the configuration leaves out.
pub(super) fn write(workload: &Workload, machine: &Machine, cluster: &Value, version: &KubernetesVersion) {
    let skipped = &machine.configuration.skip_phases;
    let skips = |phase: &str| skipped.iter().any(|skipped| skipped == "addon" || skipped == phase);
    if !skips("addon/kube-proxy") {
        write_proxy(workload, machine, cluster, version);
    }
    if !skips("addon/coredns") {
        write_dns(workload, cluster, version);
    }
}

fn account(workload: &Workload, name: &str) -> Value {
    workload.create(SERVICE_ACCOUNTS, &Key::new(KUBE_SYSTEM, name), json!({"metadata": {}}));
    json!({"kind": "ServiceAccount", "name": name, "namespace": KUBE_SYSTEM})
}

fn repository<'a>(cluster: &'a Value, version: &KubernetesVersion) -> &'a str {
    cluster["imageRepository"].as_str().unwrap_or(facts::image_repository(version))
}

fn write_proxy(workload: &Workload, machine: &Machine, cluster: &Value, version: &KubernetesVersion) {
    let itself = account(workload, KUBE_PROXY);
    bind(workload, "", "kubeadm:node-proxier", "ClusterRole", "system:node-proxier", &[itself]);
    role(workload, KUBE_SYSTEM, KUBE_PROXY, &json!([may_get(&["configmaps"], Some(KUBE_PROXY))]));
    let joining = group("system:bootstrappers:kubeadm:default-node-token");
    bind(workload, KUBE_SYSTEM, KUBE_PROXY, "Role", KUBE_PROXY, &[joining]);
    let pods = cluster["networking"]["podSubnet"].as_str().unwrap_or_default();
    let config = json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "clusterCIDR": pods,
        "clientConnection": {"kubeconfig": "/var/lib/kube-proxy/kubeconfig.conf"},
    });
    let own = format!("{}:6443", machine.address);
    let endpoint = cluster["controlPlaneEndpoint"].as_str().unwrap_or(&own);
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "default",
        "clusters": [{"name": "default", "cluster": {"server": format!("https://{endpoint}")}}],
        "contexts": [{"name": "default", "context": {"cluster": "default", "namespace": "default", "user": "default"}}],
        "users": [{"name": "default", "user": {"tokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token"}}],
    });
    let data = json!({"config.conf": yaml(&config), "kubeconfig.conf": yaml(&kubeconfig)});
    config_map(workload, KUBE_SYSTEM, KUBE_PROXY, &data);
    let image = format!("{}/kube-proxy:{}", repository(cluster, version), version.tag());
    let labels = json!({"k8s-app": KUBE_PROXY});
    let set = json!({
        "metadata": {"labels": labels, "annotations": {"deprecated.daemonset.template.generation": "1"}},
        "spec": {
            "revisionHistoryLimit": 10,
            "selector": {"matchLabels": labels},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
            "template": {"metadata": {"labels": labels}, "spec": {
                "containers": [{"name": KUBE_PROXY, "image": image, "command": [
                    "/usr/local/bin/kube-proxy", "--config=/var/lib/kube-proxy/config.conf",
                    "--hostname-override=$(NODE_NAME)",
                ]}],
                "hostNetwork": true, "nodeSelector": {"kubernetes.io/os": "linux"},
                "priorityClassName": "system-node-critical", "serviceAccountName": KUBE_PROXY,
                "tolerations": [{"operator": "Exists"}],
            }},
        },
    });
    workload.create(DAEMON_SETS, &Key::new(KUBE_SYSTEM, KUBE_PROXY), set);
}

fn write_dns(workload: &Workload, cluster: &Value, version: &KubernetesVersion) {
    let itself = account(workload, COREDNS);
    let watch = |group: &str, resources: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": ["list", "watch"]});
    let rules = json!([
        watch("", &["endpoints", "services", "pods", "namespaces"]),
        may_get(&["nodes"], None),
        watch("discovery.k8s.io", &["endpointslices"]),
    ]);
    role(workload, "", "system:coredns", &rules);
    bind(workload, "", "system:coredns", "ClusterRole", "system:coredns", &[itself]);
    let domain = cluster["networking"]["dnsDomain"].as_str().unwrap_or("cluster.local");
    config_map(workload, KUBE_SYSTEM, COREDNS, &json!({"Corefile": corefile(domain)}));
    workload.create(SERVICES, &Key::new(KUBE_SYSTEM, "kube-dns"), dns_service(cluster));
    workload.create(DEPLOYMENTS, &Key::new(KUBE_SYSTEM, COREDNS), dns_deployment(&dns_image(cluster, version)));
}

/// In the default repository the image has a path of its own from 1.21 on; in others it never had one.
fn dns_image(cluster: &Value, version: &KubernetesVersion) -> String {
    let given = &cluster["dns"];
    let tag = given["imageTag"].as_str().unwrap_or(facts::coredns_tag(version));
    match given["imageRepository"].as_str().or(cluster["imageRepository"].as_str()) {
        Some(repository) => format!("{repository}/coredns:{tag}"),
        None => format!("{}/{}:{tag}", facts::image_repository(version), facts::coredns_path(version)),
    }
}

fn corefile(domain: &str) -> String {
    format!(
        ".:53 {{\n    errors\n    health {{\n       lameduck 5s\n    }}\n    ready\n    kubernetes {domain} in-addr.arpa ip6.arpa {{\n       \
         pods insecure\n       fallthrough in-addr.arpa ip6.arpa\n       ttl 30\n    }}\n    prometheus :9153\n    \
         forward . /etc/resolv.conf {{\n       max_concurrent 1000\n    }}\n    cache 30\n    loop\n    reload\n    \
         loadbalance\n}}\n"
    )
}

/// The tenth address of the services' subnet is that of DNS.
fn dns_service(cluster: &Value) -> Value {
    let subnet = cluster["networking"]["serviceSubnet"].as_str().unwrap_or(SERVICE_SUBNET);
    let first = subnet.split(',').next().and_then(|subnet| subnet.split_once('/')).map(|(address, _)| address);
    let address = first.and_then(|address| address.parse::<std::net::Ipv4Addr>().ok());
    let address = address.map(|address| std::net::Ipv4Addr::from(u32::from(address).saturating_add(10)).to_string());
    let port = |name: &str, protocol: &str, port: u16| json!({"name": name, "protocol": protocol, "port": port, "targetPort": port});
    let mut spec = json!({
        "type": "ClusterIP", "selector": {"k8s-app": "kube-dns"}, "sessionAffinity": "None",
        "ports": [port("dns", "UDP", 53), port("dns-tcp", "TCP", 53), port("metrics", "TCP", 9153)],
    });
    if let Some(address) = address {
        spec["clusterIPs"] = json!([address]);
        spec["clusterIP"] = address.into();
    }
    let labels =
        json!({"k8s-app": "kube-dns", "kubernetes.io/cluster-service": "true", "kubernetes.io/name": "CoreDNS"});
    json!({"metadata": {"labels": labels}, "spec": spec, "status": {"loadBalancer": {}}})
}

fn dns_deployment(image: &str) -> Value {
    let labels = json!({"k8s-app": "kube-dns"});
    let control_plane = [label::NODE_MASTER.name, label::NODE_CONTROL_PLANE.name];
    let mut tolerations = vec![json!({"key": "CriticalAddonsOnly", "operator": "Exists"})];
    tolerations.extend(control_plane.map(|key| json!({"key": key, "effect": "NoSchedule"})));
    json!({
        "metadata": {"labels": labels},
        "spec": {
            "progressDeadlineSeconds": 600,
            "replicas": COREDNS_REPLICAS,
            "revisionHistoryLimit": 10,
            "selector": {"matchLabels": labels},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}},
            "template": {"metadata": {"labels": labels}, "spec": {
                "containers": [{
                    "name": COREDNS, "image": image, "args": ["-conf", "/etc/coredns/Corefile"],
                    "resources": {"limits": {"memory": "170Mi"}, "requests": {"cpu": "100m", "memory": "70Mi"}},
                }],
                "nodeSelector": {"kubernetes.io/os": "linux"}, "priorityClassName": "system-cluster-critical",
                "serviceAccountName": COREDNS, "tolerations": tolerations,
            }},
        },
    })
}
