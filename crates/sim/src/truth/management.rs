//! What the changes of the management API server say.

mod machine;
mod secret;

use std::collections::BTreeSet;

use jiff::Timestamp;
use windlass_api::{annotation, label};
use windlass_apiserver::store::{Change, ChangeKind, Entry, Key};

use crate::actor;

use super::{
    BUILT_IN_ADDONS, Cluster, ControlPlane, Fact, Job, JobEnd, Live, OwnerChange, Truth, Update, UpdateState, Wish,
    read,
};

/// The cluster that a change is about, and what it says.
type Told = Result<(Box<str>, Vec<Fact>), serde_json::Error>;

impl Truth {
    pub(super) fn fold_management(&mut self, resource: &str, change: &Change) -> Told {
        // The cluster that has the object's own name.
        let own_name = || Some(change.object.key.to_string());
        match resource {
            "tanzukubernetesclusters.run.tanzu.vmware.com" => self.about(change, own_name(), |c| c.fold_tkc(change)),
            "clusters.cluster.x-k8s.io" => self.about(change, own_name(), |c| c.fold_owner(change)),
            "kubeadmcontrolplanes.controlplane.cluster.x-k8s.io" => {
                let cluster = labelled(change).or_else(|| self.referring(&change.object));
                self.about(change, cluster, |c| c.fold_control_plane(change))
            }
            "machines.cluster.x-k8s.io" => self.about(change, named(change), |c| c.fold_machine(change)),
            "machinedeployments.cluster.x-k8s.io" => self.about(change, named(change), |c| c.fold_pool(change)),
            "secrets" => match secret::of_cluster(&change.object) {
                Some(secret) => self.about(change, labelled(change), |c| c.fold_secret(secret, change)),
                None => Ok(nothing()),
            },
            "jobs.batch" => self.about(change, labelled(change), |c| c.fold_job(change)),
            "clusterupdates.windlass.dev" => self.fold_update(change),
            "virtualmachineimages.vmoperator.vmware.com" => self.fold_image(change).map(|()| nothing()),
            _ => Ok(nothing()),
        }
    }

    fn about(
        &mut self,
        change: &Change,
        cluster: Option<String>,
        fold: impl FnOnce(&mut Cluster) -> Result<Vec<Fact>, serde_json::Error>,
    ) -> Told {
        let Some(name) = cluster else { return Ok(nothing()) };
        let cluster = self.cluster_mut(&name);
        cluster.now = change.at;
        cluster.actor = actor::current();
        let facts = fold(cluster)?;
        Ok((name.into(), facts))
    }

    /// The cluster that names this control plane, which does not say itself whose it is yet.
    fn referring(&self, control_plane: &Entry) -> Option<String> {
        let Key { namespace, name } = &control_plane.key;
        let refers = |cluster: &Cluster| cluster.control_plane_name.as_ref() == Some(name);
        let beside = |cluster: &str| cluster.split_once('/').is_some_and(|(place, _)| place == &**namespace);
        self.clusters
            .iter()
            .find(|(cluster, truth)| beside(cluster) && refers(truth))
            .map(|(cluster, _)| cluster.to_string())
    }

    fn fold_update(&mut self, change: &Change) -> Told {
        let read: read::Update = serde_json::from_slice(&change.object.json)?;
        // A release that is on no image brings none: they are kubeadm's, and of whoever looks after the control plane.
        // Nor does one of a Cluster whose machines Cluster API rolls: what comes first there are its packages.
        let owners = read.metadata.owner_references.iter().flatten();
        let is_rolled = owners.into_iter().any(|owner| owner.kind == "Cluster");
        let known = self.addons.get(&read.spec.to.distribution).filter(|_| !is_rolled);
        let with_built_in = |known: &BTreeSet<Box<str>>| {
            known.iter().cloned().chain(BUILT_IN_ADDONS.map(Into::into)).collect::<BTreeSet<Box<str>>>()
        };
        let addons = known.map(with_built_in).unwrap_or_default();
        let cluster = format!("{}/{}", change.object.key.namespace, read.spec.cluster);
        self.about(change, Some(cluster), |cluster| Ok(cluster.fold_update(change, read, addons)))
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

/// The cluster that the object's labels name, or else its fields.
fn named(change: &Change) -> Option<String> {
    labelled(change).or_else(|| {
        let read: read::OfCluster = serde_json::from_slice(&change.object.json).ok()?;
        Some(format!("{}/{}", change.object.key.namespace, read.spec.cluster_name))
    })
}

/// Since when something is so.
fn since(before: Option<Timestamp>, is_so: bool, now: Timestamp) -> Option<Timestamp> {
    is_so.then(|| before.unwrap_or(now))
}

impl Live {
    fn of(entry: &Entry) -> Self {
        let owners = entry.owners.iter().map(|owner| owner.uid.clone()).collect();
        Self { uid: entry.uid.clone(), owners, deleting: entry.deleting }
    }
}

impl Cluster {
    fn fold_tkc(&mut self, change: &Change) -> Result<Vec<Fact>, serde_json::Error> {
        if change.kind == ChangeKind::Deleted {
            self.wish = None;
            self.held.by_wish = None;
            return Ok(vec![Fact::ClusterGone]);
        }
        let read: read::Tkc = serde_json::from_slice(&change.object.json)?;
        self.held.by_wish = since(self.held.by_wish, read.metadata.is_paused(), change.at);
        let status = read.status.unwrap_or_default();
        let mut addons = (BTreeSet::new(), BTreeSet::new());
        for addon in status.addons.unwrap_or_default().into_values() {
            match addon.status.as_deref() {
                Some("error") => drop(addons.0.insert(addon.name)),
                Some("applied") => drop(addons.1.insert(addon.name)),
                _ => {}
            }
        }
        let now = Wish {
            control_plane_count: read.spec.topology.control_plane.count,
            distribution: read.spec.distribution.full_version,
            phase: status.phase,
            version: status.version,
            addon_errors: addons.0,
            addons_applied: addons.1,
            deleting: change.object.deleting,
        };
        let before = self.wish.take();
        let mut facts = Vec::new();
        let was = before.as_ref();
        let is_other =
            |was: &Wish| (&was.distribution, was.control_plane_count) != (&now.distribution, now.control_plane_count);
        if was.is_none_or(is_other) {
            let is_new = was.is_none_or(|was| was.distribution != now.distribution);
            facts.push(Fact::Requested { distribution: now.distribution.clone().filter(|_| is_new) });
        }
        if was.is_some_and(|was| was.addon_errors != now.addon_errors) {
            facts.push(Fact::AddonErrors);
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

    fn fold_owner(&mut self, change: &Change) -> Result<Vec<Fact>, serde_json::Error> {
        let now = (change.kind != ChangeKind::Deleted).then(|| Live::of(&change.object));
        let read: read::ClusterObject = serde_json::from_slice(&change.object.json)?;
        let is_paused = read.spec.as_ref().is_some_and(|spec| spec.paused == Some(true)) || read.metadata.is_paused();
        self.held.by_cluster = since(self.held.by_cluster, is_paused && now.is_some(), change.at);
        self.control_plane_name = read.spec.and_then(|spec| spec.control_plane_ref).map(|named| named.name.into());
        if self.object == now {
            return Ok(Vec::new());
        }
        let is_deleting = |live: &Live| live.deleting;
        let change = match (&self.object, &now) {
            (_, None) => OwnerChange::Went,
            (None, Some(_)) => OwnerChange::Came,
            (Some(was), Some(now)) if is_deleting(now) && !is_deleting(was) => OwnerChange::Goes,
            (Some(_), Some(_)) => OwnerChange::Other,
        };
        if now.is_none() {
            // Its API server went with it, and so did what it was made with.
            self.workload = super::Workload::default();
            self.keys.clear();
        }
        self.object = now;
        Ok(vec![Fact::OwnerChanged { change }])
    }

    fn fold_control_plane(&mut self, change: &Change) -> Result<Vec<Fact>, serde_json::Error> {
        let name = change.object.key.name.clone();
        if change.kind == ChangeKind::Deleted {
            self.control_plane = None;
            return Ok(vec![Fact::ControlPlaneGoes { name, gone: true }]);
        }
        let read: read::ControlPlane = serde_json::from_slice(&change.object.json)?;
        let version = |text: Option<Box<str>>| text.and_then(|text| text.parse().ok());
        let replicas = read.spec.replicas.unwrap_or(1);
        let rolling = read.spec.rollout.and_then(|rollout| rollout.strategy?.rolling_update);
        let surge = rolling.and_then(|rolling| rolling.max_surge).map_or(1, |surge| surge.of(replicas, true));
        let configuration = read.spec.kubeadm_config_spec.and_then(|spec| spec.cluster_configuration);
        let now = ControlPlane {
            name: name.clone(),
            live: Live::of(&change.object),
            version: version(read.spec.version),
            reached: version(read.status.and_then(|status| status.version)),
            replicas,
            goes_first: surge == 0,
            external_etcd: configuration.and_then(|configuration| configuration.etcd?.external).is_some(),
        };
        let mut facts = Vec::new();
        let before = self.control_plane.take();
        let was = before.as_ref();
        let text = |version: &Option<windlass_api::version::KubernetesVersion>| {
            version.as_ref().map_or("no version", |version| version.as_str()).into()
        };
        if was.is_none_or(|was| (&was.version, was.replicas) != (&now.version, now.replicas)) {
            let version = text(&now.version);
            facts.push(Fact::ControlPlaneRequested { name: name.clone(), version, replicas: now.replicas });
        }
        if now.reached.is_some() && was.is_none_or(|was| was.reached != now.reached) {
            facts.push(Fact::ControlPlaneReached { name: name.clone(), version: text(&now.reached) });
        }
        if now.live.deleting && was.is_none_or(|was| !was.live.deleting) {
            facts.push(Fact::ControlPlaneGoes { name, gone: false });
        }
        self.control_plane = Some(now);
        Ok(facts)
    }

    fn fold_update(&mut self, change: &Change, read: read::Update, addons: BTreeSet<Box<str>>) -> Vec<Fact> {
        let name = &change.object.key.name;
        if change.kind == ChangeKind::Deleted {
            self.update = self.update.take().filter(|update| update.name != *name);
            self.running_updates.remove(name);
            return Vec::new();
        }
        let is_running = !matches!(
            read.status.as_ref().and_then(|status| status.state.as_deref()),
            Some("Succeeded" | "Failed" | "Aborted")
        );
        if is_running {
            self.running_updates.insert(name.clone(), read.spec.id.clone());
        } else {
            self.running_updates.remove(name);
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
            Some("Aborted") => UpdateState::Aborted,
            _ => UpdateState::Running,
        };
        let mut facts = Vec::new();
        let before = self.update.take().filter(|update| update.name == *name);
        if before.is_none() {
            let (from, to) = (read.spec.from.distribution, read.spec.to.distribution.clone());
            facts.push(Fact::UpdateBegan { update: name.clone(), from, to });
        }
        if let Some(before) = before.as_ref().filter(|before| before.id != read.spec.id) {
            facts.push(Fact::UpdateRenamed { update: name.clone(), was: before.id.clone() });
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
                UpdateState::Aborted => Fact::UpdateAborted { update: name.clone() },
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
        let before = self.jobs.remove(&job);
        let addons_applied = match &before {
            Some(before) => before.addons_applied.clone(),
            None => self.wish.as_ref().map(|wish| wish.addons_applied.clone()).unwrap_or_default(),
        };
        let now = Job { failed: status.failed.unwrap_or_default(), end, addons_applied };
        self.jobs.insert(job.clone(), now.clone());
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
