//! The pools of workers: what they should be, how far Cluster API is with them, and what keeps their machines.
//!
//! The machines of a pool are listed only while it is not at rest. There may be thousands of them, and they change all the time;
//! whoever kept all of them in a cache would mostly be woken by those that are well.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube::Api;
use kube::api::ListParams;
use serde::Serialize;
use windlass_api::condition::{ConditionStatus, ConditionType};
use windlass_api::kind::cluster_api::{Machine as LiveMachine, MachineDeployment};
use windlass_api::kind::cluster_update::ClusterUpdate;
use windlass_api::kind::{Condition, condition, is_true};
use windlass_api::label;
use windlass_api::name::{MachineName, NameLimit, ObjectName, PoolName, Role};
use windlass_plan::inventory::{Failing, Leaving, Pool, PoolMachine, PoolMoved, PoolProgress, Template, UpdateRecord};
use windlass_plan::target::Target;
use windlass_runtime::key::Key;
use windlass_runtime::trimmed;

use super::{machine_state, revision, uid};
use crate::observe::{Gaps, Subject, Which};
use crate::reconcile::context::{Context, Reach};
use crate::said::said;

/// The pools that the target has, as far as they are there.
pub(in crate::observe) async fn pools(
    ctx: &Context,
    subject: &Subject<'_>,
    target: &Target,
    update: Option<&UpdateRecord>,
    gaps: &mut Gaps,
) -> BTreeMap<PoolName, Pool> {
    let mut pools = BTreeMap::new();
    for wanted in &target.pools {
        let name = Role::Workers(wanted.name.clone()).object_name(subject.name, NameLimit::LabelValue);
        let key = Key::namespaced(subject.namespace.as_str(), name.as_str());
        let Some(live) = ctx.caches.deployments.get(&key) else { continue };
        let Some(mut pool) = pool(ctx, subject, &live, gaps) else { continue };
        if !pool.is_at_rest() {
            pool.machines = machines(ctx, subject, name.as_str(), gaps).await;
            pool.moved_at = moved_at(&wanted.name, &pool, update, ctx.access.clock.now());
        }
        pools.insert(wanted.name.clone(), pool);
    }
    pools
}

fn pool(ctx: &Context, subject: &Subject<'_>, live: &MachineDeployment, gaps: &mut Gaps) -> Option<Pool> {
    let object = format!("MachineDeployment/{}", live.metadata.name.as_deref().unwrap_or_default());
    let machine = &live.spec.template.spec;
    let key = |name: &str| Key::namespaced(subject.namespace.as_str(), name);
    let infrastructure = &machine.infrastructure_ref.name;
    let bootstrap = machine.bootstrap.config_ref.as_ref().map(|config| config.name.as_str()).unwrap_or_default();
    let machine_template = ctx.caches.machine_templates.get(&key(infrastructure));
    let config_template = ctx.caches.config_templates.get(&key(bootstrap));
    let status = live.status.clone().unwrap_or_default();
    Some(Pool {
        revision: gaps.take(&object, revision(&live.metadata))?,
        replicas: live.spec.replicas.unwrap_or(1),
        version: gaps.take(&object, machine.version.as_deref().unwrap_or_default().parse())?,
        infrastructure_template: template(infrastructure, machine_template.map(|t| json(&t.spec.template.spec)), gaps)?,
        bootstrap_template: template(bootstrap, config_template.map(|t| json(&t.spec.template.spec)), gaps)?,
        progress: PoolProgress {
            observed: live.metadata.generation.is_some() && status.observed_generation == live.metadata.generation,
            replicas: status.replicas,
            up_to_date: status.up_to_date_replicas,
            available: status.available_replicas,
        },
        machines: Vec::new(),
        moved_at: None,
        live: serde_json::Value::Null,
    })
}

pub(crate) fn template(
    name: &str,
    spec: Option<serde_json::Result<serde_json::Value>>,
    gaps: &mut Gaps,
) -> Option<Template> {
    let object = format!("template {name}");
    let spec = gaps.take(&object, spec.transpose())?;
    Some(Template { name: gaps.take(&object, ObjectName::new(name))?, spec })
}

fn json(spec: &impl Serialize) -> serde_json::Result<serde_json::Value> {
    serde_json::to_value(spec)
}

/// The machines of a pool, by name.
pub(crate) async fn machines(ctx: &Reach, subject: &Which<'_>, deployment: &str, gaps: &mut Gaps) -> Vec<PoolMachine> {
    let api: Api<LiveMachine> = Api::namespaced(ctx.access.client.clone(), subject.namespace.as_str());
    let (cluster, pool) = (label::CLUSTER_NAME.name, label::DEPLOYMENT_NAME.name);
    let of_pool = ListParams::default().labels(&format!("{cluster}={},{pool}={deployment}", subject.name));
    let listed = trimmed::list(&api, &of_pool).await.map_err(|error| format!("list its Machines: {}", said(&error)));
    let listed = gaps.take(&format!("MachineDeployment/{deployment}"), listed);
    let mut machines: Vec<PoolMachine> = listed.into_iter().flatten().filter_map(|live| machine(&live, gaps)).collect();
    machines.sort_by(|one, other| one.name.cmp(&other.name));
    machines
}

fn machine(live: &LiveMachine, gaps: &mut Gaps) -> Option<PoolMachine> {
    let meta = &live.metadata;
    let object = format!("Machine/{}", meta.name.as_deref().unwrap_or_default());
    let conditions = live.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let created = meta.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0);
    Some(PoolMachine {
        name: gaps.take(&object, MachineName::new(meta.name.as_deref().unwrap_or_default()))?,
        uid: gaps.take(&object, uid(meta))?,
        up_to_date: is_true(conditions, ConditionType::UpToDate.as_str()),
        created,
        state: gaps.take(&object, machine_state(live))?,
        failing: failing(conditions, created),
        leaving: meta.deletion_timestamp.as_ref().map(|since| leaving(conditions, since.0)),
    })
}

/// What Cluster API says is wrong: the first of these that does not hold, and has something to say about it.
fn failing(conditions: &[Condition], created: Timestamp) -> Option<Failing> {
    use ConditionType::{BootstrapConfigReady, HealthCheckSucceeded, InfrastructureReady, NodeHealthy};
    let is_wrong = |found: &&Condition| found.status == ConditionStatus::False.as_str() && !found.message.is_empty();
    let found = [BootstrapConfigReady, InfrastructureReady, NodeHealthy, HealthCheckSucceeded]
        .into_iter()
        .find_map(|type_| condition(conditions, type_.as_str()).filter(is_wrong))?;
    let why = format!("{}: {}", found.type_, found.message.trim_start_matches("* "));
    Some(Failing { since: found.last_transition_time.parse().unwrap_or(created), why })
}

fn leaving(conditions: &[Condition], since: Timestamp) -> Leaving {
    let deleting = condition(conditions, ConditionType::Deleting.as_str());
    let said = |of: fn(&Condition) -> &String| deleting.map(of).cloned().unwrap_or_default();
    Leaving { since, step: said(|deleting| &deleting.reason), why: said(|deleting| &deleting.message) }
}

/// When a pool that is not at rest last moved: what the record says, if the pool is still what it was then, or now. Where no
/// update is under way nobody remembers.
pub(crate) fn moved_at(
    name: &PoolName,
    pool: &Pool,
    update: Option<&UpdateRecord>,
    now: Timestamp,
) -> Option<Timestamp> {
    let update = update.filter(|update| !update.state.is_over())?;
    let known = update.progress.iter().find(|moved| moved.pool == *name);
    let still = known.filter(|moved| moved.fingerprint == pool.fingerprint());
    Some(still.map_or(now, |moved| moved.moved_at))
}

/// What the record of an update remembers of pools. What cannot be read is as good as nothing: the next look writes it anew.
pub(super) fn moved(live: &ClusterUpdate) -> Vec<PoolMoved> {
    let records = live.status.iter().flat_map(|status| &status.progress);
    let known = records.filter_map(|record| {
        let (pool, moved_at) = (record.pool.parse().ok()?, record.moved_at.parse().ok()?);
        Some(PoolMoved { pool, fingerprint: record.fingerprint.clone(), moved_at })
    });
    known.collect()
}
