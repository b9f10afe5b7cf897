//! Webhooks.

use serde_json::{Map, Value};

use crate::builtin::fill::{Fields, child, child_or_new, each, fill};

/// `ValidatingWebhookConfiguration`.
pub(in crate::builtin) fn validating(object: &mut Value) {
    let Some(fields) = object.as_object_mut() else { return };
    each(fields, "webhooks", webhook);
}

/// `MutatingWebhookConfiguration`.
pub(in crate::builtin) fn mutating(object: &mut Value) {
    let Some(fields) = object.as_object_mut() else { return };
    each(fields, "webhooks", |hook| {
        webhook(hook);
        fill(hook, "reinvocationPolicy", "Never");
    });
}

fn webhook(hook: &mut Fields) {
    fill(hook, "failurePolicy", "Fail");
    fill(hook, "matchPolicy", "Equivalent");
    fill(hook, "namespaceSelector", Map::new());
    fill(hook, "objectSelector", Map::new());
    fill(hook, "timeoutSeconds", 10);
    each(hook, "rules", |rule| fill(rule, "scope", "*"));
    let config = child_or_new(hook, "clientConfig");
    if let Some(service) = config.and_then(|config| child(config, "service")) {
        fill(service, "port", 443);
    }
}
