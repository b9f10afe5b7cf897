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
use super::{GROUP, RESOURCE, classic};

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
/// What is judged when it changes, whatever else does.
pub(crate) const ANNOTATIONS: [&str; 5] = [STAMPED[0], STAMPED[1], STAMPED[2], DECISION[0], DECISION[1]];
/// The verb that whoever decides needs, on clusters.
const VERB: &str = "approve";

/// The clusters whose updates can be approved, by what asks for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asking {
    /// The spec of a `TanzuKubernetesCluster`.
    BySpec,
    /// The label of a Cluster.
    ByLabel,
    /// The release of a Cluster of a class, by label or by version.
    OfClass,
}

impl Asking {
    /// What the verb is needed on.
    fn resource(self) -> [&'static str; 2] {
        match self {
            Self::BySpec => [GROUP, RESOURCE],
            Self::ByLabel | Self::OfClass => [classic::GROUP, classic::RESOURCE],
        }
    }

    /// What is asked for. Who takes the full version away, and asks for what was asked for already, does not ask anew: that is how a
    /// repository is applied again and again.
    fn wish(self, of: &Value, now: &Value) -> Value {
        match self {
            Self::BySpec => {
                let mut spec = of["spec"].clone();
                if now["spec"]["distribution"]["fullVersion"].is_null()
                    && let Some(distribution) = spec["distribution"].as_object_mut()
                {
                    distribution.remove("fullVersion");
                }
                spec
            }
            Self::ByLabel => of["metadata"]["labels"][label::RELEASE_VERSION.name].clone(),
            Self::OfClass => {
                json!([of["metadata"]["labels"][label::RELEASE.name], of["spec"]["topology"]["version"]])
            }
        }
    }

    /// Whether an object is looked at by this webhook. What stands on any other may be made up.
    fn is_judged(self, object: &Value) -> bool {
        match self {
            Self::BySpec => !object.is_null(),
            Self::ByLabel => !object["metadata"]["labels"][label::RELEASE_VERSION.name].is_null(),
            Self::OfClass => !object["spec"]["topology"].is_null(),
        }
    }
}

/// What becomes of a write.
pub(super) struct Stamped {
    /// What is changed in the object.
    pub patch: Vec<Value>,
    /// What is agreed to, when all of it is written.
    pub agreed_to: Option<String>,
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
    ANNOTATIONS.iter().any(|key| annotated(object, key) != annotated(old, key))
}

fn annotated<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["annotations"][key].as_str()
}

/// What is written down about a write; or why it may not be.
pub(super) async fn stamp(
    client: &Client,
    asking: Asking,
    request: &Value,
) -> Result<Result<Stamped, String>, Unknown> {
    let write = Write { asking, object: &request["object"], old: &request["oldObject"], request };
    let policy = if write.asks() {
        match policy(client, request["namespace"].as_str().unwrap_or_default()).await? {
            Ok(policy) => policy,
            Err(why) => return Ok(Err(why)),
        }
    } else {
        write.before(annotation::APPROVAL.name).and_then(|text| Policy::read(text).ok().flatten())
    };
    if write.decides()
        && let Some(policy) = policy
    {
        if let Some(why) = write.asked_for_it_too(policy) {
            return Ok(Err(why));
        }
        if !may_decide(client, &write).await? {
            let (user, [group, resource]) = (write.user(), asking.resource());
            return Ok(Err(format!(
                "{user} may not decide about updates of {}: the verb {VERB} on {resource}.{group} is missing",
                write.name()
            )));
        }
    }
    let agreed_to = annotated(write.object, annotation::APPROVED.name).filter(|_| !write.is_void(policy));
    let agreed_to = agreed_to.map(str::to_owned);
    Ok(Ok(Stamped { patch: write.patch(policy), agreed_to, is_required: policy.is_some() }))
}

/// What whoever asks is told where that has to be approved.
pub(super) fn notice(name: &str) -> String {
    format!("{name}: nothing begins before somebody approves it: windlass approve {name}")
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
    let (info, [group, resource]) = (&write.request["userInfo"], write.asking.resource());
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
                group: Some(group.to_owned()),
                resource: Some(resource.to_owned()),
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
    asking: Asking,
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

    /// An annotation as it was, where nobody can have made it up.
    fn before(&self, key: &str) -> Option<&str> {
        annotated(self.old, key).filter(|_| self.asking.is_judged(self.old))
    }

    /// Whether it asks for something else.
    fn asks(&self) -> bool {
        let wish = |of: &Value| self.asking.wish(of, self.object);
        !self.asking.is_judged(self.old) || wish(self.object) != wish(self.old)
    }

    /// Whether it decides about an update. To take a decision back is none, and to leave one where it is.
    fn decides(&self) -> bool {
        let new = |key: &&str| annotated(self.object, key).is_some_and(|value| annotated(self.old, key) != Some(value));
        DECISION.iter().any(new)
    }

    /// Whether what was decided before goes with what is asked for now: it was decided while nobody had to be asked whether they may,
    /// or by whoever asks now and may not agree with themselves.
    fn is_void(&self, policy: Option<Policy>) -> bool {
        let was_free = policy.is_some() && self.before(annotation::APPROVAL.name).is_none();
        let own = policy == Some(Policy::SecondPerson) && self.before(annotation::DECIDED_BY.name) == Some(self.user());
        self.asks() && !self.decides() && (was_free || own)
    }

    /// Refuses that somebody agrees with themselves, where a second person has to.
    fn asked_for_it_too(&self, policy: Policy) -> Option<String> {
        let (key, user) = (annotation::APPROVED.name, self.user());
        let approves = annotated(self.object, key) != annotated(self.old, key);
        let asks = self.asks() || self.before(annotation::ASKED_BY.name) == Some(user);
        (policy == Policy::SecondPerson && approves && asks).then(|| {
            let name = self.name();
            format!("{user} has asked for what {name} is to be, and somebody else has to approve it: windlass approve {name}")
        })
    }

    /// What the annotations are to be that are written here.
    fn stamps(&self, policy: Option<Policy>) -> BTreeMap<&'static str, Option<String>> {
        let before = |key: &str| self.before(key).map(str::to_owned);
        let user = || Some(self.user().to_owned());
        let asked_by = match policy {
            Some(_) if self.asks() => user(),
            Some(_) => before(annotation::ASKED_BY.name),
            None => None,
        };
        let is_void = self.is_void(policy);
        let is_open = is_void || DECISION.iter().all(|key| annotated(self.object, key).is_none());
        let decided_by = match (is_open, self.decides()) {
            (true, _) => None,
            (false, true) => user(),
            (false, false) => before(annotation::DECIDED_BY.name),
        };
        let void = DECISION.into_iter().chain([annotation::DECIDED_BECAUSE.name]).filter(|_| is_void);
        let stamps = [
            (annotation::APPROVAL.name, policy.map(|policy| policy.as_str().to_owned())),
            (annotation::ASKED_BY.name, asked_by),
            (annotation::DECIDED_BY.name, decided_by),
        ];
        stamps.into_iter().chain(void.map(|key| (key, None))).collect()
    }

    fn patch(&self, policy: Option<Policy>) -> Vec<Value> {
        let mut patch = Vec::new();
        let mut has_annotations = self.object["metadata"]["annotations"].is_object();
        for (key, wanted) in self.stamps(policy) {
            let pointer = format!("/metadata/annotations/{}", key.replace('~', "~0").replace('/', "~1"));
            match (annotated(self.object, key), wanted) {
                (is, Some(wanted)) if is != Some(wanted.as_str()) => {
                    if !has_annotations {
                        patch.push(json!({"op": "add", "path": "/metadata/annotations", "value": {}}));
                        has_annotations = true;
                    }
                    patch.push(json!({"op": "add", "path": pointer, "value": wanted}));
                }
                (Some(_), None) => patch.push(json!({"op": "remove", "path": pointer})),
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
        let write = Write { asking: Asking::BySpec, object, old, request: &request };
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
    fn what_was_decided_while_nobody_had_to_agree_goes_when_somebody_has_to() {
        let void = |user: &str, old: &Value, object: &Value, policy: Policy| {
            let request = json!({"userInfo": {"username": user}});
            Write { asking: Asking::BySpec, object, old, request: &request }.is_void(Some(policy))
        };
        let foreseen = json!({"windlass.dev/approved": "sha256:1", "windlass.dev/decided-by": "bob"});
        let (before, asked) = (cluster("v1.16", &foreseen), cluster("v1.17", &foreseen));
        assert!(void("bob", &before, &asked, Policy::Required), "nobody asked whether bob may");
        assert!(!void("bob", &before, &before, Policy::Required), "nothing is asked for");
        let mut held = foreseen.clone();
        held["windlass.dev/approval"] = json!("required");
        let (before, asked) = (cluster("v1.16", &held), cluster("v1.17", &held));
        assert!(!void("bob", &before, &asked, Policy::Required), "bob was asked");
        assert!(void("bob", &before, &asked, Policy::SecondPerson), "and does not agree with himself now");
        assert!(!void("ada", &before, &asked, Policy::SecondPerson));
    }

    #[test]
    fn on_a_cluster_whose_label_is_new_nothing_is_believed_that_stood_there() {
        let cluster = |labels: Value| {
            let annotations = json!({
                "windlass.dev/approval": "required", "windlass.dev/approved": "sha256:1", "windlass.dev/decided-by": "ada",
            });
            json!({"metadata": {"name": "shop", "labels": labels, "annotations": annotations}})
        };
        let (old, object) = (cluster(json!({})), cluster(json!({"release.giantswarm.io/version": "36.1.0"})));
        let request = json!({"userInfo": {"username": "bob"}});
        let write = Write { asking: Asking::ByLabel, object: &object, old: &old, request: &request };
        let stamps = write.stamps(Some(Policy::Required));
        assert_eq!(stamps["windlass.dev/approved"], None);
        assert_eq!(stamps["windlass.dev/decided-by"], None);
        assert_eq!(stamps["windlass.dev/asked-by"].as_deref(), Some("bob"));
        // The same label again asks for nothing, and leaves what stands there.
        let again = Write { asking: Asking::ByLabel, object: &object, old: &object, request: &request };
        assert!(!again.asks());
        let stamps = again.stamps(Some(Policy::Required));
        assert_eq!(stamps["windlass.dev/decided-by"].as_deref(), Some("ada"));
        assert!(!stamps.contains_key("windlass.dev/approved"));
    }

    #[test]
    fn what_is_applied_again_asks_for_nothing() {
        let old = cluster("v1.17", &json!({}));
        let mut again = old.clone();
        again["spec"]["distribution"]["fullVersion"] = Value::Null;
        let request = json!({});
        assert!(!Write { asking: Asking::BySpec, object: &again, old: &old, request: &request }.asks());
        again["spec"]["distribution"]["version"] = json!("v1.18");
        assert!(Write { asking: Asking::BySpec, object: &again, old: &old, request: &request }.asks());
    }

    #[test]
    fn where_a_second_person_has_to_approve_nobody_agrees_with_themselves() {
        let asked = cluster("v1.17", &json!({"windlass.dev/asked-by": "ada"}));
        let refused = |user: &str, decision: &str, policy: Policy| {
            let object = cluster("v1.17", &json!({"windlass.dev/asked-by": "ada", decision: "sha256:1"}));
            let request = json!({"userInfo": {"username": user}});
            Write { asking: Asking::BySpec, object: &object, old: &asked, request: &request }.asked_for_it_too(policy)
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
