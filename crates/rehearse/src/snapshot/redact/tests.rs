use serde_json::json;

use super::*;

/// An authority that is good from 2026-01-01 to 2026-01-12. There is no key to it any more.
pub(super) const AUTHORITY: &str = "-----BEGIN CERTIFICATE-----\n\
MIIBSjCB8aADAgECAgEBMAoGCCqGSM49BAMCMBUxEzARBgNVBAMMCmt1YmVybmV0\n\
ZXMwHhcNMjYwMTAxMDAwMDAwWhcNMjYwMTEyMDAwMDAwWjAVMRMwEQYDVQQDDApr\n\
dWJlcm5ldGVzMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEs2fXYIPGeDg3Sf3F\n\
64oYT1yOOBgs+4zzEQ65RyYrQIpdGJjdTz8B/8DGWLDcmLz6h3ZFye3OrLFUdhR0\n\
os6gNqMyMDAwDwYDVR0TAQH/BAUwAwEB/zAdBgNVHQ4EFgQUAl8AIGvKgVYPKLNp\n\
3o7HCEGs/KEwCgYIKoZIzj0EAwIDSAAwRQIgBvV/9Kj37uOhEv9fwnQqKX7VxsUh\n\
Mj8jTQMSWSwg3sACIQCSXDV1Ijq3Q1doafy/AbCSY/+3R0QfAofXJ9oMt0qaMw==\n\
-----END CERTIFICATE-----\n";

#[track_caller]
fn check(mut object: Value, expected: &Value) {
    Redactor::default().redact(&mut object);
    assert_eq!(object, *expected);
}

#[test]
fn of_a_secret_everything_is_kept_but_what_is_in_it() {
    let last_applied = "kubectl.kubernetes.io/last-applied-configuration";
    let data = |text: &str| STANDARD.encode(text);
    let secret = |annotations: Value, data: Value| {
        json!({
            "kind": "Secret",
            "metadata": {"namespace": "n", "name": "a", "labels": {"l": "v"}, "annotations": annotations},
            "type": "cluster.x-k8s.io/secret",
            "data": data,
        })
    };
    let before = json!({
        "tls.crt": data("-----BEGIN CERTIFICATE-----\nx"), "value": data("x"), "empty": "", "values.yaml": data("a: b"),
        "format": data("cloud-config"),
    });
    let crt = "-----BEGIN STAND-IN-----\nstand-in for tls.crt of Secret n/a\n-----END STAND-IN-----\n";
    let after = json!({
        "tls.crt": data(crt), "value": data("stand-in for value of Secret n/a"), "empty": "",
        "values.yaml": data("# stand-in for values.yaml of Secret n/a\n{}\n"), "format": data("cloud-config"),
    });
    check(secret(json!({last_applied: "secret", "other": "kept"}), before), &secret(json!({"other": "kept"}), after));
    let dates = r#"[{"key":"tls.crt","subject":"CN=kubernetes","notBefore":"2026-01-01T00:00:00Z","notAfter":"2026-01-12T00:00:00Z"}]"#;
    check(
        secret(json!({}), json!({"tls.crt": data(AUTHORITY)})),
        &secret(json!({"windlass.dev/certificate-dates": dates}), json!({"tls.crt": data(crt)})),
    );
}

#[test]
fn what_was_equal_stays_equal_and_what_differed_differs() {
    let file = |content: &str| json!({"spec": {"files": [{"path": "/etc/a", "content": content}]}});
    let mut redactor = Redactor::default();
    let mut all = ["one", "two", "one"].map(file);
    for object in &mut all {
        redactor.redact(object);
    }
    assert_eq!(all[0], all[2]);
    assert_eq!(all[0], file("stand-in for the file /etc/a"));
    assert_eq!(all[1], file("stand-in 2 for the file /etc/a"));
    let mut alone = file("two");
    Redactor::default().redact(&mut alone);
    assert_eq!(alone, all[0], "nothing of a value is in what stands for it");
}

#[test]
fn a_machine_that_boots_is_still_told_what_to_do() {
    let join = "kind: JoinConfiguration\ncontrolPlane: {localAPIEndpoint: {}}\nnodeRegistration: {taints: []}\n\
                discovery: {bootstrapToken: {token: abcdef.0123456789abcdef}}\n";
    let file = |path: &str, content: &str| json!({"path": path, "content": content});
    let [key, kubeadm] =
        [file("/etc/kubernetes/pki/ca.key", "key"), file("/run/kubeadm/kubeadm-join-config.yaml", join)];
    let text = format!("## template: jinja\n#cloud-config\n{}\n", json!({"write_files": [key, kubeadm]}));
    let mut secret = json!({"kind": "Secret", "metadata": {"name": "a"}, "data": {"value": STANDARD.encode(text)}});
    Redactor::default().redact(&mut secret);
    let value = STANDARD.decode(secret["data"]["value"].as_str().unwrap()).unwrap();
    let told = r#"---\n{\"controlPlane\":{},\"kind\":\"JoinConfiguration\",\"nodeRegistration\":{\"taints\":[]}}\n"#;
    assert_eq!(
        String::from_utf8(value).unwrap(),
        format!(
            "#cloud-config\n{{\"write_files\":[{{\"content\":\"{told}\",\"path\":\"/run/kubeadm/kubeadm-join-config.yaml\"}}]}}\n"
        )
    );
}

#[test]
fn a_pod_keeps_all_but_its_secrets() {
    let pod = |password: &str, flag: &str, separate: &str| {
        json!({"kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [{
            "env": [{"name": "DB_PASSWORD", "value": password}, {"name": "LEVEL", "value": "debug"},
                {"name": "DB_TOKEN", "valueFrom": {"secretKeyRef": {"name": "a", "key": "token"}}}],
            "args": ["--level=debug", flag, "--token", separate, "--token-ttl=24h0m0s"],
        }]}})
    };
    check(
        pod("hunter2", "--client-secret=x", "y"),
        &pod(
            "stand-in for the value of DB_PASSWORD",
            "--client-secret=stand-in for the argument --client-secret",
            "stand-in for the argument --token",
        ),
    );
}

#[test]
fn a_config_map_keeps_all_but_its_credentials() {
    let map = |data: Value| json!({"kind": "ConfigMap", "metadata": {"name": "a"}, "data": data});
    let kubeconfig = |user: &str| format!("kind: Config\nclusters:\n- name: a\nusers:\n- user:\n    {user}\n");
    check(
        map(json!({
            "config": kubeconfig("token: x"), "kubeconfig.conf": kubeconfig("tokenFile: /x"), "db-password": "x",
            "vsphere.conf": "[Global]\nuser = \"u\"\npassword = \"p\"\n", "a.json": r#"{"b":1,"token":"x"}"#, "c.json": "{ }",
        })),
        &map(json!({
            "config": "stand-in for a kubeconfig", "kubeconfig.conf": kubeconfig("tokenFile: /x"),
            "db-password": "stand-in for the entry db-password",
            "vsphere.conf": "[Global]\nuser = \"u\"\npassword = \"stand-in for the line password\"\n",
            "a.json": r#"{"b":1,"token":"stand-in for the field token"}"#, "c.json": "{ }",
        })),
    );
}
