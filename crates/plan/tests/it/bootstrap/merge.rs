//! What people chose survives a change of release; all else follows the release.

use windlass_api::kind::release::BootstrapPackages;
use windlass_plan::bootstrap::{Blocked, Draft, Merging, cloned, filled};

use super::{NEW, OLD, cluster, named, packages};

const EARLIER: &str = "
kapp: {refName: kapp-controller.tanzu.vmware.com.0.41.5, valuesFrom: {providerRef: {apiGroup: run.tanzu.vmware.com, kind: KappControllerConfig, name: old}}}
cni: {refName: antrea.tanzu.vmware.com.1.7.2+vmware.1-tkg.1-advanced, valuesFrom: {providerRef: {apiGroup: cni.tanzu.vmware.com, kind: AntreaConfig, name: old}}}
additionalPackages:
- {refName: metrics-server.tanzu.vmware.com.0.6.1}
- {refName: pinniped.tanzu.vmware.com.0.12.0, valuesFrom: {secretRef: old-pinniped}}
- {refName: gone.example.com.1.0.0}
- {refName: listed.example.com.1.0.0}
";

const TEMPLATE: &str = "
kapp: {refName: kapp-controller.tanzu.vmware.com.0.45.2, valuesFrom: {providerRef: {apiGroup: run.tanzu.vmware.com, kind: KappControllerConfig, name: new}}}
cni: {refName: antrea.tanzu.vmware.com.1.9.0, valuesFrom: {providerRef: {apiGroup: cni.tanzu.vmware.com, kind: AntreaConfig, name: new}}}
cpi: {refName: vsphere-cpi.tanzu.vmware.com.1.25.1, valuesFrom: {providerRef: {apiGroup: cpi.tanzu.vmware.com, kind: VSphereCPIConfig, name: new}}}
csi: {refName: vsphere-csi.tanzu.vmware.com.2.7.1}
additionalPackages:
- {refName: metrics-server.tanzu.vmware.com.0.6.2, valuesFrom: {secretRef: metrics}}
- {refName: pinniped.tanzu.vmware.com.0.24.0, valuesFrom: {secretRef: new-pinniped}}
- {refName: capabilities.tanzu.vmware.com.0.30.0, valuesFrom: {inline: {rbac: true}}}
";

const LISTED: [&str; 9] = [
    "kapp-controller.tanzu.vmware.com.0.45.2",
    "antrea.tanzu.vmware.com.1.9.0",
    "calico.tanzu.vmware.com.3.24.1+vmware.1-tkg.1",
    "calico.tanzu.vmware.com.3.24.1+vmware.1-tkg.2",
    "vsphere-cpi.tanzu.vmware.com.1.25.1",
    "vsphere-csi.tanzu.vmware.com.2.7.1",
    "metrics-server.tanzu.vmware.com.0.6.2",
    "pinniped.tanzu.vmware.com.0.24.0",
    "listed.example.com.2.0.0",
];

fn merge(current: &BootstrapPackages, unmanaged_cni: bool) -> Result<Draft, Blocked> {
    let cluster = cluster(|_| {});
    let (earlier, template, listed) = (packages(EARLIER), packages(TEMPLATE), named(&LISTED));
    let merging = Merging {
        cluster: &cluster,
        current,
        earlier: Some(&earlier),
        template: &template,
        release: NEW,
        listed: &listed,
        unmanaged_cni,
    };
    merging.merged()
}

/// A line for each package: where it is, which it is, and where its values come from; then the copies that are made.
fn told(draft: &Draft) -> Vec<String> {
    let BootstrapPackages { paused: _, cni, csi, cpi, kapp, additional_packages } = &draft.packages;
    let core = [("kapp", kapp), ("cni", cni), ("cpi", cpi), ("csi", csi)];
    let core = core.into_iter().filter_map(|(slot, package)| Some((slot, package.as_ref()?)));
    let all = core.chain(additional_packages.iter().map(|package| ("+", package)));
    let line = |(slot, package): (&str, &windlass_api::kind::release::BootstrapPackage)| {
        let values = package.values_from.clone().unwrap_or_default();
        let from = values.secret_ref.map(|name| format!(" from Secret {name}"));
        let from = from.or(values.provider_ref.map(|provider| format!(" from {} {}", provider.kind, provider.name)));
        let from = from.or(values.inline.map(|inline| format!(" from {}", serde_json::Value::Object(inline))));
        format!("{slot} {}{}", package.ref_name.replace(".tanzu.vmware.com", ""), from.unwrap_or_default())
    };
    let copies = draft.copies.iter().map(|order| format!("copy {} to {}", order.from, order.to));
    all.map(line).chain(copies).collect()
}

/// What becomes of a cluster's packages. Merging once more changes nothing, and copies nothing.
fn check(current: &str, wanted: &[&str]) {
    check_with(current, false, wanted);
}

fn check_with(current: &str, unmanaged_cni: bool, wanted: &[&str]) {
    let merged = merge(&packages(current), unmanaged_cni).unwrap();
    let told = told(&merged);
    let of_interest: Vec<&str> =
        told.iter().map(String::as_str).filter(|line| wanted.contains(line) || !is_usual(line)).collect();
    assert_eq!(of_interest, wanted, "{current}\n{told:#?}");
    let again = merge(&merged.packages, unmanaged_cni).unwrap();
    assert_eq!(again, Draft { packages: merged.packages, copies: Vec::new() }, "{current}");
}

/// What the release brings in any case, and no row is about.
fn is_usual(line: &str) -> bool {
    [
        "kapp kapp-controller.0.45.2",
        "cni antrea.1.9.0",
        "cpi vsphere-cpi.1.25.1 from VSphereCPIConfig wl-vsphere-cpi-package",
        "csi vsphere-csi.2.7.1",
        "+ metrics-server.0.6.2 from Secret wl-metrics-server-package",
        "+ pinniped.0.24.0 from Secret wl-pinniped-package",
        r#"+ capabilities.0.30.0 from {"rbac":true}"#,
        "copy VSphereCPIConfig new to wl-vsphere-cpi-package",
        "copy Secret metrics to wl-metrics-server-package",
        "copy Secret new-pinniped to wl-pinniped-package",
    ]
    .contains(&line)
}

/// A cluster with these parts beside its kapp-controller and its network.
fn having(more: &str) -> String {
    let kapp = "{refName: kapp-controller.tanzu.vmware.com.0.41.5}";
    let cni = "{refName: antrea.tanzu.vmware.com.1.7.2+vmware.1-tkg.1-advanced}";
    format!("kapp: {kapp}\ncni: {cni}\n{more}")
}

#[test]
fn the_core_follows_the_template_and_keeps_its_values() {
    check(
        "
kapp: {refName: kapp-controller.tanzu.vmware.com.0.41.5, valuesFrom: {inline: {own: 1}}}
cni: {refName: antrea.tanzu.vmware.com.1.7.2, valuesFrom: {providerRef: {apiGroup: cni.tanzu.vmware.com, kind: AntreaConfig, name: mine}}}
csi: {refName: vsphere-csi.tanzu.vmware.com.2.6.2, valuesFrom: {secretRef: own-csi}}
",
        &[
            r#"kapp kapp-controller.0.45.2 from {"own":1}"#,
            "cni antrea.1.9.0 from AntreaConfig mine",
            // What the cluster has not is added, with a copy of its values.
            "cpi vsphere-cpi.1.25.1 from VSphereCPIConfig wl-vsphere-cpi-package",
            "csi vsphere-csi.2.7.1 from Secret own-csi",
            "copy VSphereCPIConfig new to wl-vsphere-cpi-package",
        ],
    );
}

#[test]
fn who_chose_another_network_keeps_it() {
    let calico =
        "kapp: {refName: kapp-controller.tanzu.vmware.com.0.41.5}\ncni: {refName: calico.tanzu.vmware.com.3.22.4}";
    check(calico, &["cni calico.3.24.1+vmware.1-tkg.2"]);
    check_with(calico, true, &["cni calico.3.22.4"]);
    let none = "kapp: {refName: kapp-controller.tanzu.vmware.com.0.41.5}";
    check_with(none, true, &[]);
    assert!(merge(&packages(none), true).unwrap().packages.cni.is_none());
    check(
        none,
        &["cni antrea.1.9.0 from AntreaConfig wl-antrea-package", "copy AntreaConfig new to wl-antrea-package"],
    );

    let cilium =
        having("").replace("antrea.tanzu.vmware.com.1.7.2+vmware.1-tkg.1-advanced", "cilium.example.com.1.0.0");
    let refused = merge(&packages(&cilium), false).unwrap_err();
    assert_eq!(refused.reason(), "ChoiceMissing");
    let told = refused.to_string();
    assert!(
        told.starts_with("spec.cni.refName is cilium.example.com.1.0.0, and v1.25.7---vmware.2-tkg.1 has no"),
        "{told}"
    );
    assert!(refused.way_out().contains("choose another package in spec.cni.refName"));
}

#[test]
fn a_csi_or_cpi_of_ones_own_is_not_replaced() {
    check(
        &having("csi: {refName: own-csi.example.com.1.0.0}\ncpi: {refName: listed.example.com.1.0.0}"),
        &["cpi listed.example.com.2.0.0", "csi own-csi.example.com.1.0.0"],
    );
}

#[test]
fn packages_that_were_added_are_raised_appended_or_left_and_never_removed() {
    // In both: raised. The template's values are taken only where neither the cluster nor the old template had any.
    check(
        &having("additionalPackages: [{refName: metrics-server.tanzu.vmware.com.0.6.1}]"),
        &[
            "+ metrics-server.0.6.2 from Secret wl-metrics-server-package",
            "copy Secret metrics to wl-metrics-server-package",
        ],
    );
    check(
        &having("additionalPackages: [{refName: metrics-server.tanzu.vmware.com.0.6.1, valuesFrom: {secretRef: own}}]"),
        &["+ metrics-server.0.6.2 from Secret own"],
    );
    // The old template had values, and somebody took them out.
    check(&having("additionalPackages: [{refName: pinniped.tanzu.vmware.com.0.12.0}]"), &["+ pinniped.0.24.0"]);
    // In the cluster only: what left the template follows the release where it is listed there, and stays otherwise.
    check(
        &having(
            "additionalPackages: [{refName: gone.example.com.1.0.0, valuesFrom: {inline: {a: 1}}}, {refName: listed.example.com.1.0.0}]",
        ),
        &[r#"+ gone.example.com.1.0.0 from {"a":1}"#, "+ listed.example.com.2.0.0"],
    );
    // In the template only: appended, in the order of the template, behind what people have.
    let merged = merge(&packages(&having("additionalPackages: [{refName: gone.example.com.1.0.0}]")), false).unwrap();
    let names = merged.packages.additional_packages.iter().map(|package| package.ref_name.split('.').next().unwrap());
    assert_eq!(names.collect::<Vec<_>>(), ["gone", "metrics-server", "pinniped", "capabilities"]);
}

#[test]
fn without_the_old_template_no_values_are_put_in() {
    let (cluster, template, listed) = (cluster(|_| {}), packages(TEMPLATE), named(&LISTED));
    let current = packages(&having("additionalPackages: [{refName: metrics-server.tanzu.vmware.com.0.6.1}]"));
    let merging = Merging {
        cluster: &cluster,
        current: &current,
        earlier: None,
        template: &template,
        release: NEW,
        listed: &listed,
        unmanaged_cni: false,
    };
    let merged = merging.merged().unwrap();
    assert!(merged.packages.additional_packages[0].values_from.is_none());
    assert_eq!(merged.packages.additional_packages[0].ref_name, "metrics-server.tanzu.vmware.com.0.6.2");
}

#[test]
fn a_pause_stays_a_pause() {
    let merged = merge(&packages(&having("paused: true")), false).unwrap();
    assert_eq!(merged.packages.paused, Some(true));
}

#[test]
fn a_new_cluster_has_the_packages_of_the_template_with_values_of_its_own() {
    let draft = cloned(&cluster(|_| {}), &packages(EARLIER)).unwrap();
    assert_eq!(
        told(&draft),
        [
            "kapp kapp-controller.0.41.5 from KappControllerConfig wl-kapp-controller-package",
            "cni antrea.1.7.2+vmware.1-tkg.1-advanced from AntreaConfig wl-antrea-package",
            "+ metrics-server.0.6.1",
            "+ pinniped.0.12.0 from Secret wl-pinniped-package",
            "+ gone.example.com.1.0.0",
            "+ listed.example.com.1.0.0",
            "copy KappControllerConfig old to wl-kapp-controller-package",
            "copy AntreaConfig old to wl-antrea-package",
            "copy Secret old-pinniped to wl-pinniped-package",
        ]
    );
    assert_eq!(draft.copies[1].package, "antrea.tanzu.vmware.com.1.7.2---vmware.1-tkg.1-advanced");
}

fn fill(begun: &str, unmanaged_cni: bool) -> Result<Draft, Blocked> {
    filled(&cluster(|_| {}), &packages(begun), &packages(TEMPLATE), (OLD, &named(&LISTED)), unmanaged_cni)
}

#[test]
fn what_somebody_began_is_filled_from_a_release() {
    let draft = fill("cni: {refName: antrea*}\nadditionalPackages: [{refName: own.example.com.1.0.0}]", false).unwrap();
    assert_eq!(
        told(&draft),
        [
            "kapp kapp-controller.0.45.2 from KappControllerConfig wl-kapp-controller-package",
            "cni antrea.1.9.0 from AntreaConfig wl-antrea-package",
            "cpi vsphere-cpi.1.25.1 from VSphereCPIConfig wl-vsphere-cpi-package",
            "csi vsphere-csi.2.7.1",
            "+ own.example.com.1.0.0",
            "+ metrics-server.0.6.2 from Secret wl-metrics-server-package",
            "+ pinniped.0.24.0 from Secret wl-pinniped-package",
            r#"+ capabilities.0.30.0 from {"rbac":true}"#,
            "copy AntreaConfig new to wl-antrea-package",
            "copy KappControllerConfig new to wl-kapp-controller-package",
            "copy VSphereCPIConfig new to wl-vsphere-cpi-package",
            "copy Secret metrics to wl-metrics-server-package",
            "copy Secret new-pinniped to wl-pinniped-package",
        ]
    );
    let again = filled(&cluster(|_| {}), &draft.packages, &packages(TEMPLATE), (OLD, &named(&LISTED)), false).unwrap();
    assert_eq!(again, Draft { packages: draft.packages, copies: Vec::new() });
    assert!(fill("csi: {refName: vsphere-csi.tanzu.vmware.com.2.6.2}", true).unwrap().packages.cni.is_none());
}

#[test]
fn a_beginning_names_one_package() {
    let ambiguous = fill("cni: {refName: calico*}", false).unwrap_err();
    assert_eq!(
        ambiguous.to_string(),
        "spec.cni.refName of the ClusterBootstrap cannot be acted on: calico* could be \
         calico.tanzu.vmware.com.3.24.1+vmware.1-tkg.1 or calico.tanzu.vmware.com.3.24.1+vmware.1-tkg.2; \
         accepted is what names one of them"
    );
    assert_eq!(fill("cni: {refName: cilium*}", false).unwrap_err().reason(), "ChoiceMissing");
}
