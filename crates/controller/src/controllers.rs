//! All controllers of one process, in every world: on a real cluster, in `windlass up`, and in a rehearsal.

use std::time::Duration;

use windlass_plan::resolve::hold::HoldBy;

use crate::access::Access;
use crate::{bootstrap, hooks, propagation, reconcile, releases};

/// How soon it is tried again to have Cluster API ask us.
const REGISTER_AGAIN: Duration = Duration::from_secs(5);

/// Runs the controllers until `stop`: those of clusters whose machines Windlass replaces, and, where `classes` says how machines
/// are kept back until packages are in, those of clusters of a class.
pub async fn run(access: Access, classes: Option<HoldBy>, stop: impl Future<Output = ()> + Clone) {
    // Nothing would hold machines until Cluster API is told to ask us, so that nothing else is begun before it is.
    while classes == Some(HoldBy::Hooks)
        && let Err(error) = hooks::register(&access.client).await
    {
        tracing::warn!(%error, "Cluster API was not told to ask us; it is tried again");
        tokio::select! {
            biased;
            () = stop.clone() => return,
            () = tokio::time::sleep(REGISTER_AGAIN) => {}
        }
    }
    if classes.is_none() {
        return reconcile::run(access, stop).await;
    }
    // Boxed, so that a run without them is not the larger for it.
    let of_classes = Box::pin(releases::run(access.clone(), stop.clone()));
    let of_packages = Box::pin(bootstrap::run(access.clone(), stop.clone()));
    let of_copies = Box::pin(propagation::run(access.clone(), stop.clone()));
    tokio::join!(reconcile::run(access, stop), of_classes, of_packages, of_copies);
}
