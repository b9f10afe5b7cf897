//! Flat configurations, as manifests.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_api::name::{ClusterName, Namespace};
use windlass_api::version::VersionPrefix;
use windlass_plan::legacy::{Beside, Configuration, Converted, LegacyError, convert};

/// The configuration of the seed's cluster.
const SEED: &str = "\
CLUSTER_NAME: tkg-vc-antrea
OS_VERSION: '20.04'
OS_ARCH: amd64
OS_NAME: ubuntu
CNI: antrea
CLUSTER_PLAN: dev
KUBERNETES_VERSION: v1.24.9+vmware.1
INFRASTRUCTURE_PROVIDER: vsphere
AVI_CONTROL_PLANE_HA_PROVIDER: 'true'
";

fn converted(text: &str, release: Option<&str>) -> Result<Converted, LegacyError> {
    let configuration = Configuration::read(text)?.expect("it is flat");
    let release = release.map(|release| release.parse::<VersionPrefix>().unwrap());
    let namespace: Namespace = "default".parse().unwrap();
    let variables = BTreeSet::from(["aviAPIServerHAProvider".to_owned(), "proxy".to_owned(), "vcenter".to_owned()]);
    let beside = Beside {
        name: None,
        namespace: &namespace,
        release: release.as_ref(),
        class_namespace: None,
        variables: Some(&variables),
    };
    convert(&configuration, &beside)
}

fn yaml(objects: &[Value]) -> String {
    objects.iter().map(|object| serde_saphyr::to_string(object).unwrap()).collect::<Vec<_>>().join("---\n")
}

#[test]
fn the_configuration_of_the_seed_is_a_cluster_of_a_class() {
    let converted = converted(SEED, Some("v1.24.9---vmware.1-tkg.1")).unwrap();
    let wanted = "\
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata:
  name: tkg-vc-antrea
  namespace: default
spec:
  topology:
    classRef:
      name: tkg-vsphere-default-v1.0.0
    controlPlane:
      metadata:
        annotations:
          run.tanzu.vmware.com/resolve-os-image: os-name=ubuntu,os-version=2004,os-arch=amd64
      replicas: 1
    variables:
    - name: aviAPIServerHAProvider
      value: true
    version: v1.24.9+vmware.1-tkg.1
    workers:
      machineDeployments:
      - class: tkg-worker
        metadata:
          annotations:
            run.tanzu.vmware.com/resolve-os-image: os-name=ubuntu,os-version=2004,os-arch=amd64
        name: md-0
        replicas: 1
";
    assert_eq!(yaml(&converted.objects), wanted);
    assert!(converted.left_out.is_empty());
}

#[test]
fn what_is_not_carried_over_is_named_and_no_credential_is() {
    let text = format!(
        "{SEED}VSPHERE_PASSWORD: hunter2\nENABLE_MHC: 'true'\nVSPHERE_WORKER_NUM_CPUS: 4\nVSPHERE_SERVER: vc\n"
    );
    let converted = converted(&text, None).unwrap();
    let left: Vec<&str> = converted.left_out.keys().map(String::as_str).collect();
    assert_eq!(left, ["ENABLE_MHC", "VSPHERE_PASSWORD", "VSPHERE_WORKER_NUM_CPUS"]);
    assert_eq!(
        converted.left_out["VSPHERE_WORKER_NUM_CPUS"],
        "the class tkg-vsphere-default-v1.0.0 has no variable worker"
    );
    let written = format!("{}{:?}", yaml(&converted.objects), converted.left_out);
    assert!(written.contains("server: vc") && !written.contains("hunter2"), "{written}");
}

#[test]
fn counts_networks_and_proxies_are_carried_over() {
    let more = "CONTROL_PLANE_MACHINE_COUNT: 5\nCLUSTER_CIDR: 192.0.2.0/24\nSERVICE_CIDR: 198.51.100.0/24\n\
        TKG_HTTP_PROXY: http://proxy:3128\nTKG_NO_PROXY: localhost, .svc\nNAMESPACE: dev\n";
    let text = format!("{}{more}", SEED.replace("CLUSTER_PLAN: dev", "CLUSTER_PLAN: prod"));
    let cluster = converted(&text, None).unwrap().objects.remove(0);
    assert_eq!(cluster["metadata"]["namespace"], "dev");
    assert_eq!(cluster["spec"]["topology"]["version"], "v1.24.9+vmware.1");
    assert_eq!(cluster["spec"]["topology"]["controlPlane"]["replicas"], 5);
    assert_eq!(cluster["spec"]["topology"]["workers"]["machineDeployments"][0]["replicas"], 3);
    assert_eq!(cluster["spec"]["clusterNetwork"]["pods"]["cidrBlocks"][0], "192.0.2.0/24");
    let proxy = &cluster["spec"]["topology"]["variables"][1];
    assert_eq!(proxy["value"]["noProxy"][1], ".svc", "{proxy}");
}

#[test]
fn another_network_add_on_is_chosen_before_the_cluster_is_there() {
    let text = SEED.replace("CNI: antrea", "CNI: calico");
    let objects = converted(&text, Some("v1.24.9---vmware.1-tkg.1")).unwrap().objects;
    assert_eq!(objects[0]["kind"], "ClusterBootstrap");
    assert_eq!(objects[0]["spec"]["cni"]["refName"], "calico*");
    let annotations = &objects[0]["metadata"]["annotations"];
    assert_eq!(annotations["tkg.tanzu.vmware.com/add-missing-fields-from-tkr"], "v1.24.9---vmware.1-tkg.1");
    assert_eq!(objects[1]["metadata"]["annotations"]["tkg.tanzu.vmware.com/custom-clusterbootstrap"], "");
    let none = converted(&SEED.replace("CNI: antrea", "CNI: none"), None).unwrap().objects;
    assert_eq!(none[0]["metadata"]["annotations"]["tkg.tanzu.vmware.com/unmanaged-cni"], "");
}

#[test]
fn a_class_in_another_namespace_is_named_with_it() {
    let configuration = Configuration::read(SEED).unwrap().unwrap();
    assert_eq!(configuration.class().unwrap(), "tkg-vsphere-default-v1.0.0");
    let namespace: Namespace = "default".parse().unwrap();
    let beside = Beside {
        name: None,
        namespace: &namespace,
        release: None,
        class_namespace: Some("tkg-system"),
        variables: None,
    };
    let cluster = convert(&configuration, &beside).unwrap().objects.remove(0);
    assert_eq!(cluster["spec"]["topology"]["classRef"]["namespace"], "tkg-system");
}

#[test]
fn a_release_beside_it_may_say_more_and_nothing_else() {
    let version =
        |release| converted(SEED, Some(release)).map(|it| it.objects[0]["spec"]["topology"]["version"].clone());
    assert_eq!(version("v1.24.9---vmware.1-tkg.1-rc.2").unwrap(), "v1.24.9+vmware.1-tkg.1-rc.2");
    assert_eq!(version("v1.24").unwrap(), "v1.24.9+vmware.1");
    assert_eq!(
        version("v1.25.7").unwrap_err().to_string(),
        "KUBERNETES_VERSION is v1.24.9+vmware.1, and --tkr asks for v1.25.7, which is another release"
    );
}

/// The refusal of the seed's configuration with one line replaced.
fn check(old: &str, new: &str, wanted: &str) {
    let text = SEED.replace(old, new);
    assert_ne!(text, SEED);
    let refusal = Configuration::read(&text).and_then(|_| converted(&text, None)).unwrap_err();
    assert_eq!(refusal.to_string(), wanted);
}

#[test]
fn a_refusal_names_the_key_and_what_would_be_accepted() {
    check("CLUSTER_PLAN: dev", "CLUSTER_PLAN: big", "CLUSTER_PLAN: \"big\" is not accepted; dev and prod are");
    check(
        "CLUSTER_PLAN: dev",
        "CLUSTER_PLANN: dev",
        "CLUSTER_PLANN is no key of a configuration; did you mean CLUSTER_PLAN?",
    );
    check("OS_ARCH: amd64", "SOMETHING: else", "SOMETHING is no key of a configuration");
    check("CNI: antrea", "CNI: cilium", "CNI: \"cilium\" is not accepted; antrea, calico and none are");
    check("CNI: antrea", "CNI: calico", "--tkr is missing, and with CNI: calico the release must be given in full");
    check(
        "OS_ARCH: amd64",
        "CONTROL_PLANE_MACHINE_COUNT: 2",
        "CONTROL_PLANE_MACHINE_COUNT: \"2\" is not accepted; 1, 3 and 5 are",
    );
    check(
        "OS_ARCH: amd64",
        "WORKER_MACHINE_COUNT: many",
        "WORKER_MACHINE_COUNT: \"many\" is not accepted; a number is",
    );
    check("'true'", "maybe", "AVI_CONTROL_PLANE_HA_PROVIDER: \"maybe\" is not accepted; true and false are");
    check("vsphere", "docker", "INFRASTRUCTURE_PROVIDER: \"docker\" is not accepted; vsphere, aws and azure are");
    check(
        "OS_ARCH: amd64",
        "ALLOW_LEGACY_CLUSTER: true",
        "ALLOW_LEGACY_CLUSTER: \"true\" is not accepted; only clusters of a class are made",
    );
    check("OS_ARCH: amd64", "NAMESPACE: [a]", "NAMESPACE is not a single value");
    check("CLUSTER_NAME: tkg-vc-antrea\n", "", "CLUSTER_NAME is missing, and a cluster needs a name");
    let gone = "KUBERNETES_VERSION is missing, and without --tkr it is the only way to say which release";
    check("KUBERNETES_VERSION: v1.24.9+vmware.1\n", "", gone);
}

#[test]
fn a_manifest_is_none_and_a_text_is_neither() {
    assert_eq!(Configuration::read("apiVersion: v1\nkind: Cluster\n"), Ok(None));
    assert!(matches!(Configuration::read("just words"), Err(LegacyError::Syntax { .. })));
    let twice = Configuration::read("CNI: antrea\nCLUSTER_NAME: a\nCNI: calico\n").unwrap_err();
    let why = "it is neither a manifest nor a flat configuration: duplicate mapping key: CNI not allowed here at line 3, column 1";
    assert_eq!(twice.to_string(), why);
    assert!(matches!(Configuration::read("A: 1\n---\nB: 2\n"), Err(LegacyError::Syntax { .. })));
}

#[test]
fn the_name_beside_it_must_be_the_one_inside() {
    let configuration = Configuration::read(SEED).unwrap().unwrap();
    let (name, namespace): (ClusterName, Namespace) = ("other".parse().unwrap(), "default".parse().unwrap());
    let beside =
        Beside { name: Some(&name), namespace: &namespace, release: None, class_namespace: None, variables: None };
    let refusal = convert(&configuration, &beside).unwrap_err();
    assert_eq!(refusal.to_string(), "CLUSTER_NAME is \"tkg-vc-antrea\", and the name that was given is \"other\"");
}
