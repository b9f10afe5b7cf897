use serde_json::{Value, from_value, json};
use windlass_plan::profile::Profiles;
use windlass_plan::release::{FieldOwner, Release, ReleaseError, ReleaseState};

use super::{check_refused, documents, with};

pub const CONFIG_MAPS: &str = include_str!("config-maps.yaml");

/// The places of `ConfigMap`s in the file.
const CONTROL_PLANE: usize = 0;
const POOL: usize = 1;
const TEMPLATE: usize = 2;

pub fn read(documents: &[Value]) -> Result<Release, ReleaseError> {
    let maps: Vec<_> = documents.iter().map(|document| from_value(document.clone()).unwrap()).collect();
    Release::from_config_maps(&maps, &Profiles::default())
}

fn release() -> Release {
    read(&documents(CONFIG_MAPS)).unwrap()
}

#[test]
fn a_release_of_config_maps_is_the_defaults_of_its_kinds() {
    let release = release();
    assert_eq!(release.distribution.as_str(), "v21.0.0");
    assert_eq!(release.kubernetes.as_str(), "v1.21.4");
    assert_eq!(release.state, ReleaseState::Active);
    assert_eq!(release.image_repository.as_deref(), Some("registry.example.com"));
    assert_eq!(release.etcd.as_ref().unwrap().repository, "registry.example.com");
    assert_eq!(release.coredns.as_ref().unwrap().repository, "registry.example.com/dns");
    assert_eq!(release.image(), None);
    let told: Vec<String> = release
        .defaults_of("KubeadmControlPlane")
        .unwrap()
        .fields
        .iter()
        .map(|(path, field)| format!("{path} = {} ({:?})", field.value, field.owner))
        .collect();
    let wanted = [
        r#"spec.kubeadmConfigSpec.clusterConfiguration.dns.imageRepository = "registry.example.com/dns" (Release)"#,
        r#"spec.kubeadmConfigSpec.clusterConfiguration.dns.imageTag = "v1.8.0" (Release)"#,
        r#"spec.kubeadmConfigSpec.clusterConfiguration.etcd.local.imageTag = "3.4.13-0" (Release)"#,
        r#"spec.kubeadmConfigSpec.clusterConfiguration.imageRepository = "registry.example.com" (Release)"#,
        r#"spec.kubeadmConfigSpec.files = [{"content":"welcome","path":"/etc/motd"}] (SetIfEmpty)"#,
        r#"spec.machineTemplate.metadata.labels[example.com/tier] = "control-plane" (Release)"#,
        "spec.replicas = 3 (User)",
        r#"spec.version = "v1.21.4" (Release)"#,
    ];
    assert_eq!(told, wanted);
    let pool = release.defaults_of("MachinePool").unwrap();
    assert_eq!(pool.fields[&"spec.template.spec.version".parse().unwrap()].owner, FieldOwner::Release);
    assert_eq!(release.defaults_of("MachineDeployment"), None);
}

#[test]
fn a_field_is_set_overwritten_or_left_as_its_owner_says() {
    let release = release();
    let defaults = release.defaults_of("KubeadmControlPlane").unwrap();
    let mut created = json!({"metadata": {"name": "a"}, "spec": {"version": "v1.20.0"}});
    defaults.at_creation(&mut created);
    assert_eq!(created["spec"]["version"], "v1.21.4", "the release owns it");
    assert_eq!(created["spec"]["replicas"], 3);
    assert_eq!(created["spec"]["kubeadmConfigSpec"]["files"][0]["path"], "/etc/motd");
    assert_eq!(created["metadata"], json!({"name": "a"}));

    let mut live = json!({"spec": {
        "version": "v1.20.0",
        "replicas": null,
        "kubeadmConfigSpec": {"files": [], "clusterConfiguration": {"imageRepository": "mirror", "clusterName": "a"}},
    }});
    defaults.at_update(&mut live);
    assert_eq!(live["spec"]["version"], "v1.21.4");
    assert_eq!(live["spec"]["replicas"], Value::Null, "its owner emptied it");
    assert_eq!(live["spec"]["kubeadmConfigSpec"]["files"], json!([]), "somebody filled it");
    let configuration = &live["spec"]["kubeadmConfigSpec"]["clusterConfiguration"];
    assert_eq!(
        (&configuration["imageRepository"], &configuration["clusterName"]),
        (&json!("registry.example.com"), &json!("a"))
    );
    let once = live.clone();
    defaults.at_update(&mut live);
    assert_eq!(live, once, "updating again changes nothing");
}

#[test]
fn what_somebody_put_in_the_place_of_a_mapping_is_not_thrown_away_for_a_default() {
    let mut told = documents(CONFIG_MAPS);
    with(&mut told, POOL, "/data/spec", json!("a: {b: 1}\ntemplate: {spec: {version: v1.21.4}}"));
    let release = read(&told).unwrap();
    let mut live = json!({"spec": {"a": "text"}});
    release.defaults_of("machinepool").unwrap().at_update(&mut live);
    assert_eq!(live["spec"]["a"], "text");
}

#[test]
fn a_release_has_one_state() {
    for (text, state) in [
        ("deprecated", ReleaseState::Deprecated),
        ("wip", ReleaseState::Wip),
        ("preview", ReleaseState::Preview),
        ("active\n", ReleaseState::Active),
    ] {
        let mut told = documents(CONFIG_MAPS);
        (0..told.len()).for_each(|number| with(&mut told, number, "/data/state", json!(text)));
        let read = read(&told).unwrap();
        assert_eq!(read.state, state);
        assert_eq!(read.digest(), release().digest(), "it is the same release");
    }
}

#[test]
fn the_digest_covers_values_owners_and_place() {
    let plain = release();
    let mut told = documents(CONFIG_MAPS);
    told.reverse();
    assert_eq!(read(&told).unwrap(), plain, "ConfigMaps may be listed in any order");
    for (pointer, value) in [
        ("/data/userOwned", Value::Null),
        ("/data/releaseOwned", json!("[spec.kubeadmConfigSpec]")),
        (
            "/data/spec",
            json!(
                "{replicas: 3, version: v1.21.4, kubeadmConfigSpec: {clusterConfiguration: {a: 1}}, \
            machineTemplate: {metadata: {labels: {example.com/tier: control-plane}}}}"
            ),
        ),
    ] {
        let mut told = documents(CONFIG_MAPS);
        with(&mut told, CONTROL_PLANE, pointer, value);
        if pointer == "/data/releaseOwned" {
            // Without the label, which is listed beside it.
            with(&mut told, CONTROL_PLANE, "/data/userOwned", Value::Null);
        }
        assert_ne!(read(&told).unwrap().digest(), plain.digest(), "{pointer}");
    }
}

fn check(number: usize, pointer: &str, value: Value, refusal: &str) {
    let mut documents = documents(CONFIG_MAPS);
    with(&mut documents, number, pointer, value);
    check_refused(read(&documents), refusal);
}

fn check_pool(pointer: &str, value: Value, refusal: &str) {
    check(POOL, pointer, value, &format!("ConfigMap giantswarm/machinepool-21-0-0: {refusal}"));
}

#[test]
fn a_config_map_that_is_not_of_the_set_is_refused_and_named() {
    check_refused(
        read(&[]),
        "ConfigMap of a release: release.giantswarm.io/version is on none: there is no release without a ConfigMap",
    );
    check(
        POOL,
        "/metadata/name",
        Value::Null,
        r#"ConfigMap without a name: metadata.name is "", which has no version in it; accepted are a kind in lower case and a version, as in machinepool-21-0-0"#,
    );
    check(
        POOL,
        "/metadata/name",
        json!("machinepool"),
        r#"ConfigMap giantswarm/machinepool: metadata.name is "machinepool", which has no version in it; accepted are a kind in lower case and a version, as in machinepool-21-0-0"#,
    );
    check(
        POOL,
        "/metadata/name",
        json!("MachinePool-21-0-0"),
        r#"ConfigMap giantswarm/MachinePool-21-0-0: metadata.name is "MachinePool-21-0-0", which begins with no kind; accepted are a kind in lower case and a version, as in machinepool-21-0-0"#,
    );
    check(
        POOL,
        "/metadata/name",
        json!("machinepool-21"),
        r#"ConfigMap giantswarm/machinepool-21: metadata.name cannot be read: "21" is not a version with dashes: it needs three numbers: major, minor and patch; accepted are for example 21-0-0 and 21-0-0-rc.1"#,
    );
    check(
        POOL,
        "/metadata/name",
        json!("machinepool-21.0.0"),
        r#"ConfigMap giantswarm/machinepool-21.0.0: metadata.name cannot be read: "21.0.0" is not a version with dashes: "21.0.0" is not a number; accepted are for example 21-0-0 and 21-0-0-rc.1"#,
    );
    check(
        POOL,
        "/metadata/name",
        json!("kubeadmcontrolplane-21-0-0"),
        r#"ConfigMap giantswarm/kubeadmcontrolplane-21-0-0: metadata.name is one for "kubeadmcontrolplane" once more"#,
    );
    check(
        POOL,
        "/metadata/namespace",
        Value::Null,
        r#"ConfigMap machinepool-21-0-0: metadata.namespace cannot be read: "" is not a namespace: it is empty; accepted are 1 to 63 of a-z, 0-9 and "-", with a letter or digit at both ends"#,
    );
    check(
        POOL,
        "/metadata/namespace",
        json!("default"),
        r#"ConfigMap giantswarm/awsmachinetemplate-21-0-0: metadata.namespace is "giantswarm", and that of ConfigMap default/machinepool-21-0-0 is "default""#,
    );
}

#[test]
fn a_config_map_is_found_by_the_version_that_its_name_says() {
    check_pool(
        "/metadata/labels",
        Value::Null,
        r#"release.giantswarm.io/version is missing; the name of the ConfigMap asks for "21.0.0""#,
    );
    check_pool(
        "/metadata/labels",
        json!({"release.giantswarm.io/version": "21.0.1"}),
        r#"release.giantswarm.io/version is "21.0.1", and should be "21.0.0", as the name has it"#,
    );
    check_pool(
        "/metadata/labels",
        json!({"release.giantswarm.io/version": "newest"}),
        r#"release.giantswarm.io/version cannot be read: "newest" is not a version: "newest" is not a number; accepted are for example v1.24.9, v1.24.9-rc.1 and v1.24.9+vmware.1-tkg.1"#,
    );
    let mut documents = documents(CONFIG_MAPS);
    with(&mut documents, POOL, "/metadata/name", json!("machinepool-21-0-1"));
    with(&mut documents, POOL, "/metadata/labels", json!({"release.giantswarm.io/version": "21.0.1"}));
    check_refused(
        read(&documents),
        r#"ConfigMap giantswarm/machinepool-21-0-1: release.giantswarm.io/version is "21.0.1", and that of ConfigMap giantswarm/kubeadmcontrolplane-21-0-0 is "21.0.0""#,
    );
}

#[test]
fn a_key_that_cannot_be_used_is_refused_and_named() {
    check_pool(
        "/data/relaseOwned",
        json!("[]"),
        r#"data.relaseOwned is not known; accepted are "spec", "releaseOwned", "userOwned", "state""#,
    );
    check_pool("/binaryData", json!({"spec": "AA=="}), "binaryData.spec is not known; a release is in data");
    check_pool("/data/spec", Value::Null, "data.spec is missing; accepted are the defaults of spec, as YAML");
    check_pool("/data/spec", json!(""), "data.spec is empty; accepted is at least one field");
    check_pool("/data/spec", json!("{}"), "data.spec is empty; accepted is at least one field");
    check_pool("/data/spec", json!("[a]"), "data.spec cannot be read: expected mapping start at line 1, column 1");
    check_pool("/data/spec", json!("a: [b"), "data.spec cannot be read: unclosed bracket '[' at line 1, column 4");
    check_pool(
        "/data/spec",
        json!("a: 1\na: 2"),
        "data.spec cannot be read: duplicate mapping key: a not allowed here at line 2, column 1",
    );
    check_pool(
        "/data/spec",
        json!("a: 1\n---\nb: 2"),
        "data.spec cannot be read: only single YAML document expected but multiple found at line 3, column 1",
    );
    check_pool(
        "/data/spec",
        json!("a: .nan"),
        "data.spec cannot be read: value `.nan` is not a finite number at line 1, column 4",
    );
    check_pool(
        "/data/state",
        json!("finished"),
        r#"data.state is "finished"; accepted are "wip", "preview", "active", "deprecated""#,
    );
    check_pool(
        "/data/state",
        json!("wip"),
        r#"data.state is "wip", and that of ConfigMap giantswarm/kubeadmcontrolplane-21-0-0 is "active""#,
    );
}

#[test]
fn a_field_that_is_given_to_nobody_or_twice_is_refused_and_named() {
    check_pool(
        "/data/releaseOwned",
        json!("spec.replicas"),
        "data.releaseOwned cannot be read: expected sequence start at line 1, column 1",
    );
    check_pool(
        "/data/releaseOwned",
        json!("[spec.replicas, spec.replicas]"),
        "data.releaseOwned[1] is spec.replicas, and spec.replicas has an owner already",
    );
    check_pool(
        "/data/releaseOwned",
        json!("[spec.template, spec.template.spec.version]"),
        "data.releaseOwned[1] is spec.template.spec.version, and spec.template.spec.version has an owner already",
    );
    check_pool(
        "/data/releaseOwned",
        json!("[spec.paused]"),
        "data.releaseOwned[0] is spec.paused, and data.spec has no such field",
    );
    check_pool(
        "/data/releaseOwned",
        json!("[replicas]"),
        "data.releaseOwned[0] is replicas, and data.spec has no such field",
    );
    check_pool(
        "/data/releaseOwned",
        json!("[spec..replicas]"),
        "data.releaseOwned[0] cannot be read: a name is missing; accepted are names with dots between them, and [name] where there is a dot in a name",
    );
    check(
        CONTROL_PLANE,
        "/data/userOwned",
        json!("[spec.kubeadmConfigSpec.clusterConfiguration.dns]"),
        "ConfigMap giantswarm/kubeadmcontrolplane-21-0-0: data.userOwned[0] is spec.kubeadmConfigSpec.clusterConfiguration.dns, and spec.kubeadmConfigSpec.clusterConfiguration.dns.imageRepository has an owner already",
    );
    check_pool(
        "/data/userOwned",
        json!("[spec.template]"),
        "spec.template.spec.version is the version of the release, and cannot be in data.userOwned",
    );
}

#[test]
fn what_belongs_to_one_object_is_no_default() {
    let check = |spec: &str, refusal: &str| check(TEMPLATE, "/data/spec", json!(spec), refusal);
    check(
        "clusterName: a",
        "ConfigMap giantswarm/awsmachinetemplate-21-0-0: spec.clusterName is not a default: it belongs to one object, and no release can know it",
    );
    check(
        "template: {spec: {infrastructureRef: {name: a}}}",
        "ConfigMap giantswarm/awsmachinetemplate-21-0-0: spec.template.spec.infrastructureRef is not a default: it belongs to one object, and no release can know it",
    );
    check(
        "template: {metadata: {name: a}}",
        "ConfigMap giantswarm/awsmachinetemplate-21-0-0: spec.template.metadata.name is not a default: it belongs to one object, and no release can know it",
    );
    check(
        "metadata: {labels: {a: b}}",
        "ConfigMap giantswarm/awsmachinetemplate-21-0-0: spec.metadata is not a default: data.spec has the fields within spec, and the object itself is its owner's",
    );
    check(
        "name: a",
        "ConfigMap giantswarm/awsmachinetemplate-21-0-0: spec.name is not a default: data.spec has the fields within spec, and the object itself is its owner's",
    );
    check(
        "template: {spec: {providerID: a}}",
        "ConfigMap giantswarm/awsmachinetemplate-21-0-0: spec.template.spec.providerID is not a default: it belongs to one object, and no release can know it",
    );
    check(
        "selector: {matchLabels: {a: b}}",
        "ConfigMap giantswarm/awsmachinetemplate-21-0-0: spec.selector is not a default: it belongs to one object, and no release can know it",
    );
    check(
        "a: null",
        "ConfigMap giantswarm/awsmachinetemplate-21-0-0: spec.a has no value; accepted is one, or no field",
    );
    check(
        "'a[b': 1",
        r#"ConfigMap giantswarm/awsmachinetemplate-21-0-0: spec has "a[b" in it, which cannot be the name of a field"#,
    );
    check(
        "\"\": 1",
        r#"ConfigMap giantswarm/awsmachinetemplate-21-0-0: spec has "" in it, which cannot be the name of a field"#,
    );
}

#[test]
fn versions_that_do_not_agree_are_refused() {
    check_pool(
        "/data/spec",
        json!("template: {spec: {version: v1.21.5}}"),
        "spec.template.spec.version is v1.21.5, and spec.version of ConfigMap giantswarm/kubeadmcontrolplane-21-0-0 is v1.21.4: a release has one version",
    );
    check_pool(
        "/data/spec",
        json!("template: {spec: {version: 1.21}}"),
        r#"spec.template.spec.version is no version; accepted is text such as "v1.21.4""#,
    );
    check_pool(
        "/data/spec",
        json!("template: {spec: {version: newest}}"),
        r#"spec.template.spec.version cannot be read: "newest" is not a version: "newest" is not a number; accepted are for example v1.24.9, v1.24.9-rc.1 and v1.24.9+vmware.1-tkg.1"#,
    );
    check_refused(
        read(&documents(CONFIG_MAPS)[TEMPLATE..]),
        r#"ConfigMap giantswarm/awsmachinetemplate-21-0-0: data.spec has no version of Kubernetes, and neither has another ConfigMap of the release; accepted is one for any of "cluster", "kubeadmcontrolplane", "machine", "machinedeployment", "machinepool", "machineset""#,
    );
    check(
        CONTROL_PLANE,
        "/data/spec",
        json!(
            "{version: v1.21.4, replicas: 1, machineTemplate: {metadata: {labels: {example.com/tier: a}}},
            kubeadmConfigSpec: {clusterConfiguration: {dns: {imageTag: v1.8.0}}}}"
        ),
        "ConfigMap giantswarm/kubeadmcontrolplane-21-0-0: spec.kubeadmConfigSpec.clusterConfiguration.dns.imageTag has no imageRepository beside it or in clusterConfiguration; without one it depends on kubeadm which image it is",
    );
    check(
        CONTROL_PLANE,
        "/data/spec",
        json!(
            "{version: v1.21.4, replicas: 1, machineTemplate: {metadata: {labels: {example.com/tier: a}}},
            kubeadmConfigSpec: {clusterConfiguration: {dns: {imageTag: 1.8}}}}"
        ),
        "ConfigMap giantswarm/kubeadmcontrolplane-21-0-0: spec.kubeadmConfigSpec.clusterConfiguration.dns.imageTag is no text; accepted is text in quotes",
    );
}
