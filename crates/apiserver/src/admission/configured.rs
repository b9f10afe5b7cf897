//! The webhooks that objects in the store describe.
//!
//! The configurations have passed validation when they come here, so what cannot be read in them says nothing.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use serde_json::Value;

use super::review::Role;
use super::{FailurePolicy, Handler, Rule, Scope, Webhook};
use crate::carrier::{Carrier, Endpoint, Errand};
use crate::selector::label::LabelSelector;
use crate::store::{Range, Store};
use crate::value::Fields;

/// What Kubernetes waits for when a webhook does not say.
const TIMEOUT_SECONDS: u64 = 10;

/// The webhooks of a role: by the names of their configurations, then in the order in which they stand there.
pub(super) fn webhooks(role: Role, carrier: &Arc<dyn Carrier>, store: &Store) -> Vec<Arc<Webhook>> {
    let all = Range { namespace: None, after: None, limit: 0 };
    let page = store.list(role.resource(), all, |_| true);
    let mut webhooks = Vec::new();
    for entry in page.entries {
        let configuration = entry.to_value("", "");
        for hook in configuration.list("webhooks") {
            webhooks.push(Arc::new(webhook(hook, carrier, store)));
        }
    }
    webhooks
}

fn webhook(hook: &Value, carrier: &Arc<dyn Carrier>, store: &Store) -> Webhook {
    let selector =
        |field: &str| LabelSelector::from_object(hook.get(field)).unwrap_or_else(|_| LabelSelector::nothing());
    let timeout = hook.at("timeoutSeconds").as_u64().unwrap_or(TIMEOUT_SECONDS);
    Webhook {
        name: hook.text("name").to_owned(),
        rules: hook.list("rules").iter().map(rule).collect(),
        namespace_selector: selector("namespaceSelector"),
        object_selector: selector("objectSelector"),
        failure: if hook.text("failurePolicy") == "Ignore" { FailurePolicy::Ignore } else { FailurePolicy::Fail },
        reinvoke: hook.text("reinvocationPolicy") == "IfNeeded",
        side_effects: !matches!(hook.text("sideEffects"), "None" | "NoneOnDryRun"),
        equivalent: hook.text("matchPolicy") != "Exact",
        #[cfg(feature = "cel")]
        conditions: crate::cel::condition::of(hook),
        #[cfg(not(feature = "cel"))]
        conditions: hook.has("matchConditions").then(|| Arc::new(Undecided) as Arc<dyn super::Conditions>),
        handler: Arc::new(Remote {
            endpoint: Endpoint::read(hook.at("clientConfig")),
            timeout: Duration::from_secs(timeout),
            carrier: Arc::clone(carrier),
            store: store.clone(),
        }),
    }
}

/// Conditions that this build cannot read.
#[cfg(not(feature = "cel"))]
struct Undecided;

#[cfg(not(feature = "cel"))]
impl super::Conditions for Undecided {
    fn hold(&self, _: &super::Attributes<'_>, _: Option<&Value>, _: Option<&Value>) -> Result<bool, String> {
        Err("match conditions need the feature `cel`, and this server was built without it".to_owned())
    }
}

fn rule(rule: &Value) -> Rule {
    let texts = |field: &str| rule.texts(field).map(str::to_owned).collect();
    Rule {
        operations: texts("operations"),
        groups: texts("apiGroups"),
        versions: texts("apiVersions"),
        resources: texts("resources"),
        scope: match rule.text("scope") {
            "Namespaced" => Scope::Namespaced,
            "Cluster" => Scope::Cluster,
            _ => Scope::All,
        },
    }
}

/// Somebody outside of this process.
struct Remote {
    endpoint: Endpoint,
    timeout: Duration,
    carrier: Arc<dyn Carrier>,
    store: Store,
}

impl Handler for Remote {
    fn review(&self, review: Value) -> BoxFuture<'_, Result<Value, String>> {
        let body = Bytes::from(review.to_string());
        let errand = Errand { endpoint: &self.endpoint, body, timeout: self.timeout, store: &self.store };
        Box::pin(async move {
            let answer = self.carrier.carry(errand).await?;
            read(&answer)
        })
    }
}

/// An answer that is JSON, or YAML, which a real server reads as well.
fn read(answer: &[u8]) -> Result<Value, String> {
    let text = || std::str::from_utf8(answer).ok();
    let read = serde_json::from_slice(answer).ok().or_else(|| serde_saphyr::from_str::<Value>(text()?).ok());
    let is = match read {
        Some(review @ Value::Object(_)) => return Ok(review),
        Some(Value::String(_)) => "string",
        Some(Value::Number(_)) => "number",
        Some(Value::Bool(_)) => "bool",
        Some(Value::Array(_)) => "array",
        Some(Value::Null) | None => return Err(unreadable(answer)),
    };
    let into = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
    let why = format!("json: cannot unmarshal {is} into Go value of type {into}");
    Err(format!("couldn't get version/kind; json parse error: {why}"))
}

/// An answer that is neither, in the words of a real server.
fn unreadable(answer: &[u8]) -> String {
    let text = String::from_utf8_lossy(answer);
    let first = text.trim_start().chars().next().map_or_else(
        || "unexpected end of JSON input".to_owned(),
        |first| format!("invalid character '{first}' looking for beginning of value"),
    );
    format!("couldn't get version/kind; json parse error: {first}")
}
