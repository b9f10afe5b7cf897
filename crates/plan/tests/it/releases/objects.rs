use serde::de::DeserializeOwned;
use serde_json::{Value, from_value, json};
use windlass_api::kind::packaging::Package;
use windlass_api::kind::release::{ClusterBootstrapTemplate, OSImage, TanzuKubernetesRelease};
use windlass_plan::release::{Bringing, PackageSlot, PackageValues, Release, ReleaseError, ReleaseState};

use super::{check_refused, documents, with};

pub const OBJECTS: &str = include_str!("objects.yaml");

/// The places of objects in the file.
const TKR: usize = 0;
const UBUNTU: usize = 1;
const TEMPLATE: usize = 3;
const ANTREA: usize = 4;

/// The objects of a release.
pub struct Typed {
    tkr: TanzuKubernetesRelease,
    images: Vec<OSImage>,
    template: Option<ClusterBootstrapTemplate>,
    packages: Vec<Package>,
}

impl Typed {
    /// The documents of the four kinds; `None` if one of them cannot be read, or there is no release among them.
    pub fn new(documents: &[Value]) -> Option<Self> {
        fn of<T: DeserializeOwned>(documents: &[Value], kind: &str) -> Option<Vec<T>> {
            let found = documents.iter().filter(|document| document["kind"] == kind);
            found.map(|document| from_value(document.clone()).ok()).collect()
        }
        Some(Self {
            tkr: of(documents, "TanzuKubernetesRelease")?.pop()?,
            images: of(documents, "OSImage")?,
            template: of(documents, "ClusterBootstrapTemplate")?.pop(),
            packages: of(documents, "Package")?,
        })
    }

    pub fn read(&self) -> Result<Release, ReleaseError> {
        Release::from_objects(&self.tkr, &self.images, self.template.as_ref(), &self.packages)
    }
}

fn read(documents: &[Value]) -> Result<Release, ReleaseError> {
    Typed::new(documents).unwrap().read()
}

fn release() -> Release {
    read(&documents(OBJECTS)).unwrap()
}

#[test]
fn a_release_of_objects_is_read_with_all_that_it_refers_to() {
    let release = release();
    assert_eq!(release.name(), "v1.24.9---vmware.1-tkg.1");
    assert_eq!(release.distribution.as_str(), "v1.24.9+vmware.1-tkg.1");
    assert_eq!(release.kubernetes.as_str(), "v1.24.9+vmware.1");
    assert_eq!(release.state, ReleaseState::Active);
    let tag = |image: &Option<windlass_plan::release::ImageTag>| {
        image.as_ref().map(|image| format!("{}:{}", image.repository, image.tag)).unwrap()
    };
    assert_eq!(tag(&release.etcd), "registry.example.com/tkg:v3.5.6_vmware.3");
    assert_eq!(tag(&release.coredns), "registry.example.com/tkg:v1.8.6_vmware.15");
    assert_eq!(tag(&release.pause), "registry.example.com/pause:3.7", "it has a repository of its own");
    assert_eq!(tag(&release.kube_vip), "registry.example.com/tkg:v0.5.7_vmware.1");
    assert!(release.addons.is_empty(), "kube-proxy and CoreDNS are the control plane's");
}

#[test]
fn an_image_is_chosen_where_there_are_several() {
    let release = release();
    assert_eq!(release.images.len(), 2);
    assert_eq!(release.image(), None);
    let photon = release.images[1].clone();
    assert_eq!(photon.os.as_ref().unwrap().name, "photon");
    let chosen = release.clone().with_image(&photon.name).unwrap();
    assert_eq!(chosen.image(), Some(&photon.name));
    assert_eq!(chosen.digest(), release.digest(), "it is the same release");
    assert_eq!(release.with_image(&"windows".parse().unwrap()), None);
}

#[test]
fn packages_are_brought_in_by_their_slots_and_then_as_listed() {
    let release = release();
    let told: Vec<_> = release.packages.iter().map(|package| (package.slot, package.package.short_name())).collect();
    let wanted = [
        (PackageSlot::Kapp, "kapp-controller"),
        (PackageSlot::Cni, "antrea"),
        (PackageSlot::Cpi, "vsphere-cpi"),
        (PackageSlot::Csi, "vsphere-csi"),
        (PackageSlot::Additional { position: 0 }, "metrics-server"),
        (PackageSlot::Additional { position: 1 }, "pinniped"),
    ];
    assert_eq!(told, wanted);
    assert!(release.packages.is_sorted_by_key(|package| package.slot));
    assert!(release.in_order().iter().all(|brought| brought.bringing() == Bringing::BeforeControlPlane));
    let values: Vec<_> = release.packages.iter().map(|package| &package.values).collect();
    assert_eq!(*values[0], PackageValues::None);
    let antrea = ("cni.tanzu.vmware.com".to_owned(), "AntreaConfig".to_owned());
    let name = "v1.24.9---vmware.1-tkg.1".parse().unwrap();
    assert_eq!(*values[1], PackageValues::Provider { api_group: antrea.0, kind: antrea.1, name });
    assert_eq!(*values[3], PackageValues::Inline(json!({"zone": "a"}).as_object().unwrap().clone()));
    assert_eq!(*values[5], PackageValues::Secret("pinniped-values".parse().unwrap()));
}

#[test]
fn an_owner_may_choose_another_package_of_the_release() {
    let release = release();
    assert_eq!(release.choice("calico").unwrap().full_name(), "calico.tanzu.vmware.com.3.24.1+vmware.1-tkg.1");
    assert_eq!(release.choice("cilium"), None);
    assert_eq!(release.choice("of-another-release"), None);
}

#[test]
fn packages_are_told_to_stay_on_nodes_of_their_release() {
    let wanted = json!({
        "nodeSelector": {"run.tanzu.vmware.com/tkr": "v1.24.9---vmware.1-tkg.1"},
        "deployment": {"updateStrategy": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        "daemonset": {"updateStrategy": "OnDelete"},
    });
    assert_eq!(release().tkgs_values(), Some(wanted));
}

#[test]
fn a_release_from_before_packages_has_none() {
    let mut documents = documents(OBJECTS);
    with(&mut documents, TKR, "/spec/bootstrapPackages", Value::Null);
    documents.remove(TEMPLATE);
    let release = read(&documents).unwrap();
    assert!(release.packages.is_empty() && release.choices.is_empty());
}

#[test]
fn the_digest_covers_everything_but_whether_it_is_used() {
    let plain = release();
    let mut told = documents(OBJECTS);
    told.reverse();
    assert_eq!(read(&told).unwrap().digest(), plain.digest(), "objects may be listed in any order");

    let mut told = documents(OBJECTS);
    with(&mut told, TKR, "/metadata/labels", json!({"deactivated": ""}));
    let retired = read(&told).unwrap();
    assert_eq!((retired.state, retired.digest()), (ReleaseState::Deprecated, plain.digest()));

    for (number, pointer, value) in [
        (TKR, "/spec/kubernetes/etcd/imageTag", json!("v3.5.7")),
        (TKR, "/spec/kubernetes/kube-vip", Value::Null),
        (TKR, "/spec/osImages/1", Value::Null),
        (TKR, "/spec/bootstrapPackages/1", Value::Null),
        (UBUNTU, "/spec/os/version", json!("2204")),
        (UBUNTU, "/spec/image/ref/version", json!("another")),
        (TEMPLATE, "/spec/additionalPackages/1", Value::Null),
        (TEMPLATE, "/spec/csi/valuesFrom/inline/zone", json!("b")),
        (TEMPLATE, "/spec/cni/valuesFrom", Value::Null),
    ] {
        let mut told = documents(OBJECTS);
        with(&mut told, number, pointer, value);
        assert_ne!(read(&told).unwrap().digest(), plain.digest(), "{pointer}");
    }
}

fn check(number: usize, pointer: &str, value: Value, refusal: &str) {
    let mut documents = documents(OBJECTS);
    with(&mut documents, number, pointer, value);
    check_refused(read(&documents), refusal);
}

fn check_release(pointer: &str, value: Value, refusal: &str) {
    check(TKR, pointer, value, &format!("TanzuKubernetesRelease v1.24.9---vmware.1-tkg.1: {refusal}"));
}

fn check_image(pointer: &str, value: Value, refusal: &str) {
    check(UBUNTU, pointer, value, &format!("OSImage v1.24.9---vmware.1-tkg.1-ubuntu: {refusal}"));
}

fn check_template(pointer: &str, value: Value, refusal: &str) {
    let refusal = format!("ClusterBootstrapTemplate tkg-system/v1.24.9---vmware.1-tkg.1: {refusal}");
    check(TEMPLATE, pointer, value, &refusal);
}

fn check_package(pointer: &str, value: Value, refusal: &str) {
    let package = "Package tkg-system/antrea.tanzu.vmware.com.1.7.2+vmware.1-tkg.1-advanced";
    check(ANTREA, pointer, value, &format!("{package}: {refusal}"));
}

#[test]
fn a_malformed_release_object_is_refused_and_named() {
    check_release(
        "/spec/version",
        json!("v1.24"),
        r#"spec.version cannot be read: "v1.24" is not a version: it needs three numbers: major, minor and patch; accepted are for example v1.24.9, v1.24.9-rc.1 and v1.24.9+vmware.1-tkg.1"#,
    );
    check_release(
        "/spec/version",
        json!("v1.24.9+vmware.1-tkg.2"),
        r#"metadata.name is "v1.24.9---vmware.1-tkg.1", and should be "v1.24.9---vmware.1-tkg.2", as spec.version has it"#,
    );
    check(
        TKR,
        "/metadata/name",
        Value::Null,
        r#"TanzuKubernetesRelease without a name: metadata.name is "", and should be "v1.24.9---vmware.1-tkg.1", as spec.version has it"#,
    );
    check_release(
        "/spec/kubernetes/version",
        json!(""),
        r#"spec.kubernetes.version cannot be read: "" is not a version: it has no numbers; accepted are for example v1.24.9, v1.24.9-rc.1 and v1.24.9+vmware.1-tkg.1"#,
    );
    check_release("/spec/kubernetes/etcd", json!({}), "spec.kubernetes.etcd.imageTag is missing");
    check_release(
        "/spec/kubernetes/imageRepository",
        Value::Null,
        "spec.kubernetes.etcd.imageRepository is missing, and so is spec.kubernetes.imageRepository, which would count for all",
    );
}

#[test]
fn an_image_that_does_not_fit_is_refused_and_named() {
    check_release(
        "/spec/osImages/0/name",
        json!("nowhere"),
        r#"spec.osImages[0].name is "nowhere", and there is no such OSImage"#,
    );
    check_release(
        "/spec/osImages/0/name",
        json!("No Where"),
        r#"spec.osImages[0].name cannot be read: "No Where" is not an image name: 'N' cannot be in it; accepted are 1 to 253 of a-z, 0-9, "-" and ".", with a letter or digit at both ends and around each ".""#,
    );
    check_release(
        "/spec/osImages/1/name",
        json!("v1.24.9---vmware.1-tkg.1-ubuntu"),
        r#"spec.osImages[1].name is "v1.24.9---vmware.1-tkg.1-ubuntu" once more"#,
    );
    check_image(
        "/spec/kubernetesVersion",
        json!("v1.24.8+vmware.1"),
        "spec.kubernetesVersion is v1.24.8+vmware.1, and should be v1.24.9+vmware.1, as TanzuKubernetesRelease v1.24.9---vmware.1-tkg.1 has it",
    );
    check_image(
        "/spec/kubernetesVersion",
        json!("newest"),
        r#"spec.kubernetesVersion cannot be read: "newest" is not a version: "newest" is not a number; accepted are for example v1.24.9, v1.24.9-rc.1 and v1.24.9+vmware.1-tkg.1"#,
    );
    check_image(
        "/spec/image/type",
        json!(""),
        r#"spec.image.type is missing; accepted are "ova", "vmop", "ami" and the like"#,
    );
}

#[test]
fn a_template_that_does_not_fit_is_refused_and_named() {
    check_release(
        "/spec/bootstrapPackages",
        Value::Null,
        "spec.bootstrapPackages is missing, although the release has a ClusterBootstrapTemplate; accepted are a list with its packages, or no template",
    );
    check(
        TEMPLATE,
        "/kind",
        json!("AnotherTemplate"),
        "TanzuKubernetesRelease v1.24.9---vmware.1-tkg.1: spec.bootstrapPackages needs a ClusterBootstrapTemplate v1.24.9---vmware.1-tkg.1, and there is none",
    );
    check(
        TEMPLATE,
        "/metadata/name",
        json!("v1.24.9"),
        r#"ClusterBootstrapTemplate tkg-system/v1.24.9: metadata.name is "v1.24.9", and should be "v1.24.9---vmware.1-tkg.1", as its release is named"#,
    );
    check_template("/spec/kapp", Value::Null, "spec.kapp is missing; no cluster can do without it");
    check_template("/spec/cni", Value::Null, "spec.cni is missing; no cluster can do without it");
    check_template(
        "/spec/cni/refName",
        json!("antrea.tanzu.vmware.com.1.7.3"),
        r#"spec.cni.refName is "antrea.tanzu.vmware.com.1.7.3", which is not among spec.bootstrapPackages of TanzuKubernetesRelease v1.24.9---vmware.1-tkg.1; there is "antrea.tanzu.vmware.com.1.7.2+vmware.1-tkg.1-advanced""#,
    );
    check_template(
        "/spec/cni/refName",
        json!("cilium.tanzu.vmware.com.1.0.0"),
        r#"spec.cni.refName is "cilium.tanzu.vmware.com.1.0.0", which is not among spec.bootstrapPackages of TanzuKubernetesRelease v1.24.9---vmware.1-tkg.1"#,
    );
    check_template(
        "/spec/cni/valuesFrom",
        json!({}),
        "spec.cni.valuesFrom names nothing; accepted is one of inline, secretRef and providerRef, or no valuesFrom",
    );
    check_template(
        "/spec/cni/valuesFrom/secretRef",
        json!("a"),
        "spec.cni.valuesFrom names several; accepted is one of inline, secretRef and providerRef",
    );
    check_template(
        "/spec/cni/valuesFrom/providerRef/kind",
        json!(""),
        "spec.cni.valuesFrom.providerRef.kind is missing",
    );
    check_template(
        "/spec/cni/valuesFrom/providerRef/name",
        json!("A"),
        r#"spec.cni.valuesFrom.providerRef.name cannot be read: "A" is not the name of an object: 'A' cannot be in it; accepted are 1 to 253 of a-z, 0-9, "-" and ".", with a letter or digit at both ends and around each ".""#,
    );
    check_template(
        "/spec/additionalPackages/1/valuesFrom/secretRef",
        json!(""),
        r#"spec.additionalPackages[1].valuesFrom.secretRef cannot be read: "" is not the name of an object: it is empty; accepted are 1 to 253 of a-z, 0-9, "-" and ".", with a letter or digit at both ends and around each ".""#,
    );
    check_template(
        "/spec/additionalPackages/1/refName",
        json!("metrics-server.tanzu.vmware.com.0.6.2+vmware.1-tkg.1"),
        r#"spec.additionalPackages[1].refName is "metrics-server.tanzu.vmware.com" once more"#,
    );
}

#[test]
fn a_package_that_does_not_fit_is_refused_and_named() {
    check_release(
        "/spec/bootstrapPackages/0/name",
        json!("antrea.tanzu.vmware.com.1.7.3"),
        r#"spec.bootstrapPackages[0].name is "antrea.tanzu.vmware.com.1.7.3", and there is no such Package"#,
    );
    check_release(
        "/spec/bootstrapPackages/0/name",
        json!("calico.tanzu.vmware.com.3.24.1+vmware.1-tkg.1"),
        r#"spec.bootstrapPackages[1].name is "calico.tanzu.vmware.com.3.24.1+vmware.1-tkg.1" once more"#,
    );
    check_package(
        "/spec/refName",
        json!("antrea"),
        r#"spec.refName is "antrea"; accepted are names with at least two dots"#,
    );
    check_package(
        "/spec/refName",
        json!("antrea..com"),
        r#"spec.refName cannot be read: "antrea..com" is not the name of an object: there is nothing on one side of a dot; accepted are 1 to 253 of a-z, 0-9, "-" and ".", with a letter or digit at both ends and around each ".""#,
    );
    check_package(
        "/spec/refName",
        json!("another.tanzu.vmware.com"),
        r#"metadata.name is "antrea.tanzu.vmware.com.1.7.2+vmware.1-tkg.1-advanced", and should be "another.tanzu.vmware.com.1.7.2+vmware.1-tkg.1-advanced", as spec.refName and spec.version have it"#,
    );
    check_package(
        "/spec/version",
        json!("1.7.3"),
        r#"metadata.name is "antrea.tanzu.vmware.com.1.7.2+vmware.1-tkg.1-advanced", and should be "antrea.tanzu.vmware.com.1.7.3", as spec.refName and spec.version have it"#,
    );
    check_package(
        "/spec/version",
        json!("v1.7.2+vmware.1-tkg.1-advanced"),
        r#"spec.version is "v1.7.2+vmware.1-tkg.1-advanced", and should be "1.7.2+vmware.1-tkg.1-advanced""#,
    );
    check_package(
        "/spec/version",
        json!("latest"),
        r#"spec.version cannot be read: "latest" is not a version: "latest" is not a number; accepted are for example v1.24.9, v1.24.9-rc.1 and v1.24.9+vmware.1-tkg.1"#,
    );
    let mut documents = documents(OBJECTS);
    documents.push(documents[ANTREA].clone());
    check_refused(
        read(&documents),
        r#"TanzuKubernetesRelease v1.24.9---vmware.1-tkg.1: spec.bootstrapPackages[0].name is "antrea.tanzu.vmware.com.1.7.2+vmware.1-tkg.1-advanced", and there are several such Packages"#,
    );
}
