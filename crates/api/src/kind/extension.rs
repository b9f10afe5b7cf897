//! How Cluster API is told to ask us before it goes on: an `ExtensionConfig` of its Runtime SDK. Written by us.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube_derive::CustomResource;
use serde::{Deserialize, Serialize};

use super::Condition;

/// The group of the kind.
pub const GROUP: &str = "runtime.cluster.x-k8s.io";

/// Where we can be asked, and about what. It can only be used where the feature gate `RuntimeSDK` is on.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "runtime.cluster.x-k8s.io",
    version = "v1beta2",
    kind = "ExtensionConfig",
    status = "ExtensionConfigStatus",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct ExtensionConfigSpec {
    /// Where we can be asked.
    #[serde(default)]
    pub client_config: ExtensionClient,
    /// The namespaces whose clusters we are asked about: all where nothing is said. There is no finer choice, so that whoever
    /// is asked must let clusters pass that are none of theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,
    /// What is in every question.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
}

/// Where an extension can be asked. One of `url` and `service`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExtensionClient {
    /// Outside of the management cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Inside of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<ExtensionService>,
    /// The authority that signed our certificate, as base64 of PEM; nothing where it is injected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_bundle: Option<String>,
}

/// A Service at which an extension can be asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtensionService {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its port; 443 where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// What comes before the path of a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// What Cluster API found out about an extension.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExtensionConfigStatus {
    /// What it can be asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handlers: Vec<ExtensionHandler>,
    /// `Discovered`, `Paused`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// Something that an extension can be asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExtensionHandler {
    /// Its name, a dot, and the name of the `ExtensionConfig`.
    pub name: String,
    /// Which question.
    pub request_hook: Hook,
    /// How long an answer may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u32>,
    /// `Fail` or `Ignore`: what no answer means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<String>,
}

/// A question of Cluster API.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hook {
    /// The group and version of the questions.
    pub api_version: String,
    /// `BeforeClusterUpgrade`.
    pub hook: String,
}
