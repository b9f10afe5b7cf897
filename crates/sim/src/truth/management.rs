//! What the changes of the management API server say.

use std::collections::BTreeSet;

use windlass_api::name::ClusterSecret;
use windlass_api::{annotation, label};
use windlass_apiserver::store::{Change, ChangeKind, Entry};

use super::{
    BUILT_IN_ADDONS, Cluster, Fact, Job, JobEnd, Live, Machine, Pool, Role, Truth, Update, UpdateState, Wish, read,
};

/// The cluster that a change is about, and what it says.
type Told = Result<(Box<str>, Vec<Fact>), serde_json::Error>;

impl Truth {
    pub(super) fn fold_management(&mut self, resource: &str, change: &Change) -> Told {
        // The cluster that has the object's own name.
        let own_name = || Some(change.object.key.to_string());
        match resource {
            "tanzukubernetesclusters.run.tanzu.vmware.com" => self.about(own_name(), |c| c.fold_tkc(change)),
            "clusters.cluster.x-k8s.io" => self.about(own_name(), |c| Ok(c.fold_owner(change))),
            "machines.cluster.x-k8s.io" => self.about(labelled(change), |c| c.fold_machine(change)),
            "machinedeployments.cluster.x-k8s.io" => self.about(labelled(change), |c| c.fold_pool(change)),
            "secrets" => match certificate(&change.object) {
                Some(secret) => self.about(labelled(change), |c| c.fold_secret(secret, change)),
                None => Ok(nothing()),
            },
            "jobs.batch" => self.about(labelled(change), |c| c.fold_job(change)),
            "clusterupdates.windlass.dev" => self.fold_update(change),
            "virtualmachineimages.vmoperator.vmware.com" => self.fold_image(change).map(|()| nothing()),
            _ => Ok(nothing()),
        }
    }

    fn about(
        &mut self,
        cluster: Option<String>,
        fold: impl FnOnce(&mut Cluster) -> Result<Vec<Fact>, serde_json::Error>,
    ) -> Told {
        let Some(name) = cluster else { return Ok(nothing()) };
        let facts = fold(self.cluster_mut(&name))?;
        Ok((name.into(), facts))
    }

    fn fold_update(&mut self, change: &Change) -> Told {
        let read: read::Update = serde_json::from_slice(&change.object.json)?;
        let known = self.addons.get(&read.spec.to.distribution);
        let addons = known.into_iter().flatten().cloned().chain(BUILT_IN_ADDONS.map(Into::into)).collect();
        let cluster = format!("{}/{}", change.object.key.namespace, read.spec.cluster);
        self.about(Some(cluster), |cluster| Ok(cluster.fold_update(change, read, addons)))
    }

    /// Takes note of which add-ons a release has.
    fn fold_image(&mut self, change: &Change) -> Result<(), serde_json::Error> {
        if change.kind == ChangeKind::Deleted {
            return Ok(());
        }
        let read: read::Owned = serde_json::from_slice(&change.object.json)?;
        let annotations = read.metadata.annotations.unwrap_or_default();
        let Some(text) = annotations.get(annotation::DISTRIBUTION.name) else { return Ok(()) };
        let image: read::Image = serde_json::from_str(text)?;
        let names = annotations.keys().filter_map(|key| key.strip_prefix(annotation::ADDON_PREFIX)).map(Into::into);
        self.addons.insert(image.distribution.version, names.collect());
        Ok(())
    }
}

/// What a change says that is about no cluster.
fn nothing() -> (Box<str>, Vec<Fact>) {
    (Box::default(), Vec::new())
}

/// The cluster that the object's labels name.
fn labelled(change: &Change) -> Option<String> {
    let name = change.object.label(label::CLUSTER_NAME.name)?;
    let namespace = change.object.label(label::CLUSTER_NAMESPACE.name).unwrap_or(&change.object.key.namespace);
    Some(format!("{namespace}/{name}"))
}

/// Which certificate of its cluster a Secret is.
fn certificate(entry: &Entry) -> Option<ClusterSecret> {
    let cluster = entry.label(label::CLUSTER_NAME.name)?;
    let suffix = entry.key.name.strip_prefix(cluster)?.strip_prefix('-')?;
    ClusterSecret::CERTIFICATES.into_iter().find(|secret| secret.to_string() == suffix)
}

impl Cluster {
    fn fold_tkc(&mut self, change: &Change) -> Result<Vec<Fact>, serde_json::Error> {
        if change.kind == ChangeKind::Deleted {
            self.wish = None;
            return Ok(vec![Fact::ClusterGone]);
        }
        let read: read::Tkc = serde_json::from_slice(&change.object.json)?;
        let status = read.status.unwrap_or_default();
        let now = Wish {
            control_plane_count: read.spec.topology.control_plane.count,
            distribution: read.spec.distribution.full_version,
            phase: status.phase,
            version: status.version,
            deleting: change.object.deleting,
        };
        let before = self.wish.take();
        let mut facts = Vec::new();
        let was = before.as_ref();
        if was.is_none_or(|was| was.distribution != now.distribution) {
            facts.push(Fact::Requested { distribution: now.distribution.clone() });
        }
        if let Some(phase) = now.phase.as_ref().filter(|_| was.is_none_or(|was| was.phase != now.phase)) {
            facts.push(Fact::PhaseChanged { phase: phase.clone() });
        }
        if let Some(version) = now.version.as_ref().filter(|_| was.is_none_or(|was| was.version != now.version)) {
            facts.push(Fact::VersionReached { distribution: version.clone() });
        }
        if now.deleting && was.is_none_or(|was| !was.deleting) {
            facts.push(Fact::DeletionRequested);
        }
        self.wish = Some(now);
        Ok(facts)
    }

    fn fold_owner(&mut self, change: &Change) -> Vec<Fact> {
        let live = Live { uid: change.object.uid.clone(), deleting: change.object.deleting };
        let now = (change.kind != ChangeKind::Deleted).then_some(live);
        if self.object == now {
            return Vec::new();
        }
        if now.is_none() {
            // Its API server went with it.
            self.workload = super::Workload::default();
        }
        self.object = now;
        vec![Fact::OwnerChanged]
    }

    fn fold_update(&mut self, change: &Change, read: read::Update, addons: BTreeSet<Box<str>>) -> Vec<Fact> {
        let name = &change.object.key.name;
        if change.kind == ChangeKind::Deleted {
            self.update = self.update.take().filter(|update| update.name != *name);
            return Vec::new();
        }
        if self.update.as_ref().is_some_and(|latest| latest.ordinal > read.spec.ordinal) {
            return Vec::new();
        }
        let (Ok(from), Ok(to)) = (read.spec.from.kubernetes.parse(), read.spec.to.kubernetes.parse()) else {
            let why = format!("from {} to {}", read.spec.from.kubernetes, read.spec.to.kubernetes);
            return vec![Fact::Unreadable { object: format!("ClusterUpdate/{name}"), why }];
        };
        let status = read.status.unwrap_or_default();
        let state = match status.state.as_deref() {
            Some("Succeeded") => UpdateState::Succeeded,
            Some("Failed") => UpdateState::Failed,
            _ => UpdateState::Running,
        };
        let mut facts = Vec::new();
        let before = self.update.take().filter(|update| update.name == *name);
        if before.is_none() {
            let (from, to) = (read.spec.from.distribution, read.spec.to.distribution.clone());
            facts.push(Fact::UpdateBegan { update: name.clone(), from, to });
        }
        if let Some(stage) = &status.stage
            && before.as_ref().and_then(|before| before.stage.as_ref()) != Some(stage)
        {
            facts.push(Fact::UpdateStage { update: name.clone(), stage: stage.clone() });
        }
        if before.as_ref().map_or(UpdateState::Running, |before| before.state) != state {
            facts.push(match state {
                UpdateState::Running => Fact::UpdateResumed { update: name.clone() },
                UpdateState::Succeeded => Fact::UpdateSucceeded { update: name.clone() },
                UpdateState::Failed => Fact::UpdateFailed { update: name.clone(), why: status.failure },
            });
        }
        self.update = Some(Update {
            name: name.clone(),
            ordinal: read.spec.ordinal,
            id: read.spec.id,
            from,
            to,
            to_distribution: read.spec.to.distribution,
            addons,
            state,
            stage: status.stage,
        });
        facts
    }

    fn fold_machine(&mut self, change: &Change) -> Result<Vec<Fact>, serde_json::Error> {
        let name = &change.object.key.name;
        if change.kind == ChangeKind::Deleted {
            let Some(machine) = self.machines.remove(name) else { return Ok(Vec::new()) };
            let version = machine.version_text();
            return Ok(vec![Fact::MachineDeleted { machine: name.clone(), role: machine.role, version }]);
        }
        let read: read::Machine = serde_json::from_slice(&change.object.json)?;
        let is_control_plane = change.object.label(label::CONTROL_PLANE.name).is_some();
        let before = self.machines.remove(name);
        let was = before.as_ref();
        let annotations = read.metadata.annotations.unwrap_or_default();
        let now = Machine {
            role: if is_control_plane { Role::ControlPlane } else { Role::Worker },
            version: read.spec.version.as_ref().and_then(|text| text.parse().ok()),
            base: annotations.get(annotation::MACHINE_NAME_BASE.name).map(|base| base.as_str().into()),
            update: change.object.label(label::UPDATE_ID.name).map(Into::into),
            deleting: change.object.deleting,
            settled: was.is_some_and(|was| was.settled) || self.workload.nodes.get(name).is_some_and(|node| node.ready),
            running: read.status.and_then(|status| status.phase).is_some_and(|phase| phase == "Running"),
        };
        let mut facts = Vec::new();
        match was {
            None => {
                let version = now.version_text();
                facts.push(Fact::MachineCreated { machine: name.clone(), role: now.role, version });
            }
            Some(was) if was.version != now.version || was.role != now.role => facts.push(Fact::MachineChanged),
            Some(_) => {}
        }
        if now.running && !was.is_some_and(|was| was.running) {
            facts.push(Fact::MachineRunning { machine: name.clone() });
        }
        if now.deleting && !was.is_some_and(|was| was.deleting) {
            facts.push(Fact::MachineDeleting { machine: name.clone() });
        }
        self.machines.insert(name.clone(), now);
        Ok(facts)
    }

    fn fold_pool(&mut self, change: &Change) -> Result<Vec<Fact>, serde_json::Error> {
        let pool = change.object.key.name.clone();
        if change.kind == ChangeKind::Deleted {
            self.pools.remove(&pool);
            return Ok(vec![Fact::PoolGone { pool }]);
        }
        let read: read::Pool = serde_json::from_slice(&change.object.json)?;
        let spec = read.spec.template.spec;
        let text = spec.version.unwrap_or_default();
        let bootstrap = spec.bootstrap.and_then(|bootstrap| bootstrap.config_ref);
        let template = |named: Option<read::Named>| named.map(|named| named.name.into()).unwrap_or_default();
        let now =
            Pool { version: text.parse().ok(), templates: [template(spec.infrastructure_ref), template(bootstrap)] };
        let before = self.pools.insert(pool.clone(), now.clone());
        Ok(match before {
            None => vec![Fact::PoolCreated { pool, version: text }],
            Some(before) if before == now => Vec::new(),
            Some(_) => {
                let [template, _] = now.templates;
                vec![Fact::PoolSwitched { pool, version: text, template }]
            }
        })
    }

    fn fold_secret(&mut self, secret: ClusterSecret, change: &Change) -> Result<Vec<Fact>, serde_json::Error> {
        let name = change.object.key.name.clone();
        if change.kind == ChangeKind::Deleted {
            self.secrets.remove(&secret);
            return Ok(vec![Fact::SecretGone { secret: name }]);
        }
        let owners: Box<[_]> = change.object.owners.iter().map(|owner| owner.uid.clone()).collect();
        let before = self.secrets.insert(secret, owners.clone());
        if before.is_some_and(|before| before == owners) {
            return Ok(Vec::new());
        }
        let read: read::Owned = serde_json::from_slice(&change.object.json)?;
        let references = read.metadata.owner_references.unwrap_or_default();
        let owners = references.into_iter().map(|owner| format!("{} {}", owner.kind, owner.name)).collect();
        Ok(vec![Fact::SecretOwned { secret: name, owners }])
    }

    fn fold_job(&mut self, change: &Change) -> Result<Vec<Fact>, serde_json::Error> {
        let job = change.object.key.name.clone();
        if change.kind == ChangeKind::Deleted {
            self.jobs.remove(&job);
            return Ok(Vec::new());
        }
        let read: read::Job = serde_json::from_slice(&change.object.json)?;
        let status = read.status.unwrap_or_default();
        let ended = |type_| read::is_true(status.conditions.as_ref(), type_);
        let end = if ended("Complete") {
            Some(JobEnd::Complete)
        } else if ended("Failed") {
            Some(JobEnd::Failed)
        } else {
            None
        };
        let now = Job { failed: status.failed.unwrap_or_default(), end };
        let before = self.jobs.insert(job.clone(), now.clone());
        let mut facts = Vec::new();
        if before.is_none() {
            facts.push(Fact::JobCreated { job: job.clone() });
        }
        let before = before.unwrap_or_default();
        if now.failed > before.failed {
            facts.push(Fact::JobAttemptFailed { job: job.clone(), failed: now.failed });
        }
        match now.end.filter(|_| before.end != now.end) {
            Some(JobEnd::Complete) => facts.push(Fact::JobComplete { job }),
            Some(JobEnd::Failed) => facts.push(Fact::JobFailed { job }),
            None => {}
        }
        Ok(facts)
    }
}

impl Machine {
    fn version_text(&self) -> Box<str> {
        self.version.as_ref().map_or("no version", |version| version.as_str()).into()
    }
}
