//! What a rehearsal starts from: clusters that are read now, or a snapshot that was kept.

use std::path::Path;

use jiff::SignedDuration;
use kube::api::ListParams;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::name::{ClusterName, Namespace, NamespacedName};
use windlass_plan::release::Release;
use windlass_plan::resolve::{Refusal, labelled};
use windlass_plan::risk::{Risk, assess};
use windlass_rehearse::evidence::evidence;
use windlass_rehearse::rehearsal::Request;
use windlass_rehearse::report::Origin;
use windlass_rehearse::snapshot::Snapshot;
use windlass_runtime::chance::Seed;

use super::{Error, restore};
use crate::changed::{class_cluster_name, cluster_name};
use crate::client::{self, Connection, Management, wall_now};
use crate::command::block_on;
use crate::error::Failure;
use crate::release;
use crate::snapshot;
use crate::wanted::Wanted;
use crate::way::{self, Way};

/// Which clusters are meant.
pub struct Selected<'a> {
    /// The one of this name.
    pub cluster: Option<&'a ClusterName>,
    /// Those with these labels.
    pub selector: Option<&'a str>,
}

/// What a rehearsal starts from.
pub struct Start {
    pub snapshot: Snapshot,
    pub origin: Origin,
    pub namespace: Namespace,
    pub subjects: Vec<Subject>,
}

/// A cluster that is rehearsed.
pub struct Subject {
    pub name: ClusterName,
    /// The updates that it takes, where it takes several.
    pub way: Option<Way>,
    /// It is one of a class.
    pub of_class: bool,
}

impl Subject {
    /// The object that it is asked for with, as `kubectl -o name` writes it.
    pub fn object(&self) -> String {
        if self.of_class { class_cluster_name(&self.name) } else { cluster_name(&self.name) }
    }
}

impl Start {
    /// A cluster in its namespace.
    pub fn name(&self, subject: &Subject) -> NamespacedName {
        NamespacedName { namespace: self.namespace.clone(), name: subject.name.clone().into() }
    }

    /// What is known of an update before it is run. The one place where risks come into a report.
    pub fn risks(&self, request: &Request) -> Vec<Risk> {
        assess(&evidence(&self.snapshot, &request.cluster, &request.ask))
    }
}

/// Reads the clusters.
pub fn live(connection: &Connection, selected: &Selected<'_>, wanted: &Wanted) -> Result<Start, Failure> {
    block_on(async {
        let management = connection.open().await?;
        let subjects = subjects(&management, selected, wanted).await?;
        let snapshot = snapshot::read(&management).await?;
        let origin = Origin { taken_at: Some(snapshot.taken_at), gaps: snapshot.gaps.clone(), ..Origin::default() };
        Ok(Start { snapshot, origin, namespace: management.namespace, subjects })
    })
}

/// Reads a snapshot, and asks nobody.
pub fn kept(
    folder: &Path,
    connection: &Connection,
    selected: &Selected<'_>,
    wanted: &Wanted,
) -> Result<Start, Failure> {
    let snapshot = Snapshot::load(folder).map_err(Error::Load)?;
    let world = restore(&snapshot, Seed(0))?;
    let namespace = connection.namespace_or_default()?;
    let subjects = block_on(async {
        let management = Management::of(world.client(), namespace.clone());
        subjects(&management, selected, wanted).await
    })?;
    let age = snapshot.taken_at.duration_until(wall_now());
    let origin = Origin {
        taken_at: Some(snapshot.taken_at),
        folder: Some(folder.display().to_string()),
        age: Some(coarse(age)),
        gaps: snapshot.gaps.clone(),
    };
    Ok(Start { snapshot, origin, namespace, subjects })
}

/// An age in whole minutes, and from a day on in whole hours: a report is to be the same for a while.
fn coarse(age: SignedDuration) -> SignedDuration {
    let age = age.max(SignedDuration::ZERO);
    if age.as_hours() >= 24 {
        SignedDuration::from_hours(age.as_hours())
    } else {
        SignedDuration::from_mins(age.as_mins())
    }
}

/// The clusters that are meant, and their ways.
async fn subjects(management: &Management, selected: &Selected<'_>, wanted: &Wanted) -> Result<Vec<Subject>, Failure> {
    let releases = release::all(management).await?;
    if let Some(name) = selected.cluster {
        let found = management.any_cluster(name).await?;
        let way = found.machines().map(|found| long_way(found, wanted, &releases)).transpose()?.flatten();
        return Ok(vec![Subject { name: name.clone(), way, of_class: found.machines().is_none() }]);
    }
    let labels = selected.selector.unwrap_or_default();
    let listed = management.api::<TanzuKubernetesCluster>().list(&ListParams::default().labels(labels)).await;
    let listed = listed.map_err(client::Error::while_trying(&format!("list the clusters with the labels {labels}")))?;
    let mut subjects = Vec::new();
    for found in &listed.items {
        if let Some(name) = found.metadata.name.as_ref().and_then(|name| name.parse().ok()) {
            subjects.push(Subject { name, way: long_way(found, wanted, &releases)?, of_class: false });
        }
    }
    let of_classes = management.api::<Cluster>().list(&ListParams::default().labels(labels)).await;
    let of_classes =
        of_classes.map_err(client::Error::while_trying(&format!("list the Clusters with the labels {labels}")))?;
    let by_label = |found: &Cluster| matches!(labelled::asked(found), Ok(Some(_)));
    for found in of_classes.items.iter().filter(|found| found.spec.topology.is_some() || by_label(found)) {
        if let Some(name) = found.metadata.name.as_ref().and_then(|name| name.parse().ok()) {
            subjects.push(Subject { name, way: None, of_class: true });
        }
    }
    if subjects.is_empty() {
        let (labels, namespace) = (labels.to_owned(), management.namespace.clone());
        return Err(Error::NoneSelected { labels, namespace }.into());
    }
    Ok(subjects)
}

/// The updates that a wish takes, where it takes several.
fn long_way(found: &TanzuKubernetesCluster, wanted: &Wanted, releases: &[Release]) -> Result<Option<Way>, Failure> {
    let from = way::current(found).ok();
    match from.zip(wanted.to.as_ref()).map(|(from, to)| Way::find(found, &from, to, releases)) {
        Some(Err(refusal)) if matches!(*refusal, Refusal::NoPath { .. }) => Err(release::Error::from(refusal).into()),
        Some(Ok(way)) => Ok(Some(way).filter(Way::is_long)),
        // What else is refused is refused by the API that is asked, in its words.
        Some(Err(_)) | None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_does_not_change_with_every_second() {
        let check = |seconds: i64, coarsely: i64| {
            assert_eq!(coarse(SignedDuration::from_secs(seconds)).as_secs(), coarsely);
        };
        check(59, 0);
        check(61, 60);
        check(-5, 0);
        check(25 * 3600 + 59, 25 * 3600);
    }
}
