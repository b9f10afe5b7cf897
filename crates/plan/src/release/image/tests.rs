use serde_json::json;
use windlass_api::label;

use super::super::{addon_role, distribution_of};
use super::*;
use crate::digest;

const DISTRIBUTION: &str = r#"{
  "distribution":{"version":"v1.16.7+vmware.1-guest.1"},
  "kubernetes":{"imageRepository":"vmware","version":"v1.16.7+vmware.1"},
  "etcd":{"imageRepository":"vmware","version":"v3.3.15_vmware.6"},
  "coredns":{"imageRepository":"vmware","version":"v1.6.2_vmware.6"}}"#;

fn image(annotations: &[(&str, &str)]) -> VirtualMachineImage {
    let mut image = VirtualMachineImage::default();
    image.metadata.name = Some("photon-k8sd-v1.16.7-vmware.1-guest.1".to_owned());
    let entries = annotations.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    image.metadata.annotations = Some(entries.collect());
    image
}

fn release(addons: &[(&str, &str)]) -> Result<Release, ReleaseError> {
    let keys: Vec<String> = addons.iter().map(|(name, _)| format!("{}{name}", annotation::ADDON_PREFIX)).collect();
    let mut annotations = vec![(annotation::DISTRIBUTION.name, DISTRIBUTION)];
    annotations.extend(keys.iter().zip(addons).map(|(key, (_, value))| (key.as_str(), *value)));
    Release::from_image(&image(&annotations))
}

fn inline(value: &str) -> String {
    json!({"type": "inline", "value": value}).to_string()
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let cause = error.source().map(|cause| format!(": {}", chain(cause))).unwrap_or_default();
    format!("{error}{cause}")
}

fn check_refused(addon: &str, value: &str, refusal: &str) {
    let error = release(&[(addon, value)]).unwrap_err();
    let text = chain(&error);
    assert!(text.starts_with(refusal), "{text}");
}

#[test]
fn a_release_comes_with_kube_proxy_and_coredns() {
    let release = release(&[]).unwrap();
    let told: Vec<[&str; 4]> = release
        .addons
        .iter()
        .map(|(name, addon)| [name.as_str(), &addon.slot, &addon.display_name, &addon.version])
        .collect();
    assert_eq!(
        told,
        [["coredns", "dns", "CoreDNS", "v1.6.2_vmware.6"], ["kube-proxy", "proxy", "kube-proxy", "v1.16.7+vmware.1"]]
    );
}

#[test]
fn an_add_on_without_a_version_is_as_old_as_the_distribution() {
    let told = |name: &str, value: &str| {
        let release = release(&[(name, value)]).unwrap();
        let addon = &release.addons[&AddonName::new(name).unwrap()];
        [addon.slot.clone(), addon.display_name.clone(), addon.version.clone()]
    };
    assert_eq!(told("pvcsi", &inline("")), ["csi", "pvcsi", "v1.16.7+vmware.1-guest.1"]);
    assert_eq!(told("vmware-guest-cluster", &inline(""))[0], "cloudprovider");
    assert_eq!(told("antrea", &inline(""))[0], "cni");
    assert_eq!(told("defaultpsp", &inline(""))[0], "psp");
    let authsvc = r#"{"version": "0.1-63-ge899b1f", "name": "auth", "value": "...", "type": "inline"}"#;
    assert_eq!(told("authsvc", authsvc), ["authsvc", "auth", "0.1-63-ge899b1f"]);
}

#[test]
fn a_malformed_image_is_refused_whole_and_the_key_is_named() {
    let image = "VirtualMachineImage photon-k8sd-v1.16.7-vmware.1-guest.1";
    let key = "vmware-system.guest.kubernetes.addons.pvcsi";
    check_refused("pvcsi", "{", &format!("{image}: {key} cannot be read: EOF while parsing"));
    check_refused(
        "pvcsi",
        r#"{"type": "oci", "value": ""}"#,
        &format!(r#"{image}: {key} has the type "oci"; only "inline" is known"#),
    );
    check_refused(
        "coredns",
        &inline(""),
        &format!("{image}: {}coredns is an add-on that comes with every release", annotation::ADDON_PREFIX),
    );
    let manifests = format!("{image}: the manifests of {key} cannot be used");
    check_refused("pvcsi", &inline("a: [b"), &format!("{manifests}: they are no YAML: "));
    check_refused("pvcsi", &inline("kind: ConfigMap"), &format!("{manifests}: document 1 has no apiVersion"));
    let map = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}";
    check_refused(
        "pvcsi",
        &inline(&format!("{map}\n---\n{map}")),
        &format!("{manifests}: document 2 is ConfigMap/a once more"),
    );
    check_refused(
        "pvcsi",
        &inline("{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {b: c}}"),
        &format!("{manifests}: document 1 is a Secret with data"),
    );
    let error = Release::from_image(&super::tests::image(&[])).unwrap_err();
    assert_eq!(error.to_string(), format!("{image} is no release: it has no annotation {}", annotation::DISTRIBUTION));
}

#[test]
fn a_kind_that_the_version_has_no_more_is_refused() {
    let policy = inline("{apiVersion: policy/v1beta1, kind: PodSecurityPolicy, metadata: {name: a}}");
    assert!(release(&[("defaultpsp", &policy)]).is_ok());
    let newer = DISTRIBUTION.replace("v1.16.7", "v1.25.7");
    let key = format!("{}defaultpsp", annotation::ADDON_PREFIX);
    let image = image(&[(annotation::DISTRIBUTION.name, &newer), (&key, &policy)]);
    let refusal = Release::from_image(&image).unwrap_err().to_string();
    let wanted = format!("{key} has a PodSecurityPolicy, a kind that v1.25.7+vmware.1 has not");
    assert!(refusal.ends_with(&wanted), "{refusal}");
}

#[test]
fn a_daemon_set_is_bound_to_its_distribution() {
    let manifest = "
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: kube-system}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {nodeSelector: {disk: ssd}, containers: []}
";
    let release = release(&[("antrea", &inline(manifest))]).unwrap();
    let addon = AddonName::new("antrea").unwrap();
    let object = &release.addons[&addon].objects[0];
    let bound = "v1.16.7_vmware.1-guest.1";
    let key = label::DISTRIBUTION_VERSION.name;
    assert_eq!(object["metadata"]["name"], "agent-v1.16.7---vmware.1-guest.1");
    assert_eq!(object["metadata"]["labels"], json!({ key: bound, (label::ADDON.name): "antrea" }));
    assert_eq!(object["spec"]["selector"]["matchLabels"], json!({ key: bound, "app": "agent" }));
    assert_eq!(object["spec"]["template"]["metadata"]["labels"], json!({ key: bound, "app": "agent" }));
    assert_eq!(object["spec"]["template"]["spec"]["nodeSelector"], json!({ key: bound, "disk": "ssd" }));
    assert_eq!(object["spec"]["updateStrategy"], json!({"type": "OnDelete"}));
    assert_eq!(distribution_of(object).as_ref(), Some(&release.distribution));
    assert_eq!(
        addon_role(&addon, object),
        "addon/antrea/DaemonSet/kube-system/agent",
        "the version is not in the role"
    );
}

#[test]
fn a_deployment_keeps_its_old_pods_until_new_ones_run() {
    let release = release(&[]).unwrap();
    let addon = AddonName::new("coredns").unwrap();
    let object = &release.addons[&addon].objects[0];
    assert_eq!(
        object["spec"]["strategy"],
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}})
    );
    let selector = &object["spec"]["template"]["spec"]["nodeSelector"];
    assert_eq!(selector[label::DISTRIBUTION_VERSION.name], "v1.16.7_vmware.1-guest.1");
    assert_eq!(distribution_of(object), None, "there is one for all distributions");
    assert_eq!(addon_role(&addon, object), "addon/coredns/Deployment");
}

#[test]
fn what_is_in_no_namespace_is_where_kubectl_would_put_it() {
    let manifests = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n---\n---\n\
                     {apiVersion: v1, kind: Namespace, metadata: {name: b}}";
    let release = release(&[("pvcsi", &inline(manifests))]).unwrap();
    let objects = &release.addons[&AddonName::new("pvcsi").unwrap()].objects;
    let namespaces: Vec<&Value> = objects.iter().map(|object| &object["metadata"]["namespace"]).collect();
    assert_eq!(namespaces, [&json!("default"), &Value::Null]);
}

#[test]
fn the_digest_covers_what_is_applied() {
    let plain = release(&[]).unwrap();
    assert!(plain.digest().starts_with("sha256:") && plain.digest().len() == 7 + 64);
    assert_eq!(plain.digest(), release(&[]).unwrap().digest());
    let more = release(&[("pvcsi", &inline("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"))]).unwrap();
    assert_ne!(plain.digest(), more.digest());
}

/// Clusters have the digest of what they were reviewed with in their records.
#[test]
fn the_digest_of_a_release_on_a_machine_image_stays_what_it_was() {
    let release = release(&[]).unwrap();
    let content = json!({
        "image": "photon-k8sd-v1.16.7-vmware.1-guest.1",
        "distribution": "v1.16.7+vmware.1-guest.1",
        "kubernetes": "v1.16.7+vmware.1",
        "image_repository": "vmware",
        "etcd": {"repository": "vmware", "tag": "v3.3.15_vmware.6"},
        "coredns": {"repository": "vmware", "tag": "v1.6.2_vmware.6"},
        "addons": release.addons,
    });
    assert_eq!(release.digest(), digest::of(&content));
}

fn objects(manifest: &str) -> Vec<Value> {
    let release = release(&[("antrea", &inline(manifest))]).unwrap();
    release.addons[&AddonName::new("antrea").unwrap()].objects.clone()
}

#[test]
fn whatever_runs_pods_runs_them_on_nodes_of_its_distribution() {
    let template = "{metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: a}]}}";
    let selects = json!({ (label::DISTRIBUTION_VERSION.name): "v1.16.7_vmware.1-guest.1" });

    let stateful = &objects(&format!(
        "{{apiVersion: apps/v1, kind: StatefulSet, metadata: {{name: a}}, spec: {{template: {template}}}}}"
    ))[0];
    assert_eq!(stateful["metadata"]["name"], "a");
    assert_eq!(stateful["spec"]["updateStrategy"], json!({"type": "OnDelete"}));
    assert_eq!(stateful["spec"]["template"]["spec"]["nodeSelector"], selects);

    let job = &objects(&format!(
        "{{apiVersion: batch/v1, kind: Job, metadata: {{name: a}}, spec: {{template: {template}}}}}"
    ))[0];
    assert_eq!(job["metadata"]["name"], "a-v1.16.7---vmware.1-guest.1", "its template cannot be changed");
    assert_eq!(job["spec"]["template"]["spec"]["nodeSelector"], selects);
    assert_eq!(job["spec"]["selector"], Value::Null);

    let cron = &objects(&format!(
        "{{apiVersion: batch/v1, kind: CronJob, metadata: {{name: a}},
          spec: {{jobTemplate: {{spec: {{template: {template}}}}}}}}}"
    ))[0];
    assert_eq!(cron["metadata"]["name"], "a");
    assert_eq!(cron["spec"]["jobTemplate"]["spec"]["template"]["spec"]["nodeSelector"], selects);
}

#[test]
fn what_comes_with_a_release_is_brought_in_by_what_it_is_for() {
    use super::super::Bringing::{BeforeControlPlane, VersionBound};
    let agent = "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent}}";
    let addons =
        [("authsvc", inline("")), ("antrea", inline(agent)), ("pvcsi", inline("")), ("defaultpsp", inline(""))];
    let addons: Vec<(&str, &str)> = addons.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let release = release(&addons).unwrap();
    let order: Vec<_> =
        release.in_order().iter().map(|brought| (brought.name().to_owned(), brought.bringing())).collect();
    let wanted = [
        ("defaultpsp", BeforeControlPlane),
        ("kube-proxy", VersionBound),
        ("antrea", VersionBound),
        ("pvcsi", BeforeControlPlane),
        ("coredns", BeforeControlPlane),
        ("authsvc", BeforeControlPlane),
    ];
    assert_eq!(order, wanted.map(|(name, bringing)| (name.to_owned(), bringing)));
}
