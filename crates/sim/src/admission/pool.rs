//! Pools: a selector that fits to the machines, a cluster that stays the same, a version that is one.

use serde_json::{Value, json};
use windlass_api::label;
use windlass_apiserver::field::FieldError;
use windlass_apiserver::selector::label::LabelSelector;

use super::{Asked, Verdict, readable, text};

const LABELS: &str = "spec.template.metadata.labels";

pub(super) fn judge_deployment(asked: &Asked<'_>) -> Verdict {
    judge(asked, |_, why| FieldError::forbidden(LABELS, why))
}

pub(super) fn judge_set(asked: &Asked<'_>) -> Verdict {
    judge(asked, |labels, why| FieldError::invalid(LABELS, labels.clone(), why))
}

/// Sets and deployments are judged alike; only what their labels are blamed for is worded differently.
fn judge(asked: &Asked<'_>, unfit: impl Fn(&Value, String) -> FieldError) -> Verdict {
    let spec = &asked.object["spec"];
    let mut errors = Vec::new();
    // The originals see to it that selector and machines are of the same cluster, and make a selector where there is none.
    let in_cluster = |labels: &Value| {
        let mut labels = labels.as_object().cloned().unwrap_or_default();
        labels.insert(label::CLUSTER_NAME.name.to_owned(), spec["clusterName"].clone());
        Value::Object(labels)
    };
    let (given, labels) = (&spec["selector"], in_cluster(&spec["template"]["metadata"]["labels"]));
    let selector =
        json!({"matchLabels": in_cluster(&given["matchLabels"]), "matchExpressions": given["matchExpressions"]});
    match LabelSelector::from_object(Some(&selector)) {
        _ if given.is_null() => {}
        Err(error) => errors.push(FieldError::invalid("spec.selector", selector, error.to_string())),
        Ok(wanted) if !wanted.matches(&labels) => {
            errors.push(unfit(&labels, format!("must match spec.selector {:?}", wanted.to_string())));
        }
        Ok(_) => {}
    }
    if asked.before.is_some_and(|before| before["spec"]["clusterName"] != spec["clusterName"]) {
        errors.push(FieldError::forbidden("spec.clusterName", "field is immutable"));
    }
    let version = &spec["template"]["spec"]["version"];
    if !version.is_null() {
        errors.extend(readable("spec.template.spec.version", text(version), "must be a valid semantic version"));
    }
    errors.into()
}
