//! What changes of pods say: programs of the control plane, kube-proxies, and who has to leave a node.

use windlass_api::label;
use windlass_api::version::KubernetesVersion;
use windlass_apiserver::store::{Change, ChangeKind, Entry};

use super::fold::{Told, canonical};
use super::{Disruption, Health, Pod, PodSort, Program, Programs, Proxy, Workload};
use crate::truth::{Fact, read};

/// Why a container cannot be started, if its image is nowhere.
const WITHOUT_IMAGE: [&str; 3] = ["ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull"];

impl Workload {
    pub(super) fn fold_pod(&mut self, change: &Change) -> Told {
        let key = &change.object.key;
        let name = key.to_string().into_boxed_str();
        if change.kind == ChangeKind::Deleted {
            let mut facts = Vec::new();
            if let Some(pod) = self.pods.remove(&name) {
                // What is gone at once was told to go at once.
                if !pod.deleting && pod.disruption.is_none() {
                    facts.push(Fact::PodKilled { pod: name, node: pod.node });
                }
            }
            if &*key.namespace == "kube-system" && self.forget_program(&key.name) {
                facts.push(Fact::ComponentsChanged);
            }
            return Ok(facts);
        }
        let read: read::Pod = serde_json::from_slice(&change.object.json)?;
        let mut facts = Vec::new();
        if &*key.namespace == "kube-system" && self.note_program(&key.name, &read) {
            facts.push(Fact::ComponentsChanged);
        }
        // A pod without a node runs nowhere.
        let Some(now) = Pod::read(&read, &change.object) else { return Ok(facts) };
        let node = now.node.clone();
        let before = self.pods.insert(name.clone(), now);
        let (Some(now), before) = (self.pods.get(&name), before.as_ref()) else { return Ok(facts) };
        let (was_disrupted, was_deleting) =
            before.map(|before| (before.disruption, before.deleting)).unwrap_or_default();
        if now.disruption == Some(Disruption::Eviction) && was_disrupted.is_none() {
            facts.push(Fact::PodEvicted { pod: name.clone(), node: node.clone() });
        } else if now.deleting && now.disruption.is_none() && !was_deleting {
            facts.push(Fact::PodKilled { pod: name.clone(), node: node.clone() });
        }
        let is_new = before.is_none_or(|before| before.node != now.node || before.bound != now.bound);
        let lacks_image = |pod: &Pod| pod.health == Health::LacksImage;
        let is_short = lacks_image(now) && !before.is_some_and(lacks_image);
        if (is_new && now.bound.is_some()) || is_short {
            facts.push(Fact::PodPlaced { pod: name, node });
        }
        Ok(facts)
    }

    /// Takes note of the programs of the control plane and of kube-proxies, which are told by their names.
    fn note_program(&mut self, name: &str, read: &read::Pod) -> bool {
        if name.starts_with("kube-proxy-") {
            let (Some(version), Some(node)) = (image_version(&read.spec), read.spec.node_name.clone()) else {
                return false;
            };
            let now = Proxy { node, version };
            return self.proxies.insert(name.into(), now.clone()) != Some(now);
        }
        let Some((program, node)) = program(name) else { return false };
        let version = image_version(&read.spec);
        let status = read.status.as_ref();
        // Where nobody says how it is, it is taken to be well.
        let conditions = status.and_then(|status| status.conditions.as_ref());
        let ready = conditions.is_none() || read::is_true(conditions, "Ready");
        if program == "kube-apiserver"
            && let Some(version) = &version
        {
            self.minors_served.insert(version.minor());
        }
        let slot = self.programs.entry(node.into()).or_default().slot(program);
        let now = Some(Program { version, ready });
        let changed = *slot != now;
        *slot = now;
        changed
    }

    fn forget_program(&mut self, name: &str) -> bool {
        if name.starts_with("kube-proxy-") {
            return self.proxies.remove(name).is_some();
        }
        let Some((program, node)) = program(name) else { return false };
        let Some(programs) = self.programs.get_mut(node) else { return false };
        let was = programs.slot(program).take();
        if *programs == Programs::default() {
            self.programs.remove(node);
        }
        was.is_some()
    }
}

/// The program of a static pod, and its node.
fn program(pod: &str) -> Option<(&'static str, &str)> {
    ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"].into_iter().find_map(|program| {
        let node = pod.strip_prefix(program)?.strip_prefix('-')?;
        Some((program, node))
    })
}

impl Programs {
    fn slot(&mut self, program: &str) -> &mut Option<Program> {
        match program {
            "kube-apiserver" => &mut self.api_server,
            "kube-controller-manager" => &mut self.controller_manager,
            "kube-scheduler" => &mut self.scheduler,
            _ => &mut self.etcd,
        }
    }
}

impl Pod {
    fn read(read: &read::Pod, entry: &Entry) -> Option<Self> {
        let metadata = &read.metadata;
        let is_mirror =
            metadata.annotations.as_ref().is_some_and(|all| all.contains_key("kubernetes.io/config.mirror"));
        let is_daemon =
            metadata.owner_references.as_ref().is_some_and(|all| all.iter().any(|owner| owner.kind == "DaemonSet"));
        let sort = match (is_mirror, is_daemon) {
            (true, _) => PodSort::Static,
            (_, true) => PodSort::Daemon,
            (false, false) => PodSort::Other,
        };
        let selector = read.spec.node_selector.as_ref();
        let status = read.status.as_ref();
        let conditions = status.and_then(|status| status.conditions.as_ref());
        let disruption =
            read::reason(conditions, "DisruptionTarget").filter(|_| read::is_true(conditions, "DisruptionTarget"));
        Some(Self {
            node: read.spec.node_name.clone()?,
            sort,
            bound: selector.and_then(|all| all.get(label::DISTRIBUTION_VERSION.name)).map(|label| canonical(label)),
            health: status.map_or(Health::Unready, health),
            disruption: disruption.map(|reason| match &*reason {
                "EvictionByEvictionAPI" => Disruption::Eviction,
                _ => Disruption::Other,
            }),
            deleting: entry.deleting,
            labels: entry.labels.clone(),
        })
    }
}

fn health(status: &read::PodStatus) -> Health {
    if matches!(status.phase.as_deref(), Some("Succeeded" | "Failed")) {
        return Health::Ended;
    }
    let containers = status.container_statuses.iter().flatten();
    let waiting = containers.filter_map(|container| container.state.as_ref()?.waiting.as_ref()?.reason.as_deref());
    if waiting.into_iter().any(|reason| WITHOUT_IMAGE.contains(&reason)) {
        Health::LacksImage
    } else if read::is_true(status.conditions.as_ref(), "Ready") {
        Health::Ready
    } else {
        Health::Unready
    }
}

/// The version in the tag of a pod's first image.
fn image_version(pod: &read::PodSpec) -> Option<KubernetesVersion> {
    let image = &pod.containers.first()?.image;
    image.rsplit_once(':')?.1.parse().ok()
}
