//! The configurations of admission webhooks.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Errors, formed};
use crate::field::FieldError;
use crate::meta::{format, selector};
use crate::path::Path;
use crate::value::Fields;

const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];
const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const URL_FORM: &str = "; desired format: https://host[/path]";

/// What is wrong with a `ValidatingWebhookConfiguration` or a `MutatingWebhookConfiguration`. Like the original, it does not
/// ask for standard finalizers.
pub fn webhook_configuration(new: &Value, _old: Option<&Value>) -> Errors {
    let mut errors = Errors::new();
    let path = Path::new("webhooks");
    let mut names = BTreeSet::new();
    for (i, hook) in new.list("webhooks").iter().enumerate() {
        let path = path.index(i);
        webhook(hook, &path, &mut errors);
        review_versions(hook, &path.field("admissionReviewVersions"), &mut errors);
        let name = hook.text("name");
        if !name.is_empty() && !names.insert(name) {
            errors.push(FieldError::duplicate(path.field("name"), name));
        }
    }
    errors
}

fn webhook(hook: &Value, path: &Path<'_>, errors: &mut Errors) {
    qualified_name(hook.text("name"), &path.field("name"), errors);
    let rules = path.field("rules");
    for (i, rule) in hook.list("rules").iter().enumerate() {
        rule_with_operations(rule, &rules.index(i), errors);
    }
    let mut optional = |field: &str, allowed: &[&str]| {
        if let Some(value) = hook.at(field).as_str().filter(|value| !allowed.contains(value)) {
            errors.push(FieldError::not_supported(path.field(field), value, allowed));
        }
    };
    optional("failurePolicy", &["Fail", "Ignore"]);
    optional("matchPolicy", &["Equivalent", "Exact"]);
    if hook.has("sideEffects") {
        optional("sideEffects", &["None", "NoneOnDryRun"]);
    } else {
        errors.push(FieldError::required(path.field("sideEffects"), "must specify one of None, NoneOnDryRun"));
    }
    if let Some(seconds) = hook.int("timeoutSeconds").filter(|seconds| !(1..=30).contains(seconds)) {
        let detail = "the timeout value must be between 1 and 30 seconds";
        errors.push(FieldError::invalid(path.field("timeoutSeconds"), seconds, detail));
    }
    for field in ["namespaceSelector", "objectSelector"] {
        selector::validate(hook.at(field), &path.field(field), errors);
    }
    if let Some(policy) = hook.at("reinvocationPolicy").as_str().filter(|p| !matches!(*p, "IfNeeded" | "Never")) {
        let path = path.field("reinvocationPolicy");
        errors.push(FieldError::not_supported(path, policy, &["IfNeeded", "Never"]));
    }
    client_config(hook.at("clientConfig"), &path.field("clientConfig"), errors);
    match_conditions(hook, &path.field("matchConditions"), errors);
}

/// A name of at least three segments: nobody else's.
fn qualified_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    if name.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let wrong = format::is_dns_subdomain(name);
    if !wrong.is_empty() {
        errors.push(FieldError::invalid(path, name, wrong.join(",")));
    } else if name.split('.').count() < 3 {
        let detail = "should be a domain with at least three segments separated by dots";
        errors.push(FieldError::invalid(path, name, detail));
    }
}

fn rule_with_operations(rule: &Value, path: &Path<'_>, errors: &mut Errors) {
    lonely_wildcard(rule, "operations", "operations", path, errors);
    for (i, operation) in rule.texts("operations").enumerate().filter(|(_, o)| !OPERATIONS.contains(o)) {
        errors.push(FieldError::not_supported(path.field("operations").index(i), operation, &OPERATIONS));
    }
    lonely_wildcard(rule, "apiGroups", "API groups", path, errors);
    lonely_wildcard(rule, "apiVersions", "API versions", path, errors);
    for (i, _) in rule.texts("apiVersions").enumerate().filter(|(_, version)| version.is_empty()) {
        errors.push(FieldError::required(path.field("apiVersions").index(i), ""));
    }
    resources(rule, &path.field("resources"), errors);
    let scopes = ["*", "Cluster", "Namespaced"];
    if let Some(scope) = rule.at("scope").as_str().filter(|scope| !scopes.contains(scope)) {
        errors.push(FieldError::not_supported(path.field("scope"), scope, &scopes));
    }
}

/// A list that must not be empty, and in which `*` stands alone.
fn lonely_wildcard(rule: &Value, field: &str, what: &str, path: &Path<'_>, errors: &mut Errors) {
    let list = rule.list(field);
    if list.is_empty() {
        errors.push(FieldError::required(path.field(field), ""));
    } else if list.len() > 1 && rule.texts(field).any(|item| item == "*") {
        let detail = format!("if '*' is present, must not specify other {what}");
        errors.push(FieldError::invalid(path.field(field), rule.at(field).clone(), detail));
    }
}

fn resources(rule: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (mut all_subresources, mut all_resources) = (BTreeSet::new(), BTreeSet::new());
    let (mut everything, mut all_plain, mut plain) = (false, false, false);
    if rule.list("resources").is_empty() {
        errors.push(FieldError::required(path, ""));
    }
    for (i, name) in rule.texts("resources").enumerate() {
        everything |= name == "*/*";
        all_plain |= name == "*";
        let Some((resource, subresource)) = name.split_once('/') else {
            if name.is_empty() {
                errors.push(FieldError::required(path.index(i), ""));
            } else {
                plain = name != "*";
            }
            continue;
        };
        let mut covered = |by: String| {
            let detail = format!("if '{by}' is present, must not specify {name}");
            errors.push(FieldError::invalid(path.index(i), name, detail));
        };
        if all_subresources.contains(resource) {
            covered(format!("{resource}/*"));
        }
        if all_resources.contains(subresource) {
            covered(format!("*/{subresource}"));
        }
        if subresource == "*" {
            all_subresources.insert(resource);
        }
        if resource == "*" {
            all_resources.insert(subresource);
        }
    }
    let mut refuse = |detail: &str| errors.push(FieldError::invalid(path, rule.at("resources").clone(), detail));
    if everything && rule.list("resources").len() > 1 {
        refuse("if '*/*' is present, must not specify other resources");
    }
    if all_plain && plain {
        refuse("if '*' is present, must not specify other resources without subresources");
    }
}

fn client_config(config: &Value, path: &Path<'_>, errors: &mut Errors) {
    match (config.at("url").as_str(), config.has("service")) {
        (None, false) | (Some(_), true) => {
            errors.push(FieldError::required(path, "exactly one of url or service is required"));
        }
        (Some(address), false) => url(address, &path.field("url"), errors),
        (None, true) => service(config.at("service"), &path.field("service"), errors),
    }
}

fn url(text: &str, path: &Path<'_>, errors: &mut Errors) {
    let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (scheme, rest) = rest.split_once("://").unwrap_or(("", ""));
    let authority = rest.split('/').next().unwrap_or_default();
    let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    let mut refuse = |value: &str, detail: String| errors.push(FieldError::invalid(path, value, detail));
    if scheme != "https" {
        refuse(scheme, format!("'https' is the only allowed URL scheme{URL_FORM}"));
    }
    if host.is_empty() {
        refuse("", format!("host must be specified{URL_FORM}"));
    }
    if let Some(user) = user {
        refuse(user, "user information is not permitted in the URL".into());
    }
    if !fragment.is_empty() {
        refuse(fragment, "fragments are not permitted in the URL".into());
    }
    if !query.is_empty() {
        refuse(query, "query parameters are not permitted in the URL".into());
    }
}

/// The service of a webhook. Kubernetes mixes up the name and the namespace when one is missing, and so do we.
fn service(service: &Value, path: &Path<'_>, errors: &mut Errors) {
    if service.text("namespace").is_empty() {
        errors.push(FieldError::required(path.field("name"), ""));
    }
    if service.text("name").is_empty() {
        errors.push(FieldError::required(path.field("namespace"), ""));
    }
    let port = service.int("port").unwrap_or(443);
    for wrong in format::is_port_number(port) {
        errors.push(FieldError::invalid(path.field("port"), port, format!("port is not valid: {wrong}")));
    }
    let target = service.text("path");
    let path = path.field("path");
    if target.is_empty() || target == "/" {
        return;
    }
    if !target.starts_with('/') {
        errors.push(FieldError::invalid(path, target, "must start with a '/'"));
    }
    let steps = target.get(1..).unwrap_or_default();
    let steps = steps.strip_suffix('/').unwrap_or(steps);
    for (i, step) in steps.split('/').enumerate() {
        if step.is_empty() {
            errors.push(FieldError::invalid(path, target, format!("segment[{i}] may not be empty")));
        } else {
            for wrong in format::is_dns_subdomain(step) {
                errors.push(FieldError::invalid(path, target, format!("segment[{i}]: {wrong}")));
            }
        }
    }
}

/// The conditions of a webhook have names and expressions that make sense.
fn match_conditions(hook: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    for (i, condition) in hook.list("matchConditions").iter().enumerate() {
        let path = path.index(i);
        let expression = condition.text("expression");
        if expression.trim().is_empty() {
            errors.push(FieldError::required(path.field("expression"), ""));
        }
        #[cfg(feature = "cel")]
        if !expression.trim().is_empty() {
            errors.extend(crate::cel::condition::problem(expression, &path));
        }
        let name = condition.text("name");
        if name.is_empty() {
            errors.push(FieldError::required(path.field("name"), ""));
            continue;
        }
        formed(name, &path.field("name"), format::is_qualified_name, errors);
        if !names.insert(name) {
            errors.push(FieldError::duplicate(path.field("name"), name));
        }
    }
}

fn review_versions(hook: &Value, path: &Path<'_>, errors: &mut Errors) {
    let versions = hook.list("admissionReviewVersions");
    if versions.is_empty() {
        errors.push(FieldError::required(path, "must specify one of v1, v1beta1"));
        return;
    }
    let mut seen = BTreeSet::new();
    for (i, version) in hook.texts("admissionReviewVersions").enumerate() {
        if seen.insert(version) {
            formed(version, &path.index(i), format::is_dns1035_label, errors);
        } else {
            errors.push(FieldError::invalid(path.index(i), version, "duplicate version"));
        }
    }
    if !REVIEW_VERSIONS.iter().any(|version| seen.contains(version)) {
        let detail = "must include at least one of v1, v1beta1";
        errors.push(FieldError::invalid(path, hook.at("admissionReviewVersions").clone(), detail));
    }
}
