//! How long a machine may take to go: what pools and control planes hand on to machines that are there, also to those that are
//! already going. It is how people let go of a machine whose pods may not be evicted.

use serde_json::{Value, json};
use windlass_api::kind::machine_deletion::MachineDeletion;

/// What the time-outs have to be changed by, as a merge patch; `None` if they are as wanted. What nobody asks for any more is
/// taken back.
pub(super) fn change(known: Option<&MachineDeletion>, wanted: Option<&MachineDeletion>) -> Option<Value> {
    let nothing = MachineDeletion::default();
    let (known, wanted) = (known.unwrap_or(&nothing), wanted.unwrap_or(&nothing));
    if known == wanted {
        return None;
    }
    if *wanted == nothing {
        return Some(Value::Null);
    }
    Some(json!({
        "nodeDrainTimeoutSeconds": wanted.node_drain_timeout_seconds,
        "nodeVolumeDetachTimeoutSeconds": wanted.node_volume_detach_timeout_seconds,
        "nodeDeletionTimeoutSeconds": wanted.node_deletion_timeout_seconds,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(known: Value, wanted: Value, expected: Option<&Value>) {
        let read = |value: Value| serde_json::from_value::<Option<MachineDeletion>>(value).unwrap();
        assert_eq!(change(read(known).as_ref(), read(wanted).as_ref()).as_ref(), expected);
    }

    #[test]
    fn a_time_out_that_nobody_asks_for_any_more_is_taken_back() {
        check(json!(null), json!(null), None);
        check(json!(null), json!({}), None);
        check(json!({"nodeDrainTimeoutSeconds": 5}), json!({"nodeDrainTimeoutSeconds": 5}), None);
        check(json!({"nodeDrainTimeoutSeconds": 5}), json!(null), Some(&json!(null)));
        check(
            json!({"nodeDrainTimeoutSeconds": 5}),
            json!({"nodeDeletionTimeoutSeconds": 7}),
            Some(&json!({
                "nodeDrainTimeoutSeconds": null, "nodeVolumeDetachTimeoutSeconds": null, "nodeDeletionTimeoutSeconds": 7,
            })),
        );
    }
}
