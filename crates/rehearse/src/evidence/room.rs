//! How many machines there are more than now, at the worst, and what there is for them.

use serde_json::Value;
use windlass_api::kind::cluster_api::Amount;
use windlass_api::quota::Counted;
use windlass_apiserver::quantity;
use windlass_plan::risk::Known;
use windlass_plan::risk::evidence::{Evidence, Quantity, Quota, Surge};

use super::address;
use super::lists::Lists;
use super::management::its_own;
use super::object::{full_name, list, name_of, namespace_of, text};
use crate::rehearsal::Wish;

pub(super) fn fill(
    evidence: &mut Evidence,
    management: &Lists<'_>,
    workload: &Lists<'_>,
    own: Option<&Value>,
    wish: &Wish,
) {
    let asked = Asked { own, wish };
    evidence.surges = management.kind("MachineDeployment").map(|pools| {
        let control_plane = control_plane(evidence, management, &asked);
        let pools = its_own(pools, evidence).map(|pool| pool_surge(evidence, management, pool, &asked));
        std::iter::once(control_plane).chain(pools).collect()
    });
    evidence.quotas = management.kind("ResourceQuota").map(|found| {
        let here = found.into_iter().filter(|quota| namespace_of(quota) == evidence.cluster.namespace.as_str());
        here.flat_map(|quota| quotas(management, quota)).collect()
    });
    evidence.address_pools = address::pools(evidence, management, workload, own);
}

/// What machines of a role are, and what is asked of them.
struct Asked<'a> {
    own: Option<&'a Value>,
    wish: &'a Wish,
}

impl Asked<'_> {
    fn patched(&self, role: &str, field: &str) -> Option<&Value> {
        let Wish::Patch(patch) = self.wish else { return None };
        patch.pointer(&format!("/spec/topology/{role}/{field}"))
    }

    fn class(&self, role: &str) -> &str {
        let has = self.own.map_or("", |own| text(own, &format!("/spec/topology/{role}/class")));
        self.patched(role, "class").and_then(Value::as_str).unwrap_or(has)
    }

    /// How many machines more there are to be.
    fn growth(&self, role: &str) -> u32 {
        let has = self.own.and_then(|own| own.pointer(&format!("/spec/topology/{role}/count"))?.as_u64());
        let wanted = self.patched(role, "count").and_then(Value::as_u64);
        let growth = wanted.zip(has).map_or(0, |(wanted, has)| wanted.saturating_sub(has));
        u32::try_from(growth).unwrap_or(u32::MAX)
    }
}

/// What machines of a class have, where somebody says so.
fn hardware(management: &Lists<'_>, class: &str) -> (Option<Quantity>, Option<Quantity>) {
    let found = management.of("VirtualMachineClass").find(|object| name_of(object) == class);
    let cpus = found.and_then(|class| class.pointer("/spec/hardware/cpus")?.as_i64()).map(Quantity::units);
    let memory = found.and_then(|class| parsed(text(class, "/spec/hardware/memory")));
    (cpus, memory)
}

fn parsed(text: &str) -> Option<Quantity> {
    quantity::Quantity::parse(text).ok().map(|quantity| Quantity { millis: quantity.millis() })
}

/// The control plane is replaced machine by machine: the new one comes before the old one goes.
fn control_plane(evidence: &Evidence, management: &Lists<'_>, asked: &Asked<'_>) -> Surge {
    let (cpus, memory) = hardware(management, asked.class("controlPlane"));
    let machines = u32::from(evidence.rolls.control_plane).saturating_add(asked.growth("controlPlane"));
    let why = "a new machine comes before an old one goes".to_owned();
    Surge { role: "the control plane".to_owned(), machines, cpus, memory, why }
}

fn pool_surge(evidence: &Evidence, management: &Lists<'_>, pool: &Value, asked: &Asked<'_>) -> Surge {
    let replicas = pool["spec"]["replicas"].as_u64().and_then(|count| u32::try_from(count).ok()).unwrap_or(1);
    let max = &pool["spec"]["rollout"]["strategy"]["rollingUpdate"]["maxSurge"];
    let max: Amount = serde_json::from_value(max.clone()).unwrap_or(Amount::Count(1));
    let surge = if evidence.rolls.workers { max.of_rounded_up(replicas).unwrap_or(1) } else { 0 };
    let growth = asked.growth("workers");
    let (cpus, memory) = hardware(management, asked.class("workers"));
    let shown = match max {
        Amount::Count(count) => count.to_string(),
        Amount::Share(share) => share,
    };
    let name = full_name(pool);
    let why = match (surge, growth) {
        (0, _) => format!("it grows by {growth}"),
        (_, 0) => format!("maxSurge {shown} of {replicas}, in MachineDeployment {name}"),
        (_, _) => format!("maxSurge {shown} of {replicas}, in MachineDeployment {name}, and it grows by {growth}"),
    };
    let machines = surge.saturating_add(growth);
    Surge { role: format!("the pool {}", name_of(pool)), machines, cpus, memory, why }
}

/// A quota, one for each of its resources. One with scopes is about pods.
fn quotas(management: &Lists<'_>, quota: &Value) -> Vec<Quota> {
    if list(quota, "/spec/scopes").next().is_some() || quota.pointer("/spec/scopeSelector").is_some() {
        return Vec::new();
    }
    let hard = quota.pointer("/spec/hard").and_then(Value::as_object).into_iter().flatten();
    hard.filter_map(|(resource, amount)| {
        let hard = parsed(amount.as_str()?)?;
        Some(Quota {
            name: full_name(quota),
            resource: resource.clone(),
            hard,
            used: used(management, quota, resource),
        })
    })
    .collect()
}

/// How much is used, as the status says; where it says nothing, what can be counted is.
fn used(management: &Lists<'_>, quota: &Value, resource: &str) -> Known<Quantity> {
    let status = quota["status"]["used"][resource].as_str().and_then(parsed);
    let namespace = namespace_of(quota);
    let counted = || {
        let found = management.kind(Counted::of(resource).map_or("WCPMachine", Counted::kind));
        found.map(|found| {
            let here = found.into_iter().filter(|object| namespace_of(object) == namespace);
            let each = here.filter_map(|object| amount(management, resource, object));
            each.fold(Quantity::default(), Quantity::plus)
        })
    };
    status.map_or_else(counted, Known::Read)
}

/// How much of a resource an object is.
fn amount(management: &Lists<'_>, resource: &str, object: &Value) -> Option<Quantity> {
    let hardware = || hardware(management, text(object, "/spec/className"));
    match Counted::of(resource) {
        Some(Counted::Processors) => hardware().0,
        Some(Counted::Memory) => hardware().1,
        _ => Some(Quantity::units(1)),
    }
}
