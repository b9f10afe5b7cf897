//! Among the failure domains of a cluster: where the next machine of a control plane is made, and where one is taken away.
//!
//! Where two domains are equal, Cluster API takes one at random. Here it is the first by name, or the one with the oldest machine.

use std::cmp::Reverse;

use super::view::{Replica, View};

/// The domains that machines of a control plane may be in, by name.
fn of_cluster<'a>(view: &'a View<'_>) -> Vec<&'a str> {
    let status = view.cluster.status.as_ref();
    let all = status.map(|status| status.failure_domains.as_slice()).unwrap_or_default();
    let ours = all.iter().filter(|domain| domain.control_plane == Some(true));
    let mut names: Vec<&str> = ours.map(|domain| domain.name.as_str()).collect();
    names.sort_unstable();
    names
}

fn count<'a>(replicas: impl Iterator<Item = &'a Replica>, domain: Option<&str>) -> usize {
    replicas.filter(|replica| replica.domain() == domain).count()
}

/// Where the next machine is made: where the fewest machines are that are as they should be and stay, so that the last of a
/// rollout leaves them spread; of several where the fewest are in all. `None` where nobody tells of any domain.
pub(super) fn of_next(view: &View<'_>) -> Option<String> {
    let stays = |replica: &&Replica| replica.outdated.is_empty() && !replica.leaves();
    let crowd = |domain: &&str| {
        (count(view.replicas.iter().filter(stays), Some(*domain)), count(view.replicas.iter(), Some(*domain)))
    };
    of_cluster(view).into_iter().min_by_key(crowd).map(str::to_owned)
}

/// Which of these machines goes, the oldest of them first: one that is in none of the domains, else one from where the most of
/// them are, and of several such domains from where the most machines are in all.
pub(super) fn to_leave<'a>(view: &View<'_>, candidates: &[&'a Replica]) -> Option<&'a Replica> {
    let domains = of_cluster(view);
    let is_outside = |replica: &&&Replica| replica.domain().is_none_or(|domain| !domains.contains(&domain));
    if let Some(outside) = candidates.iter().find(is_outside) {
        return Some(outside);
    }
    let crowd = |replica: &&Replica| {
        let domain = replica.domain();
        (count(candidates.iter().copied(), domain), count(view.replicas.iter(), domain))
    };
    // The first of those that are equal, where a maximum would be the last.
    candidates.iter().min_by_key(|replica| Reverse(crowd(replica))).copied()
}
