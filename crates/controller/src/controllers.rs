//! All controllers of one process, in every world: on a real cluster, in `windlass up`, and in a rehearsal.

use std::time::Duration;

use windlass_plan::resolve::hold::HoldBy;

use crate::access::Access;
use crate::{bootstrap, classic, hooks, propagation, reconcile, releases};

/// How soon it is tried again to have Cluster API ask us.
const REGISTER_AGAIN: Duration = Duration::from_secs(5);

/// Which kinds of clusters are looked after, beside those whose machines Windlass replaces.
#[derive(Debug, Clone, Copy, Default)]
pub struct Kinds {
    /// Those of a class, and how their machines are kept back until packages are in.
    pub classes: Option<HoldBy>,
    /// Those whose release is a label.
    pub labels: bool,
}

/// Runs the controllers until `stop`.
pub async fn run(access: Access, Kinds { classes, labels }: Kinds, stop: impl Future<Output = ()> + Clone) {
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
    if labels {
        let by_label = Box::pin(classic::run(access.clone(), stop.clone()));
        tokio::join!(by_label, run_others(access, classes.is_some(), stop));
    } else {
        run_others(access, classes.is_some(), stop).await;
    }
}

/// All but that of clusters whose release is a label.
async fn run_others(access: Access, classes: bool, stop: impl Future<Output = ()> + Clone) {
    if !classes {
        return reconcile::run(access, stop).await;
    }
    // Boxed, so that a run without them is not the larger for it.
    let of_classes = Box::pin(releases::run(access.clone(), stop.clone()));
    let of_packages = Box::pin(bootstrap::run(access.clone(), stop.clone()));
    let of_copies = Box::pin(propagation::run(access.clone(), stop.clone()));
    tokio::join!(reconcile::run(access, stop), of_classes, of_packages, of_copies);
}
