//! Where the addresses of machines and the ranges of pods come from, and how many are left.

use serde_json::Value;
use windlass_plan::risk::Known;
use windlass_plan::risk::evidence::{AddressPool, Addresses, Evidence, Gap};

use super::lists::Lists;
use super::management::its_own;
use super::object::{full_name, list, name_of, namespace_of, shown, text};

/// A pool of one namespace, and one of all.
const POOLS: [&str; 2] = ["InClusterIPPool", "GlobalInClusterIPPool"];
/// What gets the addresses of a pool.
const MACHINES: &str = "addresses of machines";

pub(super) fn pools(
    evidence: &Evidence,
    management: &Lists<'_>,
    workload: &Lists<'_>,
    own: Option<&Value>,
) -> Known<Vec<AddressPool>> {
    let ranges = own.and_then(|own| ranges(workload, own));
    let of_machines = management.kind("IPAddressClaim").map(|claims| of_machines(evidence, management, claims));
    match of_machines {
        Known::Read(pools) => Known::Read(pools.into_iter().chain(ranges).collect()),
        // Why claims could not be read is told of the pool that nobody knows.
        Known::Unread(gap) => Known::Read(std::iter::once(unknown(gap)).chain(ranges).collect()),
    }
}

/// The pools that the machines of the cluster have addresses from, as their claims say.
fn of_machines(evidence: &Evidence, management: &Lists<'_>, claims: Vec<&Value>) -> Vec<AddressPool> {
    let mut named: Vec<(&str, &str)> = its_own(claims, evidence)
        .map(|claim| (text(claim, "/spec/poolRef/kind"), text(claim, "/spec/poolRef/name")))
        .collect();
    named.sort_unstable();
    named.dedup();
    if named.is_empty() {
        return vec![unknown(Gap {
            what: "how many addresses there are for machines".to_owned(),
            why: "they have them from the infrastructure, and no object says how many it has".to_owned(),
            way_out: "ask whoever runs the network of the machines".to_owned(),
        })];
    }
    named.into_iter().map(|(kind, name)| pool(evidence, management, kind, name)).collect()
}

/// A pool that is known by its name.
fn pool(evidence: &Evidence, management: &Lists<'_>, kind: &str, name: &str) -> AddressPool {
    let shown = format!("{kind} {name}");
    let unread = |why: &str| {
        let (what, why) = (format!("how many addresses {shown} has"), why.to_owned());
        unknown(Gap { what, why, way_out: format!("kubectl get {kind} -A, or ask whoever runs it") })
    };
    if !POOLS.contains(&kind) {
        return unread("it is of a provider of addresses that says it in its own way");
    }
    let found = match management.kind(kind) {
        Known::Read(found) => found,
        Known::Unread(gap) => return unknown(gap),
    };
    let is_it = |object: &&Value| {
        let is_here = kind == POOLS[1] || namespace_of(object) == evidence.cluster.namespace.as_str();
        is_here && name_of(object) == name
    };
    found.into_iter().find(is_it).and_then(counted).unwrap_or_else(|| unread("its status does not say"))
}

/// What a pool says itself.
fn counted(pool: &Value) -> Option<AddressPool> {
    let addresses = pool.pointer("/status/ipAddresses")?;
    let name = format!("{} {}", text(pool, "/kind"), full_name(pool));
    let addresses = Addresses { total: addresses["total"].as_u64()?, used: addresses["used"].as_u64()? };
    let way_out = format!("add to spec.addresses of {name}, or set maxSurge: 0");
    Some(AddressPool { name, what: MACHINES.to_owned(), addresses: Known::Read(addresses), way_out })
}

fn unknown(gap: Gap) -> AddressPool {
    let (name, way_out) = ("the network of the machines".to_owned(), gap.way_out.clone());
    AddressPool { name, what: MACHINES.to_owned(), addresses: Known::Unread(gap), way_out }
}

/// The ranges of pods that nodes get, where nodes have one. Where they have none, there is none to run out of.
fn ranges(workload: &Lists<'_>, own: &Value) -> Option<AddressPool> {
    let length = |cidr: &str| cidr.split_once('/').and_then(|(_, length)| length.parse::<u32>().ok());
    let nodes: Vec<u32> = workload.of("Node").filter_map(|node| length(text(node, "/spec/podCIDR"))).collect();
    let of_node = *nodes.first()?;
    let blocks = list(own, "/spec/settings/network/pods/cidrBlocks");
    let network = blocks.filter_map(Value::as_str).find_map(length)?;
    let total = 1_u64.checked_shl(of_node.checked_sub(network)?)?;
    Some(AddressPool {
        name: shown(own),
        what: format!("ranges of pods (a /{of_node} for each node, of a /{network})"),
        addresses: Known::Read(Addresses { total, used: u64::try_from(nodes.len()).unwrap_or(u64::MAX) }),
        way_out: "set maxSurge: 0: the network of a cluster cannot be changed".to_owned(),
    })
}
