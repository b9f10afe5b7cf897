//! The cloud-config of a machine: files, and the one command that makes it a node.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use serde::Serialize;
use serde_json::{Map, Value, json};
use windlass_api::kind::bootstrap::{KubeadmConfig, NodeRegistration};
use windlass_api::kind::cluster_api::{Cluster, Machine};
use windlass_api::name::ClusterSecret;
use windlass_api::version::facts;
use windlass_runtime::chance::Seed;

use crate::management::context::{Error, path};

/// The Secrets with certificates, by what they are for.
pub(super) type Certificates = BTreeMap<ClusterSecret, Arc<Secret>>;

/// All that a cloud-config is made from.
pub(super) struct Begin<'a> {
    pub config: &'a KubeadmConfig,
    pub machine: &'a Machine,
    pub cluster: &'a Cluster,
    pub certificates: Certificates,
    /// What is in the Secrets that files are read from, by name and key.
    pub contents: BTreeMap<(String, String), String>,
    pub seed: Seed,
}

const INIT: &str = "/run/kubeadm/kubeadm.yaml";
const JOIN: &str = "/run/kubeadm/kubeadm-join-config.yaml";

/// Where kubeadm looks for certificate and key.
fn certificate_paths(secret: ClusterSecret) -> Option<[&'static str; 2]> {
    match secret {
        ClusterSecret::CertificateAuthority => Some(["/etc/kubernetes/pki/ca.crt", "/etc/kubernetes/pki/ca.key"]),
        ClusterSecret::Etcd => Some(["/etc/kubernetes/pki/etcd/ca.crt", "/etc/kubernetes/pki/etcd/ca.key"]),
        ClusterSecret::FrontProxy => {
            Some(["/etc/kubernetes/pki/front-proxy-ca.crt", "/etc/kubernetes/pki/front-proxy-ca.key"])
        }
        ClusterSecret::ServiceAccount => Some(["/etc/kubernetes/pki/sa.pub", "/etc/kubernetes/pki/sa.key"]),
        ClusterSecret::Kubeconfig => None,
    }
}

/// The cloud-config.
pub(super) fn render(begin: &Begin<'_>) -> Result<String, Error> {
    let joins = !super::begins(begin.config, begin.machine);
    let mut files =
        if super::is_worker(begin.config, begin.machine) { Vec::new() } else { certificate_files(&begin.certificates) };
    let (file, documents, command) = if joins {
        (JOIN, vec![join_configuration(begin)], format!("kubeadm join --config {JOIN}"))
    } else {
        let documents = vec![cluster_configuration(begin), init_configuration(begin)];
        (INIT, documents, format!("kubeadm init --config {INIT}"))
    };
    let mut content = String::new();
    for document in &documents {
        content.push_str("---\n");
        content.push_str(&yaml(begin, document)?);
    }
    files.push(json!({
        "path": file,
        "owner": "root:root",
        "permissions": "0640",
        "content": content,
    }));
    let said = &begin.config.spec.rest;
    files.extend(said.get("files").and_then(Value::as_array).into_iter().flatten().map(|file| written(begin, file)));
    let body = yaml(begin, &around(said, &files, &command))?;
    // The first line makes cloud-init fill in templates, which people write for the names of nodes.
    Ok(format!("## template: jinja\n#cloud-config\n\n{body}"))
}

/// A file that people ask for. What is in a Secret was looked up before.
fn written(begin: &Begin<'_>, file: &Value) -> Value {
    let mut file = file.clone();
    if let Some(fields) = file.as_object_mut()
        && let Some(from) = fields.remove("contentFrom")
    {
        let [name, key] = ["name", "key"].map(|field| from["secret"][field].as_str().unwrap_or_default());
        let content = begin.contents.get(&(name.to_owned(), key.to_owned()));
        fields.insert("content".into(), json!(content));
    }
    file
}

/// The Secrets that files of a configuration are read from: names and keys.
pub(super) fn sources(config: &KubeadmConfig) -> Vec<(String, String)> {
    let files = config.spec.rest.get("files").and_then(Value::as_array).into_iter().flatten();
    let secret = |file: &Value| {
        let secret = &file["contentFrom"]["secret"];
        Some((secret["name"].as_str()?.to_owned(), secret["key"].as_str()?.to_owned()))
    };
    files.filter_map(secret).collect()
}

/// All of a cloud-config: what people want besides is done before and after kubeadm.
fn around(said: &Map<String, Value>, files: &[Value], kubeadm: &str) -> Value {
    let verbosity = said.get("verbosity").and_then(Value::as_u64).map(|level| format!(" --v {level}"));
    let kubeadm = format!("{kubeadm}{}", verbosity.unwrap_or_default());
    let commands = |field: &str| said.get(field).and_then(Value::as_array).cloned().unwrap_or_default();
    let run: Vec<Value> =
        [commands("preKubeadmCommands"), vec![kubeadm.into()], commands("postKubeadmCommands")].concat();
    let mut all = json!({"write_files": files, "runcmd": run});
    for (field, key) in [
        ("bootCommands", "bootcmd"),
        ("users", "users"),
        ("ntp", "ntp"),
        ("mounts", "mounts"),
        ("diskSetup", "disk_setup"),
    ] {
        if let Some(value) = said.get(field) {
            all[key] = value.clone();
        }
    }
    all
}

fn yaml(begin: &Begin<'_>, value: &Value) -> Result<String, Error> {
    serde_saphyr::to_string(value).map_err(|error| Error::Text {
        what: format!("write the bootstrap data of {}", path(&begin.config.metadata)),
        why: error.to_string(),
    })
}

fn certificate_files(certificates: &Certificates) -> Vec<Value> {
    let mut files = Vec::new();
    for (secret, object) in certificates {
        let content = |key: &str| {
            let bytes = object.data.as_ref().and_then(|data| data.get(key));
            bytes.map(|bytes| String::from_utf8_lossy(&bytes.0).into_owned()).unwrap_or_default()
        };
        let Some([certificate, key]) = certificate_paths(*secret) else { continue };
        for (path, key, permissions) in [(certificate, "tls.crt", "0640"), (key, "tls.key", "0600")] {
            files
                .push(json!({"path": path, "owner": "root:root", "permissions": permissions, "content": content(key)}));
        }
    }
    files
}

/// The group and version of kubeadm's configuration that the kubeadm of a machine reads.
fn api_version(machine: &Machine) -> &'static str {
    let version = machine.spec.version.as_deref().and_then(|version| version.parse().ok());
    version.as_ref().map_or(facts::KUBEADM_API_LATEST, facts::kubeadm_api)
}

/// A document of kubeadm's configuration: what people said, and over it what only we know. What is null is left out.
fn document(begin: &Begin<'_>, kind: &str, said: &impl Serialize, known: Value) -> Value {
    let mut document = Map::new();
    document.insert("apiVersion".into(), api_version(begin.machine).into());
    document.insert("kind".into(), kind.into());
    for fields in [json!(said), known] {
        if let Value::Object(fields) = fields {
            document.extend(fields.into_iter().filter(|(_, value)| !value.is_null()));
        }
    }
    Value::Object(document)
}

fn cluster_configuration(begin: &Begin<'_>) -> Value {
    let given = begin.config.spec.cluster_configuration.clone().unwrap_or_default();
    let network = begin.cluster.spec.cluster_network.clone().unwrap_or_default();
    let blocks = |of: &str| {
        let blocks = network[of]["cidrBlocks"].as_array()?;
        Some(blocks.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","))
    };
    let mut networking = Map::new();
    for (field, value) in [
        ("serviceSubnet", blocks("services")),
        ("podSubnet", blocks("pods")),
        ("dnsDomain", network["serviceDomain"].as_str().map(str::to_owned)),
    ] {
        networking.extend(value.map(|value| (field.to_owned(), Value::String(value))));
    }
    let said = given.rest.get("controlPlaneEndpoint").and_then(Value::as_str).filter(|said| !said.is_empty());
    let known = json!({
        "clusterName": begin.cluster.metadata.name,
        "kubernetesVersion": begin.machine.spec.version,
        "controlPlaneEndpoint": said.map(str::to_owned).or_else(|| endpoint(begin)),
        "networking": if networking.is_empty() { Value::Null } else { Value::Object(networking) },
    });
    document(begin, "ClusterConfiguration", &given, known)
}

fn init_configuration(begin: &Begin<'_>) -> Value {
    let given = begin.config.spec.init_configuration.clone().unwrap_or_default();
    let known = json!({"nodeRegistration": registration(begin, &given.node_registration)});
    document(begin, "InitConfiguration", &given, known)
}

fn join_configuration(begin: &Begin<'_>) -> Value {
    let given = begin.config.spec.join_configuration.clone().unwrap_or_default();
    let known = json!({
        "nodeRegistration": registration(begin, &given.node_registration),
        "discovery": {"bootstrapToken": {
            "apiServerEndpoint": endpoint(begin),
            "token": token(begin),
            "unsafeSkipCAVerification": true,
        }},
    });
    document(begin, "JoinConfiguration", &given, known)
}

/// The node has the name of its Machine, which is what the templates that people write for it come to.
fn registration(begin: &Begin<'_>, given: &NodeRegistration) -> Value {
    let mut registration = json!(given);
    registration["name"] = json!(begin.machine.metadata.name);
    registration
}

fn endpoint(begin: &Begin<'_>) -> Option<String> {
    let endpoint = begin.cluster.spec.control_plane_endpoint.as_ref()?;
    Some(format!("{}:{}", endpoint.host, endpoint.port))
}

/// A bootstrap token: six and sixteen digits or letters.
fn token(begin: &Begin<'_>) -> String {
    let mut chance = begin.seed.stream(&format!("bootstrap token {}", path(&begin.config.metadata)));
    let id = chance.u64() & 0x00ff_ffff;
    format!("{id:06x}.{:016x}", chance.u64())
}
