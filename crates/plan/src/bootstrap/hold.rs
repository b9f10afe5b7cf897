//! The end of our hold on a cluster.

use serde_json::json;
use windlass_api::annotation;

use super::step::{Step, Write};
use super::{Pause, Subject};
use crate::step::Place;

/// Ends our hold on a cluster, if there is one; a pause of somebody else stays.
pub(super) fn release(cluster: &Subject, why: impl Into<String>) -> Option<Step> {
    cluster.held_for.as_ref()?;
    let marks = json!({(annotation::HELD_FOR_RELEASE.name): null, (annotation::KEEP_PAUSED.name): null});
    let mut patch = json!({"metadata": {"annotations": marks}});
    if cluster.pause == Pause::Set {
        patch["spec"] = json!({"paused": false});
    }
    let (object, expect) = (cluster.object(), cluster.revision.clone());
    Some(Step::new(Place::Management, Write::Patch { object, patch, expect }, why))
}
