//! What is installed on a management cluster, as objects: the same for `windlass install` and for the files in `deploy/`.
//!
//! What is ours to remove is known by a label that everything has. Namespaces and definitions have it, too, and are removed by
//! nobody: clusters are in them.

mod rights;
mod workloads;

use serde_json::{Map, Value, json};
use windlass_api::key::Present;
use windlass_api::kind::definition;
use windlass_api::label;
use windlass_controller::certificates::SECRET;
use windlass_controller::hooks;
use windlass_controller::reconcile::JOB_NAMESPACE;
use windlass_controller::rights::{Component, SYSTEM};
use windlass_controller::webhooks::{self, NAMESPACE, PART_OF};
use windlass_plan::profile::{self, Profile};
use windlass_plan::resolve::hold::HoldBy;

/// The image that goes with this program. Where it comes from is for whoever installs it to say.
pub const IMAGE: &str = concat!("windlass:", env!("CARGO_PKG_VERSION"));

/// What may be chosen.
#[derive(Debug, Clone)]
pub struct Choices {
    /// The image that is run.
    pub image: String,
    /// How machines are kept back until packages are in.
    pub hold: HoldBy,
    /// Infrastructure beside the built-in one.
    pub infrastructure: Vec<Added>,
}

/// An infrastructure profile, and the text that it was read from.
#[derive(Debug, Clone)]
pub struct Added {
    /// What it says.
    pub profile: Profile,
    /// The text.
    pub text: String,
}

impl Default for Choices {
    fn default() -> Self {
        Self { image: IMAGE.to_owned(), hold: HoldBy::Pause, infrastructure: Vec::new() }
    }
}

/// A part of what is installed: a file of `deploy/install`.
pub struct Manifest {
    /// Its name, without an ending.
    #[cfg_attr(not(test), expect(dead_code, reason = "only the files have names"))]
    pub name: &'static str,
    /// What is in it, in the order in which it is written.
    pub objects: Vec<Value>,
}

/// The definitions of our kinds.
pub fn definitions() -> Result<Vec<Value>, serde_json::Error> {
    definition::ours().iter().map(|definition| serde_json::to_value(definition).map(labelled)).collect()
}

/// Everything else, in the order in which it is written: whoever is asked about writes comes last, when somebody can answer.
pub fn manifests(choices: &Choices) -> Vec<Manifest> {
    let manifest = |name, objects: Vec<Value>| Manifest { name, objects: objects.into_iter().map(labelled).collect() };
    let mut all = vec![manifest("namespaces", namespaces()), manifest("rights", rights::objects())];
    if !choices.infrastructure.is_empty() {
        all.push(manifest("infrastructure", choices.infrastructure.iter().flat_map(infrastructure).collect()));
    }
    all.extend([
        manifest("network", workloads::network()),
        manifest("controllers", workloads::controllers(choices)),
        manifest("answers", [services(), workloads::answers(choices)].concat()),
        manifest("webhooks", webhooks::configurations(None).to_vec()),
    ]);
    all
}

/// The same with the label by which it is known.
fn labelled(mut object: Value) -> Value {
    if !object["metadata"]["labels"].is_object() {
        object["metadata"]["labels"] = Value::Object(Map::new());
    }
    object["metadata"]["labels"][PART_OF.0] = json!(PART_OF.1);
    object
}

/// A profile where it is looked for, and the right to do what it is for.
pub fn infrastructure(added: &Added) -> Vec<Value> {
    let (key, value) = label::INFRASTRUCTURE_PROFILE.entry(&Present);
    let map = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": format!("infrastructure-{}", added.profile.map_kind()),
            "namespace": NAMESPACE,
            "labels": { key: value },
        },
        "data": { profile::KEY: added.text },
    });
    [vec![map], rights::of_profile(&added.profile)].concat()
}

/// Our own allows nothing that can be done without. The pods of Jobs are what their cluster's update says, which a running one
/// does not change: theirs forbids what is known to be dangerous. Where releases are is not ours alone, and is left as it is.
fn namespaces() -> Vec<Value> {
    let namespace = |name: &str, level: Option<&str>| {
        let mut object = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        if let Some(level) = level {
            object["metadata"]["labels"] = json!({
                "pod-security.kubernetes.io/enforce": level,
                "pod-security.kubernetes.io/warn": "restricted",
            });
        }
        object
    };
    vec![namespace(NAMESPACE, Some("restricted")), namespace(JOB_NAMESPACE, Some("baseline")), namespace(SYSTEM, None)]
}

/// Where those who ask find us, and the Secret that what they are answered with is kept in. It is made here, empty, so that nobody
/// needs the right to make Secrets.
fn services() -> Vec<Value> {
    let [hook_service, hook_namespace] = hooks::SERVICE;
    let service = |name: &str, namespace: &str| {
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": { "name": name, "namespace": namespace },
            "spec": {
                "selector": workloads::selector(Component::Answers),
                "ports": [{ "name": "https", "port": 443, "targetPort": "https", "protocol": "TCP" }],
            },
        })
    };
    vec![
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": { "name": SECRET, "namespace": NAMESPACE },
        }),
        service(webhooks::SERVICE, NAMESPACE),
        service(hook_service, hook_namespace),
    ]
}

/// Objects as a file.
pub fn yaml(objects: &[Value]) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    let mut text = String::new();
    for object in objects {
        text.push_str(if text.is_empty() { "" } else { "---\n" });
        text.push_str(&serde_saphyr::to_string(object)?);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    const HEADER: &str = "# Made by `windlass install -o yaml`. Do not edit: WINDLASS_UPDATE=1 cargo test -p windlass --bin windlass manifests\n";

    fn folder() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
    }

    fn files() -> BTreeMap<String, String> {
        let manifests = manifests(&Choices::default());
        let mut resources: Vec<String> = definitions()
            .unwrap()
            .iter()
            .map(|definition| format!("crds/{}.yaml", definition["metadata"]["name"].as_str().unwrap()))
            .collect();
        resources.extend(manifests.iter().map(|manifest| format!("install/{}.yaml", manifest.name)));
        let mut files: BTreeMap<String, String> = manifests
            .iter()
            .map(|manifest| {
                (format!("install/{}.yaml", manifest.name), format!("{HEADER}{}", yaml(&manifest.objects).unwrap()))
            })
            .collect();
        let kustomization = json!({
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": resources,
            "labels": [{ "pairs": { (PART_OF.0): PART_OF.1 } }],
        });
        let text = serde_saphyr::to_string(&kustomization).unwrap();
        files.insert("kustomization.yaml".to_owned(), format!("{HEADER}{text}"));
        files
    }

    #[test]
    fn the_manifests_in_deploy_are_those_of_this_program() {
        let files = files();
        if std::env::var_os("WINDLASS_UPDATE").is_some() {
            fs::create_dir_all(folder().join("install")).unwrap();
            for (name, text) in &files {
                fs::write(folder().join(name), text).unwrap();
            }
        }
        for (name, text) in &files {
            let written = fs::read_to_string(folder().join(name)).unwrap_or_default();
            assert!(written == *text, "deploy/{name} is stale: {HEADER}");
        }
        for entry in fs::read_dir(folder().join("install")).unwrap() {
            let name = format!("install/{}", entry.unwrap().file_name().to_str().unwrap());
            assert!(files.contains_key(&name), "deploy/{name} is nobody's");
        }
    }

    fn all() -> Vec<Value> {
        manifests(&Choices::default()).into_iter().flat_map(|manifest| manifest.objects).collect()
    }

    #[test]
    fn pods_are_as_restricted_as_pods_can_be() {
        let mut deployments = 0;
        for object in all().iter().filter(|object| object["kind"] == "Deployment") {
            deployments += 1;
            let pod = &object["spec"]["template"]["spec"];
            assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
            assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
            let container = &pod["containers"][0];
            assert_eq!(container["securityContext"]["allowPrivilegeEscalation"], false);
            assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
            assert_eq!(container["securityContext"]["capabilities"]["drop"], json!(["ALL"]));
            assert!(object["spec"]["replicas"].as_u64().unwrap() >= 2);
            for probe in ["livenessProbe", "readinessProbe"] {
                assert!(container[probe].is_object());
            }
        }
        assert_eq!(deployments, 2);
    }

    #[test]
    fn whoever_runs_can_be_disturbed_one_at_a_time_and_is_always_let_go_when_unwell() {
        for object in all().iter().filter(|object| object["kind"] == "PodDisruptionBudget") {
            assert_eq!(object["spec"]["unhealthyPodEvictionPolicy"], "AlwaysAllow");
            assert_eq!(object["spec"]["maxUnavailable"], 1);
        }
    }

    #[test]
    fn all_of_it_is_known_by_its_label_and_is_said_once() {
        let mut seen = std::collections::BTreeSet::new();
        for object in definitions().unwrap().iter().chain(&all()) {
            assert_eq!(object["metadata"]["labels"][PART_OF.0], PART_OF.1, "{object}");
            let name = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
            assert!(seen.insert((object["kind"].to_string(), name("namespace"), name("name"))), "{object}");
        }
    }

    /// A Containerfile cannot be built where these tests run: it is read.
    #[test]
    fn the_containerfile_is_one() {
        let text = fs::read_to_string(folder().join("Containerfile")).unwrap();
        let joined = text.replace("\\\n", " ");
        let lines = joined.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let mut stages = 0;
        let mut last = BTreeMap::new();
        for line in lines {
            let (word, rest) = line.split_once(' ').unwrap();
            assert!(
                ["ARG", "FROM", "WORKDIR", "COPY", "RUN", "USER", "ENTRYPOINT", "LABEL"].contains(&word),
                "{line}: no instruction that is needed here"
            );
            assert!(!rest.contains("latest"), "{line}: it is another one tomorrow");
            stages += usize::from(word == "FROM");
            last.insert(word.to_owned(), rest.to_owned());
        }
        assert_eq!(stages, 2, "what builds is not what runs");
        assert_eq!(last["USER"], format!("{}:{}", workloads::USER, workloads::USER));
        assert_eq!(last["ENTRYPOINT"], "[\"/usr/local/bin/windlass\"]");
        assert!(joined.contains("--locked"), "what is built is what is in Cargo.lock");
    }
}
