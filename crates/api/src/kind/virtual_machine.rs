//! What machines are made from: images and classes. Written by whoever runs the infrastructure.

use kube_derive::CustomResource;
use serde::{Deserialize, Serialize};

/// An image of a machine's disk. What is on it is told by its annotations: see [`crate::machine_image`].
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "vmoperator.vmware.com",
    version = "v1alpha1",
    kind = "VirtualMachineImage",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineImageSpec {
    /// Which product it is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub product_info: Option<ProductInfo>,
}

/// Which product an image is of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProductInfo {
    /// The product.
    #[serde(default)]
    pub product: String,
    /// Its version.
    #[serde(default)]
    pub version: String,
    /// Its version, in full.
    #[serde(default)]
    pub full_version: String,
}

/// How much of everything a machine has.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "vmoperator.vmware.com",
    version = "v1alpha1",
    kind = "VirtualMachineClass",
    plural = "virtualmachineclasses",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineClassSpec {
    /// Processors and memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hardware: Option<Hardware>,
}

/// Processors and memory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hardware {
    /// How many processors.
    pub cpus: u32,
    /// How much memory, as a quantity.
    pub memory: String,
}
