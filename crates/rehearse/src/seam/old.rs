//! What others did before, put back into the requests of Windlass: to see that a sweep would find it.
//!
//! Nobody but a test asks for it: whoever runs clusters has no way to.

use kube::client::Body;
use serde_json::{Value, json};

use crate::traffic::Asked;

/// A way in which such systems were broken once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Old {
    /// What is written or deleted is so whatever has become of it since it was read (`OpenSearch` operator #1471).
    NoPreconditions,
    /// The owner of a Secret is known by name, and its uid is that of somebody else (upgrade tool #154).
    OwnersByName,
    /// Machines have names that are drawn, so that nobody finds the one that was made before a crash (k0smotron #1534).
    DrawnNames,
}

impl Old {
    /// Whether a request would have been another one.
    pub(super) fn concerns(self, asked: &Asked) -> bool {
        asked.writes
            && match self {
                Self::NoPreconditions => true,
                Self::OwnersByName => asked.resource == "secrets",
                Self::DrawnNames => asked.resource == "machines" && asked.verb == "create",
            }
    }

    /// The body that would have been sent. What is no JSON stays as it is.
    pub(super) async fn body(self, body: Body) -> Result<Body, kube::Error> {
        let bytes = body.collect_bytes().await?;
        let Ok(mut value) = serde_json::from_slice::<Value>(&bytes) else { return Ok(Body::from(bytes)) };
        self.change(&mut value);
        Ok(Body::from(value.to_string().into_bytes()))
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
                let owners = body.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut);
                for owner in owners.into_iter().flatten() {
                    owner["uid"] = json!("00000000-0000-4000-8000-000000000000");
                }
            }
            Self::DrawnNames => {
                if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut)
                    && let Some(name) = metadata.remove("name")
                {
                    metadata
                        .insert("generateName".to_owned(), json!(format!("{}-", name.as_str().unwrap_or_default())));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        check(Old::DrawnNames, json!({"metadata": {"name": "a"}}), &json!({"metadata": {"generateName": "a-"}}));
    }
}
