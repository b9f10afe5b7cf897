//! Requests that would have said something else.

use serde_json::{Value, json};

use super::Old;
use super::sent::Sent;

impl Old {
    /// A request as it would have been.
    pub(super) fn changed(self, sent: Sent) -> Sent {
        let concerns = sent.asked.writes
            && match self {
                Self::NoPreconditions => true,
                Self::OwnersByName => sent.asked.resource == "secrets",
                Self::UnboundProxy => sent.asked.resource == "daemonsets" && sent.asked.object.contains("/kube-proxy"),
                _ => false,
            };
        let mut body = if concerns { sent.json() } else { Value::Null };
        if body.is_null() {
            return sent;
        }
        self.change(&mut body);
        sent.saying(&body)
    }

    fn change(self, body: &mut Value) {
        match self {
            Self::NoPreconditions => {
                if let Some(steps) = body.as_array_mut() {
                    steps.retain(|step| step["op"] != "test");
                }
                if let Some(fields) = body.as_object_mut() {
                    fields.remove("preconditions");
                }
                if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
                    metadata.retain(|field, _| !["resourceVersion", "uid"].contains(&field.as_str()));
                }
            }
            Self::OwnersByName => {
                let added = body.as_array_mut().into_iter().flatten().filter_map(|step| step.get_mut("value"));
                added.filter(|value| value.get("uid").is_some()).for_each(not_by_uid);
                let owners = body.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut);
                owners.into_iter().flatten().for_each(not_by_uid);
            }
            Self::UnboundProxy => {
                if let Some(pod) = body.pointer_mut("/spec/template/spec").and_then(Value::as_object_mut) {
                    pod.remove("nodeSelector");
                    pod.remove("affinity");
                }
            }
            _ => {}
        }
    }
}

/// An owner is somebody else of that name.
fn not_by_uid(owner: &mut Value) {
    owner["uid"] = json!("00000000-0000-4000-8000-000000000000");
}

/// The same creation, with a name that the server draws.
pub(super) fn drawn(sent: Sent) -> Sent {
    let mut body = sent.json();
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut)
        && let Some(name) = metadata.remove("name")
    {
        metadata.insert("generateName".to_owned(), json!(format!("{}-", name.as_str().unwrap_or_default())));
    }
    sent.saying(&body)
}

#[cfg(test)]
mod tests {
    use http::Request;
    use kube::client::Body;

    use super::*;
    use crate::traffic::Place;

    fn check(old: Old, mut sent: Value, would_be: &Value) {
        old.change(&mut sent);
        assert_eq!(sent, *would_be);
    }

    #[test]
    fn what_is_put_back_is_what_was_missing_and_nothing_else() {
        let patch = json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": "7"}, "spec": {"uid": "stays"}});
        check(Old::NoPreconditions, patch, &json!({"metadata": {"name": "a"}, "spec": {"uid": "stays"}}));
        check(Old::NoPreconditions, json!({"preconditions": {"uid": "u"}, "kind": "k"}), &json!({"kind": "k"}));
        check(Old::NoPreconditions, json!([{"op": "test"}, {"op": "add"}]), &json!([{"op": "add"}]));
        let owned = |uid: &str| json!({"metadata": {"ownerReferences": [{"name": "a", "uid": uid}]}});
        check(Old::OwnersByName, owned("u"), &owned("00000000-0000-4000-8000-000000000000"));
        let pod = |spec: Value| json!({"spec": {"template": {"spec": spec}}});
        check(Old::UnboundProxy, pod(json!({"nodeSelector": {}, "containers": []})), &pod(json!({"containers": []})));
    }

    #[tokio::test]
    async fn a_name_is_drawn_from_the_one_that_was_to_be() {
        let request =
            Request::post("/api/v1/namespaces/a/pods").body(Body::from(br#"{"metadata":{"name":"a"}}"#.to_vec()));
        let sent = Sent::of(Place::Management, request.unwrap()).await.unwrap();
        assert_eq!(drawn(sent).json(), json!({"metadata": {"generateName": "a-"}}));
    }
}
