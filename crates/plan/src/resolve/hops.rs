//! The way to a release that is several minors ahead.
//!
//! A control plane goes through every minor. Workers need not: a kubelet may be some minors behind its API servers, so the
//! workers of a cluster are replaced where the next step of the control plane would leave them too far behind, as late as
//! that allows, and at the end. The list keeps the rules that Cluster API has for upgrade plans.

use windlass_api::version::facts::behind_max;
use windlass_api::version::{KubernetesVersion, MinorDistance, MinorVersion};

use super::hint::{exact, offered};
use super::{Refusal, Versioned, known};

/// Where a cluster is: the releases of its machines, oldest first to be asked. A release that is not there any more is known
/// by its version alone.
#[derive(Clone, Copy)]
pub struct Position<'a> {
    /// What the oldest machine of the control plane has.
    pub control_plane: &'a dyn Versioned,
    /// What the oldest worker has; `None` if there is none.
    pub workers: Option<&'a dyn Versioned>,
}

impl<'a> Position<'a> {
    /// All machines of a cluster have the same.
    pub fn all_at(release: &'a dyn Versioned) -> Self {
        Self { control_plane: release, workers: Some(release) }
    }
}

/// One update on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop<'r, R> {
    /// What the control plane is led to.
    pub release: &'r R,
    /// The workers are led there, too. Where not, they keep what they have.
    pub workers: bool,
}

/// The updates that lead from where a cluster is to a release, in order. Empty if there is nothing to do.
///
/// The control plane stops at the newest patch of each minor in between. Workers that are too old for its first step are
/// replaced before it, where the control plane is: by its own release or, if that is gone, by a newer patch of the same minor.
pub fn hops<'r, R: Versioned>(
    from: Position<'_>,
    to: &KubernetesVersion,
    releases: &'r [R],
) -> Result<Vec<Hop<'r, R>>, Refusal> {
    let current = from.control_plane;
    let last = offered(exact(to, releases)?, Some(current.version()))?;
    for machines in [Some(current), from.workers].into_iter().flatten() {
        leads_on(machines, last)?;
    }
    let mut hops: Vec<Hop<'r, R>> = Vec::new();
    let mut kubelets = from.workers.map(|workers| workers.kubernetes().clone());
    for release in stations(current, last, releases)? {
        if kubelets.as_ref().is_some_and(|kubelets| is_too_old(kubelets, release.kubernetes())) {
            let rolled = if let Some(hop) = hops.last_mut() {
                hop.workers = true;
                hop.release
            } else {
                let here = here(current, last, releases)?;
                hops.push(Hop { release: here, workers: true });
                here
            };
            kubelets = Some(rolled.kubernetes().clone());
        }
        hops.push(Hop { release, workers: false });
    }
    match hops.last_mut() {
        Some(hop) => hop.workers = true,
        None if from.workers.is_some_and(|workers| workers.version() != last.version()) => {
            hops.push(Hop { release: last, workers: true });
        }
        None => {}
    }
    Ok(hops)
}

/// The releases that a control plane goes through, the last of which is `to`. Empty if there is nothing to do.
pub fn path<'r, R: Versioned>(
    from: &KubernetesVersion,
    to: &KubernetesVersion,
    releases: &'r [R],
) -> Result<Vec<&'r R>, Refusal> {
    let hops = hops(Position { control_plane: from, workers: None }, to, releases)?;
    Ok(hops.into_iter().map(|hop| hop.release).collect())
}

/// Whether kubelets may not speak to API servers of a version: they are too far behind.
pub(crate) fn is_too_old(kubelets: &KubernetesVersion, api_servers: &KubernetesVersion) -> bool {
    match api_servers.distance_from(kubelets) {
        MinorDistance::Ahead(minors) => minors.get() > behind_max(kubelets),
        MinorDistance::OtherMajor => true,
        MinorDistance::Same | MinorDistance::Behind(_) => false,
    }
}

/// Whether kubelets may wait while a control plane goes on from a version to the minor after it.
pub(crate) fn may_wait(kubelets: &KubernetesVersion, control_plane: &KubernetesVersion) -> bool {
    match control_plane.distance_from(kubelets) {
        MinorDistance::Same => true,
        MinorDistance::Ahead(minors) => minors.get() < behind_max(kubelets),
        MinorDistance::Behind(_) | MinorDistance::OtherMajor => false,
    }
}

/// Whether a release is not behind what machines have: as a whole, and in its Kubernetes.
fn leads_on(from: &dyn Versioned, to: &dyn Versioned) -> Result<(), Refusal> {
    let ends = || (from.version().clone(), to.version().clone());
    match to.kubernetes().distance_from(from.kubernetes()) {
        MinorDistance::OtherMajor => {
            let (from, to) = ends();
            Err(Refusal::OtherMajor { from, to })
        }
        distance if to.version() < from.version() || matches!(distance, MinorDistance::Behind(_)) => {
            let (from, to) = ends();
            Err(Refusal::Downgrade { from, to })
        }
        MinorDistance::Same | MinorDistance::Ahead(_) | MinorDistance::Behind(_) => Ok(()),
    }
}

/// Where the control plane stops: once in each minor, and at the end.
fn stations<'r, R: Versioned>(current: &dyn Versioned, last: &'r R, releases: &'r [R]) -> Result<Vec<&'r R>, Refusal> {
    if current.version() == last.version() {
        return Ok(Vec::new());
    }
    let mut stations = Vec::new();
    let mut minor = current.kubernetes().minor().next();
    while let Some(between) = minor.filter(|minor| *minor < last.kubernetes().minor()) {
        let station = newest_between(current, last, between, releases);
        stations.push(station.ok_or_else(|| no_path(current, last, between, releases))?);
        minor = between.next();
    }
    stations.push(last);
    Ok(stations)
}

/// The release by which workers are replaced where the control plane is now.
fn here<'r, R: Versioned>(current: &dyn Versioned, last: &'r R, releases: &'r [R]) -> Result<&'r R, Refusal> {
    let minor = current.kubernetes().minor();
    let own = releases.iter().find(|release| release.version() == current.version());
    let here = own.or_else(|| newest_between(current, last, minor, releases));
    here.ok_or_else(|| no_path(current, last, minor, releases))
}

/// The newest release of a minor that lies between two others, and that clusters may be led to without having named it.
fn newest_between<'r, R: Versioned>(
    current: &dyn Versioned,
    last: &R,
    minor: MinorVersion,
    releases: &'r [R],
) -> Option<&'r R> {
    let fits = |release: &&R| {
        release.kubernetes().minor() == minor
            && release.version() > current.version()
            && release.version() < last.version()
            && release.version().pre_release().is_none()
            && release.kubernetes().pre_release().is_none()
            && release.state().is_for_hints()
    };
    let order = |left: &&R, right: &&R| {
        left.kubernetes().cmp(right.kubernetes()).then_with(|| left.version().cmp(right.version()))
    };
    releases.iter().filter(fits).max_by(order)
}

fn no_path<R: Versioned>(current: &dyn Versioned, last: &R, missing: MinorVersion, releases: &[R]) -> Refusal {
    let (from, to) = (current.version().clone(), last.version().clone());
    Refusal::NoPath { from, to, missing, known: known(releases) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn releases() -> Vec<KubernetesVersion> {
        let texts = [
            "v1.15.5+vmware.1-guest.1",
            "v1.15.10+vmware.1-guest.1",
            "v1.16.7+vmware.1-guest.1",
            "v1.16.8+vmware.1-guest.1",
            "v1.17.4+vmware.1-guest.1",
            "v1.18.0-rc.1+vmware.1-guest.1",
            "v1.19.1+vmware.1-guest.1",
            "v1.24.9+vmware.1-guest.1",
            "v1.25.7+vmware.1-guest.1",
            "v1.26.4+vmware.1-guest.1",
            "v1.27.5+vmware.1-guest.1",
            "v1.28.3+vmware.1-guest.1",
            "v1.29.1+vmware.1-guest.1",
        ];
        texts.map(|text| text.parse().unwrap()).into()
    }

    fn full(text: &str) -> KubernetesVersion {
        format!("{text}+vmware.1-guest.1").parse().unwrap()
    }

    /// The hops as a line, `*` where the workers are led there too; or the refusal.
    fn check(control_plane: &str, workers: &str, to: &str, wanted: &str) {
        let (control_plane, workers, releases) = (full(control_plane), full(workers), releases());
        let from = Position { control_plane: &control_plane, workers: Some(&workers) };
        let found = hops(from, &full(to), &releases).map_or_else(
            |refusal| refusal.to_string(),
            |hops| {
                let line = |hop: &Hop<'_, KubernetesVersion>| {
                    let text = hop.release.as_str().trim_end_matches("+vmware.1-guest.1");
                    format!("{text}{}", if hop.workers { "*" } else { "" })
                };
                hops.iter().map(line).collect::<Vec<_>>().join(" ")
            },
        );
        assert_eq!(found, wanted, "{control_plane} and {workers} to {to}");
    }

    #[test]
    fn a_control_plane_goes_through_every_minor_and_workers_only_where_they_must() {
        check("v1.15.5", "v1.15.5", "v1.15.5", "");
        check("v1.15.5", "v1.15.5", "v1.15.10", "v1.15.10*");
        check("v1.15.5", "v1.15.5", "v1.16.7", "v1.16.7*");
        check("v1.15.5", "v1.15.5", "v1.17.4", "v1.16.8 v1.17.4*");
        check("v1.24.9", "v1.24.9", "v1.27.5", "v1.25.7 v1.26.4* v1.27.5*");
        check("v1.25.7", "v1.25.7", "v1.28.3", "v1.26.4 v1.27.5 v1.28.3*");
        check("v1.25.7", "v1.25.7", "v1.29.1", "v1.26.4 v1.27.5 v1.28.3* v1.29.1*");
    }

    #[test]
    fn an_interrupted_way_is_taken_up_where_the_cluster_is() {
        check("v1.16.8", "v1.15.5", "v1.17.4", "v1.17.4*");
        check("v1.17.4", "v1.15.5", "v1.17.4", "v1.17.4*");
        check("v1.16.8", "v1.15.5", "v1.16.8", "v1.16.8*");
        check("v1.17.4", "v1.17.4", "v1.17.4", "");
    }

    #[test]
    fn workers_that_are_too_old_for_the_first_step_are_replaced_before_it() {
        check("v1.26.4", "v1.24.9", "v1.27.5", "v1.26.4* v1.27.5*");
        check("v1.28.3", "v1.25.7", "v1.29.1", "v1.28.3* v1.29.1*");
        // Their own release is gone, and a newer patch of the minor takes its place.
        check("v1.16.1", "v1.14.3", "v1.17.4", "v1.16.8* v1.17.4*");
    }

    #[test]
    fn what_leads_back_or_nowhere_is_refused() {
        let known = super::super::listed(releases());
        check(
            "v1.17.4",
            "v1.17.4",
            "v1.19.1",
            &format!(
                "there is no path from {} to {}: no release of 1.18; there are {known}",
                full("v1.17.4"),
                full("v1.19.1")
            ),
        );
        check(
            "v1.16.8",
            "v1.16.8",
            "v1.16.7",
            &format!(
                "{} is older than {}: a cluster is never taken back to an older version",
                full("v1.16.7"),
                full("v1.16.8")
            ),
        );
        check("v1.16.8", "v1.16.8", "v1.16.9", &format!("there is no release {}; there are {known}", full("v1.16.9")));
    }

    #[test]
    fn a_path_is_what_the_control_plane_goes_through() {
        let releases = releases();
        let path = path(&full("v1.15.5"), &full("v1.17.4"), &releases).unwrap();
        assert_eq!(path, [&full("v1.16.8"), &full("v1.17.4")]);
    }
}
