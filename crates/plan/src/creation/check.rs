//! What is verified before a cluster is created: of the management cluster, and of what is about to be written.

use std::fmt;

use serde::Serialize;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::name::ReleaseName;

use super::node::{self, NodeFact};
use super::proxy::{self, Proxy, ProxyFacts};
use super::release::{self, ReleaseFact};

/// What was read, or why it could not be.
pub type Gap<T> = Result<T, String>;

/// What is known of the management side, and of what is to be created.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The version of its API.
    pub server: Gap<String>,
    /// Its nodes.
    pub nodes: Gap<Vec<NodeFact>>,
    /// The Cluster that is the management cluster itself, where there is one.
    pub management: Gap<Option<Cluster>>,
    /// The releases, with what is wrong with each.
    pub releases: Gap<Vec<ReleaseFact>>,
    /// The proxies.
    pub proxies: Gap<ProxyFacts>,
    /// Whether people are authenticated by a provider of identities.
    pub authentication: Gap<bool>,
    /// What is to be created; nothing if only the management side is looked at.
    pub wanted: Option<Wanted>,
}

/// What is to be created, as far as it is verified here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Its release, where one was resolved.
    pub release: Option<ReleaseName>,
    /// Its proxy.
    pub proxy: Proxy,
}

/// What a check is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Subject {
    /// Nodes, and the version of Kubernetes.
    Management,
    /// The data of releases.
    Releases,
    /// What is created where nobody says which release.
    DefaultRelease,
    /// Whether the machines of the management cluster's control plane are apart from each other.
    AntiAffinity,
    /// The way to the outside.
    Proxy,
    /// Who people are.
    Authentication,
}

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// All is well.
    Well,
    /// It could not be found out.
    Unknown,
    /// Somebody should know.
    Warning,
    /// Nothing may be created.
    Failed,
}

/// One of the checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Check {
    /// What it is about.
    pub subject: Subject,
    /// How it ended.
    pub outcome: Outcome,
    /// What was found.
    pub said: String,
    /// What to look at, or to change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub way: Option<String>,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Management => "management cluster",
            Self::Releases => "releases",
            Self::DefaultRelease => "default release",
            Self::AntiAffinity => "anti-affinity",
            Self::Proxy => "proxy",
            Self::Authentication => "authentication",
        })
    }
}

impl Subject {
    pub(super) fn well(self, said: String) -> Check {
        Check { subject: self, outcome: Outcome::Well, said, way: None }
    }

    pub(super) fn unknown(self, said: String) -> Check {
        Check { subject: self, outcome: Outcome::Unknown, said, way: None }
    }

    pub(super) fn warning(self, said: String, way: &str) -> Check {
        Check { subject: self, outcome: Outcome::Warning, said, way: Some(way.to_owned()) }
    }

    pub(super) fn failed(self, said: String, way: &str) -> Check {
        Check { subject: self, outcome: Outcome::Failed, said, way: Some(way.to_owned()) }
    }
}

/// All checks, each once, in the order in which people are told.
pub fn checks(facts: &Facts) -> Vec<Check> {
    vec![
        node::management(facts),
        release::releases(facts),
        release::default_release(facts),
        node::anti_affinity(facts),
        proxy::proxy(facts),
        authentication(facts),
    ]
}

/// Whether there is a provider of identities.
fn authentication(facts: &Facts) -> Check {
    let subject = Subject::Authentication;
    match &facts.authentication {
        Ok(true) => subject.well("people are who their provider of identities says (pinniped)".to_owned()),
        Ok(false) => subject.warning(
            "pinniped is not configured: there is no ConfigMap kube-public/pinniped-info, so the only way into the cluster is its \
             kubeconfig Secret"
                .to_owned(),
            "configure it in the management cluster; clusters that are there follow",
        ),
        Err(why) => subject.unknown(format!("it cannot be read: {why}")),
    }
}
