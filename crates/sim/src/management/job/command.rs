//! What a container is told: its environment, and its command and arguments, with `$(VARIABLES)` expanded as a kubelet does it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod};

/// The command of the pod's first container, and its environment.
pub(super) fn of(pod: &Pod) -> (Vec<String>, BTreeMap<String, String>) {
    let container = pod.spec.as_ref().and_then(|spec| spec.containers.first());
    let Some(container) = container else { return Default::default() };
    let variables = variables(pod, container);
    let words = container.command.iter().chain(&container.args).flatten();
    (words.map(|word| expand(word, &variables)).collect(), variables)
}

/// The environment. A variable may use those before it.
fn variables(pod: &Pod, container: &Container) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    for variable in container.env.iter().flatten() {
        let field = variable.value_from.as_ref().and_then(|from| from.field_ref.as_ref());
        let value = match field {
            Some(field) => downward(pod, &field.field_path),
            None => expand(variable.value.as_deref().unwrap_or_default(), &variables),
        };
        variables.insert(variable.name.clone(), value);
    }
    variables
}

/// What the downward API tells a pod about itself; nothing where it does not know the field.
fn downward(pod: &Pod, field: &str) -> String {
    let meta = &pod.metadata;
    let entry = |entries: &Option<BTreeMap<String, String>>, rest: &str| {
        let key = rest.strip_prefix("['").and_then(|rest| rest.strip_suffix("']"));
        entries.as_ref().and_then(|entries| entries.get(key?).cloned())
    };
    let value = match field {
        "metadata.name" => meta.name.clone(),
        "metadata.namespace" => meta.namespace.clone(),
        "metadata.uid" => meta.uid.clone(),
        _ => match (field.strip_prefix("metadata.annotations"), field.strip_prefix("metadata.labels")) {
            (Some(rest), _) => entry(&meta.annotations, rest),
            (None, Some(rest)) => entry(&meta.labels, rest),
            (None, None) => None,
        },
    };
    value.unwrap_or_default()
}

/// Replaces `$(NAME)`. A name that is not known stays as it stands, and `$$` is a dollar.
fn expand(text: &str, variables: &BTreeMap<String, String>) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        expanded.push_str(before);
        if let Some(after) = after.strip_prefix('$') {
            expanded.push('$');
            rest = after;
            continue;
        }
        let named = after.strip_prefix('(').and_then(|after| after.split_once(')'));
        let known = named.and_then(|(name, after)| Some((variables.get(name)?.as_str(), after)));
        let (value, after) = known.unwrap_or(("$", after));
        expanded.push_str(value);
        rest = after;
    }
    expanded.push_str(rest);
    expanded
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(argument: &str, expected: &str) {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "p", "annotations": {"upgrade-id": "1280807"}, "labels": {"a/b": "c"}},
            "spec": {"containers": [{"name": "c", "command": ["run"], "args": [argument], "env": [
                {"name": "UPGRADE_ID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['upgrade-id']"}}},
                {"name": "LABEL", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a/b']"}}},
                {"name": "BOTH", "value": "$(UPGRADE_ID)/$(LABEL)"},
                {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            ]}]},
        }))
        .unwrap();
        let (command, env) = of(&pod);
        assert_eq!(command, ["run", expected]);
        assert_eq!(env["BOTH"], "1280807/c");
    }

    #[test]
    fn variables_are_expanded_as_a_kubelet_does_it() {
        check("--upgrade-id=$(UPGRADE_ID)", "--upgrade-id=1280807");
        check("$(BOTH)$(LABEL)", "1280807/cc");
        check("$(UNKNOWN) $(UPGRADE_ID", "$(UNKNOWN) $(UPGRADE_ID");
        check("$$(UPGRADE_ID) 5$ $", "$(UPGRADE_ID) 5$ $");
        check("[$(NODE)]", "[]");
    }
}
