use serde_json::json;
use windlass_api::annotation;
use windlass_api::kind::virtual_machine::VirtualMachineImage;
use windlass_plan::release::{Release, ReleaseError};

use super::check_refused;
use crate::sample;

const ADDON: &str = "vmware-system.guest.kubernetes.addons.pvcsi";

/// An image with one annotation instead of what it had there.
fn image(key: &str, text: &str) -> VirtualMachineImage {
    let mut image = sample::image("v1.16.7");
    image.metadata.name = Some("photon".to_owned());
    image.metadata.annotations.as_mut().unwrap().insert(key.to_owned(), text.to_owned());
    image
}

fn read(key: &str, text: &str) -> Result<Release, ReleaseError> {
    Release::from_image(&image(key, text))
}

fn inline(manifests: &str) -> String {
    json!({"type": "inline", "value": manifests}).to_string()
}

/// Manifests that are refused, in these words after the key.
fn check(manifests: &str, refusal: &str) {
    let wanted = format!("VirtualMachineImage photon: the manifests of {ADDON} cannot be used: {refusal}");
    check_refused(read(ADDON, &inline(manifests)), &wanted);
}

#[test]
fn an_image_without_a_proper_name_or_distribution_is_refused() {
    let mut nameless = sample::image("v1.16.7");
    nameless.metadata.name = None;
    check_refused(
        Release::from_image(&nameless),
        r#"VirtualMachineImage without a name: metadata.name cannot be read: "" is not an image name: it is empty; accepted are 1 to 253 of a-z, 0-9, "-" and ".", with a letter or digit at both ends and around each ".""#,
    );
    let check = |text: &str, refusal: &str| check_refused(read(annotation::DISTRIBUTION.name, text), refusal);
    check(
        "",
        "VirtualMachineImage photon: vmware-system.guest.kubernetes.distribution.image.version cannot be read: EOF while parsing a value at line 1 column 0",
    );
    check(
        "null",
        "VirtualMachineImage photon: vmware-system.guest.kubernetes.distribution.image.version cannot be read: invalid type: null, expected an object with distribution, kubernetes, etcd and coredns at line 1 column 4",
    );
    check(
        "{}",
        "VirtualMachineImage photon: vmware-system.guest.kubernetes.distribution.image.version cannot be read: missing field `distribution` at line 1 column 2",
    );
    check(
        "[]",
        "VirtualMachineImage photon: vmware-system.guest.kubernetes.distribution.image.version cannot be read: invalid length 0, expected an object with distribution, kubernetes, etcd and coredns at line 1 column 2",
    );
    check(
        r#"{"distribution":{"version":1.16}}"#,
        "VirtualMachineImage photon: vmware-system.guest.kubernetes.distribution.image.version cannot be read: invalid type: floating point `1.16`, expected a string at line 1 column 31",
    );
    check(
        r#"{"distribution":{"version":"v1.16"}}"#,
        r#"VirtualMachineImage photon: vmware-system.guest.kubernetes.distribution.image.version cannot be read: "v1.16" is not a version: it needs three numbers: major, minor and patch; accepted are for example v1.24.9, v1.24.9-rc.1 and v1.24.9+vmware.1-tkg.1 at line 1 column 35"#,
    );
    check(
        r#"{"distribution":{"version":"v1.16.7","version":"v1.16.8"}}"#,
        "VirtualMachineImage photon: vmware-system.guest.kubernetes.distribution.image.version cannot be read: duplicate field `version` at line 1 column 46",
    );
    check(
        &"{".repeat(200_000),
        "VirtualMachineImage photon: vmware-system.guest.kubernetes.distribution.image.version cannot be read: key must be a string at line 1 column 2",
    );
    check(
        &" ".repeat(3 * 1024 * 1024),
        "VirtualMachineImage photon: vmware-system.guest.kubernetes.distribution.image.version has 3145728 bytes; at most 1048576 are read",
    );
    check(
        &format!(r#"{{"distribution":{{"version":"v1.16.7{}"}}}}"#, "9".repeat(100_000)),
        r#"VirtualMachineImage photon: vmware-system.guest.kubernetes.distribution.image.version cannot be read: "v1.16.79999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999"… is not a version: it is longer than the 63 characters that a label may have; accepted are for example v1.24.9, v1.24.9-rc.1 and v1.24.9+vmware.1-tkg.1 at line 1 column …"#,
    );
}

#[test]
fn an_add_on_that_cannot_be_read_is_refused() {
    let check = |text: &str, refusal: &str| check_refused(read(ADDON, text), refusal);
    check(
        r#"{"type":"inline"}"#,
        "VirtualMachineImage photon: vmware-system.guest.kubernetes.addons.pvcsi cannot be read: missing field `value` at line 1 column 17",
    );
    check(
        r#"{"type":"inline","value":{}}"#,
        "VirtualMachineImage photon: vmware-system.guest.kubernetes.addons.pvcsi cannot be read: invalid type: map, expected a string at line 1 column 25",
    );
    check(
        r#"{"type":"inline","value":"","value":""}"#,
        "VirtualMachineImage photon: vmware-system.guest.kubernetes.addons.pvcsi cannot be read: duplicate field `value` at line 1 column 35",
    );
    check(
        r#"{"type":"INLINE","value":""}"#,
        r#"VirtualMachineImage photon: vmware-system.guest.kubernetes.addons.pvcsi has the type "INLINE"; only "inline" is known"#,
    );
    check(
        &json!({"type": "i".repeat(100_000), "value": ""}).to_string(),
        r#"VirtualMachineImage photon: vmware-system.guest.kubernetes.addons.pvcsi has the type "iiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiii…"; only "inline" is known"#,
    );
    check(
        &inline(&"a".repeat(3 * 1024 * 1024)),
        "VirtualMachineImage photon: vmware-system.guest.kubernetes.addons.pvcsi has 3145756 bytes; at most 1048576 are read",
    );
    check_refused(
        read(&format!("{}Pv_CSI", annotation::ADDON_PREFIX), &inline("")),
        r#"VirtualMachineImage photon: vmware-system.guest.kubernetes.addons.Pv_CSI names no add-on: "Pv_CSI" is not the name of an add-on: 'P' cannot be in it; accepted are 1 to 63 of a-z, 0-9 and "-", with a letter or digit at both ends"#,
    );
    check_refused(
        read(&format!("{}kube-proxy", annotation::ADDON_PREFIX), &inline("")),
        "VirtualMachineImage photon: vmware-system.guest.kubernetes.addons.kube-proxy is an add-on that comes with every release",
    );
}

#[test]
fn manifests_that_are_no_objects_are_refused() {
    check("a: [b", "they are no YAML: unclosed bracket '[' at line 1, column 4");
    check("hello", "document 1 has no apiVersion");
    check("- a", "document 1 has no apiVersion");
    check("apiVersion: v1", "document 1 has no kind");
    check("{apiVersion: v1, kind: ConfigMap, metadata: {generateName: a-}}", "document 1 has no metadata.name");
    check("{apiVersion: v1, kind: ConfigMap, metadata: {name: 7}}", "document 1 has no metadata.name");
    check("{apiVersion: v1, kind: ConfigMap, metadata: a}", "document 1 has no metadata.name");
    check(
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: b}}",
        "document 1 is ConfigMap/a, whose metadata.labels is no mapping",
    );
    check(
        "{apiVersion: v1, kind: List, items: []}",
        "document 1 is a List; accepted are its items, each as a document of its own",
    );
    check(
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, kind: Secret}",
        "they are no YAML: duplicate mapping key: kind not allowed here at line 1, column 56",
    );
    check(
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: .inf}}",
        "they are no YAML: value `.inf` is not a finite number at line 1, column 66",
    );
    check(
        "{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {}}",
        "document 1 is a Secret with data, and annotations are read by many",
    );
}

#[test]
fn manifests_that_unfold_to_too_much_are_refused() {
    check(&"[".repeat(100_000), "they are no YAML: recursion limit exceeded at line 1, column 65");
    check(&"- ".repeat(100_000), "they are no YAML: it is nested more than 64 deep at line 1, column 129");
    check(
        &(0..200).map(|depth| " ".repeat(depth) + "a:\n").collect::<String>(),
        "they are no YAML: it is nested more than 64 deep at line 65, column 65",
    );
    check(&"---\na\n".repeat(2_000), "they are no YAML: it has more than 1024 documents at line 2049, column 1");
    let level = |level: usize| {
        let below = level.checked_sub(1).map_or("x".to_owned(), |below| format!("*a{below}"));
        format!("a{level}: &a{level} [{}]", vec![below; 10].join(", "))
    };
    let bomb = (0..10).map(level).collect::<Vec<_>>().join("\n");
    check(
        &bomb,
        "they are no YAML: it unfolds to more than 250000 values, or 4194304 bytes of them at line 6, column 10",
    );
    let fat = format!("a: &a {}\nb: [{}]\n", "x".repeat(500_000), vec!["*a"; 99].join(", "));
    check(
        &fat,
        "they are no YAML: it unfolds to more than 250000 values, or 4194304 bytes of them at line 2, column 33",
    );
    check("a: &a {b: *a}", "they are no YAML: an alias is within what it stands for at line 1, column 11");
    check("a: *b", "they are no YAML: reference to unknown value at line 1, column 4");
}

#[test]
fn manifests_whose_pods_cannot_be_kept_are_refused() {
    let workload = |api_version: &str, kind: &str, spec: &str| {
        format!("{{apiVersion: {api_version}, kind: {kind}, metadata: {{name: a}}, spec: {spec}}}")
    };
    check(
        &workload("v1", "Pod", "{}"),
        "document 1 is Pod/a, and a Pod is not brought to new nodes; accepted are DaemonSet, Deployment, StatefulSet, Job and CronJob",
    );
    check(
        &workload("apps/v1", "ReplicaSet", "{}"),
        "document 1 is ReplicaSet/a, and a ReplicaSet is not brought to new nodes; accepted are DaemonSet, Deployment, StatefulSet, Job and CronJob",
    );
    check(
        &workload("v1", "ReplicationController", "{}"),
        "document 1 is ReplicationController/a, and a ReplicationController is not brought to new nodes; accepted are DaemonSet, Deployment, StatefulSet, Job and CronJob",
    );
    check(
        &workload("extensions/v1beta1", "DaemonSet", "{}"),
        r#"document 1 is DaemonSet/a, whose apiVersion is "extensions/v1beta1"; accepted is "apps/v1""#,
    );
    check(
        &workload("apps/v1beta2", "Deployment", "{}"),
        r#"document 1 is Deployment/a, whose apiVersion is "apps/v1beta2"; accepted is "apps/v1""#,
    );
    check(
        &workload("batch/v2alpha1", "CronJob", "{}"),
        r#"document 1 is CronJob/a, whose apiVersion is "batch/v2alpha1"; accepted is "batch/v1""#,
    );
    check(&workload("apps/v1", "DaemonSet", "hello"), "document 1 is DaemonSet/a, whose spec is no mapping");
    check(
        &workload("apps/v1", "DaemonSet", "{template: {spec: []}}"),
        "document 1 is DaemonSet/a, whose spec.template.spec is no mapping",
    );
    check(
        &workload("apps/v1", "Deployment", "{template: {spec: {nodeSelector: a}}}"),
        "document 1 is Deployment/a, whose spec.template.spec.nodeSelector is no mapping",
    );
    check(
        &format!("{{apiVersion: apps/v1, kind: DaemonSet, metadata: {{name: {}}}}}", "a".repeat(240)),
        r#"document 1 is DaemonSet/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, which cannot have the distribution in its name: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"… is not the name of an object: it has 267 characters; accepted are 1 to 253 of a-z, 0-9, "-" and ".", with a letter or digit at both ends and around each ".""#,
    );
    check(
        &format!("{{apiVersion: batch/v1, kind: Job, metadata: {{name: {}}}}}", "a".repeat(40)),
        "document 1 is Job/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, whose name is too long with the distribution behind it; accepted are 36 characters",
    );
    check(
        "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: A_B}}",
        r#"document 1 is DaemonSet/A_B, which cannot have the distribution in its name: "A_B-v1.16.7---vmware.1-guest.1" is not the name of an object: 'A' cannot be in it; accepted are 1 to 253 of a-z, 0-9, "-" and ".", with a letter or digit at both ends and around each ".""#,
    );
}

#[test]
fn no_refusal_shows_what_is_around_the_error() {
    let manifests = "apiVersion: v1\nkind: Secret\nstringData:\n  password: hunter2\n  [";
    let error = read(ADDON, &inline(manifests)).unwrap_err();
    assert!(!super::chain(&error).contains("hunter2"), "{}", super::chain(&error));
}
