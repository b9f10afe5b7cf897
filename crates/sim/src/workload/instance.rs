//! The API servers of a workload cluster: one on each machine of its control plane, at the version that it was joined with, behind
//! the load balancer, which takes turns among those that serve.
//!
//! They share one store, as they share etcd. What differs between them is what they say of themselves; kinds that one of them
//! serves and another does not are not modelled.

use std::sync::atomic::Ordering;

use http::Response;
use http::header::CONTENT_TYPE;
use serde::Deserialize;
use serde_json::json;
use windlass_api::name::NodeName;
use windlass_api::version::KubernetesVersion;
use windlass_apiserver::Body;
use windlass_apiserver::store::Key;

use super::Begins;
use super::Workload;
use super::record::{self, Machine, Stage};
use super::write::PODS;

/// An API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// The node that it runs on.
    pub node: NodeName,
    /// Its version.
    pub version: KubernetesVersion,
    /// It answers: its machine is on, and the member of etcd beside it has a quorum to ask.
    pub serves: bool,
}

/// All that matters of a static pod here.
#[derive(Deserialize)]
struct Pod {
    spec: Spec,
}

#[derive(Deserialize)]
struct Spec {
    containers: Vec<Container>,
}

#[derive(Deserialize)]
struct Container {
    image: String,
}

impl Workload {
    /// The API servers there are, by node.
    pub fn instances(&self) -> Vec<Instance> {
        let serving = self.etcd().serving();
        let machines = record::all::<Machine>(self.0.server.store()).into_iter();
        let instance = |machine: Machine| {
            let serves = serving.contains(&machine.name);
            Instance { version: self.version_of(&machine), serves, node: machine.name }
        };
        machines
            .filter(|machine| machine.begins != Begins::Join && machine.stage == Stage::Done)
            .map(instance)
            .collect()
    }

    /// The answer to `GET /version`, which is that of the API server whose turn it is. `None` if none serves.
    pub fn version_answer(&self) -> Option<Response<Body>> {
        let mut serving = self.instances();
        serving.retain(|instance| instance.serves);
        let turn = self.0.turns.fetch_add(1, Ordering::Relaxed);
        let instance = serving.get(turn.checked_rem(serving.len())?)?;
        let minor = instance.version.minor();
        let text = json!({
            "major": instance.version.major().to_string(), "minor": minor.minor.to_string(),
            "gitVersion": instance.version, "gitCommit": "", "gitTreeState": "clean", "buildDate": "",
            "goVersion": "", "compiler": "gc", "platform": "linux/amd64",
        });
        let mut answer = Response::new(Body::whole(text.to_string()));
        answer.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
        Some(answer)
    }

    /// What the static pod runs; the kubelet's version where that cannot be told.
    fn version_of(&self, machine: &Machine) -> KubernetesVersion {
        let key = Key::new("kube-system", &format!("kube-apiserver-{}", machine.name));
        let pod = self.0.server.store().get(PODS, &key);
        let pod = pod.and_then(|entry| serde_json::from_slice::<Pod>(&entry.json).ok());
        let image = pod.and_then(|pod| pod.spec.containers.into_iter().next()).map(|container| container.image);
        // A tag has no plus.
        let tag = image.as_deref().and_then(|image| image.rsplit_once(':')).map(|(_, tag)| tag.replace('_', "+"));
        tag.and_then(|tag| tag.parse().ok()).unwrap_or_else(|| machine.kubelet.clone())
    }
}
