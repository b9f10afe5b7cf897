//! The end of our hold on a cluster.

use serde_json::json;
use windlass_api::annotation;

use super::step::{Step, Write};
use super::{Pause, Subject};
use crate::step::Place;

/// What says on a Cluster that Cluster API's checks of its version are switched off by us, and not by its owner.
pub(super) const OURS: &str = "windlass.dev/abort";

/// Ends our hold on a cluster, if there is one; a pause of somebody else stays. Cluster API's checks of its version are switched on
/// again, if we had switched them off.
pub(super) fn release(cluster: &Subject, why: impl Into<String>) -> Option<Step> {
    cluster.held_for.as_ref()?;
    let mut marks = json!({(annotation::HELD_FOR_RELEASE.name): null, (annotation::KEEP_PAUSED.name): null});
    if cluster.is_taken_back() {
        marks[annotation::DISABLE_VERSION_CHECK.name] = json!(null);
    }
    let mut patch = json!({"metadata": {"annotations": marks}});
    if cluster.pause == Pause::Set {
        patch["spec"] = json!({"paused": false});
    }
    let (object, expect) = (cluster.object(), cluster.revision.clone());
    Some(Step::new(Place::Management, Write::Patch { object, patch, expect }, why))
}
