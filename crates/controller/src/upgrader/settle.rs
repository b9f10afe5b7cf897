//! A control plane at rest: every machine ready, and etcd made of exactly these machines.
//!
//! Nothing is added to a control plane, and nothing called done, unless this holds: one machine more on a control plane that
//! already lacks one can cost it its quorum.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kube::runtime::watcher;
use kube::{Resource, ResourceExt};
use windlass_api::kind::cluster_api::Machine;
use windlass_api::kind::is_true;

use super::attempt::{Attempt, selector};
use super::wait::{Patience, Seen, missing};
use super::{Error, etcd, health};

/// How long a control plane may take to come to rest after the last change to it.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// Waits until the control plane is at rest. Returns its machines.
pub async fn control_plane(attempt: &Attempt<'_>) -> Result<Vec<Machine>, Error> {
    let patience = Patience::of(SETTLE_TIMEOUT, format!("the control plane of {} to be at rest", attempt.cluster));
    let which = watcher::Config::default().labels(&selector(attempt.arguments));
    let machines = patience.until(attempt.machines(), which, all_ready).await?;
    let nodes: BTreeSet<String> = machines.iter().filter_map(health::node_name).collect();
    etcd::whole(attempt, &patience, &nodes).await?;
    Ok(machines)
}

fn all_ready(machines: &BTreeMap<String, Machine>) -> Seen<Vec<Machine>> {
    for machine in machines.values() {
        let name = machine.name_any();
        if machine.meta().deletion_timestamp.is_some() {
            return missing(format!("the machine {name} is being deleted"));
        }
        if !machine.status.as_ref().is_some_and(|status| is_true(&status.conditions, health::READY)) {
            return missing(format!("the machine {name} is not ready"));
        }
        if health::node_name(machine).is_none() {
            return missing(format!("the machine {name} has no node"));
        }
    }
    Ok(machines.values().cloned().collect())
}
