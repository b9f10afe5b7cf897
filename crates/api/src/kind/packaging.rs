//! Carvel's packages: what there is to install, and what is installed.

use kube_derive::CustomResource;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::release::LocalReference;

/// The group of what there is to install.
pub const DATA_GROUP: &str = "data.packaging.carvel.dev";

/// The group of what is installed.
pub const GROUP: &str = "packaging.carvel.dev";

/// One version of a package. Its name is its reference name, a dot and its version.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "data.packaging.carvel.dev",
    version = "v1alpha1",
    kind = "Package",
    namespaced,
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct PackageSpec {
    /// The name that all its versions share: `antrea.tanzu.vmware.com`.
    pub ref_name: String,
    /// The version.
    pub version: String,
    /// How it is fetched, rendered and applied.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub template: Value,
    /// The versions of Kubernetes that it can be installed on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes_version_selection: Option<VersionConstraints>,
    /// The versions of kapp-controller that can install it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kapp_controller_version_selection: Option<VersionConstraints>,
    /// What values it takes.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub values_schema: Value,
}

/// Which versions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionConstraints {
    /// A range, or one version.
    #[serde(default)]
    pub constraints: String,
}

/// What a package is, whatever its version.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "data.packaging.carvel.dev",
    version = "v1alpha1",
    kind = "PackageMetadata",
    plural = "packagemetadatas",
    namespaced,
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct PackageMetadataSpec {
    /// The name that people know it by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// What it is for, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short_description: Option<String>,
}

/// A package that is, or should be, installed.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "packaging.carvel.dev",
    version = "v1alpha1",
    kind = "PackageInstall",
    namespaced,
    status = "PackageInstallStatus",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct PackageInstallSpec {
    /// Whose rights it is installed with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// The cluster that it is installed in, if not the one that this object is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<Value>,
    /// Which package, and which versions of it.
    #[serde(default)]
    pub package_ref: PackageReference,
    /// Its values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<PackageValues>,
    /// It is left as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// It is left as it is, and what runs is stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canceled: Option<bool>,
    /// How often it is applied anew: `10m0s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_period: Option<String>,
    /// What it installed stays when this object goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noop_delete: Option<bool>,
    /// The namespace of what it installs and says no namespace itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_namespace: Option<String>,
}

/// Which package, and which versions of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PackageReference {
    /// The name that all versions share.
    pub ref_name: String,
    /// Which versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version_selection: Option<VersionSelection>,
}

/// Which versions of a package.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionSelection {
    /// A range, or one version.
    #[serde(default)]
    pub constraints: String,
    /// Whether pre-releases count, and which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prereleases: Option<Value>,
}

/// The values of a package.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PackageValues {
    /// The Secret that they are in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalReference>,
}

/// How far a package is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PackageInstallStatus {
    /// The generation that this was found out for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The version that was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The version that was tried last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_attempted_version: Option<String>,
    /// How it is, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub friendly_description: Option<String>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub useful_error_message: Option<String>,
    /// One of `Reconciling`, `ReconcileFailed`, `ReconcileSucceeded`, `Deleting`, `DeleteFailed`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<PackageCondition>,
}

/// What is true of a package. Carvel's conditions have no time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackageCondition {
    /// What it is about.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Why, in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Where packages come from.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "packaging.carvel.dev",
    version = "v1alpha1",
    kind = "PackageRepository",
    plural = "packagerepositories",
    namespaced,
    status = "PackageRepositoryStatus",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct PackageRepositorySpec {
    /// It is left as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// How often it is looked at: `10m0s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_period: Option<String>,
    /// Where it is.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub fetch: Value,
}

/// How far a repository is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PackageRepositoryStatus {
    /// The generation that this was found out for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How it is, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub friendly_description: Option<String>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub useful_error_message: Option<String>,
    /// How often in a row it went well.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub consecutive_reconcile_successes: u32,
    /// How often in a row it went wrong.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub consecutive_reconcile_failures: u32,
    /// How it was fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fetch: Option<AppStage>,
    /// As those of a `PackageInstall`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<PackageCondition>,
}

/// What is deployed: where it comes from, and how it is rendered and applied. Each `PackageInstall` has one of its name.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "kappctrl.k14s.io",
    version = "v1alpha1",
    kind = "App",
    namespaced,
    status = "AppStatus",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct AppSpec {
    /// Whose rights it is deployed with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// The cluster that it is deployed to, if not the one that this object is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<Value>,
    /// Where it comes from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fetch: Vec<Value>,
    /// How it is rendered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub template: Vec<Value>,
    /// How it is applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deploy: Vec<Value>,
    /// It is left as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// It is left as it is, and what runs is stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canceled: Option<bool>,
    /// How often it is applied anew: `10m0s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_period: Option<String>,
    /// What it deployed stays when this object goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noop_delete: Option<bool>,
    /// The namespace of what it deploys and says no namespace itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_namespace: Option<String>,
}

/// How far an App is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AppStatus {
    /// The generation that this was found out for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How it is, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub friendly_description: Option<String>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub useful_error_message: Option<String>,
    /// How often in a row it went well.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub consecutive_reconcile_successes: u32,
    /// How often in a row it went wrong.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub consecutive_reconcile_failures: u32,
    /// How it was fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fetch: Option<AppStage>,
    /// How it was rendered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<AppStage>,
    /// How it was applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deploy: Option<AppStage>,
    /// As those of a `PackageInstall`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<PackageCondition>,
}

/// What a program did that an App was given to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AppStage {
    /// Zero where all went well.
    #[serde(default)]
    pub exit_code: i32,
    /// What it said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout: Option<String>,
    /// What it complained about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    /// It has ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub finished: bool,
    /// When it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// When this was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Whether the condition of that type is there and true.
pub fn is_true(conditions: &[PackageCondition], type_: &str) -> bool {
    conditions.iter().any(|condition| condition.type_ == type_ && condition.status == "True")
}
