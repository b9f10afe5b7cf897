//! What a file asks to be created: one cluster of a class, and what has to be there before it.

use serde_json::{Map, Value, json};
use windlass_api::kind::cluster_api::{Cluster, GROUP};
use windlass_api::name::{ClusterName, NameError, Namespace};
use windlass_api::version::VersionPrefix;
use windlass_api::{annotation, label};

use super::v1beta1;

/// What is given beside a file.
#[derive(Debug, Clone, Copy)]
pub struct Given<'a> {
    /// The name of the cluster.
    pub name: Option<&'a ClusterName>,
    /// Where it is to be.
    pub namespace: &'a Namespace,
    /// Its release, or the beginning of its version.
    pub release: Option<&'a VersionPrefix>,
}

/// What is to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// The name of the cluster.
    pub name: ClusterName,
    /// The cluster, as it is sent.
    pub object: Value,
    /// What has to be there before it, in the order of the file.
    pub before: Vec<Value>,
}

/// Why a file cannot be created.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// It has no cluster.
    #[error("there is no Cluster in it{}", among(found))]
    None {
        /// The kinds that are there.
        found: Vec<String>,
    },
    /// It has several.
    #[error("there are {count} Clusters in it, and one is created at a time")]
    Several {
        /// How many.
        count: usize,
    },
    /// The version of its kind is none that is known.
    #[error("apiVersion of the Cluster: {found:?} is not accepted; cluster.x-k8s.io/v1beta2 and v1beta1 are")]
    Version {
        /// What it is.
        found: String,
    },
    /// It is of no class.
    #[error("the Cluster {name} has no spec.topology: only clusters of a class are created")]
    NoTopology {
        /// Its name.
        name: String,
    },
    /// Its class has no name.
    #[error("spec.topology.classRef.name of the Cluster {name} is missing")]
    NoClass {
        /// Its name.
        name: String,
    },
    /// Nobody would make it.
    #[error("the Cluster {name} has spec.paused: true: nobody would make it")]
    Paused {
        /// Its name.
        name: String,
    },
    /// It has no name that could be used.
    #[error("metadata.name of the Cluster: {0}")]
    Name(NameError),
    /// The name beside it is another one.
    #[error("the Cluster in it is {inside:?}, and the name that was given is {given:?}")]
    OtherName {
        /// The one in the file.
        inside: String,
        /// The one beside it.
        given: String,
    },
    /// It is for another namespace.
    #[error("{object} is for the namespace {namespace}")]
    OtherNamespace {
        /// What is.
        object: String,
        /// Which.
        namespace: String,
    },
    /// Two releases are asked for.
    #[error("{field} is {inside}, and --tkr asks for {given}, which is another release")]
    OtherRelease {
        /// The field.
        field: String,
        /// What the file asks for.
        inside: String,
        /// What is asked for beside it.
        given: VersionPrefix,
    },
    /// A field cannot be read.
    #[error("{field} of the Cluster cannot be read; {accepted} is accepted")]
    Field {
        /// The field.
        field: String,
        /// What would be accepted.
        accepted: String,
    },
    /// A field means something else in v1beta2.
    #[error("{field} of the Cluster is written otherwise in cluster.x-k8s.io/v1beta2, and is not guessed at")]
    Former {
        /// The field.
        field: String,
    },
    /// An object does not say what it is.
    #[error("document {position}: {field} is missing")]
    Nameless {
        /// Which of the documents, from one.
        position: usize,
        /// What it does not say.
        field: &'static str,
    },
    /// The cluster is not what a Cluster is.
    #[error("the Cluster cannot be read: {why}")]
    Shape {
        /// Why.
        why: String,
    },
}

fn among(found: &[String]) -> String {
    if found.is_empty() { String::new() } else { format!(": it has {}", found.join(", ")) }
}

impl Manifest {
    /// Reads the documents of a file. What a server has written does not describe a cluster that is yet to be: it is taken away.
    pub fn of(documents: Vec<Value>, given: &Given<'_>) -> Result<Self, ManifestError> {
        let objects = named(documents)?;
        let found = objects.iter().map(|object| text(&object["kind"]).to_owned()).collect();
        let (mut clusters, before): (Vec<Value>, Vec<Value>) = objects.into_iter().partition(is_cluster);
        let count = clusters.len();
        let (Some(cluster), 1) = (clusters.pop(), count) else {
            return Err(if count == 0 { ManifestError::None { found } } else { ManifestError::Several { count } });
        };
        let cluster = match text(&cluster["apiVersion"]) {
            "cluster.x-k8s.io/v1beta2" => cluster,
            "cluster.x-k8s.io/v1beta1" => v1beta1::upgraded(cluster)?,
            other => return Err(ManifestError::Version { found: other.to_owned() }),
        };
        let name = name(&cluster, given)?;
        let mut object = anew(&cluster, &name)?;
        for other in std::iter::once(&object).chain(&before) {
            in_namespace(other, given.namespace)?;
        }
        object["metadata"]["namespace"] = json!(given.namespace);
        ask_for(&mut object, given.release)?;
        Ok(Self { name, object, before })
    }

    /// The fields of the cluster that nobody here knows: newer ones than ours, or misspelled ones. They are sent as they are.
    pub fn strangers(&self) -> Result<Vec<String>, ManifestError> {
        let known = serde_json::to_value(self.cluster()?);
        let known = known.map_err(|error| ManifestError::Shape { why: error.to_string() })?;
        let mut found = Vec::new();
        strangers("spec", &self.object["spec"], &known["spec"], &mut found);
        found.sort_unstable();
        Ok(found)
    }

    /// The cluster as what it is.
    pub fn cluster(&self) -> Result<Cluster, ManifestError> {
        let read = serde_json::from_value(self.object.clone());
        read.map_err(|error| ManifestError::Shape { why: error.to_string() })
    }
}

/// The fields that are in an object, and not in what was understood of it. What is empty says nothing.
fn strangers(path: &str, object: &Value, known: &Value, found: &mut Vec<String>) {
    match object {
        Value::Object(fields) => {
            for (key, value) in fields {
                strangers(&format!("{path}.{key}"), value, &known[key], found);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                strangers(&format!("{path}[{index}]"), value, &known[index], found);
            }
        }
        _ if known.is_null() && !object.is_null() => found.push(path.to_owned()),
        _ => {}
    }
}

/// All objects, of lists too; each says what it is.
fn named(documents: Vec<Value>) -> Result<Vec<Value>, ManifestError> {
    let mut objects = Vec::new();
    for (position, document) in documents.into_iter().enumerate() {
        match &document["items"] {
            Value::Array(items) if document["kind"] == "List" => objects.extend(items.clone()),
            _ => objects.push(document),
        }
        for object in &objects {
            let missing = [("apiVersion", &object["apiVersion"]), ("kind", &object["kind"])];
            let missing = missing.into_iter().chain([("metadata.name", &object["metadata"]["name"])]);
            if let Some((field, _)) = missing.into_iter().find(|(_, value)| text(value).is_empty()) {
                return Err(ManifestError::Nameless { position: position + 1, field });
            }
        }
    }
    Ok(objects)
}

fn is_cluster(object: &Value) -> bool {
    let group = text(&object["apiVersion"]).split('/').next().unwrap_or_default();
    object["kind"] == "Cluster" && group == GROUP
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn name(cluster: &Value, given: &Given<'_>) -> Result<ClusterName, ManifestError> {
    let inside = text(&cluster["metadata"]["name"]);
    match given.name {
        Some(given) if given.as_str() != inside => {
            Err(ManifestError::OtherName { inside: inside.to_owned(), given: given.to_string() })
        }
        _ => inside.parse().map_err(ManifestError::Name),
    }
}

fn in_namespace(object: &Value, namespace: &Namespace) -> Result<(), ManifestError> {
    match object["metadata"]["namespace"].as_str() {
        Some(other) if other != namespace.as_str() => {
            let object = format!("{}/{}", text(&object["kind"]), text(&object["metadata"]["name"]));
            Err(ManifestError::OtherNamespace { object, namespace: other.to_owned() })
        }
        _ => Ok(()),
    }
}

/// What tools write on a cluster for themselves, and what was true of another one.
const OF_ANOTHER: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    annotation::OPERATION_INFO.name,
    annotation::OPERATION_OBSERVED.name,
    annotation::RELEASE_COPY.name,
    annotation::HELD_FOR_RELEASE.name,
    annotation::PENDING_HOOKS.name,
];

/// The cluster without what is written by servers and controllers.
fn anew(cluster: &Value, name: &ClusterName) -> Result<Value, ManifestError> {
    let mut spec = cluster["spec"].clone();
    if !spec["topology"].is_object() {
        return Err(ManifestError::NoTopology { name: name.to_string() });
    }
    if text(&spec["topology"]["classRef"]["name"]).is_empty() {
        return Err(ManifestError::NoClass { name: name.to_string() });
    }
    if spec["paused"] == true {
        return Err(ManifestError::Paused { name: name.to_string() });
    }
    if let Some(spec) = spec.as_object_mut() {
        // They follow from the class.
        for field in ["infrastructureRef", "controlPlaneRef", "controlPlaneEndpoint"] {
            spec.remove(field);
        }
    }
    let mut metadata = Map::from_iter([("name".to_owned(), json!(name))]);
    for field in ["namespace", "labels", "annotations"] {
        if let Some(value) = cluster["metadata"].get(field).filter(|value| !value.is_null()) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.retain(|key, _| !OF_ANOTHER.contains(&key.as_str()));
    }
    Ok(json!({"apiVersion": cluster["apiVersion"], "kind": "Cluster", "metadata": metadata, "spec": spec}))
}

/// Has the cluster ask for the release that was given beside the file, unless the file asks for another one.
fn ask_for(cluster: &mut Value, release: Option<&VersionPrefix>) -> Result<(), ManifestError> {
    let Some(release) = release else { return Ok(()) };
    let key = label::RELEASE.name;
    let asked = [
        ("spec.topology.version".to_owned(), text(&cluster["spec"]["topology"]["version"])),
        (format!("metadata.labels[{key}]"), text(&cluster["metadata"]["labels"][key])),
    ];
    let mut exact = release.as_str().to_owned();
    for (field, inside) in asked.into_iter().filter(|(_, inside)| !inside.is_empty()) {
        match inside.parse::<VersionPrefix>().ok().filter(|other| other.agrees(release)) {
            Some(other) if other.as_str().len() > exact.len() => other.as_str().clone_into(&mut exact),
            Some(_) => {}
            None => {
                let inside = inside.to_owned();
                return Err(ManifestError::OtherRelease { field, inside, given: release.clone() });
            }
        }
    }
    cluster["spec"]["topology"]["version"] = json!(exact);
    Ok(())
}
