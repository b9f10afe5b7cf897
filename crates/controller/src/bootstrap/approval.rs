//! Whether an upgrade of a cluster of a class may begin, where that has to be approved or something was reviewed: what is read for
//! that, and the record of one that begins.
//!
//! What is decided is decided in [`windlass_plan::bootstrap::approval`]. Of clusters that nobody has to approve anything of, nothing is
//! read.

use windlass_api::kind::cluster_api::Cluster;
use windlass_plan::bootstrap::approval::{Considering, May, is_required, may_begin, reviewed};
use windlass_plan::bootstrap::course::Course;
use windlass_plan::bootstrap::envelope::Enclosing;
use windlass_plan::bootstrap::{Blocked, Subject};
use windlass_runtime::runner::Ctx;

use super::{Context, Error, execute, observe};
use crate::control_plane;
use crate::record::class as record;

/// What comes of it.
pub(super) enum Gate {
    /// It may begin, or has.
    Open,
    /// It is on record from now on.
    Recorded,
    /// It has to be waited.
    Waits(Blocked),
}

/// Whether the packages of the release that a cluster is asked to have may be brought in.
pub(super) async fn gate(
    ctx: &Ctx<Context>,
    cluster: &Cluster,
    subject: &Subject,
    basis: &observe::Basis,
) -> Result<Gate, Error> {
    let resolved = basis.bootstrap.as_ref().and_then(|bootstrap| bootstrap.status.as_ref()?.resolved_tkr.as_deref());
    let is_chosen = resolved == Some(subject.release.as_str());
    if is_chosen || !(is_required(cluster) || reviewed(cluster).is_some()) {
        return Ok(Gate::Open);
    }
    let client = &ctx.access.client;
    let control_plane = control_plane::version(client, cluster).await.map_err(observe::unread("the control plane"))?;
    let latest = record::latest(client, cluster).await.map_err(observe::unread("its updates"))?;
    let enclosing = Enclosing {
        cluster,
        subject,
        release: basis.release.as_ref(),
        templates: &basis.templates,
        bootstrap: basis.bootstrap.as_ref(),
    };
    let seen = Considering { enclosing, control_plane: control_plane.as_ref(), latest: latest.as_ref() };
    match may_begin(&seen) {
        May::GoOn => Ok(Gate::Open),
        May::Wait(blocked) => Ok(Gate::Waits(blocked)),
        May::Begin(spec) => {
            // What somebody asks for meanwhile is another upgrade.
            let executor = execute::Executor { management: client, workload: None, kinds: &ctx.kinds };
            let is_current = executor.is_current(&subject.object(), &subject.revision).await;
            let unconfirmed =
                |source| Error::Steps { count: 1, why: "the cluster is as it was seen".to_owned(), source };
            if is_current.map_err(unconfirmed)? {
                record::begin(client, cluster, *spec, ctx.access.clock.now()).await?;
            }
            Ok(Gate::Recorded)
        }
    }
}

/// Writes down how far the upgrade on record is, if there is one.
pub(super) async fn follow(ctx: &Ctx<Context>, cluster: &Cluster) -> Result<(), Error> {
    if !is_required(cluster) {
        return Ok(());
    }
    let client = &ctx.access.client;
    let latest = record::latest(client, cluster).await.map_err(observe::unread("its updates"))?;
    let Some(latest) = latest else { return Ok(()) };
    let bootstrap = ctx.bootstraps.get(ctx.key());
    let course = Course { cluster, bootstrap: bootstrap.as_deref() };
    Ok(record::follow(client, &course, &latest, ctx.access.clock.now()).await?)
}
