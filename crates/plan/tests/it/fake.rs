//! A fake of the world, small enough to be read: it does what it is told, and one thing after another happens in it.

// The bench reads this file from its own place.
#[path = "fake/kubeadm.rs"]
mod kubeadm;
#[path = "fake/topology.rs"]
mod topology;
#[path = "fake/workload.rs"]
mod workload;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_api::name::{
    AddonName, MachineName, NameLimit, NodeName, ObjectName, PoolName, Uid, UpdateId, replacement_name,
};
use windlass_api::version::KubernetesVersion;
use windlass_api::{annotation, label};
use windlass_plan::gate::Gates;
use windlass_plan::inventory::{
    AddonObject, AppliedAddons, ClusterState, ControlPlane, Inventory, Job, JobState, KeptRelease, Machine,
    MachineState, Milestone, Orders, Pool, PoolProgress, Releases, Template, UpdateRecord, UpdateRecordState, Workload,
    applied,
};
use windlass_plan::planner::{PlanningInput, Record};
use windlass_plan::render::{Scope, release};
use windlass_plan::step::{Action, Place, Revision, Step};
use windlass_plan::target::{Drive, Target};

use crate::sample::gates;
use workload::distribution_on;

/// A cluster, and what it was asked to be.
#[derive(Clone)]
pub struct Fake {
    pub target: Target,
    pub inventory: Inventory,
    pub gates: Gates,
    /// What was made beside what is in an inventory: the specs of configurations, infrastructure and templates.
    made: BTreeMap<(String, String), Value>,
    workers: Vec<Worker>,
    writes: u64,
}

/// A worker, and the template that it was made from.
#[derive(Clone)]
struct Worker {
    pool: PoolName,
    template: String,
    distribution: KubernetesVersion,
    kubernetes: KubernetesVersion,
}

/// Where an object says which release it keeps, or began with.
const RELEASE_DIGEST: &str = "/metadata/annotations/windlass.dev~1release-digest";

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

impl Fake {
    pub fn new(target: Target) -> Self {
        let inventory = Inventory {
            as_of: Timestamp::UNIX_EPOCH,
            cluster: ClusterState::Absent,
            secrets: [].into(),
            control_plane: ControlPlane::default(),
            pools: BTreeMap::new(),
            topology: None,
            workload: Workload::NotYet,
            update: None,
            orders: Orders::default(),
            gaps: Vec::new(),
            consent: None,
            releases: Releases::default(),
            earlier_templates: Vec::new(),
            deployed: None,
        };
        Self { target, inventory, gates: gates(), made: BTreeMap::new(), workers: Vec::new(), writes: 0 }
    }

    pub fn input(&self) -> PlanningInput {
        PlanningInput {
            target: self.target.clone(),
            inventory: self.inventory.clone(),
            now: self.inventory.as_of,
            gates: self.gates.clone(),
        }
    }

    pub fn record(&mut self, record: &Record) {
        match record {
            Record::Begin { name, ordinal, id, from, envelope_digest, .. } => {
                // Whoever puts an update on record has kept its release before.
                if let Some(original) = self.target.original().cloned()
                    && !self.inventory.releases.has(original.digest())
                {
                    let scope = Scope { target: &self.target, update: *id };
                    self.write_kept(&release::kept(&scope, &original));
                }
                self.inventory.update = Some(UpdateRecord {
                    name: name.clone(),
                    ordinal: *ordinal,
                    id: *id,
                    from: from.clone(),
                    envelope_digest: envelope_digest.clone(),
                    state: UpdateRecordState::Running,
                    waiting: Vec::new(),
                    progress: Vec::new(),
                });
                self.inventory.control_plane.job = None;
            }
            Record::Resumed => self.set_record(UpdateRecordState::Running),
            Record::Succeeded => {
                self.set_record(UpdateRecordState::Succeeded);
                self.inventory.releases.in_use = self.target.original_digest().map(str::to_owned);
            }
            Record::Failed { .. } => self.set_record(UpdateRecordState::Failed),
            Record::Aborted => self.set_record(UpdateRecordState::Aborted),
        }
    }

    fn set_record(&mut self, state: UpdateRecordState) {
        self.inventory.update.as_mut().unwrap().state = state;
    }

    fn revision(&mut self) -> Revision {
        self.writes += 1;
        let uid = Uid::new(&format!("uid-{}", self.writes)).unwrap();
        Revision { uid, resource_version: self.writes.to_string() }
    }

    pub fn execute(&mut self, step: &Step) {
        match &step.action {
            Action::CreateSecret { secret, .. } => assert!(self.inventory.secrets.insert(*secret)),
            Action::Delete { kind, expect, .. } if kind == "ConfigMap" && step.place == Place::Management => {
                self.inventory.releases.kept.retain(|kept| kept.revision != *expect);
            }
            Action::Delete { kind, name, expect, .. } => {
                let Workload::Reachable { addons, .. } = &mut self.inventory.workload else { panic!("no API") };
                let is = |found: &AddonObject| {
                    text(&found.live, "/kind") == kind && text(&found.live, "/metadata/name") == name
                };
                for objects in addons.values_mut() {
                    objects.retain(|found| !(is(found) && found.revision == *expect));
                }
            }
            Action::Create { object } | Action::Apply { object, .. } => self.write(object),
        }
    }

    fn write(&mut self, object: &Value) {
        let (kind, name) = (text(object, "/kind"), text(object, "/metadata/name"));
        match kind {
            "WCPCluster" => {}
            "Cluster" if object["spec"]["topology"].is_object() => self.write_topology(object),
            "Cluster" if object["spec"]["controlPlaneRef"].is_object() => {}
            "KubeadmControlPlane" => self.write_control_plane(object),
            "ConfigMap" if !text(object, RELEASE_DIGEST).is_empty() => self.write_kept(object),
            "Cluster" => {
                let digest = text(object, RELEASE_DIGEST);
                self.inventory.releases.in_use = (!digest.is_empty()).then(|| digest.to_owned());
                self.inventory.cluster = ClusterState::Present {
                    uid: Uid::new("uid-of-the-cluster").unwrap(),
                    infrastructure_ready: false,
                    initialized: false,
                    paused: None,
                    network: Some(self.target.network.clone()),
                };
            }
            "KubeadmConfig" | "WCPMachine" => {
                self.made.insert((kind.to_owned(), name.to_owned()), object["spec"].clone());
            }
            "KubeadmConfigTemplate" | "WCPMachineTemplate" => {
                self.made.insert((kind.to_owned(), name.to_owned()), object["spec"]["template"]["spec"].clone());
            }
            "Machine" => self.write_machine(object),
            "Job" if object["metadata"]["annotations"]["upgrade-id"].is_string() => {
                self.inventory.control_plane.job = Some(Job {
                    name: ObjectName::new(name).unwrap(),
                    update: text(object, "/metadata/annotations/upgrade-id").parse().unwrap(),
                    state: JobState::Active { failed_attempts: 0 },
                });
            }
            "MachineDeployment" => self.write_pool(object),
            "ConfigMap" if name == applied::NAME => self.write_applied(object),
            _ => self.write_addon(object),
        }
    }

    fn write_machine(&mut self, object: &Value) {
        let name = text(object, "/metadata/name");
        let infrastructure = self.made[&("WCPMachine".to_owned(), name.to_owned())].clone();
        let annotations: BTreeMap<String, String> =
            serde_json::from_value(object["metadata"]["annotations"].clone()).unwrap();
        let machine = Machine {
            name: MachineName::new(name).unwrap(),
            revision: self.revision(),
            base: annotation::MACHINE_NAME_BASE.get(&annotations).unwrap(),
            version: text(object, "/spec/version").parse().unwrap(),
            image: Some(text(&infrastructure, "/imageName").parse().unwrap()),
            class: Some(text(&infrastructure, "/className").parse().unwrap()),
            storage_class: Some(text(&infrastructure, "/storageClass").parse().unwrap()),
            registration: self.registered(name),
            update: None,
            created: Timestamp::UNIX_EPOCH,
            state: MachineState::Joining { awaits: Milestone::Node },
        };
        self.inventory.control_plane.machines.push(machine);
    }

    /// How a machine of this name registers.
    fn registered(&self, name: &str) -> Option<Value> {
        let configuration = self.made.get(&("KubeadmConfig".to_owned(), name.to_owned()))?;
        let registration = ["/initConfiguration/nodeRegistration", "/joinConfiguration/nodeRegistration"];
        registration.iter().find_map(|pointer| configuration.pointer(pointer)).cloned()
    }

    fn write_pool(&mut self, object: &Value) {
        let template = |kind: &str, pointer: &str| {
            let name = text(object, pointer);
            let spec = self.made.get(&(kind.to_owned(), name.to_owned())).cloned();
            Template { name: ObjectName::new(name).unwrap(), spec }
        };
        let infrastructure_template = template("WCPMachineTemplate", "/spec/template/spec/infrastructureRef/name");
        let bootstrap_template = template("KubeadmConfigTemplate", "/spec/template/spec/bootstrap/configRef/name");
        let name = match self.target.drive {
            Drive::Machines => "default",
            Drive::KubeadmControlPlane | Drive::Topology => text(object, "/metadata/name"),
        };
        let name = PoolName::new(name).unwrap();
        let none = PoolProgress { observed: false, replicas: 0, up_to_date: 0, available: 0 };
        let progress = self.inventory.pools.get(&name).map_or(none, |pool| pool.progress);
        let pool = Pool {
            revision: self.revision(),
            replicas: object["spec"]["replicas"].as_u64().unwrap().try_into().unwrap(),
            version: text(object, "/spec/template/spec/version").parse().unwrap(),
            infrastructure_template,
            bootstrap_template,
            progress: PoolProgress { observed: false, ..progress },
            machines: Vec::new(),
            moved_at: None,
            live: serde_json::Value::Null,
        };
        self.inventory.pools.insert(name, pool);
    }

    fn write_kept(&mut self, object: &Value) {
        let name = ObjectName::new(text(object, "/metadata/name")).unwrap();
        if self.inventory.releases.kept.iter().any(|kept| kept.name == name) {
            return;
        }
        let kept = KeptRelease { name, digest: text(object, RELEASE_DIGEST).to_owned(), revision: self.revision() };
        self.inventory.releases.kept.push(kept);
    }

    fn write_applied(&mut self, object: &Value) {
        let objects = applied::read(object["data"][applied::KEY].as_str().unwrap()).unwrap();
        let record = AppliedAddons { revision: self.revision(), objects };
        let Workload::Reachable { applied, .. } = &mut self.inventory.workload else { panic!("no API") };
        *applied = Some(record);
    }

    fn write_addon(&mut self, object: &Value) {
        let mut revision = self.revision();
        let addon = AddonName::new(object["metadata"]["labels"][label::ADDON.name].as_str().unwrap()).unwrap();
        let Workload::Reachable { addons, .. } = &mut self.inventory.workload else { panic!("no API") };
        let objects = addons.entry(addon).or_default();
        let same = |found: &&mut AddonObject| {
            ["/kind", "/metadata/name"].iter().all(|pointer| text(&found.live, pointer) == text(object, pointer))
        };
        let mut live = object.clone();
        if let Some(found) = objects.iter_mut().find(same) {
            live["status"] = found.live["status"].clone();
            live["metadata"]["generation"] = json!(found.live["metadata"]["generation"].as_u64().unwrap() + 1);
            revision.uid = found.revision.uid.clone();
            *found = AddonObject { revision, live };
        } else {
            live["metadata"]["generation"] = 1.into();
            objects.push(AddonObject { revision, live });
        }
    }

    /// The next thing that happens by itself; `None` when the world is at rest.
    pub fn tick(&mut self) -> Option<String> {
        let happened = self.tick_cluster().or_else(|| self.tick_machines()).or_else(|| self.tick_addons());
        let happened = happened.or_else(|| self.tick_job()).or_else(|| self.tick_control_plane());
        let happened = happened.or_else(|| self.tick_pools()).or_else(|| self.tick_topology());
        self.see_nodes();
        self.see_control_plane();
        happened
    }

    fn tick_cluster(&mut self) -> Option<String> {
        match &mut self.inventory.cluster {
            ClusterState::Present { infrastructure_ready: ready @ false, .. } => {
                *ready = true;
                Some("the infrastructure of the cluster is ready".to_owned())
            }
            _ => None,
        }
    }

    fn tick_machines(&mut self) -> Option<String> {
        let machines = &mut self.inventory.control_plane.machines;
        if let Some(position) =
            machines.iter().position(|machine| matches!(machine.state, MachineState::Deleting { .. }))
        {
            return Some(format!("machine {} is gone", machines.remove(position).name));
        }
        let joining = machines.iter_mut().find(|machine| matches!(machine.state, MachineState::Joining { .. }))?;
        joining.state = MachineState::Ready { node: NodeName::new(joining.name.as_str()).unwrap() };
        let happened = format!("machine {} is ready", joining.name);
        if let ClusterState::Present { initialized, .. } = &mut self.inventory.cluster {
            *initialized = true;
        }
        if self.inventory.workload == Workload::NotYet {
            self.inventory.workload = Workload::Reachable {
                nodes: vec![],
                addons: BTreeMap::new(),
                etcd: vec![],
                foreign: BTreeMap::new(),
                applied: None,
            };
        }
        Some(happened)
    }

    /// The Job replaces one machine at a time: a new one, then the old one goes.
    fn tick_job(&mut self) -> Option<String> {
        let job = self.inventory.control_plane.job.as_mut()?;
        if !matches!(job.state, JobState::Active { .. }) {
            return None;
        }
        let (update, release, wanted) = (job.update, &self.target.release, &self.target.control_plane);
        let decided = self.target.defaults.node_registration.clone();
        let is_old = |machine: &&Machine| {
            machine.image.as_ref() != release.image()
                || machine.class != wanted.class
                || machine.storage_class != wanted.storage_class
                || decided.iter().any(|(field, value)| {
                    machine.registration.as_ref().is_some_and(|it| it[field.as_str()].as_str() != Some(value.as_str()))
                })
        };
        let Some(old) = self.inventory.control_plane.machines.iter().find(is_old).cloned() else {
            job.state = JobState::Complete;
            return Some(format!("job {} is complete", job.name));
        };
        let base = old.base.clone().unwrap();
        let name = replacement_name(&base, update, NameLimit::LabelValue);
        let machines = &mut self.inventory.control_plane.machines;
        if machines.iter().any(|machine| machine.name == name) {
            let old = machines.iter_mut().find(|machine| machine.name == old.name).unwrap();
            old.state = MachineState::Deleting { node: None };
            return Some(format!("machine {} is being deleted", old.name));
        }
        let happened = format!("machine {name} takes the place of {}", old.name);
        let (version, image) = (release.kubernetes.clone(), release.image().cloned());
        let (class, storage_class) = (wanted.class.clone(), wanted.storage_class.clone());
        machines.push(Machine {
            name,
            version,
            image,
            class,
            storage_class,
            registration: Some(json!(decided)),
            state: MachineState::Joining { awaits: Milestone::Node },
            ..old
        });
        Some(happened)
    }

    fn tick_pools(&mut self) -> Option<String> {
        let pools: Vec<PoolName> = self.inventory.pools.keys().cloned().collect();
        pools.iter().find_map(|pool| self.tick_pool(pool))
    }

    /// One machine more than asked for, then an old one goes, until all are new.
    fn tick_pool(&mut self, name: &PoolName) -> Option<String> {
        let pool = self.inventory.pools.get_mut(name)?;
        let template = pool.infrastructure_template.name.to_string();
        let replicas = usize::try_from(pool.replicas).unwrap();
        let is_ours = |worker: &Worker| worker.pool == *name;
        let is_new = |worker: &Worker| worker.pool == *name && worker.template == template;
        let new = self.workers.iter().filter(|worker| is_new(worker)).count();
        let old = self.workers.iter().position(|worker| is_ours(worker) && !is_new(worker));
        let surplus = self.workers.iter().position(is_ours).filter(|_| new > replicas);
        // The one pool of a cluster that has no more is not told by its name.
        let which = if name.as_str() == "default" { String::new() } else { format!(" of {name}") };
        let happened = if new < replicas {
            let spec = pool.infrastructure_template.spec.as_ref();
            let image = spec.map(|spec| distribution_on(text(spec, "/imageName")));
            let distribution = image.unwrap_or_else(|| self.target.release.distribution.clone());
            let (template, kubernetes) = (template.clone(), pool.version.clone());
            self.workers.push(Worker { pool: name.clone(), template, distribution, kubernetes });
            Some(format!("a worker{which} joins"))
        } else if let Some(position) = old.or(surplus) {
            self.workers.remove(position);
            Some(format!("a worker{which} leaves"))
        } else {
            (!pool.progress.observed).then(|| format!("the pool{which} is seen"))
        };
        let is_new = |worker: &&Worker| worker.pool == *name && worker.template == template;
        let count = |count: usize| u32::try_from(count).unwrap();
        let new = count(self.workers.iter().filter(is_new).count());
        let all = count(self.workers.iter().filter(|worker| worker.pool == *name).count());
        pool.progress = PoolProgress { observed: true, replicas: all, up_to_date: new, available: all };
        happened
    }

    /// The id of the update on record.
    pub fn update(&self) -> Option<UpdateId> {
        self.inventory.update.as_ref().map(|record| record.id)
    }
}
