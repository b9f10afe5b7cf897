//! What a class is told: by the topology, by its own defaults, and by what is known of every cluster.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::topology::{ClusterClassSpec, Topology, Variable, VariableOverrides};

use super::Refusal;

/// Variables by name. `builtin` is one of them.
#[derive(Debug, Clone)]
pub(super) struct Values(BTreeMap<String, Value>);

impl Values {
    /// What is said for the whole topology.
    pub(super) fn of(cluster: &Cluster, topology: &Topology, class: &ClusterClassSpec) -> Result<Self, Refusal> {
        let mut values = BTreeMap::new();
        for variable in &class.variables {
            let default = variable.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.get("default"));
            if let Some(value) = topology.variable(&variable.name).or(default) {
                values.insert(variable.name.clone(), value.clone());
            } else if variable.required == Some(true) {
                return Err(Refusal(format!("required variable \"{}\" is not set", variable.name)));
            }
        }
        for Variable { name, .. } in &topology.variables {
            if !class.variables.iter().any(|known| known.name == *name) {
                return Err(Refusal(format!("variable \"{name}\" is not defined in the ClusterClass")));
            }
        }
        values.insert("builtin".to_owned(), builtin(cluster, topology));
        Ok(Self(values))
    }

    /// With what is said for one part only.
    pub(super) fn with(&self, overrides: Option<&VariableOverrides>) -> Self {
        let mut values = self.0.clone();
        let overrides = overrides.map(|overrides| overrides.overrides.as_slice()).unwrap_or_default();
        values.extend(overrides.iter().map(|variable| (variable.name.clone(), variable.value.clone())));
        Self(values)
    }

    /// With what is known of one part.
    pub(super) fn with_builtin(&self, part: &str, facts: Value) -> Self {
        let mut values = self.0.clone();
        let builtin = values.entry("builtin".to_owned()).or_insert_with(|| json!({}));
        builtin[part] = facts;
        Self(values)
    }

    /// The value at a path: `os.arch`, `list[0].name`, `builtin.cluster.name`.
    pub(super) fn at(&self, path: &str) -> Option<&Value> {
        let mut steps = path.split('.');
        let (name, indices) = indexed(steps.next()?)?;
        let mut value = self.0.get(name)?;
        value = enter(value, &indices)?;
        for step in steps {
            let (name, indices) = indexed(step)?;
            value = enter(value.get(name)?, &indices)?;
        }
        Some(value)
    }
}

/// A step of a path, without its indices: `names[0][1]`.
fn indexed(step: &str) -> Option<(&str, Vec<usize>)> {
    let Some((name, rest)) = step.split_once('[') else { return Some((step, Vec::new())) };
    let rest = rest.strip_suffix(']')?;
    let indices: Option<Vec<usize>> = rest.split("][").map(|index| index.parse().ok()).collect();
    Some((name, indices?))
}

fn enter<'a>(value: &'a Value, indices: &[usize]) -> Option<&'a Value> {
    indices.iter().try_fold(value, |value, index| value.get(*index))
}

/// What is known of every cluster.
fn builtin(cluster: &Cluster, topology: &Topology) -> Value {
    let meta = &cluster.metadata;
    let class_namespace = topology.class_ref.namespace.as_ref().or(meta.namespace.as_ref());
    let mut facts = json!({
        "name": meta.name, "namespace": meta.namespace, "uid": meta.uid,
        "metadata": {"labels": meta.labels.clone().unwrap_or_default(), "annotations": meta.annotations.clone().unwrap_or_default()},
        "topology": {"version": topology.version, "class": topology.class_ref.name, "classNamespace": class_namespace},
    });
    if let Some(network) = &cluster.spec.cluster_network {
        let blocks = |of: &str| network[of]["cidrBlocks"].clone();
        let mut said = Map::new();
        said.extend([("services".to_owned(), blocks("services")), ("pods".to_owned(), blocks("pods"))]);
        said.insert("serviceDomain".to_owned(), network["serviceDomain"].clone());
        said.retain(|_, value| !value.is_null());
        facts["network"] = Value::Object(said);
    }
    json!({ "cluster": facts })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(topology: Value, class: Value) -> Result<Values, Refusal> {
        let mut cluster = Cluster::default();
        cluster.metadata.name = Some("c".to_owned());
        cluster.spec.cluster_network = Some(json!({"pods": {"cidrBlocks": ["192.0.2.0/24"]}}));
        Values::of(&cluster, &serde_json::from_value(topology).unwrap(), &serde_json::from_value(class).unwrap())
    }

    fn check(values: &Values, path: &str, expected: Option<&Value>) {
        assert_eq!(values.at(path), expected, "{path}");
    }

    #[test]
    fn a_value_comes_from_the_part_or_the_topology_or_the_class() {
        let class = json!({"variables": [
            {"name": "size", "required": true, "schema": {"openAPIV3Schema": {"type": "string"}}},
            {"name": "zone", "schema": {"openAPIV3Schema": {"type": "string", "default": "a"}}},
            {"name": "disks"},
        ]});
        let said = json!({"version": "v1.31.0", "variables": [{"name": "size", "value": "small"}]});
        let values = values(said, class).unwrap();
        check(&values, "size", Some(&json!("small")));
        check(&values, "zone", Some(&json!("a")));
        check(&values, "disks", None);
        let overrides = VariableOverrides { overrides: vec![Variable { name: "size".into(), value: json!("large") }] };
        check(&values.with(Some(&overrides)), "size", Some(&json!("large")));
    }

    #[test]
    fn a_path_leads_into_a_value_and_into_what_is_known_anyway() {
        let class = json!({"variables": [{"name": "os"}]});
        let said = json!({"version": "v1.31.0", "variables": [
            {"name": "os", "value": {"arch": "amd64", "tags": [["a", "b"], {"key": "c"}]}},
        ]});
        let values = values(said, class).unwrap().with_builtin("controlPlane", json!({"version": "v1.31.0"}));
        check(&values, "os.arch", Some(&json!("amd64")));
        check(&values, "os.tags[0][1]", Some(&json!("b")));
        check(&values, "os.tags[1].key", Some(&json!("c")));
        check(&values, "os.tags[2]", None);
        check(&values, "os.tags[x]", None);
        check(&values, "builtin.cluster.name", Some(&json!("c")));
        check(&values, "builtin.cluster.topology.version", Some(&json!("v1.31.0")));
        check(&values, "builtin.cluster.network.pods[0]", Some(&json!("192.0.2.0/24")));
        check(&values, "builtin.controlPlane.version", Some(&json!("v1.31.0")));
        check(&values, "builtin.machineDeployment.version", None);
    }

    #[test]
    fn what_is_missing_or_unknown_is_named() {
        let class = json!({"variables": [{"name": "size", "required": true}]});
        let missing = values(json!({"version": "v1.31.0"}), class.clone()).unwrap_err();
        assert_eq!(missing, Refusal("required variable \"size\" is not set".into()));
        let said = json!({"variables": [{"name": "size", "value": 1}, {"name": "colour", "value": "red"}]});
        let unknown = values(said, class).unwrap_err();
        assert_eq!(unknown, Refusal("variable \"colour\" is not defined in the ClusterClass".into()));
    }
}
