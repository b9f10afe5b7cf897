//! What the controller would do next, without doing it: it resolves, observes, plans and checks as in a reconcile, and stops
//! there.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::name::NamespacedName;
use windlass_plan::check::{Finding, check};
use windlass_plan::planner::{Planned, PlanningInput, plan};
use windlass_runtime::key::Key;
use windlass_runtime::runner::{Ctx, Outcome};

use super::assemble;
use super::context::Context;
use crate::access::Access;
use crate::observe;
use crate::observe::management::latest_update;
use crate::resolve::{self, Unresolved};
use crate::said::said;

/// A cluster that is there is seen as soon as the watches are; this is for one that is not.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the controller would do next, and what it knows.
#[derive(Debug, Clone, PartialEq)]
pub struct Preview {
    /// What was asked for, and what was observed.
    pub input: PlanningInput,
    /// What to do next, and why not more.
    pub planned: Planned,
    /// What the second opinion complains about.
    pub findings: Vec<Finding>,
}

/// There is nothing to preview.
#[derive(Debug, thiserror::Error)]
pub enum PreviewError {
    /// The cluster does not say what it should be.
    #[error("find out what {cluster} is to be")]
    Unresolved {
        /// The cluster.
        cluster: NamespacedName,
        /// What is wrong.
        #[source]
        source: Unresolved,
    },
    /// The cluster was not seen.
    #[error("there is no cluster {0}, or it cannot be watched")]
    NotSeen(NamespacedName),
}

/// Looks at a cluster once. Only reads are made.
pub async fn preview(access: Access, cluster: &NamespacedName) -> Result<Preview, PreviewError> {
    let (runner, context) = assemble(access);
    let wanted = Key::namespaced(cluster.namespace.as_str(), cluster.name.as_str());
    let (sender, receiver) = oneshot::channel();
    let sender = Arc::new(Mutex::new(Some(sender)));
    let look = move |object: Arc<TanzuKubernetesCluster>, ctx: Ctx<Context>| {
        let (is_wanted, sender) = (Key::of(&*object) == wanted, Arc::clone(&sender));
        async move {
            if is_wanted {
                let seen = consider(&ctx, &object).await;
                let sender = sender.lock().unwrap_or_else(PoisonError::into_inner).take();
                if let Some(sender) = sender {
                    // Whoever gave up does not want to know.
                    drop(sender.send(seen));
                }
            }
            Ok::<_, Infallible>(Outcome::done())
        }
    };
    let not_seen = || PreviewError::NotSeen(cluster.clone());
    let seen = tokio::select! {
        biased;
        seen = receiver => seen.map_err(|_| not_seen())?,
        _ = runner.run(Arc::new(context), look, tokio::time::sleep(PATIENCE)) => return Err(not_seen()),
    };
    seen.map_err(|source| PreviewError::Unresolved { cluster: cluster.clone(), source })
}

async fn consider(ctx: &Context, cluster: &TanzuKubernetesCluster) -> Result<Preview, Unresolved> {
    let latest = latest_update(ctx, cluster);
    if let Err(error) = resolve::kept::learn(ctx, cluster).await {
        // Whoever needs it says that it is not there.
        tracing::warn!(error = said(&error), "what is kept for a cluster cannot be read");
    }
    let target = resolve::target(ctx, cluster, latest.as_deref())?;
    let target = super::decided(ctx, target, latest.as_deref());
    let inventory = observe::inventory(ctx, cluster, &target).await.inventory;
    let input = PlanningInput { target, inventory, now: ctx.access.clock.now(), gates: ctx.access.gates.clone() };
    let planned = plan(&input);
    let findings = check(&input, &planned);
    Ok(Preview { input, planned, findings })
}
