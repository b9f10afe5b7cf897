//! Who asks, and who agrees: where a namespace wants updates approved, both is written down here, so that nobody can make it up.
//!
//! The namespace says it by a label. What it says when a cluster is asked to be something else is written into the cluster with who
//! asked; from then on the cluster says for itself what its next update needs. Whoever approves or rejects does it by an annotation,
//! and needs the right to `approve`.

use std::collections::BTreeMap;

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec, SubjectAccessReviewStatus,
};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::{Value, json};
use windlass_api::{annotation, label};

use super::choice::Unknown;
use super::{GROUP, RESOURCE};

/// Who has to approve updates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Policy {
    /// Somebody who may.
    Required,
    /// Somebody who may, and has not asked for it.
    SecondPerson,
}

/// What is written here, and by nobody else.
const STAMPED: [&str; 3] = [annotation::APPROVAL.name, annotation::ASKED_BY.name, annotation::DECIDED_BY.name];
/// What people decide by.
const DECISION: [&str; 2] = [annotation::APPROVED.name, annotation::REJECTED.name];
/// The verb that whoever decides needs, on clusters.
const VERB: &str = "approve";

/// What becomes of a write.
pub(super) struct Stamped {
    /// What is changed in the object.
    pub patch: Vec<Value>,
    /// Whether updates have to be approved.
    pub is_required: bool,
}

impl Policy {
    fn read(text: &str) -> Result<Option<Self>, String> {
        match text {
            "none" => Ok(None),
            "required" => Ok(Some(Self::Required)),
            "second-person" => Ok(Some(Self::SecondPerson)),
            other => Err(format!(
                "the label {} of the namespace is {other:?}; accepted are none, required and second-person",
                label::APPROVAL.name
            )),
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::SecondPerson => "second-person",
        }
    }
}

/// Whether a write changes anything that is written here, or decided by.
pub(super) fn concerns(object: &Value, old: &Value) -> bool {
    let other = |key: &&str| annotated(object, key) != annotated(old, key);
    STAMPED.iter().chain(&DECISION).any(other)
}

fn annotated<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["annotations"][key].as_str()
}

/// What is written down about a write; or why it may not be.
pub(super) async fn stamp(client: &Client, request: &Value) -> Result<Result<Stamped, String>, Unknown> {
    let write = Write { object: &request["object"], old: &request["oldObject"], request };
    let policy = if write.asks() {
        match policy(client, request["namespace"].as_str().unwrap_or_default()).await? {
            Ok(policy) => policy,
            Err(why) => return Ok(Err(why)),
        }
    } else {
        annotated(write.old, annotation::APPROVAL.name).and_then(|text| Policy::read(text).ok().flatten())
    };
    if write.decides()
        && let Some(policy) = policy
    {
        if let Some(why) = write.asked_for_it_too(policy) {
            return Ok(Err(why));
        }
        if !may_decide(client, &write).await? {
            let user = write.user();
            return Ok(Err(format!(
                "{user} may not decide about updates of {}: the verb {VERB} is missing",
                write.name()
            )));
        }
    }
    Ok(Ok(Stamped { patch: write.patch(policy), is_required: policy.is_some() }))
}

/// Clusters whose updates nobody can approve.
#[derive(Debug, Clone, Copy)]
pub(super) enum Unapproved {
    /// Of a class: Cluster API replaces their machines, no envelope bounds that, and so there is nothing that could be approved.
    OfClass,
    /// Whose release is a label: approvals are written on a `TanzuKubernetesCluster`.
    ByLabel,
}

/// Refuses another release for such a cluster where that would have to be approved.
pub(super) async fn refused(client: &Client, request: &Value, of: Unapproved) -> Result<Option<String>, Unknown> {
    let (object, old) = (&request["object"], &request["oldObject"]);
    let release = |object: &Value| {
        let labels = &object["metadata"]["labels"];
        [&labels[label::RELEASE.name], &labels[label::RELEASE_VERSION.name], &object["spec"]["topology"]["version"]]
            .map(Clone::clone)
    };
    if old.is_null() || release(object) == release(old) {
        return Ok(None);
    }
    let namespace = request["namespace"].as_str().unwrap_or_default();
    Ok(match policy(client, namespace).await? {
        Err(why) => Some(why),
        Ok(None) => None,
        Ok(Some(_)) => {
            let why = match of {
                Unapproved::OfClass => {
                    "that of a cluster of a class cannot be: no envelope bounds what Cluster API does"
                }
                Unapproved::ByLabel => "that of a cluster whose release is a label cannot be yet",
            };
            Some(format!(
                "updates have to be approved in the namespace {namespace}, and {why}; whoever owns the namespace can set its \
                 label {} to none",
                label::APPROVAL.name
            ))
        }
    })
}

/// What a namespace wants.
async fn policy(client: &Client, namespace: &str) -> Result<Result<Option<Policy>, String>, Unknown> {
    let found = Api::<Namespace>::all(client.clone()).get_opt(namespace).await;
    let found = found.map_err(|source| Unknown::new("Namespaces", source))?;
    let said = found.and_then(|found| found.metadata.labels?.remove(label::APPROVAL.name));
    Ok(said.map_or(Ok(None), |text| Policy::read(&text)))
}

/// Whether the user has the verb. Kubernetes knows no rights for single annotations.
async fn may_decide(client: &Client, write: &Write<'_>) -> Result<bool, Unknown> {
    let info = &write.request["userInfo"];
    let groups = info["groups"].as_array().map(|groups| {
        let names = groups.iter().filter_map(|group| group.as_str().map(str::to_owned));
        names.collect()
    });
    let asked = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(write.user().to_owned()),
            groups,
            uid: info["uid"].as_str().map(str::to_owned),
            extra: serde_json::from_value(info["extra"].clone()).ok(),
            resource_attributes: Some(ResourceAttributes {
                group: Some(GROUP.to_owned()),
                resource: Some(RESOURCE.to_owned()),
                verb: Some(VERB.to_owned()),
                namespace: write.request["namespace"].as_str().map(str::to_owned),
                name: Some(write.name().to_owned()),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let answer = Api::<SubjectAccessReview>::all(client.clone()).create(&PostParams::default(), &asked).await;
    let answer = answer.map_err(|source| Unknown::new("SubjectAccessReviews", source))?;
    Ok(answer.status.is_some_and(|SubjectAccessReviewStatus { allowed, denied, .. }| allowed && denied != Some(true)))
}

/// A write of a cluster.
struct Write<'a> {
    object: &'a Value,
    old: &'a Value,
    request: &'a Value,
}

impl Write<'_> {
    fn user(&self) -> &str {
        self.request["userInfo"]["username"].as_str().unwrap_or_default()
    }

    fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// Whether it asks for something else. Who takes the full version away, and asks for what was asked for already, does not: that is
    /// how a repository is applied again and again.
    fn asks(&self) -> bool {
        let without = |object: &Value| {
            let mut spec = object["spec"].clone();
            if self.object["spec"]["distribution"]["fullVersion"].is_null()
                && let Some(distribution) = spec["distribution"].as_object_mut()
            {
                distribution.remove("fullVersion");
            }
            spec
        };
        self.old.is_null() || without(self.object) != without(self.old)
    }

    /// Whether it decides about an update. To take a decision back is none.
    fn decides(&self) -> bool {
        let new = |key: &&str| annotated(self.object, key).is_some_and(|value| annotated(self.old, key) != Some(value));
        DECISION.iter().any(|key| new(key))
    }

    /// Refuses that somebody agrees with themselves, where a second person has to.
    fn asked_for_it_too(&self, policy: Policy) -> Option<String> {
        let (key, user) = (annotation::APPROVED.name, self.user());
        let approves = annotated(self.object, key) != annotated(self.old, key);
        let asks = self.asks() || annotated(self.old, annotation::ASKED_BY.name) == Some(user);
        (policy == Policy::SecondPerson && approves && asks).then(|| {
            let name = self.name();
            format!("{user} has asked for what {name} is to be, and somebody else has to approve it: windlass approve {name}")
        })
    }

    /// What the annotations are to be that are written here.
    fn stamps(&self, policy: Option<Policy>) -> BTreeMap<&'static str, Option<String>> {
        let before = |key: &str| annotated(self.old, key).map(str::to_owned);
        let user = || Some(self.user().to_owned());
        let asked_by = match policy {
            Some(_) if self.asks() => user(),
            Some(_) => before(annotation::ASKED_BY.name),
            None => None,
        };
        let is_open = DECISION.iter().all(|key| annotated(self.object, key).is_none());
        let decided_by = match (is_open, self.decides()) {
            (true, _) => None,
            (false, true) => user(),
            (false, false) => before(annotation::DECIDED_BY.name),
        };
        [
            (annotation::APPROVAL.name, policy.map(|policy| policy.as_str().to_owned())),
            (annotation::ASKED_BY.name, asked_by),
            (annotation::DECIDED_BY.name, decided_by),
        ]
        .into()
    }

    fn patch(&self, policy: Option<Policy>) -> Vec<Value> {
        let mut patch = Vec::new();
        let mut has_annotations = self.object["metadata"]["annotations"].is_object();
        for (key, wanted) in self.stamps(policy) {
            let path = format!("/metadata/annotations/{}", key.replace('~', "~0").replace('/', "~1"));
            match (annotated(self.object, key), wanted) {
                (is, Some(wanted)) if is != Some(wanted.as_str()) => {
                    if !has_annotations {
                        patch.push(json!({"op": "add", "path": "/metadata/annotations", "value": {}}));
                        has_annotations = true;
                    }
                    patch.push(json!({"op": "add", "path": path, "value": wanted}));
                }
                (Some(_), None) => patch.push(json!({"op": "remove", "path": path})),
                (None | Some(_), _) => {}
            }
        }
        patch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(version: &str, annotations: &Value) -> Value {
        json!({
            "metadata": {"name": "my-tkc", "annotations": annotations},
            "spec": {"distribution": {"version": version, "fullVersion": "v1.17.4"}},
        })
    }

    /// What is stamped when `user` makes `object` of `old`.
    fn check(user: &str, old: &Value, object: &Value, policy: Option<Policy>, expected: [Option<&str>; 3]) {
        let request = json!({"object": object, "oldObject": old, "userInfo": {"username": user}});
        let write = Write { object, old, request: &request };
        let stamps = write.stamps(policy);
        let found = STAMPED.map(|key| stamps[key].as_deref());
        assert_eq!(found, expected, "{old} -> {object}");
    }

    #[test]
    fn who_asks_and_who_decides_is_written_down_and_cannot_be_made_up() {
        let required = Some(Policy::Required);
        let asked = json!({"windlass.dev/approval": "required", "windlass.dev/asked-by": "ada"});
        let forged = json!({"windlass.dev/asked-by": "bob", "windlass.dev/decided-by": "bob"});
        check(
            "ada",
            &cluster("v1.16", &json!({})),
            &cluster("v1.17", &forged),
            required,
            [Some("required"), Some("ada"), None],
        );
        check(
            "eve",
            &cluster("v1.17", &asked),
            &cluster("v1.17", &forged),
            required,
            [Some("required"), Some("ada"), None],
        );
        let approved = json!({"windlass.dev/approved": "sha256:1", "windlass.dev/decided-by": "ada"});
        check(
            "bob",
            &cluster("v1.17", &asked),
            &cluster("v1.17", &approved),
            required,
            [Some("required"), Some("ada"), Some("bob")],
        );
        let mut kept = asked.clone();
        kept["windlass.dev/approved"] = json!("sha256:1");
        kept["windlass.dev/decided-by"] = json!("bob");
        check(
            "eve",
            &cluster("v1.17", &kept),
            &cluster("v1.17", &approved),
            required,
            [Some("required"), Some("ada"), Some("bob")],
        );
        check(
            "eve",
            &cluster("v1.17", &kept),
            &cluster("v1.17", &asked),
            required,
            [Some("required"), Some("ada"), None],
        );
        check("ada", &cluster("v1.17", &kept), &cluster("v1.18", &kept), None, [None, None, Some("bob")]);
    }

    #[test]
    fn what_is_applied_again_asks_for_nothing() {
        let old = cluster("v1.17", &json!({}));
        let mut again = old.clone();
        again["spec"]["distribution"]["fullVersion"] = Value::Null;
        let request = json!({});
        assert!(!Write { object: &again, old: &old, request: &request }.asks());
        again["spec"]["distribution"]["version"] = json!("v1.18");
        assert!(Write { object: &again, old: &old, request: &request }.asks());
    }

    #[test]
    fn where_a_second_person_has_to_approve_nobody_agrees_with_themselves() {
        let asked = cluster("v1.17", &json!({"windlass.dev/asked-by": "ada"}));
        let refused = |user: &str, decision: &str, policy: Policy| {
            let object = cluster("v1.17", &json!({"windlass.dev/asked-by": "ada", decision: "sha256:1"}));
            let request = json!({"userInfo": {"username": user}});
            Write { object: &object, old: &asked, request: &request }.asked_for_it_too(policy)
        };
        let why =
            "ada has asked for what my-tkc is to be, and somebody else has to approve it: windlass approve my-tkc";
        assert_eq!(refused("ada", "windlass.dev/approved", Policy::SecondPerson).as_deref(), Some(why));
        assert_eq!(refused("bob", "windlass.dev/approved", Policy::SecondPerson), None);
        assert_eq!(refused("ada", "windlass.dev/rejected", Policy::SecondPerson), None, "one's own may be rejected");
        assert_eq!(refused("ada", "windlass.dev/approved", Policy::Required), None);
    }

    #[test]
    fn a_policy_is_one_of_three_words() {
        assert_eq!(Policy::read("none"), Ok(None));
        assert_eq!(Policy::read("second-person"), Ok(Some(Policy::SecondPerson)));
        assert!(Policy::read("yes").unwrap_err().contains("accepted are none, required and second-person"));
    }
}
