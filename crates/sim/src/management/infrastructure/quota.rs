//! The `ResourceQuotas` of a namespace, as far as they are about machines: how many of them, their processors and their memory.
//!
//! A real API server counts objects when they are created; here the infrastructure counts machines when it makes them, by
//! their classes. A quota with scopes is about pods, and none of ours.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ResourceQuota;
use windlass_api::kind::virtual_machine::Hardware;
use windlass_api::kind::wcp::WCPMachine;
use windlass_api::quota::Counted;
use windlass_apiserver::quantity::Quantity;
use windlass_runtime::key::Key;

use crate::management::context::Turn;

/// What a resource in a quota is about, if it is about machines: of what is made for them nobody keeps count here.
fn limited(resource: &str) -> Option<Counted> {
    let is_meant = |counted: &Counted| !matches!(counted, Counted::BootstrapConfigs | Counted::Secrets);
    Counted::of(resource).filter(is_meant)
}

/// The quotas that a machine counts in.
pub(super) fn of(turn: &Turn, machine: &WCPMachine) -> Vec<Arc<ResourceQuota>> {
    let mut quotas = turn.caches.quotas.list_in(machine.metadata.namespace.as_deref().unwrap_or_default());
    quotas.retain(|quota| limits(quota).next().is_some());
    quotas
}

/// What a quota limits of machines: the resource, what it is about, and how much of it there may be.
fn limits(quota: &ResourceQuota) -> impl Iterator<Item = (&str, Counted, Quantity)> {
    let spec = quota.spec.as_ref();
    let scoped = |spec: &&_| is_scoped(spec);
    let hard = spec.filter(|spec| !scoped(spec)).and_then(|spec| spec.hard.as_ref()).into_iter().flatten();
    hard.filter_map(|(resource, max)| Some((resource.as_str(), limited(resource)?, Quantity::parse(&max.0).ok()?)))
}

fn is_scoped(spec: &k8s_openapi::api::core::v1::ResourceQuotaSpec) -> bool {
    spec.scopes.as_ref().is_some_and(|scopes| !scopes.is_empty()) || spec.scope_selector.is_some()
}

/// Why a machine is too much beside those that were made in its namespace, in the words of an API server.
pub(super) fn exceeded(
    turn: &Turn,
    quotas: &[Arc<ResourceQuota>],
    machine: &WCPMachine,
    beside: &[&WCPMachine],
) -> Option<String> {
    quotas.iter().find_map(|quota| {
        let name = quota.metadata.name.as_deref().unwrap_or_default();
        limits(quota).find_map(|(resource, limited, max)| {
            let requested = amount(turn, limited, machine)?;
            let used = beside.iter().filter_map(|other| amount(turn, limited, other)).reduce(Quantity::plus);
            let total = used.map_or(requested, |used| used.plus(requested));
            let used = used.map_or_else(|| "0".to_owned(), Quantity::canonical);
            let [requested, max_text] = [requested, max].map(Quantity::canonical);
            (total > max).then(|| {
                format!(
                    "exceeded quota: {name}, requested: {resource}={requested}, used: {resource}={used}, limited: \
                     {resource}={max_text}"
                )
            })
        })
    })
}

/// How much of it a machine is.
fn amount(turn: &Turn, limited: Counted, machine: &WCPMachine) -> Option<Quantity> {
    let hardware = || -> Option<Hardware> {
        turn.caches.machine_classes.get(&Key::cluster(&machine.spec.class_name))?.spec.hardware.clone()
    };
    let text = match limited {
        Counted::Processors => hardware()?.cpus.to_string(),
        Counted::Memory => hardware()?.memory,
        Counted::Machines | Counted::InfrastructureMachines | Counted::BootstrapConfigs | Counted::Secrets => {
            "1".to_owned()
        }
    };
    Quantity::parse(&text).ok()
}
