//! The one Go template that is evaluated here: a look-up by another variable, as classes do it that are told something for each
//! version of Kubernetes: `{{ (index .TKR_DATA .builtin.controlPlane.version).osImageRef.name }}`.

use serde_json::Value;

use super::Refusal;
use super::variable::Values;

/// What a template looks up; nothing if it is another sort of template.
pub(super) fn value(text: &str, values: &Values) -> Option<Result<Value, Refusal>> {
    let inner = text.trim().strip_prefix("{{")?.strip_suffix("}}")?.trim();
    let (both, rest) = inner.strip_prefix("(index ")?.split_once(')')?;
    let (of, by) = both.split_once(' ')?;
    let is_path =
        |path: &str| path.starts_with('.') && path.chars().all(|c| c.is_ascii_alphanumeric() || "._".contains(c));
    if ![of, by].into_iter().all(is_path) || !(rest.is_empty() || is_path(rest)) {
        return None;
    }
    let at = |path: &str| values.at(path.trim_start_matches('.'));
    let entry = at(of).zip(at(by)).and_then(|(of, by)| of.get(by.as_str()?));
    let steps = rest.split('.').filter(|step| !step.is_empty());
    let found = steps.fold(entry, |value, step| value?.get(step));
    Some(found.cloned().ok_or_else(|| Refusal(format!("{inner} has no value"))))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_api::kind::cluster_api::Cluster;

    use super::*;

    #[test]
    fn a_variable_is_looked_up_by_another_and_nothing_else_is_worked_out() {
        let class = serde_json::from_value(json!({"variables": [{"name": "DATA"}]})).unwrap();
        let data = json!({"v1.24.9+vmware.1": {"image": {"name": "ubuntu"}}});
        let topology = json!({"version": "v1.24.9+vmware.1", "variables": [{"name": "DATA", "value": data}]});
        let values = Values::of(&Cluster::default(), &serde_json::from_value(topology).unwrap(), &class).unwrap();
        let check = |text: &str, expected: Option<Result<Value, &str>>| {
            let found = value(text, &values);
            let found = found.map(|found| found.map_err(|Refusal(why)| why));
            assert_eq!(found, expected.map(|expected| expected.map_err(str::to_owned)), "{text}");
        };
        check("{{ (index .DATA .builtin.cluster.topology.version).image.name }}", Some(Ok(json!("ubuntu"))));
        check("{{(index .DATA .builtin.cluster.topology.version).image}}", Some(Ok(json!({"name": "ubuntu"}))));
        check(
            "{{ (index .DATA .builtin.cluster.name).image }}",
            Some(Err("(index .DATA .builtin.cluster.name).image has no value")),
        );
        check("{{ .DATA }}", None);
        check("x-{{ (index .DATA .DATA).image }}", None);
        check("{{ (index .DATA .builtin.cluster.topology.version).image | quote }}", None);
    }
}
