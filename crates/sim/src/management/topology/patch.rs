//! The patches of a class: what its templates are changed by for one cluster.
//!
//! Values come from variables, also by way of a look-up. What else has to be worked out by a Go template, or by somebody outside of
//! Cluster API, is refused by the name of the patch: to guess at it would make another cluster than the real one.

use serde_json::{Map, Value, json};
use windlass_api::kind::topology::{ClassPatch, JsonPatch, PatchSelector};
use windlass_apiserver::patch::json as json_patch;

use super::blueprint::Template;
use super::variable::Values;
use super::{Refusal, lookup};

/// From where a class refers to a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder<'a> {
    /// From its infrastructure.
    Infrastructure,
    /// From its control plane.
    ControlPlane,
    /// From the sort of workers of this name.
    Pool(&'a str),
}

/// The template with all patches that concern it.
pub(super) fn applied(
    patches: &[ClassPatch],
    template: &Template,
    holder: Holder<'_>,
    values: &Values,
) -> Result<Value, Refusal> {
    let mut object = template.object.clone();
    for patch in patches {
        if !is_enabled(patch)? {
            continue;
        }
        let definitions = patch.definitions.iter().filter(|definition| selects(&definition.selector, template, holder));
        for change in definitions.flat_map(|definition| &definition.json_patches) {
            let operation = operation(patch, change, values)?;
            let text = json!([operation]).to_string();
            json_patch::apply(&mut object, text.as_bytes()).map_err(|error| {
                Refusal(format!(
                    "patch \"{}\": {} {} of {}: {error}",
                    patch.name, change.op, change.path, template.reference.kind
                ))
            })?;
        }
    }
    Ok(object)
}

/// Whether a patch is made at all.
fn is_enabled(patch: &ClassPatch) -> Result<bool, Refusal> {
    if patch.external.is_some() {
        return Err(Refusal(format!(
            "patch \"{}\" is made by an external extension, which nobody plays here",
            patch.name
        )));
    }
    match patch.enabled_if.as_deref() {
        None => Ok(true),
        Some(text) => literal(patch, "enabledIf", text).map(|text| text.trim() == "true"),
    }
}

/// The text of a template that works nothing out.
fn literal<'a>(patch: &ClassPatch, field: &str, text: &'a str) -> Result<&'a str, Refusal> {
    if text.contains("{{") {
        let name = &patch.name;
        return Err(Refusal(format!(
            "patch \"{name}\": {field} is a Go template, which nobody evaluates here: {text}"
        )));
    }
    Ok(text)
}

fn selects(selector: &PatchSelector, template: &Template, holder: Holder<'_>) -> bool {
    let reference = &template.reference;
    let matches = &selector.match_resources;
    let from = match holder {
        Holder::Infrastructure => matches.infrastructure_cluster == Some(true),
        Holder::ControlPlane => matches.control_plane == Some(true),
        Holder::Pool(class) => {
            let names = matches.machine_deployment_class.as_ref().map(|pools| pools.names.as_slice());
            names.unwrap_or_default().iter().any(|name| matches_name(name, class))
        }
    };
    from && selector.kind == reference.kind && selector.api_version == reference.api_version
}

/// Whether a name is meant by a pattern, which may have a star at its beginning or its end.
fn matches_name(pattern: &str, name: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        _ if pattern == "*" => true,
        (Some(end), _) => name.ends_with(end),
        (_, Some(beginning)) => name.starts_with(beginning),
        (None, None) => name == pattern,
    }
}

/// One operation as RFC 6902 has it.
fn operation(patch: &ClassPatch, change: &JsonPatch, values: &Values) -> Result<Value, Refusal> {
    let name = &patch.name;
    if !change.path.starts_with("/spec") {
        return Err(Refusal(format!("patch \"{name}\": {} is not within /spec", change.path)));
    }
    let mut operation = Map::new();
    operation.insert("op".into(), json!(change.op));
    operation.insert("path".into(), json!(change.path));
    let from = change.value_from.as_ref();
    let value = match (&change.value, from.and_then(|from| from.variable.as_deref())) {
        _ if change.op == "remove" => None,
        (Some(value), _) => Some(value.clone()),
        (None, Some(variable)) => {
            let value = values.at(variable);
            Some(
                value
                    .cloned()
                    .ok_or_else(|| Refusal(format!("patch \"{name}\": variable \"{variable}\" has no value")))?,
            )
        }
        (None, None) => {
            let text = from.and_then(|from| from.template.as_deref()).unwrap_or_default();
            if let Some(found) = lookup::value(text, values) {
                let found = found.map_err(|Refusal(why)| Refusal(format!("patch \"{name}\": {why}")))?;
                operation.insert("value".to_owned(), found);
                return Ok(Value::Object(operation));
            }
            let text = literal(patch, &format!("valueFrom.template of {}", change.path), text)?;
            let value = serde_saphyr::from_str::<Value>(text);
            Some(value.map_err(|error| Refusal(format!("patch \"{name}\": read {text:?} as YAML: {error}")))?)
        }
    };
    operation.extend(value.map(|value| ("value".to_owned(), value)));
    Ok(Value::Object(operation))
}

#[cfg(test)]
mod tests {
    use windlass_api::kind::cluster_api::Cluster;
    use windlass_api::kind::topology::TemplateReference;

    use super::*;

    fn template() -> Template {
        let reference = TemplateReference { api_version: "g/v1".into(), kind: "Thing".into(), name: "t".into() };
        let object = json!({"apiVersion": "g/v1", "kind": "Thing", "spec": {"template": {"spec": {"size": "small", "tags": ["a"]}}}});
        Template { reference, object }
    }

    fn values() -> Values {
        let class = serde_json::from_value(json!({"variables": [{"name": "size"}, {"name": "empty"}]})).unwrap();
        let topology = serde_json::from_value(json!({"variables": [{"name": "size", "value": "large"}]})).unwrap();
        Values::of(&Cluster::default(), &topology, &class).unwrap()
    }

    /// One patch of the control plane's template.
    fn patched(patch: Value, operations: Value) -> Result<Value, Refusal> {
        let selector = json!({"apiVersion": "g/v1", "kind": "Thing", "matchResources": {"controlPlane": true}});
        let (mut patch, mut definition) = (patch, json!({ "selector": selector }));
        definition["jsonPatches"] = operations;
        patch["name"] = json!("p");
        patch["definitions"] = json!([definition]);
        let patch: ClassPatch = serde_json::from_value(patch).unwrap();
        let object = applied(&[patch], &template(), Holder::ControlPlane, &values())?;
        Ok(object["spec"]["template"]["spec"].clone())
    }

    fn check(patch: Value, operations: Value, expected: Result<Value, &str>) {
        match (patched(patch, operations), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected),
            (Err(Refusal(found)), Err(expected)) => assert!(found.contains(expected), "{found}"),
            (found, expected) => panic!("{found:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn a_value_is_written_as_it_is_or_comes_from_a_variable() {
        let size = "/spec/template/spec/size";
        check(
            json!({}),
            json!([{"op": "replace", "path": size, "value": "huge"}]),
            Ok(json!({"size": "huge", "tags": ["a"]})),
        );
        check(
            json!({}),
            json!([{"op": "replace", "path": size, "valueFrom": {"variable": "size"}}]),
            Ok(json!({"size": "large", "tags": ["a"]})),
        );
        check(
            json!({}),
            json!([{"op": "add", "path": "/spec/template/spec/tags/-", "valueFrom": {"template": "b: [1]"}}, {"op": "remove", "path": size}]),
            Ok(json!({"tags": ["a", {"b": [1]}]})),
        );
        check(
            json!({}),
            json!([{"op": "replace", "path": size, "valueFrom": {"variable": "empty"}}]),
            Err("patch \"p\": variable \"empty\" has no value"),
        );
    }

    #[test]
    fn what_would_have_to_be_worked_out_elsewhere_is_refused_by_name() {
        let nothing = json!([]);
        check(json!({"enabledIf": "{{ .size }}"}), nothing.clone(), Err("patch \"p\": enabledIf is a Go template"));
        check(
            json!({"external": {"generateExtension": "x"}}),
            nothing.clone(),
            Err("patch \"p\" is made by an external"),
        );
        check(
            json!({}),
            json!([{"op": "add", "path": "/spec/a", "valueFrom": {"template": "{{ .size }}-x"}}]),
            Err("valueFrom.template of /spec/a is a Go template"),
        );
        check(json!({}), json!([{"op": "add", "path": "/metadata/name", "value": "x"}]), Err("is not within /spec"));
        check(
            json!({}),
            json!([{"op": "remove", "path": "/spec/none"}]),
            Err("patch \"p\": remove /spec/none of Thing"),
        );
    }

    #[test]
    fn a_patch_that_is_switched_off_changes_nothing() {
        let size = json!([{"op": "remove", "path": "/spec/template/spec/size"}]);
        check(json!({"enabledIf": "false"}), size.clone(), Ok(json!({"size": "small", "tags": ["a"]})));
        check(json!({"enabledIf": "true"}), size, Ok(json!({"tags": ["a"]})));
    }

    #[test]
    fn a_template_is_selected_by_kind_and_by_who_refers_to_it() {
        let selector = |matches: Value| -> PatchSelector {
            serde_json::from_value(json!({"apiVersion": "g/v1", "kind": "Thing", "matchResources": matches})).unwrap()
        };
        let pools = selector(json!({"machineDeploymentClass": {"names": ["gpu", "web-*", "*-db"]}}));
        for (class, expected) in [("gpu", true), ("web-1", true), ("my-db", true), ("cpu", false)] {
            assert_eq!(selects(&pools, &template(), Holder::Pool(class)), expected, "{class}");
        }
        assert!(!selects(&pools, &template(), Holder::ControlPlane));
        assert!(selects(&selector(json!({"infrastructureCluster": true})), &template(), Holder::Infrastructure));
        let other = PatchSelector { kind: "Other".into(), ..selector(json!({"controlPlane": true})) };
        assert!(!selects(&other, &template(), Holder::ControlPlane));
    }
}
