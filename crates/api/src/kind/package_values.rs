//! Objects that the values of packages are made of: each kind has a controller that renders a Secret of it.
//!
//! What is in them is between people and the package. We copy the one that comes with a release for each cluster, and wait
//! until the copy's Secret is there.

use kube_derive::CustomResource;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The group of the kinds for packages that connect pods.
pub const CNI_GROUP: &str = "cni.tanzu.vmware.com";

/// The group of the kinds for packages that connect nodes with the infrastructure.
pub const CPI_GROUP: &str = "cpi.tanzu.vmware.com";

/// The group of the kinds for packages that connect volumes.
pub const CSI_GROUP: &str = "csi.tanzu.vmware.com";

/// How far the Secret of the values is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PackageValuesStatus {
    /// The Secret that the values are in; nothing until it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<String>,
}

/// The values of Antrea.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "cni.tanzu.vmware.com",
    version = "v1alpha1",
    kind = "AntreaConfig",
    namespaced,
    status = "PackageValuesStatus",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    crates(kube_core = "::kube_core")
)]
pub struct AntreaConfigSpec {
    /// What people chose.
    #[serde(flatten)]
    pub values: Map<String, Value>,
}

/// The values of Calico.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "cni.tanzu.vmware.com",
    version = "v1alpha1",
    kind = "CalicoConfig",
    namespaced,
    status = "PackageValuesStatus",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    crates(kube_core = "::kube_core")
)]
pub struct CalicoConfigSpec {
    /// What people chose.
    #[serde(flatten)]
    pub values: Map<String, Value>,
}

/// The values of vSphere's cloud provider.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "cpi.tanzu.vmware.com",
    version = "v1alpha1",
    kind = "VSphereCPIConfig",
    plural = "vspherecpiconfigs",
    namespaced,
    status = "PackageValuesStatus",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    crates(kube_core = "::kube_core")
)]
pub struct VSphereCPIConfigSpec {
    /// What people chose.
    #[serde(flatten)]
    pub values: Map<String, Value>,
}

/// The values of vSphere's volumes.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "csi.tanzu.vmware.com",
    version = "v1alpha1",
    kind = "VSphereCSIConfig",
    plural = "vspherecsiconfigs",
    namespaced,
    status = "PackageValuesStatus",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    crates(kube_core = "::kube_core")
)]
pub struct VSphereCSIConfigSpec {
    /// What people chose.
    #[serde(flatten)]
    pub values: Map<String, Value>,
}

/// The values of kapp-controller, which installs all other packages.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "run.tanzu.vmware.com",
    version = "v1alpha3",
    kind = "KappControllerConfig",
    namespaced,
    status = "PackageValuesStatus",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    crates(kube_core = "::kube_core")
)]
pub struct KappControllerConfigSpec {
    /// What people chose.
    #[serde(flatten)]
    pub values: Map<String, Value>,
}
