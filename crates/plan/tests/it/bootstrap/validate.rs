//! What a `ClusterBootstrap` may say, and how it may change.

use windlass_plan::bootstrap::Reference;
use windlass_plan::bootstrap::validate::{Known, refusals};

use super::bootstrap;

const GOOD: &str = "
kapp: {refName: kapp-controller.tanzu.vmware.com.0.41.5}
cni: {refName: antrea.tanzu.vmware.com.1.7.2, valuesFrom: {providerRef: {apiGroup: cni.tanzu.vmware.com, kind: AntreaConfig, name: mine}}}
additionalPackages: [{refName: own.example.com.1.0.0, valuesFrom: {secretRef: own}}]
";

fn known() -> Known {
    let packages = [
        "kapp-controller.tanzu.vmware.com.0.41.5",
        "antrea.tanzu.vmware.com.1.7.2",
        "antrea.tanzu.vmware.com.1.9.0",
        "calico.tanzu.vmware.com.3.24.1",
        "own.example.com.1.0.0",
        "other.example.com.1.0.0",
        "addons-manager.tanzu.vmware.com.0.28.1",
    ];
    let provider = Reference {
        api_group: "cni.tanzu.vmware.com".to_owned(),
        kind: "AntreaConfig".to_owned(),
        name: "mine".to_owned(),
    };
    let values = [Reference::secret("own"), provider].into();
    Known { packages: packages.map(str::to_owned).into(), values, ..Known::default() }
}

/// What is said about one that is made so.
fn check(packages: &str, wanted: &[&str]) {
    let told: Vec<String> =
        refusals(&bootstrap(packages, |_| {}), None, &known()).iter().map(ToString::to_string).collect();
    assert_eq!(told, wanted, "{packages}");
}

/// What is said about a good one that becomes so.
fn check_change(packages: &str, wanted: &[&str]) {
    let [asked, before] = [packages, GOOD].map(|packages| bootstrap(packages, |_| {}));
    let told: Vec<String> = refusals(&asked, Some(&before), &known()).iter().map(ToString::to_string).collect();
    assert_eq!(told, wanted, "{packages}");
}

fn with(from: &str, to: &str) -> String {
    let changed = GOOD.replace(from, to);
    assert_ne!(changed, GOOD);
    changed
}

#[test]
fn a_new_one_names_packages_and_values_that_there_are() {
    check(GOOD, &[]);
    check(
        "{}",
        &[
            "spec.kapp: no cluster can do without it; name a package",
            "spec.cni: no cluster can do without it; name a package, or annotate the object with \
             tkg.tanzu.vmware.com/unmanaged-cni",
        ],
    );
    check(
        &with("antrea.tanzu.vmware.com.1.7.2", "antrea.tanzu.vmware.com.1.8.0"),
        &["spec.cni.refName: there is no Package tkg-system/antrea.tanzu.vmware.com.1.8.0; \
           there is antrea.tanzu.vmware.com.1.7.2, antrea.tanzu.vmware.com.1.9.0"],
    );
    check(
        &with("{secretRef: own}", "{secretRef: own, inline: {a: 1}}"),
        &[
            "spec.additionalPackages[0].valuesFrom: names several sources; accepted is one of inline, secretRef and providerRef",
        ],
    );
    check(
        &with("{secretRef: own}", "{secretRef: gone}"),
        &[
            "spec.additionalPackages[0].valuesFrom.secretRef: there is no Secret gone in the namespace dev; create it first",
        ],
    );
    check(
        &with("[{refName: own", "[{refName: antrea.tanzu.vmware.com.1.9.0}, {refName: own"),
        &["spec.additionalPackages[0].refName: antrea is in spec.cni already; each package can be there once"],
    );
    let [refused] = refusals(&bootstrap(&with("1.7.2", "newest"), |_| {}), None, &known()).try_into().unwrap();
    assert_eq!(refused.field, "spec.cni.refName");
    assert!(refused.why.contains("does not name one version of a package"), "{refused}");
}

#[test]
fn annotations_and_deletion_loosen_what_is_asked() {
    let annotated = |packages: &str, key: &str| {
        let asked = bootstrap(packages, |value| value["metadata"]["annotations"][key] = "x".into());
        refusals(&asked, None, &known()).len()
    };
    assert_eq!(
        annotated("kapp: {refName: kapp-controller.tanzu.vmware.com.0.41.5}", "tkg.tanzu.vmware.com/unmanaged-cni"),
        0
    );
    assert_eq!(annotated("cni: {refName: antrea*}", "tkg.tanzu.vmware.com/add-missing-fields-from-tkr"), 0);
    assert_eq!(annotated("cni: {refName: antrea*}", "other"), 2);
    let leaving = bootstrap("{}", |value| value["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into());
    assert!(refusals(&leaving, Some(&bootstrap(GOOD, |_| {})), &known()).is_empty(), "finalizers can be removed");
}

#[test]
fn a_change_keeps_which_packages_they_are() {
    check_change(GOOD, &[]);
    check_change(&with("1.7.2", "1.9.0"), &[]);
    let [asked, before] = [GOOD.to_owned(), with("1.7.2", "1.9.0")].map(|packages| bootstrap(&packages, |_| {}));
    let told: Vec<String> = refusals(&asked, Some(&before), &known()).iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        ["spec.cni.refName: package downgrade is not allowed, original version: 1.9.0, updated version 1.7.2"]
    );
    check_change(
        &with("antrea.tanzu.vmware.com.1.7.2", "calico.tanzu.vmware.com.3.24.1"),
        &[
            "spec.cni.refName: cannot be made calico.tanzu.vmware.com: a cluster keeps antrea.tanzu.vmware.com for as long as it lives",
        ],
    );
    check_change(
        &with("own.example.com.1.0.0, valuesFrom: {secretRef: own}", "other.example.com.1.0.0"),
        &[
            "spec.additionalPackages: own.example.com.1.0.0 cannot be taken out; packages stay for as long as the cluster lives",
        ],
    );
    check_change(
        &with("{providerRef: {apiGroup: cni.tanzu.vmware.com, kind: AntreaConfig, name: mine}}", "{secretRef: own}"),
        &[
            "spec.cni.valuesFrom.providerRef: has to stay of the kind AntreaConfig in cni.tanzu.vmware.com: its controller makes the values",
        ],
    );
    // The order of what was added is nobody's business.
    check_change(&with("[{refName: own", "[{refName: other.example.com.1.0.0}, {refName: own"), &[]);
}

#[test]
fn nobody_gives_values_to_a_management_package() {
    let listed = |values: &str| {
        with(
            "own.example.com.1.0.0, valuesFrom: {secretRef: own}",
            &format!("addons-manager.tanzu.vmware.com.0.28.1{values}"),
        )
    };
    check(&listed(""), &[]);
    check(&listed(", valuesFrom: {}"), &[]);
    let refused = "spec.additionalPackages[0].valuesFrom: addons-manager: management packages come as they are: they take no \
                   values; leave valuesFrom out";
    check(&listed(", valuesFrom: {secretRef: own}"), &[refused]);
    check(&listed(", valuesFrom: {inline: {a: 1}}"), &[refused]);
}

#[test]
fn a_cluster_that_is_asked_to_have_the_release_before_again_gets_its_versions() {
    let newer = with("antrea.tanzu.vmware.com.1.7.2", "antrea.tanzu.vmware.com.1.9.0");
    let [asked, before] = [GOOD, &newer].map(|packages| bootstrap(packages, |_| {}));
    let told = |of_release: &[&str]| {
        let of_release = of_release.iter().map(|&name| name.to_owned()).collect();
        refusals(&asked, Some(&before), &Known { of_release, ..known() }).len()
    };
    assert_eq!(told(&["antrea.tanzu.vmware.com.1.9.0"]), 1, "not by hand");
    assert_eq!(told(&["antrea.tanzu.vmware.com.1.7.2"]), 0, "with its release");
}
