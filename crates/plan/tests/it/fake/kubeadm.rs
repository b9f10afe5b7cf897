//! Cluster API, as far as it rolls a control plane: one machine more than asked for, then an old one goes.

use serde_json::Value;
use windlass_api::annotation;
use windlass_api::name::{ClusterSecret, MachineName, ObjectName, Uid};
use windlass_plan::inventory::{
    ClusterState, KubeadmControlPlane, Machine, MachineState, Milestone, PoolProgress, Template,
};
use windlass_plan::target::Target;

use super::{Fake, text};

/// What a server makes of fields that are applied: elements of lists are told apart by their names.
pub(super) fn merge(live: &mut Value, applied: &Value) {
    match (live, applied) {
        (Value::Object(live), Value::Object(applied)) => {
            for (key, applied) in applied {
                merge(live.entry(key).or_insert(Value::Null), applied);
            }
        }
        (Value::Array(live), Value::Array(applied)) if applied.iter().all(|it| it["name"].is_string()) => {
            for applied in applied {
                match live.iter_mut().find(|it| it["name"] == applied["name"]) {
                    Some(live) => merge(live, applied),
                    None => live.push(applied.clone()),
                }
            }
        }
        (live, applied) => *live = applied.clone(),
    }
}

impl Fake {
    /// A cluster that its owner has just asked for: the Cluster is there, and nothing else.
    pub fn of_cluster_api(target: Target) -> Self {
        let mut fake = Self::new(target);
        fake.inventory.cluster = ClusterState::Present {
            uid: Uid::new(fake.target.cluster.uid.as_str()).unwrap(),
            infrastructure_ready: false,
            initialized: false,
            paused: None,
            network: None,
        };
        fake
    }

    pub(super) fn write_control_plane(&mut self, object: &Value) {
        let template = text(object, "/spec/machineTemplate/spec/infrastructureRef/name").to_owned();
        let spec = self.made.get(&("WCPMachineTemplate".to_owned(), template.clone())).cloned();
        let before = self.inventory.control_plane.kubeadm.take();
        let mut configuration = before.as_ref().map(|it| it.configuration.clone()).unwrap_or_default();
        merge(&mut configuration, &object["spec"]["kubeadmConfigSpec"]);
        let annotations = &object["metadata"]["annotations"];
        let none = PoolProgress { observed: false, replicas: 0, up_to_date: 0, available: 0 };
        self.inventory.control_plane.kubeadm = Some(KubeadmControlPlane {
            name: ObjectName::new(text(object, "/metadata/name")).unwrap(),
            revision: self.revision(),
            replicas: object["spec"]["replicas"].as_u64().unwrap().try_into().unwrap(),
            version: text(object, "/spec/version").parse().unwrap(),
            infrastructure_template: Template { name: ObjectName::new(&template).unwrap(), spec },
            configuration,
            progress: PoolProgress { observed: false, ..before.as_ref().map_or(none, |it| it.progress) },
            versions: before.map(|it| it.versions).unwrap_or_default(),
            unwell: None,
            owns_addons: annotations.get(annotation::SKIP_KUBE_PROXY.name).is_none(),
            live: serde_json::Value::Null,
        });
    }

    pub(super) fn tick_control_plane(&mut self) -> Option<String> {
        let observed = self.inventory.control_plane.kubeadm.clone()?;
        if self.inventory.secrets.is_empty() {
            self.inventory.secrets = ClusterSecret::CERTIFICATES.into();
            return Some("the certificates are made".to_owned());
        }
        let machines = &mut self.inventory.control_plane.machines;
        let replicas = usize::try_from(observed.replicas).unwrap();
        let old = machines.iter().position(|machine| is_old(&observed, machine));
        let make = machines.len() < replicas || old.is_some() && machines.len() == replicas;
        if make {
            self.writes += 1;
            let machine = made(&observed, self.writes);
            let name = machine.name.clone();
            self.inventory.control_plane.machines.push(machine);
            return Some(format!("machine {name} is made"));
        }
        let leaving = machines.get_mut(old?)?;
        leaving.state = MachineState::Deleting { node: None };
        Some(format!("machine {} is being deleted", leaving.name))
    }

    /// Its controller counts.
    pub(super) fn see_control_plane(&mut self) {
        let machines = &self.inventory.control_plane.machines;
        let Some(observed) = &mut self.inventory.control_plane.kubeadm else { return };
        let count = |count: usize| u32::try_from(count).unwrap();
        let is_ready = |machine: &&Machine| matches!(machine.state, MachineState::Ready { .. });
        observed.progress = PoolProgress {
            observed: true,
            replicas: count(machines.len()),
            up_to_date: count(machines.iter().filter(|machine| !is_old(observed, machine)).count()),
            available: count(machines.iter().filter(is_ready).count()),
        };
        observed.versions = machines.iter().map(|machine| machine.version.clone()).collect();
        observed.versions.sort();
        observed.versions.dedup();
    }
}

fn is_old(observed: &KubeadmControlPlane, machine: &Machine) -> bool {
    let spec = observed.infrastructure_template.spec.as_ref().unwrap();
    machine.version != observed.version
        || machine.image.as_ref().unwrap().as_str() != text(spec, "/imageName")
        || machine.class.as_ref().unwrap().as_str() != text(spec, "/className")
}

fn made(observed: &KubeadmControlPlane, number: u64) -> Machine {
    let spec = observed.infrastructure_template.spec.as_ref().unwrap();
    Machine {
        name: MachineName::new(&format!("{}-{number}", observed.name)).unwrap(),
        revision: observed.revision.clone(),
        base: None,
        update: None,
        created: jiff::Timestamp::UNIX_EPOCH,
        version: observed.version.clone(),
        image: Some(text(spec, "/imageName").parse().unwrap()),
        class: Some(text(spec, "/className").parse().unwrap()),
        storage_class: Some(text(spec, "/storageClass").parse().unwrap()),
        registration: None,
        state: MachineState::Joining { awaits: Milestone::Node },
    }
}
