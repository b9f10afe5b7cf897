//! Reviews: questions about rights and identities, answered and not stored.
//!
//! Whoever is authenticated may do everything here, so every question about rights is answered with yes; RBAC objects are stored
//! and not enforced. Whoever asks before they act can be shown somebody who may not: [`Rights`] answers in the place of that yes.

use serde_json::{Value, json};

use crate::auth::User;
use crate::kind::Kind;
use crate::server::ApiServer;

/// Who may do what, for those who ask. Only questions are answered by it: no request is refused.
pub trait Rights: Send + Sync {
    /// Why somebody may not do something, or nothing if they may. The attributes are those of the review, `resourceAttributes` or
    /// `nonResourceAttributes`.
    fn refuses(&self, user: &str, attributes: &Value) -> Option<String>;
}

/// Answers a review.
pub(crate) fn answer(server: &ApiServer, kind: &Kind, mut review: Value, user: &User) -> Value {
    let status = match kind.kind.as_str() {
        "SelfSubjectReview" => {
            json!({"userInfo": {"username": user.name, "groups": user.groups}})
        }
        "TokenReview" => json!({"user": {}, "error": "this server does not issue tokens"}),
        "SelfSubjectRulesReview" => json!({
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": false,
        }),
        _ => access(server, kind, &review["spec"], user),
    };
    review["status"] = status;
    if !review["metadata"].is_object() {
        review["metadata"] = json!({});
    }
    if kind.kind == "SelfSubjectReview" {
        review["metadata"]["creationTimestamp"] = crate::time::format(server.now()).into();
    }
    review
}

/// Whether somebody may do something: whoever asks, or the user that the review names.
fn access(server: &ApiServer, kind: &Kind, spec: &Value, user: &User) -> Value {
    let named = spec["user"].as_str().filter(|_| kind.kind != "SelfSubjectAccessReview");
    let attributes = ["resourceAttributes", "nonResourceAttributes"].map(|which| &spec[which]);
    let attributes = attributes.into_iter().find(|attributes| attributes.is_object()).unwrap_or(&Value::Null);
    let refused = server.rights().and_then(|rights| rights.refuses(named.unwrap_or(&user.name), attributes));
    match refused {
        None => json!({"allowed": true}),
        Some(reason) => json!({"allowed": false, "reason": reason}),
    }
}
