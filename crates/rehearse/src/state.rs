//! What a World is, apart from how it came to be so: two runs that should end alike are compared by it.
//!
//! Left out is what may differ without anything being different: revisions, times, who wrote which field, events, names that
//! are drawn, the attempts of Jobs, and on which of several nodes a scheduler has put a pod. A uid or provider id is replaced by the object that has it, also in the middle of a text,
//! so that a reference to the wrong object of a right name is still a difference.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kube::Resource;
use serde_json::{Map, Value};
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::name::NamespacedName;
use windlass_apiserver::ApiServer;
use windlass_apiserver::kind::store_name;
use windlass_apiserver::store::Range;
use windlass_sim::world::World;

/// What a `ClusterUpdate` remembers of how it came about.
const HISTORY: [&str; 2] = ["steps", "attempts"];

/// Resources that say how something came to be, or are the same in every World.
const LEFT_OUT: [&str; 4] =
    ["events", "events.events.k8s.io", "customresourcedefinitions.apiextensions.k8s.io", windlass_sim::log::LOGS];
/// Fields of any object that change with every run.
const METADATA_LEFT_OUT: [&str; 3] = ["resourceVersion", "managedFields", "generateName"];

/// What tells where a pod runs.
const PLACES: [(&str, &[&str]); 2] = [("spec", &["nodeName"]), ("status", &["hostIP", "hostIPs", "podIP", "podIPs"])];

/// How long a uid is.
const UID_LENGTH: usize = 36;

const EVERYTHING: Range<'static> = Range { namespace: None, after: None, limit: 0 };

/// What a World is: each object by its place, resource and name.
#[derive(Debug, Clone, PartialEq)]
pub struct State(BTreeMap<String, Value>);

impl State {
    /// The state of a World.
    pub fn of(world: &World) -> Self {
        let mut servers = vec![("management".to_owned(), world.management().clone())];
        for cluster in clusters(world) {
            if let Some(workload) = world.workload(&cluster) {
                servers.push((cluster.to_string(), workload.server().clone()));
            }
        }
        let found: Vec<Found> = servers.iter().flat_map(|(place, server)| objects(place, server)).collect();
        let names = found.iter().flat_map(Found::identities).collect();
        let mut state = BTreeMap::new();
        for Found { name, mut object, drawn, .. } in found {
            normalise(&mut object, drawn, &names);
            // Pods that are alike have one name, and are told apart by their number.
            let mut numbered = name.clone();
            for number in 2.. {
                if !state.contains_key(&numbered) {
                    break;
                }
                numbered = format!("{name} #{number}");
            }
            state.insert(numbered, object);
        }
        Self(state)
    }

    /// In what it differs from another state: one line for each object, with the first field that differs.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let mut lines = Vec::new();
        for (name, object) in &self.0 {
            match other.0.get(name) {
                None => lines.push(format!("{name} is missing")),
                Some(found) if found != object => lines.extend(first_difference(name, object, found)),
                Some(_) => {}
            }
        }
        lines.extend(other.0.keys().filter(|name| !self.0.contains_key(*name)).map(|name| format!("{name} is extra")));
        lines
    }
}

/// The clusters that a World was asked for.
pub(crate) fn clusters(world: &World) -> Vec<NamespacedName> {
    let resources = [
        store_name(&TanzuKubernetesCluster::plural(&()), &TanzuKubernetesCluster::group(&())),
        store_name(&Cluster::plural(&()), &Cluster::group(&())),
    ];
    let pages = resources.map(|resource| world.management().store().list(&resource, EVERYTHING, |_| true).entries);
    let names: BTreeSet<NamespacedName> =
        pages.iter().flatten().filter_map(|entry| entry.key.to_string().parse().ok()).collect();
    names.into_iter().collect()
}

/// An object as it was found.
struct Found {
    /// Its place, resource and name.
    name: String,
    uid: String,
    object: Value,
    /// Its own name says nothing.
    drawn: bool,
}

impl Found {
    /// What stands for it in others.
    fn identities(&self) -> Vec<(String, String)> {
        let uid = (self.uid.clone(), format!("the uid of {}", self.name));
        // The infrastructure gives it, and machine and node repeat it.
        let provided =
            self.name.contains(" wcpmachines.").then(|| self.object["spec"]["providerID"].as_str()).flatten();
        let provided = provided.map(|id| (id.to_owned(), format!("the provider id of {}", self.name)));
        [uid].into_iter().chain(provided).collect()
    }
}

fn objects(place: &str, server: &ApiServer) -> Vec<Found> {
    let store = server.store();
    let mut found = Vec::new();
    for resource in store.resources().iter().filter(|resource| !LEFT_OUT.contains(&&***resource)) {
        for entry in store.list(resource, EVERYTHING, |_| true).entries {
            let mut object = entry.to_value("", "");
            match (&**resource, owner(&object)) {
                ("pods", Some(("Job", _))) => continue,
                ("pods", Some(("ReplicaSet", _))) => anywhere(&mut object),
                // What was tried on the way to an end is no part of it: who crashes tries again, and does not write down what
                // it did last.
                ("clusterupdates.windlass.dev", _) => {
                    if let Some(status) = object["status"].as_object_mut() {
                        status.retain(|field, _| !HISTORY.contains(&field.as_str()));
                    }
                }
                ("machines.cluster.x-k8s.io", _) => said_once(&mut object),
                // How often an App was looked at again while it was well: a run that takes longer has more of it.
                ("apps.kappctrl.k14s.io", _) => {
                    object["status"].as_object_mut().map(|status| status.remove("consecutiveReconcileSuccesses"));
                }
                ("jobs.batch", _) => drop(object["status"].as_object_mut().map(|status| status.remove("failed"))),
                _ => {}
            }
            let (name, drawn) = lasting_name(resource, &object, &entry.key.to_string());
            let name = format!("{place} {resource} {name}");
            found.push(Found { name, uid: entry.uid.to_string(), object, drawn });
        }
    }
    found
}

/// Where the pod of a `ReplicaSet` runs depends on which node took pods at the moment: a drain a second later, and it is another.
fn anywhere(pod: &mut Value) {
    for (part, fields) in PLACES {
        if let Some(part) = pod[part].as_object_mut() {
            part.retain(|field, _| !fields.contains(&field.as_str()));
        }
    }
}

/// Whoever makes a machine says once that it is as it should be, and again when it is not: which state of it was there the first
/// time depends on who was faster.
fn said_once(machine: &mut Value) {
    let conditions = machine["status"]["conditions"].as_array_mut().into_iter().flatten();
    for condition in conditions.filter(|condition| condition["type"] == "UpToDate") {
        condition.as_object_mut().map(|condition| condition.remove("observedGeneration"));
    }
}

/// The name of an object; for pods whose names are drawn, whose they are and where.
fn lasting_name(resource: &str, object: &Value, key: &str) -> (String, bool) {
    match owner(object) {
        Some((kind, name)) if resource == "pods" && kind != "Node" => {
            let node = object["spec"]["nodeName"].as_str().map(|node| format!(" on {node}")).unwrap_or_default();
            (format!("of {kind} {name}{node}"), true)
        }
        _ => (key.to_owned(), false),
    }
}

fn owner(object: &Value) -> Option<(&str, &str)> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    let owner = owners.iter().find(|owner| owner["controller"] == true)?;
    Some((owner["kind"].as_str()?, owner["name"].as_str()?))
}

fn normalise(object: &mut Value, drawn: bool, names: &BTreeMap<String, String>) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        let left_out = |field: &str| METADATA_LEFT_OUT.contains(&field) || drawn && field == "name";
        metadata.retain(|field, _| !left_out(field));
    }
    walk(object, names);
}

fn walk(value: &mut Value, names: &BTreeMap<String, String>) {
    match value {
        Value::String(text) => {
            if text.parse::<Timestamp>().is_ok() {
                "a time".clone_into(text);
            } else if let Some(name) = names.get(text.as_str()) {
                text.clone_from(name);
            } else if text.len() > UID_LENGTH {
                *text = without_uids(text, names);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| walk(item, names)),
        Value::Object(fields) => fields.values_mut().for_each(|field| walk(field, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A text with the objects that are meant by the uids in it: a record of objects may be a document of its own.
fn without_uids(text: &str, names: &BTreeMap<String, String>) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let pieces = text.split_inclusive(|c| !is_word(c));
    pieces.fold(String::with_capacity(text.len()), |told, piece| {
        let word = piece.trim_end_matches(|c| !is_word(c));
        match names.get(word).filter(|_| word.len() == UID_LENGTH) {
            Some(name) => told + name + &piece[word.len()..],
            None => told + piece,
        }
    })
}

/// The first field in which two objects differ.
fn first_difference(path: &str, expected: &Value, found: &Value) -> Option<String> {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            let keys = |fields: &Map<String, Value>| fields.keys().cloned().collect::<Vec<_>>();
            let mut all = [keys(expected), keys(found)].concat();
            all.sort();
            all.dedup();
            let none = Value::Null;
            let field = |fields: &Map<String, Value>, key: &str| fields.get(key).unwrap_or(&none).clone();
            all.iter()
                .find_map(|key| first_difference(&format!("{path} .{key}"), &field(expected, key), &field(found, key)))
        }
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
            let pairs = expected.iter().zip(found).enumerate();
            pairs
                .into_iter()
                .find_map(|(i, (expected, found))| first_difference(&format!("{path}[{i}]"), expected, found))
        }
        (expected, found) if expected != found => Some(format!("{path}: {found} instead of {expected}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn where_a_pod_of_several_that_are_alike_runs_and_when_a_machine_was_judged_first_is_left_out_and_no_more() {
        let pod = |node: &str, image: &str| json!({"spec": {"nodeName": node, "image": image}, "status": {"podIP": node, "phase": "Running"}});
        let [mut one, mut other, mut third] = [pod("a", "x"), pod("b", "x"), pod("b", "y")];
        [&mut one, &mut other, &mut third].into_iter().for_each(anywhere);
        assert!(one == other && one != third, "{one} {other} {third}");

        let machine = |type_: &str, status: &str, generation: u64| {
            let condition = json!({"type": type_, "status": status, "observedGeneration": generation});
            let mut machine = json!({"status": {"conditions": [condition]}});
            said_once(&mut machine);
            machine
        };
        assert_eq!(machine("UpToDate", "True", 1), machine("UpToDate", "True", 2));
        assert_ne!(machine("UpToDate", "True", 1), machine("UpToDate", "False", 1));
        assert_ne!(machine("Ready", "True", 1), machine("Ready", "True", 2));
    }

    #[test]
    fn uids_are_told_as_the_objects_that_have_them_also_inside_of_a_text() {
        let uid = |digit: &str| {
            format!(
                "{}-{}-4{}-8{}-{}",
                digit.repeat(8),
                digit.repeat(4),
                digit.repeat(3),
                digit.repeat(3),
                digit.repeat(12)
            )
        };
        let names = BTreeMap::from([(uid("1"), "the uid of a".to_owned()), (uid("2"), "the uid of b".to_owned())]);
        let record = |uid: &str| format!("[\n{{\"name\":\"a\",\"uid\":\"{uid}\"}}]");
        let told = |text: String| {
            let mut value = Value::String(text);
            walk(&mut value, &names);
            value
        };
        assert_eq!(told(uid("1")), "the uid of a");
        assert_eq!(told(record(&uid("1"))), record("the uid of a"));
        assert_eq!(told(record(&uid("2"))), record("the uid of b"), "another object of the same name is another");
        assert_eq!(told(record(&uid("3"))), record(&uid("3")), "what is not there is told as it is");
        assert_eq!(told(format!("x{}", uid("1"))), format!("x{}", uid("1")));
    }
}
