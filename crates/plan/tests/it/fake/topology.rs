//! Cluster API, as far as it derives a cluster from its topology: the control plane first, then one pool after the other.

use serde_json::{Value, json};
use windlass_api::annotation;
use windlass_api::kind::topology::{self as wire, VariableOverrides};
use windlass_api::name::{ObjectName, PoolName};
use windlass_api::version::KubernetesVersion;
use windlass_plan::inventory::{KubeadmControlPlane, Pool, PoolProgress, Template, Topology};
use windlass_plan::render::topology::{DEFERRED_BY_US, told};
use windlass_plan::target::Target;

use super::kubeadm::merge;
use super::{Fake, text};

const NONE: PoolProgress = PoolProgress { observed: false, replicas: 0, up_to_date: 0, available: 0 };

impl Fake {
    /// A cluster of a class that its owner has just asked for.
    pub fn of_topology(target: Target, topology: &wire::Topology) -> Self {
        let mut fake = Self::of_cluster_api(target);
        let revision = fake.revision();
        fake.inventory.topology = Some(Topology {
            revision,
            class: topology.class_ref.name.clone(),
            version: topology.version.parse().unwrap(),
            spec: serde_json::to_value(topology).unwrap(),
            pending: Some("nothing is derived yet".to_owned()),
        });
        fake
    }

    fn topology(&self) -> Option<wire::Topology> {
        let observed = self.inventory.topology.as_ref()?;
        Some(serde_json::from_value(observed.spec.clone()).unwrap())
    }

    pub(super) fn write_topology(&mut self, object: &Value) {
        let revision = self.revision();
        let observed = self.inventory.topology.as_mut().unwrap();
        let applied = &object["spec"]["topology"];
        // What we had applied and apply no more goes.
        for pool in observed.spec["workers"]["machineDeployments"].as_array_mut().unwrap() {
            let annotations = pool.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
            if let Some(annotations) = annotations {
                annotations.retain(|key, value| key != annotation::DEFER_UPGRADE.name || value != DEFERRED_BY_US);
            }
        }
        merge(&mut observed.spec, applied);
        observed.version = text(applied, "/version").parse().unwrap();
        observed.revision = revision;
        observed.pending = Some("its latest change was not seen yet".to_owned());
    }

    pub(super) fn tick_topology(&mut self) -> Option<String> {
        let topology = self.topology()?;
        topology.variable("TKR_DATA")?;
        let happened = self.derive_control_plane(&topology).or_else(|| self.derive_pools(&topology));
        let observed = self.inventory.topology.as_mut().unwrap();
        if happened.is_none() {
            return observed.pending.take().map(|_| "all that the topology says is done".to_owned());
        }
        observed.pending.clone_from(&happened);
        happened
    }

    fn derive_control_plane(&mut self, topology: &wire::Topology) -> Option<String> {
        let version: KubernetesVersion = topology.version.parse().unwrap();
        let spec = machine_spec(topology, topology.control_plane.variables.as_ref(), &version);
        let replicas = topology.control_plane.replicas.unwrap();
        let revision = self.revision();
        let derived = self.inventory.control_plane.kubeadm.as_ref();
        let same = |it: &KubeadmControlPlane| {
            it.version == version && it.replicas == replicas && it.infrastructure_template.spec.as_ref() == Some(&spec)
        };
        if derived.is_some_and(same) {
            return None;
        }
        let template = ObjectName::new(&format!("control-plane-{}", self.writes)).unwrap();
        self.inventory.control_plane.kubeadm = Some(KubeadmControlPlane {
            name: ObjectName::new("derived").unwrap(),
            revision,
            replicas,
            version: version.clone(),
            infrastructure_template: Template { name: template, spec: Some(spec) },
            configuration: Value::Null,
            progress: PoolProgress { observed: false, ..derived.map_or(NONE, |it| it.progress) },
            versions: derived.map(|it| it.versions.clone()).unwrap_or_default(),
            unwell: None,
            owns_addons: false,
            live: serde_json::Value::Null,
        });
        Some(format!("KubeadmControlPlane derived gets {version}"))
    }

    fn derive_pools(&mut self, topology: &wire::Topology) -> Option<String> {
        for found in &topology.workers.machine_deployments {
            let name = PoolName::new(&found.name).unwrap();
            let observed = self.inventory.pools.get(&name);
            let metadata = found.metadata.as_ref();
            let deferred = metadata.is_some_and(|it| annotation::DEFER_UPGRADE.is_in(&it.annotations));
            let version: KubernetesVersion = match observed {
                Some(observed) if deferred => observed.version.clone(),
                _ => topology.version.parse().unwrap(),
            };
            let spec = machine_spec(topology, found.variables.as_ref(), &version);
            let replicas = found.replicas.unwrap();
            let is_same = |it: &Pool| it.version == version && it.infrastructure_template.spec.as_ref() == Some(&spec);
            if observed.is_some_and(|it| is_same(it) && it.replicas == replicas) {
                continue;
            }
            let progress = observed.map_or(NONE, |it| it.progress);
            let template = match observed {
                Some(observed) if is_same(observed) => observed.infrastructure_template.clone(),
                _ => {
                    let name = ObjectName::new(&format!("{name}-{}", self.writes)).unwrap();
                    Template { name, spec: Some(spec) }
                }
            };
            let pool = Pool {
                revision: self.revision(),
                replicas,
                version: version.clone(),
                infrastructure_template: template.clone(),
                bootstrap_template: template,
                progress: PoolProgress { observed: false, ..progress },
                machines: Vec::new(),
                moved_at: None,
                live: serde_json::Value::Null,
            };
            let happened = format!("MachineDeployment {name} gets {replicas} machines of {version}");
            self.inventory.pools.insert(name, pool);
            return Some(happened);
        }
        None
    }
}

/// What the patches of the class make of what they are told: the entry of the version says which image.
fn machine_spec(topology: &wire::Topology, part: Option<&VariableOverrides>, version: &KubernetesVersion) -> Value {
    let of = |name: &str| told(topology, part, name).unwrap_or_else(|| panic!("the class is not told {name}"));
    let image = &of("TKR_DATA")[version.as_str()]["osImageRef"]["name"];
    assert!(image.is_string(), "the class is told nothing about {version}");
    json!({ "imageName": image, "className": of("vmClass"), "storageClass": of("storageClass") })
}
