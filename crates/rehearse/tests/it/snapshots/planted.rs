//! Objects with something secret in all the places where people put it. Each place has a marker of its own.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::risks::decided::ENDS_SOON;

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// How many markers there are.
const PLACES: usize = 36;

/// What must be nowhere: a marker in the form of a word, which no rule knows by its looks.
fn marker(place: usize) -> String {
    format!("planted{place:02}marker")
}

/// All markers, as they are and as a Secret has them.
pub fn markers() -> impl Iterator<Item = String> {
    (0..PLACES).flat_map(|place| [marker(place), STANDARD.encode(marker(place))])
}

fn encoded(place: usize) -> String {
    STANDARD.encode(marker(place))
}

fn secret(first: usize) -> Value {
    let m = |offset: usize| marker(first + offset);
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"namespace": "default", "name": "planted", "annotations": {
            LAST_APPLIED: manifest(&m(0)), "kapp.k14s.io/original": m(1), "example.com/api-token": m(2),
        }},
        "data": {
            "password": encoded(first + 3), "tls.key": STANDARD.encode(format!("-----BEGIN KEY-----\n{}", m(4))),
            // A certificate is kept by its dates, and what is beside it is not.
            "both.pem": STANDARD.encode(format!("{ENDS_SOON}-----BEGIN PRIVATE KEY-----\n{}", marker(34))),
        },
    })
}

/// What `kubectl apply` leaves of this Secret, with something in it.
fn manifest(marker: &str) -> String {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "planted", "labels": {"a": marker}}, "data": marker})
        .to_string()
}

fn kubeadm(first: usize) -> Value {
    let m = |offset: usize| marker(first + offset);
    json!({
        "files": [{"path": "/etc/planted", "content": m(0)}],
        "users": [{"name": "a", "passwd": m(1), "sshAuthorizedKeys": [m(2)]}],
        "preKubeadmCommands": [format!("echo {}", m(3))],
        "joinConfiguration": {"discovery": {"bootstrapToken": {"token": m(4)}}},
    })
}

/// For the management cluster.
pub fn management() -> Vec<Value> {
    let meta = json!({"namespace": "default", "name": "planted"});
    let bootstrap = "bootstrap.cluster.x-k8s.io/v1beta2";
    let webhook = json!({"name": "a.planted.dev", "clientConfig": {"url": "https://planted.invalid"}, "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "rules": []});
    vec![
        secret(0),
        json!({"apiVersion": bootstrap, "kind": "KubeadmConfig", "metadata": meta, "spec": kubeadm(5)}),
        json!({"apiVersion": bootstrap, "kind": "KubeadmConfigTemplate", "metadata": meta,
            "spec": {"template": {"spec": kubeadm(10)}}}),
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "planted-webhook", "annotations": {"example.com/token": marker(15)}}, "webhooks": [webhook]}),
    ]
}

/// For a workload cluster.
pub fn workload() -> Vec<Value> {
    let m = marker;
    let kubeconfig = |user: Value| {
        json!({"apiVersion": "v1", "kind": "Config",
        "clusters": [{"name": "a", "cluster": {"server": m(21)}}], "users": [{"name": "a", "user": user}]})
    };
    let bearer = format!("Bearer {}", m(22));
    vec![
        secret(16),
        json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": "default", "name": "planted", "annotations": {"example.com/header": bearer}},
        "spec": {"containers": [{
            "name": "a", "image": "a:1",
            "env": [{"name": "DB_PASSWORD", "value": m(23)}, {"name": "awsSecretAccessKey", "value": m(24)},
                {"name": "DATABASE_URL", "value": format!("postgres://me:{}@db/x", m(25))}],
            "args": [format!("--admin-token={}", m(26)), "--password", m(27)],
            "livenessProbe": {"httpGet": {"port": 80, "httpHeaders": [{"name": "Authorization", "value": m(28)}]}},
        }]}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default", "name": "planted"}, "data": {
            "json": kubeconfig(json!({"token": m(29)})).to_string(),
            "yaml": format!("kind: Config\nclusters:\n- {}\nusers:\n- user:\n    client-key-data: {}\n", m(21), m(30)),
            "cloud.conf": format!("[Global]\npassword = \"{}\"\n", m(31)),
            "api-key": m(32),
        }, "binaryData": {"a": encoded(33)}}),
        json!({"apiVersion": "batch/v1", "kind": "CronJob",
        "metadata": {"namespace": "default", "name": "planted"}, "spec": {"schedule": "@daily", "jobTemplate": {"spec": {
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a:1",
                "args": ["--token", m(35)]}]}}}}}}),
        json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "planted"}, "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": "csi.vsphere.vmware.com", "volumeHandle": "a"},
        }}),
    ]
}
