//! The packages, by category. Within one they are in the order in which people list them.

use super::Category::{ClusterApi, Core, Management, Standalone};
use super::{Category, Infrastructure, PackageRow};

/// Every package that is known.
pub const PACKAGES: &[PackageRow] = &[
    row("tkg", Management),
    part("framework", "tkg", &[]),
    part("addons-manager", "framework", &["tkr-service"]),
    part("tkr-service", "framework", &[]),
    part("featuregates", "framework", &[]),
    part("tanzu-auth", "framework", &[]),
    part("cliplugins", "framework", &[]),
    part("tkg-clusterclass", "tkg", &["framework"]),
    on(Infrastructure::Aws, part("tkg-clusterclass-aws", "tkg-clusterclass", &["object-propagation"])),
    on(Infrastructure::Azure, part("tkg-clusterclass-azure", "tkg-clusterclass", &["object-propagation"])),
    on(Infrastructure::Vsphere, part("tkg-clusterclass-vsphere", "tkg-clusterclass", &["object-propagation"])),
    part("object-propagation", "tkg-clusterclass", &[]),
    part("core-management-plugins", "tkg", &["framework"]),
    part("tkr-source-controller", "tkg", &["framework"]),
    on(Infrastructure::Vsphere, part("tkr-vsphere-resolver", "tkg", &["framework"])),
    on(Infrastructure::Vsphere, part("ako-operator", "tkg", &["framework"])),
    row("kapp-controller", Core),
    row("antrea", Core),
    row("calico", Core),
    on(Infrastructure::Vsphere, row("vsphere-cpi", Core)),
    on(Infrastructure::Vsphere, row("vsphere-csi", Core)),
    row("metrics-server", Core),
    row("secretgen-controller", Core),
    row("pinniped", Core),
    on(Infrastructure::Vsphere, row("load-balancer-and-ingress-service", Core)),
    row("standalone-plugins", Standalone),
    row("capabilities", Standalone),
    row("tkg-autoscaler", Standalone),
    row("tkg-storageclass", Standalone),
    row("cluster-api", ClusterApi),
    row("cluster-api-bootstrap-kubeadm", ClusterApi),
    row("cluster-api-control-plane-kubeadm", ClusterApi),
    on(Infrastructure::Aws, row("cluster-api-provider-aws", ClusterApi)),
    on(Infrastructure::Azure, row("cluster-api-provider-azure", ClusterApi)),
    on(Infrastructure::Vsphere, row("cluster-api-provider-vsphere", ClusterApi)),
    on(Infrastructure::Vsphere, row("cluster-api-ipam-provider-in-cluster", ClusterApi)),
    row("cert-manager", ClusterApi),
];

const fn row(name: &'static str, category: Category) -> PackageRow {
    PackageRow { name, category, part_of: None, after: &[], only_on: None }
}

/// A management package that a meta package brings in.
const fn part(name: &'static str, meta: &'static str, after: &'static [&'static str]) -> PackageRow {
    PackageRow { name, category: Management, part_of: Some(meta), after, only_on: None }
}

const fn on(infrastructure: Infrastructure, row: PackageRow) -> PackageRow {
    PackageRow { only_on: Some(infrastructure), ..row }
}
