//! An upgrade of a cluster of a class that is given up: what is read for that, and what is told.
//!
//! What is done is decided in [`windlass_plan::bootstrap::abort`]. Who has let go of the cluster is read first, and then what its
//! control plane was told and which machines there are: in this order nothing that was found out can have changed since.

use kube::Api;
use kube::api::ListParams;
use windlass_api::kind::cluster_api::{Cluster, Machine};
use windlass_api::label;
use windlass_plan::bootstrap::abort::{Abort, Aborting, abort, back};
use windlass_plan::bootstrap::quiet::moving;
use windlass_plan::bootstrap::{Step, Subject, waiting};
use windlass_runtime::runner::Ctx;

use super::{AWAITED, Again, Context, Error, Told, observe, publish, quiet, tell, write};
use crate::control_plane;

/// One look at a cluster with such an order.
pub(super) async fn look(
    ctx: &Ctx<Context>,
    cluster: &Cluster,
    subject: &Subject,
    order: &str,
) -> Result<Again, Error> {
    let watched = quiet::watched(ctx, cluster, subject).await?;
    let client = &ctx.access.client;
    let control_plane = control_plane::version(client, cluster).await.map_err(observe::unread("the control plane"))?;
    let labels = ListParams::default().labels(&format!("{}={}", label::CLUSTER_NAME, subject.name));
    let machines: Api<Machine> = Api::namespaced(client.clone(), subject.namespace.as_str());
    let machines = machines.list(&labels).await.map_err(observe::unread("Machines"))?.items;
    let back = back(cluster, control_plane.as_ref(), &machines);
    match abort(&Aborting { cluster: subject, order, back, moving: moving(&watched) }) {
        Abort::Write(step) => write_one(ctx, subject, step).await,
        Abort::Refuse(step, refused) => {
            if let Some(refused) = refused {
                publish(ctx, cluster, refused.reason(), format!("{refused}; {}", refused.way_out())).await;
            }
            write_one(ctx, subject, step).await
        }
        Abort::Wait(blocked) => {
            let Some(bootstrap) = observe::bootstrap(ctx, subject).await? else { return Ok(Again::After(AWAITED)) };
            let conditions = waiting(subject, &bootstrap, &blocked, ctx.access.clock.now());
            Ok(match tell(ctx, &bootstrap, conditions).await? {
                Told::Outdated => Again::Soon,
                Told::Yes | Told::Before => Again::After(AWAITED),
            })
        }
    }
}

/// Makes a write that expects the cluster to be as it was seen.
async fn write_one(ctx: &Ctx<Context>, subject: &Subject, step: Step) -> Result<Again, Error> {
    write(ctx, subject, None, None, &[step]).await.map(|()| Again::Soon)
}
