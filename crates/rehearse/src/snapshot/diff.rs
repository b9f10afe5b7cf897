//! What differs between two snapshots, field by field, without what changes all by itself.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value};
use windlass_api::name::NamespacedName;

use super::{EtcdMember, Snapshot, place};

/// What differs between two snapshots.
#[derive(Debug, Clone, Default, PartialEq, Serialize, schemars::JsonSchema)]
#[must_use = "a difference is to be shown"]
pub struct SnapshotDiff {
    /// The objects that differ: those of the management cluster first, then cluster by cluster; by kind and name.
    pub objects: Vec<Changed>,
}

/// An object that differs.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Changed {
    /// The workload cluster that it is of; none for the management cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<NamespacedName>,
    /// The group of its kind; a member of etcd has that of etcd.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace, where it has one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What has become of it.
    pub change: Change,
}

/// What has become of an object.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", tag = "type")]
pub enum Change {
    /// Only the second snapshot has it.
    Added,
    /// Only the first has it.
    Removed,
    /// Both have it, with these differences.
    Changed {
        /// The fields, by where they are.
        fields: Vec<Field>,
    },
}

/// A field that differs.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Field {
    /// Where it is: `spec.containers[name=etcd].image`.
    pub path: String,
    /// What it was; nothing if it was not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// What it is; nothing if it is not there any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// Fields of metadata that say nothing about what an object is.
const METADATA_NOISE: [&str; 4] = ["resourceVersion", "generation", "managedFields", "selfLink"];
/// Fields that change although nothing does: times at which somebody has looked, and how often.
const NOISE: [&str; 6] =
    ["lastHeartbeatTime", "lastProbeTime", "lastUpdateTime", "lastTransitionTime", "observedGeneration", "renewTime"];

/// By what elements of lists are known, the best first.
const KEYS: [&str; 8] = ["uid", "type", "name", "key", "path", "containerPort", "mountPath", "ip"];

impl Snapshot {
    /// What has changed from this snapshot to a later one.
    pub fn diff(&self, later: &Self) -> SnapshotDiff {
        let mut objects = compare(None, &self.management, &later.management);
        let clusters = self.workloads.keys().chain(later.workloads.keys());
        let clusters: BTreeSet<&NamespacedName> = clusters.collect();
        for cluster in clusters {
            let sides = [self, later].map(|snapshot| snapshot.workloads.get(cluster));
            let [before, after] =
                sides.map(|side| side.map(|workload| workload.objects.as_slice()).unwrap_or_default());
            objects.extend(compare(Some(cluster), before, after));
            let [before, after] = sides.map(|side| side.map(|side| members(&side.members)).unwrap_or_default());
            objects.extend(compare(Some(cluster), &before, &after));
        }
        SnapshotDiff { objects }
    }
}

impl SnapshotDiff {
    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }
}

/// Members of etcd as objects: what is known of them. Their ids are made up where nobody could ask etcd.
fn members(members: &[EtcdMember]) -> Vec<Value> {
    let object = |member: &EtcdMember| {
        let mut value = serde_json::to_value(member).unwrap_or_default();
        if let Some(fields) = value.as_object_mut() {
            fields.remove("id");
            fields.remove("name");
        }
        value["apiVersion"] = "etcd.io/".into();
        value["kind"] = "Member".into();
        let name = if member.name.is_empty() { format!("{:x}", member.id) } else { member.name.clone() };
        value["metadata"]["name"] = name.into();
        value
    };
    members.iter().map(object).collect()
}

fn compare(cluster: Option<&NamespacedName>, before: &[Value], after: &[Value]) -> Vec<Changed> {
    let mut all: BTreeMap<[&str; 4], [Option<&Value>; 2]> = BTreeMap::new();
    for (side, objects) in [before, after].into_iter().enumerate() {
        for object in objects {
            all.entry(place(object)).or_default()[side] = Some(object);
        }
    }
    let changed = |(place, sides): ([&str; 4], [Option<&Value>; 2])| {
        let change = match sides {
            [Some(before), Some(after)] => {
                let mut fields = Vec::new();
                differences("", &quiet(before), &quiet(after), &mut fields);
                Some(Change::Changed { fields }).filter(|_| before != after)
            }
            [None, Some(_)] => Some(Change::Added),
            [Some(_), None] => Some(Change::Removed),
            [None, None] => None,
        };
        let change = change.filter(|change| !matches!(change, Change::Changed { fields } if fields.is_empty()))?;
        let [group, kind, namespace, name] = place.map(str::to_owned);
        Some(Changed { cluster: cluster.cloned(), group, kind, namespace, name, change })
    };
    all.into_iter().filter_map(changed).collect()
}

/// An object without what changes by itself.
fn quiet(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|field, _| !METADATA_NOISE.contains(&field.as_str()));
    }
    hush(&mut object);
    object
}

fn hush(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|field, _| !NOISE.contains(&field.as_str()));
            fields.values_mut().for_each(hush);
        }
        Value::Array(elements) => elements.iter_mut().for_each(hush),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn differences(path: &str, before: &Value, after: &Value, found: &mut Vec<Field>) {
    if before == after {
        return;
    }
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            let name = |name: &str| {
                let name = if name.contains(['.', '/']) { format!("[{name}]") } else { name.to_owned() };
                let dot = if path.is_empty() || name.starts_with('[') { "" } else { "." };
                format!("{path}{dot}{name}")
            };
            sides(before, after, name, found);
        }
        (Value::Array(old), Value::Array(new)) => match (keyed(old, new), keyed(new, old)) {
            (Some(old), Some(new)) => sides(&old, &new, |name| format!("{path}[{name}]"), found),
            _ => found.push(Field { path: path.to_owned(), before: Some(before.clone()), after: Some(after.clone()) }),
        },
        _ => found.push(Field { path: path.to_owned(), before: Some(before.clone()), after: Some(after.clone()) }),
    }
}

/// Compares what has the same name on both sides.
fn sides(
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    path: impl Fn(&str) -> String,
    found: &mut Vec<Field>,
) {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for name in names {
        match (before.get(name), after.get(name)) {
            (Some(before), Some(after)) => differences(&path(name), before, after, found),
            (before, after) => {
                found.push(Field { path: path(name), before: before.cloned(), after: after.cloned() });
            }
        }
    }
}

/// The elements of a list by their keys: the first field that tells all of them, and those of the other list, apart.
fn keyed(list: &[Value], other: &[Value]) -> Option<Map<String, Value>> {
    let all = || list.iter().chain(other);
    let text = |element: &Value, key: &str| match element.get(key)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let tells_apart = |key: &&str| {
        let distinct = |list: &[Value]| {
            let names: Option<BTreeSet<String>> = list.iter().map(|element| text(element, key)).collect();
            names.is_some_and(|names| names.len() == list.len())
        };
        all().next().is_some() && distinct(list) && distinct(other)
    };
    let key = KEYS.into_iter().find(tells_apart)?;
    let named = list.iter().filter_map(|element| Some((format!("{key}={}", text(element, key)?), element.clone())));
    Some(named.collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::snapshot::WorkloadSnapshot;

    fn snapshot(management: Vec<Value>, members: Vec<EtcdMember>) -> Snapshot {
        let workload = WorkloadSnapshot { objects: Vec::new(), members };
        Snapshot {
            taken_at: jiff::Timestamp::UNIX_EPOCH,
            taken_by: String::new(),
            management,
            workloads: [("default/a".parse().unwrap(), workload)].into(),
            gaps: Vec::new(),
        }
    }

    fn pod(name: &str, version: &str, image: &str, heartbeat: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "resourceVersion": version, "labels": {"a.b/c": image}},
            "spec": {"containers": [{"name": "b", "image": "x"}, {"name": "a", "image": image}], "args": ["1", image]},
            "status": {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": heartbeat}]},
        })
    }

    fn member(id: u64, healthy: bool) -> EtcdMember {
        let name = "cp-0".to_owned();
        EtcdMember { id, name, learner: false, healthy, leader: true, version: None, alarms: [].into() }
    }

    /// A line for each object and field.
    fn lines(diff: &SnapshotDiff) -> Vec<String> {
        let mut lines = Vec::new();
        for object in &diff.objects {
            let name = format!("{} {}", object.kind, object.name);
            match &object.change {
                Change::Added => lines.push(format!("+ {name}")),
                Change::Removed => lines.push(format!("- {name}")),
                Change::Changed { fields } => lines.extend(fields.iter().map(|field| {
                    let side = |side: &Option<Value>| side.as_ref().map(ToString::to_string).unwrap_or_default();
                    format!("~ {name} {} {} -> {}", field.path, side(&field.before), side(&field.after))
                })),
            }
        }
        lines
    }

    #[test]
    fn objects_come_go_and_change_field_by_field() {
        let before = snapshot(vec![pod("a", "1", "1", "t"), pod("b", "1", "1", "t")], vec![member(1, true)]);
        let after = snapshot(vec![pod("b", "2", "2", "u"), pod("c", "1", "1", "t")], vec![member(7, false)]);
        let expected = [
            "- Pod a",
            r#"~ Pod b metadata.labels[a.b/c] "1" -> "2""#,
            r#"~ Pod b spec.args ["1","1"] -> ["1","2"]"#,
            r#"~ Pod b spec.containers[name=a].image "1" -> "2""#,
            "+ Pod c",
            "~ Member cp-0 healthy true -> false",
        ];
        assert_eq!(lines(&before.diff(&after)), expected);
    }

    #[test]
    fn what_changes_by_itself_is_no_difference() {
        let before = snapshot(vec![pod("a", "1", "1", "t")], vec![member(1, true)]);
        let mut after = snapshot(vec![pod("a", "2", "1", "u")], vec![member(2, true)]);
        after.management[0]["spec"]["containers"].as_array_mut().unwrap().reverse();
        assert!(before.diff(&after).is_empty(), "{:?}", before.diff(&after));
    }
}
