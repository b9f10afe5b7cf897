//! What an encoder leaves out: empty lists and maps of built-in kinds, and zeros.
//!
//! Kubernetes' own kinds are structs there, and nearly all of their fields are marked to be left out when they are empty;
//! `data: {}` and `hostNetwork: false` come back as no field at all. Empty objects with named fields (`emptyDir: {}`) mean
//! something and stay, and so do zeros that are not the same as nothing (`replicas: 0`).

use serde_json::Value;

use super::{ObjectShape, Schema, Shape};

/// Leaves out empty lists and maps and zeros, but for fields that must be there.
pub fn empty(value: &mut Value, schema: &Schema) {
    match (value, &schema.shape) {
        (Value::Object(fields), Shape::Object(shape)) if !shape.properties.is_empty() => {
            fields.retain(|name, field| match shape.properties.get(name) {
                Some(schema) => {
                    empty(field, schema);
                    is_needed(shape, name)
                        || !(is_empty(field, schema) || (is_zero(field, schema) && !is_pointer(shape, name)))
                }
                None => true,
            });
        }
        (Value::Object(fields), Shape::Object(ObjectShape { additional: Some(schema), .. })) => {
            fields.values_mut().for_each(|field| empty(field, schema));
        }
        (Value::Array(items), Shape::Array(shape)) => items.iter_mut().for_each(|item| empty(item, &shape.items)),
        _ => {}
    }
}

fn is_needed(shape: &ObjectShape, name: &str) -> bool {
    shape.required.iter().any(|required| required == name)
}

fn is_pointer(shape: &ObjectShape, name: &str) -> bool {
    shape.pointers.iter().any(|pointer| pointer == name)
}

/// Whether this is what a field holds that nobody has set. One that is always written has that as its default.
fn is_zero(value: &Value, schema: &Schema) -> bool {
    schema.default.is_none()
        && match (value, &schema.shape) {
            (Value::Bool(flag), Shape::Boolean) => !flag,
            (Value::Number(number), Shape::Integer) => number.as_i64() == Some(0),
            (Value::String(text), Shape::String) => text.is_empty(),
            _ => false,
        }
}

fn is_empty(value: &Value, schema: &Schema) -> bool {
    match (value, &schema.shape) {
        (Value::Object(fields), Shape::Object(shape)) => {
            fields.is_empty() && shape.properties.is_empty() && shape.additional.is_some()
        }
        (Value::Array(items), Shape::Array(_)) => items.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::kind::builtins::definitions;

    #[track_caller]
    fn check(definition: &str, mut object: serde_json::Value, expected: &serde_json::Value) {
        let schema = definitions().unwrap().schema(definition).unwrap();
        super::empty(&mut object, &schema);
        assert_eq!(object, *expected);
    }

    #[test]
    fn empty_lists_and_maps_and_zeros_go_and_empty_objects_stay() {
        let config_map = "io.k8s.api.core.v1.ConfigMap";
        check(config_map, json!({"data": {}, "metadata": {"labels": {}}}), &json!({"metadata": {}}));
        check(config_map, json!({"data": {"a": ""}}), &json!({"data": {"a": ""}}));
        let pod = "io.k8s.api.core.v1.Pod";
        let volumes =
            json!({"spec": {"containers": [], "volumes": [{"name": "v", "emptyDir": {}}], "tolerations": []}});
        let left = json!({"spec": {"containers": [], "volumes": [{"name": "v", "emptyDir": {}}]}});
        check(pod, volumes, &left);
        let deployment = "io.k8s.api.apps.v1.Deployment";
        check(
            deployment,
            json!({"spec": {"replicas": 0, "minReadySeconds": 0, "paused": false}}),
            &json!({"spec": {"replicas": 0}}),
        );
        check(
            "io.k8s.api.policy.v1.PodDisruptionBudget",
            json!({"spec": {"selector": {}}}),
            &json!({"spec": {"selector": {}}}),
        );
    }
}
