//! No kube-proxy runs ahead of an API server.
//!
//! kube-proxy may not be newer than any API server, and packages come before the control plane. So each kube-proxy is bound to
//! the nodes of one distribution, and reaches a node no sooner than the machine does. The one exception is told in every report:
//! the new machines of the control plane itself, while it is replaced.

use windlass_api::label;

use super::Blocked;
use crate::inventory::{AddonObject, Machine, Node, Reachable};
use crate::package::{self, PROXY};
use crate::release::distribution_of;
use crate::target::Target;

/// Refuses to bring in the kube-proxy of a release where one runs on nodes of any distribution, and where a worker would get
/// the new one before all API servers are as new.
pub fn proxy_not_ahead(target: &Target, machines: &[Machine], workload: &Reachable<'_>) -> Option<Blocked> {
    let proxies = workload.addons.iter().filter(|(addon, _)| addon.as_str() == PROXY).flat_map(|(_, found)| found);
    let is_unbound = |found: &&AddonObject| found.live["kind"] == "DaemonSet" && !is_bound(found);
    if let Some(unbound) = { proxies }.find(is_unbound) {
        return Some(Blocked::ProxyUnbound { object: package::object_name(&unbound.live) });
    }
    let release = &target.release;
    let behind = machines.iter().find(|machine| machine.version.minor() < release.kubernetes.minor())?;
    let is_ahead = |node: &&Node| !node.control_plane && node.distribution.as_ref() == Some(&release.distribution);
    let ahead = workload.nodes.iter().find(is_ahead)?;
    Some(Blocked::ProxyAhead {
        node: ahead.name.clone(),
        to: release.kubernetes.clone(),
        machine: behind.name.clone(),
        at: behind.version.clone(),
    })
}

fn is_bound(found: &AddonObject) -> bool {
    let selector = &found.live["spec"]["template"]["spec"]["nodeSelector"];
    distribution_of(&found.live).is_some() && selector[label::DISTRIBUTION_VERSION.name].is_string()
}
