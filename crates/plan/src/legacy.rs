//! Flat configurations of the past (`CLUSTER_NAME: …`), told as clusters of a class.
//!
//! `windlass create cluster -f` takes both; what is created is always the manifest that comes out of here, which people get to
//! see first. Nothing is dropped in silence: a key that is not carried over is named with its reason, and a key that nobody
//! knows is refused. Credentials are never carried over.

mod key;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use windlass_api::annotation;
use windlass_api::name::{ClusterName, NameError, Namespace, ReleaseName};
use windlass_api::version::{KubernetesVersion, VersionPrefix};

use crate::release::yaml;
use key::{Meaning, closest, meaning};

/// A flat configuration, as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration(BTreeMap<String, String>);

/// What a configuration is read beside.
#[derive(Debug, Clone, PartialEq)]
pub struct Beside<'a> {
    /// The name that was given apart from it.
    pub name: Option<&'a ClusterName>,
    /// The namespace that is used where it has none.
    pub namespace: &'a Namespace,
    /// The release that was given apart from it, or the beginning of its version.
    pub release: Option<&'a VersionPrefix>,
    /// Where its class is, if that is another namespace than that of the cluster.
    pub class_namespace: Option<&'a str>,
    /// The variables that its class knows; `None` where the class cannot be asked.
    pub variables: Option<&'a BTreeSet<String>>,
}

/// What became of a configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Converted {
    /// The `Cluster`, and what has to be there before it.
    pub objects: Vec<Value>,
    /// The class that it is of.
    pub class: String,
    /// Keys that are not carried over, and why.
    pub left_out: BTreeMap<String, String>,
}

/// Why a text is no configuration that a cluster could be made of.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LegacyError {
    /// It is not a list of keys and values.
    #[error("it is neither a manifest nor a flat configuration: {why}")]
    Syntax {
        /// What is wrong with it.
        why: String,
    },
    /// A key has a list or a mapping.
    #[error("{key} is not a single value")]
    NotFlat {
        /// The key.
        key: String,
    },
    /// Nobody knows a key.
    #[error("{key} is no key of a configuration{}", closest.map(|near| format!("; did you mean {near}?")).unwrap_or_default())]
    Unknown {
        /// The key.
        key: String,
        /// One that is spelled almost so.
        closest: Option<&'static str>,
    },
    /// A key has a value that it cannot have.
    #[error("{key}: {value:?} is not accepted; {accepted}")]
    Value {
        /// The key.
        key: String,
        /// What it has.
        value: String,
        /// What would be accepted.
        accepted: String,
    },
    /// A key is missing that cannot be chosen.
    #[error("{key} is missing, and {why}")]
    Missing {
        /// The key.
        key: &'static str,
        /// Why it cannot be left out.
        why: &'static str,
    },
    /// The name beside it is another one.
    #[error("CLUSTER_NAME is {inside:?}, and the name that was given is {given:?}")]
    OtherName {
        /// The one in the configuration.
        inside: String,
        /// The one beside it.
        given: String,
    },
    /// The release beside it is another one.
    #[error("KUBERNETES_VERSION is {inside}, and --tkr asks for {given}, which is another release")]
    OtherRelease {
        /// The one in the configuration.
        inside: String,
        /// The one beside it.
        given: VersionPrefix,
    },
    /// The name cannot be.
    #[error("CLUSTER_NAME: {0}")]
    Name(NameError),
}

impl Configuration {
    /// Reads a text. `None` if it is a manifest: it says what kind of object it is.
    pub fn read(text: &str) -> Result<Option<Self>, LegacyError> {
        let syntax = |why: String| LegacyError::Syntax { why };
        let mut documents: Vec<Value> = yaml::documents(text).map_err(|cause| syntax(cause.to_string()))?;
        documents.retain(|document| !document.is_null());
        let is_manifest = |document: &Value| document.get("kind").is_some() || document.get("apiVersion").is_some();
        if documents.iter().any(is_manifest) {
            return Ok(None);
        }
        let [Value::Object(fields)] = &mut documents[..] else {
            return Err(syntax("it has no keys and values, or several documents of them".to_owned()));
        };
        std::mem::take(fields).into_iter().map(flat).collect::<Result<_, _>>().map(|keys| Some(Self(keys)))
    }

    /// The name of the class that it asks for, by its provider.
    pub fn class(&self) -> Result<String, LegacyError> {
        class(self)
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The value of a key that says yes or no.
    fn flag(&self, key: &str) -> Result<Option<bool>, LegacyError> {
        let parse = |value: &str| match value {
            "true" | "yes" => Ok(true),
            "false" | "no" => Ok(false),
            _ => Err(refused(key, value, "true and false are")),
        };
        self.get(key).map(parse).transpose()
    }

    /// The value of a key that is a number.
    fn number(&self, key: &str) -> Result<Option<u32>, LegacyError> {
        let parse = |value: &str| value.parse().map_err(|_| refused(key, value, "a number is"));
        self.get(key).map(parse).transpose()
    }
}

fn flat((key, value): (String, Value)) -> Result<(String, String), LegacyError> {
    let text = match value {
        Value::Null => String::new(),
        Value::String(text) => text,
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Array(_) | Value::Object(_) => return Err(LegacyError::NotFlat { key }),
    };
    Ok((key, text))
}

fn refused(key: &str, value: &str, accepted: &str) -> LegacyError {
    LegacyError::Value { key: key.to_owned(), value: value.to_owned(), accepted: accepted.to_owned() }
}

/// The manifest of the cluster that a configuration asks for.
pub fn convert(configuration: &Configuration, beside: &Beside<'_>) -> Result<Converted, LegacyError> {
    let mut left_out = known(configuration)?;
    if configuration.flag("ALLOW_LEGACY_CLUSTER")? == Some(true) {
        return Err(refused("ALLOW_LEGACY_CLUSTER", "true", "only clusters of a class are made"));
    }
    let name = name(configuration, beside)?;
    let class = class(configuration)?;
    let (annotations, objects) = network_addon(configuration, beside, &name)?;
    let (control_plane, workers) = counts(configuration)?;
    let images = images(configuration);
    let mut metadata = json!({"name": name, "namespace": namespace(configuration, beside)});
    if !annotations.is_empty() {
        metadata["annotations"] = Value::Object(annotations);
    }
    let variables = variables(configuration, beside, &class, &mut left_out)?;
    let mut topology = json!({
        "classRef": class_reference(&class, beside),
        "version": version(configuration, beside)?,
        "controlPlane": {"replicas": control_plane},
        "workers": {"machineDeployments": [{"class": "tkg-worker", "name": "md-0", "replicas": workers}]},
    });
    if let Some(images) = images {
        let metadata = json!({"annotations": {annotation::RESOLVE_OS_IMAGE.name: images}});
        topology["controlPlane"]["metadata"] = metadata.clone();
        topology["workers"]["machineDeployments"][0]["metadata"] = metadata;
    }
    if !variables.is_empty() {
        topology["variables"] = Value::Array(variables);
    }
    let mut spec = json!({"topology": topology});
    if let Some(network) = network(configuration) {
        spec["clusterNetwork"] = network;
    }
    let cluster =
        json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": metadata, "spec": spec});
    Ok(Converted { objects: objects.into_iter().chain([cluster]).collect(), class, left_out })
}

/// Refuses keys that nobody knows; names those that are not carried over.
fn known(configuration: &Configuration) -> Result<BTreeMap<String, String>, LegacyError> {
    let mut left_out = BTreeMap::new();
    for key in configuration.0.keys() {
        match meaning(key) {
            Some(Meaning::Converted) => {}
            Some(Meaning::LeftOut(why)) => {
                left_out.insert(key.clone(), why.to_owned());
            }
            None => return Err(LegacyError::Unknown { key: key.clone(), closest: closest(key) }),
        }
    }
    Ok(left_out)
}

fn name(configuration: &Configuration, beside: &Beside<'_>) -> Result<ClusterName, LegacyError> {
    match (configuration.get("CLUSTER_NAME"), beside.name) {
        (Some(inside), Some(given)) if inside != given.as_str() => {
            Err(LegacyError::OtherName { inside: inside.to_owned(), given: given.to_string() })
        }
        (_, Some(given)) => Ok(given.clone()),
        (Some(inside), None) => inside.parse().map_err(LegacyError::Name),
        (None, None) => Err(LegacyError::Missing { key: "CLUSTER_NAME", why: "a cluster needs a name" }),
    }
}

fn namespace(configuration: &Configuration, beside: &Beside<'_>) -> String {
    configuration.get("NAMESPACE").map_or_else(|| beside.namespace.to_string(), str::to_owned)
}

/// The release: by what is given beside the configuration, or by what it says.
fn version(configuration: &Configuration, beside: &Beside<'_>) -> Result<String, LegacyError> {
    let version = configuration.get("KUBERNETES_VERSION");
    if let Some(release) = beside.release {
        let Some(version) = version else { return Ok(release.to_string()) };
        let agreeing = version.parse::<VersionPrefix>().ok().filter(|version| release.agrees(version));
        let other = || LegacyError::OtherRelease { inside: version.to_owned(), given: release.clone() };
        let inside = agreeing.ok_or_else(other)?;
        // The one that says more.
        return Ok(if inside.as_str().len() > release.as_str().len() { inside } else { release.clone() }.to_string());
    }
    let why = "without --tkr it is the only way to say which release";
    version.map(str::to_owned).ok_or(LegacyError::Missing { key: "KUBERNETES_VERSION", why })
}

fn class(configuration: &Configuration) -> Result<String, LegacyError> {
    let why = "it says which class of clusters it is";
    let provider = configuration.get("INFRASTRUCTURE_PROVIDER");
    match provider.ok_or(LegacyError::Missing { key: "INFRASTRUCTURE_PROVIDER", why })? {
        known @ ("vsphere" | "aws" | "azure") => Ok(format!("tkg-{known}-default-v1.0.0")),
        other => Err(refused("INFRASTRUCTURE_PROVIDER", other, "vsphere, aws and azure are")),
    }
}

/// A class, with its namespace where that is another one.
fn class_reference(class: &str, beside: &Beside<'_>) -> Value {
    match beside.class_namespace {
        Some(namespace) => json!({"name": class, "namespace": namespace}),
        None => json!({"name": class}),
    }
}

/// Machines of the control plane, and workers: by the plan, or as they are counted.
fn counts(configuration: &Configuration) -> Result<(u32, u32), LegacyError> {
    let (control_plane, workers) = match configuration.get("CLUSTER_PLAN") {
        None | Some("dev" | "devcc") => (1, 1),
        Some("prod" | "prodcc") => (3, 3),
        Some(other) => return Err(refused("CLUSTER_PLAN", other, "dev and prod are")),
    };
    let counted = configuration.number("CONTROL_PLANE_MACHINE_COUNT")?.unwrap_or(control_plane);
    if !crate::target::CONTROL_PLANE_COUNTS.contains(&counted) {
        return Err(refused("CONTROL_PLANE_MACHINE_COUNT", &counted.to_string(), "1, 3 and 5 are"));
    }
    Ok((counted, configuration.number("WORKER_MACHINE_COUNT")?.unwrap_or(workers)))
}

/// The labels of the image of all machines.
fn images(configuration: &Configuration) -> Option<String> {
    let keys = [("OS_NAME", "os-name"), ("OS_VERSION", "os-version"), ("OS_ARCH", "os-arch")];
    // A version is written 20.04 by people, and 2004 on images.
    let label = |(key, label)| configuration.get(key).map(|value| format!("{label}={}", value.replace('.', "")));
    let labels: Vec<String> = keys.into_iter().filter_map(label).collect();
    (!labels.is_empty()).then(|| labels.join(","))
}

fn network(configuration: &Configuration) -> Option<Value> {
    let mut network = Map::new();
    for (key, field) in [("CLUSTER_CIDR", "pods"), ("SERVICE_CIDR", "services")] {
        if let Some(value) = configuration.get(key) {
            let blocks: Vec<&str> = value.split(',').map(str::trim).collect();
            network.insert(field.to_owned(), json!({"cidrBlocks": blocks}));
        }
    }
    if let Some(domain) = configuration.get("SERVICE_DOMAIN") {
        network.insert("serviceDomain".to_owned(), domain.into());
    }
    (!network.is_empty()).then_some(Value::Object(network))
}

/// What connects the pods. The release has one; another choice is made in a `ClusterBootstrap` that is there before the cluster,
/// and filled up from the release.
fn network_addon(
    configuration: &Configuration,
    beside: &Beside<'_>,
    name: &ClusterName,
) -> Result<(Map<String, Value>, Option<Value>), LegacyError> {
    let annotated = |name: &str| Map::from_iter([(name.to_owned(), Value::from(""))]);
    match configuration.get("CNI") {
        None | Some("antrea") => Ok((Map::new(), None)),
        Some("none") => Ok((annotated(annotation::UNMANAGED_CNI.name), None)),
        Some("calico") => {
            let whole = beside.release.and_then(|release| release.as_str().parse::<KubernetesVersion>().ok());
            let why = "with CNI: calico the release must be given in full";
            let release = ReleaseName::from(&whole.ok_or(LegacyError::Missing { key: "--tkr", why })?);
            let bootstrap = json!({
                "apiVersion": "run.tanzu.vmware.com/v1alpha3", "kind": "ClusterBootstrap",
                "metadata": {"name": name, "namespace": namespace(configuration, beside),
                    "annotations": {annotation::ADD_MISSING_FIELDS.name: release}},
                "spec": {"cni": {"refName": "calico*"}},
            });
            Ok((annotated(annotation::CUSTOM_BOOTSTRAP.name), Some(bootstrap)))
        }
        Some(other) => Err(refused("CNI", other, "antrea, calico and none are")),
    }
}

/// What the class is told, as far as it has a variable for it.
fn variables(
    configuration: &Configuration,
    beside: &Beside<'_>,
    class: &str,
    left_out: &mut BTreeMap<String, String>,
) -> Result<Vec<Value>, LegacyError> {
    let mut variables: BTreeMap<&str, Value> = BTreeMap::new();
    for (key, path) in key::VARIABLES {
        let Some(value) = configuration.get(key) else { continue };
        let (variable, field) = path.split_once('.').map_or((*path, None), |(variable, field)| (variable, Some(field)));
        if beside.variables.is_some_and(|known| !known.contains(variable)) {
            left_out.insert((*key).to_owned(), format!("the class {class} has no variable {variable}"));
            continue;
        }
        let value = match key::sort(key) {
            key::Sort::Text => Value::from(value),
            key::Sort::Flag => configuration.flag(key)?.into(),
            key::Sort::Number => configuration.number(key)?.into(),
            key::Sort::List => value.split(',').map(str::trim).collect(),
        };
        match field {
            None => drop(variables.insert(variable, value)),
            Some(field) => put(variables.entry(variable).or_insert_with(|| json!({})), field, value),
        }
    }
    Ok(variables.into_iter().map(|(name, value)| json!({"name": name, "value": value})).collect())
}

/// Puts a value under a path of names.
fn put(object: &mut Value, path: &str, value: Value) {
    match path.split_once('.') {
        None => object[path] = value,
        Some((first, rest)) => {
            if object[first].is_null() {
                object[first] = json!({});
            }
            put(&mut object[first], rest, value);
        }
    }
}
