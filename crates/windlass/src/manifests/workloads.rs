//! What runs, and who may talk to it.

use serde_json::{Value, json};
use windlass_controller::rights::Component;
use windlass_controller::webhooks::NAMESPACE;

use super::Choices;
use super::rights::account;

/// Whom everything runs as, which is nobody that a node knows.
pub const USER: u32 = 1000;

const HTTPS: u16 = 9443;
const PROBES: u16 = 8080;

/// The labels by which the pods of a part are known.
pub fn selector(component: Component) -> Value {
    json!({ "app.kubernetes.io/name": component.as_str() })
}

pub fn controllers(choices: &Choices) -> Vec<Value> {
    let arguments = ["--controllers".to_owned(), format!("--hold={}", choices.hold)];
    vec![
        deployment(Component::Controllers, &choices.image, &arguments, &[("probes", PROBES)]),
        budget(Component::Controllers),
    ]
}

pub fn answers(choices: &Choices) -> Vec<Value> {
    let arguments = ["--webhooks".to_owned(), "--hooks".to_owned(), format!("--hold={}", choices.hold)];
    vec![
        deployment(Component::Answers, &choices.image, &arguments, &[("https", HTTPS), ("probes", PROBES)]),
        budget(Component::Answers),
    ]
}

fn deployment(component: Component, image: &str, arguments: &[String], ports: &[(&str, u16)]) -> Value {
    let [account, namespace] = account(component);
    let arguments: Vec<&str> = std::iter::once("controller").chain(arguments.iter().map(String::as_str)).collect();
    let ports: Vec<Value> = ports.iter().map(|(name, port)| json!({ "name": name, "containerPort": port })).collect();
    let probe =
        |path: &str, period: u32| json!({ "httpGet": { "path": path, "port": "probes" }, "periodSeconds": period });
    // A new replica is there before an old one goes: reviews are answered all the time.
    let strategy = json!({ "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 } });
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": component.as_str(), "namespace": namespace },
        "spec": {
            "replicas": 2,
            "selector": { "matchLabels": selector(component) },
            "strategy": strategy,
            "template": {
                "metadata": { "labels": selector(component) },
                "spec": {
                    "serviceAccountName": account,
                    "priorityClassName": "system-cluster-critical",
                    // What was begun may end, and nobody is sent there any more.
                    "terminationGracePeriodSeconds": 60,
                    "securityContext": {
                        "runAsNonRoot": true,
                        "runAsUser": USER,
                        "runAsGroup": USER,
                        "seccompProfile": { "type": "RuntimeDefault" },
                    },
                    "topologySpreadConstraints": [{
                        "maxSkew": 1,
                        "topologyKey": "kubernetes.io/hostname",
                        "whenUnsatisfiable": "ScheduleAnyway",
                        "labelSelector": { "matchLabels": selector(component) },
                    }],
                    "tolerations": [{
                        "key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule",
                    }],
                    "containers": [{
                        "name": "windlass",
                        "image": image,
                        "imagePullPolicy": "IfNotPresent",
                        "args": arguments,
                        "ports": ports,
                        "livenessProbe": probe("/healthz", 20),
                        "readinessProbe": probe("/readyz", 5),
                        "resources": {
                            "requests": { "cpu": "50m", "memory": "64Mi" },
                            "limits": { "memory": "512Mi" },
                        },
                        "securityContext": {
                            "allowPrivilegeEscalation": false,
                            "readOnlyRootFilesystem": true,
                            "capabilities": { "drop": ["ALL"] },
                        },
                    }],
                },
            },
        },
    })
}

/// One at a time; and one that does not run anyway never stands in the way of a node that is drained.
fn budget(component: Component) -> Value {
    json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": { "name": component.as_str(), "namespace": NAMESPACE },
        "spec": {
            "maxUnavailable": 1,
            "selector": { "matchLabels": selector(component) },
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    })
}

/// Nobody talks to anybody, but for this: kubelets and Prometheus to the probes, API servers, which are in no pod, to the answers;
/// the controllers to the APIs of workload clusters, wherever those are, and never to the machine's cloud; and both to the
/// management API, whose address nobody knows before, and which is on one of the two ports that such APIs have.
pub fn network() -> Vec<Value> {
    let policy = |name: &str, spec: Value| {
        json!({
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": { "name": name, "namespace": NAMESPACE },
            "spec": spec,
        })
    };
    let port = |port: u16| json!({ "port": port, "protocol": "TCP" });
    let names = json!({ "ports": [{ "port": 53, "protocol": "UDP" }, { "port": 53, "protocol": "TCP" }] });
    let elsewhere = json!([
        { "ipBlock": { "cidr": "0.0.0.0/0", "except": ["169.254.0.0/16"] } },
        { "ipBlock": { "cidr": "::/0", "except": ["fe80::/10"] } },
    ]);
    vec![
        policy("windlass-nobody", json!({ "podSelector": {}, "policyTypes": ["Ingress", "Egress"] })),
        policy(
            Component::Controllers.as_str(),
            json!({
                "podSelector": { "matchLabels": selector(Component::Controllers) },
                "policyTypes": ["Ingress", "Egress"],
                "ingress": [{ "ports": [port(PROBES)] }],
                "egress": [names, { "to": elsewhere }],
            }),
        ),
        policy(
            Component::Answers.as_str(),
            json!({
                "podSelector": { "matchLabels": selector(Component::Answers) },
                "policyTypes": ["Ingress", "Egress"],
                "ingress": [{ "ports": [port(PROBES), port(HTTPS)] }],
                "egress": [names, { "to": elsewhere, "ports": [port(443), port(6443)] }],
            }),
        ),
    ]
}
