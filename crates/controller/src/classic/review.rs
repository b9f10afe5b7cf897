//! What a release would write into the objects of a classic cluster, for those who want to see it before: read by anybody who may read
//! the objects, and rendered by the functions that the controller writes by.

use kube::Client;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::cluster_update::ClusterUpdate;
use windlass_api::name::UpdateId;
use windlass_api::version::{KubernetesVersion, VersionPrefix};
use windlass_plan::diff::{self, Diff, Ownership};
use windlass_plan::render::{FIELD_MANAGER, Scope, classic};
use windlass_plan::resolve::labelled::course::goes_on;
use windlass_plan::resolve::labelled::may_go;
use windlass_plan::target::Target;

use super::observe::said_by;
use super::parts::{parts, published};
use super::{Unplanned, wanted};

/// What would be written, object by object.
pub struct Reviewed {
    /// The release.
    pub release: KubernetesVersion,
    /// The differences.
    pub diff: Diff,
}

/// What would be written to bring a cluster to a release, or to the one that its label names.
pub async fn review(
    client: &Client,
    cluster: &Cluster,
    latest: Option<&ClusterUpdate>,
    to: Option<&VersionPrefix>,
) -> Result<Reviewed, Unplanned> {
    let published = published(client).await?;
    let parts = parts(client, cluster).await?.ok_or(Unplanned::NotYet)?;
    let release = match to {
        Some(to) => published.chosen(to)?.clone(),
        None => wanted(cluster, latest, &published)?,
    };
    let before = super::observe::deployed(cluster);
    let kubernetes = parts.control_plane["spec"]["version"].as_str().and_then(|text| text.parse().ok());
    if to.is_some() {
        may_go(&release, before.as_ref(), kubernetes.as_ref())?;
    }
    let target = Target::of_classic(&parts, release)?;
    let inventory = said_by(&parts, None, jiff::Timestamp::UNIX_EPOCH);
    // The names of what is new are those that the update will give.
    let ordinal =
        latest.map_or(1, |latest| if goes_on(latest) { latest.spec.ordinal } else { latest.spec.ordinal + 1 });
    let scope = Scope { target: &target, update: UpdateId::new(&target.cluster.uid, ordinal) };
    let rendered = classic::all(&scope, &inventory);
    let objects =
        rendered.iter().map(|it| diff::object(&it.object, it.live.as_ref(), &Ownership::default(), FIELD_MANAGER));
    Ok(Reviewed { release: target.release.distribution.clone(), diff: Diff { objects: objects.collect() } })
}
