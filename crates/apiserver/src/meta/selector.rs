//! Label selectors: whether they are well-formed, and what they select.

use serde_json::Value;

use crate::field::FieldError;
use crate::meta::{complain, format, labels};
use crate::path::Path;
use crate::selector::LabelSelector;
use crate::value::Fields;

/// What is wrong with a label selector. One that is absent is fine here.
pub fn validate(selector: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    labels(selector.at("matchLabels"), &path.field("matchLabels"), errors);
    let path = path.field("matchExpressions");
    for (i, requirement) in selector.list("matchExpressions").iter().enumerate() {
        validate_requirement(requirement, &path.index(i), errors);
    }
}

fn validate_requirement(requirement: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let values = requirement.list("values");
    match requirement.text("operator") {
        "In" | "NotIn" => {
            if values.is_empty() {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.push(FieldError::required(path.field("values"), detail));
            }
        }
        "Exists" | "DoesNotExist" => {
            if !values.is_empty() {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(FieldError::forbidden(path.field("values"), detail));
            }
        }
        operator => {
            errors.push(FieldError::invalid(path.field("operator"), operator, "not a valid selector operator"));
        }
    }
    let key = requirement.text("key");
    complain(errors, &path.field("key"), key, format::is_qualified_name(key));
    let path = path.field("values");
    for (i, value) in requirement.texts("values").enumerate() {
        complain(errors, &path.index(i), value, format::is_label_value(value));
    }
}

/// Whether a selector can be evaluated at all; [`validate`] says what is wrong with one that cannot.
pub fn is_valid(selector: &Value) -> bool {
    let mut errors = Vec::new();
    validate(selector, &Path::new("selector"), &mut errors);
    errors.is_empty()
}

/// Whether a selector has no requirements: it selects everything.
pub fn is_empty(selector: &Value) -> bool {
    selector.map("matchLabels").is_none_or(serde_json::Map::is_empty) && selector.list("matchExpressions").is_empty()
}

/// Whether a selector selects an object with these labels. An absent selector selects nothing, an empty one everything.
pub fn matches(selector: &Value, labels: &Value) -> bool {
    let selector = Some(selector).filter(|selector| !selector.is_null());
    LabelSelector::from_object(selector).is_ok_and(|selector| selector.matches(labels))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_selector_selects_what_meets_all_its_requirements() {
        let labels = json!({"app": "web", "tier": "front"});
        for (selector, expected) in [
            (json!(null), false),
            (json!({}), true),
            (json!({"matchLabels": {"app": "web"}}), true),
            (json!({"matchLabels": {"app": "db"}}), false),
            (json!({"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "x", "operator": "Exists"}]}), false),
            (json!({"matchExpressions": [{"key": "tier", "operator": "In", "values": ["front", "back"]}]}), true),
            (json!({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["front"]}]}), false),
            (json!({"matchExpressions": [{"key": "other", "operator": "NotIn", "values": ["front"]}]}), true),
            (json!({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}), false),
            (json!({"matchExpressions": [{"key": "app", "operator": "Like", "values": ["w"]}]}), false),
        ] {
            assert_eq!(matches(&selector, &labels), expected, "{selector}");
        }
    }

    #[test]
    fn a_malformed_selector_is_refused() {
        let selector = json!({
            "matchLabels": {"-a": "ok"},
            "matchExpressions": [
                {"key": "a", "operator": "In"},
                {"key": "a", "operator": "Exists", "values": ["x"]},
                {"key": "a", "operator": "Like"},
            ],
        });
        let mut errors = Vec::new();
        validate(&selector, &Path::new("selector"), &mut errors);
        let said: Vec<String> = errors.iter().skip(1).map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
                "selector.matchExpressions[1].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                "selector.matchExpressions[2].operator: Invalid value: \"Like\": not a valid selector operator",
            ]
        );
        assert!(errors[0].path == "selector.matchLabels" && !is_valid(&selector));
    }
}
