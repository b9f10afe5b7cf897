//! What a snapshot says about one cluster, as evidence for risks: from objects to the few facts that decide them.
//!
//! Nothing is read but the snapshot. What a snapshot does not have, and what could not be read when it was taken, is a gap of
//! the evidence; a list without objects is none.

mod address;
mod certificate;
mod class;
mod extension;
mod label;
mod lists;
mod management;
mod object;
mod pods;
mod release;
mod room;
mod workload;

use serde_json::Value;
use windlass_api::name::NamespacedName;
use windlass_plan::risk::Known;
use windlass_plan::risk::evidence::{Evidence, Rolls, Versions};

use crate::rehearsal::Wish;
use crate::snapshot::Snapshot;
pub(crate) use label::profiles;
use lists::Lists;
use object::{name_of, namespace_of};

/// What is known of a cluster before something is asked of it.
pub fn evidence(snapshot: &Snapshot, cluster: &NamespacedName, wish: &Wish) -> Evidence {
    let management = Lists::management(snapshot);
    let workload = Lists::workload(snapshot, cluster);
    let own = own_object(&management, cluster);
    let of_class = own.filter(|own| is_of_class(own));
    let by_label = own.filter(|own| label::is_one(own));
    let releases = match of_class.or(by_label) {
        Some(own) if by_label.is_some() => label::read(&management, own, wish),
        Some(own) => class::read(&management, own, wish),
        None => release::read(&management, own, wish),
    };
    let rolls = rolls(own, wish, &releases.from, &releases.to);
    let mut evidence = Evidence::nothing(cluster.clone(), snapshot.taken_at, rolls);
    management::fill(&mut evidence, &management, own);
    certificate::fill(&mut evidence, &management, &workload);
    room::fill(&mut evidence, &management, &workload, own, wish);
    workload::fill(&mut evidence, &workload);
    pods::fill(&mut evidence, &workload);
    extension::fill(&mut evidence, &workload);
    if let Some(members) = workload::members(snapshot, &workload, cluster) {
        evidence.members = members;
    }
    management::drain_timeouts(&mut evidence, &management);
    evidence.from = releases.from;
    evidence.to = releases.to;
    evidence.packages = releases.packages;
    evidence.not_offered = releases.not_offered;
    evidence.ahead = releases.ahead;
    if let Some(own) = of_class {
        evidence.unmanaged = class::unmanaged(&management, own);
    }
    evidence
}

/// The object by which people ask for the cluster.
fn own_object<'s>(management: &Lists<'s>, cluster: &NamespacedName) -> Option<&'s Value> {
    let is_it = |object: &&Value| {
        namespace_of(object) == cluster.namespace.as_str() && name_of(object) == cluster.name.as_str()
    };
    let ours = |cluster: &&Value| is_of_class(cluster) || label::is_one(cluster);
    let of_class = || management.of("Cluster").filter(ours).find(is_it);
    management.of("TanzuKubernetesCluster").find(is_it).or_else(of_class)
}

fn is_of_class(object: &Value) -> bool {
    object["kind"] == "Cluster" && !object["spec"]["topology"].is_null()
}

/// Which machines would be replaced, as far as the wish says so itself.
fn rolls(own: Option<&Value>, wish: &Wish, from: &Known<Versions>, to: &Known<Versions>) -> Rolls {
    if matches!(wish, Wish::Delete | Wish::Nothing) {
        return Rolls::NONE;
    }
    // Which release somebody means may not be known; that it is another one is then taken for granted.
    let is_same = from.read().zip(to.read()).is_some_and(|(from, to)| from.distribution == to.distribution);
    if wish.to().is_some() && !is_same {
        return Rolls::ALL;
    }
    let Wish::Patch(patch) = wish else { return Rolls::NONE };
    // What a variable does is for the class to say: all machines may depend on it.
    let topology = &patch["spec"]["topology"];
    let is_told = |part: &Value| !part["variables"].is_null();
    let pools = topology["workers"]["machineDeployments"].as_array().into_iter().flatten();
    if own.is_some_and(is_of_class) && (is_told(topology) || pools.into_iter().any(is_told)) {
        return Rolls::ALL;
    }
    let differs = |role: &str, field: &str| {
        let asked = &patch["spec"]["topology"][role][field];
        !asked.is_null() && own.is_none_or(|own| own["spec"]["topology"][role][field] != *asked)
    };
    let changes = |role: &str| ["class", "storageClass"].iter().any(|field| differs(role, field));
    Rolls { control_plane: changes("controlPlane"), workers: changes("workers") }
}
