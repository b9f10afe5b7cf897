//! What changes of Machines and pools say.

use jiff::SignedDuration;
use windlass_api::{annotation, label};
use windlass_apiserver::store::{Change, ChangeKind};

use crate::truth::{Bounds, Cluster, Fact, Machine, Pool, Removal, Role, read};

/// What a machine that goes waits for in any case, whoever looks after it.
const ALWAYS_WAITED_FOR: [&str; 3] = ["WaitingForInfrastructureDeletion", "WaitingForBootstrapDeletion", "Deleting"];

impl Cluster {
    pub(super) fn fold_machine(&mut self, change: &Change) -> Result<Vec<Fact>, serde_json::Error> {
        let name = &change.object.key.name;
        if change.kind == ChangeKind::Deleted {
            let Some(machine) = self.machines.remove(name) else { return Ok(Vec::new()) };
            let version = machine.version_text();
            let Machine { role, pool, settled, .. } = machine;
            return Ok(vec![Fact::MachineDeleted { machine: name.clone(), role, version, pool, settled }]);
        }
        let read: read::Machine = serde_json::from_slice(&change.object.json)?;
        let before = self.machines.remove(name);
        let was = before.as_ref();
        let is_ready = self.workload.nodes.get(name).is_some_and(|node| node.ready);
        let mut now = machine(change, read);
        now.settled = is_ready || was.is_some_and(|was| was.settled);
        if now.deleting {
            now.removal.since = was.and_then(|was| was.removal.since).or(Some(change.at));
        }
        let facts = machine_facts(name, was, &now);
        self.machines.insert(name.clone(), now);
        Ok(facts)
    }

    pub(super) fn fold_pool(&mut self, change: &Change) -> Result<Vec<Fact>, serde_json::Error> {
        let pool = change.object.key.name.clone();
        if change.kind == ChangeKind::Deleted {
            self.pools.remove(&pool);
            return Ok(vec![Fact::PoolGone { pool }]);
        }
        let read: read::Pool = serde_json::from_slice(&change.object.json)?;
        let bounds = bounds(read.spec.replicas.unwrap_or(1), read.spec.rollout);
        let spec = read.spec.template.spec;
        let text = spec.version.unwrap_or_default();
        let bootstrap = spec.bootstrap.and_then(|bootstrap| bootstrap.config_ref);
        let template = |named: Option<read::Named>| named.map(|named| named.name.into()).unwrap_or_default();
        let templates = [template(spec.infrastructure_ref), template(bootstrap)];
        let now = Pool { version: text.parse().ok(), templates, bounds, deleting: change.object.deleting };
        let before = self.pools.insert(pool.clone(), now.clone());
        Ok(match before {
            None => vec![Fact::PoolCreated { pool, version: text }],
            Some(before) if (&before.version, &before.templates) == (&now.version, &now.templates) => Vec::new(),
            Some(_) => {
                let [template, _] = now.templates;
                vec![Fact::PoolSwitched { pool, version: text, template }]
            }
        })
    }
}

/// As Cluster API fills in what is not said: one more, none less.
fn bounds(replicas: u32, rollout: Option<read::Rollout>) -> Bounds {
    let strategy = rollout.and_then(|rollout| rollout.strategy).unwrap_or_default();
    let on_delete = strategy.type_.as_deref() == Some("OnDelete");
    let rolling = strategy.rolling_update.unwrap_or_default();
    let surge_max = rolling.max_surge.map_or(1, |amount| amount.of(replicas, true));
    let unavailable_max = rolling.max_unavailable.map_or(0, |amount| amount.of(replicas, false));
    // One of them has to move.
    let unavailable_max = if surge_max == 0 { unavailable_max.max(1) } else { unavailable_max };
    Bounds { replicas, surge_max, unavailable_max, on_delete }
}

fn machine(change: &Change, read: read::Machine) -> Machine {
    let entry = &change.object;
    let is_control_plane = entry.label(label::CONTROL_PLANE.name).is_some();
    let annotations = read.metadata.annotations.unwrap_or_default();
    let status = read.status.unwrap_or_default();
    let conditions = status.conditions.as_ref();
    let has = |annotation: &str| annotations.contains_key(annotation);
    let limits = read.spec.deletion.unwrap_or_default();
    let began = status.deletion.unwrap_or_default();
    let waits_for = read::condition(conditions, "Deleting").filter(|condition| condition.status == "True");
    let removal = Removal {
        since: None,
        drain_max: limits.node_drain_timeout_seconds.map(SignedDuration::from_secs),
        detach_max: limits.node_volume_detach_timeout_seconds.map(SignedDuration::from_secs),
        drain_since: began.node_drain_start_time,
        detach_since: began.wait_for_node_volume_detach_start_time,
        skips_drain: has(annotation::EXCLUDE_DRAINING.name),
        skips_detach: has(annotation::EXCLUDE_VOLUME_DETACH.name),
        is_remedy: read::condition(conditions, "OwnerRemediated").is_some_and(|told| told.status == "False"),
        waits_for: waits_for
            .map(|told| (told.reason.clone().unwrap_or_default(), told.message.clone().unwrap_or_default())),
    };
    Machine {
        role: if is_control_plane { Role::ControlPlane } else { Role::Worker },
        version: read.spec.version.as_ref().and_then(|text| text.parse().ok()),
        base: annotations.get(annotation::MACHINE_NAME_BASE.name).map(|base| base.as_str().into()),
        update: entry.label(label::UPDATE_ID.name).map(Into::into),
        pool: entry.label(label::DEPLOYMENT_NAME.name).map(Into::into),
        provider_id: read.spec.provider_id,
        finalizers: read.metadata.finalizers.map_or(0, |finalizers| finalizers.len()),
        deleting: entry.deleting,
        removal,
        settled: false,
        running: status.phase.is_some_and(|phase| phase == "Running"),
    }
}

fn machine_facts(name: &str, was: Option<&Machine>, now: &Machine) -> Vec<Fact> {
    let mut facts = Vec::new();
    let machine = || Box::<str>::from(name);
    match was {
        None => {
            facts.push(Fact::MachineCreated { machine: machine(), role: now.role, version: now.version_text() });
        }
        Some(was) if was.version != now.version || was.role != now.role => facts.push(Fact::MachineChanged),
        Some(_) => {}
    }
    if let Some(was) = was.filter(|was| was.base != now.base) {
        facts.push(Fact::MachineRebased { machine: machine(), was: was.base.clone() });
    }
    if now.running && !was.is_some_and(|was| was.running) {
        facts.push(Fact::MachineRunning { machine: machine() });
    }
    if now.removal.is_remedy && !was.is_some_and(|was| was.removal.is_remedy) {
        facts.push(Fact::MachineRemediated { machine: machine() });
    }
    if now.deleting && !was.is_some_and(|was| was.deleting) {
        facts.push(Fact::MachineDeleting { machine: machine() });
    }
    if let Some((reason, message)) = &now.removal.waits_for
        && !ALWAYS_WAITED_FOR.contains(&&**reason)
        && was.and_then(|was| was.removal.waits_for.as_ref()).is_none_or(|(before, _)| before != reason)
    {
        let (reason, message) = (reason.clone(), message.clone());
        facts.push(Fact::MachineWaits { machine: machine(), reason, message });
    }
    facts
}

impl Machine {
    fn version_text(&self) -> Box<str> {
        self.version.as_ref().map_or("no version", |version| version.as_str()).into()
    }
}
