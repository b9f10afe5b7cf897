//! What Cluster API asks of its extensions, and what they answer: the bodies of its Runtime SDK.
//!
//! A question is a POST to `/<group>/<version>/<hook>/<handler>`; which hooks an extension answers, and under which names, it says
//! when it is discovered.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::kind::cluster_api::{Cluster, UpgradeStep};
use crate::kind::extension::ExtensionHandler;

/// The group and version of all questions and answers.
pub const API_VERSION: &str = "hooks.runtime.cluster.x-k8s.io/v1alpha1";

/// A question that we answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HookName {
    /// May what a topology is made of be created?
    BeforeClusterCreate,
    /// The first machine of the control plane answers. Nobody waits for what is said to it.
    AfterControlPlaneInitialized,
    /// May an upgrade begin?
    BeforeClusterUpgrade,
    /// May the control plane take its next version?
    BeforeControlPlaneUpgrade,
    /// The control plane has taken a version: may workers follow, or the next one begin?
    AfterControlPlaneUpgrade,
    /// May workers take their next version?
    BeforeWorkersUpgrade,
    /// Workers have taken a version: may the control plane take its next one?
    AfterWorkersUpgrade,
    /// An upgrade is over: may another begin?
    AfterClusterUpgrade,
    /// May what a topology is made of be deleted?
    BeforeClusterDelete,
    /// Through which versions does an upgrade go?
    GenerateUpgradePlan,
}

/// Every hook, with its name and that of our handler for it.
const NAMES: [(HookName, &str, &str); 10] = [
    (HookName::BeforeClusterCreate, "BeforeClusterCreate", "before-cluster-create"),
    (HookName::AfterControlPlaneInitialized, "AfterControlPlaneInitialized", "after-control-plane-initialized"),
    (HookName::BeforeClusterUpgrade, "BeforeClusterUpgrade", "before-cluster-upgrade"),
    (HookName::BeforeControlPlaneUpgrade, "BeforeControlPlaneUpgrade", "before-control-plane-upgrade"),
    (HookName::AfterControlPlaneUpgrade, "AfterControlPlaneUpgrade", "after-control-plane-upgrade"),
    (HookName::BeforeWorkersUpgrade, "BeforeWorkersUpgrade", "before-workers-upgrade"),
    (HookName::AfterWorkersUpgrade, "AfterWorkersUpgrade", "after-workers-upgrade"),
    (HookName::AfterClusterUpgrade, "AfterClusterUpgrade", "after-cluster-upgrade"),
    (HookName::BeforeClusterDelete, "BeforeClusterDelete", "before-cluster-delete"),
    (HookName::GenerateUpgradePlan, "GenerateUpgradePlan", "generate-upgrade-plan"),
];

impl HookName {
    /// Every hook.
    pub fn all() -> impl Iterator<Item = Self> {
        NAMES.into_iter().map(|(hook, ..)| hook)
    }

    fn row(self) -> (&'static str, &'static str) {
        // Every variant has a row, which a test sees to.
        NAMES.into_iter().find(|(hook, ..)| *hook == self).map_or(("", ""), |(_, name, handler)| (name, handler))
    }

    /// As Cluster API writes it: `BeforeClusterUpgrade`.
    pub fn as_str(self) -> &'static str {
        self.row().0
    }

    /// The name of our handler: `before-cluster-upgrade`.
    pub fn handler(self) -> &'static str {
        self.row().1
    }

    /// The hook of that name.
    pub fn named(name: &str) -> Option<Self> {
        NAMES.into_iter().find(|(_, known, _)| *known == name).map(|(hook, ..)| hook)
    }

    /// Where a handler is asked.
    pub fn path(self, handler: &str) -> String {
        format!("/{API_VERSION}/{}/{handler}", self.as_str().to_lowercase())
    }

    /// Which hook a path is for; `None` if it is none of ours.
    pub fn of_path(path: &str) -> Option<Self> {
        let rest = path.strip_prefix('/')?.strip_prefix(API_VERSION)?.strip_prefix('/')?;
        let (hook, handler) = rest.split_once('/')?;
        Self::all().find(|known| known.as_str().to_lowercase() == hook && known.handler() == handler)
    }
}

impl fmt::Display for HookName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where an extension says which hooks it answers.
pub fn discovery_path() -> String {
    format!("/{API_VERSION}/discovery")
}

/// A question. Which of its fields are there depends on the hook.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// [`API_VERSION`].
    pub api_version: String,
    /// `BeforeClusterUpgradeRequest`.
    pub kind: String,
    /// What the `ExtensionConfig` has for every question.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// The cluster, without its status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<Cluster>,
    /// What an upgrade begins at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_kubernetes_version: Option<String>,
    /// Where an upgrade, or a step of it, leads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_kubernetes_version: Option<String>,
    /// What was reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes_version: Option<String>,
    /// What the control plane begins at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_control_plane_kubernetes_version: Option<String>,
    /// What the workers begin at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_workers_kubernetes_version: Option<String>,
    /// The versions that are ahead of the control plane.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub control_plane_upgrades: Vec<UpgradeStep>,
    /// The versions that are ahead of the workers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers_upgrades: Vec<UpgradeStep>,
}

impl Question {
    /// A question about a cluster.
    pub fn about(hook: HookName, mut cluster: Cluster) -> Self {
        cluster.status = None;
        cluster.metadata.managed_fields = None;
        Self {
            api_version: API_VERSION.to_owned(),
            kind: format!("{hook}Request"),
            cluster: Some(cluster),
            ..Self::default()
        }
    }

    /// Which hooks are there?
    pub fn discovery() -> Self {
        Self { api_version: API_VERSION.to_owned(), kind: "DiscoveryRequest".to_owned(), ..Self::default() }
    }
}

/// Whether a question could be answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum AnswerStatus {
    /// It could.
    #[default]
    Success,
    /// It could not, and is asked again.
    Failure,
}

/// An answer. Which of its fields are there depends on the hook.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// [`API_VERSION`].
    pub api_version: String,
    /// `BeforeClusterUpgradeResponse`.
    pub kind: String,
    /// Whether the question could be answered.
    pub status: AnswerStatus,
    /// Why Cluster API has to wait, or what went wrong. It lands in conditions, and has to stay the same as long as the reason does.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// After how many seconds to ask again; until then Cluster API waits. Nothing for: go on.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retry_after_seconds: u32,
    /// The hooks that are answered, of a discovery.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handlers: Vec<ExtensionHandler>,
    /// The versions that the control plane goes through.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub control_plane_upgrades: Vec<UpgradeStep>,
    /// The versions that workers go through.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers_upgrades: Vec<UpgradeStep>,
}

impl Answer {
    /// Go on.
    pub fn go_on(hook: HookName) -> Self {
        Self { api_version: API_VERSION.to_owned(), kind: format!("{hook}Response"), ..Self::default() }
    }

    /// Wait, for this reason, and ask again.
    pub fn wait(hook: HookName, message: String, retry_after_seconds: u32) -> Self {
        Self { message, retry_after_seconds, ..Self::go_on(hook) }
    }

    /// It could not be found out.
    pub fn failure(hook: HookName, message: String) -> Self {
        Self { status: AnswerStatus::Failure, message, ..Self::go_on(hook) }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_hook_has_a_name_and_a_path_that_lead_back_to_it() {
        for hook in HookName::all() {
            assert_eq!(HookName::named(hook.as_str()), Some(hook));
            assert_eq!(HookName::of_path(&hook.path(hook.handler())), Some(hook));
        }
        let path = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclusterupgrade/before-cluster-upgrade";
        assert_eq!(HookName::of_path(path), Some(HookName::BeforeClusterUpgrade));
        assert_eq!(HookName::of_path("/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery"), None);
    }

    #[test]
    fn bodies_are_as_cluster_api_writes_and_reads_them() {
        let asked = json!({
            "kind": "BeforeClusterUpgradeRequest", "apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1",
            "settings": {"policy": "strict"},
            "cluster": {"kind": "Cluster", "apiVersion": "cluster.x-k8s.io/v1beta2", "metadata": {"name": "c1", "namespace": "ns"},
                "spec": {}},
            "fromKubernetesVersion": "v1.31.4", "toKubernetesVersion": "v1.32.9",
            "controlPlaneUpgrades": [{"version": "v1.32.9"}], "workersUpgrades": [{"version": "v1.32.9"}],
        });
        let question: Question = serde_json::from_value(asked.clone()).unwrap();
        assert_eq!(serde_json::to_value(&question).unwrap(), asked);
        let answer = Answer::wait(HookName::BeforeClusterUpgrade, "antrea is at 1.7.2".to_owned(), 10);
        let written = json!({
            "kind": "BeforeClusterUpgradeResponse", "apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1",
            "status": "Success", "retryAfterSeconds": 10, "message": "antrea is at 1.7.2",
        });
        assert_eq!(serde_json::to_value(&answer).unwrap(), written);
    }
}
