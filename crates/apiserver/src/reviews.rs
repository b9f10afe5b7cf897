//! Reviews: questions about rights and identities, answered and not stored.
//!
//! Whoever is authenticated may do everything here, so every question about rights is answered with yes; RBAC objects are stored
//! and not enforced.

use serde_json::{Value, json};

use crate::auth::User;
use crate::kind::Kind;
use crate::server::ApiServer;

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
        _ => json!({"allowed": true}),
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
