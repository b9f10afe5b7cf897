//! The webhooks of admission as an API server outside of this process asks them: which there are, when they are asked, and the
//! answers, which are those of [`crate::admission`] and [`crate::bootstrap::admission`] in every world.
//!
//! None of them can lock anybody out. They are asked about three kinds and nothing else, so that whatever Windlass itself runs by
//! (pods, leases, Secrets) is never in their way; never about what is in our own namespace or that of the system; and only where
//! something changes that has to be judged, so that objects can be let go of while nobody answers. Where nobody answers the rest
//! is refused: what would pass unjudged could not be undone ([decision 38](../../../docs/decisions/0038-webhooks-fail-closed.md)).

use kube::Client;
use serde_json::{Value, json};
use windlass_api::{annotation, label};
use windlass_plan::resolve::hold::HoldBy;

use crate::admission::{self, approval, classic, cluster};
use crate::bootstrap::admission as bootstraps;
use crate::hooks::{BODY_MAX, Reply};

/// The namespace of what serves on a cluster.
pub const NAMESPACE: &str = windlass_plan::profile::NAMESPACE;
/// The Service at which reviews are answered.
pub const SERVICE: &str = "windlass-webhook";
/// The configuration of those that may change objects. API servers ask in the order of these names, and those of Cluster API
/// (`capi-…`) refuse a cluster without what only we fill in: they have to come after us.
pub const MUTATING: &str = "admission.windlass.dev";
/// The configuration of those that say yes or no.
pub const VALIDATING: &str = "windlass";

/// The label of all that is installed, and its value: by it, and by nothing else, it is known what is ours to remove.
pub const PART_OF: (&str, &str) = ("app.kubernetes.io/part-of", "windlass");

/// How long an answer may take, in seconds: a person waits for it, and so does every write behind it.
const TIMEOUT_SECONDS: u32 = 5;
/// Whom nothing may keep from starting.
const NOT_ASKED_ABOUT: [&str; 2] = [NAMESPACE, "kube-system"];

/// What may be changed, or only refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// The answer may change the object.
    Mutating,
    /// The answer is yes or no.
    Validating,
}

impl Sort {
    /// The kind of its configuration.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Mutating => "MutatingWebhookConfiguration",
            Self::Validating => "ValidatingWebhookConfiguration",
        }
    }

    /// The resource of its configuration.
    pub fn resource(self) -> &'static str {
        match self {
            Self::Mutating => "mutatingwebhookconfigurations",
            Self::Validating => "validatingwebhookconfigurations",
        }
    }

    /// The name of its configuration.
    pub fn configuration(self) -> &'static str {
        match self {
            Self::Mutating => MUTATING,
            Self::Validating => VALIDATING,
        }
    }
}

/// Something that we are asked about before it is stored.
#[derive(Debug, Clone, Copy)]
pub struct Webhook {
    /// The name by which refusals mention it.
    pub name: &'static str,
    /// Where it is answered.
    pub path: &'static str,
    /// Whether it may change what it is asked about.
    pub sort: Sort,
    /// Group, version and resource of what it is asked about.
    pub resource: [&'static str; 3],
    /// What is done to it.
    pub operations: [&'static str; 2],
    /// Whether it is asked again when another has changed the object.
    pub reinvoke: bool,
    /// Who answers.
    answers: Answers,
}

#[derive(Debug, Clone, Copy)]
enum Answers {
    Clusters,
    ClustersOfAClass,
    LabelledClusters,
    Bootstraps,
}

/// All of them.
pub const ALL: [Webhook; 4] = [
    Webhook {
        name: admission::NAME,
        path: "/admit/tanzukubernetesclusters",
        sort: Sort::Mutating,
        resource: [admission::GROUP, admission::VERSION, admission::RESOURCE],
        operations: admission::OPERATIONS,
        reinvoke: false,
        answers: Answers::Clusters,
    },
    Webhook {
        name: cluster::NAME,
        path: "/admit/clusters",
        sort: Sort::Mutating,
        resource: [cluster::GROUP, cluster::VERSION, cluster::RESOURCE],
        operations: cluster::OPERATIONS,
        reinvoke: true,
        answers: Answers::ClustersOfAClass,
    },
    Webhook {
        name: classic::NAME,
        path: "/admit/labels",
        sort: Sort::Mutating,
        resource: [classic::GROUP, classic::VERSION, classic::RESOURCE],
        operations: classic::OPERATIONS,
        reinvoke: false,
        answers: Answers::LabelledClusters,
    },
    Webhook {
        name: bootstraps::NAME,
        path: "/admit/clusterbootstraps",
        sort: Sort::Validating,
        resource: [bootstraps::GROUP, bootstraps::VERSION, bootstraps::RESOURCE],
        operations: bootstraps::OPERATIONS,
        reinvoke: false,
        answers: Answers::Bootstraps,
    },
];

impl Webhook {
    /// When it is asked, in CEL: what `concerns` says where it is asked inside of the process.
    fn condition(&self) -> String {
        let lives = "!has(object.metadata.deletionTimestamp)";
        let changed = |what: &str, key: &str| {
            let of = |object: &str| {
                let all = format!("{object}.metadata.{what}");
                format!("(has({all}) && '{key}' in {all} ? {all}['{key}'] : '')")
            };
            format!("{} != {}", of("object"), of("oldObject"))
        };
        let decided = approval::ANNOTATIONS.map(|key| changed("annotations", key));
        match self.answers {
            Answers::Clusters => {
                let resolved =
                    "has(object.spec) && has(object.spec.distribution) && has(object.spec.distribution.fullVersion)";
                let approval = decided.join(" || ");
                format!(
                    "oldObject == null || ({lives} && (!({resolved} && object.spec == oldObject.spec) || {approval}))"
                )
            }
            Answers::ClustersOfAClass => {
                let annotations = cluster::ANNOTATIONS.map(|key| changed("annotations", key)).join(" || ");
                let release = changed("labels", label::RELEASE.name);
                let of_a_class = "has(object.spec) && has(object.spec.topology)";
                let approval = decided.join(" || ");
                format!(
                    "{lives} && {of_a_class} && (oldObject == null || object.spec != oldObject.spec || {release} || {annotations} || {approval})"
                )
            }
            Answers::LabelledClusters => {
                let key = label::RELEASE_VERSION.name;
                let is_there = format!("has(object.metadata.labels) && '{key}' in object.metadata.labels");
                let release = changed("labels", key);
                let approval = decided.join(" || ");
                let deployed = changed("annotations", annotation::LAST_DEPLOYED_VERSION.name);
                format!(
                    "{lives} && {is_there} && (oldObject == null || object.spec != oldObject.spec || {release} || {deployed} || {approval})"
                )
            }
            Answers::Bootstraps => {
                let of = |object: &str| {
                    let all = format!("{object}.metadata.annotations");
                    format!("(has({all}) ? {all} : {{}})")
                };
                let (new, old) = (of("object"), of("oldObject"));
                format!("oldObject == null || ({lives} && (object.spec != oldObject.spec || {new} != {old}))")
            }
        }
    }

    /// As a configuration has it. Without an authority nobody is believed until it is known.
    fn configured(&self, authority: Option<&str>) -> Value {
        let [group, version, resource] = self.resource;
        let mut webhook = json!({
            "name": self.name,
            "admissionReviewVersions": ["v1"],
            "clientConfig": {
                "service": { "name": SERVICE, "namespace": NAMESPACE, "path": self.path, "port": 443 },
            },
            "rules": [{
                "apiGroups": [group],
                "apiVersions": [version],
                "operations": self.operations,
                "resources": [resource],
                "scope": "Namespaced",
            }],
            "failurePolicy": "Fail",
            "matchPolicy": "Equivalent",
            "sideEffects": "None",
            "timeoutSeconds": TIMEOUT_SECONDS,
            "namespaceSelector": {
                "matchExpressions": [
                    { "key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": NOT_ASKED_ABOUT },
                ],
            },
            "matchConditions": [{ "name": "concerns", "expression": self.condition() }],
        });
        if let Some(authority) = authority {
            webhook["clientConfig"]["caBundle"] = json!(authority);
        }
        if self.sort == Sort::Mutating {
            webhook["reinvocationPolicy"] = json!(if self.reinvoke { "IfNeeded" } else { "Never" });
        }
        webhook
    }
}

/// The two configurations, with the authority as base64 of PEM where it is known.
pub fn configurations(authority: Option<&str>) -> [Value; 2] {
    [Sort::Mutating, Sort::Validating].map(|sort| {
        let webhooks = ALL.iter().filter(|webhook| webhook.sort == sort);
        let webhooks: Vec<Value> = webhooks.map(|webhook| webhook.configured(authority)).collect();
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": sort.kind(),
            "metadata": { "name": sort.configuration(), "labels": { (PART_OF.0): PART_OF.1 } },
            "webhooks": webhooks,
        })
    })
}

/// Configurations as earlier versions installed them, which are taken away: nobody would exchange the certificate in them.
pub fn retired() -> [Value; 1] {
    [json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": Sort::Mutating.kind(),
        "metadata": { "name": "windlass" },
    })]
}

/// Answers reviews that were posted.
#[derive(Clone)]
pub struct Webhooks {
    client: Client,
    hold_by: HoldBy,
}

impl Webhooks {
    /// Answers by what this management API says, and holds clusters of a class in this way.
    pub fn new(client: Client, hold_by: HoldBy) -> Self {
        Self { client, hold_by }
    }

    /// Whether something is answered at this path.
    pub fn knows(path: &str) -> bool {
        ALL.iter().any(|webhook| webhook.path == path)
    }

    /// Answers a review that was posted to a path.
    pub async fn reply(&self, path: &str, body: &[u8]) -> Reply {
        let Some(webhook) = ALL.iter().find(|webhook| webhook.path == path) else {
            return Reply::refused(404, &format!("{path} is no review that is answered here"));
        };
        if body.len() > BODY_MAX {
            return Reply::refused(413, "the review is too long");
        }
        let review: Value = match serde_json::from_slice(body) {
            Ok(review) => review,
            Err(error) => return Reply::refused(400, &format!("the review cannot be read: {error}")),
        };
        let answer = match webhook.answers {
            Answers::Clusters => admission::review(&self.client, review).await,
            Answers::ClustersOfAClass => cluster::review(&self.client, self.hold_by, review).await,
            Answers::LabelledClusters => classic::review(&self.client, review).await,
            Answers::Bootstraps => bootstraps::review(&self.client, review).await,
        };
        match answer {
            Ok(answer) => Reply { code: 200, body: answer.to_string().into_bytes() },
            // The API server tells it to whoever waits for the answer.
            Err(why) => Reply::refused(500, &why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_can_be_locked_out() {
        for configuration in configurations(Some("Q0E=")) {
            for webhook in configuration["webhooks"].as_array().unwrap() {
                let name = &webhook["name"];
                let excluded = &webhook["namespaceSelector"]["matchExpressions"][0]["values"];
                assert_eq!(excluded, &json!(["windlass-system", "kube-system"]), "{name}");
                let rule = &webhook["rules"][0];
                for field in ["apiGroups", "apiVersions", "resources"] {
                    assert!(rule[field].as_array().unwrap().iter().all(|it| it != "*" && it != ""), "{name} {rule}");
                }
                assert_eq!(rule["operations"], json!(["CREATE", "UPDATE"]), "what goes is never asked about: {name}");
                assert!(!webhook["matchConditions"][0]["expression"].as_str().unwrap().is_empty());
                assert!(webhook["timeoutSeconds"].as_u64().unwrap() <= 5);
                assert_eq!(webhook["sideEffects"], "None");
            }
        }
    }

    #[test]
    fn what_we_fill_in_is_there_when_cluster_api_judges() {
        let [mutating, _] = configurations(None);
        let theirs = "capi-mutating-webhook-configuration";
        assert!(mutating["metadata"]["name"].as_str().unwrap() < theirs, "API servers ask in the order of the names");
        for retired in retired() {
            assert!(
                configurations(None)
                    .iter()
                    .all(|it| it["metadata"]["name"] != retired["metadata"]["name"] || it["kind"] != retired["kind"])
            );
        }
    }

    #[test]
    fn every_webhook_is_configured_once_and_has_a_path_of_its_own() {
        let [mutating, validating] = configurations(None);
        let names = |value: &Value| value["webhooks"].as_array().unwrap().len();
        assert_eq!((names(&mutating), names(&validating)), (3, 1));
        let paths: std::collections::BTreeSet<&str> = ALL.iter().map(|webhook| webhook.path).collect();
        assert_eq!(paths.len(), ALL.len());
        assert!(!mutating.to_string().contains("caBundle"));
    }
}
